package plan

import (
	"errors"
	"time"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/internal/text"
)

// fleet is what the engine hears of its own actions, and the memory of the engine, as bytes that this process keeps for
// it.
type fleet struct {
	State []byte
	// looked: this process has reported what it sees.
	looked bool
	// Outcomes are those of what was done since the last answer.
	Outcomes loadlinev1.LoopFleet
}

// deletionPatience is how long the cloud may take from being asked to delete a node to saying that it does.
const deletionPatience = 5 * time.Minute

// fleetSettings returns the part of each question about machines that stays the same.
func fleetSettings(c *config.Configuration) *loadlinev1.LoopFleet {
	up, down := &c.ScaleUp, &c.ScaleDown
	return &loadlinev1.LoopFleet{Acts: c.Mode == config.Act, Swaps: up.SwapNotBegun, Options: &loadlinev1.FleetOptions{
		MaxNodeProvisionMilliseconds:  max(1, up.MaxNodeProvisionTime.Milliseconds()),
		MaxNodeStartupMilliseconds:    up.MaxNodeStartupTime.Milliseconds(),
		InitialBackOffMilliseconds:    max(1, up.InitialNodeGroupBackoffDuration.Milliseconds()),
		MaxBackOffMilliseconds:        max(1, up.MaxNodeGroupBackoffDuration.Milliseconds()),
		BackOffResetMilliseconds:      up.NodeGroupBackoffResetTimeout.Milliseconds(),
		DeletionPatienceMilliseconds:  deletionPatience.Milliseconds(),
		MaxDeletions:                  Number(max(1, down.MaxScaleDownParallelism)),
		OkUnreadyNodes:                Number(down.OKTotalUnreadyCount),
		MaxUnreadyPercent:             Number(down.UnreadyPercent()),
		DelayAfterAddMilliseconds:     down.ScaleDownDelayAfterAdd.Milliseconds(),
		DelayAfterDeleteMilliseconds:  down.ScaleDownDelayAfterDelete.Milliseconds(),
		DelayAfterFailureMilliseconds: down.ScaleDownDelayAfterFailure.Milliseconds(),
		DelaysByGroup:                 down.ScaleDownDelayTypeLocal,
		MaxSoftTaints:                 Number(down.MaxBulkSoftTaintCount),
	}}
}

// question is what the engine needs beside what is seen.
func (f *fleet) question(settings *loadlinev1.LoopFleet, now time.Time) *loadlinev1.LoopFleet {
	o := &f.Outcomes
	return &loadlinev1.LoopFleet{NowMilliseconds: now.UnixMilli(), Options: settings.Options, Acts: settings.Acts,
		Swaps: settings.Swaps,
		State: f.State, First: !f.looked, Outcomes: o.Outcomes, Removals: o.Removals, Acknowledged: o.Acknowledged,
		TaintingFailed: o.TaintingFailed, SoftTaintsTried: o.SoftTaintsTried}
}

// take takes over an answer.
func (f *fleet) take(answer *loadlinev1.LoopFleetAnswer) {
	f.State, f.looked = answer.GetState(), true
	f.Outcomes.Reset()
}

// Note takes note of how an action ended.
func (f *fleet) Note(id int64, err error) {
	outcome := &loadlinev1.ActionOutcome{Id: id, Result: loadlinev1.ActionOutcome_DONE}
	switch {
	case err == nil:
	case errors.Is(err, cloud.ErrChanged):
		outcome.Result = loadlinev1.ActionOutcome_CHANGED
	case cloud.OutcomeUnknown(err):
		outcome.Result = loadlinev1.ActionOutcome_UNKNOWN
	default:
		outcome.Result = loadlinev1.ActionOutcome_FAILED
	}
	if err != nil {
		outcome.Error = text.Bound(err.Error(), MostStatusText)
	}
	f.Outcomes.Outcomes = append(f.Outcomes.Outcomes, outcome)
}

// Bounded returns an error as a line of the log holds it.
func Bounded(err error) error { return errors.New(text.Bound(err.Error(), MostPageText)) }

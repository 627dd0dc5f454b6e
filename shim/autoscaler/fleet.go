package autoscaler

import (
	"errors"
	"math"
	"time"

	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/internal/text"
)

// fleet is what the engine is told of its own actions, and what it remembers by the bytes that this process keeps for
// it.
type fleet struct {
	metrics *metrics
	state   []byte
	// looked: this process has told what it sees.
	looked bool
	// outcomes are those of what was done since the last answer.
	outcomes loadlinev1.LoopFleet
	// coolsDown says that no node goes for now.
	coolsDown bool
}

// fleetSettings is the part of each question about machines that stays the same.
func fleetSettings(c *config.Configuration) *loadlinev1.LoopFleet {
	up, down := &c.ScaleUp, &c.ScaleDown
	return &loadlinev1.LoopFleet{Acts: c.Mode == config.Act, Swaps: up.SwapNotBegun, Options: &loadlinev1.FleetOptions{
		MaxNodeProvisionMilliseconds:  max(1, up.MaxNodeProvisionTime.Milliseconds()),
		MaxNodeStartupMilliseconds:    up.MaxNodeStartupTime.Milliseconds(),
		InitialBackOffMilliseconds:    max(1, up.InitialNodeGroupBackoffDuration.Milliseconds()),
		MaxBackOffMilliseconds:        max(1, up.MaxNodeGroupBackoffDuration.Milliseconds()),
		BackOffResetMilliseconds:      up.NodeGroupBackoffResetTimeout.Milliseconds(),
		DeletionPatienceMilliseconds:  deletionPatience.Milliseconds(),
		MaxDeletions:                  int32(min(max(1, down.MaxScaleDownParallelism), math.MaxInt32)),
		OkUnreadyNodes:                int32(min(max(0, down.OKTotalUnreadyCount), math.MaxInt32)),
		MaxUnreadyPercent:             int32(min(max(0, down.MaxTotalUnreadyPercentage), 100)),
		DelayAfterAddMilliseconds:     down.ScaleDownDelayAfterAdd.Milliseconds(),
		DelayAfterDeleteMilliseconds:  down.ScaleDownDelayAfterDelete.Milliseconds(),
		DelayAfterFailureMilliseconds: down.ScaleDownDelayAfterFailure.Milliseconds(),
	}}
}

// backOffReasons are the labels of metrics and the codes of the status.
var backOffReasons = map[loadlinev1.GroupBackOff_Reason]string{
	loadlinev1.GroupBackOff_TIMEOUT:          "timeout",
	loadlinev1.GroupBackOff_API_ERROR:        "apiError",
	loadlinev1.GroupBackOff_OUT_OF_RESOURCES: "outOfResources",
	loadlinev1.GroupBackOff_CREATION_FAILED:  "creationFailed",
}

// question is what the engine is told beside what is seen.
func (f *fleet) question(settings *loadlinev1.LoopFleet, now time.Time) *loadlinev1.LoopFleet {
	o := &f.outcomes
	return &loadlinev1.LoopFleet{NowMilliseconds: now.UnixMilli(), Options: settings.Options, Acts: settings.Acts,
		Swaps: settings.Swaps,
		State: f.state, First: !f.looked, Outcomes: o.Outcomes, Removals: o.Removals, Acknowledged: o.Acknowledged,
		TaintingFailed: o.TaintingFailed}
}

// take takes over an answer, and tells of it.
func (f *fleet) take(answer *loadlinev1.LoopFleetAnswer, now time.Time) {
	f.state, f.looked, f.coolsDown = answer.GetState(), true, answer.GetCoolsDown()
	f.outcomes.Reset()
	if problem := answer.GetStateProblem(); problem != "" {
		f.metrics.errors.WithLabelValues("state").Inc()
		klog.InfoS("What was remembered of machines and groups cannot be read: all times begin anew", "why", problem)
	}
	for _, failed := range answer.GetFailedCreations() {
		f.metrics.failedCreations.WithLabelValues(backOffReasons[failed.GetReason()]).Add(float64(failed.GetMachines()))
	}
	for _, failure := range answer.GetFailures() {
		reason := backOffReasons[failure.GetBackOff().GetReason()]
		f.metrics.failedScaleUps.WithLabelValues(reason).Inc()
		klog.InfoS("Node group backs off", "group", failure.GetNodeGroup(), "reason", reason,
			"text", failure.GetBackOff().GetText(),
			"for", time.UnixMilli(failure.GetBackOff().GetUntilMilliseconds()).Sub(now).Round(time.Millisecond))
	}
}

// note takes note of how an action ended.
func (f *fleet) note(id int64, err error) {
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
		outcome.Error = text.Bound(err.Error(), mostStatusText)
	}
	f.outcomes.Outcomes = append(f.outcomes.Outcomes, outcome)
}

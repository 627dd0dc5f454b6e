package autoscaler

import (
	"context"
	"math"
	"time"

	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/provider"
	"loadline.dev/shim/internal/text"
)

// fleet has the engine look at the machines of all groups: which are on their way, late or failed, which groups back
// off, and for how long no node goes. It keeps for the engine what that remembers.
type fleet struct {
	client  loadlinev1.AutoscalerClient
	options *loadlinev1.FleetOptions
	metrics *metrics
	state   []byte
	// looked: this process has told what it sees.
	looked bool
	// outcomes are those of what was done since the last look.
	outcomes loadlinev1.FleetOutcomes
	// coolsDown and backsOff say whether no node goes for now, and whether some group backs off.
	coolsDown, backsOff bool
	// swapRefused is when groups refused to take back nodes for others.
	swapRefused map[string]time.Time
}

func newFleet(client loadlinev1.AutoscalerClient, c *config.Configuration, m *metrics) *fleet {
	up, down := &c.ScaleUp, &c.ScaleDown
	return &fleet{client: client, metrics: m, swapRefused: map[string]time.Time{}, options: &loadlinev1.FleetOptions{
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

// look tells the engine how what was done has ended, and what is seen: nil, nothing new.
func (f *fleet) look(ctx context.Context, now time.Time,
	seen *loadlinev1.FleetObservation) (*loadlinev1.LookAtFleetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if seen != nil {
		seen.First = !f.looked
	}
	answer, err := f.client.LookAtFleet(ctx, &loadlinev1.LookAtFleetRequest{NowMilliseconds: now.UnixMilli(),
		Options: f.options, State: f.state, Outcomes: &f.outcomes, Observation: seen})
	if err != nil {
		return nil, err
	}
	f.state, f.looked = answer.GetState(), f.looked || seen != nil
	f.outcomes.Reset()
	f.coolsDown, f.backsOff = answer.GetCoolsDown(), answer.GetBacksOff()
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
	return answer, nil
}

// isIdle says whether nothing was done since the last look.
func (f *fleet) isIdle() bool {
	o := &f.outcomes
	return len(o.Increases) == 0 && len(o.GivenUp) == 0 && len(o.Removals) == 0 && len(o.TakenBack) == 0 && !o.TaintingFailed
}

// settle tells the engine at once how what was done in this loop has ended: groups back off, and no node goes, from now
// on, and what is remembered holds it.
func (l *leader) settle(ctx context.Context, o *loop) {
	if l.fleet.isIdle() {
		return
	}
	answer, err := l.fleet.look(ctx, o.now, nil)
	if err != nil { // the next look tells it
		if ctx.Err() == nil {
			l.metrics.errors.WithLabelValues("fleet").Inc()
			klog.ErrorS(bounded(err), "The engine does not take note of what was done")
		}
		return
	}
	found := map[string]*loadlinev1.FleetGroupView{}
	for _, g := range answer.GetGroups() {
		found[g.GetNodeGroup()] = g
	}
	for _, g := range o.states {
		if now := found[g.ID]; now != nil {
			g.found.BackOff, g.found.Held = now.GetBackOff(), now.GetHeld()
		}
	}
}

// noteIncrease takes note of what came of asking for nodes of a group.
func (f *fleet) noteIncrease(i *increase) {
	outcome := &loadlinev1.FleetIncrease{NodeGroup: i.group.ID, Result: loadlinev1.FleetIncrease_GRANTED,
		From: int32(i.group.Target), Nodes: int32(i.delta),
		MaxNodeProvisionMilliseconds: provisionTime(i.group.Group).Milliseconds()}
	switch {
	case i.err == nil:
	case refused(i.err):
		outcome.Result = loadlinev1.FleetIncrease_CHANGED
	default:
		outcome.Result = loadlinev1.FleetIncrease_FAILED
		outcome.Error = text.Bound(i.err.Error(), mostStatusText)
	}
	f.outcomes.Increases = append(f.outcomes.Increases, outcome)
}

// noteRemoval takes note of a node that we have removed from a group, with its machine.
func (f *fleet) noteRemoval(group, machine string) {
	f.outcomes.Removals = append(f.outcomes.Removals,
		&loadlinev1.FleetRemoval{NodeGroup: group, Machine: toldID(machine)})
}

// noteGivenUp takes note of machines that the cloud deletes, or may delete.
func (f *fleet) noteGivenUp(machines []provider.Instance) {
	for _, m := range machines {
		f.outcomes.GivenUp = append(f.outcomes.GivenUp, toldID(m.ProviderID))
	}
}

package cli

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/plan"
)

// derivedNote says which groups an answer is about where no file names any.
const derivedNote = "Without --groups, node groups are derived from the nodes, and may become empty."

// derivedNotes say it where groups grow.
var derivedNotes = []string{derivedNote, "Each may grow without limit."}

// derived returns the loop of a planner with the groups that the engine derives from the nodes, and from all pods.
// `waits` is that of Planner.Gather.
func (c *cluster) derived(ctx context.Context, p *plan.Planner, waits func(*v1.Pod) bool) (*plan.Loop, error) {
	var groups []cloud.Group
	_, err := p.Put(ctx, p.GatherShown(nil, c.now, nil), func(asked *plan.Plan) error {
		q := asked.Question
		answer, err := p.Client.PlanConsolidation(ctx, &loadlinev1.PlanConsolidationRequest{NowS: q.GetNowS(),
			Cluster:    &loadlinev1.PlanConsolidationRequest_Changes{Changes: q.GetChanges()},
			DaemonPods: q.GetDaemonPods(), DeriveGroups: true, StartupTaints: q.GetStartupTaints(), Drain: q.GetDrain(),
			Fit: q.GetFit(), Pods: q.GetPods(), Waiting: q.GetWaiting(),
			Policy:  &loadlinev1.ConsolidationPolicy{Mode: loadlinev1.ConsolidationPolicy_OFF},
			MaxWork: 1}) // no move is wanted, and no bound
		if err != nil {
			return err
		}
		groups = cloud.Derived(answer.GetDerivedGroups(), func(slot int32) *v1.Node {
			name, _ := c.view.Node(slot)
			return c.watched.Nodes[name]
		})
		return nil
	})
	if err != nil {
		return nil, engineError(err)
	}
	return p.GatherShown(groups, c.now, waits), nil
}

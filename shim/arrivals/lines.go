package arrivals

import (
	"cmp"
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/scaleup"
	"loadline.dev/shim/view"
)

// LineOutcome is what a load line would mean for a cluster whose pods all arrive anew.
type LineOutcome struct {
	// Waiting are the pods, namespace/name, for which the nodes that are there have no room, in the order of arrival.
	Waiting []string
	// NodesMore says how many more nodes, like those that are there, take them.
	NodesMore int
	// Unplaced are those of Waiting that no such node takes.
	Unplaced []string
	// CutShort says that with more work there might be a better answer.
	CutShort bool
}

// maxKinds bounds the kinds of nodes that more may come of, as the engine does.
const maxKinds = 1000

// UnderLine asks the engine where all pods of a cluster would go under filters with a load line: on the nodes that are
// there, and on more of them.
func UnderLine(ctx context.Context, conn grpc.ClientConnInterface, viewName string, c *Cluster,
	how *loadlinev1.FitOptions) (*LineOutcome, error) {
	r := newReplay(conn, viewName, c, Scheduler{})
	defer r.view.Drop(context.WithoutCancel(ctx))
	if err := r.startNodes(ctx, c); err != nil {
		return nil, err
	}
	pods, rules := scaleup.NewPods(), scaleup.DefaultRules(time.Time{})
	for _, pod := range c.Fixed {
		pods.AddPod(pod) // those of DaemonSets come with each new node
	}
	for _, pod := range c.Arrivals {
		if rules.Waits(pod) {
			pods.AddPod(arriving(pod))
		}
	}
	problem := &loadlinev1.ScaleUpProblem{Pods: pods.Pending(), DaemonPods: pods.DaemonPods(), Groups: kindsOf(c.Nodes),
		Fit: how, StartupTaints: c.StartupTaints}
	var plan *loadlinev1.PlanScaleUpResponse
	err := r.view.Ask(ctx, func(at *loadlinev1.Changes) (err error) {
		problem.Cluster = &loadlinev1.ScaleUpProblem_Changes{Changes: at}
		plan, err = loadlinev1.NewAutoscalerClient(conn).PlanScaleUp(ctx, &loadlinev1.PlanScaleUpRequest{Problem: problem})
		return err
	})
	if err != nil {
		return nil, err
	}
	return outcomeOf(plan, pods, len(problem.GetPods())), nil
}

// outcomeOf says what a plan makes of pods of some kinds.
func outcomeOf(plan *loadlinev1.PlanScaleUpResponse, pods *scaleup.Pods, kinds int) *LineOutcome {
	out := &LineOutcome{CutShort: plan.GetCutShortBy() != ""}
	for _, nodes := range plan.GetNodes() {
		out.NodesMore += int(nodes.GetNodes())
	}
	placed, unplaced := make([]int, kinds), make([]int, kinds)
	for _, use := range plan.GetExisting() {
		placed[use.GetPods().GetPod()] += int(use.GetPods().GetCount())
	}
	for _, run := range plan.GetUnplaced() {
		unplaced[run.GetPod()] += int(run.GetCount())
	}
	for kind := range kinds { // equal pods: the last to come are those that wait
		all := pods.Entry(kind)
		for i, pod := range all {
			name := pod.Namespace + "/" + pod.Name
			if i >= placed[kind] {
				out.Waiting = append(out.Waiting, name)
			}
			if i >= len(all)-unplaced[kind] {
				out.Unplaced = append(out.Unplaced, name)
			}
		}
	}
	return out
}

// NodesAbove returns how many nodes are above a load line, with their pods where they are.
func NodesAbove(ctx context.Context, conn grpc.ClientConnInterface, viewName string, c *Cluster,
	line *loadlinev1.LoadLine) (above int, err error) {
	r := newReplay(conn, viewName, c, Scheduler{})
	defer r.view.Drop(context.WithoutCancel(ctx))
	for _, pod := range c.Arrivals {
		if pod.Spec.NodeName != "" {
			r.view.SetPod(pod)
		}
	}
	err = r.view.Ask(ctx, func(at *loadlinev1.Changes) error {
		answer, err := r.extender.CheckLoadLine(ctx, &loadlinev1.CheckLoadLineRequest{Changes: at, Line: line})
		above = int(answer.GetNodesAbove())
		return err
	})
	return above, err
}

// kindsOf returns a group for each kind of node, those that differ in name only together. The engine prices them by
// their size where no label states a price, so that large nodes are not bought for few pods.
func kindsOf(nodes []*v1.Node) (groups []*loadlinev1.ScalableGroup) {
	known := map[string]bool{}
	sorted := slices.SortedFunc(slices.Values(nodes), func(a, b *v1.Node) int { return cmp.Compare(a.Name, b.Name) })
	for _, node := range sorted {
		if len(groups) == maxKinds || node.Spec.Unschedulable {
			continue
		}
		template := node.DeepCopy()
		template.UID = ""
		delete(template.Labels, v1.LabelHostname)
		template.Name = ""
		key := string(view.TrimNodeForFilters(template))
		if known[key] {
			continue
		}
		known[key] = true
		template.Name = node.Name
		groups = append(groups, &loadlinev1.ScalableGroup{NodeGroup: "like-" + node.Name,
			TemplateNode: view.TrimNodeForFilters(template), MaxNodes: 1 << 20})
	}
	return groups
}

// Package arrivals replays the arrival of pods without a cluster: each pod in turn is placed where a scheduler would
// put it. An engine says which nodes are feasible, and how Loadline scores them; the default scheduler's own scores are
// those of package defaultscores.
package arrivals

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/filterconfig"
	"loadline.dev/shim/report"
	"loadline.dev/shim/view"
)

// Cluster is what pods arrive in.
type Cluster struct {
	Nodes []*v1.Node
	// Fixed pods are on their nodes from the start; Arrivals come one after another, in this order.
	Fixed, Arrivals []*v1.Pod
	// Objects that filters look up, and the kinds of which these are all.
	Objects  []any
	Complete []loadlinev1.ObjectKind
	// Selecting are services and owners of pods, by which default spread constraints count pods.
	Selecting []any
	// StartupTaints of the cluster, beside the well-known ones.
	StartupTaints *loadlinev1.StartupTaints
}

// Split returns which pods of a cluster stay where they are, and which arrive: DaemonSets and static pods do not
// choose their node, and a pod that is being deleted is not placed again. Finished pods hold nothing and are left out.
// Arrivals are in order of creation, ties by namespace and name.
func Split(pods []*v1.Pod) (fixed, arrivals []*v1.Pod) {
	for _, pod := range pods {
		switch {
		case pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed:
		case pod.Spec.NodeName == "" && pod.DeletionTimestamp != nil:
		case pod.Spec.NodeName != "" && bindsItself(pod):
			fixed = append(fixed, pod)
		default:
			arrivals = append(arrivals, pod)
		}
	}
	slices.SortStableFunc(arrivals, func(a, b *v1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return fixed, arrivals
}

func bindsItself(pod *v1.Pod) bool {
	if _, mirror := pod.Annotations[v1.MirrorPodAnnotationKey]; mirror || pod.DeletionTimestamp != nil {
		return true
	}
	return slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Controller != nil && *o.Controller && (o.Kind == "DaemonSet" || o.Kind == "Node")
	})
}

// Scheduler is one way to choose among the feasible nodes: by the scores of the default scheduler, to which those of
// Loadline are added.
type Scheduler struct {
	Name string
	// Config is how the scheduler filters and scores; nil: kube-scheduler's defaults.
	Config *filterconfig.Scheduler
	// Weight of Loadline's score; 0: it is not asked.
	Weight int64
	Policy *loadlinev1.ScorePolicy
}

// Outcome is where the pods of a cluster went.
type Outcome struct {
	Placement report.Placement
	// Nodes by namespace/name of the pod, of the arrivals; empty: the pod is pending.
	Nodes map[string]string
	// NotJudged counts the pending pods for which no node was feasible, but some could not be judged.
	NotJudged int
}

// Run replays the arrivals into a view of its own.
func Run(ctx context.Context, conn grpc.ClientConnInterface, viewName string, c *Cluster,
	s Scheduler) (*Outcome, error) {
	r := newReplay(conn, viewName, c, s)
	defer r.view.Drop(context.WithoutCancel(ctx))
	if err := r.startNodes(ctx, c); err != nil {
		return nil, err
	}
	out := &Outcome{Nodes: make(map[string]string, len(c.Arrivals))}
	for _, pod := range c.Arrivals {
		name := pod.Namespace + "/" + pod.Name
		pod = arriving(pod)
		node, judged, err := r.choose(ctx, pod)
		if err != nil {
			return nil, fmt.Errorf("pod %s: %w", name, err)
		}
		out.Nodes[name] = node
		if node == "" {
			out.Placement.PendingPods++
			if !judged {
				out.NotJudged++
			}
			continue
		}
		r.place(pod, node)
	}
	states, err := r.describe(ctx, nil)
	if err != nil {
		return nil, err
	}
	out.Placement = report.FromNodeStates(s.Name, states, out.Placement.PendingPods)
	return out, nil
}

// arriving returns a pod as it was before it was bound: what its status says came later.
func arriving(pod *v1.Pod) *v1.Pod {
	out := *pod
	out.Spec.NodeName = ""
	out.Status = v1.PodStatus{}
	return &out
}

// replay is the state of one run.
type replay struct {
	scheduler Scheduler
	view      *view.View
	extender  loadlinev1.SchedulerExtenderClient
	state     loadlinev1.ClusterStateClient
	scorer    *Scorer
	selectors *filterconfig.Selectors // nil: nobody needs any
	nodes     map[string]*nodeSums
}

func newReplay(conn grpc.ClientConnInterface, viewName string, c *Cluster, s Scheduler) *replay {
	r := &replay{
		scheduler: s,
		view:      view.NewForFilters(conn, viewName),
		extender:  loadlinev1.NewSchedulerExtenderClient(conn),
		state:     loadlinev1.NewClusterStateClient(conn),
		nodes:     make(map[string]*nodeSums, len(c.Nodes)),
	}
	if r.scheduler.Config == nil {
		r.scheduler.Config, _ = filterconfig.Read(filterconfig.Request{}) // no file, no error
	}
	together := s.Policy.GetBlockersTogether() > 0
	if together {
		r.view = view.NewForPlanning(conn, viewName)
	}
	r.view.CountAs(r.scheduler.Config.Fit.GetKubernetesMinor())
	r.scorer = NewScorer(r.scheduler.Config)
	if filterconfig.NeedsSelectors(r.scheduler.Config.Fit) {
		r.selectors = &filterconfig.Selectors{}
	}
	for _, node := range c.Nodes {
		r.view.SetNode(node)
		r.nodes[node.Name] = r.scorer.newNodeSums(node)
	}
	for _, object := range c.Objects {
		_ = r.view.SetObject(object) // those that the view has no use for play no part
	}
	for _, object := range c.Selecting {
		r.selectors.Set(object)
		if _, ok := object.(*policyv1.PodDisruptionBudget); ok && together {
			_ = r.view.SetObject(object) // one that is too large for the engine protects nothing here
		}
	}
	r.view.Complete(c.Complete...)
	for _, pod := range c.Fixed {
		r.add(pod)
	}
	return r
}

// startNodes takes the taints of nodes that are starting away, as when the pods arrive they have started.
func (r *replay) startNodes(ctx context.Context, c *Cluster) error {
	states, err := r.describe(ctx, c.StartupTaints)
	if err != nil {
		return err
	}
	starting := map[string][]string{}
	for _, state := range states {
		if keys := state.GetStartupTaints(); len(keys) > 0 {
			starting[state.GetName()] = keys
		}
	}
	for _, node := range c.Nodes {
		if keys := starting[node.Name]; len(keys) > 0 {
			node = node.DeepCopy()
			node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints,
				func(taint v1.Taint) bool { return slices.Contains(keys, taint.Key) })
			r.view.SetNode(node)
		}
	}
	return nil
}

func (r *replay) add(pod *v1.Pod) {
	r.view.SetPod(pod)
	if sums, ok := r.nodes[pod.Spec.NodeName]; ok {
		sums.add(r.scorer.requestsOnNode(pod))
	}
}

func (r *replay) place(pod *v1.Pod, node string) {
	pod.Spec.NodeName = node
	r.add(pod)
}

// choose returns the node for a pod, or none; `judged` is false if none is known, but some node may do.
func (r *replay) choose(ctx context.Context, pod *v1.Pod) (node string, judged bool, err error) {
	judged = true
	if len(pod.Spec.SchedulingGates) > 0 {
		return "", judged, nil
	}
	err = r.view.Ask(ctx, func(at *loadlinev1.Changes) error {
		node, judged = "", true
		slots, open, err := r.feasible(ctx, at, pod)
		if err != nil || len(slots) == 0 {
			judged = !open
			return err
		}
		ours := make([]int32, len(slots))
		if r.scheduler.Weight > 0 && len(slots) > 1 {
			answer, err := r.extender.Score(ctx, &loadlinev1.ScoreRequest{
				Changes: at, Pod: view.ScoredPod(pod, r.scheduler.Policy), Slots: slots, Policy: r.scheduler.Policy})
			if err != nil {
				return err
			}
			ours = answer.GetScores()
		}
		node, err = r.best(pod, slots, ours)
		return err
	})
	return node, judged, err
}

// feasible returns the slots of the nodes that the filters let a pod onto; `open` says whether one of the others could
// not be judged.
func (r *replay) feasible(ctx context.Context, at *loadlinev1.Changes,
	pod *v1.Pod) (slots []int32, open bool, err error) {
	response, err := r.extender.Fit(ctx, &loadlinev1.FitRequest{
		Changes: at, Options: r.scheduler.Config.Fit, Pods: []*loadlinev1.IncomingPod{
			{Pod: view.TrimIncomingPodForFilters(pod), DefaultSpreadSelector: r.selectors.Of(pod)}}})
	if err != nil {
		return nil, false, err
	}
	for _, group := range response.GetPods()[0].GetGroups() {
		switch group.GetVerdict() {
		case loadlinev1.VerdictGroup_FITS:
			slots = append(slots, group.GetSlots()...)
		case loadlinev1.VerdictGroup_CANNOT_JUDGE:
			open = true
		}
	}
	return slots, open, nil
}

// best returns the node of the highest total, ties by name: kube-scheduler leaves them to chance.
func (r *replay) best(pod *v1.Pod, slots []int32, ours []int32) (string, error) {
	incoming, scoring := r.scorer.requestsOf(pod), r.scheduler.Config.Scoring(pod)
	best, highest := "", int64(-1)
	for i, slot := range slots {
		name, ok := r.view.Node(slot)
		if !ok {
			return "", fmt.Errorf("the engine answers about slot %d, which holds no node", slot)
		}
		total := r.scorer.score(r.nodes[name], incoming, scoring) + r.scheduler.Weight*int64(ours[i])
		if total > highest || total == highest && name < best {
			best, highest = name, total
		}
	}
	return best, nil
}

func (r *replay) describe(ctx context.Context,
	startup *loadlinev1.StartupTaints) (states []*loadlinev1.NodeState, err error) {
	err = r.view.Ask(ctx, func(at *loadlinev1.Changes) (err error) {
		states, err = view.Describe(ctx, r.state,
			&loadlinev1.DescribeRequest{View: at.GetView(), StartupTaints: startup})
		return err
	})
	return states, err
}

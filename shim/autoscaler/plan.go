package autoscaler

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/actuation"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/provider"
	"loadline.dev/shim/view"
)

// compactFrom is from how many nodes on a whole plan may not fit into one answer.
const compactFrom = 4000

// answerTime is what telling the engine what has changed, and its answer, may take beside planning.
const answerTime = 30 * time.Second

// planner asks the engine which nodes may go.
type planner struct {
	client  loadlinev1.AutoscalerClient
	cluster *cluster
	options *loadlinev1.DrainOptions
	longest time.Duration
	// compactFrom is how many nodes a cluster has whose plan is asked for without what is known here anyway.
	compactFrom int
	// progress is what the engine has not been told yet.
	progress loadlinev1.DrainProgress
}

func newPlanner(client loadlinev1.AutoscalerClient, c *cluster, s *config.ScaleDown) *planner {
	return &planner{client: client, cluster: c, options: optionsOf(s), longest: s.ScaleDownSimulationTimeout.Duration, compactFrom: compactFrom}
}

// optionsOf returns the options of a configuration as the engine has them. It has been checked.
func optionsOf(s *config.ScaleDown) *loadlinev1.DrainOptions {
	seconds := func(d config.Duration) *int32 { return new(int32(d.Duration / time.Second)) }
	number := func(n int) *int32 { return new(int32(n)) }
	cores, bytes, _ := s.Minimum()
	return &loadlinev1.DrainOptions{
		SkipNodesWithSystemPods: &s.SkipNodesWithSystemPods, SkipNodesWithLocalStorage: &s.SkipNodesWithLocalStorage,
		SkipNodesWithCustomControllerPods: &s.SkipNodesWithCustomControllerPods, MinReplicaCount: number(s.MinReplicaCount),
		BlockingSystemPodDisruptionTimeoutS: seconds(s.BlockingSystemPodTimeout),
		ScaleDownUtilizationThreshold:       &s.ScaleDownUtilizationThreshold, ScaleDownGpuUtilizationThreshold: &s.ScaleDownGPUThreshold,
		IgnoreDaemonsetsUtilization: &s.IgnoreDaemonSets, IgnoreMirrorPodsUtilization: &s.IgnoreMirrorPods,
		ScaleDownUnreadyEnabled: &s.ScaleDownUnreadyEnabled,
		ScaleDownUnneededTimeS:  seconds(s.ScaleDownUnneededTime), ScaleDownUnreadyTimeS: seconds(s.ScaleDownUnreadyTime),
		NodeDeletionCandidateTtlS: seconds(s.NodeDeletionCandidateTTL),
		MaxScaleDownParallelism:   number(s.MaxScaleDownParallelism), MaxDrainParallelism: number(s.MaxDrainParallelism),
		MinCoresTotal: cores, MinMemoryTotal: bytes,
		OkTotalUnreadyCount: number(s.OKTotalUnreadyCount), MaxTotalUnreadyPercentage: number(s.MaxTotalUnreadyPercentage),
		MostVanishedPercent: number(s.MostVanishedPercent),
	}
}

// drainPlan is an answer with what it was made from.
type drainPlan struct {
	*loadlinev1.PlanDrainResponse
	groups map[string]*provider.Group
	// nameOf are the names of the nodes by their slots.
	nameOf map[int32]string
}

// plan asks for a plan. `underWay` are the nodes that go already.
func (p *planner) plan(ctx context.Context, groups []provider.Group, groupOf map[string]string, underWay []string, now time.Time) (*drainPlan, error) {
	plan := &drainPlan{groups: map[string]*provider.Group{}, nameOf: map[int32]string{}}
	for i := range groups {
		plan.groups[groups[i].ID] = &groups[i]
	}
	p.progress.Started = underWay
	ctx, cancel := context.WithTimeout(ctx, p.longest+answerTime)
	defer cancel()
	err := p.cluster.view.Ask(ctx, func(at *loadlinev1.Changes) (err error) {
		slots := map[string][]int32{}
		for _, node := range p.cluster.sortedNodes() {
			if slot, ok := p.cluster.view.Slot(node.Name); ok {
				plan.nameOf[slot] = node.Name
				slots[groupOf[node.Name]] = append(slots[groupOf[node.Name]], slot)
			}
		}
		request := &loadlinev1.PlanDrainRequest{
			Cluster: &loadlinev1.PlanDrainRequest_Changes{Changes: at}, NowS: now.Unix(), Options: p.options, Progress: &p.progress,
			MaxMilliseconds: int32(p.longest / time.Millisecond), Compact: len(p.cluster.nodes) >= p.compactFrom,
		}
		for i := range groups {
			request.Groups = append(request.Groups, groupMessage(&groups[i], slots[groups[i].ID]))
		}
		plan.PlanDrainResponse, err = p.client.PlanDrain(ctx, request)
		return err
	})
	if err != nil {
		return nil, err
	}
	p.progress.Reset()
	return plan, nil
}

// ended takes note of a removal that has ended without the node's going.
func (p *planner) ended(node string) {
	p.progress.Failed = append(p.progress.Failed, node)
}

// evicted takes note of an eviction.
func (p *planner) evicted(e actuation.Eviction) {
	p.progress.Evicted = append(p.progress.Evicted, &loadlinev1.EvictedPod{Pod: view.TrimIncomingPodForPlanning(e.Pod), Node: e.Pod.Spec.NodeName, AtS: e.At.Unix()})
}

func groupMessage(g *provider.Group, slots []int32) *loadlinev1.DrainGroup {
	message := &loadlinev1.DrainGroup{NodeGroup: g.ID, MinNodes: int32(g.Min), MaxNodes: new(int32(g.Max)), Target: new(int32(g.Target)), Slots: slots}
	o := g.Options
	if o == nil {
		return message
	}
	message.Atomic = o.GetZeroOrMaxNodeScaling()
	message.ScaleDownUtilizationThreshold = &o.ScaleDownUtilizationThreshold
	message.ScaleDownGpuUtilizationThreshold = &o.ScaleDownGpuUtilizationThreshold
	message.IgnoreDaemonsetsUtilization = &o.IgnoreDaemonSetsUtilization
	if d := o.GetScaleDownUnneededDuration(); d != nil {
		message.ScaleDownUnneededTimeS = new(int64(d.AsDuration() / time.Second))
	}
	if d := o.GetScaleDownUnreadyDuration(); d != nil {
		message.ScaleDownUnreadyTimeS = new(int64(d.AsDuration() / time.Second))
	}
	return message
}

// machine is what the cloud says of the machine of a node.
type machine struct {
	group string
	state externalgrpc.InstanceState
}

// machinesOf returns the machines of all groups by their provider ids.
func machinesOf(groups []provider.Group) map[string]machine {
	machines := map[string]machine{}
	for i := range groups {
		for _, instance := range groups[i].Instances {
			if instance.ProviderID != "" {
				machines[instance.ProviderID] = machine{groups[i].ID, instance.State}
			}
		}
	}
	return machines
}

// removals returns the nodes of a plan that go now. What the plan says is held against the objects that it was made
// from: an answer that does not match them is an error.
func (c *cluster) removals(plan *drainPlan) (actuation.Plan, error) {
	out := actuation.Plan{Atomic: map[string]bool{}}
	for _, removal := range plan.GetRemove() {
		if !removal.GetStart() {
			continue
		}
		r, err := c.removal(plan, removal)
		if err != nil {
			return actuation.Plan{}, err
		}
		out.Removals = append(out.Removals, r)
		if plan.groups[r.Group].Options.GetZeroOrMaxNodeScaling() {
			out.Atomic[r.Group] = true
		}
	}
	return out, nil
}

func (c *cluster) removal(plan *drainPlan, removal *loadlinev1.NodeRemoval) (actuation.Removal, error) {
	name := plan.nameOf[removal.GetSlot()]
	node := c.nodes[name]
	if node == nil || removal.GetNode() != "" && removal.GetNode() != name {
		return actuation.Removal{}, fmt.Errorf("the plan removes node %q of slot %d, which is %q", removal.GetNode(), removal.GetSlot(), name)
	}
	if uid := removal.GetUid(); uid != "" && uid != string(node.UID) {
		return actuation.Removal{}, fmt.Errorf("the plan removes node %s of UID %s, which is %s", name, uid, node.UID)
	}
	group := removal.GetNodeGroup()
	if plan.groups[group] == nil {
		return actuation.Removal{}, fmt.Errorf("the plan removes node %s of node group %q, which there is not", name, group)
	}
	r := actuation.Removal{Node: node, Group: group, Empty: removal.GetEmpty(), Since: time.Unix(removal.GetSinceS(), 0),
		Reason: reasonOf(node, removal.GetEmpty()), Pods: c.podsOf(name), Moves: map[types.UID]bool{}}
	for _, move := range removal.GetMoves() {
		if move.GetPlaceholder() {
			continue
		}
		i := int(move.GetPod())
		if i < 0 || i >= len(r.Pods) || move.GetName() != "" && (move.GetName() != r.Pods[i].Name || move.GetNamespace() != r.Pods[i].Namespace) {
			return actuation.Removal{}, fmt.Errorf("the plan moves pod %d, %s/%s, of node %s, which has %d pods", i, move.GetNamespace(), move.GetName(), name, len(r.Pods))
		}
		r.Moves[r.Pods[i].UID] = true
	}
	if r.Empty && len(r.Moves) > 0 {
		return actuation.Removal{}, fmt.Errorf("the plan moves %d pods of node %s, which it calls empty", len(r.Moves), name)
	}
	return r, nil
}

func reasonOf(node *v1.Node, empty bool) string {
	ready := slices.ContainsFunc(node.Status.Conditions, func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
	})
	switch {
	case !ready:
		return actuation.ReasonUnready
	case empty:
		return actuation.ReasonEmpty
	}
	return actuation.ReasonUnderutilized
}

// Package plan asks the engine what is to be done. It keeps what a loop has seen and what the engine has answered.
package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/act/drain"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/quotas"
	"loadline.dev/shim/autoscaler/watch"
	"loadline.dev/shim/internal/share"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/ranking"
	"loadline.dev/shim/scaleup"
	"loadline.dev/shim/view"
)

// Planner asks the engine what is to be done.
type Planner struct {
	Rules
	Client  loadlinev1.AutoscalerClient
	Cluster *watch.Cluster
	Config  *config.Configuration
	// progress is the part that the engine does not know yet.
	progress loadlinev1.DrainProgress
	// priorities are those of node groups, where they are ranked.
	priorities ranking.Priorities
	// turns say whose pods come first while a question does not hold all of them.
	turns share.Turns
	Fleet fleet
	// Patience is how long an answer may take; 0: as long as it does.
	Patience time.Duration
	// Sized are groups that grow and shrink by how full they are, and by nothing else.
	Sized []nodegroup.NodeGroup
	// Quotas bound growth beside the configuration; nil: they are not followed.
	Quotas *quotas.Quotas
	store  *stateStore
}

// NewPlanner returns a planner for a configuration that has been checked, with the files that it names.
func NewPlanner(client loadlinev1.AutoscalerClient, c *watch.Cluster, options *config.Configuration,
	files *config.Loaded, objects kubernetes.Interface) *Planner {
	rules := RulesOf(options, files)
	rules.Settings.Compact = true
	return &Planner{Rules: rules, Client: client, Cluster: c, Config: options, priorities: files.Priorities,
		Patience: options.ScaleDown.ScaleDownSimulationTimeout.Duration + AnswerTime,
		store:    newStateStore(objects, options)}
}

// Plan is an answer with what it was made from. What it says of nodes that go is at hand directly.
type Plan struct {
	*loadlinev1.PlanDrainResponse
	Question *loadlinev1.PlanLoopRequest
	Answer   *loadlinev1.PlanLoopResponse
	// NameOf are the names of the nodes by their slots.
	NameOf map[int32]string
	// entries are the positions, among all pods without a node, of those in the question.
	entries []int
}

// request is the part of a question that is the same at whatever state of the view it is answered.
func (p *Planner) request(o *Loop) *loadlinev1.PlanLoopRequest {
	p.progress.Started = slices.Sorted(maps.Keys(o.UnderWay))
	request := &loadlinev1.PlanLoopRequest{}
	p.Settings.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		request.ProtoReflect().Set(field, value) // messages are shared: price lists are large
		return true
	})
	request.NowS, request.SeenS = o.Now.Unix(), o.Now.Add(-p.Cluster.Age).Unix()
	p.Quotas.Bound(request)
	request.Drain, request.Consolidation = p.Drain(o.Now, o.Groups), p.Consolidation(o.Now)
	request.Fleet = p.Fleet.question(p.Settings.Fleet, o.Now)
	request.Progress, request.DaemonPods = &p.progress, o.Pods.DaemonPods()
	request.Groups = o.groupMessages()
	for i, group := range request.Groups {
		group.Priority = cmp.Or(p.priorities.Of(group.GetGrowth().GetNodeGroup()), o.Groups[i].Priority)
	}
	o.warnOfMarks(p.Cluster)
	for _, text := range p.Cluster.SharedMachines() {
		o.warn("%s", text)
	}
	request.Sized = p.sizings(o)
	request.SizePods = p.sizePods(o, request.Sized)
	request.Fleet.Marks = markMessages(p.Cluster, anySlot, o.Acknowledged)
	request.Fleet.UnderWay = underWayMessages(o.UnderWay, anySlot)
	o.shareRoom(request)
	o.unsize(request)
	return request
}

// see fills in the slots that nodes have now.
func (p *Planner) see(o *Loop, plan *Plan, request *loadlinev1.PlanLoopRequest) {
	slots := map[string]int32{}
	for name, node := range p.Cluster.Nodes {
		if slot, ok := p.Cluster.View.Slot(name); ok {
			slots[name], plan.NameOf[slot] = slot, node.Name
		}
	}
	at := func(node string) *int32 {
		if slot, ok := slots[node]; ok {
			return &slot
		}
		return nil
	}
	place(request.Groups, o.Groups, p.Cluster.NodesByID(), at)
	request.Fleet.Marks = markMessages(p.Cluster, at, o.Acknowledged)
	request.Fleet.UnderWay = underWayMessages(o.UnderWay, at)
}

// Plan asks for the plan of a loop, and takes note of what the engine has found out.
func (p *Planner) Plan(ctx context.Context, o *Loop) error {
	plan, err := p.ask(ctx, o)
	if err != nil {
		return err
	}
	answer := plan.Answer.GetFleet()
	if len(answer.GetGroups()) != len(o.Groups) {
		return fmt.Errorf("the plan tells of %d groups, there are %d", len(answer.GetGroups()), len(o.Groups))
	}
	if plan.Answer.GetReport() == nil {
		return errors.New("the plan does not say what it comes to: the engine is of an older version than this process")
	}
	o.Plan = plan
	for i, g := range o.Groups {
		g.Found = answer.Groups[i]
	}
	o.noteSizes()
	p.Fleet.take(answer)
	all := o.Report().GetStatus().GetClusterWide()
	o.Outcome, o.GrowthOutcome = all.GetScaleDown().GetResult(), all.GetScaleUp().GetResult()
	return nil
}

func (p *Planner) ask(ctx context.Context, o *Loop) (*Plan, error) {
	if p.Patience > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, p.Patience)
		defer cancel()
	}
	plan, err := p.Put(ctx, o, func(plan *Plan) (err error) {
		plan.Answer, err = p.Client.PlanLoop(ctx, plan.Question)
		return err
	})
	if err != nil {
		return nil, err
	}
	p.noteWaiting(o, plan)
	plan.PlanDrainResponse = plan.Answer.GetScaleDown()
	plan.name(func(node string) string {
		if n := p.Cluster.Nodes[node]; n != nil {
			return o.groupOf[cloud.MachineID(n)]
		}
		return ""
	})
	p.progress.Reset()
	return plan, nil
}

// Put has the question of a loop put, at one state of the cluster: as it is, or a part of it.
func (p *Planner) Put(ctx context.Context, o *Loop, put func(*Plan) error) (*Plan, error) {
	request := p.request(o)
	plan := &Plan{NameOf: map[int32]string{}, Question: request}
	pending := o.Pods.Pending()
	request.LeftOutPods = int32(o.Pods.LeftOutPods())
	for i, entry := range pending {
		p.Cluster.Tell(o.Pods.Entry(i), o.Now, entry)
	}
	var after share.Turns
	err := p.Cluster.View.Ask(ctx, func(at *loadlinev1.Changes) error {
		request.Cluster = &loadlinev1.PlanLoopRequest_Changes{Changes: at}
		clear(plan.NameOf)
		p.see(o, plan, request)
		for i, entry := range pending {
			scaleup.TellNominated(o.Pods.Entry(i), p.Cluster.View.Slot, entry)
		}
		request.Pods = nil
		room, err := roomForPods(request)
		if err != nil {
			return err
		}
		plan.entries, after = p.turns.Take(itemsOfQuestion(o.Pods, pending), room, watch.ShareCost)
		for _, entry := range plan.entries {
			request.Pods = append(request.Pods, pending[entry])
		}
		request.DeferredPods = int32(podsIn(pending) - podsIn(request.Pods))
		return put(plan)
	})
	if err != nil {
		return nil, err
	}
	p.turns = after
	if request.DeferredPods > 0 {
		klog.InfoS("Pods wait for the next loops: the question holds no more kinds of them",
			"kinds", len(pending)-len(request.Pods), "pods", request.DeferredPods)
	}
	return plan, nil
}

// noteWaiting takes note of the pods that wait for a node.
func (p *Planner) noteWaiting(o *Loop, plan *Plan) {
	others := map[int]bool{}
	for _, entry := range plan.Answer.GetNotWaiting() {
		if at := int(entry.GetPod()); at >= 0 && at < len(plan.entries) {
			others[plan.entries[at]] = true
		}
	}
	p.Cluster.Follow(func(yield func(*v1.Pod) bool) {
		for i := 0; o.Pods.Entry(i) != nil; i++ {
			if !others[i] {
				for _, pod := range o.Pods.Entry(i) {
					yield(pod)
				}
			}
		}
	}, o.Now)
}

// name gives nodes that can go the names and groups that the answer leaves out.
func (p *Plan) name(groupOf func(node string) string) {
	for _, removal := range p.GetRemove() {
		if removal.Node == "" {
			removal.Node = p.NameOf[removal.GetSlot()]
			removal.NodeGroup = groupOf(removal.Node)
		}
	}
}

// Staying returns how many nodes stay.
func (p *Plan) Staying() (nodes int) {
	for _, reason := range p.GetStay() {
		nodes += len(reason.GetSlots())
	}
	return nodes
}

// NotEvaluated returns the nodes that the planner has not come to look at.
func (p *Plan) NotEvaluated() (names []string) {
	for _, stay := range p.GetStay() {
		if stay.GetFirst().GetReason() != "NotEvaluated" {
			continue
		}
		for _, slot := range stay.GetSlots() {
			names = append(names, p.NameOf[slot])
		}
	}
	return names
}

// itemsOfQuestion returns what entries want of a question: their bytes.
func itemsOfQuestion(pods *scaleup.Pods, entries []*loadlinev1.PendingPods) []share.Item {
	items := make([]share.Item, len(entries))
	for i, entry := range entries {
		pod := pods.Entry(i)[0]
		items[i] = share.Item{Priority: corev1helpers.PodPriority(pod), Namespace: pod.Namespace,
			Cost: proto.Size(entry) + 8} // tag and length
	}
	return items
}

func podsIn(entries []*loadlinev1.PendingPods) (pods int) {
	for _, entry := range entries {
		pods += int(entry.GetCount())
	}
	return pods
}

// Ended takes note of a removal that has ended without the node's going. While no plan is made the same node may fail
// many times.
func (p *Planner) Ended(node string) {
	if !slices.Contains(p.progress.Failed, node) {
		p.progress.Failed = append(p.progress.Failed, node)
	}
}

// Evicted takes note of an eviction. While no plan is made, evictions that no plan would count any more are forgotten,
// and of too many the oldest.
func (p *Planner) Evicted(e drain.Eviction) {
	trim := view.TrimIncomingPodForPlanning
	if p.Settings.GetFit().GetLoadLine().GetExpectedUse() != nil {
		trim = func(pod *v1.Pod) []byte { return view.WithWorkload(view.TrimIncomingPodForPlanning(pod), e.Pod) }
	}
	pod := trim(e.Pod)
	if len(pod) > mostEvictedBytes {
		pod = trim(view.SlimPod(e.Pod))
	}
	all := append(p.progress.Evicted, &loadlinev1.EvictedPod{Pod: pod, Node: e.Pod.Spec.NodeName, AtS: e.At.Unix()})
	first, bytes := len(all), 0
	oldest := e.At.Unix() - int64(p.Settings.GetDrain().GetRecentEvictionS())
	for first > 0 && all[first-1].GetAtS() >= oldest && bytes+len(all[first-1].GetPod()) <= mostEvictionBytes {
		first--
		bytes += len(all[first].GetPod())
	}
	p.progress.Evicted = slices.Delete(all, 0, first)
}

const (
	// mostEvictedBytes is the size above which a plan gets only the requests of an evicted pod: many pods may be
	// evicted between two plans.
	mostEvictedBytes = 16 << 10
	// mostEvictionBytes bounds all evicted pods of one question.
	mostEvictionBytes = 1 << 20
)

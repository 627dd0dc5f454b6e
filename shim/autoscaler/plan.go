package autoscaler

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/act/drain"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/watch"
	"loadline.dev/shim/ranking"
	"loadline.dev/shim/scaleup"
	"loadline.dev/shim/view"
)

// answerTime is what telling the engine what has changed, and its answer, may take beside planning.
const answerTime = 30 * time.Second

// planner asks the engine what is to be done.
type planner struct {
	client  loadlinev1.AutoscalerClient
	cluster *watch.Cluster
	// settings is the part of each question that stays the same.
	settings *loadlinev1.PlanLoopRequest
	// windows are those in which moves begin; none: at any time.
	windows []config.Window
	// budgets bound how many nodes of single groups go at once.
	budgets []config.NodeBudget
	longest time.Duration
	// progress is what the engine has not been told yet.
	progress loadlinev1.DrainProgress
	// priorities are those of node groups, where they are ranked.
	priorities ranking.Priorities
	// turns say whose pods come first while a question does not hold all of them.
	turns watch.Turns
}

// decisions of a configuration, as the engine has them.
var decisions = map[string]loadlinev1.PlanLoopRequest_Decision{
	config.ScaleUpDecision:   loadlinev1.PlanLoopRequest_SCALE_UP,
	config.SlackDecision:     loadlinev1.PlanLoopRequest_SLACK,
	config.ScaleDownDecision: loadlinev1.PlanLoopRequest_SCALE_DOWN,
	config.ReplaceDecision:   loadlinev1.PlanLoopRequest_REPLACE}

// newPlanner returns a planner for a configuration that has been checked, with the files that it names.
func newPlanner(client loadlinev1.AutoscalerClient, c *watch.Cluster, options *config.Configuration,
	files *config.Loaded) *planner {
	longest := options.ScaleDown.ScaleDownSimulationTimeout.Duration
	settings := &loadlinev1.PlanLoopRequest{Drain: optionsOf(&options.ScaleDown), Prices: files.Prices,
		Ranking: files.Ranking, Fit: files.Fit, UsdPerFurtherType: options.ScaleUp.USDPerFurtherType,
		MaxWork: int64(options.MaxWork), MaxMilliseconds: int32(longest / time.Millisecond)}
	totals, _ := options.ScaleDown.Totals()
	settings.MaxCoresTotal, settings.MaxMemoryTotal = &totals.MaxCores, &totals.MaxBytes
	settings.EnforceMinSizes, settings.Balance = options.ScaleUp.EnforceNodeGroupMinSize, balanceOf(&options.ScaleUp)
	gpus, _ := options.ScaleDown.GPUTotals()
	for _, total := range gpus {
		settings.MaxGpusTotal = append(settings.MaxGpusTotal, &loadlinev1.GpuCount{GpuType: total.Type, Gpus: total.Max})
	}
	settings.MaxNewNodes = int32(min(options.ScaleUp.MaxNodesPerScaleUp, math.MaxInt32))
	settings.MaxNodesTotal = int32(min(options.ScaleUp.MaxNodesTotal, math.MaxInt32))
	settings.BatchIdleMilliseconds = int32(options.ScaleUp.BatchIdle.Milliseconds())
	settings.BatchMaxMilliseconds = int32(options.ScaleUp.BatchMax.Milliseconds())
	settings.Fleet = fleetSettings(options)
	policy := options.Slack.Policy()
	settings.Slack, _ = policy.Proto()
	settings.Slack.RemovalDelaySeconds = new(int32(options.Slack.RemovalDelay.Duration / time.Second))
	settings.Consolidation = consolidationOf(&options.Consolidation)
	for _, decision := range options.Decisions {
		settings.Decisions = append(settings.Decisions, decisions[decision])
	}
	windows, _ := options.Consolidation.Windows()
	budgets, _ := options.ScaleDown.Budgets()
	return &planner{client: client, cluster: c, settings: settings, windows: windows, budgets: budgets,
		priorities: files.Priorities, longest: longest}
}

// loopPlan is an answer with what it was made from. What it says of nodes that go is at hand directly.
type loopPlan struct {
	*loadlinev1.PlanDrainResponse
	loop   *loadlinev1.PlanLoopResponse
	groups map[string]*cloud.Group
	// nameOf are the names of the nodes by their slots.
	nameOf map[int32]string
	// entries are the positions, among all pods that wait, of those that the question held; deferred is how many pods
	// it did not hold.
	entries  []int
	deferred int
}

// The parts of a plan. Each is a label of a metric.
const (
	partScaleUp = "scaleUp"
	partSlack   = "slack"
	partDrain   = "drain"
)

// cutShort is a part of a plan that was cut short.
type cutShort struct {
	part    string // one of those above
	missing string
	by      string // what was used up: work, time or memory
}

func (c cutShort) String() string {
	return fmt.Sprintf("the plan is cut short by %s: %s", c.by, c.missing)
}

// cutShort returns the parts of a plan that were cut short: the next loop goes on from there.
func (p *loopPlan) cutShort() []cutShort {
	return slices.DeleteFunc([]cutShort{
		{partScaleUp, "more might grow, or at less cost", p.loop.GetScaleUp().GetCutShortBy()},
		{partSlack, "some slack may have no node, and no node is asked for it", p.loop.GetSlack().GetCutShort()},
		{partDrain, "not all nodes were looked at to see whether they can go", p.PlanDrainResponse.GetCutShortBy()},
	}, func(c cutShort) bool { return c.by == "" })
}

// question is what a loop asks.
type question struct {
	groups []*groupState
	fleet  *loadlinev1.LoopFleet
	sized  []*loadlinev1.SizedGroup
	pods   *scaleup.Pods
	// sizePods are all pods without a node, and those that start: what groups that are sized count as demand.
	sizePods []*loadlinev1.WaitingPods
	// groupOf are the groups of machines, and underWay those nodes that go already.
	groupOf  map[string]string
	underWay map[string]drain.UnderWay
	// acknowledged says whether the cloud has said that it deletes a node.
	acknowledged func(*v1.Node) bool
	now          time.Time
}

// request is the part of a question that is the same at whatever state of the view it is answered.
func (p *planner) request(q *question) *loadlinev1.PlanLoopRequest {
	p.progress.Started = slices.Sorted(maps.Keys(q.underWay))
	s := p.settings
	return &loadlinev1.PlanLoopRequest{NowS: q.now.Unix(), SeenS: q.now.Add(-p.cluster.Age).Unix(),
		Decisions: s.Decisions, Prices: s.Prices, Slack: s.Slack, Ranking: s.Ranking, Fit: s.Fit, Drain: p.drain(q.now),
		UsdPerFurtherType: s.UsdPerFurtherType, MaxWork: s.MaxWork, MaxMilliseconds: s.MaxMilliseconds,
		MaxNewNodes: s.MaxNewNodes, MaxNodesTotal: s.MaxNodesTotal, MaxCoresTotal: s.MaxCoresTotal,
		MaxMemoryTotal: s.MaxMemoryTotal, MaxGpusTotal: s.MaxGpusTotal, EnforceMinSizes: s.EnforceMinSizes,
		Balance: s.Balance, BatchIdleMilliseconds: s.BatchIdleMilliseconds,
		BatchMaxMilliseconds: s.BatchMaxMilliseconds, Progress: &p.progress, DaemonPods: q.pods.DaemonPods(),
		Consolidation: p.consolidation(q.now), Fleet: q.fleet, Sized: q.sized, SizePods: q.sizePods, Compact: true}
}

// see fills in what the cloud and the cluster show, with the slots that nodes have now.
func (p *planner) see(q *question, plan *loopPlan, request *loadlinev1.PlanLoopRequest) (err error) {
	slots := map[string]int32{}
	for name, node := range p.cluster.Nodes {
		if slot, ok := p.cluster.View.Slot(name); ok {
			slots[name], plan.nameOf[slot] = slot, node.Name
		}
	}
	at := func(node string) *int32 {
		if slot, ok := slots[node]; ok {
			return &slot
		}
		return nil
	}
	request.Groups, err = groupMessages(q.groups, p.cluster.NodesByID(), at)
	for _, group := range request.Groups {
		group.Priority = p.priorities.Of(group.GetGrowth().GetNodeGroup())
	}
	request.Fleet.Marks = markMessages(p.cluster, at, q.acknowledged)
	request.Fleet.UnderWay = underWayMessages(q.underWay, at)
	return err
}

// plan asks for a plan.
func (p *planner) plan(ctx context.Context, q *question) (*loopPlan, error) {
	plan := &loopPlan{groups: map[string]*cloud.Group{}, nameOf: map[int32]string{}}
	for _, g := range q.groups {
		plan.groups[g.ID] = g.Group
	}
	request := p.request(q)
	pending := q.pods.Pending()
	for i, entry := range pending {
		p.cluster.TellAges(q.pods.Entry(i), q.now, entry)
	}
	var after watch.Turns
	ctx, cancel := context.WithTimeout(ctx, p.longest+answerTime)
	defer cancel()
	err := p.cluster.View.Ask(ctx, func(at *loadlinev1.Changes) error {
		request.Cluster = &loadlinev1.PlanLoopRequest_Changes{Changes: at}
		clear(plan.nameOf)
		if err := p.see(q, plan, request); err != nil {
			return err
		}
		for i, entry := range pending {
			p.cluster.TellNominated(q.pods.Entry(i), entry)
		}
		request.Pods = nil
		plan.entries, after = p.turns.Take(itemsOfQuestion(q.pods, pending), mostBytes-proto.Size(request), watch.ShareCost)
		for _, entry := range plan.entries {
			request.Pods = append(request.Pods, pending[entry])
		}
		var err error
		plan.loop, err = p.client.PlanLoop(ctx, request)
		return err
	})
	if err != nil {
		return nil, err
	}
	p.turns = after
	if left := len(pending) - len(request.Pods); left > 0 {
		plan.deferred = podsIn(pending) - podsIn(request.Pods)
		klog.InfoS("Pods wait for the next loops: the question holds no more kinds of them",
			"kinds", left, "pods", plan.deferred)
	}
	plan.PlanDrainResponse = plan.loop.GetScaleDown()
	plan.name(func(node string) string {
		if n := p.cluster.Nodes[node]; n != nil {
			return q.groupOf[n.Spec.ProviderID]
		}
		return ""
	})
	p.progress.Reset()
	return plan, nil
}

// name gives nodes that can go the names and groups that the answer leaves out.
func (p *loopPlan) name(groupOf func(node string) string) {
	for _, removal := range p.GetRemove() {
		if removal.Node == "" {
			removal.Node = p.nameOf[removal.GetSlot()]
			removal.NodeGroup = groupOf(removal.Node)
		}
	}
}

// staying returns how many nodes stay.
func (p *loopPlan) staying() (nodes int) {
	for _, reason := range p.GetStay() {
		nodes += len(reason.GetSlots())
	}
	return nodes
}

// mostBytes is how large a question may be: the engine takes messages of 4 MiB, and some room is left for its frame.
const mostBytes = 4<<20 - 64<<10

// itemsOfQuestion returns what entries want of a question: their bytes.
func itemsOfQuestion(pods *scaleup.Pods, entries []*loadlinev1.PendingPods) []watch.Item {
	items := make([]watch.Item, len(entries))
	for i, entry := range entries {
		pod := pods.Entry(i)[0]
		items[i] = watch.Item{Priority: corev1helpers.PodPriority(pod), Namespace: pod.Namespace,
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

// ended takes note of a removal that has ended without the node's going. While no plan is made the same node may fail
// many times.
func (p *planner) ended(node string) {
	if !slices.Contains(p.progress.Failed, node) {
		p.progress.Failed = append(p.progress.Failed, node)
	}
}

// evicted takes note of an eviction. While no plan is made, evictions that no plan would count any more are forgotten,
// and of too many the oldest.
func (p *planner) evicted(e drain.Eviction) {
	pod := view.TrimIncomingPodForPlanning(e.Pod)
	if len(pod) > mostEvictedBytes {
		pod = view.TrimIncomingPodForPlanning(view.SlimPod(e.Pod))
	}
	all := append(p.progress.Evicted, &loadlinev1.EvictedPod{Pod: pod, Node: e.Pod.Spec.NodeName, AtS: e.At.Unix()})
	first, bytes := len(all), 0
	oldest := e.At.Unix() - int64(p.settings.GetDrain().GetRecentEvictionS())
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

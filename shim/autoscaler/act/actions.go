package act

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/client-go/util/workqueue"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/act/drain"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/autoscaler/tell"
)

const (
	// askTime bounds what the requests of one loop take, and once more those that wait for all growth. How long one
	// call takes is bounded by the cloud's client. askAtOnce is how many groups are asked for at once.
	askTime   = time.Minute
	askAtOnce = 8
)

// actions are what a plan has us do, by kind. Each kind has the order of the answer.
type actions struct {
	requests []*request
	swaps    []*request      // once the cloud has agreed to all growth
	giveBack []int32         // slots of nodes whose removal has ended without a deletion
	remove   map[int32]int32 // waves of nodes whose removal begins, by slot

	softTaints []drain.SoftTaintChange
}

// request has the cloud change one group.
type request struct {
	id     int64 // of the action
	group  string
	growth string // how far the group grows, as events of pods say; empty: it does not
	send   func(context.Context) error
	tell   func(error) // tells how it ended
	sent   bool
	err    error
}

func (r *request) grows() bool { return r.growth != "" }

// actionsOf sorts the actions of a plan by kind.
func (a *Actor) actionsOf(o *plan.Loop) *actions {
	out := &actions{remove: map[int32]int32{}}
	softTaint := func(slot int32, since *int64) { // `since`: see drain.SoftTaintChange
		if node := a.cluster.Nodes[o.Plan.NameOf[slot]]; node != nil {
			out.softTaints = append(out.softTaints, drain.SoftTaintChange{Node: node, Since: since})
		}
	}
	for _, action := range o.Fleet().GetActions() {
		var r *request
		to := &out.requests
		switch kind := action.GetAction().(type) {
		case *loadlinev1.LoopAction_DeleteMachines:
			r = a.deletion(o, kind.DeleteMachines)
		case *loadlinev1.LoopAction_TakeBack:
			if r = a.decrease(kind.TakeBack, action.GetAfterGrowth()); action.GetAfterGrowth() {
				to = &out.swaps
			}
		case *loadlinev1.LoopAction_Grow:
			r = a.increase(o, kind.Grow)
		case *loadlinev1.LoopAction_GiveBackSlot:
			out.giveBack = append(out.giveBack, kind.GiveBackSlot)
		case *loadlinev1.LoopAction_RemoveSlot:
			out.remove[kind.RemoveSlot] = action.GetWave()
		case *loadlinev1.LoopAction_SoftTaint:
			softTaint(kind.SoftTaint.GetSlot(), &kind.SoftTaint.SinceS)
		case *loadlinev1.LoopAction_TakeSoftTaintSlot:
			softTaint(kind.TakeSoftTaintSlot, nil)
		}
		if r != nil {
			r.id = action.GetId()
			*to = append(*to, r)
		}
	}
	return out
}

// askCloud has the cloud change groups as a plan says, and tells of it.
func (a *Actor) askCloud(ctx context.Context, o *plan.Loop, todo *actions) {
	if slices.ContainsFunc(todo.requests, (*request).grows) {
		defer a.teller.Metrics.Time(tell.FunctionScaleUp)()
		o.GrowthOutcome = plan.ScaleUpSuccessful
	}
	a.send(ctx, todo.requests)
	grown := map[string]string{}
	for _, r := range todo.requests {
		if r.grows() && r.err != nil {
			o.GrowthOutcome = plan.ScaleUpError
		} else if r.grows() {
			grown[r.group] = r.growth
		}
	}
	if o.GrowthOutcome != plan.ScaleUpError {
		a.send(ctx, todo.swaps)
	}
	if a.config.Decides(config.ScaleUpDecision) {
		a.teller.TellPods(o, grown)
	}
}

// send sends requests, those of some groups at once: a group that does not answer must not keep the others. Their
// outcomes are noted and reported in their own order.
func (a *Actor) send(ctx context.Context, requests []*request) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	queues := queuesOf(requests)
	// All of them, also when the time is up: then they have an error.
	workqueue.ParallelizeUntil(context.Background(), askAtOnce, len(queues), func(i int) {
		for _, r := range queues[i] {
			if r.err = ctx.Err(); r.err == nil {
				r.sent, r.err = true, r.send(ctx)
			}
		}
	})
	for _, r := range requests {
		if r.sent {
			a.planner.Fleet.Note(r.id, r.err)
		}
		r.tell(r.err)
	}
}

// queuesOf returns requests by group, those of each in their order: the target that one expects is what the ones before
// it leave. For example, a group grows from the target that it has without the machines that it gives up in this loop.
// Groups that grow come first, since pods wait for them.
func queuesOf(requests []*request) (queues [][]*request) {
	at := map[string]int{}
	for _, r := range requests {
		i, known := at[r.group]
		if !known {
			i = len(queues)
			at[r.group], queues = i, append(queues, nil)
		}
		queues[i] = append(queues[i], r)
	}
	rank := func(queue []*request) int {
		if slices.ContainsFunc(queue, (*request).grows) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(queues, func(a, b []*request) int { return cmp.Compare(rank(a), rank(b)) })
	return queues
}

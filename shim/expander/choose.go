package expander

import (
	"context"
	"runtime/debug"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/breaker"
	"loadline.dev/shim/ranking"
)

// chooser chooses among options.
type chooser struct {
	engine     loadlinev1.AutoscalerClient
	breaker    *breaker.Breaker
	policy     *loadlinev1.RankPolicy
	prices     *loadlinev1.PriceModel
	priorities ranking.Priorities
	line       *loadlinev1.LoadLine // nil: there is none
	nodes      func() (int, bool)
	cluster    func(ctx context.Context, ask func(at *loadlinev1.Changes) error) error // nil: there is none
	tickets    chan struct{}                                                           // one per question under way
}

// choice is the option chosen, and how that came about.
type choice struct {
	group string
	// fallback is why the engine had no part in it; empty: it had.
	fallback string
	err      error // of the engine, where there was one
	// ranked are the options in the engine's order; nil for a fallback.
	ranked []ranking.Ranked
	policy *loadlinev1.RankPolicy // as the engine understood it
	sized  bool                   // the size of the cluster was known
}

// choose returns one of the options, of which there is at least one. It returns when ctx ends at the latest, but for
// the time that a fallback takes.
func (c *chooser) choose(ctx context.Context, asked *question) choice {
	got := c.ranked(ctx, asked)
	got.fallback = c.judge(got)
	if got.fallback != "" {
		got.group = asked.options[leastWaste(asked)].group
	}
	return got
}

// ranked asks the engine. The question runs beside: one that hangs does not hold up the answer.
func (c *chooser) ranked(ctx context.Context, asked *question) choice {
	if ctx.Err() != nil {
		return choice{fallback: fallbackDeadline} // the request took all the time that there is
	}
	if !c.breaker.Allow() {
		return choice{fallback: fallbackBreakerOpen}
	}
	select {
	case c.tickets <- struct{}{}:
	default:
		return choice{fallback: fallbackBusy}
	}
	done := make(chan choice, 1)
	go func() {
		defer func() { <-c.tickets }()
		done <- c.ask(ctx, asked)
	}()
	select {
	case got := <-done:
		return got
	case <-ctx.Done():
		return choice{err: status.FromContextError(ctx.Err()).Err()}
	}
}

func (c *chooser) ask(ctx context.Context, asked *question) (got choice) {
	defer func() {
		if cause := recover(); cause != nil {
			klog.FromContext(ctx).Error(nil, "Panic while ranking", "cause", cause, "stack", string(debug.Stack()))
			got = choice{fallback: fallbackPanic}
		}
	}()
	request := c.request(asked)
	response, err := c.rank(ctx, request)
	if err != nil {
		return choice{err: err}
	}
	ranked, err := ranking.Join(request, response)
	if err != nil {
		return choice{fallback: fallbackBadAnswer, err: err}
	}
	return choice{group: ranked[0].NodeGroup(), ranked: ranked, policy: response.GetPolicy(),
		sized: request.ClusterNodes != nil || request.Changes != nil}
}

// rank asks about the cluster as the engine knows it, where there is one. Where the engine does not know it, or not any
// more, the number of nodes has to do.
func (c *chooser) rank(ctx context.Context, request *loadlinev1.RankOptionsRequest) (
	response *loadlinev1.RankOptionsResponse, err error) {
	if c.cluster == nil {
		return c.engine.RankOptions(ctx, request)
	}
	nodes := request.ClusterNodes
	asked := false
	failed := c.cluster(ctx, func(at *loadlinev1.Changes) error {
		asked = true
		request.Changes, request.ClusterNodes = at, nil
		response, err = c.engine.RankOptions(ctx, request)
		return err
	})
	if failed == nil || asked && ctx.Err() != nil {
		return response, failed
	}
	klog.FromContext(ctx).V(2).Info("Options are ranked without the pods of the cluster", "err", failed)
	request.Changes, request.ClusterNodes = nil, nodes
	return c.engine.RankOptions(ctx, request)
}

// request puts a question as the engine takes it.
func (c *chooser) request(asked *question) *loadlinev1.RankOptionsRequest {
	request := &loadlinev1.RankOptionsRequest{
		Pods: asked.shapes, Options: make([]*loadlinev1.ExpansionOption, len(asked.options)), Prices: c.prices,
		Policy: c.policy, LoadLine: c.line,
	}
	if c.nodes != nil {
		if count, known := c.nodes(); known {
			nodes := int32(count)
			request.ClusterNodes = &nodes
		}
	}
	for i, o := range asked.options {
		to := &loadlinev1.ExpansionOption{
			NodeGroup: o.group, NodeCount: o.nodes, TemplateNode: asked.templates[o.group],
			Priority: c.priorities.Of(o.group), Pods: make([]*loadlinev1.PodRun, len(o.pods)),
		}
		for j, run := range o.pods {
			to.Pods[j] = &loadlinev1.PodRun{Pod: run.shape, Count: run.count}
		}
		request.Options[i] = to
	}
	return request
}

// judge tells the breaker what a question showed of the engine, and returns why it has no part in the choice.
func (c *chooser) judge(got choice) (fallback string) {
	switch code := status.Code(got.err); {
	case got.fallback == fallbackBadAnswer, got.fallback == "" && code == codes.OK:
		c.answers()
		return got.fallback
	case got.fallback != "":
		return got.fallback // nothing was learned of the engine
	case code == codes.InvalidArgument, code == codes.ResourceExhausted, code == codes.FailedPrecondition:
		c.answers() // the fault of the question
		return fallbackRefused
	case code == codes.DeadlineExceeded, code == codes.Canceled:
		fallback = fallbackDeadline
	default:
		fallback = fallbackUnavailable
	}
	if c.breaker.Failure() {
		klog.ErrorS(got.err, "The engine does not answer; node groups are chosen by least waste")
	}
	return fallback
}

func (c *chooser) answers() {
	if c.breaker.Success() {
		klog.InfoS("The engine answers again")
	}
}

// log writes what was chosen, over what, and why.
func (c choice) log(asked *question, took time.Duration) {
	common := []any{"nodeGroup", c.group, "options", len(asked.options), "pods", asked.pods,
		"podShapes", len(asked.shapes), "took", took.Round(time.Microsecond)}
	if c.fallback != "" {
		klog.ErrorS(c.err, "Chose a node group without the engine, by least waste",
			append(common, "reason", c.fallback)...)
		return
	}
	best := c.ranked[0]
	common = append(common, "nodes", best.Asked.GetNodeCount(), "nodesCounted", best.GetNodes(), "because", best.Reason())
	if len(c.ranked) > 1 {
		common = append(common, "runnerUp", c.ranked[1].NodeGroup(),
			"over", ranking.Over(c.policy, c.ranked[0], c.ranked[1]))
	}
	if !c.sized {
		common = append(common, "clusterSize", "not known: unfitness counts as 1")
	}
	klog.InfoS("Chose a node group", common...)
	if !klog.V(4).Enabled() {
		return
	}
	for place, r := range c.ranked {
		klog.InfoS("Ranked", "place", place+1, "nodeGroup", r.NodeGroup(), "because", r.Reason())
	}
}

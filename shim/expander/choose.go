package expander

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/guard"
	"loadline.dev/shim/ranking"
)

// chooser chooses among options.
type chooser struct {
	engine     loadlinev1.AutoscalerClient
	guard      *guard.Guard
	policy     *loadlinev1.RankPolicy
	prices     *loadlinev1.PriceModel
	priorities ranking.Priorities
	line       *loadlinev1.LoadLine // nil: there is none
	nodes      func() (int, bool)
	cluster    func(ctx context.Context, ask func(at *loadlinev1.Changes) error) error // nil: there is none
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
	got, verdict, err := guard.Ask(ctx, c.guard, func(ctx context.Context) (choice, error) { return c.ask(ctx, asked) })
	if fallback := fallbackOf(verdict); fallback != "" {
		got = choice{fallback: fallback, err: err}
	}
	if got.fallback != "" {
		got.group = asked.options[leastWaste(asked)].group
	}
	return got
}

func (c *chooser) ask(ctx context.Context, asked *question) (choice, error) {
	request := c.request(asked)
	response, err := c.rank(ctx, request)
	if err != nil {
		return choice{}, err
	}
	ranked, err := ranking.Join(request, response)
	if err != nil { // the engine has answered
		return choice{fallback: fallbackBadAnswer, err: err}, nil
	}
	return choice{group: ranked[0].NodeGroup(), ranked: ranked, policy: response.GetPolicy(),
		sized: request.ClusterNodes != nil || request.Changes != nil}, nil
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

// fallbackOf returns why the engine has no part in a choice, if a verdict is a reason.
func fallbackOf(verdict guard.Verdict) string {
	switch verdict {
	case guard.Answered:
		return ""
	case guard.Invalid, guard.Refused:
		return fallbackRefused
	case guard.Busy:
		return fallbackBusy
	case guard.Late, guard.Canceled:
		return fallbackDeadline
	case guard.Open:
		return fallbackBreakerOpen
	case guard.Panicked:
		return fallbackPanic
	}
	return fallbackUnavailable
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

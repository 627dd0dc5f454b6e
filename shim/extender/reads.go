package extender

import (
	"context"

	"loadline.dev/shim/internal/budgets"
	"loadline.dev/shim/usage/store"
)

// countsUse says whether the view needs profiles of what pods use.
func (g *Gateway) countsUse() bool {
	return g.options.Policy.GetExpectedUse() != nil || g.options.Line.GetExpectedUse() != nil
}

// bringsBlockersTogether says whether the view needs what says which pods block drains.
func (g *Gateway) bringsBlockersTogether() bool { return g.options.Policy.GetBlockersTogether() > 0 }

// tellPods has the view send of pods what the policy reads. To be called before it gets any.
func (g *Gateway) tellPods() {
	if g.countsUse() {
		g.view.TellWorkloads()
	}
	if g.bringsBlockersTogether() {
		g.view.TellBlockers()
	}
}

// supply keeps the other objects that the policy reads up to date in the view, until the context ends.
func (g *Gateway) supply(ctx context.Context) {
	if g.countsUse() {
		store.Supply(ctx, g.client, g.options.UsageNamespace, g.view, g.refresher.changed)
	}
	if g.bringsBlockersTogether() {
		budgets.Supply(ctx, g.client, g.view, g.refresher.changed)
	}
}

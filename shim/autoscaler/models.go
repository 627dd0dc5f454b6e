package autoscaler

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"loadline.dev/shim/scaleup"
)

const (
	// modelAge is for how long what the cloud says of new nodes holds, and modelRetry after which time it is asked
	// again where it failed to say.
	modelAge   = 10 * time.Minute
	modelRetry = time.Minute
	// modelTime bounds what all these questions take in one loop. Groups that are left are asked about in the next one.
	modelTime = 10 * time.Second
)

// model is what a new node of a group is like, and costs.
type model struct {
	node  *v1.Node // nil: nobody knows
	price *float64 // US dollars per hour; nil: the cloud does not tell
}

// models knows what the cloud has said of new nodes.
type models struct {
	cloud     cloud
	known     map[string]*known
	priceless time.Time // until when the cloud is not asked for prices: it tells none
}

// known is what the cloud has said of one group, and until when it holds.
type known struct {
	template      *v1.Node
	price         *float64
	templateUntil time.Time
	priceUntil    time.Time
}

func newModels(c cloud) *models { return &models{cloud: c, known: map[string]*known{}} }

// fill finds out what new nodes of each group are like: as a usable node that it has, with all devices, stripped of
// what is its own; else as the cloud says; else as any node that it has. This is Cluster Autoscaler's order: what
// clouds say of new nodes is less exact.
func (m *models) fill(ctx context.Context, groups []*groupState, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, modelTime)
	defer cancel()
	before := m.known
	m.known = map[string]*known{}
	for _, g := range groups {
		k := before[g.ID]
		if k == nil {
			k = &known{}
		}
		m.known[g.ID] = k
		example := g.example()
		if example != nil && scaleup.Usable(example) && !g.lacking[example.Name] {
			g.model.node = scaleup.LikeNew(example)
		} else if m.askTemplate(ctx, g.ID, k, now); k.template != nil {
			g.model.node = scaleup.Complete(k.template, g.ID)
		} else if example != nil {
			g.model.node = scaleup.LikeNew(example)
		}
		if g.model.node != nil {
			m.askPrice(ctx, g.ID, g.model.node, k, now)
			g.model.price = k.price
		}
	}
}

// example returns the node that shows best what new ones are like; nil: there is none.
func (g *groupState) example() (best *v1.Node) {
	for _, node := range g.nodes {
		if best == nil || g.lacking[best.Name] && !g.lacking[node.Name] ||
			g.lacking[best.Name] == g.lacking[node.Name] && scaleup.ModelBefore(node, best) {
			best = node
		}
	}
	return best
}

// templateOf returns what the cloud has said of new nodes of a group; nil: nothing.
func (m *models) templateOf(group string) *v1.Node {
	if k := m.known[group]; k != nil {
		return k.template
	}
	return nil
}

func (m *models) askTemplate(ctx context.Context, group string, k *known, now time.Time) {
	if now.Before(k.templateUntil) || ctx.Err() != nil {
		return
	}
	template, err := m.cloud.TemplateNode(ctx, group)
	if err != nil {
		k.templateUntil = now.Add(modelRetry)
		klog.ErrorS(err, "The cloud does not say what new nodes are like", "group", group)
		return // what it said before still holds
	}
	k.template, k.templateUntil = template, now.Add(modelAge)
}

func (m *models) askPrice(ctx context.Context, group string, node *v1.Node, k *known, now time.Time) {
	if now.Before(k.priceUntil) || now.Before(m.priceless) || ctx.Err() != nil {
		return
	}
	price, err := m.cloud.NodePrice(ctx, node)
	if err != nil {
		k.priceUntil = now.Add(modelRetry)
		klog.ErrorS(err, "The cloud does not say what nodes cost", "group", group)
		return
	}
	if price == nil {
		m.priceless = now.Add(modelAge)
	}
	k.price, k.priceUntil = price, now.Add(modelAge)
}

package cloud

import (
	"context"
	"maps"
	"strings"
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

// Model is what a new node of a group is like, and costs.
type Model struct {
	Node    *v1.Node // nil: nobody knows
	ByCloud bool     // the cloud says so; else it is one of its nodes
	Price   *float64 // US dollars per hour; nil: the cloud does not tell
}

// Models knows what the cloud has said of new nodes.
type Models struct {
	cloud     Provider
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

// NewModels returns what asks a cloud.
func NewModels(c Provider) *Models { return &Models{cloud: c, known: map[string]*known{}} }

// Fill finds out what the cloud says of new nodes of each group; where it says nothing, a node of the group stands for
// them. The engine prefers a node that shows more. `byID`: nodes by provider id.
func (m *Models) Fill(ctx context.Context, groups []Group, byID map[string]*v1.Node, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, modelTime)
	defer cancel()
	before := m.known
	m.known = map[string]*known{}
	for i := range groups {
		g := &groups[i]
		k := before[g.ID]
		if k == nil {
			k = &known{}
		}
		m.known[g.ID] = k
		m.askTemplate(ctx, g.ID, k, now)
		example := exampleOf(g, byID)
		switch {
		case k.template != nil:
			g.Model = Model{Node: withNotesOf(scaleup.Complete(k.template, g.ID), example), ByCloud: true}
		case example != nil:
			g.Model.Node = scaleup.LikeNew(example)
		default:
			continue
		}
		m.askPrice(ctx, g.ID, g.Model.Node, k, now)
		g.Model.Price = k.price
	}
}

// exampleOf returns a node of a group; nil: it has none.
func exampleOf(g *Group, byID map[string]*v1.Node) (best *v1.Node) {
	for _, instance := range g.Instances {
		if node := byID[instance.ProviderID]; node != nil && (best == nil || scaleup.ModelBefore(node, best)) {
			best = node
		}
	}
	return best
}

// withNotesOf adds what a node of the group says of prices, and the cloud does not.
func withNotesOf(template, example *v1.Node) *v1.Node {
	if example == nil {
		return template
	}
	for key, value := range WithoutNotes(example).Annotations {
		if _, known := template.Annotations[key]; !known {
			if template.Annotations == nil {
				template.Annotations = map[string]string{}
			}
			template.Annotations[key] = value
		}
	}
	return template
}

func (m *Models) askTemplate(ctx context.Context, group string, k *known, now time.Time) {
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

func (m *Models) askPrice(ctx context.Context, group string, node *v1.Node, k *known, now time.Time) {
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

// WithoutNotes returns a template node without the annotations that tell nothing of prices: there may be many, and
// large ones.
func WithoutNotes(node *v1.Node) *v1.Node {
	out := *node
	out.Annotations = maps.Clone(node.Annotations)
	maps.DeleteFunc(out.Annotations, func(key, _ string) bool {
		return !strings.HasPrefix(key, "loadline.dev/") && !strings.HasPrefix(key, "cluster-autoscaler")
	})
	return &out
}

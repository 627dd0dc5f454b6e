package cloud

import (
	"cmp"
	"context"
	"maps"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
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

// known is what the cloud has said of one group.
type known struct {
	template answered[*v1.Node]
	price    answered[*float64]
}

// answered is what the cloud has said to a question, and until when it holds.
type answered[A any] struct {
	answer A
	until  time.Time
}

// renew asks again once the answer does not hold any more. If the cloud does not say, what it said before still holds.
func (a *answered[A]) renew(ctx context.Context, now time.Time, problem, group string, ask func() (A, error)) {
	if now.Before(a.until) || ctx.Err() != nil {
		return
	}
	answer, err := ask()
	if err != nil {
		a.until = now.Add(modelRetry)
		klog.ErrorS(err, problem, "group", group)
		return
	}
	a.answer, a.until = answer, now.Add(modelAge)
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
		k := cmp.Or(before[g.ID], &known{})
		m.known[g.ID] = k
		k.template.renew(ctx, now, "The cloud does not say what new nodes are like", g.ID,
			func() (*v1.Node, error) { return m.cloud.TemplateNode(ctx, g.ID) })
		example := exampleOf(g, byID)
		switch {
		case k.template.answer != nil:
			g.Model = Model{Node: withNotesOf(scaleup.Complete(k.template.answer, g.ID), example), ByCloud: true}
		case example != nil:
			g.Model.Node = scaleup.TemplateFromNode(example)
		default:
			continue
		}
		if !now.Before(m.priceless) {
			k.price.renew(ctx, now, "The cloud does not say what nodes cost", g.ID, func() (*float64, error) {
				price, err := m.cloud.NodePrice(ctx, g.Model.Node)
				if err == nil && price == nil {
					m.priceless = now.Add(modelAge)
				}
				return price, err
			})
		}
		g.Model.Price = k.price.answer
	}
}

// exampleOf returns a node of a group; nil: it has none.
func exampleOf(g *Group, byID map[string]*v1.Node) (best *v1.Node) {
	for _, instance := range g.Instances {
		if node := byID[instance.GetId()]; node != nil && (best == nil || scaleup.ModelBefore(node, best)) {
			best = node
		}
	}
	return best
}

// withNotesOf adds what a node of the group says of prices, and the cloud does not.
func withNotesOf(template, example *v1.Node) *v1.Node {
	if example != nil {
		template.Annotations = labels.Merge(WithoutNotes(example).Annotations, template.Annotations)
	}
	return template
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

package cloud

import (
	"cmp"
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

// Model is what the cloud says of a new node of a group. Where it does not tell, the engine works it out from the nodes
// of the group.
type Model struct {
	// Node is what the cloud is asked the price of, and what metrics name GPUs by: the template, else any node of the
	// group; nil: there is none.
	Node    *v1.Node
	ByCloud bool     // Node is the template, and the engine gets it
	Price   *float64 // US dollars per hour; nil: the cloud does not tell
	// StatedPrice and InstanceType are what people state of a group in a file; nil, empty: nothing.
	StatedPrice  *float64
	InstanceType string
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

// Fill finds out what the cloud says of new nodes of each group. `byID`: nodes by provider id.
func (m *Models) Fill(ctx context.Context, groups []Group, byID map[string]*v1.Node, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, modelTime)
	defer cancel()
	before := m.known
	m.known = map[string]*known{}
	for i := range groups {
		g := &groups[i]
		if g.ID == "" {
			continue // nothing can be asked about it
		}
		k := cmp.Or(before[g.ID], &known{})
		m.known[g.ID] = k
		k.template.renew(ctx, now, "The cloud does not say what new nodes are like", g.ID,
			func() (*v1.Node, error) { return m.cloud.TemplateNode(ctx, g.ID) })
		g.Model = Model{Node: anyNodeOf(g, byID)}
		if k.template.answer != nil {
			g.Model = Model{Node: scaleup.Named(k.template.answer, g.ID), ByCloud: true}
		}
		if g.Model.Node == nil {
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

func anyNodeOf(g *Group, byID map[string]*v1.Node) *v1.Node {
	for _, instance := range g.Instances {
		if node := byID[instance.GetId()]; node != nil {
			return node
		}
	}
	return nil
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

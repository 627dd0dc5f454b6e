package cloud

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/externalgrpc"
)

// teller is a cloud that tells of new nodes.
type teller struct {
	Provider
	template  *v1.Node
	price     *float64
	fails     error
	hangs     bool
	templates int // questions
	prices    int
}

func (t *teller) TemplateNode(ctx context.Context, _ string) (*v1.Node, error) {
	t.templates++
	if t.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return t.template, t.fails
}

func (t *teller) NodePrice(context.Context, *v1.Node) (*float64, error) {
	t.prices++
	return t.price, t.fails
}

func nodeOf(name string, ready bool) *v1.Node {
	status := v1.ConditionFalse
	if ready {
		status = v1.ConditionTrue
	}
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"from": name},
		Annotations: map[string]string{"loadline.dev/note": "of prices", "other": "note"}},
		Spec: v1.NodeSpec{ProviderID: "x", Taints: []v1.Taint{{Key: "dedicated", Effect: v1.TaintEffectNoSchedule},
			{Key: "startup-taint.cluster-autoscaler.kubernetes.io/gpu", Effect: v1.TaintEffectNoSchedule},
			{Key: v1.TaintNodeNotReady, Effect: v1.TaintEffectNoSchedule}}},
		Status: v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: status}}}}
}

// The template is what the cloud says, and nothing of a node gets into it: whoever runs one node could set the price of
// all new ones. Without a template none is sent.
func TestModelOfNewNodes(t *testing.T) {
	template := &v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"from": "cloud"}}}
	for name, c := range map[string]struct {
		nodes    []*v1.Node
		template *v1.Node
		want     string
	}{
		"TheCloud":      {[]*v1.Node{nodeOf("a", true)}, template, "cloud"},
		"ANode":         {[]*v1.Node{nodeOf("b", false), nodeOf("a", false)}, nil, "b"},
		"TheCloudAlone": {nil, template, "cloud"},
		"NobodyKnows":   {nil, nil, ""},
	} {
		m := NewModels(&teller{template: c.template})
		g := []Group{{ID: "g"}}
		byID := map[string]*v1.Node{}
		for _, node := range c.nodes {
			g[0].Instances = append(g[0].Instances, &externalgrpc.Instance{Id: node.Name})
			byID[node.Name] = node
		}
		m.Fill(t.Context(), g, byID, time.Now())
		if c.want == "" {
			if g[0].Model.Node != nil {
				t.Errorf("%s: %v", name, g[0].Model.Node)
			}
			continue
		}
		node, byCloud := g[0].Model.Node, g[0].Model.ByCloud
		if node == nil || node.Labels["from"] != c.want || byCloud != (c.want == "cloud") {
			t.Errorf("%s: %v, by the cloud: %v, want %s", name, node, byCloud, c.want)
		} else if byCloud && (len(node.Annotations) > 0 || node.Name == "") {
			t.Errorf("%s: the template has the name %q and annotations %v", name, node.Name, node.Annotations)
		}
	}
}

// The cloud is asked again after a time only, and what it said holds while it fails to answer.
func TestWhatTheCloudHasSaid(t *testing.T) {
	cloud := &teller{template: &v1.Node{}, price: new(0.5)}
	m := NewModels(cloud)
	now := time.Now()
	ask := func(after time.Duration) Model {
		now = now.Add(after)
		g := []Group{{ID: "g"}}
		m.Fill(t.Context(), g, nil, now)
		return g[0].Model
	}
	ask(0)
	if got := ask(modelAge - time.Second); got.Price == nil || *got.Price != 0.5 || cloud.templates != 1 ||
		cloud.prices != 1 {
		t.Errorf("%+v after %d and %d questions", got, cloud.templates, cloud.prices)
	}
	cloud.fails = errors.New("told to fail")
	if got := ask(2 * time.Second); got.Node == nil || got.Price == nil || cloud.templates != 2 {
		t.Errorf("%+v after %d questions", got, cloud.templates)
	}
	ask(modelRetry - time.Second)
	if cloud.templates != 2 {
		t.Errorf("asked %d times", cloud.templates)
	}
	cloud.fails, cloud.price = nil, nil
	if got := ask(2 * time.Second); got.Price != nil || cloud.templates != 3 {
		t.Errorf("%+v after %d questions", got, cloud.templates)
	}
	// It tells no prices: no group is asked about.
	prices := cloud.prices
	ask(modelAge - time.Second)
	if cloud.prices != prices {
		t.Errorf("asked for prices %d times more", cloud.prices-prices)
	}
}

// A cloud that does not answer costs a loop a bounded time, however many groups there are.
func TestCloudThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := &teller{hangs: true}
		groups := slices.Repeat([]Group{{ID: "g"}}, 100)
		began := time.Now()
		NewModels(cloud).Fill(t.Context(), groups, nil, began)
		if took := time.Since(began); took != modelTime {
			t.Errorf("took %v, want %v", took, modelTime)
		}
	})
}

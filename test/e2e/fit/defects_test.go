package fit

import (
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/view"
)

// kubernetes/kubernetes#141526: the namespaces that a namespaceSelector of the incoming pod matches are added to a
// copy of the term, and the selector is kept; it is then matched against no labels at all. NotIn and DoesNotExist
// match those. Here the other pod is in namespace red, which the selector excludes, so that by the documentation
// the anti-affinity does not concern it.
func TestDefectNamespaceSelectorSeesNoLabels(t *testing.T) {
	p := newPair(t, nil)
	for _, operator := range []metav1.LabelSelectorOperator{metav1.LabelSelectorOpNotIn,
		metav1.LabelSelectorOpDoesNotExist} {
		requirement := metav1.LabelSelectorRequirement{Key: "team", Operator: operator}
		if operator == metav1.LabelSelectorOpNotIn {
			requirement.Values = []string{"red"}
		}
		c := &Cluster{
			Nodes: []*v1.Node{
				{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{v1.LabelHostname: "n"}}}},
			Namespaces: []*v1.Namespace{
				{ObjectMeta: metav1.ObjectMeta{Name: "red", Labels: map[string]string{"team": "red"}}},
				{ObjectMeta: metav1.ObjectMeta{Name: "lab"}}},
			Pods: []*v1.Pod{
				{ObjectMeta: metav1.ObjectMeta{Name: "other", UID: "other", Namespace: "red",
					Labels: map[string]string{"app": "web"}},
					Spec: v1.PodSpec{NodeName: "n"}}},
			Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "incoming", UID: "incoming", Namespace: "lab"},
				Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c"}},
					Affinity: &v1.Affinity{
						PodAntiAffinity: &v1.PodAntiAffinity{
							RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
								TopologyKey:   v1.LabelHostname,
								LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
								NamespaceSelector: &metav1.LabelSelector{
									MatchExpressions: []metav1.LabelSelectorRequirement{requirement}},
							}}}},
				}},
		}
		c.Nodes[0].Status.Allocatable = v1.ResourceList{v1.ResourcePods: resource.MustParse("10")}
		want, err := p.upstream.Filter(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		refused := Answer{Node: "n", Status: Unschedulable, Filter: "InterPodAffinity",
			Reasons: []string{"node(s) didn't match pod anti-affinity rules"}}
		if Minor() >= 37 { // where it is mended
			refused = Answer{Node: "n", Status: Fits}
		}
		if !reflect.DeepEqual(want.Nodes, []Answer{refused}) {
			t.Fatalf("%s: kube-scheduler has the defect no longer, or again: %+v", operator, want.Nodes)
		}
		documented := &loadlinev1.FitOptions{Defects: &loadlinev1.UpstreamDefects{}}
		expectFit(t, p, c, documented, Answer{Node: "n", Status: Fits})
		expectFit(t, p, c, asUpstream(), refused)
		if Minor() == 36 {
			expectFit(t, p, c, nil, refused) // by default
		}
	}
}

func expectFit(t *testing.T, p *pair, c *Cluster, options *loadlinev1.FitOptions, want Answer) {
	t.Helper()
	if err := p.engine.Load(t.Context(), c, allKinds...); err != nil {
		t.Fatal(err)
	}
	got, err := p.engine.Fit(t.Context(), &Case{Cluster: c},
		&loadlinev1.IncomingPod{Pod: view.TrimIncomingPodForFilters(c.Pod)}, options)
	if err != nil || !reflect.DeepEqual(got, map[string]Answer{want.Node: want}) {
		t.Errorf("options %v: got %+v (%v), want %+v", options, got, err, want)
	}
}

package filterconfig

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }

func service(name string, selector map[string]string) *v1.Service {
	return &v1.Service{ObjectMeta: meta(name), Spec: v1.ServiceSpec{Selector: selector}}
}

// ownedPod has labels app=web, tier=front and a controller.
func ownedPod(apiVersion, kind, name string) *v1.Pod {
	controller := true
	pod := &v1.Pod{ObjectMeta: meta("web-1")}
	pod.Labels = map[string]string{"app": "web", "tier": "front"}
	if kind != "" {
		pod.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: apiVersion, Kind: kind, Name: name, Controller: &controller}}
	}
	return pod
}

func TestSelectors(t *testing.T) {
	var s Selectors
	web := map[string]string{"app": "web"}
	requirement := metav1.LabelSelectorRequirement{Key: "tier", Operator: metav1.LabelSelectorOpExists}
	for _, object := range []any{
		service("web", web), service("all", nil), service("other", map[string]string{"app": "db"}),
		&v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "web"},
			Spec: v1.ServiceSpec{Selector: map[string]string{"tier": "front"}}},
		&appsv1.ReplicaSet{ObjectMeta: meta("web"), Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{
			MatchLabels:      map[string]string{"app": "web", "tier": "back"},
			MatchExpressions: []metav1.LabelSelectorRequirement{requirement}}}},
		&appsv1.StatefulSet{ObjectMeta: meta("bad"), Spec: appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}}}},
		&v1.ReplicationController{ObjectMeta: meta("rc"),
			Spec: v1.ReplicationControllerSpec{Selector: map[string]string{"tier": "front"}}},
		&v1.Pod{},
	} {
		s.Set(object)
	}
	spread := ownedPod("", "", "")
	spread.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{}}
	elsewhere := ownedPod("", "", "")
	elsewhere.Namespace = "lab"
	for name, c := range map[string]struct {
		pod  *v1.Pod
		want string
	}{
		"by service":                   {ownedPod("", "", ""), "app=web"},
		"by service and owner":         {ownedPod("v1", "ReplicationController", "rc"), "app=web,tier=front"},
		"owner that wants no such pod": {ownedPod("apps/v1", "ReplicaSet", "web"), "app=web,tier=back,tier"},
		"owner of another group":       {ownedPod("example.com/v1", "ReplicaSet", "web"), "app=web"},
		"owner that is gone":           {ownedPod("apps/v1", "ReplicaSet", "gone"), "app=web"},
		"owner that does not parse":    {ownedPod("apps/v1", "StatefulSet", "bad"), "app=web"},
		"constraints of its own":       {spread, ""},
		"another namespace":            {elsewhere, ""},
	} {
		got := s.Of(c.pod)
		if c.want == "" && got != nil {
			t.Errorf("%s: got %q", name, got)
		}
		var selector metav1.LabelSelector
		if err := selector.Unmarshal(got); err != nil {
			t.Fatal(err)
		}
		if parsed, err := metav1.LabelSelectorAsSelector(&selector); c.want != "" && (err != nil || parsed.String() != c.want) {
			t.Errorf("%s: got %q (%v), want %q", name, parsed, err, c.want)
		}
	}
	// A label that two want otherwise: nothing has both.
	both := metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	addSelector(&both, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}})
	if got := metav1.FormatLabelSelector(&both); got != "app=web,app in (db)" {
		t.Errorf("got %s", got)
	}
	s.Delete(service("web", web))
	if got := s.Of(ownedPod("", "", "")); got != nil {
		t.Errorf("a service that is gone selects: %q", got)
	}
	var none *Selectors
	none.Set(service("web", web))
	if got := none.Of(ownedPod("", "", "")); got != nil {
		t.Errorf("nil deduces %q", got)
	}
}

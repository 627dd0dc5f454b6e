package placeholders

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"loadline.dev/shim/slack"
)

const namespace = "room"

func shape(name string, replicas int32) slack.Shape {
	return slack.Shape{Name: name, Namespace: namespace, Replicas: replicas,
		Pod: v1.PodTemplateSpec{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c"}}}}}
}

func newClient(t *testing.T, objects ...*appsv1.Deployment) *fake.FakeDynamicClient {
	t.Helper()
	scheme := runtime.NewScheme()
	client := fake.NewSimpleDynamicClientWithCustomListKinds(scheme, map[schema.GroupVersionResource]string{
		deployments: "DeploymentList", podTemplates: "PodTemplateList", capacityBuffers: "CapacityBufferList"})
	for _, object := range objects {
		object.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Resource(deployments).Namespace(object.Namespace).Create(t.Context(),
			&unstructured.Unstructured{Object: content}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	client.ClearActions()
	return client
}

// writes are the requests that change something since the last call.
func writes(client *fake.FakeDynamicClient) (out []string) {
	for _, action := range client.Actions() {
		if action.Matches("get", action.GetResource().Resource) {
			continue
		}
		switch a := action.(type) {
		case interface{ GetObject() runtime.Object }:
			out = append(out, action.GetVerb()+" "+action.GetResource().Resource+" "+
				a.GetObject().(*unstructured.Unstructured).GetName())
		case interface {
			GetName() string
			GetPatch() []byte
		}:
			out = append(out, "patch "+action.GetResource().Resource+" "+a.GetName())
		case interface{ GetName() string }:
			out = append(out, action.GetVerb()+" "+action.GetResource().Resource+" "+a.GetName())
		}
	}
	client.ClearActions()
	return out
}

func replicasOf(t *testing.T, client *fake.FakeDynamicClient, name string) int64 {
	t.Helper()
	object, err := client.Resource(deployments).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	replicas, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	return replicas
}

// One object is kept for each shape. Only what changes is written, and nothing that is not ours.
func TestKeep(t *testing.T) {
	foreign := func(name string, labels map[string]string) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
			Spec: appsv1.DeploymentSpec{Replicas: new(int32(7))}}
	}
	client := newClient(t, foreign("other", nil), foreign("by-hand", map[string]string{slack.ShapeLabel: "by-hand"}),
		foreign("managed", map[string]string{OursLabel: Ours}))
	k := Deployments(client, namespace)
	step := func(want []string, shapes ...slack.Shape) {
		t.Helper()
		err := k.Keep(t.Context(), shapes)
		if got := writes(client); err != nil || !slices.Equal(got, want) {
			t.Errorf("wrote %q, error %v, want %q", got, err, want)
		}
	}
	step([]string{"create deployments a", "create deployments b"}, shape("a", 3), shape("b", 2))
	step(nil, shape("a", 3), shape("b", 2))
	step([]string{"patch deployments a"}, shape("a", 4), shape("b", 2))
	if got := replicasOf(t, client, "a"); got != 4 {
		t.Errorf("%d replicas, want 4", got)
	}
	step([]string{"create deployments c", "delete deployments b"}, shape("a", 4), shape("c", 1))
	step([]string{"delete deployments a", "delete deployments c"})
	for _, name := range []string{"other", "by-hand", "managed"} {
		if got := replicasOf(t, client, name); got != 7 {
			t.Errorf("%s has %d replicas", name, got)
		}
	}
	// A foreign object of the name of a shape stays as it is, and is an error; the others are kept.
	err := k.Keep(t.Context(), []slack.Shape{shape("by-hand", 1), shape("d", 1)})
	if got := replicasOf(t, client, "by-hand"); err == nil || !strings.Contains(err.Error(), "already exists") ||
		got != 7 || replicasOf(t, client, "d") != 1 {
		t.Errorf("error %v, %d replicas", err, got)
	}
}

// The pods give way to all others, in the namespace of the keeper: a copy looks at pods in its own namespace.
func TestCopies(t *testing.T) {
	client := newClient(t)
	from := shape("copy", 2)
	from.Namespace, from.Copy = "shop", true
	term := v1.PodAffinityTerm{TopologyKey: v1.LabelHostname,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}
	from.Pod.Labels = map[string]string{"app": "web"}
	from.Pod.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term}}}
	if err := Deployments(client, namespace).Keep(t.Context(), []slack.Shape{from}); err != nil {
		t.Fatal(err)
	}
	object, err := client.Resource(deployments).Namespace(namespace).Get(t.Context(), "copy", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var made appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &made); err != nil {
		t.Fatal(err)
	}
	pod := made.Spec.Template
	terms := pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if pod.Labels[slack.PlaceholderLabel] == "" || pod.Labels["app"] != "" ||
		pod.Spec.PriorityClassName != slack.PriorityClassName || made.Labels[OursLabel] != Ours ||
		len(terms) != 2 || !slices.Equal(terms[0].Namespaces, []string{"shop"}) || len(terms[1].Namespaces) != 0 {
		t.Errorf("made %+v", made)
	}
	if len(from.Pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].Namespaces) != 0 {
		t.Error("the shape itself was changed")
	}
}

// A CapacityBuffer is created after its template and deleted before it.
func TestCapacityBuffers(t *testing.T) {
	client := newClient(t)
	k := CapacityBuffers(client, namespace)
	for _, step := range []struct {
		shapes []slack.Shape
		want   string
	}{
		{[]slack.Shape{shape("a", 3)}, "[create podtemplates a create capacitybuffers a]"},
		{[]slack.Shape{shape("a", 5)}, "[patch capacitybuffers a]"},
		{nil, "[delete capacitybuffers a delete podtemplates a]"},
	} {
		err := k.Keep(t.Context(), step.shapes)
		if got := fmt.Sprint(writes(client)); err != nil || got != step.want {
			t.Errorf("wrote %s, error %v, want %s", got, err, step.want)
		}
	}
}

// If it cannot be known what is there, nothing is written.
func TestNothingIsWrittenBlindly(t *testing.T) {
	client := newClient(t)
	client.PrependReactor("list", "*", refuse)
	if err := Deployments(client, namespace).Keep(t.Context(), []slack.Shape{shape("a", 3)}); err == nil ||
		len(writes(client)) != 0 {
		t.Errorf("error %v", err)
	}
}

func refuse(clienttesting.Action) (bool, runtime.Object, error) {
	return true, nil, errors.New("told to refuse")
}

package unknownfields

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"loadline.dev/shim/internal/testing/randompod"
)

func TestInJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"spec":{"containers":[{"name":"a","image":"b"}]}}`:                       "",
		`{"spec":{"placement":{"x":1},"containers":[{"name":"a","newRules":[]}]}}`: "spec.containers[0].newRules,spec.placement",
		`{"spec":{"Containers":[]}}`:                                               "spec.Containers",
		`{"metadata":{"newThing":1},"status":{"newThing":1},"topLevel":1}`:         "",
		// Fields of 1.37.
		`{"spec":{"evictionResponders":[{"name":"a"}],"volumes":[{"name":"v","emptyDir":{"mode":448}},` +
			`{"name":"s","secret":{"defaultUser":5,"items":[{"key":"a","path":"b","user":7}]}}],` +
			`"containers":[{"name":"a","livenessProbe":{"httpGet":{"port":1,"protocol":"h2"}}}]}}`: "",
		`{"spec":{"containers":[{"name":"a","volumeMounts":[{"name":"v","mountPath":"/","bindMountOptions":["noexec"]}]}]}}`: "spec.containers[0].volumeMounts[0].bindMountOptions",
	} {
		var pod v1.Pod
		if err := InJSON([]byte(text), &pod); err != nil || Of(&pod) != want {
			t.Errorf("%s: noted %q (%v), want %q", text, Of(&pod), err, want)
		}
	}
	var node v1.Node
	if err := InJSON([]byte(`{"spec":{"podPreemptionPolicy":{},"quota":1,"taints":[{"key":"a","until":1}]}}`),
		&node); err != nil || Of(&node) != "spec.quota,spec.taints[0].until" {
		t.Errorf("noted %q (%v)", Of(&node), err)
	}
	if err := InJSON([]byte(`{"spec":`), &node); err == nil {
		t.Error("broken JSON is taken")
	}
}

// with returns a message with one more field.
func with(message []byte, number protowire.Number) []byte {
	return protowire.AppendString(protowire.AppendTag(message, number, protowire.BytesType), "new")
}

func nested(number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
}

// A pod of 0.36 has no unknown field, whatever it has; and the walk survives what is cut short.
func TestOrdinaryPodsHaveNoUnknownField(t *testing.T) {
	fill := randompod.Filler(3)
	for range 100 {
		var pod v1.Pod
		var node v1.Node
		fill.Fill(&pod)
		fill.Fill(&node)
		pod.Annotations, node.Annotations = nil, nil
		for _, o := range []interface {
			metav1.Object
			Marshal() ([]byte, error)
		}{&pod, &node} {
			raw, err := o.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			inWire(raw, o)
			if Of(o) != "" {
				t.Fatalf("%T: noted %q", o, Of(o))
			}
			for part := range 16 {
				inWire(raw[:len(raw)*part/16], o)
			}
			if Of(o) != "" {
				t.Fatalf("cut short: noted %q", Of(o))
			}
			o.SetAnnotations(nil)
		}
	}
}

func TestInWire(t *testing.T) {
	for want, spec := range map[string][]byte{
		"spec.field 45":            with(nil, 45),
		"":                         with(nil, 44), // evictionResponders of 1.37
		"spec.containers.field 31": nested(2, with(nil, 31)),
		"spec.containers.volumeMounts.bindMountOptions": nested(2, nested(9, with(nil, 8))),
		"spec.volumes.volumeSource.field 31":            nested(1, nested(2, with(nil, 31))),
		"spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution.labelSelector.field 9": nested(18,
			nested(3, nested(1, nested(1, with(nil, 9))))),
	} {
		var pod v1.Pod
		inWire(append(nested(1, with(nil, 99)), append(nested(2, spec), nested(3, with(nil, 99))...)...), &pod)
		if Of(&pod) != want {
			t.Errorf("noted %q, want %q", Of(&pod), want)
		}
	}
}

// The unknown fields that a client reads from an API server are noted on the object: on single objects and in lists.
func TestClient(t *testing.T) {
	pod := v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	plain, _ := pod.Marshal()
	spec, _ := pod.Spec.Marshal()
	newer := append(nested(1, nested(1, []byte("b"))), nested(2, with(spec, 45))...)
	answer := func(kind string, raw []byte) []byte {
		head := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: raw,
			ContentType: runtime.ContentTypeProtobuf}
		content, err := head.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return append([]byte("k8s\x00"), content...)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
		switch r.URL.Path {
		case "/api/v1/pods":
			_, _ = w.Write(answer("PodList", append(nested(2, plain), nested(2, newer)...)))
		case "/api/v1/namespaces/x/pods/b":
			_, _ = w.Write(answer("Pod", newer))
		default:
			_, _ = w.Write(answer("NodeList", nested(2, append(nested(1, nested(1, []byte("n"))), nested(2, with(nil, 9))...))))
		}
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	config.ContentType = runtime.ContentTypeProtobuf
	client, err := NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	pods, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 2 || Of(&pods.Items[0]) != "" || Of(&pods.Items[1]) != "spec.field 45" {
		t.Errorf("pods %v, error %v", pods, err)
	}
	one, err := client.CoreV1().Pods("x").Get(t.Context(), "b", metav1.GetOptions{})
	if err != nil || one.Name != "b" || Of(one) != "spec.field 45" {
		t.Errorf("pod %v, error %v", one, err)
	}
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 1 || Of(&nodes.Items[0]) != "spec.field 9" {
		t.Errorf("nodes %v, error %v", nodes, err)
	}
}

package extender

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// Invariant A1.
func TestQuantiseIsMonotoneAndInRange(t *testing.T) {
	last := int64(0)
	for score := int32(-20); score <= 120; score++ {
		got := Quantise(score)
		if got < 0 || got > 10 || got < last {
			t.Errorf("Quantise(%d) = %d after %d", score, got, last)
		}
		last = got
	}
	for score, want := range map[int32]int64{-1: 0, 101: 10, -1 << 31: 0, 1<<31 - 1: 10} {
		if got := Quantise(score); got != want {
			t.Errorf("Quantise(%d) = %d, want %d", score, got, want)
		}
	}
}

func TestDecodeArguments(t *testing.T) {
	const pod = `{"metadata":{"name":"p","namespace":"d","creationTimestamp":null},"spec":{"containers":[{"name":"c",
		"resources":{"limits":{"cpu":"2"}}}]},"status":{}}`
	for _, c := range []struct {
		name, body string
		names      []string
		full       bool
	}{
		{"Names", `{"Pod":` + pod + `,"Nodes":null,"NodeNames":["b","a"]}`, []string{"b", "a"}, false},
		{"LowerCase", `{"pod":` + pod + `,"nodenames":["b","a"]}`, []string{"b", "a"}, false},
		{"CamelCase", `{"pod":` + pod + `,"nodes":null,"nodeNames":["a"]}`, []string{"a"}, false},
		{"UpperCase", `{"POD":` + pod + `,"NODENAMES":["a"]}`, []string{"a"}, false},
		{"UnknownFields", `{"Pod":` + pod + `,"NodeNames":["a"],"Zone":7}`, []string{"a"}, false},
		{"Empty", `{"Pod":` + pod + `,"NodeNames":[]}`, nil, false},
		{"Null", `{"Pod":` + pod + `,"Nodes":null,"NodeNames":null}`, nil, false},
		{"Absent", `{"Pod":` + pod + `}`, nil, false},
		{"Twice", `{"Pod":` + pod + `,"NodeNames":["a","b","a","a","c","b"]}`, []string{"a", "b", "c"}, false},
		{"ControlCharacters", `{"Pod":` + pod + `,"NodeNames":["a\u0000","\u001b[31m","a"]}`,
			[]string{"a\x00", "\x1b[31m", "a"}, false},
		{"EmptyName", `{"Pod":` + pod + `,"NodeNames":[""]}`, []string{""}, false},
		{"WholeNodes",
			`{"Pod":` + pod + `,"Nodes":{"metadata":{},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}}`,
			[]string{"a", "b"}, true},
		{"WholeNodesNullItems", `{"Pod":` + pod + `,"Nodes":{"items":null}}`, nil, true},
		{"NamesWin", `{"Pod":` + pod + `,"Nodes":{"items":[{"metadata":{"name":"x"}}]},"NodeNames":["a"]}`,
			[]string{"a"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, names, full, err := decodeArguments([]byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if cpu := got.Spec.Containers[0].Resources.Limits.Cpu(); cpu.MilliValue() != 2000 {
				t.Errorf("limit %v", cpu)
			}
			if diff := cmp.Diff(c.names, names); diff != "" && len(c.names)+len(names) > 0 {
				t.Error("names (-want +got):", diff)
			}
			if full != c.full {
				t.Errorf("full = %v", full)
			}
		})
	}
}

func TestDecodeArgumentsRefuses(t *testing.T) {
	for name, body := range map[string]string{
		"Empty": "", "Text": `"x"`, "Array": `[]`, "Truncated": `{"Pod":{`, "Trailing": `{"Pod":{}} x`,
		"NamesNotText": `{"Pod":{},"NodeNames":[1]}`, "NamesObject": `{"Pod":{},"NodeNames":{"a":1}}`,
		"MalformedQuantity": `{"Pod":{"spec":{"containers":[{"resources":{"limits":{"cpu":"x"}}}]}}}`,
		"Deep":              `{"Pod":` + strings.Repeat("[", 20000),
	} {
		if _, _, _, err := decodeArguments([]byte(body)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestEncodeEscapesNames(t *testing.T) {
	got, err := Encode(extenderv1.HostPriorityList{{Host: "a\x00\"<é", Score: 3}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"Host":"a\u0000\"\u003cé","Score":3}]`
	if string(got) != want {
		t.Errorf("got %s want %s", got, want)
	}
}

func TestEncodeOfNoNodesIsAnEmptyList(t *testing.T) {
	if got, _ := Encode(neutral(nil)); string(got) != "[]" {
		t.Errorf("got %s", got)
	}
}

// request is what a scheduler sends: a pod as stored, with managed fields, and names.
func request(tb testing.TB, nodes int) []byte {
	tb.Helper()
	yes, always := true, v1.ContainerRestartPolicyAlways
	container := func(name string) v1.Container {
		return v1.Container{
			Name: name, Image: "registry.example.com/team/application:v1.27.3@sha256:" + strings.Repeat("0a", 32),
			Ports: []v1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: v1.ProtocolTCP}},
			Env: []v1.EnvVar{{Name: "A", Value: "b"}, {Name: "POD_IP",
				ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "status.podIP"}}}},
			Resources: v1.ResourceRequirements{
				Limits:   v1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi")},
				Requests: v1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("1Gi")},
			},
			VolumeMounts: []v1.VolumeMount{
				{Name: "kube-api-access", ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}},
			SecurityContext: &v1.SecurityContext{RunAsNonRoot: &yes},
		}
	}
	sidecar := container("proxy")
	sidecar.RestartPolicy = &always
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web-7d4b9c6f5-x2x7k", Namespace: "shop",
			UID:    "8d0c2f6e-6f9a-4c55-9f0a-0c4b8f9d1e2a",
			Labels: map[string]string{"app": "web", "pod-template-hash": "7d4b9c6f5"}, CreationTimestamp: metav1.Now(),
			ManagedFields: []metav1.ManagedFieldsEntry{
				{Manager: "kube-controller-manager", Operation: "Update", APIVersion: "v1",
					FieldsType: "FieldsV1",
					FieldsV1:   metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{".":{},"f:app":{}}}}`)}}},
		Spec: v1.PodSpec{
			Containers: []v1.Container{container("main")}, InitContainers: []v1.Container{sidecar},
			Volumes: []v1.Volume{{Name: "kube-api-access"}},
			Tolerations: []v1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute"}},
		},
		Status: v1.PodStatus{Phase: v1.PodPending},
	}
	names := make([]string, nodes)
	for i := range names {
		names[i] = fmt.Sprintf("ip-10-20-%d-%d.eu-central-1.compute.internal", i/250, i%250)
	}
	body, err := json.Marshal(extenderv1.ExtenderArgs{Pod: pod, NodeNames: &names})
	if err != nil {
		tb.Fatal(err)
	}
	return body
}

func BenchmarkDecodeArguments(b *testing.B) {
	body := request(b, 500)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, names, _, err := decodeArguments(body); err != nil || len(names) != 500 {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	_, names, _, err := decodeArguments(request(b, 500))
	if err != nil {
		b.Fatal(err)
	}
	answer := neutral(names)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Encode(answer); err != nil {
			b.Fatal(err)
		}
	}
}

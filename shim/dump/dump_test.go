package dump

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/unknownfields"
)

// readAll reads a dump and returns the names of what came out, in order.
func readAll(text string) ([]string, Counts, error) {
	var names []string
	counts, err := Read(strings.NewReader(text), "cluster.json", Handler{
		Node: func(n *v1.Node) error { names = append(names, "node "+n.Name); return nil },
		Pod:  func(p *v1.Pod) error { names = append(names, "pod "+p.Namespace+"/"+p.Name); return nil },
	})
	return names, counts, err
}

const (
	node1 = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"node1"},"status":{"allocatable":{"cpu":"8"}}}`
	pod1  = `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":"pod1"}}`
	pdb1  = `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"b"},"spec":{"maxUnavailable":1}}`
)

func TestReadsEveryFormThatKubectlPrints(t *testing.T) {
	both := []string{"node node1", "pod default/pod1"}
	for _, c := range []struct {
		name, text string
		want       []string
		ignored    map[string]int
	}{
		{"List", `{"apiVersion":"v1","items":[` + node1 + "," + pod1 + "," + pdb1 + `],"kind":"List","metadata":{}}`,
			both, map[string]int{"PodDisruptionBudget": 1}},
		{"KindBeforeItems", `{"kind":"List","apiVersion":"v1","items":[` + node1 + "," + pod1 + `]}`, both, nil},
		{"SingleObject", node1, both[:1], nil},
		{"ObjectsOneAfterTheOther", node1 + "\n" + pod1, both, nil},
		{"ListsOneAfterTheOther", `{"items":[` + node1 + `],"kind":"List"}{"items":[` + pod1 + `],"kind":"List"}`, both,
			nil},
		{"TypedListItemsFirst", `{"items":[{"metadata":{"name":"node1"}}],"kind":"NodeList"}`, both[:1], nil},
		{"TypedListKindFirst", `{"kind":"PodList","items":[{"metadata":{"name":"pod1"}}]}`, both[1:], nil},
		{"OnlyOtherKinds", pdb1, nil, map[string]int{"PodDisruptionBudget": 1}},
		{"OtherGroupOfTheSameKind", `{"apiVersion":"metrics.k8s.io/v1beta1","kind":"Pod","metadata":{"name":"x"}}`, nil,
			map[string]int{"Pod": 1}},
		{"ByteOrderMark", "\uFEFF " + node1, both[:1], nil},
		{"NullItemsAfterAList", `{"items":null,"kind":"List"}` + node1, both[:1], nil},
		{"YAMLList", "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata:\n    name: node1\n" +
			"- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: pod1\n    namespace: default\n" +
			"kind: List\n", both, nil},
		{"YAMLDocuments", "# nodes\n---\nkind: Node\nmetadata: {name: node1}\n---\n---\nkind: Pod\n" +
			"metadata: {name: pod1}\n",
			both, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			names, counts, err := readAll(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, names); diff != "" {
				t.Error("(-want +got):", diff)
			}
			if counts.Nodes+counts.Pods != len(c.want) {
				t.Errorf("counted %+v", counts)
			}
			if len(c.ignored)+len(counts.Ignored) > 0 {
				if diff := cmp.Diff(c.ignored, counts.Ignored); diff != "" {
					t.Error("ignored (-want +got):", diff)
				}
			}
		})
	}
}

func TestErrorsNameFilePositionObjectAndField(t *testing.T) {
	list := func(items ...string) string {
		return `{"apiVersion":"v1","items":[` + strings.Join(items, ",") + `],"kind":"List"}`
	}
	container := func(resources string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"shop","name":"web"},"spec":{"nodeName":"node1",
			"containers":[{"name":"a"},{"name":"b","resources":` + resources + `}]}}`
	}
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"Empty", "", []string{"cluster.json: not a dump of a cluster", "it is empty"}},
		{"OnlySpace", " \n\t ", []string{"it is empty"}},
		{"EmptyList", `{"items":[],"kind":"List"}`, []string{"not a dump of a cluster", "it holds no object"}},
		{"OnlyComments", "# nothing\n---\n", []string{"it holds no object"}},
		{"PlainText", "NAME STATUS\nnode1 Ready\n",
			[]string{"document 0: not a dump", `it is "NAME STATUS node1 Ready"`}},
		{"Array", `[` + node1 + `]`, []string{"not a dump", `starts with '['`}},
		{"Binary", "\x00\x01\x02", []string{"not a dump", `starts with '\x00'`}},
		{"Number", "17", []string{"document 0: not a dump", `"17"`}},
		{"Markup", "<html><body>Sign in</body></html>", []string{`it is "<html><body>Sign in</body></html>"`}},
		{"WatchEvent", `{"type":"ADDED","object":` + node1 + "}", []string{"document 0: not a dump", "leave out --watch"}},
		{"Status", `{"kind":"Status","apiVersion":"v1","message":"pods is forbidden: User \"x\" cannot list"}`,
			[]string{"document 0: not a dump", `API server: "pods is forbidden: User \"x\" cannot list"`}},
		{"NoKind", `{"name":"x"}`, []string{"document 0: not a dump", "no kind"}},
		{"SecondDocument", node1 + ` 12`, []string{"document 1: not a dump"}},
		{"KindIsNumber", `{"kind":7}`, []string{"document 0: kind: expected a text"}},
		{"ItemsIsObject", `{"items":{},"kind":"List"}`, []string{"document 0: items: expected a list"}},
		{"ItemWithoutKind", list(node1, `{"metadata":{"name":"x"}}`), []string{"item 1: kind: missing"}},
		{"ItemIsText", list(`"x"`), []string{"item 0: "}},
		{"Truncated", list(node1, pod1)[:150], []string{"item 1: the JSON ends early, after byte"}},
		{"CutBehindAnItem", `{"items":[` + node1 + "," + pod1,
			[]string{fmt.Sprint("document 0: behind its items, of which there are 2: the JSON ends early, after byte ",
				11+len(node1)+len(pod1))}},
		{"CutBehindAComma", `{"items":[` + node1 + ",", []string{"item 1: the JSON ends early, after byte"}},
		{"CutBehindTheItems", `{"items":[` + node1 + "]", []string{"document 0: the JSON ends early, after byte"}},
		{"CutBehindTheKeyItems", `{"items":`, []string{"document 0: items: the JSON ends early, after byte"}},
		{"CutInTheSecondDocument", node1 + `{"items":[` + pod1,
			[]string{"document 1: behind its items, of which there are 1: the JSON ends early, after byte"}},
		{"CutInAKey", node1 + `{"ite`, []string{"document 1: the JSON ends early, after byte"}},
		{"WrongBracket", `{"items":[` + node1 + "}",
			[]string{"document 0: behind its items, of which there are 1: not JSON after byte", "'}'"}},
		{"WrongBracketBehindAll", `{"kind":"List"]`, []string{"document 0: not JSON after byte", "']'"}},
		{"WrongBracketBetween", node1 + "]", []string{"document 1: not JSON after byte", "']'"}},
		{"Syntax", list(node1, `{"kind":Pod}`), []string{"item 1: not JSON after byte"}},
		{"MalformedQuantity", list(node1, container(`{"limits":{"cpu":"1","memory":"1GB"}}`)),
			[]string{`item 1 (Pod "shop/web"): spec.containers[1].resources.limits.memory: `, "quantities must match"}},
		{"WrongType", list(container(`{"limits":["cpu"]}`)),
			[]string{`item 0 (Pod "shop/web"): spec.containers[1].resources.limits`}},
		{"MalformedTime", list(`{"kind":"Node","metadata":{"name":"n","creationTimestamp":"yesterday"}}`),
			[]string{`item 0 (Node "n"): metadata.creationTimestamp: `}},
		{"AllocatableIsText", list(`{"kind":"Node","metadata":{"name":"n"},"status":{"allocatable":"8"}}`),
			[]string{`item 0 (Node "n"): status.allocatable: `}},
		{"NoName", list(`{"kind":"Pod","metadata":{}}`), []string{"item 0 (Pod): metadata.name: missing"}},
		{"NodeTwice", list(node1, pod1, node1),
			[]string{`item 2 (Node "node1"): metadata.name: the same object as item 0: leave one of them out`}},
		{"PodTwiceInTwoLists", list(pod1) + list(pod1),
			[]string{`document 1 item 0 (Pod "default/pod1"): metadata.name: the same object as item 0`}},
		{"ControlCharactersInName", list(`{"kind":"Node","metadata":{"name":"a\u0000\u001b[31m"},"status":7}`),
			[]string{`(Node "a\x00\x1b[31m"): status: `}},
		{"YAMLSyntax", "kind: Node\n metadata: x\n", []string{"document 0 is not YAML"}},
		{"YAMLAliasBomb", "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n" +
			"c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
			"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\n" +
			"f: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n" +
			"g: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n", []string{"document 0 is not YAML"}},
		{"DeepNesting", `{"kind":"Pod","metadata":` + strings.Repeat(`{"a":`, 20000), []string{"cluster.json: "}},
		{"NotUTF8Text", "\xff\xfe\x00k", []string{"cluster.json: "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := readAll(c.text)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q: %v", want, err)
				}
			}
		})
	}
}

func TestObjectsAreBounded(t *testing.T) {
	tooMuch := strings.Repeat("x", MaxDocumentBytes+1)
	for name, text := range map[string]string{
		"Item":  `{"items":[{"kind":"Pod","metadata":{"name":"`,
		"Field": `{"kind":"`,
		"YAML":  "kind: ",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(io.MultiReader(strings.NewReader(text), strings.NewReader(tooMuch)), "big", Handler{})
			if err == nil || !strings.Contains(err.Error(), "larger than the limit of") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestHandlerErrorsNameTheObject(t *testing.T) {
	full := errors.New("no room")
	_, err := Read(strings.NewReader(pod1), "f", Handler{Pod: func(*v1.Pod) error { return full }})
	if !errors.Is(err, full) || !strings.Contains(err.Error(), `f: document 0 (Pod "default/pod1"): no room`) {
		t.Errorf("got %v", err)
	}
}

func TestReadFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.json")
	if err := os.WriteFile(file, []byte(node1), 0o600); err != nil {
		t.Fatal(err)
	}
	nodes := 0
	handler := Handler{Node: func(*v1.Node) error { nodes++; return nil }}
	if _, err := ReadFiles(t.Context(), []string{file}, nil, handler); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFiles(t.Context(), []string{"-"}, strings.NewReader(node1), handler); err != nil || nodes != 2 {
		t.Fatal(err, nodes)
	}
	if _, err := ReadFiles(t.Context(), []string{file + "x"}, nil, handler); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := ReadFiles(t.Context(), []string{"-"}, strings.NewReader("x"), handler); err == nil ||
		!strings.HasPrefix(err.Error(), "standard input: ") {
		t.Errorf("got %v", err)
	}
}

// dumpOf yields a List of n pods of the size that kubectl prints, without holding it.
func dumpOf(n int) io.Reader {
	r, w := io.Pipe()
	go func() {
		fmt.Fprint(w, `{"apiVersion":"v1","items":[`)
		for i := range n {
			if i > 0 {
				fmt.Fprint(w, ",")
			}
			fmt.Fprintf(w, podText, i, i%100, strings.Repeat("x", 1500))
		}
		fmt.Fprint(w, `],"kind":"List"}`)
		w.Close()
	}()
	return r
}

const podText = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"pod-%d","namespace":"default","uid":"u"},
	"spec":{"nodeName":"node-%d","containers":[{"name":"main","image":"registry.example/app:v1","args":["%s"],
	"resources":{"requests":{"cpu":"500m","memory":"1Gi"},"limits":{"cpu":"2","memory":"4Gi"}}}]},"status":{"phase":"Running"}}`

// The memory for a long list is that of its names, not of its objects.
func TestListsAreStreamed(t *testing.T) {
	const pods = 10000
	most := uint64(0)
	counts, err := Read(dumpOf(pods), "big", Handler{Pod: func(*v1.Pod) error {
		most++
		if most%(pods/4) == 0 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			if m.HeapAlloc > 12<<20 { // the text alone has 18 MiB
				return fmt.Errorf("%d MiB in use", m.HeapAlloc>>20)
			}
		}
		return nil
	}})
	if err != nil || counts.Pods != pods {
		t.Error(counts, err)
	}
}

func BenchmarkReadPods(b *testing.B) {
	const pods = 2000
	b.SetBytes(pods * int64(len(podText)+1500))
	for b.Loop() {
		if _, err := Read(dumpOf(pods), "big", Handler{Pod: func(*v1.Pod) error { return nil }}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/pods, "us/pod")
}

func TestHandsOverWhatFiltersLookUp(t *testing.T) {
	const text = `{"kind":"List","items":[` + node1 + `,
		{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"team":"red"}}},
		{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data"},"spec":{"volumeName":"pv-1"}},
		{"apiVersion":"storage.k8s.io/v1","kind":"CSINode","metadata":{"name":"node1"},"spec":{"drivers":[]}},
		{"apiVersion":"other.example.com/v1","kind":"StorageClass","metadata":{"name":"not-this-one"}}]}
		{"kind":"StorageClassList","items":[{"metadata":{"name":"fast"},"provisioner":"p"}]}`
	var got []string
	handler := Handler{
		Node: func(*v1.Node) error { return nil },
		Pod:  func(*v1.Pod) error { return nil },
		Object: func(o any) error {
			got = append(got, fmt.Sprintf("%T %s", o, o.(interface{ GetName() string }).GetName()))
			return nil
		},
	}
	counts, err := Read(strings.NewReader(text), "cluster.json", handler)
	want := []string{"*v1.Namespace shop", "*v1.PersistentVolumeClaim data", "*v1.CSINode node1",
		"*v1.StorageClass fast"}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
	if !cmp.Equal(counts.Objects,
		map[string]int{"Namespace": 1, "PersistentVolumeClaim": 1, "CSINode": 1, "StorageClass": 1}) ||
		!cmp.Equal(counts.Ignored, map[string]int{"StorageClass": 1}) {
		t.Errorf("counts %+v", counts)
	}
	handler.Object = nil // who has no use for them does not see them
	if counts, err = Read(strings.NewReader(text), "cluster.json", handler); err != nil ||
		counts.Ignored["Namespace"] != 1 {
		t.Errorf("counts %+v (%v)", counts, err)
	}
	handler.Object = func(any) error { return nil }
	const claim = `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data"}}`
	_, err = Read(strings.NewReader(claim+claim), "cluster.json", handler)
	if err == nil || !strings.Contains(err.Error(),
		`PersistentVolumeClaim "default/data"): metadata.name: the same object as document 0`) {
		t.Error(err)
	}
}

func TestHandsOverWhatPlannersLookUp(t *testing.T) {
	const text = `{"kind":"List","items":[
		{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"web"},"status":{"disruptionsAllowed":1,"currentHealthy":2,"desiredHealthy":1,"expectedPods":2}},
		{"apiVersion":"v1","kind":"ReplicationController","metadata":{"name":"rc","namespace":"shop"}},
		{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"rs"}},
		{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"sts"}},
		{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"ds"}},
		{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"deploy"}},
		{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"job"}},
		{"apiVersion":"policy/v1alpha1","kind":"PodDisruptionBudget","metadata":{"name":"not-this-one"}}]}`
	var got []string
	handler := Handler{PlannerObject: func(o any) error {
		object := o.(metav1.Object)
		got = append(got, fmt.Sprintf("%T %s/%s", o, object.GetNamespace(), object.GetName()))
		return nil
	}}
	counts, err := Read(strings.NewReader(text), "cluster.json", handler)
	want := []string{"*v1.PodDisruptionBudget default/web", "*v1.ReplicationController shop/rc",
		"*v1.ReplicaSet default/rs",
		"*v1.StatefulSet default/sts", "*v1.DaemonSet default/ds", "*v1.Deployment default/deploy",
		"*v1.Job default/job"}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
	if counts.Objects["PodDisruptionBudget"] != 1 || counts.Ignored["PodDisruptionBudget"] != 1 {
		t.Errorf("counts %+v", counts)
	}
	if counts, err = Read(strings.NewReader(text), "cluster.json", Handler{}); err != nil || len(counts.Objects) != 0 ||
		counts.Ignored["Job"] != 1 {
		t.Errorf("who plans nothing does not see them: %+v (%v)", counts, err)
	}
}

// The readable part of a broken pod or node is handed over, with a note of what filters would have read.
func TestHandsOverWhatCanBeReadOfBrokenObjects(t *testing.T) {
	var got []Broken
	_, err := Read(strings.NewReader(`---
{apiVersion: v1, kind: Pod, metadata: {name: p, labels: {app: web}, creationTimestamp: yesterday}, spec: {nodeName: n1,
  tolerations: [oops, {key: k}, 7], containers: [{name: c, resources: {requests: {cpu: 100 m, memory: 1Gi}}}]}}
---
{apiVersion: v1, kind: Node, metadata: {name: n1}, spec: {taints: oops}, status: {allocatable: {cpu: 4}}}
---
{apiVersion: v1, kind: Pod, metadata: 7, spec: {nodeName: n1}}
`), "d", Handler{Node: func(*v1.Node) error { return nil }, Pod: func(*v1.Pod) error { return nil },
		Broken: func(b Broken) { got = append(got, b) }})
	if err != nil || len(got) != 3 {
		t.Fatalf("%v, %+v", err, got)
	}
	pod, _ := got[0].Object.(*v1.Pod)
	if pod == nil || pod.Namespace != "default" || pod.Labels["app"] != "web" || pod.Spec.NodeName != "n1" ||
		len(pod.Spec.Tolerations) != 1 || pod.Spec.Containers[0].Resources.Requests.Cpu().Value() != -1 ||
		pod.Spec.Containers[0].Resources.Requests.Memory().Value() != 1<<30 ||
		unknownfields.Of(pod) != "spec.containers[0].resources.requests.cpu,spec.tolerations[0],spec.tolerations[2]" {
		t.Errorf("%+v", pod)
	}
	node, _ := got[1].Object.(*v1.Node)
	if node == nil || node.Status.Allocatable.Cpu().Value() != 4 || unknownfields.Of(node) != "spec.taints" {
		t.Errorf("%+v", node)
	}
	if got[2].Object != nil {
		t.Errorf("%+v", got[2].Object)
	}
}

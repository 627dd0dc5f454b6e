package dump

import (
	"strings"
	"testing"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
)

// FuzzRead: whatever a file holds, it is read or refused with an error that is text and names the file; and the counts
// are those of the objects that were handed out.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		node1, pod1, pdb1, node1 + "\n" + pod1, `{"kind":"PodList","items":[{"metadata":{"name":"pod1"}}]}`,
		`{"apiVersion":"v1","items":[` + node1 + "," + pod1 + "," + pdb1 + `],"kind":"List","metadata":{}}`,
		"kind: Node\nmetadata: {name: node1}\n---\nkind: Pod\nmetadata: {name: pod1}\n", "\uFEFF " + node1,
		"a: &a [*a, *a]", "[", "{", "",
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"},"spec":{"containers":[{"resources":{"requests":{"cpu":"1e30","a.b/c":"-1"}}}]}}`,
		"a: &a {b: 1}\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\nd: [*c,*c,*c,*c]",
		warning + node1 + "\n" + klogged + "---\n" + nodesYAML + "...\n\uFEFF" + pod1 + "\x00\x1a\n",
		"%YAML 1.1\n--- {a: b}\n",
		"a: &a {kind: Node, metadata: &m {name: n}}\nitems: [{<<: *a, metadata: {<<: [*m, *m], name: k}}]\nkind: List\n",
		node1 + "\nError from server (Forbidden): x\n", "NAME   STATUS\nn  Ready\n", "PK\x03\x04",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		nodes, pods, others := 0, 0, 0
		other := func(any) error { others++; return nil }
		counts, err := Read(strings.NewReader(string(data)), "cluster.json", Handler{
			Node:   func(*v1.Node) error { nodes++; return nil },
			Pod:    func(*v1.Pod) error { pods++; return nil },
			Object: other, PlannerObject: other,
		})
		if err != nil {
			if text := err.Error(); !strings.HasPrefix(text, "cluster.json: ") || !utf8.ValidString(text) {
				t.Errorf("error %q", text)
			}
			return
		}
		told := 0
		for _, n := range counts.Objects {
			told += n
		}
		if counts.Nodes != nodes || counts.Pods != pods || told != others {
			t.Errorf("counts %+v of %d nodes, %d pods, %d others", counts, nodes, pods, others)
		}
	})
}

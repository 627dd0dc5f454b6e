package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// No group grows for a pod that a node takes which starts, or that finds room where pods end or are expendable.
func TestRankKnowsTheRoomThatALoopFinds(t *testing.T) {
	const status = "capacity: {cpu: 4, memory: 16Gi, pods: 110}, allocatable: {cpu: 4, memory: 16Gi, pods: 110}"
	const groups = "apiVersion: loadline.dev/v1alpha1\nkind: NodeGroup\nmetadata: {name: g}\n" +
		"spec: {max: 20, price: 0.2, nodeSelector: {pool: g}, " +
		"template: {metadata: {labels: {pool: g}}, status: {" + status + "}}}\n"
	file := filepath.Join(t.TempDir(), "groups.yaml")
	if err := os.WriteFile(file, []byte(groups), 0o600); err != nil {
		t.Fatal(err)
	}
	node := func(pool, rest string) string {
		return "{apiVersion: v1, kind: Node, metadata: {name: n1, creationTimestamp: '2026-11-20T11:59:00Z', " +
			"labels: {pool: " + pool + "}}, " + rest + ", status: {" + status +
			", conditions: [{type: Ready, status: 'True'}]}}\n---\n"
	}
	pod := func(name, meta, spec, status string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: " + name + ", namespace: shop" + meta + "}, spec: {" + spec +
			"containers: [{name: c, resources: {requests: {cpu: 3}}}]}, status: {" + status + "}}\n---\n"
	}
	for name, c := range map[string]struct{ cluster, where, note string }{
		"starts": {node("g", "spec: {taints: [{key: node.kubernetes.io/not-ready, effect: NoSchedule}]}") +
			pod("web", "", "", ""), "a node of g on its way", "1 pod is expected on a node of g on its way."},
		"expendable": {node("old", "spec: {}") + pod("fill", "", "nodeName: n1, priority: -20, ", "phase: Running") +
			pod("web", "", "", ""), "n1", "1 pod is expected on n1, where pods end or are expendable."},
		"nominated": {node("old", "spec: {}") +
			pod("fill", ", deletionTimestamp: '2026-11-20T12:00:20Z'", "nodeName: n1, ", "phase: Running") +
			pod("web", "", "priority: 1000, ", "nominatedNodeName: n1"), "n1",
			"1 pod is expected on n1, where pods end or are expendable."},
	} {
		ask := func(cluster string, command ...string) string {
			out, errs, code := run(t, "loadline", cluster, append(command, "-f", "-", "--groups", file, "--now",
				"2026-11-20T12:00:00Z")...)
			if code != 0 {
				t.Fatalf("%s: exit %d: %s", name, code, errs)
			}
			return out
		}
		out := ask(c.cluster, "rank")
		if !strings.HasPrefix(out, "no node group would help a pod\n") || !strings.Contains(out, c.note) {
			t.Errorf("%s: rank says\n%s", name, out)
		}
		want := "shop/web finds room on " + c.where + ", so no group grows for it\n"
		if out := ask(c.cluster, "why-not", "shop/web"); !strings.HasPrefix(out, want) {
			t.Errorf("%s: why-not says\n%s", name, out)
		}
		out = ask(c.cluster+pod("more", "", "", ""), "rank") // for which there is no such room
		if !strings.HasPrefix(out, "g: 1 node for 1 pod\n") || !strings.Contains(out, "2 pods wait") {
			t.Errorf("%s: with one pod more rank says\n%s", name, out)
		}
	}
}

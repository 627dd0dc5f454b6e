package cli

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// judging are the commands that judge nodes by their pods, without a file of groups.
var judging = []string{"drain", "bill", "consolidate", "plan", "slack", "rank"}

// Each cluster has pods of kube-system or of DaemonSets: a dump with pods of one namespace alone was made without -A,
// unless somebody has written its objects.
func TestADumpOfOneNamespaceIsDoubted(t *testing.T) {
	node := []fieldNode{{name: "n1", labels: "a: b"}}
	const created = "creationTimestamp: '2026-02-17T08:00:00Z'"
	text := func(pods ...fieldPod) string {
		data, err := os.ReadFile(fieldDump(t, node, pods))
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(data), "uid: u-web-", created+", uid: u-web-")
	}
	one := text(fieldPod{name: "web-0", node: "n1", cpu: "1"}, fieldPod{name: "web-1", node: "n1", cpu: "1"})
	const note = "All pods are of namespace shop: was -A left out?"
	for name, c := range map[string]struct {
		dump  string
		noted bool
	}{
		"one namespace":   {one, true},
		"two namespaces":  {strings.Replace(one, "web-1, namespace: shop", "web-1, namespace: zoo", 1), false},
		"kube-system":     {strings.ReplaceAll(one, "namespace: shop", "namespace: kube-system"), false},
		"of a DaemonSet":  {strings.ReplaceAll(one, "kind: ReplicaSet", "kind: DaemonSet"), false},
		"written by hand": {strings.ReplaceAll(one, created+", ", ""), false},
	} {
		for _, command := range judging {
			out, errs, code := run(t, "loadline", c.dump, command, "-f", "-")
			if code != 0 || strings.Contains(out, "left out") != c.noted || c.noted && !strings.Contains(out, note) {
				t.Errorf("%s: %s: exit %d, %s%s", name, command, code, errs, out)
			}
		}
	}
}

// A node is not empty because its pods are on nodes that the dump lacks.
func TestPodsOnNodesThatAreNotThereAreTold(t *testing.T) {
	node := []fieldNode{{name: "n1", labels: "a: b"}}
	away := []fieldPod{{name: "web-0", node: "gone", cpu: "1"}, {name: "web-1", node: "gone-2", cpu: "1"}}
	const note = "Not counted: 2 pods on nodes that are not there."
	elsewhere := fieldDump(t, node, away)
	here := fieldDump(t, node, append(away, fieldPod{name: "web-2", node: "n1", cpu: "1"}))
	waits := fieldDump(t, node, append(away, fieldPod{name: "web-2", node: `""`, cpu: "1"}))
	for _, command := range judging {
		const want = "holds no pod of its nodes, but 2 pods on nodes that are not there, so that each node looks empty"
		if _, errs, code := run(t, "loadline", "", command, "-f", elsewhere); code != 1 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d, %s", command, code, errs)
		}
		for _, args := range [][]string{{elsewhere, "--no-pods"}, {here}, {waits}} {
			out, errs, code := run(t, "loadline", "", append([]string{command, "-f"}, args...)...)
			if code != 0 || strings.Count(out, note) != 1 {
				t.Errorf("%s %v: exit %d, %s%s", command, args, code, errs, out)
			}
		}
	}
	var drain drainAnswer
	out, _, _ := run(t, "loadline", "", "drain", "-f", here, "-o", "json")
	if err := json.Unmarshal([]byte(out), &drain); err != nil || !strings.Contains(strings.Join(drain.Notes, " "), note) {
		t.Errorf("%v: %v", err, drain.Notes)
	}
}

package cli

import (
	"strings"
	"testing"
)

// brokenNode is a dump with a node that cannot be read, and a pod on it.
const brokenNode = `{"apiVersion": "v1", "kind": "List", "items": [
	{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "a"},
		"status": {"allocatable": {"cpu": "4", "memory": "8Gi"}}},
	{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "bad"},
		"status": {"allocatable": {"cpu": "four", "memory": "16Gi"}}},
	{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p", "namespace": "d"}, "spec": {"nodeName": "bad",
		"containers": [{"name": "c", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]}}]}`

// A node that cannot be read is in no row and in no sum, and neither are its pods.
func TestTopLeavesOutNodesThatCannotBeRead(t *testing.T) {
	out, errs, code := run(t, "loadline", brokenNode, "top", "-f", "-")
	rest, foot, _ := strings.Cut(out, "1 node, 1 pod, 0 pending.")
	if code != 0 || strings.Contains(rest, "bad") || !strings.Contains(rest, "0.0 cpu / 4.0") ||
		!strings.Contains(rest, "0 / 8Gi") || strings.Contains(rest, "24Gi") ||
		!strings.Contains(foot, "Not counted: 1 pod on nodes that are not there.") ||
		!strings.Contains(foot, "1 object was left out: Node bad: ") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
}

// Sums saturate, and what is shown of the largest amount is no negative one.
func TestTopShowsTheLargestAmounts(t *testing.T) {
	const node = `{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "%s"},
		"status": {"allocatable": {"cpu": "4000000000000000", "memory": "4000000000000000000"}}}`
	dump := `{"apiVersion": "v1", "kind": "List", "items": [` + strings.ReplaceAll(node, "%s", "a") + "," +
		strings.ReplaceAll(node, "%s", "b") + "," + strings.ReplaceAll(node, "%s", "c") + "]}"
	out, errs, code := run(t, "loadline", dump, "top", "-f", "-")
	if code != 0 || strings.Contains(out, "-9") || !strings.Contains(out, "0.0 cpu / 9223372036854776.0") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
}

// A pod that cannot be read takes nothing from the answer about all others, and is named.
func TestTopLeavesOutWhatCannotBeRead(t *testing.T) {
	const dump = `{"apiVersion": "v1", "kind": "List", "items": [
		{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "a"},
			"status": {"allocatable": {"cpu": "4", "memory": "8Gi"}}},
		{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "good", "namespace": "d"}, "spec": {"nodeName": "a",
			"containers": [{"name": "c", "resources": {"limits": {"cpu": "3"}}}]}},
		{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "bad", "namespace": "d"}, "spec": {"nodeName": "a",
			"containers": [{"name": "c", "resources": {"limits": {"cpu": "two"}}}]}}]}`
	for _, c := range []struct{ form, want string }{{"table", "1 object was left out: Pod d/bad"},
		{"json", `"name": "bad"`}, {"html", "1 object was left out: Pod d/bad"}} {
		out, errs, code := run(t, "loadline", dump, "top", "-f", "-", "-o", c.form)
		if code != 0 || !strings.Contains(out, "0.75") || !strings.Contains(out, c.want) {
			t.Errorf("%s: %d %s\n%s", c.form, code, errs, out)
		}
	}
}

// A node that cannot be read is of no class of nodes.
func TestSlackLeavesOutNodesThatCannotBeRead(t *testing.T) {
	out, errs, code := run(t, "loadline", brokenNode, "slack", "-f", "-")
	if code != 0 || strings.Contains(out, "cpu 0m") || !strings.Contains(out, "cpu 4000m,memory 8Gi") ||
		!strings.Contains(out, "1 object was left out: Node bad: ") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
}

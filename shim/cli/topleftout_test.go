package cli

import (
	"strings"
	"testing"
)

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

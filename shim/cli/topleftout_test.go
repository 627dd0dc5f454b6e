package cli

import (
	"strings"
	"testing"
)

// A pod that cannot be read takes nothing from the answer about all others, and is named.
func TestTopLeavesOutWhatCannotBeRead(t *testing.T) {
	const dump = `{"apiVersion": "v1", "kind": "List", "items": [
		{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi"}}},
		{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "good", "namespace": "d"}, "spec": {"nodeName": "a",
			"containers": [{"name": "c", "resources": {"limits": {"cpu": "3"}}}]}},
		{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "bad", "namespace": "d"}, "spec": {"nodeName": "a",
			"containers": [{"name": "c", "resources": {"limits": {"cpu": "two"}}}]}}]}`
	out, errs, code := run(t, "loadline", dump, "top", "-f", "-")
	if code != 0 || !strings.Contains(out, "0.75") || !strings.Contains(out, "1 object was left out: Pod d/bad") {
		t.Errorf("%d %s\n%s", code, errs, out)
	}
	out, errs, code = run(t, "loadline", dump, "top", "-f", "-", "-o", "json")
	if code != 0 || !strings.Contains(out, `"name": "bad"`) {
		t.Errorf("%d %s\n%s", code, errs, out)
	}
}

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// lineCluster has two nodes of 10 Gi. Limits of memory: on a 8 and 8 Gi, on b 4 Gi and a pod without a limit.
func lineCluster(t *testing.T) string {
	t.Helper()
	var objects []string
	for _, name := range []string{"a", "b"} {
		objects = append(objects, fmt.Sprintf(`{"kind": "Node", "apiVersion": "v1", "metadata": {"name": %q},
			"status": {"allocatable": {"cpu": "4", "memory": "10Gi", "pods": "110"}}}`, name))
	}
	for name, at := range map[string][2]string{"p1": {"a", "8Gi"}, "p2": {"a", "8Gi"}, "p3": {"b", "4Gi"}, "p4": {"b", ""}} {
		limits := ""
		if at[1] != "" {
			limits = fmt.Sprintf(`, "limits": {"memory": %q}`, at[1])
		}
		objects = append(objects, fmt.Sprintf(`{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": %q, "namespace": "ns"},
			"spec": {"nodeName": %q, "containers": [{"name": "c", "resources":
			{"requests": {"cpu": "100m", "memory": "1Gi"}%s}}]}, "status": {"phase": "Running"}}`, name, at[0], limits))
	}
	file := filepath.Join(t.TempDir(), "cluster.json")
	text := `{"kind": "List", "apiVersion": "v1", "items": [` + strings.Join(objects, ",") + `]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTopShowsTheLoadLine(t *testing.T) {
	file := lineCluster(t)
	out, errs, code := run(t, "loadline", "", "top", "-f", file, "--max-limits-over-allocatable", "memory=1.5", "-o", "json")
	if code != 0 {
		t.Fatal(errs)
	}
	var got topAnswer
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	const gi = 1 << 30
	want := []topLineNode{{"a", "memory", "1.5", 16 * gi, 15 * gi, -gi}, {"b", "memory", "1.5", 14 * gi, 15 * gi, gi}}
	if got.Line == nil || got.Line.NodesAbove != 1 || len(got.Line.Nodes) != 2 || got.Line.Nodes[0] != want[0] ||
		got.Line.Nodes[1] != want[1] {
		t.Errorf("got %+v, want %+v", got.Line, want)
	}
	out, _, _ = run(t, "loadline", "", "top", "-f", file, "--max-limits-over-allocatable", "memory=1.5")
	for _, says := range []string{"1 node above the load line.", "above by 1Gi", "HEADROOM"} {
		if !strings.Contains(out, says) {
			t.Errorf("%q is not in\n%s", says, out)
		}
	}
	if out, _, _ = run(t, "loadline", "", "top", "-f", file, "-o", "json"); strings.Contains(out, `"line"`) {
		t.Errorf("without a line: %s", out)
	}
}

// Two nodes of 10 Gi take, of 8, 8, 4 and 10 Gi (no limit: the node), at a line of 2, all; at 1.5 never 8 with 8 or 10,
// so that one waits; at 1 one pod each; at 0.5 only the 4 Gi, wherever.
func TestSimulateComparesLines(t *testing.T) {
	out, errs, code := run(t, "loadline", "", "simulate", "-f", lineCluster(t), "--lines", "0.5,1,1.5,2", "-o", "json")
	if code != 0 {
		t.Fatal(errs)
	}
	var got struct{ Lines []lineData }
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	said := []string{}
	for _, line := range got.Lines {
		said = append(said, fmt.Sprintf("%s: above %d, wait %d, more %d, never %d", line.Line, line.NodesAbove,
			len(line.Waiting), line.NodesMore, len(line.Unplaced)))
	}
	want := []string{": above 0, wait 0, more 0, never 0", "0.5: above 2, wait 3, more 0, never 3",
		"1: above 2, wait 2, more 2, never 0", "1.5: above 1, wait 1, more 1, never 0", "2: above 0, wait 0, more 0, never 0"}
	if strings.Join(said, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(said, "\n"), strings.Join(want, "\n"))
	}
	if never := got.Lines[1].Unplaced; strings.Join(never, " ") != "ns/p1 ns/p2 ns/p4" {
		t.Errorf("never: %v", never)
	}
	out, _, _ = run(t, "loadline", "", "simulate", "-f", lineCluster(t), "--lines", "0.5,1.5")
	for _, says := range []string{"NODES MORE", "0.5, no node like those that are there takes: ns/p1, ns/p2, ns/p4"} {
		if !strings.Contains(out, says) {
			t.Errorf("%q is not in\n%s", says, out)
		}
	}
	if out, _, code = run(t, "loadline", "", "simulate", "-f", lineCluster(t), "--lines", "1", "-o", "html"); code != 0 ||
		!strings.Contains(out, "<html") {
		t.Errorf("html: code %d", code)
	}
	for _, args := range [][]string{{"--lines", "0"}, {"--lines", "1", "--line-resource", "gpu"}, {"--lines", "1", "--preset", "kep217"}} {
		if _, errs, code := run(t, "loadline", "", append([]string{"simulate", "-f", lineCluster(t)}, args...)...); code == 0 {
			t.Errorf("%v is taken: %s", args, errs)
		}
	}
}

// Under the rules of a plugin whose pods without limits count as their requests, the same pods count 8, 8, 4 and 1 Gi:
// at 1.5 two nodes of 10 Gi take all.
func TestTopComparesLines(t *testing.T) {
	top, errs, code := run(t, "loadline", "", "top", "-f", lineCluster(t), "--lines", "1,1.5", "-o", "json")
	if code != 0 {
		t.Fatal(errs)
	}
	simulated, _, _ := run(t, "loadline", "", "simulate", "-f", lineCluster(t), "--lines", "1,1.5", "-o", "json")
	if top != simulated || !strings.Contains(top, `"nodesMore"`) {
		t.Errorf("got %s, simulate says %s", top, simulated)
	}
	config := filepath.Join(t.TempDir(), "scheduler.yaml")
	if err := os.WriteFile(config, []byte(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: NodeResourcesLimitAware}]}}
  pluginConfig:
  - name: NodeResourcesLimitAware
    args:
      maxLimitsOverAllocatable: {memory: 2}
      missingLimits: [{pods: Others, resource: memory, rule: Request}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := run(t, "loadline", "", "top", "-f", lineCluster(t), "--lines", "1.5", "--scheduler-config-file", config)
	if code != 0 || !regexp.MustCompile(`1\.5 +1 +0 +0 +0\n`).MatchString(out) {
		t.Errorf("code %d: %s%s", code, out, errs)
	}
	if _, errs, code := run(t, "loadline", "", "top", "-f", lineCluster(t), "--lines", "0"); code != 2 {
		t.Errorf("a line of 0: code %d: %s", code, errs)
	}
}

func TestFitSaysWhyTheLoadLineRefuses(t *testing.T) {
	out, errs, _ := run(t, "loadline", "", "why-not", "ns/p3", "a", "-f", lineCluster(t),
		"--max-limits-over-allocatable", "memory=1.5")
	if !strings.Contains(out, "load line: memory limits would exceed 1.5 x allocatable") {
		t.Errorf("got %s%s", out, errs)
	}
	out, errs, _ = run(t, "loadline", "", "why", "ns/p3", "-f", lineCluster(t), "--max-limits-over-allocatable",
		"memory=1.5", "-o", "json")
	if !strings.Contains(out, "load line: memory limits would exceed 1.5 x allocatable") {
		t.Errorf("why: got %s%s", out, errs)
	}
}

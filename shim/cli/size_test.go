package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loadline.dev/shim/internal/testing/enginetest"
)

// sizeNow is the time of the passes: some minutes after the taints in testdata.
const sizeNow = "2026-02-01T09:05:00Z"

// sizeJSON runs `size -o json`.
func sizeJSON(t *testing.T, args ...string) sizeAnswer {
	t.Helper()
	t.Setenv("LOADLINE_LIBRARY", enginetest.Library(t))
	out, errs, code := run(t, "loadline", "", append([]string{"size", "-o", "json", "--now", sizeNow}, args...)...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var got sizeAnswer
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

func number(value *float64) any {
	if value == nil {
		return nil
	}
	return *value
}

// The worked examples of Escalator's calculations document, from its own file, in both modes.
func TestEscalatorsWorkedExamples(t *testing.T) {
	groups := []string{"--groups", "testdata/size-groups.yaml"}
	for _, mode := range []string{"default", "compat"} {
		t.Run(mode, func(t *testing.T) {
			args := append([]string{"--size-mode", mode}, groups...)
			got := sizeJSON(t, append(args, "-f", "testdata/size.yaml")...)
			g := got.Groups[0]
			if g.Name != "shared" || g.Action != "scale-up" || g.Delta != 6 || g.AskCloud != 6 ||
				number(g.CPUPercent) != 250.0 || number(g.MemoryPercent) != 12.5 ||
				number(g.CPUPercentAfter) != 62.5 || number(g.MemoryPercentAfter) != 3.125 || g.FromZero ||
				g.Pods != 10 || g.PendingPods != 8 {
				t.Errorf("got %+v", g)
			}
			zero := append(args, "-f", "testdata/size-zero.yaml")
			for _, c := range []struct {
				args  []string
				delta int64
				after any
			}{{nil, 1, nil}, {[]string{"--state", "testdata/size-state.yaml"}, 3, 60.0}} {
				g := sizeJSON(t, append(slices.Clone(zero), c.args...)...).Groups[0]
				if !g.FromZero || g.CPUPercent != nil || g.MemoryPercent != nil || g.Delta != c.delta ||
					number(g.CPUPercentAfter) != c.after {
					t.Errorf("%v: got %+v", c.args, g)
				}
			}
		})
	}
}

// A placeholder of slack that waits is no demand; an ordinary pod with its label is: 11 pods of 500m in place of 10.
func TestPlaceholdersThatWaitAreNoDemand(t *testing.T) {
	const placeholder = "\n---\napiVersion: v1\nkind: Pod\n" +
		"metadata: {name: p, namespace: NAMESPACE, labels: {loadline.dev/placeholder: \"true\"}, ownerReferences: " +
		"[{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: u, controller: true}]}\n" +
		"spec: {priority: -10, nodeSelector: {customer: shared}, containers: [{name: c, resources: {requests: {cpu: " +
		"500m, memory: 100M}}}]}\nstatus: {phase: Pending}\n"
	dump, err := os.ReadFile("testdata/size.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for namespace, pods := range map[string]int64{"loadline-slack": 10, "shop": 11} {
		file := filepath.Join(t.TempDir(), "size.yaml")
		if err := os.WriteFile(file, []byte(string(dump)+strings.Replace(placeholder, "NAMESPACE", namespace, 1)),
			0o600); err != nil {
			t.Fatal(err)
		}
		if g := sizeJSON(t, "--groups", "testdata/size-groups.yaml", "-f", file).Groups[0]; g.Pods != pods {
			t.Errorf("%s: %d pods, want %d", namespace, g.Pods, pods)
		}
	}
}

// A group of our own form without nodes grows by its template: 1800m of 500m at 70 % are 5.14 nodes.
func TestFromZeroByTheTemplate(t *testing.T) {
	data, err := os.ReadFile("testdata/size-mixed-groups.yaml")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(data), "---")
	text := strings.Replace(first, "nodeSelector: {pool: web}",
		"template: {metadata: {labels: {customer: shared}}, status: {capacity: {cpu: 500m, memory: 4Gi}}}", 1)
	file := filepath.Join(t.TempDir(), "groups.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if g := sizeJSON(t, "--groups", file, "-f", "testdata/size-zero.yaml").Groups[0]; g.Delta != 6 ||
		number(g.CPUPercentAfter) != 60.0 {
		t.Errorf("got %+v", g)
	}
}

// web: 3 of 15.9 cpu, the DaemonSet pod's 0.1 taken off, are 18.9 %: two are removed, the oldest by name. batch: 2.5 of
// 4 cpu; its tainted node is empty, and is removed. gpu has neither nodes nor pods, manual does not say how it is
// sized.
func TestSizeOfSeveralGroups(t *testing.T) {
	args := []string{"--groups", "testdata/size-mixed-groups.yaml", "-f", "testdata/size-mixed.yaml"}
	got := sizeJSON(t, args...)
	if len(got.Groups) != 3 {
		t.Fatalf("got %+v", got)
	}
	web, batch, gpu := got.Groups[0], got.Groups[1], got.Groups[2]
	if web.Action != "remove-fast" || web.Delta != -2 || !slices.Equal(web.Change.Taint, []string{"web-1", "web-3"}) ||
		web.Capacity.CPUMilli != 15900 ||
		web.Requests.CPUMilli != 3000 || len(web.Warnings) != 0 {
		t.Errorf("web: %+v", web)
	}
	if batch.Action != "nothing" || batch.Delta != 0 || number(batch.CPUPercent) != 62.5 ||
		batch.Nodes != (sizeNodes{1, 1, 0, 1}) ||
		!slices.Equal(batch.Change.Remove, []string{"batch-2"}) {
		t.Errorf("batch: %+v", batch)
	}
	if gpu.Action != "nothing" || gpu.FromZero || number(gpu.CPUPercent) != 0.0 ||
		!slices.Equal(gpu.Warnings, []string{"no node carries its labels"}) {
		t.Errorf("gpu: %+v", gpu)
	}
	// The state after a pass is a file for --state.
	data, err := json.Marshal(got.State)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if again := sizeJSON(t, append(args, "--state", file)...); again.Groups[0].Delta != -2 {
		t.Errorf("got %+v", again.Groups[0])
	}
	// compat counts the nodes as they are, and removes no faster.
	if g := sizeJSON(t, append(args, "--size-mode", "compat")...).Groups[0]; number(g.CPUPercent) != 18.75 ||
		g.Capacity.CPUMilli != 16000 {
		t.Errorf("got %+v", g)
	}
}

// That DaemonSet pods come off the capacity is no option of mode compat, and the command says so, also when a flag
// chooses the mode.
func TestSizeWarnsOfAnOptionThatPlaysNoPart(t *testing.T) {
	t.Setenv("LOADLINE_LIBRARY", enginetest.Library(t))
	groups, err := os.ReadFile("testdata/size-mixed-groups.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "groups.yaml")
	if err := os.WriteFile(file,
		[]byte(strings.Replace(string(groups), "  size:\n", "  size:\n    daemonSets: subtract\n", 1)),
		0o600); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[string]bool{"default": false, "compat": true} {
		_, errs, code := run(t, "loadline", "", "size", "--groups", file, "-f", "testdata/size-mixed.yaml", "--now",
			sizeNow, "--size-mode", mode)
		if code != 0 || strings.Contains(errs, "spec.size.daemonSets: subtract plays no part in mode compat") != want {
			t.Errorf("mode %s: exit %d: %s", mode, code, errs)
		}
	}
}

// `why GROUP` tells the place of a group, and how full it is.
func TestWhyGroupTellsItsSize(t *testing.T) {
	t.Setenv("LOADLINE_LIBRARY", enginetest.Library(t))
	args := []string{"--groups", "testdata/size-mixed-groups.yaml", "-f", "testdata/size-mixed.yaml", "--now", sizeNow}
	out, errs, code := run(t, "loadline", "", append([]string{"why", "web", "-o", "json"}, args...)...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var got groupAnswer
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if got.NodeGroup != "web" || got.Of != 4 || got.Size == nil || got.Size.Name != "web" || got.Size.Delta != -2 {
		t.Errorf("got %s", out)
	}
	out, errs, code = run(t, "loadline", "", append([]string{"why", "web", "-o", "html"}, args...)...)
	if code != 0 || strings.Count(out, `class="cards gauges"`) != 1 || !strings.Contains(out, "shrink by 2 nodes") ||
		strings.Contains(out, "batch: ") {
		t.Errorf("exit %d, %s, page of %d bytes", code, errs, len(out))
	}
	out, errs, code = run(t, "loadline", "", append([]string{"why", "manual", "-o", "json"}, args...)...)
	if code != 0 || strings.Contains(out, `"size"`) {
		t.Errorf("exit %d, %s, %s", code, errs, out)
	}
}

func TestSizeRefuses(t *testing.T) {
	t.Setenv("LOADLINE_LIBRARY", enginetest.Library(t))
	data, err := os.ReadFile("testdata/size-groups.yaml")
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) string {
		file := filepath.Join(t.TempDir(), "file.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	text := string(data)
	_, group, _ := strings.Cut(text, "node_groups:\n")
	for _, c := range []struct {
		name, groups, says string
		args               []string
	}{
		{"Thresholds", strings.Replace(text, "percent: 60", "percent: 70", 1),
			"taint_upper_capacity_threshold_percent: 70 is not less than", nil},
		{"NoLabel", strings.Replace(text, "label_key: customer", "label_key: ''", 1), "label_key: missing", nil},
		{"LabelTwice", text + strings.Replace(group, "name: shared", "name: again", 1),
			`groups[1]: labels: are those of node group "shared"`, nil},
		{"State", text, "unknown field",
			[]string{"--state", write("apiVersion: loadline.dev/v1alpha1\nkind: SizeState\ngrups: []\n")}},
		{"NoState", text, "no such file", []string{"--state", "testdata/nothing.yaml"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, errs, code := run(t, "loadline", "",
				append([]string{"size", "-f", "testdata/size.yaml", "--groups", write(c.groups)}, c.args...)...)
			if code != 1 || out != "" || !strings.Contains(errs, c.says) {
				t.Errorf("exit %d, out %q, err %q, want %q", code, out, errs, c.says)
			}
		})
	}
	_, errs, code := run(t, "loadline", "", "size", "-f", "testdata/size.yaml", "--groups",
		write(text+"  max_pods: 3\n"))
	if code != 0 || !strings.Contains(errs, `warning: unknown field "node_groups[0].max_pods"`) {
		t.Errorf("exit %d, err %q", code, errs)
	}
}

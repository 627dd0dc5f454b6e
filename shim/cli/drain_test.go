package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loadline.dev/shim/nodegroup"
)

const drainNow = "2026-02-17T09:00:00Z"

func drainArgs(args ...string) []string {
	return append([]string{"drain", "-f", "testdata/drain.json", "--now", drainNow}, args...)
}

func TestDrainRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"drain", "-f", "testdata/drain.json", "--now", "yesterday"},
			`--now "yesterday": must be a time such as 2026-02-17T09:00:00Z`},
		{drainArgs("-o", "png"), `-o "png"`},
		{drainArgs("--scale-down-utilization-threshold", "1.5"), "--scale-down-utilization-threshold: 1.5"},
		{drainArgs("--groups", "testdata/none.yaml"), "testdata/none.yaml"},
		{[]string{"why", "node/none", "-f", "testdata/drain.json"}, "node none is not in testdata/drain.json"},
		{[]string{"why", "none", "-f", "testdata/drain.json"}, "pod default/none is not in testdata/drain.json"},
	} {
		if _, errs, code := run(t, "loadline", "", c.args...); code == 0 || !strings.Contains(errs, c.want) {
			t.Errorf("%v: exit %d: %s", c.args, code, errs)
		}
	}
}

// A dump of nodes alone is most likely one that was made without pods, and each node looks empty.
func TestNodesAreNotJudgedWithoutPods(t *testing.T) {
	dir := t.TempDir()
	file, groups := filepath.Join(dir, "nodes.yaml"), filepath.Join(dir, "groups.yaml")
	node := "apiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {pool: a}}\n" +
		"status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}, conditions: [{type: Ready, status: \"True\"}]}\n"
	group := "apiVersion: " + nodegroup.APIVersion + "\nkind: " + nodegroup.Kind + "\nmetadata: {name: a}\n" +
		"spec: {nodeSelector: {pool: a}, min: 0, max: 3, size: {taintLowerCapacityThresholdPercent: 40, " +
		"taintUpperCapacityThresholdPercent: 60, scaleUpThresholdPercent: 70, slowNodeRemovalRate: 1, " +
		"fastNodeRemovalRate: 2, softDeleteGracePeriod: 1m, hardDeleteGracePeriod: 10m, scaleUpCoolDownPeriod: 2m}}\n"
	for name, text := range map[string]string{file: node, groups: group} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const want = "nodes.yaml holds no pod, so that each node looks empty"
	for _, args := range [][]string{{"drain"}, {"bill"}, {"consolidate"}, {"plan", "--groups", groups},
		{"size", "--groups", groups}, {"slack"}, {"rank"}, {"rank", "--groups", groups},
		{"why", "n1"}, {"why", "node/n1"}, {"why", "a", "--groups", groups}} {
		args = append(args, "-f", file, "--now", drainNow)
		if _, errs, code := run(t, "loadline", "", args...); code != 1 || !strings.Contains(errs, want) {
			t.Errorf("%v: exit %d: %s, want %q", args, code, errs, want)
		}
		if _, errs, code := run(t, "loadline", "", append(args, "--no-pods")...); code != 0 {
			t.Errorf("%v --no-pods: exit %d: %s", args, code, errs)
		}
	}
}

// Nodes that are removed together take no pods, and every node is removed or stays.
func TestDrainAnswersForEachNode(t *testing.T) {
	out, errs, code := run(t, "loadline", "", drainArgs("-o", "json")...)
	if code != 0 {
		t.Fatal(errs)
	}
	var got drainAnswer
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	var gone, all []string
	for _, r := range got.Remove {
		gone, all = append(gone, r.Node), append(all, r.Node)
	}
	for _, k := range got.Keep {
		all = append(all, k.Node)
	}
	slices.Sort(all)
	if want := strings.Fields("node-1 node-2 node-3 node-4 node-5 node-6 node-7 node-8"); !slices.Equal(all, want) {
		t.Error(all)
	}
	for _, r := range got.Remove {
		for _, m := range r.Moves {
			if slices.Contains(gone, m.To) {
				t.Errorf("%s moves to %s, which goes", m.Pod, m.To)
			}
		}
	}
}

// A brake keeps everything, and is said first.
func TestDrainSaysWhatKeepsEverything(t *testing.T) {
	var nodes []string
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		nodes = append(nodes, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"`+name+
			`"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"10"},
			"conditions":[{"type":"Ready","status":"Unknown"}]}}`)
	}
	dump := `{"apiVersion":"v1","kind":"List","items":[` + strings.Join(nodes, ",") + `]}`
	out, errs, code := run(t, "loadline", dump, "drain", "-f", "-", "--no-pods", "--now", drainNow)
	if code != 0 || !strings.HasPrefix(out, "nothing is removed: 5 of 5 nodes are not ready\n") ||
		!strings.Contains(out, "ScaleDownNotTried") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

func TestDrainPage(t *testing.T) {
	out, errs, code := run(t, "loadline", "", drainArgs("-o", "html")...)
	if code != 0 {
		t.Fatal(errs)
	}
	for _, want := range []string{"3 nodes of 8 can go together", "drain of node-1", "shop/web-0 to ",
		"until 2026-02-17T09:10:01Z", "BlockedByPod: LocalStorageRequested"} {
		if !strings.Contains(out, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

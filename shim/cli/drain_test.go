package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
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
		{drainArgs("--scale-down-utilization-threshold", "1.5"), "scaleDown.scaleDownUtilizationThreshold: 1.5"},
		{drainArgs("--groups", "testdata/none.yaml"), "testdata/none.yaml"},
		{[]string{"why", "node/none", "-f", "testdata/drain.json"}, "node none is not in testdata/drain.json"},
		{[]string{"why", "none", "-f", "testdata/drain.json"}, "pod default/none is not in testdata/drain.json"},
	} {
		if _, errs, code := run(t, "loadline", "", c.args...); code == 0 || !strings.Contains(errs, c.want) {
			t.Errorf("%v: exit %d: %s", c.args, code, errs)
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

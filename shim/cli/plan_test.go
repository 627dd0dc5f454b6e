package cli

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loadline.dev/shim/api/loadlinev1"
)

func planJSON(t *testing.T, args ...string) planAnswer {
	t.Helper()
	out, errs, code := run(t, "loadline", "",
		append([]string{"plan", "-f", "testdata/plan.yaml", "--groups", "testdata/plan-groups.yaml",
			"--now", "2026-02-17T09:00:00Z", "-o", "json"}, args...)...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var got planAnswer
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// node-1 has one of two cores left. Three pods of one core wait: one fits there, and two fill a node to come.
// A tenth of the one core that is requested is kept free: 100m fit nowhere but on one more node.
func TestPlanOfALoop(t *testing.T) {
	got := planJSON(t)
	want := []planPods{{Pod: "shop/wait-0", Count: 1, Node: "node-1"},
		{Pod: "shop/wait-1", Count: 2, NodeGroup: "workers"}}
	if diff := cmp.Diff(want, got.Waiting); diff != "" {
		t.Errorf("waiting (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]planGrowth{{NodeGroup: "workers", ForPods: 1, ForSlack: 1, USDPerHour: new(0.5)}},
		got.Growth); diff != "" {
		t.Errorf("growth (-want +got):\n%s", diff)
	}
	if got.NoScaleDown != "groups grow" || got.Drain == nil {
		t.Errorf("scale-down: %q, %v", got.NoScaleDown, got.Drain)
	}
}

func TestPlanTable(t *testing.T) {
	out, errs, code := run(t, "loadline", "", "plan", "-f", "testdata/plan.yaml", "--groups",
		"testdata/plan-groups.yaml", "--now", "2026-02-17T09:00:00Z")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, want := range []string{"3 pods wait, 1 finds room, 2 on new nodes; 2 nodes to ask for\n",
		"   2   shop/wait-1   a new node of workers\n", "No node goes now: groups grow.\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
}

// Small nodes take a pod each, large ones both that find no room on node-1. By price per node small wins, one after the
// other; by the joint plan two small ones.
func TestPlanByRanking(t *testing.T) {
	groups := filepath.Join(t.TempDir(), "groups.yaml")
	const group = `---
apiVersion: loadline.dev/v1alpha1
kind: NodeGroup
metadata: {name: %[1]s}
spec:
  nodeSelector: {pool: %[1]s}
  max: 5
  price: %[2]s
  template: {metadata: {labels: {pool: %[1]s}}, status: {allocatable: {cpu: "%[3]s", memory: 8Gi, pods: "10"}}}
`
	if err := os.WriteFile(groups,
		fmt.Appendf(fmt.Appendf(nil, group, "small", "0.25", "1"), group, "large", "0.75", "2"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flags []string
		want  []planGrowth
	}{
		{nil, []planGrowth{{NodeGroup: "small", ForPods: 2, ForSlack: 0, USDPerHour: new(0.5)}}},
		{[]string{"--strategies", "least-nodes"},
			[]planGrowth{{NodeGroup: "large", ForPods: 1, ForSlack: 0, USDPerHour: new(0.75)}}},
		{[]string{"--strategies", "most-pods,price"},
			[]planGrowth{{NodeGroup: "small", ForPods: 2, ForSlack: 0, USDPerHour: new(0.5)}}},
	} {
		got := planJSON(t, append([]string{"--groups", groups, "--extra-capacity-min-rate", "0"}, c.flags...)...)
		if diff := cmp.Diff(c.want, got.Growth); diff != "" {
			t.Errorf("%v: growth (-want +got):\n%s", c.flags, diff)
		}
		if ranks := len(c.flags) > 0; ranks != (len(got.Ranking) == 2) ||
			ranks && got.Ranking[0].NodeGroup != got.Growth[0].NodeGroup {
			t.Errorf("%v: ranking %+v", c.flags, got.Ranking)
		}
	}
}

func TestReplayOfAPlan(t *testing.T) {
	file, answer := filepath.Join(t.TempDir(), "loop.rec"), filepath.Join(t.TempDir(), "plan.json")
	planJSON(t, "--record", file)
	out, errs, code := run(t, "loadline", "", "replay", file, "--answer", answer)
	if code != 0 || !strings.Contains(out, "/loadline.v1.Autoscaler/PlanLoop   the same\n") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	if data, err := os.ReadFile(answer); err != nil || !strings.Contains(string(data), `"nodesForSlack"`) {
		t.Errorf("answer %s, error %v", data, err)
	}
	for form, want := range map[string]string{
		"json":                             `"method": "/loadline.v1.Autoscaler/PlanLoop",` + "\n      \"same\": true",
		"yaml":                             "differ: 0\n",
		"html":                             "<td>the same",
		"custom-columns=M:.method,S:.same": "/loadline.v1.Autoscaler/PlanLoop   true\n",
	} {
		if out, errs, code := run(t, "loadline", "", "replay", file, "-o", form); code != 0 || !strings.Contains(out, want) {
			t.Errorf("-o %s: exit %d: %s%s", form, code, out, errs)
		}
	}
	if _, errs, code := run(t, "loadline", "", "replay", "none", "-o", "name"); code != 2 {
		t.Errorf("-o name: exit %d: %s", code, errs)
	}
	out, errs, code = run(t, "loadline", "", "replay", "testdata/plan.yaml")
	if code != 1 || !strings.Contains(errs, "testdata/plan.yaml: call 0: not a recording") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

// Without a file the one node is a group of its size. Two of three pods of one core fit into another one like it, one
// fits on the node, and a recording of the plan can be replayed.
func TestPlanWithoutGroups(t *testing.T) {
	file := filepath.Join(t.TempDir(), "loop.rec")
	got := planJSON(t, "--groups", "", "--extra-capacity-min-rate", "0", "--record", file)
	const group = "workers/2-cpu-8Gi"
	want := []planPods{{Pod: "shop/wait-0", Count: 1, Node: "node-1"},
		{Pod: "shop/wait-1", Count: 2, NodeGroup: group}}
	if diff := cmp.Diff(want, got.Waiting); diff != "" {
		t.Errorf("waiting (-want +got):\n%s", diff)
	}
	if len(got.Growth) != 1 || got.Growth[0].NodeGroup != group || got.Growth[0].ForPods != 1 ||
		!slices.Contains(got.Remarks, derivedNote) {
		t.Errorf("growth %+v, remarks %q", got.Growth, got.Remarks)
	}
	if out, errs, code := run(t, "loadline", "", "replay", file); code != 0 {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	out, errs, code := run(t, "loadline", "", "plan", "-f", "testdata/plan.yaml", "--decisions", "scale-up")
	if code != 0 || !strings.Contains(out, derivedNote) {
		t.Errorf("without scale-down exit %d: %s%s", code, out, errs)
	}
}

// A plan that cannot be made leaves a recording that is there as it is, and no other file.
func TestPlanThatFailsRecordsNothing(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "loop.rec")
	planJSON(t, "--record", file)
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, errs, code := run(t, "loadline", "", "plan", "-f", "testdata/none.yaml", "--groups", "testdata/plan-groups.yaml",
		"--record", file)
	if code == 0 || !strings.Contains(errs, "none.yaml") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the recording has %d bytes instead of %d, error %v", len(after), len(before), err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, error %v", entries, err)
	}
}

func TestPlanOfAnotherKindOfFile(t *testing.T) {
	_, errs, code := run(t, "loadline", "", "plan", "-f", "testdata/plan-groups.yaml", "--groups",
		"testdata/plan-groups.yaml")
	if code != 1 || !strings.Contains(errs, "testdata/plan-groups.yaml holds neither a node nor a pod") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// Only the first call of a recording is left, which sends the cluster to the engine.
func TestReplayWithoutAPlan(t *testing.T) {
	file, answer := filepath.Join(t.TempDir(), "loop.rec"), filepath.Join(t.TempDir(), "plan.json")
	planJSON(t, "--record", file)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	size, prefix := binary.Uvarint(data)
	if err := os.WriteFile(file, data[:prefix+int(size)], 0o644); err != nil {
		t.Fatal(err)
	}
	_, errs, code := run(t, "loadline", "", "replay", file, "--answer", answer)
	if code != 1 || !strings.Contains(errs, file+": it has no plan") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// Verbs agree with their numbers.
func TestVerbsAgreeWithTheirNumbers(t *testing.T) {
	for moves, want := range map[int64]string{
		1: "1 move reaches 1.000 and saves 730 USD a month", 2: "2 moves reach 1.000 and save 730 USD a month"} {
		b := &billPlan{PlanConsolidationResponse: &loadlinev1.PlanConsolidationResponse{MovesTotal: moves,
			Bill: &loadlinev1.ConsolidationBill{Now: 2, Reachable: 1}}}
		if got := b.verdict(); !strings.HasSuffix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for _, c := range []struct {
		count, placed, nodes int64
		want                 string
	}{{1, 0, 1, "0 of 1 placeholder fits now; 1 more node would take it"},
		{1, 1, 0, "1 of 1 placeholder fits now"},
		{2, 0, 1, "0 of 2 placeholders fit now; 1 more node would take them"},
		{2, 1, 2, "1 of 2 placeholders fits now; 2 more nodes would take the other"},
		{3, 1, 1, "1 of 3 placeholders fits now; 1 more node would take the others"},
		{3, 2, 0, "2 of 3 placeholders fit now"}} {
		p := &slackPlan{PlanSlackResponse: &loadlinev1.PlanSlackResponse{
			Shapes:  []*loadlinev1.ShapeSlack{{Count: c.count, Placed: c.placed}},
			Demands: []*loadlinev1.SlackDemand{{Nodes: c.nodes}}}}
		if got := p.verdict(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	missing := []*loadlinev1.ClassSlack{{Status: loadlinev1.SlackStatus_SLACK_READY},
		{Status: loadlinev1.SlackStatus_SLACK_MISSING}}
	for _, c := range []struct {
		count, placed int64
		more          loadlinev1.SlackStatus
		want          string
	}{{1, 0, loadlinev1.SlackStatus_SLACK_READY, "0 of 1 placeholder fits now; it fits on nodes that are to come anyway"},
		{2, 0, loadlinev1.SlackStatus_SLACK_READY, "0 of 2 placeholders fit now; they fit on nodes that are to come anyway"},
		{3, 2, loadlinev1.SlackStatus_SLACK_READY,
			"2 of 3 placeholders fit now; the other fits on nodes that are to come anyway"},
		{3, 1, loadlinev1.SlackStatus_SLACK_READY,
			"1 of 3 placeholders fits now; the others fit on nodes that are to come anyway"},
		{3, 1, loadlinev1.SlackStatus_SLACK_LIMITED, "1 of 3 placeholders fits now"}} {
		p := &slackPlan{PlanSlackResponse: &loadlinev1.PlanSlackResponse{
			Shapes:  []*loadlinev1.ShapeSlack{{Count: c.count, Placed: c.placed}},
			Classes: append(missing, &loadlinev1.ClassSlack{Status: c.more})}}
		if got := p.verdict(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	for pods, want := range map[int]string{1: "1 pod waits for a node, and comes before placeholders.",
		2: "2 pods wait for a node, and come before placeholders."} {
		p := &slackPlan{pending: pods, PlanSlackResponse: &loadlinev1.PlanSlackResponse{}}
		if got := p.notes()[1]; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		p.forPods = int64(pods)
		with := strings.TrimSuffix(want, ".") + ": " + plural(pods, "new node") + " for pods would come."
		if got := p.notes()[1]; got != with {
			t.Errorf("got %q, want %q", got, with)
		}
	}
}

// A node whose pods request more than it has only with those that the plan puts there is not said to have too many.
func TestPodsOfAPlanDoNotOvercommitANode(t *testing.T) {
	const before = "Pods on n1 request more than it has."
	for there, want := range map[string]bool{"3800m": false, "4500m": true} {
		priority := map[bool]string{true: "0", false: "-20"}[want] // pods below -10 give way
		cluster := `{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10},
  conditions: [{type: Ready, status: "True"}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: fill, namespace: shop}, spec: {nodeName: n1, priority: ` + priority + `,
  containers: [{name: c, resources: {requests: {cpu: ` + there + `}}}]}, status: {phase: Running}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop}, spec: {containers: [{name: c, resources:
  {requests: {cpu: 3}}}]}, status: {phase: Pending}}
`
		out, errs, code := run(t, "loadline", cluster, "plan", "-f", "-", "--groups", "testdata/plan-groups.yaml", "--now",
			"2026-02-17T09:00:00Z")
		if code != 0 || strings.Contains(out, before) != want || !strings.Contains(out, "n1") {
			t.Errorf("%s: exit %d: %s%s", there, code, out, errs)
		}
	}
}

package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
)

func billArgs(command string, args ...string) []string {
	return append([]string{command, "-f", "testdata/drain.json", "--now", drainNow}, args...)
}

// Eight nodes of 4 CPUs and 16 GiB, at base rates 4 * 0.033174 + 16 * 0.004446 each, with a boot disk of 100 GiB for
// 0.10 a month. On two of them a pod stays.
const drainNodePrice = 0.203832 + 100*0.10/720

func TestBillOfADump(t *testing.T) {
	out, errs, code := run(t, "loadline", "", billArgs("bill", "-o", "json")...)
	if code != 0 {
		t.Fatal(errs)
	}
	var got billAnswer
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if math.Abs(got.Now-8*drainNodePrice) > 1e-6 || math.Abs(got.Fixed-2*drainNodePrice) > 1e-6 {
		t.Errorf("now %v, fixed %v", got.Now, got.Fixed)
	}
	if got.Bound != nil || got.Gap != nil || math.Abs(got.Prices.Estimate-got.Now) > 1e-9 {
		t.Errorf("bound %v, gap %v of a sum that is estimated: %+v", got.Bound, got.Gap, got.Prices)
	}
	if got.Reachable > got.Now || len(got.Moves) != int(got.MovesTotal) || len(got.Moves) <= firstMoves {
		t.Errorf("reachable %v, now %v, %d moves", got.Reachable, got.Now, len(got.Moves))
	}
	notes := strings.Join(got.Notes, " ")
	for _, want := range []string{"8 nodes name no instance type", "--prices", "derived from pool, instance type",
		"no ds or jobs"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes do not say %q: %s", want, notes)
		}
	}
}

// Every node is removed or stays, and every pod moves to a node that stays.
func TestConsolidateAnswersForEachNode(t *testing.T) {
	out, errs, code := run(t, "loadline", "", billArgs("consolidate", "-o", "json")...)
	if code != 0 {
		t.Fatal(errs)
	}
	var got consolidateAnswer
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	gone, saved := map[string]bool{}, 0.0
	for _, move := range got.Moves {
		saved += move.Saves
		for _, node := range move.Remove {
			gone[node] = true
		}
	}
	for _, move := range got.Moves {
		for _, pod := range move.Pods {
			if gone[pod.To] || !gone[pod.From] {
				t.Errorf("%s moves from %s to %s", pod.Pod, pod.From, pod.To)
			}
		}
	}
	if len(gone)+len(got.Keep) != 8 || math.Abs(got.Bill.Now-got.Bill.Reachable-saved) > 1e-9 {
		t.Errorf("%d go, %d stay; %v saved of %+v", len(gone), len(got.Keep), saved, got.Bill)
	}
	for _, keep := range got.Keep {
		if keep.Reason != "BlockedByPod" || keep.BlockingPod == "" || keep.WhatWouldHelp == "" {
			t.Errorf("%+v", keep)
		}
	}
}

func TestBillRefuses(t *testing.T) {
	for _, c := range []struct{ flag, value, want string }{
		{"--mode", "Replace", `--mode "Replace": must be one of off, remove, replace`},
		{"--mode", "mode_unspecified", "must be one of"},
		{"--now", "soon", `--now "soon"`},
		{"--least-saving-percent", "101", "--least-saving-percent: 101"},
		{"--payback-hours", "0", "--payback-hours: 0"},
		{"--pod-disruption-cost", "-1", "--pod-disruption-cost: -1"},
		{"--max-nodes-per-move", "0", "--max-nodes-per-move: 0"},
		{"--groups", "testdata/none.yaml", "testdata/none.yaml"},
		{"--prices", "testdata/none.csv", "testdata/none.csv"},
	} {
		if _, errs, code := run(t, "loadline", "", billArgs("bill", c.flag, c.value)...); code == 0 || !strings.Contains(errs, c.want) {
			t.Errorf("%s %s: exit %d: %s", c.flag, c.value, code, errs)
		}
	}
}

// typedNode is a node of an instance type, with a pod that requests so many CPUs.
func typedNode(name, instance, cpus string, pod string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q,"labels":{"node.kubernetes.io/instance-type":%q,
"kubernetes.io/hostname":%q}},"status":{"capacity":{"cpu":%q,"memory":"16Gi","pods":"110"},"allocatable":{"cpu":%q,
"memory":"16Gi","pods":"110"},"conditions":[{"type":"Ready","status":"True"}]}},
{"apiVersion":"v1","kind":"Pod","metadata":{"name":"pod-%s","namespace":"shop","ownerReferences":[{"apiVersion":"apps/v1",
"kind":"ReplicaSet","name":"web","uid":"u","controller":true}]},"spec":{"nodeName":%q,"containers":[{"name":"c","image":"i",
"resources":{"requests":{"cpu":%q,"memory":"1Gi"}}}]},"status":{"phase":"Running",
"conditions":[{"type":"Ready","status":"True"}]}}`, name, instance, name, cpus, cpus, name, name, pod)
}

// Two nodes of 2xlarge with a core each give way to one of large that is there; prices are those that are built in.
func TestBillDerivesGroupsAndPricesThem(t *testing.T) {
	dump := `{"apiVersion":"v1","kind":"List","items":[` + strings.Join([]string{
		typedNode("big-1", "m5.2xlarge", "8", "500m"), typedNode("big-2", "m5.2xlarge", "8", "500m"),
		typedNode("small-1", "m5.large", "2", "2")}, ",") +
		`,{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"web","namespace":"shop","uid":"u"},"spec":{"replicas":3},"status":{"replicas":3}}]}`
	out, errs, code := run(t, "loadline", dump, "consolidate", "-f", "-", "-o", "json")
	if code != 0 {
		t.Fatal(errs)
	}
	var got consolidateAnswer
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	// 0.384 each and 0.096: the pods of both big ones fit on another small one.
	if math.Abs(got.Bill.Now-0.864) > 1e-9 || math.Abs(got.Bill.Reachable-0.192) > 1e-9 {
		t.Fatalf("%+v", got.Bill)
	}
	if len(got.Moves) != 1 || len(got.Moves[0].Remove) != 2 || len(got.Moves[0].Add) != 1 ||
		got.Moves[0].Add[0] != (consolidateAdd{"m5.large", 1}) {
		t.Fatalf("%+v", got.Moves)
	}
	for _, pod := range got.Moves[0].Pods {
		if pod.To != "m5.large#1" {
			t.Errorf("%+v", pod)
		}
	}
	// Without new nodes one big node takes the pods of the other.
	out, _, _ = run(t, "loadline", dump, "bill", "-f", "-", "--mode", "remove", "-o", "json")
	var bill billAnswer
	if err := json.Unmarshal([]byte(out), &bill); err != nil || math.Abs(bill.Reachable-0.48) > 1e-9 {
		t.Errorf("reachable %v, %v", bill.Reachable, err)
	}
	if len(bill.Namespaces) != 1 || bill.Namespaces[0].Name != "shop" || *bill.Namespaces[0].USD <= 0 {
		t.Errorf("%+v", bill.Namespaces)
	}
}

func TestBillPageAndWhy(t *testing.T) {
	page, errs, code := run(t, "loadline", "", billArgs("bill", "-o", "html")...)
	if code != 0 {
		t.Fatal(errs)
	}
	for _, want := range []string{"<svg", "is not named", "paid now", "after all moves", "What stays"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	out, errs, code := run(t, "loadline", "", "why", "node/node-8", "-f", "testdata/drain.json", "--now", drainNow)
	if code != 0 || !strings.Contains(out, "Consolidation: it goes by move 1") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

// Names are those of the nodes that go, as of a drain, and reasons are written as there.
func TestNamesOfMovesAreTheNodesThatGo(t *testing.T) {
	out, errs, code := run(t, "loadline", "", billArgs("consolidate", "-o", "json")...)
	var got consolidateAnswer
	if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil {
		t.Fatal(errs, err)
	}
	namesOf := func(moves []consolidateMove) (names string) {
		for _, move := range moves {
			names += "node/" + strings.Join(move.Remove, "\nnode/") + "\n"
		}
		return names
	}
	for _, c := range []struct{ command, mode, want string }{
		{"consolidate", "replace", namesOf(got.Moves)},
		{"consolidate", "off", ""},
		{"bill", "replace", namesOf(got.Moves)}, // its table shows the first ones
		{"bill", "off", ""},
	} {
		out, errs, code := run(t, "loadline", "", billArgs(c.command, "--mode", c.mode, "-o", "name")...)
		if code != 0 || out != c.want {
			t.Errorf("%s --mode %s: exit %d: got %q, want %q: %s", c.command, c.mode, code, out, c.want, errs)
		}
	}
	out, _, _ = run(t, "loadline", "", billArgs("consolidate")...)
	if !strings.Contains(out, "BlockedByPod: "+got.Keep[0].PodReason) {
		t.Errorf("the table names no reason of pods: %s", out)
	}
}

// Pods that wait for a node are counted.
func TestBillTellsHowManyPodsWait(t *testing.T) {
	const file = "testdata/plan.yaml" // three pods wait
	for _, command := range []string{"bill", "consolidate"} {
		out, errs, code := run(t, "loadline", "", command, "-f", file)
		if code != 0 || !strings.Contains(out, "\n3 pods wait for a node: the room that they find on nodes is kept.\n") {
			t.Errorf("%s: exit %d: %s%s", command, code, out, errs)
		}
	}
}

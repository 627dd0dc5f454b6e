package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/leftout"
)

// hostileDocuments are a pod that cannot be read, one that waits and is too large for a question, and a disruption
// budget that cannot be read.
func hostileDocuments() string {
	values := strings.Repeat(strings.Repeat("v", 60)+",", 20_000)
	return `---
{apiVersion: v1, kind: Pod, metadata: {namespace: evil, name: unreadable}, spec: {containers: [{name: c, resources: {requests: {cpu: many}}}]}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {namespace: evil, name: budget}, spec: {selector: 7}}
---
{apiVersion: v1, kind: Pod, metadata: {namespace: evil, name: huge}, spec: {containers: [{name: c}], affinity: {nodeAffinity:
  {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: k, operator: NotIn, values: [` + values + `]}]}]}}}}}
`
}

// Each command answers for all objects but those that cannot be taken, which it names, and the answer is as without
// them.
func TestLeftOutObjectsChangeNothing(t *testing.T) {
	const now = " --now 2026-02-17T09:00:00Z"
	unreadable := leftout.Object{Kind: "Pod", Namespace: "evil", Name: "unreadable"}
	budget := leftout.Object{Kind: "PodDisruptionBudget", Namespace: "evil", Name: "budget"}
	huge := leftout.Object{Kind: "Pod", Namespace: "evil", Name: "huge",
		Reason: "takes 1.2 MiB, an object may take 1 MiB"}
	for name, c := range map[string]struct {
		command, dump string
		want          []leftout.Object
	}{
		"plan": {"plan --groups testdata/plan-groups.yaml" + now, "testdata/plan.yaml",
			[]leftout.Object{huge, unreadable, budget}},
		"drain": {"drain" + now, "testdata/plan.yaml", []leftout.Object{unreadable, budget}}, // who waits plays no part
		"slack": {"slack", "testdata/slack.yaml", []leftout.Object{huge, unreadable, budget}},
		"rank":  {"rank --groups testdata/plan-groups.yaml", "testdata/plan.yaml", []leftout.Object{huge, unreadable}},
		"size": {"size --groups testdata/size-groups.yaml" + now, "testdata/size.yaml",
			[]leftout.Object{huge, unreadable, budget}},
		"fit":           {"fit shop/wait-0", "testdata/plan.yaml", []leftout.Object{unreadable}},
		"score":         {"score shop/wait-0", "testdata/plan.yaml", []leftout.Object{unreadable}},
		"why":           {"why shop/wait-0", "testdata/plan.yaml", []leftout.Object{unreadable}},
		"whyNode":       {"why node/node-1" + now, "testdata/plan.yaml", []leftout.Object{unreadable, budget}},
		"whyNot":        {"why-not shop/wait-0", "testdata/plan.yaml", []leftout.Object{unreadable}},
		"whyNotByNode":  {"why-not shop/wait-0 --by-node", "testdata/plan.yaml", []leftout.Object{unreadable}},
		"whyNotOneNode": {"why-not shop/wait-0 node-1", "testdata/plan.yaml", []leftout.Object{unreadable}},
		"whyNotGroups": {"why-not shop/wait-0 --groups testdata/plan-groups.yaml", "testdata/plan.yaml",
			[]leftout.Object{unreadable}},
	} {
		t.Run(name, func(t *testing.T) {
			dump, err := os.ReadFile(c.dump)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "cluster.yaml")
			if err := os.WriteFile(file, []byte(string(dump)+"\n"+hostileDocuments()), 0o600); err != nil {
				t.Fatal(err)
			}
			ask := func(file, form string) (out string) {
				out, errs, code := run(t, "loadline", "", append(strings.Fields(c.command), "-f", file, "-o", form)...)
				if code != 0 {
					t.Fatalf("exit %d: %s", code, errs)
				}
				return out
			}
			var clean, got map[string]any
			if err := json.Unmarshal([]byte(ask(c.dump, "json")), &clean); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal([]byte(ask(file, "yaml")), &got); err != nil {
				t.Fatal(err)
			}
			var told leftOutAnswer
			if err := json.Unmarshal([]byte(ask(file, "json")), &told); err != nil {
				t.Fatal(err)
			}
			for i := range told.LeftOut {
				if told.LeftOut[i].Reason == "" {
					t.Errorf("no reason: %v", told.LeftOut[i])
				}
				if told.LeftOut[i].Name != "huge" {
					if !strings.HasPrefix(told.LeftOut[i].Reason, "document ") { // not what the engine makes of it
						t.Errorf("does not say where it is: %v", told.LeftOut[i])
					}
					told.LeftOut[i].Reason = ""
				}
			}
			if diff := cmp.Diff(c.want, told.LeftOut); diff != "" {
				t.Errorf("left out (-want +got):\n%s", diff)
			}
			if empty, ok := clean["leftOut"].([]any); !ok || len(empty) != 0 {
				t.Errorf("left out of the clean dump: %v", clean["leftOut"])
			}
			delete(clean, "leftOut")
			delete(got, "leftOut")
			if diff := cmp.Diff(clean, got); diff != "" {
				t.Errorf("the answer differs (-clean +got):\n%s", diff)
			}
			line := fmt.Sprintf("%d objects were left out: Pod evil/", len(c.want))
			if len(c.want) == 1 {
				line = "1 object was left out: Pod evil/unreadable: "
			}
			if table := ask(file, "table"); !strings.Contains(table, line) ||
				!strings.HasSuffix(table, "The answer holds for all others; -o json names them.\n") {
				t.Errorf("the table ends with %q", table[max(0, len(table)-300):])
			}
		})
	}
}

// A pod of a dump that cannot be read in full, but is on a node, counts with the rest and keeps that node, and so does
// a node of which something cannot be read.
func TestWhatCanBeReadOfAnUnreadableObjectCounts(t *testing.T) {
	node := func(name, spec, cpu string) string {
		return "---\n{apiVersion: v1, kind: Node, metadata: {name: " + name + "}, spec: {" + spec + "}, " +
			"status: {allocatable: {cpu: " + cpu + ", memory: 8Gi, pods: 10}, conditions: [{type: Ready, status: \"True\"}]}}\n"
	}
	pod := func(meta, node, requests string) string {
		return "---\n{apiVersion: v1, kind: Pod, metadata: {namespace: evil, " + meta + ", " +
			"ownerReferences: [{kind: ReplicaSet, name: rs, " +
			"uid: u, apiVersion: apps/v1, controller: true}]}, " +
			"spec: {nodeName: " + node + ", containers: [{name: c, resources: {requests: {" +
			requests + "}}}]}, status: {phase: Running}}\n"
	}
	const set = "---\n{apiVersion: apps/v1, kind: ReplicaSet, metadata: {namespace: evil, name: rs, uid: u}, " +
		"spec: {replicas: 3}, status: {replicas: 3}}\n"
	cluster := set + node("n1", "", "4") + node("n2", "", "4") + pod("name: other", "n2", "cpu: 1")
	for name, c := range map[string]struct{ cluster, keeps, reason, pod, advice string }{
		"Amount": {cluster + pod("name: bad", "n1", "cpu: many, memory: 1Gi"), "n1", "BlockedByPod: Unreadable", "evil/bad",
			`correct pod evil/bad: document 4 (Pod "evil/bad"): spec.containers[0].resources.requests.cpu: quantities must`},
		"Time": {cluster + pod("name: bad, creationTimestamp: yesterday", "n1", "cpu: 100m"), "n1",
			"BlockedByPod: Unreadable", "evil/bad",
			`correct pod evil/bad: document 4 (Pod "evil/bad"): metadata.creationTimestamp: parsing time`},
		// Its request counts, so that no other pod fits beside it.
		"Room": {cluster + pod("name: bad, creationTimestamp: yesterday", "n1", "cpu: 3500m"), "n2", "NoPlaceToMovePods",
			"evil/other", ""},
		"Taints": {cluster + node("n3", "taints: oops", "4"), "n3", "Unreadable", "",
			`correct the node: document 4 (Node "n3"): spec.taints: json:`},
		"Allocatable": {cluster + node("n3", "", "four"), "n3", "Unreadable", "",
			`correct the node: document 4 (Node "n3"): status.allocatable.cpu: quantities must`},
		"Budget": {cluster + "---\n{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {namespace: evil, name: b}, " +
			"spec: {minAvailable: 1, selector: {matchLabels: {app: none}}}, status: {disruptionsAllowed: one}}\n", "n2",
			"BlockedByPod: NotEnoughPdb, InvalidSelector", "evil/other",
			`correct the disruption budget in namespace evil that cannot be read: document 4 (PodDisruptionBudget "evil/b"): `},
	} {
		out, errs, code := run(t, "loadline", c.cluster, "drain", "-f", "-", "-o", "json", "--now", "2026-02-17T09:00:00Z")
		var got drainAnswer
		if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil {
			t.Fatalf("%s: exit %d: %s%v", name, code, errs, err)
		}
		i := slices.IndexFunc(got.Keep, func(k drainKeep) bool { return k.Node == c.keeps })
		if i < 0 {
			t.Errorf("%s: %s does not stay: %s", name, c.keeps, out)
			continue
		}
		keep := got.Keep[i]
		if keep.BlockingPod == nil {
			keep.BlockingPod = new(string)
		}
		if reasonText(keep.Reason, keep.PodReason, keep.BudgetRefusal) != c.reason || *keep.BlockingPod != c.pod ||
			!strings.HasPrefix(keep.WhatWouldHelp, c.advice) {
			t.Errorf("%s: got %+v", name, keep)
		}
	}
	input := cluster + node("n3", "taints: oops", "4") + pod("name: asked", `""`, "cpu: 1")
	out, errs, code := run(t, "loadline", input, "fit",
		"evil/asked", "-f", "-", "-o", "json")
	var fits fitAnswer
	if err := json.Unmarshal([]byte(out), &fits); code != 0 || err != nil || len(fits.CannotJudge) != 1 ||
		fits.CannotJudge[0].Node != "n3" || !strings.Contains(out, `(Node \"n3\"): spec.taints`) {
		t.Errorf("exit %d: %s%s%v", code, out, errs, err)
	}
}

// How filters are configured holds here too: by an added affinity for another pool pods fit nowhere.
func TestFiltersAsTheSchedulerHasThem(t *testing.T) {
	config := filepath.Join(t.TempDir(), "scheduler.yaml")
	if err := os.WriteFile(config,
		[]byte(`{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: [{pluginConfig: [{name: NodeAffinity, args: {addedAffinity:
  {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: elsewhere, operator: Exists}]}]}}}}]}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"fit shop/wait-0 -f testdata/plan.yaml",
		"plan -f testdata/plan.yaml --groups testdata/plan-groups.yaml --now 2026-02-17T09:00:00Z"} {
		before, errs, code := run(t, "loadline", "", strings.Fields(args)...)
		if code != 0 {
			t.Fatalf("%s: exit %d: %s", args, code, errs)
		}
		after, errs, code := run(t, "loadline", "", append(strings.Fields(args), "--scheduler-config-file", config)...)
		if code != 0 || after == before || strings.Contains(after, "fits on 1") ||
			strings.Contains(after, "find room") {
			t.Errorf("%s: exit %d: %s%s", args, code, after, errs)
		}
	}
	if _, errs, code := run(t, "loadline", "", "drain", "-f", "testdata/plan.yaml",
		"--upstream-defects=all"); code != exitUsage || !strings.Contains(errs, `--upstream-defects: "all" must be one of`) {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// A pod that groups which are sized cannot count is named, although the engine gets no names of such pods.
func TestPodsThatCannotBeSizedAreNamed(t *testing.T) {
	const bad = `
---
{apiVersion: v1, kind: Pod, metadata: {namespace: evil, name: negative}, spec: {nodeSelector: {customer: shared},
  containers: [{name: c, resources: {requests: {cpu: "-1"}}}]}, status: {phase: Pending}}
`
	dump, err := os.ReadFile("testdata/size.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(file, append(dump, bad...), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"size", "plan"} {
		out, errs, code := run(t, "loadline", "", command, "--groups", "testdata/size-groups.yaml", "-f", file,
			"-o", "json")
		if code != 0 {
			t.Fatalf("%s: exit %d: %s", command, code, errs)
		}
		var got struct {
			LeftOut []leftout.Object `json:"leftOut"`
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		if len(got.LeftOut) != 1 || got.LeftOut[0].Kind != "Pod" || got.LeftOut[0].Namespace != "evil" ||
			got.LeftOut[0].Name != "negative" {
			t.Errorf("%s: left out %+v", command, got.LeftOut)
		}
	}
}

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const startingPod = `
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: default, uid: u1,
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: r1, controller: true}]}
spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 4, memory: 4Gi, %[1]s}, limits: {%[1]s}}}]}
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}
`

const startingNode = `
apiVersion: v1
kind: Node
metadata: {name: young, uid: n1, creationTimestamp: "2026-11-20T11:58:00Z", labels: {pool: new}}
spec: {providerID: x://young, taints: [%s]}
status:
  allocatable: {cpu: 8, memory: 32Gi, pods: 110}
  conditions: [{type: Ready, status: "True"}]
`

const startingGroup = `
apiVersion: loadline.dev/v1alpha1
kind: NodeGroup
metadata: {name: new}
spec:
  nodeSelector: {pool: new}
  max: 5
  price: 0.25
  template:
    metadata: {labels: {pool: new}}
    spec: {taints: [%s]}
    status: {allocatable: {cpu: 8, memory: 32Gi, pods: 110, %s}}
`

// planOf plans for documents of a cluster and of node groups.
func planOf(t *testing.T, cluster, groups string, args ...string) (got planAnswer) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{"cluster.yaml": cluster, "groups.yaml": groups} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, errs, code := run(t, "loadline", "", append([]string{"plan", "-f", filepath.Join(folder, "cluster.yaml"),
		"--groups", filepath.Join(folder, "groups.yaml"), "--now", "2026-11-20T12:00:00Z",
		"--extra-capacity-min-rate", "0", "-o", "json"}, args...)...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

func taintOf(key string) string { return fmt.Sprintf("{key: %s, effect: NoSchedule}", key) }

// A template says with which taints a node starts: a group grows from zero all the same.
func TestPlanGrowsFromZero(t *testing.T) {
	old := strings.NewReplacer("young", "old", "pool: new", "pool: old", "cpu: 8", "cpu: 1").Replace(
		fmt.Sprintf(startingNode, ""))
	cluster := old + "---" + fmt.Sprintf(startingPod, "")
	for _, c := range []struct {
		taint string
		args  []string
		nodes int64
	}{
		{taint: "startup-taint.cluster-autoscaler.kubernetes.io/x", nodes: 1},
		{taint: "node.cilium.io/agent-not-ready", nodes: 1},
		{taint: "readiness.k8s.io/cni", nodes: 1},
		{taint: "ebs.csi.aws.com/agent-not-ready", nodes: 1},
		{taint: "status-taint.cluster-autoscaler.kubernetes.io/x", nodes: 1},
		{taint: "node.kubernetes.io/not-ready", nodes: 1},
		{taint: "boot", nodes: 0},
		{taint: "boot", args: []string{"--startup-taint", "other", "--startup-taint", "boot"}, nodes: 1},
		{taint: "boot", args: []string{"--ignore-taint", "boot"}, nodes: 1},
		{taint: "boot", args: []string{"--status-taint", "boot"}, nodes: 1},
		{taint: "boot.example.com/x", args: []string{"--startup-taint-prefix", "boot.example.com/"}, nodes: 1},
		{taint: "example.com/agent-x", args: []string{"--startup-taint-prefix", "example.com/agent-"}, nodes: 1},
		{taint: "example.com/x", args: []string{"--startup-taint-prefix", "example."}, nodes: 1},
	} {
		got := planOf(t, cluster, fmt.Sprintf(startingGroup, taintOf(c.taint), ""), c.args...)
		nodes := int64(0)
		for _, growth := range got.Growth {
			nodes += growth.ForPods
		}
		if nodes != c.nodes {
			t.Errorf("%s %v: %d nodes come, want %d", c.taint, c.args, nodes, c.nodes)
		}
	}
}

// A node of two minutes that has a startup taint, or lacks the GPU of its group, is on its way for the pod.
func TestPlanWaitsForNodesThatStart(t *testing.T) {
	const gpu = `nvidia.com/gpu: "1"`
	for _, c := range []struct {
		name, taint, devices string
		args                 []string
	}{
		{name: "well-known", taint: taintOf("node.cilium.io/agent-not-ready")},
		{name: "named", taint: taintOf("boot"), args: []string{"--startup-taint", "boot"}},
		{name: "devices", devices: gpu},
	} {
		got := planOf(t, fmt.Sprintf(startingNode, c.taint)+"---"+fmt.Sprintf(startingPod, c.devices),
			fmt.Sprintf(startingGroup, "", c.devices), c.args...)
		want := []planPods{{Pod: "default/a", Count: 1, NodeGroup: "new", OnItsWay: true}}
		if diff := cmp.Diff(want, got.Waiting); diff != "" || len(got.Growth) > 0 {
			t.Errorf("%s: growth %v; waiting (-want +got):\n%s", c.name, got.Growth, diff)
		}
		if got.Drain == nil || len(got.Drain.Remove) > 0 {
			t.Errorf("%s: the node that starts goes: %+v", c.name, got.Drain)
		}
	}
}

func TestNamesOfStartupTaintsAreChecked(t *testing.T) {
	for _, command := range []string{"plan", "rank", "slack"} {
		_, errs, code := run(t, "loadline", "", command, "-f", "testdata/plan.yaml", "--groups", "testdata/plan-groups.yaml",
			"--startup-taint", "a b")
		if code != 2 || !strings.Contains(errs, `--startup-taint: "a b" is not the key of a taint`) {
			t.Errorf("%s: exit %d: %s", command, code, errs)
		}
	}
}

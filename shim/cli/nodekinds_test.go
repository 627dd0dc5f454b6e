package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// fieldNode is a node of 8 cpu and 32 GiB that is ready.
type fieldNode struct {
	name, labels, spec string // YAML: "a: b, c: d"
	cpu, memory        string
}

// fieldPod is a pod of a ReplicaSet.
type fieldPod struct{ name, node, cpu, spec string }

// fieldDump writes a dump of nodes and pods, and returns its name.
func fieldDump(t *testing.T, nodes []fieldNode, pods []fieldPod) string {
	t.Helper()
	var out strings.Builder
	out.WriteString("apiVersion: v1\nkind: List\nitems:\n")
	for _, n := range nodes {
		if n.cpu == "" {
			n.cpu, n.memory = "'8'", "32Gi"
		}
		offers := fmt.Sprintf("{cpu: %s, memory: %s, pods: '110'}", n.cpu, n.memory)
		fmt.Fprintf(&out, "- {apiVersion: v1, kind: Node, metadata: {name: %s, uid: u-%s, "+
			"labels: {kubernetes.io/hostname: %s, %s}}, spec: {%s}, status: {capacity: %s, allocatable: %s, "+
			"conditions: [{type: Ready, status: 'True'}]}}\n",
			n.name, n.name, n.name, n.labels, n.spec, offers, offers)
	}
	owners := map[string]bool{}
	for _, p := range pods {
		app := strings.Split(p.name, "-")[0]
		if !owners[app] {
			fmt.Fprintf(&out, "- {apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: %s, namespace: shop, uid: rs-%s}, "+
				"spec: {replicas: 2}}\n", app, app)
			owners[app] = true
		}
		fmt.Fprintf(&out, "- {apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: shop, uid: u-%s, "+
			"labels: {app: %s}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: %s, uid: rs-%s, "+
			"controller: true}]}, spec: {nodeName: %s, %s "+
			"containers: [{name: c, resources: {requests: {cpu: %s, memory: 1Gi}}}]}, "+
			"status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}}\n",
			p.name, p.name, app, app, app, p.node, p.spec, p.cpu)
	}
	file := filepath.Join(t.TempDir(), "dump.yaml")
	if err := os.WriteFile(file, []byte(out.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// ask runs a command on a dump, and reads its JSON.
func ask[T any](t *testing.T, file string, args ...string) (out T) {
	t.Helper()
	text, errs, code := run(t, "loadline", "", append(args, "-f", file, "-o", "json")...)
	if code != 0 {
		t.Fatalf("%v: exit %d: %s", args, code, errs)
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func keepReasons[T any](keeps []T, of func(T) (string, string)) map[string]string {
	out := map[string]string{}
	for _, keep := range keeps {
		node, reason := of(keep)
		out[node] = reason
	}
	return out
}

const hybridType = "node.kubernetes.io/instance-type: m5.2xlarge"

// controlPlanes are nodes of control planes as tools for clusters make them.
var controlPlanes = map[string]fieldNode{
	"kubeadm": {labels: "node-role.kubernetes.io/control-plane: ''",
		spec: "taints: [{key: node-role.kubernetes.io/control-plane, effect: NoSchedule}]"},
	"k3s": {labels: "node-role.kubernetes.io/control-plane: 'true', node-role.kubernetes.io/master: 'true', " +
		"node.kubernetes.io/instance-type: k3s", spec: "providerID: 'k3s://cp'"},
	"rke2": {labels: "node-role.kubernetes.io/control-plane: 'true', node-role.kubernetes.io/etcd: 'true', " +
		"node.kubernetes.io/instance-type: rke2"},
	"rke2-etcd": {labels: "node-role.kubernetes.io/etcd: 'true'",
		spec: "taints: [{key: node-role.kubernetes.io/etcd, effect: NoExecute, value: 'true'}]"},
	"rke1":      {labels: "node-role.kubernetes.io/controlplane: 'true'"},
	"talos":     {labels: "node-role.kubernetes.io/control-plane: ''", spec: "providerID: 'talos://metal/1.2.3.4'"},
	"openshift": {labels: "node-role.kubernetes.io/master: '', node-role.kubernetes.io/worker: ''"},
}

// A node of the control plane is shown as what it is by each command, is not removed, and costs nothing that is known.
func TestTheControlPlaneStays(t *testing.T) {
	for name, node := range controlPlanes {
		node.name = "cp"
		file := fieldDump(t, []fieldNode{node, {name: "w-1", labels: hybridType}, {name: "w-2", labels: hybridType}},
			[]fieldPod{{name: "web-0", node: "w-1", cpu: "5"}, {name: "web-1", node: "w-2", cpu: "5"}})
		drain := ask[drainAnswer](t, file, "drain", "--now", drainNow, "--scale-down-unneeded-time", "0s")
		reasons := keepReasons(drain.Keep, func(k drainKeep) (string, string) { return k.Node, k.Reason })
		if len(drain.Remove) != 0 || reasons["cp"] != "ControlPlane" || reasons["w-1"] != "NotUnderutilized" {
			t.Errorf("%s: drain: %v, %v go", name, reasons, drain.Remove)
		}
		if what := drain.Keep[0].WhatWouldHelp; !strings.Contains(what, "node group") {
			t.Errorf("%s: %s", name, what)
		}
		consolidate := ask[consolidateAnswer](t, file, "consolidate", "--now", drainNow)
		reasons = keepReasons(consolidate.Keep, func(k consolidateKeep) (string, string) { return k.Node, k.Reason })
		if reasons["cp"] != "ControlPlane" {
			t.Errorf("%s: consolidate: %v", name, reasons)
		}
		bill := ask[billAnswer](t, file, "bill", "--now", drainNow)
		// Two m5.2xlarge of the built-in list.
		if math.Abs(bill.Now-2*0.384) > 1e-9 || len(bill.Groups) != 1 || bill.Groups[0].Nodes != 2 {
			t.Errorf("%s: bill: %v in %v", name, bill.Now, bill.Groups)
		}
		if notes := strings.Join(bill.Notes, " "); !strings.Contains(notes,
			"1 node of the control plane (cp) is not counted, and stays.") {
			t.Errorf("%s: bill: %s", name, notes)
		}
		slack := ask[slackAnswer](t, file, "slack")
		if len(slack.Classes) != 1 || slack.Classes[0].Nodes != 2 ||
			!slices.Equal(slack.OtherNodes, []otherNode{{"cp", "control plane"}}) {
			t.Errorf("%s: slack: %v, %v", name, slack.Classes, slack.OtherNodes)
		}
		top := ask[topAnswer](t, file, "top", "--sort-by", "name")
		if top.Nodes[0].Kind != "control plane" || top.Nodes[1].Kind != "" || top.Total[0].Allocatable != 24_000 {
			t.Errorf("%s: top: %v", name, top)
		}
		scenario, errs, code := run(t, "loadline", "", "scenario", "-f", file)
		if code != 0 || strings.Count(scenario, "nodes:") != 1 ||
			!strings.Contains(errs+scenario, "of the control plane (cp)") {
			t.Errorf("%s: scenario: %d: %s\n%s", name, code, errs, scenario)
		}
	}
}

// A cluster of servers only has no machine that anybody counts, and says so.
func TestABillWithoutMachinesSaysSo(t *testing.T) {
	var nodes []fieldNode
	for _, name := range []string{"s-1", "s-2", "s-3"} {
		node := controlPlanes["k3s"]
		node.name = name
		nodes = append(nodes, node)
	}
	file := fieldDump(t, nodes, []fieldPod{{name: "web-0", node: "s-1", cpu: "1"}})
	out, errs, code := run(t, "loadline", "", "bill", "-f", file, "--now", drainNow)
	if code != 0 || strings.Contains(out, "0.000 USD/h is paid") ||
		!strings.Contains(out, "no machine is known that is paid for") ||
		!strings.Contains(out, "3 nodes of the control plane (s-1, s-2, s-3) are not counted, and stay.") {
		t.Errorf("exit %d: %s\n%s", code, errs, out)
	}
	if out, _, code = run(t, "loadline", "", "drain", "-f", file, "--now", drainNow); code != 0 ||
		!strings.Contains(out, "no node can go") || strings.Count(out, "ControlPlane") != 3 {
		t.Errorf("exit %d: %s", code, out)
	}
}

// A named group of it has the control plane treated as machines.
func TestANamedControlPlaneIsAMachine(t *testing.T) {
	groups := filepath.Join(t.TempDir(), "groups.yaml")
	if err := os.WriteFile(groups, []byte("apiVersion: loadline.dev/v1alpha1\nkind: NodeGroup\n"+
		"metadata: {name: servers}\nspec: {min: 0, max: 5, price: 0.25, "+
		"nodeSelector: {node-role.kubernetes.io/master: 'true'}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := controlPlanes["k3s"]
	server.name = "s-1"
	file := fieldDump(t, []fieldNode{server, {name: "w-1", labels: hybridType}},
		[]fieldPod{{name: "web-0", node: "w-1", cpu: "5"}})
	drain := ask[drainAnswer](t, file, "drain", "--now", drainNow, "--groups", groups)
	if len(drain.Remove) != 1 || drain.Remove[0].Node != "s-1" || drain.Keep[0].Reason != "NotAutoscaled" {
		t.Errorf("drain: %v", drain)
	}
	const note = "1 node of the control plane (s-1) belongs to a node group that names it, and may be removed like any " +
		"machine."
	for _, command := range []string{"plan", "drain", "bill", "consolidate", "slack"} {
		text, errs, code := run(t, "loadline", "", command, "--now", drainNow, "--groups", groups, "-f", file)
		if code != 0 || !strings.Contains(text, note) {
			t.Errorf("%s: exit %d: %s%s", command, code, text, errs)
		}
	}
	bill := ask[billAnswer](t, file, "bill", "--now", drainNow, "--groups", groups)
	if math.Abs(bill.Now-0.25) > 1e-9 || len(bill.OtherNodes) != 0 {
		t.Errorf("bill: %v, %v", bill.Now, bill.OtherNodes)
	}
	slack := ask[slackAnswer](t, file, "slack", "--groups", groups)
	if len(slack.Classes) != 2 || len(slack.OtherNodes) != 0 {
		t.Errorf("slack: %v, %v", slack.Classes, slack.OtherNodes)
	}
}

// virtualNodes are nodes that no machine is behind.
var virtualNodes = map[string]fieldNode{
	"virtual-kubelet": {labels: "type: virtual-kubelet, kubernetes.io/role: agent", cpu: "10k", memory: "4Ti",
		spec: "taints: [{key: virtual-kubelet.io/provider, effect: NoSchedule, value: azure}]"},
	"untainted": {labels: "type: virtual-kubelet", cpu: "10k", memory: "4Ti"},
	"fargate": {labels: "eks.amazonaws.com/compute-type: fargate", cpu: "'2'", memory: "3937540Ki",
		spec: "taints: [{key: eks.amazonaws.com/compute-type, effect: NoSchedule, value: fargate}]"},
	"liqo": {labels: "liqo.io/type: virtual-node", cpu: "15", memory: "64Gi",
		spec: "taints: [{key: virtual-node.liqo.io/not-allowed, effect: NoExecute, value: 'true'}]"},
	"oke": {labels: "app: x", cpu: "1k", memory: "4Ti", spec: "providerID: ocid1.virtualnode.oc1.iad.aaaa"},
}

// A virtual node is neither removed nor takes pods of removed nodes, and its room is nobody's.
func TestVirtualNodesAreNoMachines(t *testing.T) {
	for name, node := range virtualNodes {
		node.name = "vk"
		file := fieldDump(t, []fieldNode{node, {name: "w-1", labels: hybridType}, {name: "w-2", labels: hybridType}},
			[]fieldPod{{name: "web-0", node: "w-1", cpu: "5", spec: "tolerations: [{operator: Exists}],"},
				{name: "web-1", node: "w-2", cpu: "5", spec: "tolerations: [{operator: Exists}],"},
				{name: "burst-0", node: "vk", cpu: "1", spec: "tolerations: [{operator: Exists}],"}})
		drain := ask[drainAnswer](t, file, "drain", "--now", drainNow, "--scale-down-utilization-threshold", "1")
		reasons := keepReasons(drain.Keep, func(k drainKeep) (string, string) { return k.Node, k.Reason })
		want := map[string]string{"vk": "VirtualNode", "w-1": "NoPlaceToMovePods", "w-2": "NoPlaceToMovePods"}
		if !maps.Equal(reasons, want) {
			t.Errorf("%s: drain: %v, %v go", name, reasons, drain.Remove)
		}
		consolidate := ask[consolidateAnswer](t, file, "consolidate", "--now", drainNow)
		if len(consolidate.Moves) != 0 {
			t.Errorf("%s: consolidate: %v", name, consolidate.Moves)
		}
		bill := ask[billAnswer](t, file, "bill", "--now", drainNow)
		if math.Abs(bill.Now-2*0.384) > 1e-9 || !slices.Equal(bill.OtherNodes, []otherNode{{"vk", "virtual"}}) {
			t.Errorf("%s: bill: %v, %v", name, bill.Now, bill.OtherNodes)
		}
		slack := ask[slackAnswer](t, file, "slack")
		if len(slack.Classes) != 1 || slack.Classes[0].Nodes != 2 {
			t.Errorf("%s: slack: %v", name, slack.Classes)
		}
		top := ask[topAnswer](t, file, "top", "--sort-by", "name")
		if top.Nodes[0].Kind != "virtual" || top.Total[0].Allocatable != 16_000 {
			t.Errorf("%s: top: %v", name, top)
		}
	}
}

// Infra and worker nodes of one type are in different groups, and so are systems, whatever the nodes are called.
func TestDerivedGroupsDoNotHangOnNames(t *testing.T) {
	for _, c := range []struct{ name, one, other string }{
		{"roles", "node-role.kubernetes.io/infra: ''", "node-role.kubernetes.io/worker: ''"},
		{"systems", "kubernetes.io/os: windows", "kubernetes.io/os: linux"},
		{"architectures", "kubernetes.io/arch: arm64", "kubernetes.io/arch: amd64"},
		{"pools", "worker.gardener.cloud/pool: a", "worker.gardener.cloud/pool: b"},
		{"selected", "example.com/tier: db", "example.com/tier: web"},
	} {
		var bills []billAnswer
		for _, names := range [][]string{{"a", "b", "c"}, {"z", "b", "a"}, {"m", "z", "a"}} {
			label, _, _ := strings.Cut(c.one, ":")
			_, value, _ := strings.Cut(c.other, ": ")
			file := fieldDump(t, []fieldNode{{name: names[0], labels: hybridType + ", " + c.one},
				{name: names[1], labels: hybridType + ", " + c.other},
				{name: names[2], labels: hybridType + ", " + c.other}},
				[]fieldPod{{name: "web-0", node: names[1], cpu: "5", spec: "nodeSelector: {" + label + ": " + value + "},"},
					{name: "web-1", node: names[2], cpu: "1", spec: "nodeSelector: {" + label + ": " + value + "},"},
					{name: "odd-0", node: names[0], cpu: "1"}})
			bills = append(bills, ask[billAnswer](t, file, "bill", "--now", drainNow))
		}
		for _, bill := range bills {
			if len(bill.Groups) != 2 {
				t.Errorf("%s: %v", c.name, bill.Groups)
			}
			for i, group := range bill.Groups {
				if first := bills[0].Groups[i]; group.Name != first.Name || group.Nodes != first.Nodes {
					t.Errorf("%s: %v, and under other names %v", c.name, first, group)
				}
			}
			if bill.Reachable != bills[0].Reachable || !reflect.DeepEqual(bill.Bound, bills[0].Bound) {
				t.Errorf("%s: %v and %v", c.name, bills[0], bill)
			}
		}
	}
}

// A new pod renames no group.
func TestANewPodRenamesNoGroup(t *testing.T) {
	nodes := []fieldNode{{name: "a", labels: hybridType + ", disk: ssd"}, {name: "b", labels: hybridType + ", disk: hdd"}}
	pods := []fieldPod{{name: "web-0", node: "a", cpu: "1"}, {name: "web-1", node: "b", cpu: "1"}}
	groupsOf := func() (names []string) {
		for _, group := range ask[billAnswer](t, fieldDump(t, nodes, pods), "bill", "--now", drainNow).Groups {
			names = append(names, group.Name)
		}
		return names
	}
	if got := groupsOf(); !slices.Equal(got, []string{"m5.2xlarge"}) {
		t.Error(got)
	}
	pods = append(pods, fieldPod{name: "db-0", node: "a", cpu: "1", spec: "nodeSelector: {disk: ssd},"})
	if got := groupsOf(); !slices.Equal(got, []string{"m5.2xlarge", "m5.2xlarge/disk=ssd"}) {
		t.Error(got)
	}
}

// A node that starts under a taint of the cluster's own is of the group of the others, if the taint is named.
func TestABillKnowsTheStartupTaintsOfTheCluster(t *testing.T) {
	file := fieldDump(t, []fieldNode{{name: "a", labels: hybridType},
		{name: "b", labels: hybridType, spec: "taints: [{key: example.com/starting, effect: NoSchedule}]"}},
		[]fieldPod{{name: "web-0", node: "a", cpu: "1"}})
	for _, c := range []struct {
		flags  []string
		groups int
	}{{nil, 2}, {[]string{"--startup-taint", "example.com/starting"}, 1}} {
		bill := ask[billAnswer](t, file, append([]string{"bill", "--now", drainNow}, c.flags...)...)
		if len(bill.Groups) != c.groups {
			t.Errorf("%v: %v", c.flags, bill.Groups)
		}
	}
	_, errs, code := run(t, "loadline", "", "bill", "-f", file, "--startup-taint", "no key")
	if code != 2 || !strings.Contains(errs, `--startup-taint: "no key"`) {
		t.Errorf("exit %d: %s", code, errs)
	}
}

package cloud

import (
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/nodegroup"
)

const twoPools = `
apiVersion: loadline.dev/v1alpha1
kind: NodeGroup
metadata: {name: a}
spec:
  nodeSelector: {pool: a}
  min: 1
  max: 5
  target: 4
  price: 0.5
  instanceType: m5.large
  template: {metadata: {labels: {pool: a}}, status: {capacity: {cpu: 4}}}
  scaleDown: {zeroOrMaxNodeScaling: true, scaleDownUtilizationThreshold: 0.7, scaleDownUnneededTime: 90s, scaleDownUnreadyTime: 1h, ignoreDaemonSetsUtilization: true}
---
apiVersion: loadline.dev/v1alpha1
kind: NodeGroup
metadata: {name: b}
spec:
  nodeSelector: {zone: z}
  max: 3
`

func machineNode(name, machine string, labels map[string]string) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: v1.NodeSpec{ProviderID: machine}}
}

// Two nodes of one machine are one machine, and a node without one has a stand-in. What group a states replaces the
// defaults; group b states nothing.
func TestStatedGroups(t *testing.T) {
	file, err := nodegroup.Parse([]byte(twoPools))
	if err != nil {
		t.Fatal(err)
	}
	pool := map[string]string{"pool": "a"}
	nodes := []*v1.Node{machineNode("n1", "sim://1", pool), machineNode("n2", "", pool),
		machineNode("n3", "sim://1", pool),
		machineNode("n4", "sim://4", nil)}
	defaults := &externalgrpc.NodeGroupAutoscalingOptions{ScaleDownUtilizationThreshold: 0.5,
		ScaleDownGpuUtilizationThreshold: 0.6, MaxNodeProvisionDuration: durationpb.New(time.Minute)}
	got, err := Stated(file.Groups, nodes, defaults)
	if err != nil {
		t.Fatal(err)
	}
	a, b := got[0], got[1]
	if len(a.Instances) != 2 || a.Instances[0].GetId() != "sim://1" || a.Instances[1].GetId() != "node/n2" ||
		a.Min != 1 || a.Max != 5 || a.Target != 4 || *a.Model.StatedPrice != 0.5 || a.Model.InstanceType != "m5.large" ||
		!a.Model.ByCloud || a.Model.Node.Name != "template-node-for-a" {
		t.Errorf("group a: %+v", a)
	}
	want := &externalgrpc.NodeGroupAutoscalingOptions{ZeroOrMaxNodeScaling: true, ScaleDownUtilizationThreshold: 0.7,
		ScaleDownGpuUtilizationThreshold: 0.6, IgnoreDaemonSetsUtilization: true,
		ScaleDownUnneededDuration: durationpb.New(90 * time.Second), ScaleDownUnreadyDuration: durationpb.New(time.Hour),
		MaxNodeProvisionDuration: durationpb.New(time.Minute)}
	if !proto.Equal(a.Options, want) {
		t.Errorf("options %v, want %v", a.Options, want)
	}
	if b.Options != nil || len(b.Instances) != 0 || b.Target != 0 || b.Model.Node != nil {
		t.Errorf("group b: %+v", b)
	}
	both := machineNode("n5", "", map[string]string{"pool": "a", "zone": "z"})
	if _, err := Stated(file.Groups, append(nodes, both), defaults); err == nil ||
		!strings.Contains(err.Error(), "node n5 belongs to two node groups, a and b") {
		t.Error(err)
	}
}

// A derived group may become empty and grow without limit. A machine of two nodes is in the first of their groups, and a
// slot without a node adds none.
func TestDerivedGroups(t *testing.T) {
	nodes := map[int32]*v1.Node{0: machineNode("n1", "sim://1", nil), 1: machineNode("n2", "", nil),
		2: machineNode("n3", "sim://1", nil)}
	got := Derived([]*loadlinev1.DerivedGroup{{NodeGroup: "a", Slots: []int32{0, 1, 7}},
		{NodeGroup: "b", Slots: []int32{2}}},
		func(slot int32) *v1.Node { return nodes[slot] })
	a, b := got[0], got[1]
	if a.ID != "a" || a.Min != 0 || a.Max != math.MaxInt32 || a.Target != 2 || len(a.Instances) != 2 ||
		a.Instances[0].GetId() != "sim://1" || a.Instances[1].GetId() != "node/n2" {
		t.Errorf("group a: %+v", a)
	}
	if b.ID != "b" || b.Target != 0 || len(b.Instances) != 0 {
		t.Errorf("group b: %+v", b)
	}
}

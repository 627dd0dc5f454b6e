package consolidate

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func node(name string, labels map[string]string, taints ...v1.Taint) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: v1.NodeSpec{Taints: taints},
		Status: v1.NodeStatus{Capacity: v1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi")}}}
}

func TestGroupsAreDerivedFromNodes(t *testing.T) {
	typed := map[string]string{v1.LabelInstanceTypeStable: "m5.large", v1.LabelTopologyZone: "a"}
	spot := map[string]string{v1.LabelInstanceTypeStable: "m5.large", v1.LabelTopologyZone: "a",
		"karpenter.sh/nodepool": "web", "karpenter.sh/capacity-type": "spot"}
	gpu := v1.Taint{Key: "gpu", Value: "yes", Effect: v1.TaintEffectNoSchedule}
	passing := v1.Taint{Key: "node.kubernetes.io/not-ready", Effect: v1.TaintEffectNoSchedule}
	g := NewGroups()
	for _, n := range []*v1.Node{node("n1", typed), node("n2", typed, passing), node("n3", spot), node("n4", typed, gpu),
		node("n5", nil), node("gone", typed)} {
		g.AddNode(n)
	}
	slots := map[string]int32{"n1": 0, "n2": 1, "n3": 2, "n4": 3, "n5": 4}
	groups, err := g.Proto(func(name string) (int32, bool) { slot, ok := slots[name]; return slot, ok })
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		name  string
		slots int
	}{{"4-cpu-16Gi", 1}, {"m5.large/a", 2}, {"m5.large/a/gpu=yes:NoSchedule", 1}, {"web/m5.large/a/spot", 1}}
	if len(groups) != len(want) || g.Len() != len(want) {
		t.Fatalf("%d groups, want %d: %v", len(groups), len(want), groups)
	}
	for i, w := range want {
		growth, down := groups[i].GetGrowth(), groups[i].GetScaleDown()
		if growth.GetNodeGroup() != w.name || len(down.GetSlots()) != w.slots || int(growth.GetCurrentNodes()) != w.slots {
			t.Errorf("group %d is %s with %d nodes, want %s with %d", i, growth.GetNodeGroup(), len(down.GetSlots()), w.name, w.slots)
		}
		if growth.GetMaxNodes() != maxNodes || down.GetMinNodes() != 0 {
			t.Errorf("%s: [%d, %d]", w.name, down.GetMinNodes(), growth.GetMaxNodes())
		}
	}
	if s := groups[3].GetGrowth().Spot; s == nil || !*s {
		t.Errorf("spot is %v", s)
	}
	if groups[1].GetGrowth().Spot != nil {
		t.Error("nothing says whether m5.large/a is spot")
	}
}

package demo

import (
	"reflect"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"loadline.dev/shim/report"
)

// placement has one node per pair of cpu and memory limits, of which 100 each are allocatable.
func placement(name string, pending int, limits ...[2]int64) report.Placement {
	p := report.Placement{Name: name, PendingPods: pending}
	for _, l := range limits {
		p.Nodes = append(p.Nodes, report.Node{Resources: map[string]report.Amounts{
			"cpu": {Allocatable: 100, Limits: l[0]}, "memory": {Allocatable: 100, Limits: l[1]},
		}})
	}
	return p
}

func TestCheckClaim(t *testing.T) {
	stock := placement("stock", 1, [2]int64{200, 150}, [2]int64{50, 50})
	for _, c := range []struct {
		name string
		ours report.Placement
		want []string // the beginnings of what does not hold
	}{
		{"Lower", placement("ours", 1, [2]int64{130, 100}, [2]int64{120, 100}), nil},
		{"FewerPending", placement("ours", 0, [2]int64{199, 149}, [2]int64{51, 51}), nil},
		{"CPUEqual", placement("ours", 1, [2]int64{200, 100}, [2]int64{50, 100}), []string{"p95 of cpu", "max of cpu"}},
		{"MemoryHigher", placement("ours", 1, [2]int64{130, 151}, [2]int64{120, 49}),
			[]string{"p95 of memory", "max of memory"}},
		{"MorePending", placement("ours", 2, [2]int64{130, 100}, [2]int64{120, 100}), []string{"2 pods are pending"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := CheckClaim(stock, c.ours)
			if len(got) != len(c.want) {
				t.Fatalf("got %q, want %q", got, c.want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], c.want[i]) {
					t.Errorf("got %q, want %q...", got[i], c.want[i])
				}
			}
		})
	}
}

// p95 of 20 nodes is the 19th: the maximum alone may be lower without p95 being so.
func TestCheckClaimTellsP95FromMax(t *testing.T) {
	stock, ours := placement("stock", 0), placement("ours", 0)
	for i := range 20 {
		limit := [2]int64{100, 100}
		if i == 0 {
			limit = [2]int64{300, 300}
		}
		stock.Nodes = append(stock.Nodes, placement("", 0, limit).Nodes...)
		ours.Nodes = append(ours.Nodes, placement("", 0, [2]int64{110, 90}).Nodes...)
	}
	got := CheckClaim(stock, ours)
	if len(got) != 1 || !strings.HasPrefix(got[0], "p95 of cpu") {
		t.Errorf("got %q, want only p95 of cpu", got)
	}
}

func TestMeasure(t *testing.T) {
	nodes := ExampleNodes()
	for _, node := range nodes {
		node.Status.Allocatable = node.Status.Capacity
	}
	sidecar := v1.ContainerRestartPolicyAlways
	pods := append(ExamplePods(), NewExamplePod("x"))
	pods[2].Spec.InitContainers = []v1.Container{{RestartPolicy: &sidecar, Resources: v1.ResourceRequirements{
		Limits: v1.ResourceList{v1.ResourceCPU: resource.MustParse("250m")}}}}
	got := Measure("stock", nodes, pods)
	gib := int64(1) << 30
	want := report.Placement{Name: "stock", PendingPods: 1, Nodes: []report.Node{
		{Name: "node1", Resources: map[string]report.Amounts{
			"cpu":    {Allocatable: 8000, Requests: 4000, Limits: 10000},
			"memory": {Allocatable: 32 * gib, Requests: 2 * gib, Limits: 2 * gib}}},
		{Name: "node2", Resources: map[string]report.Amounts{
			"cpu":    {Allocatable: 8000, Requests: 5000, Limits: 5250},
			"memory": {Allocatable: 32 * gib, Requests: 2 * gib, Limits: 2 * gib}}},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

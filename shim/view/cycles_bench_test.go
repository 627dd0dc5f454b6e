package view

import (
	"fmt"
	"math/rand/v2"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/testing/nodeinfo"
)

// BenchmarkCycle measures what a cycle costs beside the question itself: 500 feasible nodes of 5,000, none of them
// changed, or one with 40 pods.
func BenchmarkCycle(b *testing.B) {
	for _, changed := range []int{0, 1} {
		b.Run(fmt.Sprintf("changed=%d", changed), func(b *testing.B) {
			const count = 5000
			all := make([]fwk.NodeInfo, count)
			for i := range all {
				all[i] = benchNode(i, int64(i+1), 40)
			}
			c := newCycles(nil, "bench", Events{})
			snapshot := &nodeinfo.Lister{Nodes: all}
			ask := func(feasible []fwk.NodeInfo) {
				cycle := oneCycle{Feasible: feasible, Snapshot: snapshot}
				err := c.Ask(cycle, func(*loadlinev1.Changes, []int32) error { return nil })
				if err != nil {
					b.Fatal(err)
				}
			}
			for i := 0; i < count; i += 20 { // few at a time: more would go to the background
				ask(all[i : i+20])
			}
			r := rand.New(rand.NewPCG(1, 1))
			generation := int64(count)
			b.ReportAllocs()
			for b.Loop() {
				start := r.IntN(count - 500)
				for range changed {
					generation++
					all[start] = benchNode(start, generation, 40)
				}
				ask(all[start : start+500])
			}
		})
	}
}

func benchNode(i int, generation int64, pods int) fwk.NodeInfo {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i)}}
	node.Status.Allocatable = v1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("32Gi")}
	list := make([]*v1.Pod, pods)
	for j := range list {
		list[j] = fullPod()
		list[j].UID = ""
	}
	return nodeinfo.New(generation, node, list...)
}

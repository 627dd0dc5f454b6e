package scheduler

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"loadline.dev/shim/engine"
	"loadline.dev/shim/internal/testing/enginetest"
	"loadline.dev/shim/internal/testing/nodeinfo"
)

// BenchmarkCycle measures what the plugin adds to a scheduling cycle of a cluster of 5,000 nodes with 40 pods each:
// 500 feasible nodes, of which one changed since the cycle before; and with a load line, which looks at all nodes.
func BenchmarkCycle(b *testing.B) {
	for name, address := range map[string]func() string{
		"inprocess": func() string { return enginetest.Address(b) },
		"unix":      func() string { return enginetest.StartDaemon(b).Address() },
	} {
		b.Run(name, func(b *testing.B) { benchmarkCycle(b, address(), "") })
		b.Run(name+"/line", func(b *testing.B) {
			benchmarkCycle(b, address(), `, "maxLimitsOverAllocatable": {"cpu": 3, "memory": 1.5}`)
		})
	}
}

func benchmarkCycle(b *testing.B, address, line string) {
	const count, feasible, pods = 5000, 500, 40
	nodes := make([]*v1.Node, count)
	onNode := make([][]*v1.Pod, count)
	infos := make([]fwk.NodeInfo, count)
	for i := range nodes {
		nodes[i] = &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("ip-10-0-%d-%d.internal", i/256, i%256)}}
		nodes[i].Status.Allocatable = v1.ResourceList{"cpu": resource.MustParse("32"),
			"memory": resource.MustParse("128Gi"), "pods": resource.MustParse("110")}
		for j := range pods {
			onNode[i] = append(onNode[i], benchPod(i*pods+j))
		}
		infos[i] = nodeinfo.New(int64(i+1), nodes[i], onNode[i]...)
	}
	c := &clients{dial: engine.Open, now: time.Now}
	handle := &fakeHandle{nodes: infos}
	p, err := newPlugin(b.Context(),
		&runtime.Unknown{Raw: fmt.Appendf(nil, `{"engineAddress": %q, "timeout": "1s"%s}`, address, line)}, handle, c)
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	incoming := benchPod(7)
	for status := fwk.NewStatus(fwk.Skip); status.IsSkip(); time.Sleep(50 * time.Millisecond) {
		status = p.PreScore(b.Context(), &cycleState{}, incoming, infos[:feasible])
	}
	generation := int64(count)
	cycle := 0
	for b.Loop() {
		cycle++
		first := cycle * 37 % (count - feasible)
		generation++
		infos[first] = nodeinfo.New(generation, nodes[first], onNode[first][cycle%2:]...)
		state := &cycleState{}
		if line != "" {
			if _, status := p.PreFilter(b.Context(), state, incoming, infos); !status.IsSuccess() {
				b.Fatal(status)
			}
			for _, info := range infos[first : first+feasible] {
				if status := p.Filter(b.Context(), state, incoming, info); !status.IsSuccess() {
					b.Fatal(status)
				}
			}
		}
		if status := p.PreScore(b.Context(), state, incoming, infos[first:first+feasible]); !status.IsSuccess() {
			b.Fatalf("cycle %d was skipped: %v", cycle, *p.trouble.Load())
		}
		list := make(fwk.NodeScoreList, feasible)
		for i, info := range infos[first : first+feasible] {
			list[i].Score, _ = p.Score(b.Context(), state, incoming, info)
		}
		p.NormalizeScore(b.Context(), state, incoming, list)
	}
}

// benchPod is one of 100 kinds of pods.
func benchPod(i int) *v1.Pod {
	p := pod()
	p.Name, p.UID, p.ResourceVersion = fmt.Sprint("pod-", i), "", "1"
	p.Spec.Containers[0].Resources.Limits = v1.ResourceList{
		"cpu": *resource.NewMilliQuantity(int64(100+i%100), resource.DecimalSI), "memory": resource.MustParse("512Mi"),
	}
	return p
}

// BenchmarkPreemption measures what the plugin adds to the cycle of a pod that preempts others: on 1,000 nodes with 30
// pods each, none of which has room under the line, kube-scheduler tries 100 nodes. It takes all pods off, and adds one
// after the other again.
func BenchmarkPreemption(b *testing.B) {
	for name, address := range map[string]func() string{
		"inprocess": func() string { return enginetest.Address(b) },
		"unix":      func() string { return enginetest.StartDaemon(b).Address() },
	} {
		b.Run(name, func(b *testing.B) { benchmarkPreemption(b, address()) })
	}
}

func benchmarkPreemption(b *testing.B, address string) {
	const count, candidates, pods = 1000, 100, 30
	infos := make([]fwk.NodeInfo, count)
	for i := range infos {
		var on []*v1.Pod
		for j := range pods {
			on = append(on, uid(limited(fmt.Sprint("pod-", i*pods+j), 1), i*pods+j))
		}
		infos[i] = nodeinfo.New(int64(i+1), cores(fmt.Sprint("node-", i), 8), on...)
	}
	p, err := newPlugin(b.Context(), &runtime.Unknown{Raw: fmt.Appendf(nil,
		`{"engineAddress": %q, "timeout": "1s", "maxLimitsOverAllocatable": {"cpu": 3.75, "memory": 100}}`, address)},
		&fakeHandle{nodes: infos}, &clients{dial: engine.Open, now: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	incoming := limited("new", 4)
	for b.Loop() {
		state := &cycleState{}
		if _, status := p.PreFilter(b.Context(), state, incoming, infos); !status.IsSuccess() {
			b.Fatal(status)
		}
		for _, info := range infos {
			if p.Filter(b.Context(), state, incoming, info).IsSuccess() {
				b.Fatal("a node has room")
			}
		}
		for _, info := range infos[:candidates] {
			supposed := state.clone(b)
			for _, victim := range info.GetPods() {
				p.RemovePod(b.Context(), supposed, incoming, victim, info)
			}
			if status := p.Filter(b.Context(), supposed, incoming, info); !status.IsSuccess() {
				b.Fatal(status)
			}
			for _, victim := range info.GetPods() {
				p.AddPod(b.Context(), supposed, incoming, victim, info)
				if !p.Filter(b.Context(), supposed, incoming, info).IsSuccess() {
					p.RemovePod(b.Context(), supposed, incoming, victim, info)
				}
			}
		}
	}
}

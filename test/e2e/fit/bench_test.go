// The benchmark uses what the scheduler of 1.36 only has.
//go:build !kubernetes137

package fit

import (
	"context"
	"fmt"
	"reflect"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// The work of the benchmarks in test/bench, done with kube-scheduler's framework, as Cluster Autoscaler does it: per
// pod PreFilter, then Filter node by node in the order of the names until one takes the pod. One worker, as there.

func benchNode(i int, cores int64) *v1.Node {
	name := fmt.Sprint("node-", 1000000+i)
	list := v1.ResourceList{
		v1.ResourceCPU:    *resource.NewQuantity(cores, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(cores<<32, resource.BinarySI),
		v1.ResourcePods:   resource.MustParse("110"),
	}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			v1.LabelHostname: name, v1.LabelTopologyZone: fmt.Sprint("zone-", i%3), "size": fmt.Sprint(cores)}},
		Status: v1.NodeStatus{Capacity: list, Allocatable: list},
	}
}

func benchNodes(n int, cores ...int64) (nodes []*v1.Node) {
	for i := range n {
		nodes = append(nodes, benchNode(i, cores[i%len(cores)]))
	}
	return nodes
}

func benchPod(name string, milli int64, app string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Namespace: "default",
			Labels: map[string]string{"app": app}},
		Spec: v1.PodSpec{
			Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
				v1.ResourceCPU:    *resource.NewMilliQuantity(milli, resource.DecimalSI),
				v1.ResourceMemory: *resource.NewQuantity(milli<<30/500, resource.BinarySI),
			}}}}},
	}
}

// apart keeps pods of one app on different nodes.
func apart(pod *v1.Pod) *v1.Pod {
	pod.Spec.Affinity = &v1.Affinity{
		PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
			TopologyKey: v1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: pod.Labels}}}}}
	return pod
}

// spreadOut spreads pods of one app evenly over zones and nodes.
func spreadOut(pod *v1.Pod) *v1.Pod {
	for _, key := range []string{v1.LabelTopologyZone, v1.LabelHostname} {
		pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, v1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: v1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: pod.Labels}})
	}
	return pod
}

var fiveTypes = []int64{4, 8, 16, 32, 64}

// half returns pods that take half of the CPU of each node.
func half(nodes []*v1.Node) (pods []*v1.Pod) {
	for i, node := range nodes {
		for range 4 {
			pod := benchPod(fmt.Sprint("old-", len(pods)), node.Status.Allocatable.Cpu().MilliValue()/8,
				fmt.Sprint("old-", i%20))
			pod.Spec.NodeName = node.Name
			pods = append(pods, pod)
		}
	}
	return pods
}

// packer puts pods onto nodes first-fit. It is the snapshot that the plugins see: its nodes are in name order, and
// its lists of nodes with affinity are kept as pods are placed.
type packer struct {
	fwk.SharedLister
	fwk.NodeInfoLister // for what a newer Kubernetes lists as well
	upstream           *Upstream
	nodes              []fwk.NodeInfo
	affine             []fwk.NodeInfo
}

func newPacker(b *testing.B, c *Cluster) *packer {
	b.Helper()
	upstream, err := NewUpstream(b.Context(), nil)
	if err != nil {
		b.Fatal(err)
	}
	if err := upstream.Load(c); err != nil {
		b.Fatal(err)
	}
	p := &packer{SharedLister: upstream.snapshot.SharedLister,
		NodeInfoLister: upstream.snapshot.SharedLister.NodeInfos(), upstream: upstream}
	for _, node := range c.Nodes {
		info, err := p.SharedLister.NodeInfos().Get(node.Name)
		if err != nil {
			b.Fatal(err)
		}
		p.nodes = append(p.nodes, info)
		if len(info.GetPodsWithRequiredAntiAffinity()) > 0 {
			p.affine = append(p.affine, info)
		}
	}
	upstream.snapshot.SharedLister = p
	return p
}

func (p *packer) NodeInfos() fwk.NodeInfoLister { return p }

func (p *packer) List() ([]fwk.NodeInfo, error) { return p.nodes, nil }

func (p *packer) HavePodsWithAffinityList() ([]fwk.NodeInfo, error) { return p.affine, nil }

func (p *packer) HavePodsWithRequiredAntiAffinityList() ([]fwk.NodeInfo, error) { return p.affine, nil }

func (p *packer) Get(name string) (fwk.NodeInfo, error) { return p.SharedLister.NodeInfos().Get(name) }

// place puts a pod onto the first node that takes it; false if none does.
func (p *packer) place(ctx context.Context, pod *v1.Pod) (bool, error) {
	state := framework.NewCycleState()
	if _, status, _ := p.upstream.framework.RunPreFilterPlugins(ctx, state, pod); !status.IsSuccess() {
		return false, status.AsError()
	}
	for _, node := range p.nodes {
		if !p.upstream.framework.RunFilterPlugins(ctx, state, pod, node).IsSuccess() {
			continue
		}
		info, err := framework.NewPodInfo(pod)
		if err != nil {
			return false, err
		}
		if len(info.RequiredAntiAffinityTerms) > 0 && len(node.GetPodsWithRequiredAntiAffinity()) == 0 {
			p.affine = append(p.affine, node)
		}
		node.AddPodInfo(info)
		return true, nil
	}
	return false, nil
}

// cpuTime is the CPU time that the process has used: on a busy machine it says more than the time that passed.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// reportCPU reports the mean of some CPU time over the iterations.
func reportCPU(b *testing.B, used time.Duration) {
	b.Helper()
	b.ReportMetric(float64(used.Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// firstFit places pods into a cluster and reports how many found a node.
func firstFit(b *testing.B, nodes []*v1.Node, there, pods []*v1.Pod) {
	var used time.Duration
	defer func() { reportCPU(b, used) }()
	for b.Loop() {
		b.StopTimer()
		p := newPacker(b, &Cluster{Nodes: nodes, Pods: there})
		b.StartTimer()
		used -= cpuTime(b)
		placed := 0
		for _, pod := range pods {
			ok, err := p.place(b.Context(), pod)
			if err != nil {
				b.Fatal(err)
			}
			if ok {
				placed++
			}
		}
		used += cpuTime(b)
		b.ReportMetric(float64(placed), "placed")
	}
}

func BenchmarkUpstreamFirstFit(b *testing.B) {
	nodes := benchNodes(5000, fiveTypes...)
	var pods []*v1.Pod
	for i := range 50000 {
		shape := i % 50
		pods = append(pods, benchPod(fmt.Sprint("pod-", i), int64(50+37*shape%1000), fmt.Sprint("app-", shape)))
	}
	b.Run("5000", func(b *testing.B) { firstFit(b, nodes, half(nodes), pods) })
}

func BenchmarkUpstreamFirstFitAntiAffinity(b *testing.B) {
	nodes := benchNodes(500, 64)
	var pods []*v1.Pod
	for i := range 20000 {
		pods = append(pods, apart(benchPod(fmt.Sprint("pod-", i), 100, fmt.Sprint("app-", i%40))))
	}
	b.Run("500", func(b *testing.B) { firstFit(b, nodes, nil, pods) })
}

func BenchmarkUpstreamFirstFitSpread(b *testing.B) {
	nodes := benchNodes(5000, 16)
	var pods []*v1.Pod
	for i := range 10000 {
		pods = append(pods, spreadOut(benchPod(fmt.Sprint("pod-", i), 100, fmt.Sprint("app-", i%10))))
	}
	b.Run("5000", func(b *testing.B) { firstFit(b, nodes, nil, pods) })
}

// One pod against all nodes, each of which holds a pod that does not want it there.
func BenchmarkUpstreamFitAntiAffinity(b *testing.B) {
	c := &Cluster{Nodes: benchNodes(5000, 16), Pod: apart(benchPod("incoming", 100, "lonely"))}
	for _, node := range c.Nodes {
		pod := apart(benchPod("on-"+node.Name, 100, "lonely"))
		pod.Spec.NodeName = node.Name
		c.Pods = append(c.Pods, pod)
	}
	b.Run("5000", func(b *testing.B) {
		p := newPacker(b, c)
		start := cpuTime(b)
		for b.Loop() {
			state := framework.NewCycleState()
			if _, status, _ := p.upstream.framework.RunPreFilterPlugins(b.Context(), state,
				c.Pod); !status.IsSuccess() {
				b.Fatal(status)
			}
			for _, node := range p.nodes {
				if p.upstream.framework.RunFilterPlugins(b.Context(), state, c.Pod, node).IsSuccess() {
					b.Fatal("a node took the pod")
				}
			}
		}
		reportCPU(b, cpuTime(b)-start)
	})
}

// fork copies a snapshot, by what this Kubernetes has for it, and returns what takes the copy back.
func fork(b *testing.B, snapshot *schedulercache.Snapshot) (revert func()) {
	fail := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	if from137, ok := any(snapshot).(interface {
		StartMutations() error
		EndMutations() error
	}); ok {
		fail(from137.StartMutations())
		return func() { fail(from137.EndMutations()) }
	}
	// The method of 1.36; it returns a func type of its own, which later ones do not have.
	results := reflect.ValueOf(snapshot).MethodByName("BackupSnapshot").Call(nil)
	err, _ := results[1].Interface().(error)
	fail(err)
	return func() { results[0].Call(nil) }
}

// Fork, place 30 pods, revert. Forking is copying the snapshot.
func BenchmarkUpstreamForkPlaceRevert(b *testing.B) {
	for _, n := range []int{5000, 100000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			nodes := benchNodes(n, fiveTypes...)
			snapshot := schedulercache.NewSnapshot(half(nodes), nodes)
			start := cpuTime(b)
			for b.Loop() {
				revert := fork(b, snapshot)
				for i := range 30 {
					node, err := snapshot.Get(nodes[i*len(nodes)/30].Name)
					if err != nil {
						b.Fatal(err)
					}
					info, err := framework.NewPodInfo(benchPod(fmt.Sprint("pod-", i), 100, "new"))
					if err != nil {
						b.Fatal(err)
					}
					node.AddPodInfo(info)
				}
				revert()
			}
			reportCPU(b, cpuTime(b)-start)
		})
	}
}

package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"loadline.dev/shim/internal/testing/enginetest"
)

// twoLines is a configuration of two profiles, each with a load line of its own, which filter by nothing else.
const twoLines = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: low
  plugins: &plugins
    multiPoint:
      disabled: [{name: "*"}]
      enabled: [{name: PrioritySort}, {name: DefaultBinder}, {name: NodeResourcesLimitAware}]
  pluginConfig:
  - name: NodeResourcesLimitAware
    args: {engineAddress: %[1]q, timeout: 1s, maxLimitsOverAllocatable: {cpu: 1.5, memory: 1.125}}
- schedulerName: high
  plugins: *plugins
  pluginConfig:
  - name: NodeResourcesLimitAware
    args: {engineAddress: %[1]q, timeout: 1s, maxLimitsOverAllocatable: {cpu: 2.5}}
`

// lines are those of twoLines, in eighths.
var lines = map[string]map[v1.ResourceName]int64{
	"low": {"cpu": 12, "memory": 9}, "high": {"cpu": 20},
}

// nominations are the pods that are nominated to nodes.
type nominations map[string][]*v1.Pod

func (nominations) AddNominatedPod(klog.Logger, fwk.PodInfo, *fwk.NominatingInfo) {}
func (nominations) DeleteNominatedPodIfExists(*v1.Pod)                            {}
func (nominations) UpdateNominatedPod(klog.Logger, *v1.Pod, fwk.PodInfo)          {}

func (n nominations) NominatedPodsForNode(node string) []fwk.PodInfo {
	var infos []fwk.PodInfo
	for _, pod := range n[node] {
		info, err := framework.NewPodInfo(pod)
		if err != nil {
			panic(err)
		}
		infos = append(infos, info)
	}
	return infos
}

// cluster is a cluster in which pods are placed, preempted, resized and deleted, and the recount of it.
type cluster struct {
	*rand.Rand
	t         *testing.T
	profiles  profile.Map
	snapshot  *cache.Snapshot
	nodes     []*v1.Node
	pods      []*v1.Pod // on nodes
	nominated nominations
	made      int

	placed, preempted, besideNominated, resized int
}

func newCluster(t *testing.T, seed uint64) *cluster {
	c := &cluster{Rand: rand.New(rand.NewPCG(seed, 0)), t: t, snapshot: cache.NewEmptySnapshot(), nominated: nominations{}}
	for i := range 7 {
		c.nodes = append(c.nodes, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("node", i)},
			Status: v1.NodeStatus{Allocatable: c.amounts(4+c.Int64N(12), 8+c.Int64N(24))}})
	}
	var err error
	c.profiles, err = newProfilesOn(t, fmt.Sprintf(twoLines, enginetest.Address(t)), c.snapshot,
		frameworkruntime.WithPodNominator(c.nominated))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *cluster) amounts(cpu, memory int64) v1.ResourceList {
	return v1.ResourceList{"cpu": *resource.NewQuantity(cpu, resource.DecimalSI),
		"memory": *resource.NewQuantity(memory<<30, resource.BinarySI)}
}

// newPod returns a pod of one or two containers, of which one in eight lacks a limit.
func (c *cluster) newPod() *v1.Pod {
	c.made++
	priority := c.Int32N(4)
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("pod", c.made),
			UID: types.UID(fmt.Sprint("uid", c.made)), ResourceVersion: "1"},
		Spec: v1.PodSpec{Priority: &priority, SchedulerName: slices.Sorted(maps.Keys(lines))[c.IntN(2)]},
	}
	for i := range 1 + c.IntN(2) {
		limits := c.amounts(c.Int64N(6), 1+c.Int64N(8))
		if c.IntN(8) == 0 {
			delete(limits, slices.Sorted(maps.Keys(limits))[c.IntN(2)])
		}
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: fmt.Sprint("c", i),
			Resources: v1.ResourceRequirements{Requests: c.amounts(1, 1), Limits: limits}})
	}
	return pod
}

// resize lowers the limits of a pod of one container: of its spec first, of its status later.
func (c *cluster) resize() {
	i := c.IntN(len(c.pods))
	pod := c.pods[i].DeepCopy()
	container := &pod.Spec.Containers[0].Resources
	if len(pod.Spec.Containers) > 1 || len(container.Limits) < 2 {
		return
	}
	pod.ResourceVersion = fmt.Sprint(c.made, "-", c.Int())
	if len(pod.Status.ContainerStatuses) > 0 {
		pod.Status.ContainerStatuses[0].Resources.Limits = container.Limits.DeepCopy()
	} else {
		pod.Status.ContainerStatuses = []v1.ContainerStatus{
			{Name: "c0", Resources: &v1.ResourceRequirements{Limits: container.Limits.DeepCopy()}}}
	}
	container.Limits = c.amounts(1, 1)
	c.pods[i] = pod
	c.resized++
}

// counted is what a pod counts as on a node by the preset strict, in thousandths: the sum of its limits, where the
// request of cpu or the whole memory of the node replaces a missing one, and the node at most.
func counted(pod *v1.Pod, node *v1.Node, name v1.ResourceName) int64 {
	offered := node.Status.Allocatable[name]
	total := int64(0)
	for i, container := range pod.Spec.Containers {
		limit, ok := container.Resources.Limits[name]
		if i < len(pod.Status.ContainerStatuses) {
			if granted := pod.Status.ContainerStatuses[i].Resources.Limits[name]; granted.Cmp(limit) > 0 {
				limit = granted
			}
		}
		switch {
		case ok && limit.Sign() > 0:
			total += limit.MilliValue()
		case name == "memory":
			total += offered.MilliValue()
		default:
			request := container.Resources.Requests[name]
			total += request.MilliValue()
		}
	}
	return min(total, offered.MilliValue())
}

// keeps says whether a node that holds pods may take another one under the line of its profile.
func keeps(pod *v1.Pod, node *v1.Node, holds []*v1.Pod) bool {
	for name, eighths := range lines[pod.Spec.SchedulerName] {
		total := counted(pod, node, name)
		if total == 0 {
			continue
		}
		for _, other := range holds {
			total += counted(other, node, name)
		}
		if offered := node.Status.Allocatable[name]; total*8 > offered.MilliValue()*eighths {
			return false
		}
	}
	return true
}

// on returns the pods on a node without some, and with those of the same priority or a higher one as a pod that are
// nominated to it.
func (c *cluster) on(node string, without []*v1.Pod) []*v1.Pod {
	return slices.DeleteFunc(slices.Clone(c.pods), func(other *v1.Pod) bool {
		return other.Spec.NodeName != node || slices.ContainsFunc(without, func(p *v1.Pod) bool { return p.UID == other.UID })
	})
}

func (c *cluster) nominatedBefore(pod *v1.Pod, node string) []*v1.Pod {
	return slices.DeleteFunc(slices.Clone(c.nominated[node]), func(other *v1.Pod) bool {
		return *other.Spec.Priority < *pod.Spec.Priority || other.UID == pod.UID
	})
}

// mayCome says whether a node may take a pod without some of those there, beside those nominated and without them.
func (c *cluster) mayCome(pod *v1.Pod, node *v1.Node, without []*v1.Pod) bool {
	holds := c.on(node.Name, without)
	return keeps(pod, node, holds) && keeps(pod, node, append(holds, c.nominatedBefore(pod, node.Name)...))
}

// schedule runs a cycle for a pod.
func (c *cluster) schedule(pod *v1.Pod) {
	*c.snapshot = *cache.NewSnapshot(c.pods, c.nodes)
	f := c.profiles[pod.Spec.SchedulerName]
	ctx, state := c.t.Context(), framework.NewCycleState()
	if _, status, _ := f.RunPreFilterPlugins(ctx, state, pod); !status.IsSuccess() {
		c.t.Fatalf("PreFilter: %v", status)
	}
	var feasible []*v1.Node
	var candidates []fwk.NodeInfo
	for _, node := range c.nodes {
		info, err := c.snapshot.NodeInfos().Get(node.Name)
		if err != nil {
			c.t.Fatal(err)
		}
		status := f.RunFilterPluginsWithNominatedPods(ctx, state, pod, info)
		alone := keeps(pod, node, nil)
		switch want := c.mayCome(pod, node, nil); {
		case status.IsSuccess() != want:
			c.t.Fatalf("%s on %s: %v, want %v", pod.Name, node.Name, status, want)
		case want:
			feasible = append(feasible, node)
			if len(c.nominatedBefore(pod, node.Name)) > 0 {
				c.besideNominated++
			}
		case status.Code() == fwk.UnschedulableAndUnresolvable && alone, status.Code() == fwk.Unschedulable && !alone:
			c.t.Fatalf("%s on %s: %v; alone it fits: %v", pod.Name, node.Name, status, alone)
		case alone:
			candidates = append(candidates, info)
		}
	}
	if len(feasible) > 0 {
		c.place(pod, feasible[c.IntN(len(feasible))])
		return
	}
	if len(candidates) > 0 {
		c.preempt(f, state, pod, candidates)
	}
}

// preempt tries to preempt pods, holds the outcome for each node against the recount, and takes one.
func (c *cluster) preempt(f framework.Framework, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) {
	plugin, err := defaultpreemption.New(c.t.Context(), &config.DefaultPreemptionArgs{MinCandidateNodesPercentage: 10,
		MinCandidateNodesAbsolute: 100}, f, feature.Features{})
	if err != nil {
		c.t.Fatal(err)
	}
	found, _, err := plugin.Evaluator.DryRunPreemption(c.t.Context(), state, pod, nodes, nil, 0, int32(len(nodes)+1))
	if err != nil {
		c.t.Fatal(err)
	}
	victimsOn := map[string][]*v1.Pod{}
	for _, candidate := range found {
		victimsOn[candidate.Name()] = candidate.Victims().Pods
	}
	for _, info := range nodes {
		node := info.Node()
		victims, helps := victimsOn[node.Name]
		lower := slices.DeleteFunc(c.on(node.Name, nil),
			func(p *v1.Pod) bool { return *p.Spec.Priority >= *pod.Spec.Priority })
		if could := len(lower) > 0 && c.mayCome(pod, node, lower); could != helps {
			c.t.Fatalf("%s on %s: preemption helps: %v, want %v", pod.Name, node.Name, helps, could)
		}
		if helps && !c.mayCome(pod, node, victims) {
			c.t.Fatalf("%s is above the line without %d pods beside %s", node.Name, len(victims), pod.Name)
		}
		for i, victim := range victims {
			if c.mayCome(pod, node, slices.Delete(slices.Clone(victims), i, i+1)) {
				c.t.Fatalf("%s on %s: %s would not have to go", pod.Name, node.Name, victim.Name)
			}
		}
	}
	if len(found) == 0 {
		return
	}
	c.preempted++
	chosen := found[c.IntN(len(found))]
	c.pods = slices.DeleteFunc(c.pods, func(p *v1.Pod) bool {
		return slices.ContainsFunc(chosen.Victims().Pods, func(v *v1.Pod) bool { return v.UID == p.UID })
	})
	c.nominated[chosen.Name()] = append(c.nominated[chosen.Name()], pod)
}

// place puts a pod on a node, which then must not be above the line of its profile.
func (c *cluster) place(pod *v1.Pod, node *v1.Node) {
	if !keeps(pod, node, c.on(node.Name, nil)) {
		c.t.Fatalf("%s comes above the line by %s", node.Name, pod.Name)
	}
	for name, pods := range c.nominated {
		c.nominated[name] = slices.DeleteFunc(pods, func(p *v1.Pod) bool { return p.UID == pod.UID })
	}
	pod = pod.DeepCopy()
	pod.Spec.NodeName = node.Name
	c.pods = append(c.pods, pod)
	c.placed++
}

// Whatever is placed, preempted, nominated, resized and deleted, the plugin says what a recount says, through
// kube-scheduler's own dry run of preemption, and no pod lifts a node above the line of its profile.
func TestPreemptionKeepsToTheLine(t *testing.T) {
	var placed, preempted, beside, resized int
	for seed := uint64(1); seed <= 4; seed++ {
		c := newCluster(t, seed)
		for range 120 {
			pod := c.newPod()
			if waiting := slices.Concat(slices.Collect(maps.Values(c.nominated))...); len(waiting) > 0 && c.IntN(3) == 0 {
				slices.SortFunc(waiting, func(a, b *v1.Pod) int { return len(a.Name) - len(b.Name) })
				pod = waiting[0]
			}
			c.schedule(pod)
			for len(c.pods) > 0 && c.IntN(4) == 0 {
				c.resize()
			}
			if len(c.pods) > 0 && c.IntN(8) == 0 {
				i := c.IntN(len(c.pods))
				c.pods = slices.Delete(c.pods, i, i+1)
			}
		}
		placed, preempted = placed+c.placed, preempted+c.preempted
		beside, resized = beside+c.besideNominated, resized+c.resized
	}
	t.Logf("%d pods placed, %d preempted others, %d times a node was free beside nominated pods, %d resizes", placed,
		preempted, beside, resized)
	if placed < 50 || preempted < 20 || beside < 5 || resized < 20 {
		t.Error("that is too little to show anything")
	}
}

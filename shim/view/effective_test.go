package view

import (
	"cmp"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelpers "k8s.io/component-helpers/resource"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/internal/kuberelease"
	"loadline.dev/shim/internal/testing/enginetest"
	"loadline.dev/shim/internal/testing/randompod"
)

const (
	comparedPods   = 200_000 / slowdown
	comparedAtOnce = 20_000
	podsPerNode    = 100
	incomingShare  = 10 // one pod of so many is also compared as an incoming one
	leastShare     = 5  // percent of the pods that each feature must have
)

// The engine's effective requests and limits are those of component-helpers, which kube-scheduler and kubelet use.
// Invariants A6, A9.
func TestEffectiveResourcesEqualComponentHelpers(t *testing.T) {
	conn := enginetest.Open(t)
	r := rand.New(rand.NewPCG(217, 36))
	counts := map[randompod.Feature]int{}
	for first := 0; first < comparedPods; first += comparedAtOnce {
		pods := map[string]*v1.Pod{}
		v := New(conn, "compare")
		v.CountAs(kuberelease.Compiled())
		for i := range comparedAtOnce {
			node := fmt.Sprintf("node-%d", i/podsPerNode)
			if i%podsPerNode == 0 {
				v.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
			}
			pod, features := randompod.New(r, fmt.Sprint(i), node)
			for feature, has := range features {
				if has {
					counts[feature]++
				}
			}
			pods[pod.Namespace+"/"+pod.Name] = pod
			v.SetPod(pod)
			if i%incomingShare == 0 {
				compareIncoming(t, conn, pod)
			}
		}
		if err := v.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := compareExisting(t, conn, pods); got != comparedAtOnce {
			t.Fatalf("the engine holds %d pods, want %d", got, comparedAtOnce)
		}
	}
	for _, feature := range randompod.Features {
		share := 100 * float64(counts[feature]) / comparedPods
		t.Logf("%5.1f %% %s", share, feature)
		if share < leastShare {
			t.Errorf("%s: %.1f %% of the pods, want at least %d %%", feature, share, leastShare)
		}
	}
}

// The table of scheduler-plugins' Trimaran, pkg/trimaran/resourcestats_test.go (903da7df), GetResourceLimits: sums over
// the containers, at least the init container with its 2000 and 4096, and then the overhead.
func TestEffectiveLimitsOfTrimaransTable(t *testing.T) {
	conn := enginetest.Open(t)
	amounts := func(cpu, memory int64) v1.ResourceList {
		return v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(cpu, resource.DecimalSI),
			v1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI)}
	}
	limited := func(cpu, memory int64) v1.Container {
		return v1.Container{Resources: v1.ResourceRequirements{Limits: amounts(cpu, memory)}}
	}
	for _, c := range []struct {
		containers []v1.Container
		overhead   int64
		want       []int64 // cpu, memory
	}{
		{[]v1.Container{limited(1000, 2048), limited(500, 1024)}, 10, []int64{2010, 4096}},
		{[]v1.Container{limited(1000, 4096), limited(2500, 2048)}, 10, []int64{3510, 6144}},
		{[]v1.Container{limited(0, 0), limited(0, 2048), limited(1000, 0)}, 0, []int64{2000, 4096}},
	} {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod"}, Spec: v1.PodSpec{
			Containers: c.containers, InitContainers: []v1.Container{limited(2000, 4096)},
			Overhead: amounts(c.overhead, 0)}}
		limits := explainAlone(t, conn, pod).GetPodLimits()
		if len(limits) != 2 || limits[0].GetAmount() != c.want[0] || limits[1].GetAmount() != c.want[1] {
			t.Errorf("got limits %v, want %v", limits, c.want)
		}
	}
}

// compareExisting compares all pods that the engine holds and returns how many they are.
func compareExisting(t *testing.T, conn engine.Conn, pods map[string]*v1.Pod) (compared int) {
	t.Helper()
	// The options of NodeInfo for pods on a node: what the status says of a resize counts.
	options := resourcehelpers.PodResourcesOptions{UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true}
	request := &loadlinev1.DescribeRequest{View: "compare", IncludePods: true}
	for {
		page, err := loadlinev1.NewClusterStateClient(conn).Describe(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		for _, node := range page.GetNodes() {
			for _, got := range node.GetPods() {
				pod := pods[got.GetNamespace()+"/"+got.GetName()]
				compare(t, "existing", pod, got.GetRequests(), resourcehelpers.PodRequests(pod.DeepCopy(), options))
				compare(t, "existing", pod, got.GetLimits(), resourcehelpers.PodLimits(pod.DeepCopy(), options))
				compared++
			}
		}
		if request.FirstSlot = page.GetNextSlot(); request.FirstSlot == 0 {
			return compared
		}
	}
}

// compareIncoming compares a pod that is to be placed: its status does not count, whether it is sent or not.
func compareIncoming(t *testing.T, conn engine.Conn, pod *v1.Pod) {
	t.Helper()
	answer := explainAlone(t, conn, pod)
	compare(t, "incoming", pod, answer.GetPodRequests(),
		resourcehelpers.PodRequests(pod.DeepCopy(), resourcehelpers.PodResourcesOptions{}))
	compare(t, "incoming", pod, answer.GetPodLimits(),
		resourcehelpers.PodLimits(pod.DeepCopy(), resourcehelpers.PodResourcesOptions{}))
}

// explainAlone asks about a pod and a node that offers nothing.
func explainAlone(t *testing.T, conn engine.Conn, pod *v1.Pod) *loadlinev1.ExplainResponse {
	t.Helper()
	node := TrimNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	answer, err := loadlinev1.NewSchedulerExtenderClient(conn).Explain(t.Context(), &loadlinev1.ExplainRequest{
		Changes: &loadlinev1.Changes{View: "incoming", Epoch: 1, Revision: 1,
			FullList: &loadlinev1.FullListChunk{Last: true}, Nodes: []*loadlinev1.NodeRecord{{Node: node}}},
		Pod: TrimPod(pod), Policy: &loadlinev1.ScorePolicy{Preset: loadlinev1.ScorePolicy_STRICT},
	})
	if err != nil {
		t.Fatalf("%v: %v", pod, err)
	}
	return answer
}

// compare is given what component-helpers made of a copy of the pod: it adds an overhead to a pod-level limit in
// place, and so changes a pod whose limit is a fraction. Amounts of 0 of extended resources are left out: the engine
// drops them, so that no pod can fill the table of names with resources that it does not ask for.
func compare(t *testing.T, role string, pod *v1.Pod, got []*loadlinev1.ResourceAmount, want v1.ResourceList) {
	t.Helper()
	var amounts []*loadlinev1.ResourceAmount
	for name, quantity := range want {
		if quantity.IsZero() && !alwaysThere(string(name)) {
			continue
		}
		amounts = append(amounts, &loadlinev1.ResourceAmount{Resource: string(name), Amount: amount(name, quantity)})
	}
	slices.SortFunc(amounts,
		func(a, b *loadlinev1.ResourceAmount) int { return cmp.Compare(a.GetResource(), b.GetResource()) })
	got = slices.DeleteFunc(got,
		func(a *loadlinev1.ResourceAmount) bool { return a.GetAmount() == 0 && !alwaysThere(a.GetResource()) })
	same := slices.EqualFunc(got, amounts, func(a, b *loadlinev1.ResourceAmount) bool {
		return a.GetResource() == b.GetResource() && a.GetAmount() == b.GetAmount()
	})
	if !same {
		t.Fatalf("%s pod:\ngot  %v\nwant %v\nof %v", role, got, amounts, pod)
	}
}

func alwaysThere(resource string) bool {
	return resource == "cpu" || resource == "memory" || resource == "ephemeral-storage"
}

// amount rounds up to millicores or whole units and clamps to 2^62.
func amount(name v1.ResourceName, quantity resource.Quantity) int64 {
	scale := int64(1)
	if name == v1.ResourceCPU {
		scale = 1000
	}
	if quantity.AsApproximateFloat64() < 1e15 { // beyond, Quantity's own MilliValue and Value wrap
		if name == v1.ResourceCPU {
			return quantity.MilliValue()
		}
		return quantity.Value()
	}
	exact, ok := new(big.Rat).SetString(quantity.AsDec().String())
	if !ok {
		panic(quantity.String())
	}
	exact.Mul(exact, big.NewRat(scale, 1))
	up, remainder := new(big.Int).QuoRem(exact.Num(), exact.Denom(), new(big.Int))
	if remainder.Sign() > 0 {
		up.Add(up, big.NewInt(1))
	}
	if largest := big.NewInt(1 << 62); up.Cmp(largest) > 0 {
		up = largest
	}
	return up.Int64()
}

package scenario

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"loadline.dev/shim/api/loadlinev1"
)

// derivedGroup is a group of nodes of 4 cores, 16 GiB and 58 pods.
func derivedGroup(name string, repels bool, nodes int) *loadlinev1.DerivedGroup {
	return &loadlinev1.DerivedGroup{NodeGroup: name, Slots: make([]int32, nodes), MilliCpu: 4000, MemoryBytes: 16 << 30,
		Pods: 58, Repels: repels}
}

func clusterPod(name, node, ownerKind, owner string) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "x"}},
		Spec: v1.PodSpec{NodeName: node, Containers: []v1.Container{{Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("1Gi")},
			Limits:   v1.ResourceList{"cpu": resource.MustParse("1")}}}}}}
	if owner != "" {
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: ownerKind, Name: owner, Controller: new(true)}}
	}
	return pod
}

func deriveOf(t *testing.T, c *Cluster) (map[string]*loadlinev1.SimulatedGroup, map[string]*loadlinev1.SimulatedWorkload) {
	t.Helper()
	scenario, notes, err := Derive(c)
	if err != nil || len(notes) == 0 {
		t.Fatal(notes, err)
	}
	groups, workloads := map[string]*loadlinev1.SimulatedGroup{}, map[string]*loadlinev1.SimulatedWorkload{}
	for _, g := range scenario.GetGroups() {
		groups[g.GetName()] = g
	}
	for _, w := range scenario.GetWorkloads() {
		workloads[w.GetName()] = w
	}
	return groups, workloads
}

func TestDeriveReadsGroupsFromNodes(t *testing.T) {
	groups, _ := deriveOf(t, &Cluster{Groups: []*loadlinev1.DerivedGroup{derivedGroup("m5.xlarge", false, 2),
		derivedGroup("g5.xlarge/gpu=:NoSchedule", true, 1)},
		USDPerHour: map[string]float64{"m5.xlarge": 0.192}})
	m5 := groups["m5-xlarge"]
	if m5.GetNodes() != 2 || m5.GetMax() != 10 || m5.GetMin() != 0 || m5.GetMilliCpu() != 4000 || m5.GetMemoryMib() != 16384 ||
		m5.GetPods() != 58 || m5.GetUsdPerHour() != 0.192 || m5.GetTainted() {
		t.Errorf("m5.xlarge is %v", m5)
	}
	if len(groups) != 2 {
		t.Errorf("groups %v", groups)
	}
	for name, g := range groups {
		if name != "m5-xlarge" && (!g.GetTainted() || g.GetUsdPerHour() != 0 || g.GetNodes() != 1) {
			t.Errorf("%s is %v", name, g)
		}
	}
}

func TestDeriveReadsLoadFromOwners(t *testing.T) {
	c := &Cluster{Groups: []*loadlinev1.DerivedGroup{derivedGroup("m", false, 2), derivedGroup("g/gpu=:NoSchedule", true, 1)},
		GroupOf: map[string]string{"a": "m", "b": "m", "g": "g/gpu=:NoSchedule", "cp": ""},
		Load:    Curve{DailyPercent: 40}, Budgets: []*policyv1.PodDisruptionBudget{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Spec: policyv1.PodDisruptionBudgetSpec{
				MinAvailable: new(intstr.FromString("50%")),
				Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "web"}}}}}}
	for i := range 3 {
		web := clusterPod(fmt.Sprint("web-", i), "a", "ReplicaSet", "web-5d9c")
		web.Labels = map[string]string{"tier": "web", "pod-template-hash": "5d9c"}
		c.Pods = append(c.Pods, web)
	}
	for _, node := range []string{"a", "b", "g"} {
		c.Pods = append(c.Pods, clusterPod("agent-"+node, node, "DaemonSet", "agent"),
			clusterPod("proxy-"+node, node, "Node", node))
	}
	// A node of the control plane takes no part, nor does what runs there alone.
	c.Pods = append(c.Pods, clusterPod("etcd-cp", "cp", "Node", "cp"), clusterPod("dns", "cp", "ReplicaSet", "dns"))
	train := clusterPod("train-0", "g", "StatefulSet", "train")
	ended := clusterPod("old", "a", "ReplicaSet", "web-5d9c")
	ended.Status.Phase = v1.PodFailed
	bare := clusterPod("bare", "b", "", "")
	c.Protected = map[*v1.Pod]bool{bare: true}
	c.Pods = append(c.Pods, train, ended, bare)
	noon := time.Date(2026, 2, 17, 12, 0, 0, 0, time.UTC)
	for i, created := range []time.Time{noon.Add(-25 * time.Hour), noon.Add(-2 * time.Hour), noon} {
		job := clusterPod(fmt.Sprint("report-", i), "a", "Job", fmt.Sprint("report-2933760", i))
		job.CreationTimestamp = metav1.NewTime(created)
		job.Status = v1.PodStatus{Phase: v1.PodSucceeded, ContainerStatuses: []v1.ContainerStatus{{
			State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{StartedAt: metav1.NewTime(created),
				FinishedAt: metav1.NewTime(created.Add(time.Duration(i) * time.Minute))}}}}}
		c.Pods = append(c.Pods, job)
	}
	_, workloads := deriveOf(t, c)
	for name, want := range map[string]*loadlinev1.SimulatedWorkload{
		"shop-web": {Kind: loadlinev1.SimulatedWorkload_DEPLOYMENT, Replicas: 3, DailyPercent: 40, MaxUnavailable: new(int64(1))},
		// Two within the last day of the dump, from 10:00 on; they ran for one and for two minutes.
		"shop-report": {Kind: loadlinev1.SimulatedWorkload_BATCH, Replicas: 2, FirstSeconds: 36000, EverySeconds: 86400,
			RunSeconds: &loadlinev1.SecondsRange{Min: 60, Max: 120}},
		"shop-agent": {Kind: loadlinev1.SimulatedWorkload_DAEMON},
		"shop-proxy": {Kind: loadlinev1.SimulatedWorkload_DAEMON},
		"shop-train": {Kind: loadlinev1.SimulatedWorkload_DEPLOYMENT, Replicas: 1, DailyPercent: 40, Group: "g-gpu--noschedule"},
		"shop-x":     {Kind: loadlinev1.SimulatedWorkload_DEPLOYMENT, Replicas: 1, DailyPercent: 40, NotEvictable: true},
	} {
		want.Name, want.MilliCpu, want.MemoryMib, want.LimitMilliCpu = name, 500, 1024, 1000
		got := workloads[name]
		if got == nil {
			t.Errorf("there is no %s: %v", name, workloads)
			continue
		}
		if got.String() != want.String() {
			t.Errorf("%s is\n%v, want\n%v", name, got, want)
		}
		delete(workloads, name)
	}
	if len(workloads) > 0 {
		t.Errorf("there are more: %v", workloads)
	}
}

func TestDocumentsAreReadAgain(t *testing.T) {
	scenario, _, err := Derive(&Cluster{Groups: []*loadlinev1.DerivedGroup{derivedGroup("m", false, 1)},
		Pods: []*v1.Pod{clusterPod("web", "a", "ReplicaSet", "web"), clusterPod("123", "a", "", "")}})
	if err != nil {
		t.Fatal(err)
	}
	scenario.Workloads[0].Name = "123"
	content, err := Document("n", scenario)
	if err != nil {
		t.Fatal(err)
	}
	name, read, err := parse(content)
	if err != nil || name != "n" || read.String() != scenario.String() {
		t.Errorf("%v, %s: %v\n%s", err, name, read, content)
	}
	if text := string(content); !strings.Contains(text, "milliCpu: 500\n") || !strings.Contains(text, "name: \"123\"") {
		t.Errorf("numbers are in quotes, or names are not:\n%s", text)
	}
}

func TestDeriveCountsGPUsOfEveryMaker(t *testing.T) {
	pod := clusterPod("train-0", "a", "StatefulSet", "train")
	requests := pod.Spec.Containers[0].Resources.Requests
	requests["amd.com/gpu"], requests["example.com/fpga"] = resource.MustParse("2"), resource.MustParse("4")
	group := derivedGroup("g4ad.xlarge", false, 1)
	group.Gpus = 2
	groups, workloads := deriveOf(t, &Cluster{Groups: []*loadlinev1.DerivedGroup{group}, Pods: []*v1.Pod{pod},
		GroupOf: map[string]string{"a": "g4ad.xlarge"}, GPUResources: []string{"nvidia.com/gpu", "amd.com/gpu"}})
	if gpus := groups["g4ad-xlarge"].GetGpus(); gpus != 2 {
		t.Errorf("%d GPUs, want 2", gpus)
	}
	if gpus := workloads["shop-train"].GetGpus(); gpus != 2 {
		t.Errorf("a pod has %d GPUs, want 2", gpus)
	}
}

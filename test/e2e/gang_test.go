package e2e

import (
	"context"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/test/e2e/demo"
	"loadline.dev/test/e2e/harness"
)

// gangPod asks for next to nothing, so that only what it may use tells nodes apart.
func gangPod(name, gang string, limit int64) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: v1.PodSpec{SchedulerName: demo.OurScheduler, Containers: []v1.Container{{
			Name: "c", Image: "registry.k8s.io/pause:3.10.2", Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{"cpu": resource.MustParse("1m"), "memory": resource.MustParse("1Mi")},
				Limits: v1.ResourceList{"cpu": *resource.NewQuantity(limit, resource.DecimalSI),
					"memory": *resource.NewQuantity(limit<<30, resource.BinarySI)},
			},
		}}},
	}
	if gang != "" {
		pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &gang}
	}
	return pod
}

func startGangs(t *testing.T, ctx context.Context, nodes int) *harness.Cluster {
	t.Helper()
	cluster := startCluster(t, ctx, harness.Options{Log: t.Logf, Gangs: true})
	engine := startEngine(t, ctx, cluster)
	options, err := demo.OurOptions(harness.SecondSchedulerConfig, engine.Address)
	if err != nil {
		t.Fatal(err)
	}
	options.Site.EngineTimeout = demo.PatientTimeout
	options.Args = append(options.Args, harness.GangGates())
	var offered []*v1.Node
	for i := range nodes {
		offered = append(offered, &v1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("node", i)},
			Status: v1.NodeStatus{Allocatable: v1.ResourceList{"cpu": resource.MustParse("64"),
				"memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110")}},
		})
	}
	if err := cluster.CreateNodes(ctx, offered); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.StartScheduler(ctx, options); err != nil {
		t.Fatal(err)
	}
	return cluster
}

// podsPerNode waits until so many pods have a node or were found to have none, and counts them.
func podsPerNode(t *testing.T, ctx context.Context, watch *harness.PodWatch, pods int) map[string]int {
	t.Helper()
	if err := watch.WaitSettled(ctx, pods, 0); err != nil {
		t.Fatal(err)
	}
	perNode := map[string]int{}
	for _, pod := range watch.Pods() {
		if pod.Spec.NodeName != "" {
			perNode[pod.Spec.NodeName]++
		}
	}
	return perNode
}

// Each member of a gang sees those before it: 12 pods that may use the same are spread over 4 nodes, 3 on each.
func TestMembersOfAGangSeeThoseBefore(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	cluster := startGangs(t, ctx, 4)
	watch, err := cluster.WatchPods(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.CreateGang(ctx, "default", "gang", 12); err != nil {
		t.Fatal(err)
	}
	var pods []*v1.Pod
	for i := range 12 {
		pods = append(pods, gangPod(fmt.Sprint("member", i), "gang", 4))
	}
	if err := cluster.CreatePods(ctx, pods); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(podsPerNode(t, ctx, watch, 12)), "map[node0:3 node1:3 node2:3 node3:3]"; got != want {
		t.Errorf("pods per node: %s, want %s", got, want)
	}
}

// Nothing stays of a gang that is rejected: node0 has the lower limits, whatever the gang had put there on trial.
func TestNothingOfARejectedGangStays(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	cluster := startGangs(t, ctx, 2)
	watch, err := cluster.WatchPods(ctx)
	if err != nil {
		t.Fatal(err)
	}
	there := gangPod("there", "", 2)
	there.Spec.NodeName = "node1"
	if err := cluster.CreateGang(ctx, "default", "gang", 2); err != nil {
		t.Fatal(err)
	}
	fits, never := gangPod("fits", "gang", 32), gangPod("never", "gang", 1)
	never.Spec.NodeSelector = map[string]string{"no-node": "has-this"}
	if err := cluster.CreatePodsInOrder(ctx, []*v1.Pod{there, fits, never}); err != nil {
		t.Fatal(err)
	}
	podsPerNode(t, ctx, watch, 3) // both members were tried, to no avail
	if err := cluster.CreatePods(ctx, []*v1.Pod{gangPod("single", "", 1)}); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(podsPerNode(t, ctx, watch, 4)), "map[node0:1 node1:1]"; got != want {
		t.Errorf("pods per node: %s, want %s: the single pod belongs on node0", got, want)
	}
}

package autoscaler

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/autoscaler/tell"
	"loadline.dev/shim/autoscaler/watch"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/internal/testing/enginetest"
	"loadline.dev/shim/view"
)

// still is a cloud in which nothing happens.
type still struct {
	*bench
	groups []cloud.Group
}

func (s *still) Refresh(context.Context) error { return nil }

func (s *still) Groups(context.Context, *externalgrpc.NodeGroupAutoscalingOptions) ([]cloud.Group, error) {
	return s.groups, nil
}

// One loop in mode observe, from the events of the API server to the status, but for the API server itself: 2,000 nodes
// with 80,000 pods, and 5,000 with 100,000, in ten groups, the pods of 200 workloads, of which 1 % have been replaced
// since the last loop. With the engine in this process, and with loadlined behind a socket, as manifests have it.
func BenchmarkLoop(b *testing.B) {
	for _, size := range []struct{ nodes, podsPerNode int }{{2000, 40}, {5000, 20}} {
		b.Run(fmt.Sprintf("%d/inprocess", size.nodes), func(b *testing.B) {
			benchmarkLoop(b, enginetest.Open(b), size.nodes, size.podsPerNode)
		})
		b.Run(fmt.Sprintf("%d/unix", size.nodes), func(b *testing.B) {
			benchmarkLoop(b, enginetest.StartDaemon(b).Open(), size.nodes, size.podsPerNode)
		})
	}
}

func benchmarkLoop(b *testing.B, conn engine.Conn, nodes, podsPerNode int) {
	const groups, workloads = 10, 200
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	options := config.Default()
	c := watch.New(view.NewForPlanning(conn, "bench"), &options, nil)
	client := fake.NewClientset()
	if err := c.Watch(b.Context(), client); err != nil {
		b.Fatal(err)
	}
	for !c.Ready() {
		time.Sleep(time.Millisecond)
	}
	asked := &still{groups: make([]cloud.Group, groups)}
	size := v1.ResourceList{"cpu": resource.MustParse("16"), "memory": resource.MustParse("64Gi"),
		"pods": resource.MustParse("110")}
	for i := range nodes {
		name := fmt.Sprintf("node-%05d", i)
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name),
			Labels: map[string]string{v1.LabelHostname: name}},
			Spec: v1.NodeSpec{ProviderID: "sim://" + name},
			Status: v1.NodeStatus{Capacity: size, Allocatable: size,
				Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}}}
		c.Handler(watch.KindNode).OnAdd(node, false)
		g := &asked.groups[i%groups]
		g.ID, g.Max, g.Target = fmt.Sprintf("group-%d", i%groups), nodes, g.Target+1
		g.Instances = append(g.Instances,
			machineIn(externalgrpc.InstanceState_INSTANCE_RUNNING, node.Spec.ProviderID, nil))
	}
	pod := func(i, generation int) *v1.Pod {
		workload := fmt.Sprintf("rs-%03d", i%workloads)
		name := fmt.Sprintf("%s-%06d-%d", workload, i, generation)
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name),
			Labels: map[string]string{"app": workload},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ReplicationController", Name: workload,
				UID: types.UID(workload), Controller: new(true)}}},
			Spec: v1.PodSpec{NodeName: fmt.Sprintf("node-%05d", i%nodes),
				Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
					Requests: v1.ResourceList{"cpu": *resource.NewMilliQuantity(int64(400+i%workloads),
						resource.DecimalSI), "memory": resource.MustParse("1Gi")}}}}},
			Status: v1.PodStatus{Phase: v1.PodRunning,
				Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}}}
	}
	for i := range workloads {
		name := fmt.Sprintf("rs-%03d", i)
		rc := &v1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name,
			UID: types.UID(name)},
			Spec:   v1.ReplicationControllerSpec{Replicas: new(int32(nodes * podsPerNode / workloads))},
			Status: v1.ReplicationControllerStatus{Replicas: int32(nodes * podsPerNode / workloads)}}
		c.Handler("ReplicationController").OnAdd(rc, false)
	}
	generation := make([]int, nodes*podsPerNode)
	for i := range generation {
		p := pod(i, 0)
		c.Handler(watch.KindPod).OnAdd(p, false)
	}
	files, err := options.ReadFiles()
	if err != nil {
		b.Fatal(err)
	}
	p := plan.NewPlanner(loadlinev1.NewAutoscalerClient(conn), c, &options, files, client)
	l := newLeader(p, tell.New(c, &options, client, record.NewFakeRecorder(10), tell.NewMetrics("test"), 1), client, asked,
		systemClock())
	next := 0
	once := func() time.Duration {
		for range len(generation) / 100 {
			i := next % len(generation)
			old := pod(i, generation[i])
			c.Handler(watch.KindPod).OnDelete(old)
			generation[i]++
			p := pod(i, generation[i])
			c.Handler(watch.KindPod).OnAdd(p, false)
			next += 97
		}
		began := time.Now()
		if err := l.once(b.Context()); err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	b.Logf("the first loop, in which the engine is told everything: %v", once())
	var times []time.Duration
	for b.Loop() {
		times = append(times, once())
	}
	slices.Sort(times)
	for name, share := range map[string]float64{"ms/p50": 0.5, "ms/p99": 0.99, "ms/longest": 1} {
		at := min(len(times)-1, int(share*float64(len(times))))
		b.ReportMetric(float64(times[at].Milliseconds()), name)
	}
}

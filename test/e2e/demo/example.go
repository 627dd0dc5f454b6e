package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/test/e2e/harness"
)

// The worked example of KEP 217: two nodes of 8 cores, two pods on each, and pod5 to be placed. The proposal gives
// cpu only; memory is the same everywhere, so that it takes no side.
const (
	ExampleNamespace = "default"
	ExamplePod       = "pod5"
	exampleNodeCPU   = "8"
	exampleNodeMem   = "32Gi"
	examplePodMem    = "1Gi"
)

// ExampleNodes returns node1 and node2.
func ExampleNodes() []*v1.Node { return []*v1.Node{exampleNode("node1"), exampleNode("node2")} }

// ExamplePods returns the four pods that run there already. By requests node1 is the emptier one, 4/8 against 5/8;
// by limits it is node2, 10/8 against 5/8.
func ExamplePods() []*v1.Pod {
	return []*v1.Pod{
		examplePod("pod1", "node1", "2", "6"), examplePod("pod2", "node1", "2", "4"),
		examplePod("pod3", "node2", "3", "3"), examplePod("pod4", "node2", "2", "2"),
	}
}

// NewExamplePod returns pod5 for one scheduler.
func NewExamplePod(schedulerName string) *v1.Pod {
	pod := examplePod(ExamplePod, "", "1", "4")
	pod.Spec.SchedulerName = schedulerName
	return pod
}

func exampleNode(name string) *v1.Node {
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}},
		Status: v1.NodeStatus{Capacity: v1.ResourceList{
			v1.ResourceCPU:    resource.MustParse(exampleNodeCPU),
			v1.ResourceMemory: resource.MustParse(exampleNodeMem),
			v1.ResourcePods:   resource.MustParse("110"),
		}},
	}
}

func examplePod(name, node, request, limit string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ExampleNamespace},
		Spec: v1.PodSpec{NodeName: node, Containers: []v1.Container{{
			Name: "app", Image: "registry.example/app:1",
			Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(request),
					v1.ResourceMemory: resource.MustParse(examplePodMem)},
				Limits: v1.ResourceList{v1.ResourceCPU: resource.MustParse(limit),
					v1.ResourceMemory: resource.MustParse(examplePodMem)},
			},
		}}},
	}
}

// SetUpExample creates the nodes and the four pods.
func SetUpExample(ctx context.Context, cluster *harness.Cluster) error {
	return errors.Join(cluster.CreateNodes(ctx, ExampleNodes()), cluster.CreatePods(ctx, ExamplePods()))
}

// PlaceExamplePod lets the scheduler of that name place pod5 and returns the node. A pod5 that is there already is
// deleted first.
func PlaceExamplePod(ctx context.Context, cluster *harness.Cluster, schedulerName string) (string, error) {
	pods := cluster.Client.CoreV1().Pods(ExampleNamespace)
	if err := cluster.DeletePod(ctx, ExampleNamespace, ExamplePod); err != nil {
		return "", err
	}
	if _, err := pods.Create(ctx, NewExamplePod(schedulerName), metav1.CreateOptions{}); err != nil {
		return "", err
	}
	for {
		pod, err := pods.Get(ctx, ExamplePod, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		if pod.Spec.NodeName != "" {
			return pod.Spec.NodeName, nil
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("%s does not place %s: %w", schedulerName, ExamplePod, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

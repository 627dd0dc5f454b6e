// Package workload makes the nodes and pods that the demo and the tests place: from seeded distributions of our
// own, or sampled from the openb trace. The same seed gives the same objects in the same order.
package workload

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Namespace is where all pods go.
const Namespace = "default"

// GPU is the extended resource of the trace's GPUs.
const GPU v1.ResourceName = "nvidia.com/gpu"

// A Workload is a cluster to be filled.
type Workload struct {
	Nodes []*v1.Node
	// Pods in order of arrival.
	Pods []*v1.Pod
	// Stated says in lines of text what nodes and pods were drawn from.
	Stated []string
}

// A draw is one value of a distribution and its share in percent.
type draw[T any] struct {
	value   T
	percent int
}

// pick draws a value. The shares of a distribution add up to 100, which a test checks.
func pick[T any](random *rand.Rand, distribution []draw[T]) T {
	roll := random.IntN(100)
	for _, d := range distribution {
		if roll -= d.percent; roll < 0 {
			return d.value
		}
	}
	panic("the shares of a distribution do not add up to 100")
}

func state[T any](what string, distribution []draw[T], format func(T) string) string {
	parts := make([]string, len(distribution))
	for i, d := range distribution {
		parts[i] = fmt.Sprintf("%s %d%%", format(d.value), d.percent)
	}
	return what + ": " + strings.Join(parts, ", ")
}

// newRandom returns the generator of one purpose, so that a change in what one purpose draws leaves the others as
// they were.
func newRandom(seed uint64, purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, purpose)) }

const (
	forNodes uint64 = iota + 1
	forPods
	forLimits
)

// podsPerNode is the kubelet's default.
const podsPerNode = 110

// A machine is what a node offers, or a pod asks for.
type machine struct{ cpuMilli, memoryMiB, gpus int64 }

func (m machine) compare(other machine) int {
	return cmp.Or(cmp.Compare(m.gpus, other.gpus), cmp.Compare(m.cpuMilli, other.cpuMilli),
		cmp.Compare(m.memoryMiB, other.memoryMiB))
}

func (m machine) resources() v1.ResourceList {
	list := v1.ResourceList{v1.ResourceCPU: cores(m.cpuMilli), v1.ResourceMemory: bytes(m.memoryMiB * mib)}
	if m.gpus > 0 {
		list[GPU] = *resource.NewQuantity(m.gpus, resource.DecimalSI)
	}
	return list
}

func newNode(name string, allocatable v1.ResourceList) *v1.Node {
	allocatable[v1.ResourcePods] = *resource.NewQuantity(podsPerNode, resource.DecimalSI)
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}},
		Status:     v1.NodeStatus{Capacity: allocatable, Allocatable: allocatable},
	}
}

func newPod(name string, requests, limits v1.ResourceList) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace},
		Spec: v1.PodSpec{Containers: []v1.Container{{
			Name:      "app",
			Image:     "registry.example/app:1",
			Resources: v1.ResourceRequirements{Requests: requests, Limits: limits},
		}}},
	}
}

func cores(milli int64) resource.Quantity {
	return *resource.NewMilliQuantity(milli, resource.DecimalSI)
}

func bytes(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.BinarySI) }

const mib = int64(1) << 20

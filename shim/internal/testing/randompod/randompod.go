// Package randompod makes pods for property tests: valid and odd, with all that effective requests and limits
// depend on.
package randompod

import (
	"fmt"
	"math/rand/v2"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Feature is something that a share of the pods have.
type Feature string

// All features.
const (
	Sidecar           Feature = "sidecar"
	SidecarAfterInit  Feature = "sidecar after an ordinary init container"
	OrdinaryInit      Feature = "ordinary init container"
	PodLevelRequests  Feature = "pod-level requests"
	PodLevelLimits    Feature = "pod-level limits"
	PodLevelStatus    Feature = "pod-level resources in the status"
	Overhead          Feature = "overhead"
	ResizeStatus      Feature = "resources in container statuses"
	Infeasible        Feature = "resize infeasible"
	Deferred          Feature = "resize deferred"
	OddQuantity       Feature = "odd quantity"
	ExtendedResource  Feature = "hugepages or extended resource"
	NoLimits          Feature = "no limit at all"
	SeveralContainers Feature = "several containers"
)

// Features lists all features.
var Features = []Feature{
	Sidecar, SidecarAfterInit, OrdinaryInit, PodLevelRequests, PodLevelLimits, PodLevelStatus, Overhead,
	ResizeStatus, Infeasible, Deferred, OddQuantity, ExtendedResource, NoLimits, SeveralContainers,
}

var (
	plainQuantities = []string{"0", "1", "2", "100m", "250m", "500m", "1500m", "64Mi", "128Mi", "1Gi", "4Gi", "1G",
		"300M", "7"}
	oddQuantities = []string{
		"0.1m", "1e3", "1.5Gi", "100n", "1u", "0.5", "12e-3", "1.000000001", "0.000000001", "3.999", "1E",
		"8Ei", "1e18",
		"9223372036854775807", "4611686018427387904", "123456789.987654321", "1.7Ki", "1E2", "999999999999n",
	}
	resources = []v1.ResourceName{
		v1.ResourceCPU, v1.ResourceMemory, v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage,
		"hugepages-2Mi", "nvidia.com/gpu",
	}
)

// generator makes one pod.
type generator struct {
	*rand.Rand
	has map[Feature]bool
}

// New returns a pod and the features that it has. Equal states of r give equal pods.
func New(r *rand.Rand, name, node string) (*v1.Pod, map[Feature]bool) {
	g := &generator{Rand: r, has: map[Feature]bool{}}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("ns-%d", r.IntN(3)), Name: name,
			UID: types.UID("uid-" + name)},
		Spec: v1.PodSpec{NodeName: node},
	}
	g.addContainers(pod)
	if g.oneIn(4) {
		pod.Spec.Overhead = g.list(3)
		g.has[Overhead] = true
	}
	if g.oneIn(3) {
		g.addPodLevel(pod)
	}
	g.addStatus(pod)
	return pod, g.has
}

func (g *generator) oneIn(n int) bool { return g.IntN(n) == 0 }

func (g *generator) addContainers(pod *v1.Pod) {
	limited := !g.oneIn(6)
	for i := range 1 + g.IntN(3) {
		pod.Spec.Containers = append(pod.Spec.Containers, g.container(fmt.Sprintf("c%d", i), limited))
	}
	g.has[SeveralContainers] = len(pod.Spec.Containers) > 1
	if g.oneIn(2) {
		for i := range 1 + g.IntN(4) {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, g.initContainer(fmt.Sprintf("i%d", i), limited))
		}
	}
	g.has[NoLimits] = !limited
}

func (g *generator) container(name string, limited bool) v1.Container {
	c := v1.Container{Name: name, Image: "image"}
	if !g.oneIn(5) {
		c.Resources.Requests = g.list(3)
	}
	if limited && !g.oneIn(4) {
		c.Resources.Limits = g.list(3)
	}
	return c
}

func (g *generator) initContainer(name string, limited bool) v1.Container {
	c := g.container(name, limited)
	if g.oneIn(2) {
		always := v1.ContainerRestartPolicyAlways
		c.RestartPolicy = &always
		g.has[Sidecar] = true
		g.has[SidecarAfterInit] = g.has[SidecarAfterInit] || g.has[OrdinaryInit]
	} else {
		g.has[OrdinaryInit] = true
	}
	return c
}

func (g *generator) addPodLevel(pod *v1.Pod) {
	pod.Spec.Resources = &v1.ResourceRequirements{}
	if !g.oneIn(3) {
		pod.Spec.Resources.Requests = g.list(2)
		g.has[PodLevelRequests] = true
	}
	if !g.oneIn(3) {
		pod.Spec.Resources.Limits = g.list(2)
		g.has[PodLevelLimits] = true
	}
	if g.oneIn(2) {
		pod.Status.Resources = &v1.ResourceRequirements{Requests: g.list(3), Limits: g.list(3)}
		pod.Status.AllocatedResources = g.list(2)
		g.has[PodLevelStatus] = true
	}
}

func (g *generator) addStatus(pod *v1.Pod) {
	pod.Status.Phase = v1.PodRunning
	pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
	if g.oneIn(2) {
		for _, c := range pod.Spec.Containers {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, g.status(c.Name))
		}
		for _, c := range pod.Spec.InitContainers {
			pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, g.status(c.Name))
		}
	}
	switch g.IntN(5) {
	case 0:
		g.addResize(pod, v1.PodReasonInfeasible)
		g.has[Infeasible] = true
	case 1:
		g.addResize(pod, v1.PodReasonDeferred)
		g.has[Deferred] = true
	}
}

func (g *generator) addResize(pod *v1.Pod, reason string) {
	condition := v1.PodCondition{Type: v1.PodResizePending, Status: v1.ConditionTrue, Reason: reason}
	pod.Status.Conditions = append(pod.Status.Conditions, condition)
}

func (g *generator) status(name string) v1.ContainerStatus {
	s := v1.ContainerStatus{Name: name, Image: "image", RestartCount: 1}
	if !g.oneIn(4) {
		s.Resources = &v1.ResourceRequirements{Requests: g.list(3), Limits: g.list(3)}
		g.has[ResizeStatus] = true
	}
	if g.oneIn(2) {
		s.AllocatedResources = g.list(2)
	}
	return s
}

// list returns up to `most` resources, or nil: an object that was read from an API server has no empty maps.
func (g *generator) list(most int) v1.ResourceList {
	var out v1.ResourceList
	for range g.IntN(most + 1) {
		if out == nil {
			out = v1.ResourceList{}
		}
		name := resources[g.IntN(len(resources))]
		out[name] = g.quantity()
		if name == "hugepages-2Mi" || name == "nvidia.com/gpu" {
			g.has[ExtendedResource] = true
		}
	}
	return out
}

func (g *generator) quantity() resource.Quantity {
	if g.oneIn(8) {
		g.has[OddQuantity] = true
		return resource.MustParse(oddQuantities[g.IntN(len(oddQuantities))])
	}
	return resource.MustParse(plainQuantities[g.IntN(len(plainQuantities))])
}

package workload

import (
	"maps"

	v1 "k8s.io/api/core/v1"
)

// podLevel are the resources that a pod may state as a whole, beside huge pages.
var podLevel = []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory}

// Submitted fills in what the API server fills in of a pod that is created, and of no template: a request that is
// missing is as large as the limit, and a pod in the network of its node has its ports there.
func Submitted(spec *v1.PodSpec) {
	for _, containers := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			requestLimits(&containers[i].Resources)
			for j := range containers[i].Ports {
				if port := &containers[i].Ports[j]; spec.HostNetwork && port.HostPort == 0 {
					port.HostPort = port.ContainerPort
				}
			}
		}
	}
	if spec.Resources != nil {
		requestPodLimits(spec)
	}
}

func requestLimits(of *v1.ResourceRequirements) {
	if len(of.Limits) == 0 {
		return
	}
	requests := maps.Clone(of.Limits)
	maps.Copy(requests, of.Requests)
	of.Requests = requests
}

// requestPodLimits has the pod as a whole request what its limits are, but for what its containers request: there the
// sum over them counts.
func requestPodLimits(spec *v1.PodSpec) {
	for _, name := range podLevel {
		limit, limited := spec.Resources.Limits[name]
		_, requested := spec.Resources.Requests[name]
		if !limited || requested || containersRequest(spec, name) {
			continue
		}
		requests := maps.Clone(spec.Resources.Requests)
		if requests == nil {
			requests = v1.ResourceList{}
		}
		requests[name] = limit
		spec.Resources.Requests = requests
	}
}

func containersRequest(spec *v1.PodSpec, name v1.ResourceName) bool {
	for _, containers := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			if _, ok := containers[i].Resources.Requests[name]; ok {
				return true
			}
		}
	}
	return false
}

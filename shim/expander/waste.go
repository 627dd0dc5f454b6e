package expander

import (
	"math"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// leastWaste returns the position of the option that leaves the smallest share of CPU plus the smallest share of
// memory of its new nodes unused, of equals the first: what Cluster Autoscaler's least-waste expander takes. An option
// without a template node, or without new nodes, is behind all others. There is at least one option.
func leastWaste(asked *question) int {
	requests := make([]amounts, len(asked.shapes))
	for i, shape := range asked.shapes {
		requests[i] = requestsOf(shape)
	}
	best, least := 0, math.Inf(1)
	for i, o := range asked.options {
		if waste := wasteOf(o, capacityOf(asked.templates[o.group]), requests); waste < least {
			best, least = i, waste
		}
	}
	return best
}

// amounts of CPU, in millicores, and memory, in bytes.
type amounts struct{ cpu, memory float64 }

func amountsOf(list v1.ResourceList) amounts {
	return amounts{float64(list.Cpu().MilliValue()), float64(list.Memory().Value())}
}

// requestsOf returns what a pod requests; nothing if it cannot be read.
func requestsOf(shape []byte) amounts {
	var pod v1.Pod
	if pod.Unmarshal(shape) != nil {
		return amounts{}
	}
	return amountsOf(resourcehelper.PodRequests(&pod, resourcehelper.PodResourcesOptions{}))
}

// capacityOf returns the capacity of a node; nothing if it cannot be read.
func capacityOf(template []byte) amounts {
	var node v1.Node
	if node.Unmarshal(template) != nil {
		return amounts{}
	}
	return amountsOf(node.Status.Capacity)
}

// wasteOf returns the share of CPU plus that of memory that an option leaves unused; +Inf where it adds neither.
func wasteOf(o option, capacity amounts, requests []amounts) float64 {
	var used amounts
	for _, run := range o.pods {
		used.cpu += float64(run.count) * requests[run.shape].cpu
		used.memory += float64(run.count) * requests[run.shape].memory
	}
	nodes := float64(o.nodes)
	if nodes <= 0 || capacity.cpu <= 0 || capacity.memory <= 0 {
		return math.Inf(1)
	}
	return (nodes*capacity.cpu-used.cpu)/(nodes*capacity.cpu) +
		(nodes*capacity.memory-used.memory)/(nodes*capacity.memory)
}

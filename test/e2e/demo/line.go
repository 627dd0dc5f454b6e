package demo

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"loadline.dev/test/e2e/harness"
	"loadline.dev/test/e2e/workload"
)

// LineName names the placement under a load line.
const LineName = "with the load line"

// MemoryLine is the load line of the demo: limits of memory over allocatable.
const MemoryLine = 1.5

// MoreNodes is the share of nodes that the load line may cost.
const MoreNodes = 0.05

// WithMoreNodes returns a workload with a share of its nodes a second time, evenly picked; one at least.
func WithMoreNodes(w workload.Workload, share float64) workload.Workload {
	more := max(1, int(float64(len(w.Nodes))*share))
	nodes := append([]*v1.Node{}, w.Nodes...)
	for i := range more {
		node := w.Nodes[i*len(w.Nodes)/more].DeepCopy()
		node.Name = fmt.Sprintf("more-%03d", i)
		if _, ok := node.Labels[v1.LabelHostname]; ok {
			node.Labels[v1.LabelHostname] = node.Name
		}
		nodes = append(nodes, node)
	}
	w.Nodes = nodes
	return w
}

// FillWithLine is FillWithOurs with a load line for memory.
func FillWithLine(ctx context.Context, w workload.Workload, line float64, log harness.Logf) (Filling, error) {
	return onFreshCluster(ctx, log, func(cluster *harness.Cluster) (Filling, error) {
		engine, err := cluster.StartEngine(ctx, "loadlined")
		if err != nil {
			return Filling{}, err
		}
		options, err := OurOptions(harness.ReplacementConfig, engine.Address)
		if err != nil {
			return Filling{}, err
		}
		options.Name = LineName
		options.Site.MaxLimitsOverAllocatable = map[string]float64{string(v1.ResourceMemory): line}
		options.Site.EngineTimeout = PatientTimeout
		return Fill(ctx, cluster, w, options, log)
	})
}

// CheckLine names the nodes above the line, as the line counts: one pod at most as all memory of its node. Pods only
// come in a filling, so that a node that is not above the line at the end never was.
func CheckLine(nodes []*v1.Node, pods []*v1.Pod, line float64) []string {
	counted, raw := map[string]float64{}, map[string]float64{}
	memory := map[string]float64{}
	for _, node := range nodes {
		memory[node.Name] = node.Status.Allocatable.Memory().AsApproximateFloat64()
	}
	for _, pod := range pods {
		limits := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})
		limit := limits.Memory().AsApproximateFloat64()
		raw[pod.Spec.NodeName] += limit
		counted[pod.Spec.NodeName] += min(limit, memory[pod.Spec.NodeName])
	}
	var broken []string
	for _, node := range nodes {
		if all := memory[node.Name]; counted[node.Name] > line*all*(1+1e-9) {
			broken = append(broken, fmt.Sprintf("%s has limits of %.4f times its memory, counted %.4f, above the line of %v",
				node.Name, raw[node.Name]/all, counted[node.Name]/all, line))
		}
	}
	return broken
}

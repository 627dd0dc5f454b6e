package fit

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// Shrink returns a smaller case for which fails still holds: nothing can be taken out of it alone any more.
func Shrink(c *Case, fails func(*Case) bool) *Case {
	for {
		smaller := shrinkOnce(c, fails)
		if smaller == nil {
			return c
		}
		c = smaller
	}
}

// shrinkOnce takes out all that can go, one by one; nil if nothing can.
func shrinkOnce(c *Case, fails func(*Case) bool) *Case {
	changed := false
	try := func(smaller *Case) {
		if _, ok := smaller.After(); ok && fails(smaller) {
			c, changed = smaller, true
		}
	}
	for i := len(c.Moves) - 1; i >= 0; i-- {
		try(&Case{Cluster: c.Cluster, Moves: slices.Delete(slices.Clone(c.Moves), i, i+1)})
	}
	with := func(edit func(*Cluster)) {
		cluster := c.Cluster.Copy()
		edit(cluster)
		try(&Case{Cluster: cluster, Moves: c.Moves})
	}
	each(len(c.Cluster.Pods), func(i int) { with(func(k *Cluster) { k.Pods = slices.Delete(k.Pods, i, i+1) }) })
	each(len(c.Cluster.Nodes), func(i int) {
		if len(c.Cluster.Nodes) > 1 {
			with(func(k *Cluster) { k.Nodes = slices.Delete(k.Nodes, i, i+1) })
		}
	})
	each(len(c.Cluster.Claims), func(i int) { with(func(k *Cluster) { k.Claims = slices.Delete(k.Claims, i, i+1) }) })
	each(len(c.Cluster.Volumes),
		func(i int) { with(func(k *Cluster) { k.Volumes = slices.Delete(k.Volumes, i, i+1) }) })
	each(len(c.Cluster.Classes),
		func(i int) { with(func(k *Cluster) { k.Classes = slices.Delete(k.Classes, i, i+1) }) })
	each(len(c.Cluster.CSINodes),
		func(i int) { with(func(k *Cluster) { k.CSINodes = slices.Delete(k.CSINodes, i, i+1) }) })
	each(len(c.Cluster.CSIDrivers),
		func(i int) { with(func(k *Cluster) { k.CSIDrivers = slices.Delete(k.CSIDrivers, i, i+1) }) })
	each(len(c.Cluster.Devices),
		func(i int) { with(func(k *Cluster) { k.Devices = slices.Delete(k.Devices, i, i+1) }) })
	each(len(c.Cluster.Namespaces),
		func(i int) { with(func(k *Cluster) { k.Namespaces = slices.Delete(k.Namespaces, i, i+1) }) })
	for _, edit := range podEdits(c.Cluster.Pod) {
		with(func(k *Cluster) { k.Pod = edited(k.Pod, edit) })
	}
	for i := range c.Cluster.Pods {
		for _, edit := range podEdits(c.Cluster.Pods[i]) {
			with(func(k *Cluster) { k.Pods[i] = edited(k.Pods[i], edit) })
		}
	}
	for i := range c.Cluster.Nodes {
		for _, edit := range nodeEdits(c.Cluster.Nodes[i]) {
			with(func(k *Cluster) {
				k.Nodes[i] = k.Nodes[i].DeepCopy()
				edit(k.Nodes[i])
			})
		}
	}
	if !changed {
		return nil
	}
	return c
}

func each(n int, do func(int)) {
	for i := n - 1; i >= 0; i-- {
		do(i)
	}
}

func edited(pod *v1.Pod, edit func(*v1.Pod)) *v1.Pod {
	pod = pod.DeepCopy()
	edit(pod)
	return pod
}

// podEdits are ways to take something out of a pod that it has. Indices may be off once an earlier edit of the
// same round has succeeded; such an edit does nothing.
func podEdits(pod *v1.Pod) (edits []func(*v1.Pod)) {
	add := func(has bool, edit func(*v1.Pod)) {
		if has {
			edits = append(edits, edit)
		}
	}
	s := &pod.Spec
	add(len(s.NodeSelector) > 0, func(p *v1.Pod) { p.Spec.NodeSelector = nil })
	add(s.Affinity != nil, func(p *v1.Pod) { p.Spec.Affinity = nil })
	add(len(s.Tolerations) > 0, func(p *v1.Pod) { p.Spec.Tolerations = nil })
	add(len(s.InitContainers) > 0, func(p *v1.Pod) { p.Spec.InitContainers = nil })
	add(len(s.Overhead) > 0, func(p *v1.Pod) { p.Spec.Overhead = nil })
	add(s.Resources != nil, func(p *v1.Pod) { p.Spec.Resources = nil })
	add(len(s.TopologySpreadConstraints) > 0, func(p *v1.Pod) { p.Spec.TopologySpreadConstraints = nil })
	add(len(pod.Status.ContainerStatuses) > 0, func(p *v1.Pod) { p.Status = v1.PodStatus{} })
	add(pod.DeletionTimestamp != nil, func(p *v1.Pod) { p.DeletionTimestamp = nil })
	each(len(s.Volumes), func(i int) {
		add(true, func(p *v1.Pod) { p.Spec.Volumes = without(p.Spec.Volumes, i) })
	})
	each(len(s.TopologySpreadConstraints), func(i int) {
		add(true, func(p *v1.Pod) { p.Spec.TopologySpreadConstraints = without(p.Spec.TopologySpreadConstraints, i) })
	})
	each(len(s.Tolerations), func(i int) {
		add(true, func(p *v1.Pod) { p.Spec.Tolerations = without(p.Spec.Tolerations, i) })
	})
	for i, c := range s.Containers {
		add(len(c.Resources.Requests) > 0,
			func(p *v1.Pod) { p.Spec.Containers[i].Resources = v1.ResourceRequirements{} })
		add(len(c.Ports) > 0, func(p *v1.Pod) { p.Spec.Containers[i].Ports = nil })
	}
	for key := range pod.Labels {
		add(true, func(p *v1.Pod) { delete(p.Labels, key) })
	}
	return append(edits, affinityEdits(pod)...)
}

func affinityEdits(pod *v1.Pod) (edits []func(*v1.Pod)) {
	each(len(nodeTerms(pod)), func(i int) {
		edits = append(edits, func(p *v1.Pod) {
			if r := required(p); r != nil {
				r.NodeSelectorTerms = without(r.NodeSelectorTerms, i)
			}
		})
	})
	each(len(podTerms(pod, true, false)), func(i int) {
		edits = append(edits, func(p *v1.Pod) {
			if len(podTerms(p, true, false)) > i {
				a := p.Spec.Affinity.PodAffinity
				a.RequiredDuringSchedulingIgnoredDuringExecution = without(
					a.RequiredDuringSchedulingIgnoredDuringExecution, i)
			}
		})
	})
	each(len(podTerms(pod, false, true)), func(i int) {
		edits = append(edits, func(p *v1.Pod) {
			if len(podTerms(p, false, true)) > i {
				a := p.Spec.Affinity.PodAntiAffinity
				a.RequiredDuringSchedulingIgnoredDuringExecution = without(
					a.RequiredDuringSchedulingIgnoredDuringExecution, i)
			}
		})
	})
	return edits
}

func without[T any](list []T, i int) []T {
	if i >= len(list) {
		return list
	}
	return slices.Delete(slices.Clone(list), i, i+1)
}

func nodeEdits(node *v1.Node) (edits []func(*v1.Node)) {
	if node.Spec.Unschedulable {
		edits = append(edits, func(n *v1.Node) { n.Spec.Unschedulable = false })
	}
	each(len(node.Spec.Taints), func(i int) {
		edits = append(edits, func(n *v1.Node) { n.Spec.Taints = without(n.Spec.Taints, i) })
	})
	for key := range node.Labels {
		edits = append(edits, func(n *v1.Node) { delete(n.Labels, key) })
	}
	return edits
}

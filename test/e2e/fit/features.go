package fit

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// feature is something that a share of the clusters must have, for the comparison to mean anything.
type feature struct {
	name string
	in   func(c *Cluster) bool
}

var features = slices.Concat([]feature{
	{"toleration of the incoming pod", incoming(func(p *v1.Pod) bool { return len(p.Spec.Tolerations) > 0 })},
	{"nodeSelector", incoming(func(p *v1.Pod) bool { return len(p.Spec.NodeSelector) > 0 })},
	{"several node selector terms", incoming(func(p *v1.Pod) bool { return len(nodeTerms(p)) > 1 })},
	{"node selector without terms",
		incoming(func(p *v1.Pod) bool { return required(p) != nil && len(nodeTerms(p)) == 0 })},
	{"matchFields", incoming(func(p *v1.Pod) bool {
		return slices.ContainsFunc(nodeTerms(p), func(t v1.NodeSelectorTerm) bool { return len(t.MatchFields) > 0 })
	})},
	{"hostPorts of the incoming pod", incoming(func(p *v1.Pod) bool { return len(hostPorts(p)) > 0 })},
	{"sidecar", anyPod(func(p *v1.Pod) bool {
		return slices.ContainsFunc(p.Spec.InitContainers, func(c v1.Container) bool { return c.RestartPolicy != nil })
	})},
	{"overhead", anyPod(func(p *v1.Pod) bool { return p.Spec.Overhead != nil })},
	{"pod-level resources", anyPod(func(p *v1.Pod) bool { return p.Spec.Resources != nil })},
	{"resize status", func(c *Cluster) bool {
		hasStatus := func(p *v1.Pod) bool { return len(p.Status.ContainerStatuses) > 0 }
		return Minor() >= 37 || slices.ContainsFunc(c.Pods, hasStatus)
	}},
	{"declared features", func(c *Cluster) bool {
		return slices.ContainsFunc(c.Nodes, func(n *v1.Node) bool { return len(n.Status.DeclaredFeatures) > 0 })
	}},
	{"CSI driver with a wish", func(c *Cluster) bool {
		return slices.ContainsFunc(c.CSIDrivers, func(d *storagev1.CSIDriver) bool {
			return d.Spec.PreventPodSchedulingIfMissing != nil && *d.Spec.PreventPodSchedulingIfMissing
		})
	}},
	{"device class of an extended resource", func(c *Cluster) bool {
		return slices.ContainsFunc(c.Devices, func(d *resourcev1.DeviceClass) bool {
			return d.Spec.ExtendedResourceName != nil
		})
	}},
	{"terminating pod", anyPod(func(p *v1.Pod) bool { return p.DeletionTimestamp != nil })},
	{"finished pod",
		anyPod(func(p *v1.Pod) bool { return p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed })},
	{"pod on an unknown node", anyPod(func(p *v1.Pod) bool { return p.Spec.NodeName == "nowhere" })},
	{"pod in an unknown namespace", func(c *Cluster) bool { return len(c.Namespaces) < 3 }},
	{"inline disk of the incoming pod", incoming(func(p *v1.Pod) bool {
		return slices.ContainsFunc(p.Spec.Volumes, func(v v1.Volume) bool {
			return v.GCEPersistentDisk != nil || v.AWSElasticBlockStore != nil || v.ISCSI != nil || v.RBD != nil
		})
	})},
	{"claim of the incoming pod", incoming(func(p *v1.Pod) bool {
		return slices.ContainsFunc(p.Spec.Volumes, func(v v1.Volume) bool { return v.PersistentVolumeClaim != nil })
	})},
	{"ephemeral volume", anyPod(func(p *v1.Pod) bool {
		return slices.ContainsFunc(p.Spec.Volumes, func(v v1.Volume) bool { return v.Ephemeral != nil })
	})},
	{"claim that is ReadWriteOncePod", anyClaim(func(c *v1.PersistentVolumeClaim) bool {
		return slices.Contains(c.Spec.AccessModes, v1.ReadWriteOncePod)
	})},
	{"claim that waits for its first consumer", anyClaim(func(c *v1.PersistentVolumeClaim) bool {
		return c.Spec.VolumeName == "" && c.Spec.StorageClassName != nil && *c.Spec.StorageClassName == "local"
	})},
	{"claim with a selected node",
		anyClaim(func(c *v1.PersistentVolumeClaim) bool { return c.Annotations[annSelectedNode] != "" })},
	{"spread with minDomains", anySpread(func(c v1.TopologySpreadConstraint) bool { return c.MinDomains != nil })},
	{"spread with nodeAffinityPolicy",
		anySpread(func(c v1.TopologySpreadConstraint) bool { return c.NodeAffinityPolicy != nil })},
	{"spread with nodeTaintsPolicy",
		anySpread(func(c v1.TopologySpreadConstraint) bool { return c.NodeTaintsPolicy != nil })},
	{"spread with matchLabelKeys",
		anySpread(func(c v1.TopologySpreadConstraint) bool { return len(c.MatchLabelKeys) > 0 })},
	{"affinity of the incoming pod", anyTerm(true, false, nil)},
	{"anti-affinity of the incoming pod", anyTerm(false, true, nil)},
	{"anti-affinity of pods on nodes", anyPod(func(p *v1.Pod) bool { return len(podTerms(p, false, true)) > 0 })},
	{"pod affinity with namespaces",
		anyTerm(true, true, func(t v1.PodAffinityTerm) bool { return len(t.Namespaces) > 0 })},
	{"pod affinity with namespaceSelector",
		anyTerm(true, true, func(t v1.PodAffinityTerm) bool { return t.NamespaceSelector != nil })},
	{"pod affinity with matchLabelKeys",
		anyTerm(true, true, func(t v1.PodAffinityTerm) bool { return len(t.MatchLabelKeys) > 0 })},
	{"pod affinity with mismatchLabelKeys",
		anyTerm(true, true, func(t v1.PodAffinityTerm) bool { return len(t.MismatchLabelKeys) > 0 })},
	{"nil label selector", anyTerm(true, true, func(t v1.PodAffinityTerm) bool { return t.LabelSelector == nil })},
	{"empty label selector", anyTerm(true, true, func(t v1.PodAffinityTerm) bool { return isEmpty(t.LabelSelector) })},
}, nodeOperators(), labelOperators())

func nodeOperators() (out []feature) {
	for _, op := range []v1.NodeSelectorOperator{v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn, v1.NodeSelectorOpExists,
		v1.NodeSelectorOpDoesNotExist, v1.NodeSelectorOpGt, v1.NodeSelectorOpLt} {
		out = append(out, feature{"node affinity " + string(op), incoming(func(p *v1.Pod) bool {
			return slices.ContainsFunc(nodeTerms(p), func(t v1.NodeSelectorTerm) bool {
				return slices.ContainsFunc(t.MatchExpressions,
					func(r v1.NodeSelectorRequirement) bool { return r.Operator == op })
			})
		})})
	}
	return out
}

func labelOperators() (out []feature) {
	for _, op := range []metav1.LabelSelectorOperator{metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn,
		metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist} {
		out = append(out, feature{"label selector " + string(op), anyTerm(true, true, func(t v1.PodAffinityTerm) bool {
			return t.LabelSelector != nil && slices.ContainsFunc(t.LabelSelector.MatchExpressions,
				func(r metav1.LabelSelectorRequirement) bool { return r.Operator == op })
		})})
	}
	return out
}

// featuresOf returns the features of a cluster.
func featuresOf(c *Cluster) map[string]bool {
	out := map[string]bool{}
	for _, f := range features {
		if f.in(c) {
			out[f.name] = true
		}
	}
	return out
}

func incoming(has func(*v1.Pod) bool) func(*Cluster) bool {
	return func(c *Cluster) bool { return has(c.Pod) }
}

func anyPod(has func(*v1.Pod) bool) func(*Cluster) bool {
	return func(c *Cluster) bool { return slices.ContainsFunc(c.Pods, has) }
}

func anyClaim(has func(*v1.PersistentVolumeClaim) bool) func(*Cluster) bool {
	return func(c *Cluster) bool { return slices.ContainsFunc(c.Claims, has) }
}

func anySpread(has func(v1.TopologySpreadConstraint) bool) func(*Cluster) bool {
	return incoming(func(p *v1.Pod) bool { return slices.ContainsFunc(p.Spec.TopologySpreadConstraints, has) })
}

// anyTerm looks at the terms of the incoming pod; and at those on nodes too, if they have to be distinguished by
// content.
func anyTerm(affinity, anti bool, has func(v1.PodAffinityTerm) bool) func(*Cluster) bool {
	return func(c *Cluster) bool {
		if has == nil {
			return len(podTerms(c.Pod, affinity, anti)) > 0
		}
		return slices.ContainsFunc(append(slices.Clone(c.Pods), c.Pod), func(p *v1.Pod) bool {
			return slices.ContainsFunc(podTerms(p, affinity, anti), has)
		})
	}
}

func podTerms(p *v1.Pod, affinity, anti bool) (out []v1.PodAffinityTerm) {
	if a := p.Spec.Affinity; a != nil && a.PodAffinity != nil && affinity {
		out = append(out, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
	}
	if a := p.Spec.Affinity; a != nil && a.PodAntiAffinity != nil && anti {
		out = append(out, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
	}
	return out
}

func isEmpty(s *metav1.LabelSelector) bool {
	return s != nil && len(s.MatchLabels)+len(s.MatchExpressions) == 0
}

func required(p *v1.Pod) *v1.NodeSelector {
	if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

func nodeTerms(p *v1.Pod) []v1.NodeSelectorTerm {
	if r := required(p); r != nil {
		return r.NodeSelectorTerms
	}
	return nil
}

func hostPorts(p *v1.Pod) (out []int32) {
	for _, c := range slices.Concat(p.Spec.Containers, p.Spec.InitContainers) {
		for _, port := range c.Ports {
			if port.HostPort > 0 {
				out = append(out, port.HostPort)
			}
		}
	}
	return out
}

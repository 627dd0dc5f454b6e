package fit

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (g *generator) addNodeAffinity(pod *v1.Pod) {
	if g.chance(35) {
		pod.Spec.NodeSelector = map[string]string{}
		for _, key := range some(g, 1, "disk", v1.LabelTopologyZone) {
			pod.Spec.NodeSelector[key] = pick(g, "ssd", "hdd", "a", "b")
		}
	}
	if g.chance(85) {
		required := &v1.NodeSelector{}
		for range g.IntN(3) {
			required.NodeSelectorTerms = append(required.NodeSelectorTerms, g.nodeSelectorTerm())
		}
		pod.Spec.Affinity.NodeAffinity = &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}
	}
}

func (g *generator) nodeSelectorTerm() v1.NodeSelectorTerm {
	var term v1.NodeSelectorTerm
	for range pick(g, 0, 1, 2, 2, 3, 3) {
		term.MatchExpressions = append(term.MatchExpressions, g.nodeRequirement())
	}
	for range g.IntN(3) {
		if g.chance(45) {
			term.MatchFields = append(term.MatchFields, v1.NodeSelectorRequirement{
				Key:      metav1.ObjectNameField,
				Operator: pick(g, v1.NodeSelectorOpIn, v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn),
				Values:   []string{pick(g, "node-0", "node-0", "node-1", "node-2", "nowhere")},
			})
		}
	}
	return term
}

func (g *generator) nodeRequirement() v1.NodeSelectorRequirement {
	r := v1.NodeSelectorRequirement{Key: pick(g, "disk", "cores", "rack", v1.LabelTopologyZone)}
	r.Operator = pick(g, v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn, v1.NodeSelectorOpExists,
		v1.NodeSelectorOpDoesNotExist, v1.NodeSelectorOpGt, v1.NodeSelectorOpLt)
	switch r.Operator {
	case v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn:
		r.Values = some(g, 1, "ssd", "hdd", "r1", "r2", "a", "b", "8")
	case v1.NodeSelectorOpGt, v1.NodeSelectorOpLt:
		r.Key = pick(g, "cores", "cores", "cores", "disk")
		r.Values = []string{pick(g, "0", "2", "8", "31", "-1", "few", "9223372036854775807")}
	}
	return r
}

var topologyKeys = []string{v1.LabelHostname, v1.LabelTopologyZone, v1.LabelTopologyZone, "rack"}

// labelSelector may be nil, which selects nothing, and empty, which selects everything.
func (g *generator) labelSelector() *metav1.LabelSelector {
	switch g.IntN(12) {
	case 0:
		return nil
	case 1:
		return &metav1.LabelSelector{}
	case 2, 3, 4, 5, 6:
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": pick(g, "web", "web", "db", "cache")}}
	}
	s := &metav1.LabelSelector{}
	for range 1 + g.IntN(2) {
		s.MatchExpressions = append(s.MatchExpressions, g.labelRequirement("app", "web", "db", "cache"))
	}
	if g.chance(30) {
		s.MatchExpressions = append(s.MatchExpressions, g.labelRequirement("tier", "front", "back", ""))
	}
	return s
}

func (g *generator) labelRequirement(key string, values ...string) metav1.LabelSelectorRequirement {
	r := metav1.LabelSelectorRequirement{Key: key}
	r.Operator = pick(g, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists,
		metav1.LabelSelectorOpDoesNotExist)
	if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
		r.Values = some(g, 1, values...)
	}
	return r
}

func (g *generator) addPodAffinity(pod *v1.Pod) {
	if g.chance(60) {
		pod.Spec.Affinity.PodAffinity = &v1.PodAffinity{}
		for range 1 + g.IntN(2) {
			terms := &pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
			*terms = append(*terms, g.podAffinityTerm(pod, true))
		}
	}
	if g.chance(60) {
		pod.Spec.Affinity.PodAntiAffinity = &v1.PodAntiAffinity{}
		for range 1 + g.IntN(2) {
			terms := &pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
			*terms = append(*terms, g.podAffinityTerm(pod, false))
		}
	}
}

// podAffinityTerm returns a term of a pod: a wide one for affinity, so that some pod matches it.
func (g *generator) podAffinityTerm(pod *v1.Pod, wide bool) v1.PodAffinityTerm {
	term := v1.PodAffinityTerm{TopologyKey: pick(g, topologyKeys...), LabelSelector: g.labelSelector()}
	if wide && g.chance(50) {
		term.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	}
	if g.chance(30) {
		term.Namespaces = some(g, 0, g.namespaces...)
	}
	if g.chance(45) {
		term.NamespaceSelector = &metav1.LabelSelector{}
		if g.chance(75) {
			term.NamespaceSelector.MatchExpressions = append(term.NamespaceSelector.MatchExpressions,
				g.labelRequirement("team", "red", "blue"))
		}
	}
	if term.LabelSelector != nil { // required by validation for both lists of keys
		if g.chance(25) {
			term.MatchLabelKeys = []string{pick(g, "version", "version", "missing")}
		}
		if g.chance(15) {
			term.MismatchLabelKeys = []string{pick(g, "tier", "missing")}
		}
	}
	return term
}

func (g *generator) addSpread(pod *v1.Pod) {
	for range 1 + g.IntN(3) {
		c := v1.TopologySpreadConstraint{
			MaxSkew:           pick[int32](g, 1, 1, 1, 2),
			TopologyKey:       pick(g, topologyKeys...),
			WhenUnsatisfiable: pick(g, v1.DoNotSchedule, v1.DoNotSchedule, v1.DoNotSchedule, v1.ScheduleAnyway),
			LabelSelector:     g.labelSelector(),
		}
		if g.chance(50) {
			c.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		}
		if g.chance(25) && c.WhenUnsatisfiable == v1.DoNotSchedule {
			minDomains := int32(1 + g.IntN(4))
			c.MinDomains = &minDomains
		}
		if g.chance(30) {
			policy := pick(g, v1.NodeInclusionPolicyHonor, v1.NodeInclusionPolicyIgnore)
			c.NodeAffinityPolicy = &policy
		}
		if g.chance(40) {
			policy := pick(g, v1.NodeInclusionPolicyHonor, v1.NodeInclusionPolicyIgnore)
			c.NodeTaintsPolicy = &policy
		}
		if g.chance(25) && c.LabelSelector != nil {
			c.MatchLabelKeys = []string{pick(g, "version", "version", "missing")}
		}
		pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, c)
	}
	if g.chance(40) { // so that the inclusion policies have something to decide
		pod.Spec.NodeSelector = map[string]string{v1.LabelTopologyZone: pick(g, "a", "b")}
	}
}

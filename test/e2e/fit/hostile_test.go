package fit

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func hostileNode(name string) *v1.Node {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{v1.LabelHostname: name, "cores": "eight", "huge": "99999999999999999999"}}}
	node.Status.Allocatable = v1.ResourceList{v1.ResourcePods: resource.MustParse("1000"),
		v1.ResourceCPU: resource.MustParse("8")}
	return node
}

func hostilePod(name, node string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Namespace: "shop",
		Labels: map[string]string{"app": "web"}},
		Spec: v1.PodSpec{NodeName: node, Containers: []v1.Container{{Name: "c"}}, Affinity: &v1.Affinity{}}}
}

func manyLabels(n int) map[string]string {
	labels := map[string]string{v1.LabelHostname: "a", "app": "web"}
	for i := range n {
		labels[fmt.Sprintf("l%05d", i)] = "" // short: an API server takes objects of 1.5 MiB
	}
	return labels
}

func manyValues(n int) (values []string) {
	for i := range n {
		values = append(values, fmt.Sprintf("value-%06d", i))
	}
	return append(values, "web")
}

// hostileCases have objects that no API server would take, or that are far larger than any that people write.
var hostileCases = []struct {
	name string
	edit func(c *Cluster)
}{
	{"NodeWith100000Labels", func(c *Cluster) {
		c.Nodes[0].Labels = manyLabels(100_000)
		c.Pod.Spec.NodeSelector = map[string]string{"l99999": ""}
	}},
	{"PodsWith100000Labels", func(c *Cluster) {
		c.Pods[0].Labels = manyLabels(100_000)
		antiAffinity(c.Pod, &metav1.LabelSelector{MatchLabels: map[string]string{"l00007": ""}})
	}},
	{"SelectorWith10000Values", func(c *Cluster) {
		antiAffinity(c.Pod, &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: manyValues(10_000)}}})
	}},
	{"NodeAffinityWith10000Values", func(c *Cluster) {
		nodeTerm(c.Pod,
			v1.NodeSelectorRequirement{Key: "cores", Operator: v1.NodeSelectorOpNotIn, Values: manyValues(10_000)})
	}},
	{"OneHundredTerms", func(c *Cluster) {
		for i := range 100 {
			antiAffinity(c.Pod, &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint("other-", i)}})
			antiAffinity(c.Pods[0],
				&metav1.LabelSelector{MatchLabels: map[string]string{"tier": fmt.Sprint("other-", i)}})
		}
		antiAffinity(c.Pods[0], &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}})
	}},
	{"TaintWithEmptyKey", func(c *Cluster) { c.Nodes[0].Spec.Taints = []v1.Taint{{Effect: v1.TaintEffectNoSchedule}} }},
	{"TaintWithEmptyKeyTolerated", func(c *Cluster) {
		c.Nodes[0].Spec.Taints = []v1.Taint{{Effect: v1.TaintEffectNoSchedule}}
		c.Pod.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpEqual}}
	}},
	{"TolerationOfUnknownOperator", func(c *Cluster) {
		c.Nodes[0].Spec.Taints = []v1.Taint{{Key: "k", Effect: v1.TaintEffectNoSchedule}}
		c.Pod.Spec.Tolerations = []v1.Toleration{{Key: "k", Operator: "Near"}}
	}},
	{"TaintOfUnknownEffect", func(c *Cluster) { c.Nodes[0].Spec.Taints = []v1.Taint{{Key: "k", Effect: "Maybe"}} }},
	{"GtOfALabelThatIsNoNumber", func(c *Cluster) {
		nodeTerm(c.Pod, v1.NodeSelectorRequirement{Key: "cores", Operator: v1.NodeSelectorOpGt, Values: []string{"1"}})
	}},
	{"GtOfALabelBeyond64Bits", func(c *Cluster) {
		nodeTerm(c.Pod, v1.NodeSelectorRequirement{Key: "huge", Operator: v1.NodeSelectorOpGt, Values: []string{"1"}})
	}},
	{"GtOfNoNumber", func(c *Cluster) {
		nodeTerm(c.Pod,
			v1.NodeSelectorRequirement{Key: "cores", Operator: v1.NodeSelectorOpGt, Values: []string{"many"}})
	}},
	{"GtOfTwoValues", func(c *Cluster) {
		nodeTerm(c.Pod,
			v1.NodeSelectorRequirement{Key: "cores", Operator: v1.NodeSelectorOpLt, Values: []string{"1", "2"}})
	}},
	{"InWithoutValues", func(c *Cluster) {
		nodeTerm(c.Pod, v1.NodeSelectorRequirement{Key: "cores", Operator: v1.NodeSelectorOpIn})
	}},
	{"ExistsWithValues", func(c *Cluster) {
		nodeTerm(c.Pod,
			v1.NodeSelectorRequirement{Key: "cores", Operator: v1.NodeSelectorOpExists, Values: []string{"x"}})
	}},
	{"UnknownOperator", func(c *Cluster) {
		nodeTerm(c.Pod, v1.NodeSelectorRequirement{Key: "cores", Operator: "Near", Values: []string{"x"}})
	}},
	{"MatchFieldsOfAnotherField", func(c *Cluster) {
		nodeTerm(c.Pod, v1.NodeSelectorRequirement{Key: "cores", Operator: v1.NodeSelectorOpExists})
		required := c.Pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		required.NodeSelectorTerms[0].MatchFields = []v1.NodeSelectorRequirement{
			{Key: "spec.unschedulable", Operator: v1.NodeSelectorOpIn, Values: []string{"false"}}}
	}},
	{"LabelKeyThatIsNone", func(c *Cluster) {
		nodeTerm(c.Pod, v1.NodeSelectorRequirement{Key: "no key\x00", Operator: v1.NodeSelectorOpDoesNotExist})
	}},
	{"LabelValueThatIsNone", func(c *Cluster) {
		nodeTerm(c.Pod, v1.NodeSelectorRequirement{Key: "cores", Operator: v1.NodeSelectorOpNotIn,
			Values: []string{"no value\x1b[31m"}})
	}},
	{"LabelValueTooLong", func(c *Cluster) {
		nodeTerm(c.Pod, v1.NodeSelectorRequirement{Key: "cores", Operator: v1.NodeSelectorOpNotIn,
			Values: []string{strings.Repeat("x", 64)}})
	}},
	{"NodeSelectorOfInvalidValue",
		func(c *Cluster) { c.Pod.Spec.NodeSelector = map[string]string{"cores": "no value!"} }},
	{"SpreadOverAKeyThatNoNodeHas", func(c *Cluster) {
		c.Pod.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{
			{MaxSkew: 1, TopologyKey: "nowhere", WhenUnsatisfiable: v1.DoNotSchedule,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
	}},
	{"AffinityOverAKeyThatNoNodeHas", func(c *Cluster) {
		c.Pod.Spec.Affinity.PodAffinity = &v1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
				{TopologyKey: "nowhere",
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}}
	}},
	{"EmptyTopologyKey", func(c *Cluster) {
		antiAffinity(c.Pod, &metav1.LabelSelector{})
		c.Pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey = ""
	}},
	{"SelectorThatDoesNotParse", func(c *Cluster) {
		antiAffinity(c.Pod,
			&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}})
	}},
	{"SelectorOfAPodOnANodeThatDoesNotParse", func(c *Cluster) {
		antiAffinity(c.Pods[0],
			&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "app", Operator: metav1.LabelSelectorOpIn}}})
		antiAffinity(c.Pods[0], &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}})
	}},
	{"SpreadSelectorThatDoesNotParse", func(c *Cluster) {
		c.Pod.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{
			{MaxSkew: 1, TopologyKey: v1.LabelHostname, WhenUnsatisfiable: v1.DoNotSchedule,
				LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: "app", Operator: "Near"}}}}}
	}},
	{"NamespaceSelectorThatDoesNotParse", func(c *Cluster) {
		antiAffinity(c.Pod, &metav1.LabelSelector{})
		c.Pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].NamespaceSelector =
			&metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}
	}},
	{"PodsOnUnknownNodes", func(c *Cluster) { c.Pods[0].Spec.NodeName = "nowhere" }},
	{"NegativeMaxSkew", func(c *Cluster) {
		c.Pod.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{
			{MaxSkew: -1, TopologyKey: v1.LabelHostname, WhenUnsatisfiable: v1.DoNotSchedule,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
	}},
	{"PortOutOfRange", func(c *Cluster) {
		c.Pod.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 1 << 30, HostIP: "no address", Protocol: "QUIC"}}
		c.Pods[0].Spec.Containers[0].Ports = c.Pod.Spec.Containers[0].Ports
	}},
	{"ClaimWithoutAName", func(c *Cluster) {
		c.Pod.Spec.Volumes = []v1.Volume{
			{Name: "v", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{}}}}
	}},
	{"ClaimsOfPodsOnNodesThatAreMissing", func(c *Cluster) {
		c.Pods[0].Spec.Volumes = []v1.Volume{
			{Name: "v",
				VolumeSource: v1.VolumeSource{
					PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "gone"}}}}
	}},
}

func antiAffinity(pod *v1.Pod, selector *metav1.LabelSelector) {
	if pod.Spec.Affinity.PodAntiAffinity == nil {
		pod.Spec.Affinity.PodAntiAffinity = &v1.PodAntiAffinity{}
	}
	terms := &pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	*terms = append(*terms, v1.PodAffinityTerm{TopologyKey: v1.LabelHostname, LabelSelector: selector})
}

func nodeTerm(pod *v1.Pod, requirement v1.NodeSelectorRequirement) {
	pod.Spec.Affinity.NodeAffinity = &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
		NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{requirement}}}}}
}

// If upstream has an answer, the engine has the same one; if upstream fails, it does not judge.
func TestHostileObjects(t *testing.T) {
	p := newPair(t, nil)
	for _, h := range hostileCases {
		t.Run(h.name, func(t *testing.T) {
			c := &Cluster{
				Namespaces: []*v1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}},
				Nodes:      []*v1.Node{hostileNode("a"), hostileNode("b")},
				Pods:       []*v1.Pod{hostilePod("there", "a")},
				Pod:        hostilePod("incoming", ""),
			}
			h.edit(c)
			differences, answers, err := p.compare(t.Context(), 1, &Case{Cluster: c})
			if err != nil || len(differences) > 0 {
				t.Errorf("%v\n%s\nkube-scheduler: %+v", err, strings.Join(differences, "\n"), answers)
			}
		})
	}
}

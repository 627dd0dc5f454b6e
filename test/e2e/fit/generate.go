package fit

import (
	"fmt"
	"math/rand/v2"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// theme is what a cluster is mostly about. A cluster has one to three of them: with everything at once, the first
// filter would say no everywhere and the later ones would never be heard.
type theme int

const (
	placement    theme = iota // node names, unschedulable nodes, taints
	nodeAffinity              // selectors and node affinity
	ports
	resources
	disks  // volumes written into the pod
	claims // volumes by claim
	spread
	podAffinity
	declared // features that nodes declare
	themes
)

// themeWeights makes up for how often each theme's filters come to decide.
var themeWeights = [themes]int{placement: 9, nodeAffinity: 12, ports: 8, resources: 6, disks: 6, claims: 20, spread: 8,
	podAffinity: 7, declared: 14}

// generator makes one random cluster. Names and values come from lists so short that objects meet.
type generator struct {
	*rand.Rand
	themes     [themes]bool
	cluster    *Cluster
	namespaces []string
	names      int
}

// Generate returns the cluster of a seed: 2 to 12 nodes, 0 to 60 pods and the objects that these refer to.
func Generate(seed uint64) *Cluster {
	return generate(seed).cluster
}

func generate(seed uint64) *generator {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0x4c6f61646c696e65)), cluster: &Cluster{}}
	for range pick(g, 1, 2, 2, 3, 3) {
		g.themes[g.weighted(themeWeights[:])] = true
	}
	g.makeNamespaces()
	for i := range 2 + g.IntN(11) {
		g.cluster.Nodes = append(g.cluster.Nodes, g.node(fmt.Sprintf("node-%d", i)))
	}
	if g.themes[claims] {
		g.makeStorage()
	}
	if g.themes[resources] && g.chance(75) {
		g.makeDevices()
	}
	for range g.podCount() {
		pod := g.boundPod()
		g.cluster.Pods = append(g.cluster.Pods, pod)
	}
	g.cluster.Pod = g.incomingPod()
	return g
}

// namespace of a pod. Spread constraints count pods of one namespace only: there, most are of the same.
func (g *generator) namespace() string {
	if g.themes[spread] && g.chance(75) {
		return g.namespaces[0]
	}
	return pick(g, g.namespaces...)
}

// podCount is small more often than not: a few pods leave room for a yes.
func (g *generator) podCount() int {
	if g.chance(30) {
		return g.IntN(61)
	}
	return g.IntN(20)
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

// likely is chance with one of two odds: within a theme and outside of it.
func (g *generator) likely(t theme, within, outside int) bool {
	if g.themes[t] {
		return g.chance(within)
	}
	return g.chance(outside)
}

func (g *generator) weighted(weights []int) theme {
	total := 0
	for _, w := range weights {
		total += w
	}
	at := g.IntN(total)
	for i, w := range weights {
		if at < w {
			return theme(i)
		}
		at -= w
	}
	panic("weights do not add up")
}

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

// some returns between least and all of a list, in its order.
func some[T any](g *generator, least int, from ...T) []T {
	var out []T
	for i, v := range from {
		if len(out)+len(from)-i <= least || g.chance(50) {
			out = append(out, v)
		}
	}
	return out
}

func (g *generator) name(prefix string) string {
	g.names++
	return fmt.Sprintf("%s-%d", prefix, g.names)
}

func (g *generator) makeNamespaces() {
	g.namespaces = []string{"shop", "ops", "lab"}
	for _, name := range g.namespaces {
		if name == "lab" && g.chance(30) {
			continue // pods may be in a namespace that the scheduler has not heard of yet
		}
		namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{"kubernetes.io/metadata.name": name}}}
		if g.chance(70) {
			namespace.Labels["team"] = pick(g, "red", "blue")
		}
		if g.chance(30) {
			namespace.Labels["env"] = "prod"
		}
		g.cluster.Namespaces = append(g.cluster.Namespaces, namespace)
	}
}

func (g *generator) node(name string) *v1.Node {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: g.nodeLabels(name)}}
	node.Spec.Unschedulable = g.likely(placement, 20, 2)
	for range g.IntN(3) {
		if g.likely(placement, 50, 4) {
			node.Spec.Taints = append(node.Spec.Taints, g.taint())
		}
	}
	if node.Spec.Unschedulable && g.chance(70) { // the node lifecycle controller adds it a moment later
		node.Spec.Taints = append(node.Spec.Taints,
			v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule})
	}
	if g.likely(declared, 80, 10) {
		node.Status.DeclaredFeatures = some(g, 0, restartAllContainers, hostNetworkUsers, bindMountOptions,
			"InPlacePodLevelResourcesVerticalScaling")
	}
	node.Status.Allocatable = g.allocatable()
	node.Status.Capacity = node.Status.Allocatable
	return node
}

func (g *generator) nodeLabels(name string) map[string]string {
	labels := map[string]string{}
	if g.chance(94) {
		labels[v1.LabelHostname] = name
	}
	if g.chance(90) {
		zone := pick(g, "a", "b", "c")
		if g.chance(85) {
			labels[v1.LabelTopologyZone] = zone
			labels[v1.LabelTopologyRegion] = "north"
		} else {
			labels[v1.LabelFailureDomainBetaZone] = zone
		}
	}
	if g.chance(60) {
		labels["disk"] = pick(g, "ssd", "hdd", "")
	}
	if g.chance(60) {
		labels["cores"] = pick(g, "2", "8", "32", "-1", "many", "9223372036854775808")
	}
	if g.chance(50) {
		labels["rack"] = pick(g, "r1", "r2", "r3", "r4")
	}
	return labels
}

func (g *generator) taint() v1.Taint {
	return v1.Taint{
		Key:   pick(g, "dedicated", "gpu", "example.com/drain"),
		Value: pick(g, "", "batch", "web"),
		Effect: pick(g, v1.TaintEffectNoSchedule, v1.TaintEffectNoSchedule, v1.TaintEffectNoExecute,
			v1.TaintEffectPreferNoSchedule),
	}
}

func (g *generator) toleration() v1.Toleration {
	t := v1.Toleration{
		Key:      pick(g, "dedicated", "gpu", "example.com/drain", v1.TaintNodeUnschedulable),
		Operator: pick(g, "", v1.TolerationOpEqual, v1.TolerationOpExists, v1.TolerationOpExists),
		Effect:   pick(g, "", "", v1.TaintEffectNoSchedule, v1.TaintEffectNoExecute),
	}
	if t.Operator != v1.TolerationOpExists {
		t.Value = pick(g, "", "batch", "web")
	} else if g.chance(20) {
		t.Key = "" // with Exists: all keys
	}
	if t.Effect == v1.TaintEffectNoExecute && g.chance(50) {
		seconds := int64(g.IntN(300))
		t.TolerationSeconds = &seconds
	}
	return t
}

// allocatable is generous outside of the theme, so that something else decides.
func (g *generator) allocatable() v1.ResourceList {
	list := v1.ResourceList{v1.ResourcePods: resource.MustParse("110")}
	cpu, memory := pick(g, "64", "96"), pick(g, "256Gi", "400G")
	if g.themes[resources] {
		cpu, memory = pick(g, "2", "3500m", "4", "7.5", "16"), pick(g, "4Gi", "8e9", "16000Mi", "64Gi", "15999999999")
		list[v1.ResourcePods] = resource.MustParse(pick(g, "110", "110", "110", "6", "3", "0"))
		if g.chance(70) {
			list[v1.ResourceEphemeralStorage] = resource.MustParse(pick(g, "10Gi", "100G"))
		}
		if g.chance(60) {
			list["example.com/gpu"] = resource.MustParse(pick(g, "0", "1", "4"))
		}
		if g.chance(40) {
			list[v1.ResourceHugePagesPrefix+"2Mi"] = resource.MustParse(pick(g, "64Mi", "1Gi"))
		}
		if g.chance(5) {
			delete(list, v1.ResourceMemory)
		}
	}
	list[v1.ResourceCPU], list[v1.ResourceMemory] = resource.MustParse(cpu), resource.MustParse(memory)
	return list
}

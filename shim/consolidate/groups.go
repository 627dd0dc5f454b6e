// Package consolidate puts the question what a cluster must cost: it derives node groups from nodes where nobody named
// any.
package consolidate

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/scaleup"
)

// Groups are node groups as the nodes of a cluster tell: one for each pool, instance type, zone, capacity type and set
// of lasting taints.
type Groups struct {
	groups map[string]*group
}

type group struct {
	members []string
	model   *v1.Node // what stands for the group
	spot    *bool
}

// NewGroups returns groups without nodes.
func NewGroups() *Groups { return &Groups{groups: map[string]*group{}} }

// poolLabels name the pool of a node at those who make nodes.
var poolLabels = []string{"eks.amazonaws.com/nodegroup", "cloud.google.com/gke-nodepool", "karpenter.sh/nodepool",
	"kubernetes.azure.com/agentpool", "kops.k8s.io/instancegroup", "alpha.eksctl.io/nodegroup-name"}

// spotLabels say that a node may be taken away, each with its value.
var spotLabels = map[string]string{"karpenter.sh/capacity-type": "spot", "eks.amazonaws.com/capacityType": "SPOT",
	"cloud.google.com/gke-spot": "true", "cloud.google.com/gke-preemptible": "true",
	"kubernetes.azure.com/scalesetpriority": "spot", "node.kubernetes.io/lifecycle": "spot"}

// capacityLabels are those that say anything of it at all.
var capacityLabels = slices.Sorted(maps.Keys(spotLabels))

// AddNode takes note of a node.
func (g *Groups) AddNode(node *v1.Node) {
	name, spot := nameOf(node)
	found := g.groups[name]
	if found == nil {
		found = &group{}
		g.groups[name] = found
	}
	found.members = append(found.members, node.Name)
	found.spot = spot
	if found.model == nil || scaleup.ModelBefore(node, found.model) {
		found.model = node
	}
}

// Len is the number of groups.
func (g *Groups) Len() int { return len(g.groups) }

// maxNodes lets a group grow as far as anybody wants.
const maxNodes = 1 << 20

// Proto returns the groups for a question, by name. slot returns the number of a node in the view.
func (g *Groups) Proto(slot func(node string) (int32, bool)) ([]*loadlinev1.LoopGroup, error) {
	var out []*loadlinev1.LoopGroup
	for _, name := range slices.Sorted(maps.Keys(g.groups)) {
		of := g.groups[name]
		template, err := scaleup.LikeNew(of.model).Marshal()
		if err != nil {
			return nil, err
		}
		down := &loadlinev1.DrainGroup{}
		for _, member := range of.members {
			if number, ok := slot(member); ok {
				down.Slots = append(down.Slots, number)
			}
		}
		out = append(out, &loadlinev1.LoopGroup{
			Growth: &loadlinev1.ScalableGroup{NodeGroup: name, TemplateNode: template, Spot: of.spot,
				CurrentNodes: int32(len(down.Slots)), MaxNodes: maxNodes, InstanceType: instanceType(of.model)},
			ScaleDown: down,
		})
	}
	return out, nil
}

func instanceType(node *v1.Node) string {
	return cmp.Or(node.Labels[v1.LabelInstanceTypeStable], node.Labels[v1.LabelInstanceType])
}

// GroupOf names the group that a node is derived into, and says whether it is a spot one; nil: nothing says.
func GroupOf(node *v1.Node) (name string, spot *bool) { return nameOf(node) }

// nameOf names the group of a node, and says whether it is a spot one; nil: nothing says.
func nameOf(node *v1.Node) (name string, spot *bool) {
	var parts []string
	for _, label := range poolLabels {
		if pool := node.Labels[label]; pool != "" {
			parts = append(parts, pool)
			break
		}
	}
	parts = append(parts, cmp.Or(instanceType(node), sizeOf(node)))
	if zone := cmp.Or(node.Labels[v1.LabelTopologyZone], node.Labels[v1.LabelFailureDomainBetaZone]); zone != "" {
		parts = append(parts, zone)
	}
	for _, label := range capacityLabels {
		value, ok := node.Labels[label]
		if !ok {
			continue
		}
		is := value == spotLabels[label]
		spot = &is
		if is {
			parts = append(parts, "spot")
		}
		break
	}
	var taints []string
	for _, taint := range scaleup.LikeNew(node).Spec.Taints {
		taints = append(taints, taint.Key+"="+taint.Value+":"+string(taint.Effect))
	}
	slices.Sort(taints)
	return strings.Join(append(parts, taints...), "/"), spot
}

// sizeOf describes a node that does not say its type.
func sizeOf(node *v1.Node) string {
	size := node.Status.Capacity
	if len(size) == 0 {
		size = node.Status.Allocatable
	}
	return size.Cpu().String() + "-cpu-" + size.Memory().String()
}

// Package scaleup puts the question which node group grows: of a cluster's objects it gathers the pods that wait for a
// node, what every new node carries, and what the node groups look like.
package scaleup

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/view"
)

// Gatherer gathers what a question needs beside the view. It is told each node and pod once.
type Gatherer struct {
	Pods
	groups  []nodegroup.NodeGroup
	members []member // by group
}

// member is what is known of a group by its nodes.
type member struct {
	names []string
	// model is the node that stands for the group where it has no template: a usable one before others, then the first
	// by name.
	model *v1.Node
}

// New returns a gatherer for node groups.
func New(groups []nodegroup.NodeGroup) *Gatherer {
	return &Gatherer{Pods: Pods{trim: view.TrimIncomingPodForFilters, sign: signForFilters}, groups: groups,
		members: make([]member, len(groups))}
}

// AddNode takes note of a node.
func (g *Gatherer) AddNode(node *v1.Node) {
	for i := range g.groups {
		if !g.groups[i].Spec.Has(node.Labels) {
			continue
		}
		m := &g.members[i]
		m.names = append(m.names, node.Name)
		if g.groups[i].Spec.Template == nil && (m.model == nil || ModelBefore(node, m.model)) {
			m.model = node
		}
	}
}

// HasTemplate says whether the file says what a new node of a group is like.
func (g *Gatherer) HasTemplate(group int) bool { return g.groups[group].Spec.Template != nil }

// ModelBefore says whether a node stands better for its group than another.
func ModelBefore(a, b *v1.Node) bool {
	if Usable(a) != Usable(b) {
		return Usable(a)
	}
	return a.Name < b.Name
}

// Usable says whether pods go to a node.
func Usable(node *v1.Node) bool {
	ready := slices.ContainsFunc(node.Status.Conditions, func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
	})
	return ready && !node.Spec.Unschedulable
}

// Problem returns the question, but for the cluster, which is a view's.
func (g *Gatherer) Problem() (*loadlinev1.ScaleUpProblem, error) {
	out := &loadlinev1.ScaleUpProblem{Pods: g.Pending(), DaemonPods: g.DaemonPods()}
	for i := range g.groups {
		group, err := g.group(i)
		if err != nil {
			return nil, fmt.Errorf("node group %q: %w", g.groups[i].Name(), err)
		}
		out.Groups = append(out.Groups, group)
	}
	return out, nil
}

func (g *Gatherer) group(i int) (*loadlinev1.ScalableGroup, error) {
	spec := &g.groups[i].Spec
	out := &loadlinev1.ScalableGroup{NodeGroup: g.groups[i].Name(), CurrentNodes: int32(len(g.members[i].names)),
		MaxNodes: spec.Max, NodeUsdPerHour: spec.Price, InstanceType: spec.InstanceType}
	if spec.Target != nil {
		out.CurrentNodes = max(out.CurrentNodes, *spec.Target)
	}
	var err error
	switch {
	case spec.Template != nil:
		out.TemplateNode, err = Complete(spec.Template, g.groups[i].Name()).Marshal()
	case g.members[i].model != nil:
		out.TemplateIsNode = true
		out.TemplateNode, err = TemplateFromNode(g.members[i].model).Marshal()
	}
	return out, err
}

// TellNodes tells which nodes the groups of a question have. slot returns the number of a node in the view.
func (g *Gatherer) TellNodes(problem *loadlinev1.ScaleUpProblem, slot func(node string) (int32, bool)) {
	for i, group := range problem.GetGroups() {
		group.NodeSlots = nil
		for _, name := range g.members[i].names {
			if number, ok := slot(name); ok {
				group.NodeSlots = append(group.NodeSlots, number)
			}
		}
	}
}

// Complete fills in what people leave out of a template: the name, and capacity from allocatable or the other way
// round.
func Complete(template *v1.Node, group string) *v1.Node {
	node := template.DeepCopy()
	if node.Name == "" {
		node.Name = "template-node-for-" + group // as Cluster Autoscaler calls them
	}
	if len(node.Status.Allocatable) == 0 {
		node.Status.Allocatable = node.Status.Capacity
	}
	if len(node.Status.Capacity) == 0 {
		node.Status.Capacity = node.Status.Allocatable
	}
	return node
}

// TemplateFromNode returns the part of a node that a template has. The engine drops the taints that no new node has.
func TemplateFromNode(node *v1.Node) *v1.Node {
	out := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels, Annotations: node.Annotations}}
	out.Spec.Taints = node.Spec.Taints
	out.Status.Capacity, out.Status.Allocatable = node.Status.Capacity, node.Status.Allocatable
	out.Status.DeclaredFeatures = node.Status.DeclaredFeatures
	return out
}

// Options returns the options that estimates come to, to be ranked. Groups that need no node are options as well, so
// that the ranking says what became of them.
func Options(problem *loadlinev1.ScaleUpProblem,
	estimates []*loadlinev1.GroupEstimate) ([]*loadlinev1.ExpansionOption, error) {
	if len(estimates) != len(problem.GetGroups()) {
		return nil, fmt.Errorf("asked about %d node groups, answered about %d", len(problem.GetGroups()),
			len(estimates))
	}
	out := make([]*loadlinev1.ExpansionOption, len(estimates))
	for i, estimate := range estimates {
		group := problem.GetGroups()[i]
		out[i] = &loadlinev1.ExpansionOption{
			NodeGroup: group.GetNodeGroup(), NodeCount: estimate.GetNodeCount(), TemplateNode: group.GetTemplateNode(),
			Pods:           estimate.GetPods(),
			NodeUsdPerHour: group.NodeUsdPerHour, InstanceType: group.GetInstanceType(), Spot: group.Spot,
		}
	}
	return out, nil
}

// Notes says what became of pods and groups beside the options, each in a sentence.
func Notes(problem *loadlinev1.ScaleUpProblem, answer *loadlinev1.EstimateScaleUpResponse) []string {
	all, there := int64(0), int64(0)
	for _, pods := range problem.GetPods() {
		all += int64(pods.GetCount())
	}
	for _, placement := range answer.GetExisting() {
		there += int64(placement.GetPods().GetCount())
	}
	notes := []string{fmt.Sprintf("%d pods wait; %d of them fit on nodes that are there.", all, there)}
	for _, group := range answer.GetGroups() {
		switch group.GetEnd() {
		case loadlinev1.GroupEstimate_NODE_LIMIT:
			notes = append(notes, group.GetNodeGroup()+" may not grow further.")
		case loadlinev1.GroupEstimate_CUT_SHORT:
			notes = append(notes, group.GetNodeGroup()+": the estimate was cut short.")
		case loadlinev1.GroupEstimate_NO_TEMPLATE:
			notes = append(notes, group.GetNodeGroup()+" has neither a template nor a node.")
		}
	}
	return notes
}

package cloud

import (
	"cmp"
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/scaleup"
)

// MachineID is what a cloud calls the machine of a node. A node that does not state it has a stand-in, which no cloud
// lists: a provider id begins with the name of the provider and "://".
func MachineID(node *v1.Node) string { return cmp.Or(node.Spec.ProviderID, "node/"+node.Name) }

// Stated returns the groups of a file as a cloud would show them: their machines run, and are those of the nodes with
// the labels of the group. `defaults` are the options of a group that states none. It is an error if a node belongs to
// two groups.
func Stated(groups []nodegroup.NodeGroup, nodes []*v1.Node,
	defaults *externalgrpc.NodeGroupAutoscalingOptions) ([]Group, error) {
	out := make([]Group, len(groups))
	for i := range groups {
		name, spec := groups[i].Name(), &groups[i].Spec
		out[i] = Group{ID: name, Min: int(spec.Min), Max: int(spec.Max), Options: stated(spec.ScaleDown, defaults),
			Model: Model{StatedPrice: spec.Price, InstanceType: spec.InstanceType}}
		if spec.Template != nil {
			out[i].Model.Node, out[i].Model.ByCloud = scaleup.Named(spec.Template, name), true
		}
	}
	machines := machineSet{}
	for _, node := range nodes {
		found := -1
		for i := range groups {
			if !groups[i].Spec.Has(node.Labels) {
				continue
			}
			if found >= 0 {
				return nil, fmt.Errorf("node %s belongs to two node groups, %s and %s", node.Name, out[found].ID, out[i].ID)
			}
			found = i
		}
		if found >= 0 {
			machines.addTo(&out[found], node)
		}
	}
	for i := range groups {
		out[i].Target = len(out[i].Instances)
		if target := groups[i].Spec.Target; target != nil {
			out[i].Target = max(out[i].Target, int(*target))
		}
	}
	return out, nil
}

// Derived returns groups that were derived from nodes as a cloud would show them: their machines run, each group may
// become empty, and it may grow without limit. `node` is the node of a slot; nil: there is none.
func Derived(groups []*loadlinev1.DerivedGroup, node func(slot int32) *v1.Node) []Group {
	out := make([]Group, len(groups))
	machines := machineSet{}
	for i, group := range groups {
		out[i] = Group{ID: group.GetNodeGroup(), Max: math.MaxInt32}
		for _, slot := range group.GetSlots() {
			if n := node(slot); n != nil {
				machines.addTo(&out[i], n)
			}
		}
		out[i].Target = len(out[i].Instances)
	}
	return out
}

// machineSet holds the machines that are in a group, by provider id: two nodes may state the same one.
type machineSet map[string]bool

// addTo adds the machine of a node to a group, as one that runs.
func (m machineSet) addTo(group *Group, node *v1.Node) {
	id := MachineID(node)
	if m[id] {
		return
	}
	m[id] = true
	group.Instances = append(group.Instances, &externalgrpc.Instance{Id: id,
		Status: &externalgrpc.InstanceStatus{InstanceState: externalgrpc.InstanceState_INSTANCE_RUNNING}})
}

// stated returns the options of a group; nil: it states none.
func stated(s *nodegroup.ScaleDown,
	defaults *externalgrpc.NodeGroupAutoscalingOptions) *externalgrpc.NodeGroupAutoscalingOptions {
	if s == nil {
		return nil
	}
	out := proto.CloneOf(defaults)
	out.ZeroOrMaxNodeScaling = s.ZeroOrMaxNodeScaling
	out.ScaleDownUtilizationThreshold = *cmp.Or(s.ScaleDownUtilizationThreshold, &out.ScaleDownUtilizationThreshold)
	out.ScaleDownGpuUtilizationThreshold = *cmp.Or(s.ScaleDownGpuUtilizationThreshold,
		&out.ScaleDownGpuUtilizationThreshold)
	out.IgnoreDaemonSetsUtilization = *cmp.Or(s.IgnoreDaemonSetsUtilization, &out.IgnoreDaemonSetsUtilization)
	if s.ScaleDownUnneededTime != nil {
		out.ScaleDownUnneededDuration = durationpb.New(s.ScaleDownUnneededTime.Duration)
	}
	if s.ScaleDownUnreadyTime != nil {
		out.ScaleDownUnreadyDuration = durationpb.New(s.ScaleDownUnreadyTime.Duration)
	}
	return out
}

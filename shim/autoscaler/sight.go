package autoscaler

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/provider"
	"loadline.dev/shim/internal/text"
)

// sight is what the engine is told in one look, and what its positions mean.
type sight struct {
	told     *loadlinev1.FleetObservation
	machines [][]provider.Instance // of each group
	nodes    [][]*v1.Node          // of each of these machines; nil: it has none
	others   []*v1.Node            // of no machine
}

// mostIDBytes is how long the id of a machine is at most when the engine is told of it.
const mostIDBytes = 100

// see puts together what the cloud and the cluster show. Each machine counts once: where it is listed again, less is
// expected of that group. One without an id counts as one that the cloud has not begun to make.
func (l *leader) see(o *loop) *sight {
	s := &sight{told: &loadlinev1.FleetObservation{}}
	byID := map[string]*v1.Node{}
	nodes := l.cluster.sortedNodes()
	for _, node := range nodes {
		if node.Spec.ProviderID != "" {
			byID[node.Spec.ProviderID] = node
		}
	}
	shrinks := shrinkingGroups(o)
	listed, placed := map[string]bool{}, map[*v1.Node]bool{}
	for i := range o.groups {
		g := &o.groups[i]
		group := l.groupMessage(g, shrinks[g.ID])
		var machines []provider.Instance
		var theirs []*v1.Node
		for _, instance := range g.Instances {
			if instance.ProviderID == "" {
				continue
			}
			if listed[instance.ProviderID] {
				if instance.State != externalgrpc.InstanceState_INSTANCE_DELETING && group.Target > 0 {
					group.Target--
				}
				continue
			}
			listed[instance.ProviderID] = true
			node := byID[instance.ProviderID]
			machine := machineMessage(instance)
			if node != nil {
				placed[node] = true
				machine.Node = nodeMessage(node, l.isGoing(o, node))
			}
			group.Machines = append(group.Machines, machine)
			machines, theirs = append(machines, instance), append(theirs, node)
		}
		s.told.Groups = append(s.told.Groups, group)
		s.machines, s.nodes = append(s.machines, machines), append(s.nodes, theirs)
	}
	for _, node := range nodes {
		if !placed[node] {
			s.told.OtherNodes = append(s.told.OtherNodes, nodeMessage(node, false))
			s.others = append(s.others, node)
		}
	}
	return s
}

// isPlain says whether the engine takes a name as it is: printable ASCII without spaces.
func isPlain(name string) bool {
	for _, c := range []byte(name) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}

// toldID is what the engine calls a machine: by its id, and where that is long or odd, by its hash.
func toldID(id string) string {
	if len(id) <= mostIDBytes && isPlain(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "sha256:" + hex.EncodeToString(sum[:16])
}

func (l *leader) groupMessage(g *provider.Group, shrinks bool) *loadlinev1.FleetGroup {
	return &loadlinev1.FleetGroup{NodeGroup: g.ID, MinNodes: int32(g.Min), Target: int32(g.Target),
		Unreadable: g.Problem != nil, Shrinks: shrinks,
		MaxNodeProvisionMilliseconds: provisionTime(g).Milliseconds(),
		MaxNodeStartupMilliseconds:   max(0, g.Options.GetMaxNodeStartupDuration().AsDuration().Milliseconds()),
		TemplateDevices:              devicesOf(l.models.templateOf(g.ID))}
}

// provisionTime is what a group says of how long its machines may take to register; 0: nothing.
func provisionTime(g *provider.Group) time.Duration {
	return max(0, g.Options.GetMaxNodeProvisionDuration().AsDuration())
}

func machineMessage(instance provider.Instance) *loadlinev1.FleetMachine {
	m := &loadlinev1.FleetMachine{Id: toldID(instance.ProviderID)}
	switch instance.State {
	case externalgrpc.InstanceState_INSTANCE_RUNNING:
		m.State = loadlinev1.FleetMachine_RUNNING
	case externalgrpc.InstanceState_INSTANCE_CREATING:
		m.State = loadlinev1.FleetMachine_CREATING
	case externalgrpc.InstanceState_INSTANCE_DELETING:
		m.State = loadlinev1.FleetMachine_DELETING
	}
	if fault := instance.Fault; fault.Code != "" {
		m.Fault = &loadlinev1.MachineFault{Code: text.Bound(fault.Code, 64), // thousands may fail at once
			Message: text.Bound(fault.Message, 160), OutOfResources: fault.OutOfResources}
	}
	return m
}

func nodeMessage(node *v1.Node, leaving bool) *loadlinev1.FleetNode {
	m := &loadlinev1.FleetNode{Ready: started(node), Leaving: leaving, Devices: devicesOf(node)}
	if !node.CreationTimestamp.IsZero() {
		m.CreatedMilliseconds = max(0, node.CreationTimestamp.UnixMilli())
	}
	return m
}

// mostDevices is how many kinds of devices of a node the engine is told of, mostDeviceBytes how long their names are.
const (
	mostDevices     = 64
	mostDeviceBytes = 317
)

// devicesOf returns the names of the extended resources that a node offers, such as nvidia.com/gpu, in order.
func devicesOf(node *v1.Node) []string {
	if node == nil {
		return nil
	}
	var names []string
	for name, amount := range node.Status.Allocatable {
		native := !strings.Contains(string(name), "/") || strings.Contains(string(name), "kubernetes.io/")
		if !native && !amount.IsZero() && len(name) <= mostDeviceBytes && isPlain(string(name)) {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return names[:min(len(names), mostDevices)]
}

// lookAtFleet has the engine look, and takes over what it finds out.
func (l *leader) lookAtFleet(ctx context.Context, o *loop) error {
	s := l.see(o)
	answer, err := l.fleet.look(ctx, o.now, s.told)
	if err != nil {
		return err
	}
	if len(answer.GetGroups()) != len(o.groups) {
		return fmt.Errorf("the look at the fleet tells of %d groups, there are %d", len(answer.GetGroups()), len(o.groups))
	}
	o.unhealthy = answer.GetUnhealthy()
	o.notStarted = map[string]bool{}
	states := make([]*groupState, len(o.groups))
	for i := range o.groups {
		if states[i], err = l.stateOf(o, i, s, answer.GetGroups()[i]); err != nil {
			return err
		}
	}
	others, err := at(s.others, answer.GetOtherNotStarted())
	if err != nil {
		return err
	}
	for _, node := range others {
		o.notStarted[node.Name] = true
	}
	o.states = states
	return nil
}

// stateOf returns what was found out about one group. Nodes that lack devices are looked at in each loop: what is shown
// of them changes without an event.
func (l *leader) stateOf(o *loop, i int, s *sight, found *loadlinev1.FleetGroupView) (*groupState, error) {
	g := &groupState{Group: &o.groups[i], found: found, lacking: map[string]bool{}}
	var err error
	take := func(positions []int32) []*v1.Node {
		nodes, wrong := at(s.nodes[i], positions)
		if slices.Contains(nodes, nil) {
			wrong = errors.New("a machine without a node is taken for one with a node")
		}
		if wrong != nil {
			err = fmt.Errorf("the look at node group %s: %w", g.ID, wrong)
			return nil
		}
		return nodes
	}
	g.nodes = take(found.GetStarted())
	for _, node := range take(found.GetNotStarted()) {
		o.notStarted[node.Name] = true
	}
	for _, node := range take(found.GetLacking()) {
		g.lacking[node.Name], l.cluster.altered[node.Name] = true, true
	}
	failed, wrongFailed := at(s.machines[i], found.GetDeleteFailed())
	late, wrongLate := at(s.machines[i], found.GetDeleteLate())
	g.deleteFailed, g.deleteLate = failed, late
	slices.SortFunc(g.nodes, func(a, b *v1.Node) int { return cmp.Compare(a.Name, b.Name) })
	return g, cmp.Or(err, wrongFailed, wrongLate)
}

// at returns what is at some positions.
func at[T any](all []T, positions []int32) ([]T, error) {
	var out []T
	for _, position := range positions {
		if position < 0 || int(position) >= len(all) {
			return nil, fmt.Errorf("position %d is told of %d", position, len(all))
		}
		out = append(out, all[position])
	}
	return out, nil
}

package clusterapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/autoscaler/cloud"
)

// found is a node group as one look has it.
type found struct {
	object
	machines []object // sorted by name
	sets     int      // MachineSets that have machines, of a MachineDeployment
}

// look lists all groups with their machines. A MachineSet of a MachineDeployment is no group of its own.
func (p *Provider) look(ctx context.Context) (map[string]*found, error) {
	listed := map[string][]object{}
	for _, r := range resources {
		all, err := p.list(ctx, r.kind, namespaceOf(p.scopes), metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		listed[r.kind] = all
	}
	state := map[string]*found{}
	for kind, all := range listed {
		for _, o := range all {
			if kind != machineKind && o.owner(deploymentKind) == "" && p.inScope(o) {
				state[o.id()] = &found{object: o}
			}
		}
	}
	assign(state, listed[setKind], listed[machineKind])
	return state, nil
}

// assign gives the groups their machines, by owners.
func assign(state map[string]*found, sets, machines []object) {
	deployments := map[string]string{} // by id of a MachineSet
	for _, set := range sets {
		if owner := set.owner(deploymentKind); owner != "" {
			deployments[set.id()] = deploymentKind + "/" + set.GetNamespace() + "/" + owner
		}
	}
	inUse := map[string]map[string]bool{} // MachineSets with machines, by group
	for _, machine := range machines {
		id := poolKind + "/" + machine.GetNamespace() + "/" + machine.owner(poolKind)
		if set := machine.owner(setKind); set != "" {
			setID := setKind + "/" + machine.GetNamespace() + "/" + set
			id = setID
			if deployment := deployments[setID]; deployment != "" {
				id = deployment
				if inUse[id] == nil {
					inUse[id] = map[string]bool{}
				}
				inUse[id][setID] = true
			}
		}
		if f := state[id]; f != nil {
			f.machines, f.sets = append(f.machines, machine), len(inUse[id])
		}
	}
	for _, f := range state {
		slices.SortFunc(f.machines, func(a, b object) int { return strings.Compare(a.GetName(), b.GetName()) })
	}
}

// isRollingOut says whether a MachineDeployment is replacing its machines, or may begin to: its controller has not seen
// its last change.
func (f *found) isRollingOut() bool {
	return f.GetKind() == deploymentKind && (f.sets > 1 || f.holds("RollingOut"))
}

// isWithoutMachines says whether a MachinePool has instances alone, if it has any.
func (f *found) isWithoutMachines() bool { return f.GetKind() == poolKind && len(f.machines) == 0 }

// live returns the machines that are not being deleted.
func (f *found) live() []object {
	return slices.DeleteFunc(slices.Clone(f.machines), object.isGoing)
}

// leaving returns the machines that are marked and will be deleted next: as many as there are too many.
func (f *found) leaving(target int) map[string]bool {
	live := f.live()
	names := map[string]bool{}
	for _, machine := range live {
		if machine.isMarked() && len(names) < len(live)-target {
			names[machine.GetName()] = true
		}
	}
	return names
}

// Groups returns all groups by id, as they were at the last Refresh.
func (p *Provider) Groups(ctx context.Context, defaults *externalgrpc.NodeGroupAutoscalingOptions) (
	[]cloud.Group, error) {
	p.mu.Lock()
	state := p.state
	p.mu.Unlock()
	ids, err := p.nodeIDs(ctx, state)
	if err != nil {
		return nil, err
	}
	var groups []cloud.Group
	several := severalClusters(state)
	for _, id := range slices.Sorted(maps.Keys(state)) {
		f := state[id]
		low, high, scales, err := f.bounds()
		if !scales {
			continue
		}
		g := cloud.Group{ID: id, Min: low, Max: high, Problem: err}
		target, unknown := f.replicas()
		g.Target = target
		switch {
		case g.Problem != nil:
		case several != nil:
			g.Problem = several
		case unknown != nil:
			g.Problem = unknown
		case f.isGoing():
			g.Problem = errors.New(id + " is being deleted")
		case f.isPaused():
			g.Problem = errors.New(id + " is paused: no controller looks after it")
		case f.isRollingOut(): // no node is removed: Cluster API says which of them is deleted
			g.Min = min(max(low, target), high)
		case f.isWithoutMachines():
			// No node is removed, as nobody can say which one it would be. A minimum above the nodes that are there would keep
			// requests from being taken back that the pool has not begun to fulfill.
			g.Min = min(max(low, min(target, f.there(&f.Unstructured))), high)
		default: // a drain would be in vain
			// A minimum above the nodes that run would keep requests from being taken back.
			if _, g.Warning = f.staleMarks(nil, target); g.Warning != nil {
				g.Min = min(max(low, min(target, f.running())), high)
			}
		}
		g.Instances = f.instances(target, ids)
		g.Warning = cmp.Or(g.Warning, f.wrongCapacity(), p.unknownShape(f, g.Instances))
		var doubts []string
		g.Options, doubts = f.options(defaults)
		p.warn(doubts)
		groups = append(groups, g)
	}
	return groups, nil
}

// severalClusters returns an error if groups belong to more than one Cluster. Machines of the others never become nodes
// here: they would be bought for pods of this one, and those with nodes of their own would count as late.
func severalClusters(state map[string]*found) error {
	clusters := map[string]bool{}
	for _, f := range state {
		if _, _, scales, _ := f.bounds(); scales && f.cluster() != "" {
			clusters[f.GetNamespace()+"/"+f.cluster()] = true
		}
	}
	if len(clusters) < 2 {
		return nil
	}
	names := slices.Sorted(maps.Keys(clusters))
	return fmt.Errorf("there are node groups of %d clusters, such as %s and %s: name that of the nodes by "+
		"--node-group-auto-discovery=clusterapi:namespace=NAMESPACE,clusterName=NAME", len(names), names[0], names[1])
}

// nodeIDs returns provider ids by name of the node, if a machine states none but has become a node.
func (p *Provider) nodeIDs(ctx context.Context, state map[string]*found) (map[string]string, error) {
	needed := false
	for _, f := range state {
		needed = needed || slices.ContainsFunc(f.machines, func(m object) bool {
			return m.providerID() == "" && m.nodeName() != ""
		})
	}
	if !needed {
		return nil, nil
	}
	nodes, err := p.nodes.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	ids := map[string]string{}
	for _, node := range nodes.Items {
		ids[node.Name] = node.Spec.ProviderID
	}
	return ids, nil
}

// instances returns the machines of a group. Pools whose provider makes no Machines list the ids alone.
func (f *found) instances(target int, nodeIDs map[string]string) []*externalgrpc.Instance {
	var all []*externalgrpc.Instance
	leaving := f.leaving(target)
	for _, machine := range f.machines {
		all = append(all, instanceOf(machine, leaving[machine.GetName()], nodeIDs))
	}
	if !f.isWithoutMachines() {
		return all
	}
	for _, id := range f.providerIDs() {
		all = append(all, &externalgrpc.Instance{Id: id,
			Status: &externalgrpc.InstanceStatus{InstanceState: externalgrpc.InstanceState_INSTANCE_RUNNING}})
	}
	return all
}

// providerIDs are those that a pool lists.
func (f *found) providerIDs() []string {
	ids, _, _ := unstructured.NestedStringSlice(f.Object, "spec", "providerIDList")
	return ids
}

// Classes of errors in the protocol.
const (
	outOfResources = 1
	otherError     = 99
)

func instanceOf(machine object, leaving bool, nodeIDs map[string]string) *externalgrpc.Instance {
	id := machine.providerID()
	if id == "" {
		id = nodeIDs[machine.nodeName()]
	}
	if id == "" {
		id = machine.pendingID()
	}
	status := &externalgrpc.InstanceStatus{InstanceState: externalgrpc.InstanceState_INSTANCE_RUNNING}
	switch {
	case machine.isGoing() || leaving:
		status.InstanceState = externalgrpc.InstanceState_INSTANCE_DELETING
	case machine.nodeName() == "":
		status.InstanceState = externalgrpc.InstanceState_INSTANCE_CREATING
		reason, message := machine.failure()
		if reason == "" && message == "" {
			break
		}
		status.ErrorInfo = &externalgrpc.InstanceErrorInfo{ErrorCode: reason, ErrorMessage: message,
			InstanceErrorClass: otherError}
		if reason == "" {
			status.ErrorInfo.ErrorCode = "ProvisioningFailed"
		}
		if reason == "InsufficientResources" {
			status.ErrorInfo.InstanceErrorClass = outOfResources
		}
	}
	return &externalgrpc.Instance{Id: id, Status: status}
}

// Deleting returns the machines of a group that are being deleted, by provider id, as they are now.
func (p *Provider) Deleting(ctx context.Context, id string) (map[string]bool, error) {
	f, target, _, err := p.now(ctx, id)
	if err != nil {
		return nil, err
	}
	ids, err := p.nodeIDs(ctx, map[string]*found{id: f})
	if err != nil {
		return nil, err
	}
	deleting := map[string]bool{}
	for _, i := range f.instances(target, ids) {
		if i.GetStatus().GetInstanceState() == externalgrpc.InstanceState_INSTANCE_DELETING {
			deleting[i.GetId()] = true
		}
	}
	return deleting, nil
}

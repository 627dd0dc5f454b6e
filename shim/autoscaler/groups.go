package autoscaler

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/provider"
	"loadline.dev/shim/scaleup"
)

// machine is what the cloud says of the machine of a node.
type machine struct {
	group string
	state externalgrpc.InstanceState
}

// machinesOf returns the machines of all groups by their provider ids.
func machinesOf(groups []provider.Group) map[string]machine {
	machines := map[string]machine{}
	for i := range groups {
		for _, instance := range groups[i].Instances {
			if instance.ProviderID != "" {
				machines[instance.ProviderID] = machine{groups[i].ID, instance.State}
			}
		}
	}
	return machines
}

// groupState is a node group as one loop sees it.
type groupState struct {
	*provider.Group
	nodes   []*v1.Node // that have registered and started
	devices deviceSet  // that new ones come to offer
	// starting nodes have registered, coming ones have not, and nobody has given them up.
	starting, coming int
	failed           []provider.Instance // cannot be created
	late             []provider.Instance // did not register in time
	lost             int                 // had a node, which is gone for longer than that
	short            int                 // nodes that the cloud has not begun to make in time
	live             int                 // machines that are listed and are not being deleted
	model            model
	// blockedReason is why the group may not grow; empty: it may.
	blockedReason string
}

// upcoming is how many nodes are on their way.
func (g *groupState) upcoming() int { return g.starting + g.coming }

// room is how many nodes the group may have more. A cloud may have more machines than its target size for some time.
func (g *groupState) room() int { return max(0, g.Max-max(g.Target, g.live)) }

// started says whether a node is ready for pods: it is not while it carries a taint that goes at the start.
func started(node *v1.Node) bool {
	ready := slices.ContainsFunc(node.Status.Conditions, func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
	})
	return ready &&
		!slices.ContainsFunc(node.Spec.Taints, func(t v1.Taint) bool { return scaleup.IsStartupTaint(t.Key) })
}

// starts says whether a node has registered a short time ago and is not ready yet, or lacks devices that nodes of its
// group have: it counts as on its way.
func starts(node *v1.Node, devices deviceSet, within time.Duration, now time.Time) bool {
	return (!started(node) || lacks(node, devices)) && isYoung(node, within, now)
}

func isYoung(node *v1.Node, within time.Duration, now time.Time) bool {
	return !node.CreationTimestamp.IsZero() && now.Sub(node.CreationTimestamp.Time) < within
}

// unschedulable returns a node as it is while no pod is to be planned for it.
func unschedulable(node *v1.Node) *v1.Node {
	node = node.DeepCopy()
	node.Spec.Unschedulable = true
	return node
}

func startupTime(g *provider.Group, s *config.ScaleUp) time.Duration {
	if d := g.Options.GetMaxNodeStartupDuration().AsDuration(); d > 0 {
		return d
	}
	return s.MaxNodeStartupTime.Duration
}

// startupTime is that of the group of a node.
func (l *leader) startupTime(o *loop, node *v1.Node) time.Duration {
	m := o.machines[node.Spec.ProviderID]
	for i := range o.groups {
		if o.groups[i].ID == m.group {
			return startupTime(&o.groups[i], &l.config.ScaleUp)
		}
	}
	return l.config.ScaleUp.MaxNodeStartupTime.Duration
}

// isStarting says whether a node counts as on its way.
func (l *leader) isStarting(o *loop, node *v1.Node) bool {
	return starts(node, l.devices[o.machines[node.Spec.ProviderID].group], l.startupTime(o, node), o.now)
}

// learnDevices finds out which devices nodes of each group come to offer, and has those looked at that lack some.
func (l *leader) learnDevices(o *loop, byID map[string]*v1.Node) {
	before := l.devices
	l.devices = map[string]deviceSet{}
	for i := range o.groups {
		g := &o.groups[i]
		var nodes []*v1.Node
		for _, instance := range g.Instances {
			if node := byID[instance.ProviderID]; node != nil {
				nodes = append(nodes, node)
			}
		}
		within := startupTime(g, &l.config.ScaleUp)
		devices := devicesOfGroup(before[g.ID], l.models.templateOf(g.ID), nodes, func(node *v1.Node) bool {
			return isYoung(node, within, o.now)
		})
		l.devices[g.ID] = devices
		for _, node := range nodes {
			if lacks(node, devices) {
				l.cluster.altered[node.Name] = true
			}
		}
	}
}

func provisionTime(g *provider.Group, s *config.ScaleUp) time.Duration {
	if d := g.Options.GetMaxNodeProvisionDuration().AsDuration(); d > 0 {
		return d
	}
	return s.MaxNodeProvisionTime.Duration
}

// groupStates counts the nodes of each group: each machine once, and of nodes that go none.
func (l *leader) groupStates(o *loop) []*groupState {
	byID := map[string]*v1.Node{}
	for _, node := range l.cluster.nodes {
		if node.Spec.ProviderID != "" {
			byID[node.Spec.ProviderID] = node
		}
	}
	l.learnDevices(o, byID)
	states := make([]*groupState, len(o.groups))
	for i := range o.groups {
		g := &groupState{Group: &o.groups[i], devices: l.devices[o.groups[i].ID]}
		states[i] = g
		undecided := 0 // machines that the cloud may be deleting: if it is not, they are part of its target size
		for _, instance := range g.Instances {
			if l.arrivals.isBeingDeleted(instance, o.now) {
				if instance.State != externalgrpc.InstanceState_INSTANCE_DELETING {
					undecided++
				}
				continue
			}
			g.live++
			l.count(o, g, instance, byID[instance.ProviderID])
		}
		switch missing := g.Target - g.live - undecided; {
		case missing <= 0:
		case l.arrivals.isShort(g.Group, o.now):
			g.short = missing
		default:
			g.coming += missing
		}
		slices.SortFunc(g.nodes, func(a, b *v1.Node) int { return cmp.Compare(a.Name, b.Name) })
	}
	return states
}

// count adds one machine, with its node if there is one.
func (l *leader) count(o *loop, g *groupState, instance provider.Instance, node *v1.Node) {
	hadNode := l.arrivals.hadNode[instance.ProviderID]
	switch {
	case node == nil && instance.Fault.Code != "" && !hadNode:
		g.failed = append(g.failed, instance)
	case node == nil && hadNode && (instance.Fault.Code != "" || l.arrivals.isLate(g.Group, instance, o.now)):
		g.lost++
	case node == nil && l.arrivals.isLate(g.Group, instance, o.now):
		g.late = append(g.late, instance)
	case node == nil:
		g.coming++
	case l.isGoing(o, node):
	case starts(node, l.devices[g.ID], startupTime(g.Group, &l.config.ScaleUp), o.now):
		g.starting++
	default:
		g.nodes = append(g.nodes, node)
	}
}

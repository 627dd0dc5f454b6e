package karpenter

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/autoscaler/cloud"
)

// state is what one look has found.
type state struct {
	groups  map[string]*group
	groupOf map[string]string // of claims, by name
}

// pool is a managed NodePool with its claims.
type pool struct {
	*nodePool
	claims  []*nodeClaim
	problem error // why Loadline must leave it alone
	limits  v1.ResourceList
	left    map[v1.ResourceName]float64 // what its claims leave of the limits
	budgets []*cloud.NodeBudget
}

// group is one instance type of a NodePool in a zone, with a capacity type.
type group struct {
	id                   string
	pool                 *pool
	machine              *instanceType // nil: no node of it can be planned; the group only has the nodes that are there
	kind, zone, capacity string        // zone: empty where any will do
	claims               []*nodeClaim
	room                 int   // how many more machines the limits of the NodePool allow
	outside              bool  // the requirements of the NodePool do not allow it any more: it does not grow
	problem              error // why nothing can be done with it, beside that of the pool
}

// anyZone is the part of an id for a group without a zone.
const anyZone = "any"

func idOf(pool, kind, zone, capacity string) string {
	return strings.Join([]string{pool, kind, cmp.Or(zone, anyZone), capacity}, "/")
}

// stateOf works out the groups of the managed pools. The caller holds the lock.
func (p *Provider) stateOf(pools []*nodePool, claims []*nodeClaim) state {
	s := state{groups: map[string]*group{}, groupOf: map[string]string{}}
	var managed, odd []*pool
	budgets := 0
	for _, n := range pools {
		own := &pool{nodePool: n}
		switch value, has := n.Labels[ManagedLabel]; {
		case value == "true":
			own.claims = slices.DeleteFunc(slices.Clone(claims), func(c *nodeClaim) bool {
				return c.Labels[nodePoolLabel] != n.Name
			})
			own.problem = own.problemOf()
			if budgets += len(own.budgets); budgets > mostBudgetsOfAll {
				own.problem = cmp.Or(own.problem, fmt.Errorf("NodePool %s: the annotations %s of all NodePools have more than %d "+
					"budgets", own.Name, budgetsAnnotation, mostBudgetsOfAll))
			}
			managed = append(managed, own)
		case has && value != "false":
			own.problem = fmt.Errorf("NodePool %s: label %s is %q: it must be \"true\", or Karpenter keeps the NodePool",
				n.Name, ManagedLabel, value)
			odd = append(odd, own)
		}
	}
	offers := make([]*offer, len(managed))
	for i, own := range managed {
		offers[i] = p.offerOf(own)
	}
	share(offers, min(p.options.MaxGroups, cloud.MaxGroups-len(managed)-len(odd)))
	for i, own := range managed {
		for _, g := range offers[i].groups() {
			s.groups[g.id] = g
		}
		for _, c := range own.claims {
			s.place(own, c, p.types)
		}
		s.explain(own, offers[i].problem(p.options.MaxGroups))
	}
	for _, own := range odd {
		s.explain(own, own.problem)
	}
	for _, g := range s.groups {
		g.learn()
	}
	for _, own := range managed {
		own.left = s.leftOf(own)
	}
	for _, g := range s.groups {
		g.room = g.roomLeft()
	}
	return s
}

// noGroup ends the id of the group that represents a pool without one.
const noGroup = "/none"

// explain adds a group that has no nodes and says why a pool does not grow, where the pool has no groups to say so, or
// has only those of nodes that are there already.
func (s *state) explain(own *pool, why error) {
	has := false
	for _, g := range s.groups {
		has = has || g.pool == own
	}
	if has && (why == nil || own.problem != nil) {
		return
	}
	id := own.Name + noGroup
	s.groups[id] = &group{id: id, pool: own, problem: cmp.Or(own.problem, why)}
}

// isRequired says whether the requirements of the NodePool allow new nodes of the group.
func (g *group) isRequired() bool {
	labels, lacks := map[string]string{v1.LabelInstanceTypeStable: g.kind}, func(string) bool { return false }
	if g.machine != nil {
		labels, lacks = maps.Clone(g.machine.Labels), g.machine.lacks
	}
	labels[capacityTypeLabel] = g.capacity
	if g.zone != "" {
		labels[v1.LabelTopologyZone] = g.zone
	}
	return allow(g.pool.requirements(), labels, lacks)
}

// place puts a claim into its group: the one that it was made for, else that of its labels, else one of its own. A
// claim of Karpenter's that does not say yet what it becomes keeps its pool as it is.
func (s *state) place(own *pool, c *nodeClaim, types map[string]*instanceType) {
	kind, zone := c.label(v1.LabelInstanceTypeStable), c.label(v1.LabelTopologyZone)
	capacity := c.label(capacityTypeLabel)
	if capacity == reserved {
		capacity = onDemand
	}
	g := s.groups[c.Annotations[groupAnnotation]]
	if g == nil || g.pool != own {
		g = s.groups[idOf(own.Name, kind, zone, capacity)]
	}
	if g == nil {
		g = s.groups[idOf(own.Name, kind, "", capacity)]
	}
	switch {
	case g != nil:
	case kind == "" || capacity == "":
		if c.DeletionTimestamp == nil {
			own.problem = cmp.Or(own.problem, fmt.Errorf("NodeClaim %s of NodePool %s, which Loadline did not make, is not "+
				"launched yet: the NodePool is left as it is until then", c.Name, own.Name))
		}
		return
	default:
		g = &group{id: idOf(own.Name, kind, zone, capacity), pool: own, machine: types[kind], kind: kind, zone: zone,
			capacity: capacity}
		g.outside = !g.isRequired()
		s.groups[g.id] = g
	}
	g.claims = append(g.claims, c)
	s.groupOf[c.Name] = g.id
}

// learn takes over what the newest node of the group offers: Karpenter knows it better than a price list.
func (g *group) learn() {
	var newest *nodeClaim
	for _, c := range g.pool.claims {
		if c.label(v1.LabelInstanceTypeStable) == g.kind && c.launched() && c.Status.Allocatable.Cpu().Sign() > 0 &&
			(newest == nil || newest.CreationTimestamp.Before(&c.CreationTimestamp)) {
			newest = c
		}
	}
	if newest == nil {
		return
	}
	learnt := instanceType{Name: g.kind, Arch: newest.Labels[v1.LabelArchStable]}
	if g.machine != nil {
		learnt = *g.machine
	}
	learnt.Allocatable = newest.Status.Allocatable
	g.machine = &learnt
}

// mostMachines is how many machines a group may have where nothing limits it.
const mostMachines = 1000

// roomLeft returns how many more machines of the group the limits of its pool allow, which has them in `left`.
func (g *group) roomLeft() int {
	if g.machine == nil || g.pool.problem != nil || g.outside {
		return 0
	}
	room := int64(max(0, mostMachines-len(g.claims)))
	for name, left := range g.pool.left {
		each := g.machine.Allocatable[name]
		if name == "nodes" {
			each = resource.MustParse("1")
		}
		if each.Sign() <= 0 {
			continue
		}
		room = min(room, max(0, int64(left/each.AsApproximateFloat64()+1e-9)))
	}
	return int(room)
}

// leftOf returns what the claims of a pool leave of its limits. A claim has, or will have, as much as is planned with,
// and requests less. All groups have learnt before.
func (s *state) leftOf(p *pool) map[v1.ResourceName]float64 {
	left := map[v1.ResourceName]float64{}
	for name, limit := range p.limits {
		left[name] = limit.AsApproximateFloat64() - s.used(p, name)
	}
	return left
}

func (s *state) used(p *pool, name v1.ResourceName) (sum float64) {
	if name == "nodes" {
		return float64(len(p.claims))
	}
	for _, c := range p.claims {
		amount, known := c.Status.Allocatable[name]
		if g := s.groups[s.groupOf[c.Name]]; !known && g != nil && g.machine != nil {
			amount, known = g.machine.Allocatable[name]
		}
		if !known && c.Spec.Resources != nil {
			amount = c.Spec.Resources.Requests[name]
		}
		sum += amount.AsApproximateFloat64()
	}
	return sum
}

// labels are those of the nodes of the group.
func (g *group) labels() map[string]string {
	spec := &g.pool.Spec.Template
	labels := map[string]string{}
	for i := range spec.Spec.Requirements {
		if key := spec.Spec.Requirements[i].Key; singleValue(spec.Spec.Requirements, key) != "" {
			labels[key] = singleValue(spec.Spec.Requirements, key)
		}
	}
	if g.machine != nil {
		maps.Copy(labels, g.machine.Labels)
		if g.machine.Arch != "" {
			labels[v1.LabelArchStable] = g.machine.Arch
		}
	}
	maps.Copy(labels, spec.Metadata.Labels)
	for key, value := range map[string]string{nodePoolLabel: g.pool.Name, v1.LabelInstanceTypeStable: g.kind,
		v1.LabelTopologyZone: g.zone, capacityTypeLabel: g.capacity, v1.LabelTopologyRegion: g.region()} {
		if value != "" {
			labels[key] = value
		}
	}
	return labels
}

// region returns the region of the nodes that the pool has; empty: it is not known.
func (g *group) region() string {
	for _, c := range g.pool.claims {
		if region := c.label(v1.LabelTopologyRegion); region != "" {
			return region
		}
	}
	return ""
}

// template returns a node as the group makes it; nil: it is not known.
func (g *group) template() *v1.Node {
	if g.machine == nil {
		return nil
	}
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "template-of-" + g.id, Labels: g.labels(),
		Annotations: maps.Clone(g.pool.Spec.Template.Metadata.Annotations)},
		Spec: v1.NodeSpec{Taints: slices.Clone(g.pool.Spec.Template.Spec.Taints)},
		Status: v1.NodeStatus{Capacity: g.machine.Allocatable.DeepCopy(), Allocatable: g.machine.Allocatable.DeepCopy(),
			Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}}}
}

// never is how long a node must be unneeded where its NodePool says never.
const never = 100 * 365 * 24 * time.Hour

// optionsOver returns the defaults with what the NodePool says of disruption; nil: there are no defaults to change.
func (g *group) optionsOver(
	defaults *externalgrpc.NodeGroupAutoscalingOptions,
) *externalgrpc.NodeGroupAutoscalingOptions {
	if defaults == nil {
		return nil
	}
	options, of := proto.CloneOf(defaults), &g.pool.Spec.Disruption
	after, err := time.ParseDuration(of.ConsolidateAfter)
	switch {
	case of.ConsolidateAfter == "Never":
		options.ScaleDownUnneededDuration = durationpb.New(never)
	case err == nil && after >= 0:
		options.ScaleDownUnneededDuration = durationpb.New(after)
	}
	if of.ConsolidationPolicy == "WhenEmpty" {
		options.ScaleDownUtilizationThreshold, options.ScaleDownGpuUtilizationThreshold = 0, 0
		options.IgnoreDaemonSetsUtilization = true
	}
	return options
}

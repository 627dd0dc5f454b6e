package karpenter

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// offer is what a pool can grow by: instance types, each in some zones with some capacity types.
type offer struct {
	pool              *pool
	types             []*instanceType
	zones, capacities []string
	most              int // instance types of which there are groups
	lists             bool
}

// requirements returns those of a pool. Its labels are requirements too, for Karpenter as well.
func (p *pool) requirements() []requirement {
	all := slices.Clone(p.Spec.Template.Spec.Requirements)
	labels := p.Spec.Template.Metadata.Labels
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		all = append(all, requirement{Key: key, Operator: v1.NodeSelectorOpIn, Values: []string{labels[key]}})
	}
	return all
}

// offerOf returns all that a pool could grow by.
func (p *Provider) offerOf(own *pool) *offer {
	requirements := own.requirements()
	o := &offer{pool: own, zones: p.zonesOf(own), capacities: capacitiesOf(requirements), lists: len(p.types) > 0}
	if contradiction(requirements) != "" {
		return o
	}
	for _, t := range p.types {
		if allow(requirements, t.Labels, t.lacks) {
			o.types = append(o.types, t)
		}
	}
	return o
}

// capacitiesOf returns the capacity types that a pool may have: on demand where nothing is required of them. One that
// is reserved is not in any list; Karpenter takes it for on-demand claims.
func capacitiesOf(requirements []requirement) []string {
	if len(of(requirements, capacityTypeLabel)) == 0 {
		return []string{onDemand}
	}
	values, _ := named(requirements, capacityTypeLabel)
	return slices.DeleteFunc(allowed(requirements, capacityTypeLabel, append([]string{onDemand, spot}, values...)),
		func(capacity string) bool { return capacity == reserved })
}

// zonesOf returns the zones of a pool; one empty zone: they are not known, and any will do that the claim allows.
func (p *Provider) zonesOf(own *pool) []string {
	requirements := own.requirements()
	if values, some := named(requirements, v1.LabelTopologyZone); some {
		return allowed(requirements, v1.LabelTopologyZone, values)
	}
	for _, r := range of(requirements, v1.LabelTopologyZone) {
		if r.Operator == v1.NodeSelectorOpDoesNotExist || r.compares() {
			return nil // every node has a zone, which is no number
		}
	}
	found := map[string]bool{}
	for _, zone := range p.options.Zones {
		found[zone] = true
	}
	if len(found) == 0 {
		for _, c := range own.claims {
			found[c.Labels[v1.LabelTopologyZone]] = true
		}
	}
	delete(found, "")
	if zones := allowed(requirements, v1.LabelTopologyZone, slices.Sorted(maps.Keys(found))); len(zones) > 0 {
		return zones
	}
	return []string{""}
}

// each is how many groups one instance type makes.
func (o *offer) each() int { return len(o.zones) * len(o.capacities) }

// share says of how many instance types each pool has groups, which are at most so many in all. As far as they suffice
// each pool gets one type, those that need the fewest groups for it first. Further types then go to the pool that has
// the fewest groups.
func share(offers []*offer, most int) {
	left := most
	takes := func(o *offer) bool { return o.each() > 0 && o.most < len(o.types) && o.each() <= left }
	byNeed := slices.Clone(offers)
	slices.SortStableFunc(byNeed, func(a, b *offer) int {
		return cmp.Or(cmp.Compare(a.each(), b.each()), cmp.Compare(a.pool.Name, b.pool.Name))
	})
	for _, o := range byNeed {
		if takes(o) {
			o.most, left = 1, left-o.each()
		}
	}
	for {
		var next *offer
		for _, o := range byNeed {
			if takes(o) && (next == nil || o.most*o.each() < next.most*next.each()) {
				next = o
			}
		}
		if next == nil {
			return
		}
		next.most++
		left -= next.each()
	}
}

// groups returns the groups of an offer that has its share.
func (o *offer) groups() (all []*group) {
	for _, t := range bestTypes(o.types, o.most) {
		for _, zone := range o.zones {
			for _, capacity := range o.capacities {
				all = append(all, &group{id: idOf(o.pool.Name, t.Name, zone, capacity), pool: o.pool, machine: t,
					kind: t.Name, zone: zone, capacity: capacity})
			}
		}
	}
	return all
}

// problem says why an offer has no groups; nil: it has some.
func (o *offer) problem(most int) error {
	if o.most > 0 && o.each() > 0 {
		return nil
	}
	name := o.pool.Name
	switch key := contradiction(o.pool.requirements()); {
	case key != "":
		return fmt.Errorf("NodePool %s does not grow: no node can meet its requirements and labels of %s", name, key)
	case len(o.capacities) == 0:
		return fmt.Errorf("NodePool %s does not grow: its requirements of %s allow neither %s nor %s", name,
			capacityTypeLabel, onDemand, spot)
	case len(o.zones) == 0:
		return fmt.Errorf("NodePool %s does not grow: its requirements of %s allow no zone", name, v1.LabelTopologyZone)
	case !o.lists:
		return fmt.Errorf("NodePool %s does not grow: no price list states the shapes of instance types: --prices", name)
	case len(o.types) == 0:
		return fmt.Errorf("NodePool %s does not grow: its requirements allow none of the instance types whose shapes price "+
			"lists state (Linux only): --prices", name)
	}
	return fmt.Errorf("NodePool %s does not grow: one instance type of it makes %d node groups, and those of all "+
		"NodePools are at most %d: raise --karpenter-max-groups, or name fewer zones", name, o.each(), most)
}

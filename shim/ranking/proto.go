package ranking

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"loadline.dev/shim/api/loadlinev1"
)

func (p *Policy) checkWords() error {
	errs := presets.Check(field.NewPath("preset"), p.Preset)
	for i, strategy := range p.Strategies {
		errs = append(errs, strategies.Require(field.NewPath("strategies").Index(i), strategy)...)
	}
	errs = append(errs, tables.Check(field.NewPath("preferredTable"), p.PreferredTable)...)
	errs = append(errs, unfitness.Check(field.NewPath("unfitnessResources"), p.UnfitnessResources)...)
	errs = append(errs, sources.Check(field.NewPath("prices", "lastSource"), p.Prices.LastSource)...)
	return errs.ToAggregate()
}

// Proto returns the policy as the engine takes it. It must be a valid one.
func (p *Policy) Proto() *loadlinev1.RankPolicy {
	out := &loadlinev1.RankPolicy{
		Preset:                 loadlinev1.RankPolicy_Preset(presets.Number(p.Preset)),
		DamperUsdPerHour:       p.Damper,
		PodRates:               p.PodRates.proto(),
		SuppressionDivisor:     p.SuppressionDivisor,
		GpuUnfitness:           p.GPUUnfitness,
		GpuUnfitnessIfUnneeded: p.GPUUnfitnessIfUnneeded,
		CreationFactor:         p.CreationFactor,
		CountPreferredNodes:    p.CountPreferredNodes,
		PreferredTable:         loadlinev1.RankPolicy_PreferredTable(tables.Number(p.PreferredTable)),
		UnfitnessResources:     loadlinev1.RankPolicy_UnfitnessResources(unfitness.Number(p.UnfitnessResources)),
	}
	for _, strategy := range p.Strategies {
		out.Strategies = append(out.Strategies, loadlinev1.RankPolicy_Strategy(strategies.Number(strategy)))
	}
	if p.PreferredNode != nil {
		out.PreferredNode = &loadlinev1.PreferredNode{
			MilliCpu: p.PreferredNode.CPU.MilliValue(), MemoryBytes: p.PreferredNode.Memory.Value()}
	}
	return out
}

// PriceModel returns the prices as the engine takes them.
func (p *Policy) PriceModel() *loadlinev1.PriceModel {
	prices := &p.Prices
	out := &loadlinev1.PriceModel{
		Catalogues:              prices.lists,
		BaseRates:               prices.BaseRates.proto(),
		LastSource:              loadlinev1.NodePrice_Source(sources.Number(prices.LastSource)),
		SpotFactor:              prices.SpotFactor,
		InterruptionRisk:        prices.InterruptionRisk,
		NodeSurchargeUsdPerHour: prices.NodeSurcharge,
	}
	for _, instance := range slices.Sorted(maps.Keys(prices.InterruptionRisks)) {
		out.InterruptionRisks = append(out.InterruptionRisks,
			&loadlinev1.InterruptionRisk{Instance: instance, Risk: prices.InterruptionRisks[instance]})
	}
	for _, c := range prices.Commitments {
		out.Commitments = append(out.Commitments,
			&loadlinev1.Commitment{Instance: c.Instance, UnusedMilliCpu: c.UnusedCPU.MilliValue()})
	}
	return out
}

func (r *Rates) proto() *loadlinev1.ResourceRates {
	if r == nil {
		return nil
	}
	return &loadlinev1.ResourceRates{
		CpuUsdPerHour: r.CPU, MemoryGibUsdPerHour: r.MemoryGiB, GpuUsdPerHour: r.GPU,
		EphemeralGibUsdPerHour: r.EphemeralGiB, EphemeralFlatUsdPerHour: r.EphemeralFlat,
	}
}

// Priorities tells the priority of groups. Nil where the policy has none.
type Priorities []priorityPattern

type priorityPattern struct {
	pattern  *regexp.Regexp
	priority int64
}

// mostPatterns bounds the patterns, each of which is tried on the name of each group in each loop. Chosen: more than
// there are groups in clusters that are known.
const mostPatterns = 1000

// PrioritiesOf returns the priorities of a map as RankPolicy has it, or an error that names the pattern that is none,
// or the priority with which there are more than mostPatterns.
func PrioritiesOf(patterns map[int64][]string) (Priorities, error) {
	var out Priorities
	for _, priority := range slices.Sorted(maps.Keys(patterns)) {
		if len(out)+len(patterns[priority]) > mostPatterns {
			return nil, fmt.Errorf("priorities[%d]: more than %d patterns up to this priority", priority, mostPatterns)
		}
		for _, text := range patterns[priority] {
			pattern, err := regexp.Compile(text)
			if err != nil {
				return nil, fmt.Errorf("priorities[%d]: %w", priority, err)
			}
			out = append(out, priorityPattern{pattern, priority})
		}
	}
	return out, nil
}

// Matcher returns what finds the priority of a group. The policy must be a valid one.
func (p *Policy) Matcher() Priorities {
	out, _ := PrioritiesOf(p.Priorities)
	return out
}

// Of returns the highest priority with a pattern that the name of a group matches anywhere; nil if there is none.
func (p Priorities) Of(group string) *int64 {
	var highest *int64
	for i := range p {
		if (highest == nil || p[i].priority > *highest) && p[i].pattern.MatchString(group) {
			highest = &p[i].priority
		}
	}
	return highest
}

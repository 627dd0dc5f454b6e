package policy

import "loadline.dev/shim/api/loadlinev1"

// Proto returns the policy as the engine takes it. The policy must be valid.
func (p Policy) Proto() *loadlinev1.ScorePolicy {
	out := &loadlinev1.ScorePolicy{
		Preset:            loadlinev1.ScorePolicy_Preset(presets.number(p.Preset)),
		Arithmetic:        loadlinev1.ScorePolicy_Arithmetic(arithmetics.number(p.Arithmetic)),
		PodLimits:         loadlinev1.ScorePolicy_PodLimits(podLimits.number(p.PodLimits)),
		Aggregate:         loadlinev1.ScorePolicy_Aggregate(aggregates.number(p.Aggregate)),
		AbsentResource:    loadlinev1.ScorePolicy_AbsentResource(absentRules.number(p.AbsentResource)),
		MissingLimitScope: loadlinev1.ScorePolicy_MissingLimitScope(limitScopes.number(p.MissingLimitScope)),
		Normalization:     loadlinev1.ScorePolicy_Normalization(normalizations.number(p.Normalization)),
	}
	if p.MaxLimitRatio != nil {
		out.MaxLimitRatio = *p.MaxLimitRatio
	}
	for _, r := range p.Resources {
		out.Resources = append(out.Resources, &loadlinev1.ResourceWeight{Resource: r.Resource, Weight: r.Weight})
	}
	for _, m := range p.MissingLimits {
		out.MissingLimits = append(out.MissingLimits, &loadlinev1.MissingLimitRule{
			Pods:     loadlinev1.MissingLimitRule_Pods(limitPods.number(m.Pods)),
			Resource: m.Resource,
			Rule:     loadlinev1.MissingLimitRule_Rule(limitRules.number(m.Rule)),
			Fixed:    m.Fixed,
		})
	}
	return out
}

// FromProto returns a policy of the engine as people write it.
func FromProto(in *loadlinev1.ScorePolicy) Policy {
	p := Policy{
		Preset:            presets.word(in.GetPreset().Number()),
		Arithmetic:        arithmetics.word(in.GetArithmetic().Number()),
		PodLimits:         podLimits.word(in.GetPodLimits().Number()),
		Aggregate:         aggregates.word(in.GetAggregate().Number()),
		AbsentResource:    absentRules.word(in.GetAbsentResource().Number()),
		MissingLimitScope: limitScopes.word(in.GetMissingLimitScope().Number()),
		Normalization:     normalizations.word(in.GetNormalization().Number()),
	}
	if ratio := in.GetMaxLimitRatio(); ratio != 0 {
		p.MaxLimitRatio = &ratio
	}
	for _, r := range in.GetResources() {
		p.Resources = append(p.Resources, ResourceWeight{Resource: r.GetResource(), Weight: r.GetWeight()})
	}
	for _, m := range in.GetMissingLimits() {
		p.MissingLimits = append(p.MissingLimits, MissingLimit{
			Pods:     limitPods.word(m.GetPods().Number()),
			Resource: m.GetResource(),
			Rule:     limitRules.word(m.GetRule().Number()),
			Fixed:    m.GetFixed(),
		})
	}
	return p
}

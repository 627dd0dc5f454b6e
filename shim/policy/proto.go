package policy

import "loadline.dev/shim/api/loadlinev1"

// Proto returns the policy as the engine takes it. The policy must be valid.
func (p Policy) Proto() *loadlinev1.ScorePolicy {
	out := &loadlinev1.ScorePolicy{
		Preset:            loadlinev1.ScorePolicy_Preset(presets.Number(p.Preset)),
		Arithmetic:        loadlinev1.ScorePolicy_Arithmetic(arithmetics.Number(p.Arithmetic)),
		PodLimits:         loadlinev1.ScorePolicy_PodLimits(podLimits.Number(p.PodLimits)),
		Aggregate:         loadlinev1.ScorePolicy_Aggregate(aggregates.Number(p.Aggregate)),
		AbsentResource:    loadlinev1.ScorePolicy_AbsentResource(absentRules.Number(p.AbsentResource)),
		MissingLimitScope: loadlinev1.ScorePolicy_MissingLimitScope(limitScopes.Number(p.MissingLimitScope)),
		Normalization:     loadlinev1.ScorePolicy_Normalization(normalizations.Number(p.Normalization)),
		ExpectedUse:       p.ExpectedUse.Proto(),
		BlockersTogether:  p.BlockersTogether,
	}
	if p.MaxLimitRatio != nil {
		out.MaxLimitRatio = *p.MaxLimitRatio
	}
	for _, r := range p.Resources {
		out.Resources = append(out.Resources, &loadlinev1.ResourceWeight{Resource: r.Resource, Weight: r.Weight})
	}
	for _, m := range p.MissingLimits {
		out.MissingLimits = append(out.MissingLimits, &loadlinev1.MissingLimitRule{
			Pods:     loadlinev1.MissingLimitRule_Pods(limitPods.Number(m.Pods)),
			Resource: m.Resource,
			Rule:     loadlinev1.MissingLimitRule_Rule(limitRules.Number(m.Rule)),
			Fixed:    m.Fixed,
		})
	}
	return out
}

// FromProto returns a policy of the engine as people write it.
func FromProto(in *loadlinev1.ScorePolicy) Policy {
	p := Policy{
		Preset:            presets.Word(in.GetPreset().Number()),
		Arithmetic:        arithmetics.Word(in.GetArithmetic().Number()),
		PodLimits:         podLimits.Word(in.GetPodLimits().Number()),
		Aggregate:         aggregates.Word(in.GetAggregate().Number()),
		AbsentResource:    absentRules.Word(in.GetAbsentResource().Number()),
		MissingLimitScope: limitScopes.Word(in.GetMissingLimitScope().Number()),
		Normalization:     normalizations.Word(in.GetNormalization().Number()),
		ExpectedUse:       expectedUse(in.GetExpectedUse()),
		BlockersTogether:  in.GetBlockersTogether(),
	}
	if ratio := in.GetMaxLimitRatio(); ratio != 0 {
		p.MaxLimitRatio = &ratio
	}
	for _, r := range in.GetResources() {
		p.Resources = append(p.Resources, ResourceWeight{Resource: r.GetResource(), Weight: r.GetWeight()})
	}
	for _, m := range in.GetMissingLimits() {
		p.MissingLimits = append(p.MissingLimits, MissingLimit{
			Pods:     limitPods.Word(m.GetPods().Number()),
			Resource: m.GetResource(),
			Rule:     limitRules.Word(m.GetRule().Number()),
			Fixed:    m.GetFixed(),
		})
	}
	return p
}

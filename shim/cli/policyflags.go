package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"loadline.dev/shim/policy"
)

// policyFlags are the ways to say how to score.
type policyFlags struct {
	set           *pflag.FlagSet
	file          string
	flags         policy.Policy
	resources     []string
	missingLimits []string
	maxLimitRatio int32
}

func addPolicyFlags(flags *pflag.FlagSet) *policyFlags {
	p := &policyFlags{set: flags}
	flags.StringVar(&p.file, "policy", "", "file with a score policy, YAML or JSON; flags override what it says")
	flags.StringVar(&p.flags.Preset, "preset", "",
		`bundle of options: strict (default) or kep217, the letter of the proposal`)
	flags.StringSliceVar(&p.resources, "resources", nil,
		"resources that count, with weights of 1 to 100 (default cpu=1,memory=1)")
	flags.StringVar(&p.flags.Aggregate, "aggregate", "",
		"one number of all resources: WeightedMean, WeightedSum or Worst")
	flags.StringVar(&p.flags.Normalization, "normalization", "", "0 to 100 of raw scores: MinMax or Absolute")
	flags.StringArrayVar(&p.missingLimits, "missing-limit", nil,
		"what a pod without a limit counts as, PODS:RESOURCE=RULE: pods BestEffort or Others; rule Zero, Request, "+
			"Allocatable or Fixed:QUANTITY; may be repeated")
	flags.StringVar(&p.flags.MissingLimitScope, "missing-limit-scope", "",
		"which pods missing limits are filled in for: AllPods or IncomingPod")
	flags.Int32Var(&p.maxLimitRatio, "max-limit-ratio", 0,
		"one pod counts at most this many times the node's allocatable; -1: no bound")
	flags.StringVar(&p.flags.AbsentResource, "absent-resource", "",
		"a node that lacks a resource: Exclude or AddNothing")
	flags.StringVar(&p.flags.PodLimits, "pod-limits", "", "what counts as the limit of a pod: Effective or Proposal")
	flags.StringVar(&p.flags.Arithmetic, "arithmetic", "", "FixedPoint or Truncating")
	flags.Int32Var(&p.flags.BlockersTogether, "blockers-together", 0, "points of the raw score, 0 to 50, that a node "+
		"loses for a pod that blocks drains where no pod there does")
	return p
}

// policy returns the policy of file and flags, checked.
func (p *policyFlags) policy() (policy.Policy, error) {
	out := policy.Policy{}
	if p.file != "" {
		var err error
		if out, err = policy.Load(p.file); err != nil {
			return out, err
		}
	}
	for flag, to := range map[string]struct{ from, to *string }{
		"preset":              {&p.flags.Preset, &out.Preset},
		"aggregate":           {&p.flags.Aggregate, &out.Aggregate},
		"normalization":       {&p.flags.Normalization, &out.Normalization},
		"missing-limit-scope": {&p.flags.MissingLimitScope, &out.MissingLimitScope},
		"absent-resource":     {&p.flags.AbsentResource, &out.AbsentResource},
		"pod-limits":          {&p.flags.PodLimits, &out.PodLimits},
		"arithmetic":          {&p.flags.Arithmetic, &out.Arithmetic},
	} {
		if p.set.Changed(flag) {
			*to.to = *to.from
		}
	}
	if p.set.Changed("max-limit-ratio") {
		out.MaxLimitRatio = &p.maxLimitRatio
	}
	if p.set.Changed("blockers-together") {
		out.BlockersTogether = p.flags.BlockersTogether
	}
	if err := p.addLists(&out); err != nil {
		return out, err
	}
	out.Default()
	if err := out.Validate(); err != nil {
		return out, usageError{fmt.Errorf("score policy: %w", err)}
	}
	return out, nil
}

func (p *policyFlags) addLists(out *policy.Policy) error {
	if p.set.Changed("resources") {
		out.Resources = nil
	}
	for _, text := range p.resources {
		weight, err := parseWeight(text)
		if err != nil {
			return err
		}
		out.Resources = append(out.Resources, weight)
	}
	if p.set.Changed("missing-limit") {
		out.MissingLimits = nil
	}
	for _, text := range p.missingLimits {
		rule, err := parseMissingLimit(text)
		if err != nil {
			return err
		}
		out.MissingLimits = append(out.MissingLimits, rule)
	}
	return nil
}

// parseWeight reads NAME=WEIGHT; NAME alone has weight 1.
func parseWeight(text string) (policy.ResourceWeight, error) {
	name, number, given := strings.Cut(text, "=")
	if !given {
		return policy.ResourceWeight{Resource: name, Weight: 1}, nil
	}
	weight, err := strconv.ParseInt(number, 10, 32)
	if err != nil {
		return policy.ResourceWeight{}, usagef("--resources %q: the weight must be a whole number", text)
	}
	return policy.ResourceWeight{Resource: name, Weight: int32(weight)}, nil
}

// parseMissingLimit reads PODS:RESOURCE=RULE[:QUANTITY].
func parseMissingLimit(text string) (policy.MissingLimit, error) {
	pods, rest, ok := strings.Cut(text, ":")
	name, rule, ok2 := strings.Cut(rest, "=")
	if !ok || !ok2 {
		return policy.MissingLimit{},
			usagef("--missing-limit %q: must be PODS:RESOURCE=RULE, such as Others:memory=Request", text)
	}
	rule, fixed, _ := strings.Cut(rule, ":")
	return policy.MissingLimit{Pods: pods, Resource: name, Rule: rule, Fixed: fixed}, nil
}

package policy

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	maxResources  = 16 // what a sum of weighted scores has room for
	maxWeight     = 100
	maxLimitRatio = 1000
	noLimitRatio  = -1

	maxBlockersTogether = 50
)

// Validate returns an error that names each wrong field and its value, or nil.
func (p Policy) Validate() error {
	return p.ValidateAt(nil).ToAggregate()
}

// ValidateAt is Validate for a policy that lies at a path of a larger document.
func (p Policy) ValidateAt(path *field.Path) field.ErrorList {
	errs := presets.Check(path.Child("preset"), p.Preset)
	errs = append(errs, arithmetics.Check(path.Child("arithmetic"), p.Arithmetic)...)
	errs = append(errs, podLimits.Check(path.Child("podLimits"), p.PodLimits)...)
	errs = append(errs, aggregates.Check(path.Child("aggregate"), p.Aggregate)...)
	errs = append(errs, absentRules.Check(path.Child("absentResource"), p.AbsentResource)...)
	errs = append(errs, limitScopes.Check(path.Child("missingLimitScope"), p.MissingLimitScope)...)
	errs = append(errs, normalizations.Check(path.Child("normalization"), p.Normalization)...)
	errs = append(errs, p.ExpectedUse.validateAt(path.Child("expectedUse"))...)
	errs = append(errs, checkRatio(path.Child("maxLimitRatio"), p.MaxLimitRatio)...)
	if points := p.BlockersTogether; points < 0 || points > maxBlockersTogether {
		errs = append(errs, field.Invalid(path.Child("blockersTogether"), points,
			fmt.Sprintf("must be 0 to %d", maxBlockersTogether)))
	}
	errs = append(errs, p.checkResources(path.Child("resources"))...)
	return append(errs, p.checkMissingLimits(path.Child("missingLimits"))...)
}

func checkRatio(path *field.Path, ratio *int32) field.ErrorList {
	if ratio == nil || *ratio == noLimitRatio || (*ratio >= 1 && *ratio <= maxLimitRatio) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *ratio,
		fmt.Sprintf("must be 1 to %d, or %d for no bound", maxLimitRatio, noLimitRatio))}
}

func (p Policy) checkResources(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := len(p.Resources); n > maxResources {
		errs = append(errs, field.TooMany(path, n, maxResources))
	}
	seen := map[string]bool{}
	for i, r := range p.Resources {
		at := path.Index(i)
		errs = append(errs, checkResourceName(at.Child("resource"), r.Resource)...)
		if seen[r.Resource] {
			errs = append(errs, field.Duplicate(at.Child("resource"), r.Resource))
		}
		seen[r.Resource] = true
		if r.Weight < 1 || r.Weight > maxWeight {
			errs = append(errs, field.Invalid(at.Child("weight"), r.Weight, fmt.Sprintf("must be 1 to %d", maxWeight)))
		}
	}
	return errs
}

// checkResourceName knows the resources that a container can limit.
func checkResourceName(path *field.Path, name string) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(path, "the name of a resource")}
	case name == string(v1.ResourceCPU), name == string(v1.ResourceMemory), name == string(v1.ResourceEphemeralStorage):
		return nil
	}
	if problems := validation.IsQualifiedName(name); len(problems) > 0 {
		return field.ErrorList{field.Invalid(path, name, strings.Join(problems, "; "))}
	}
	if strings.HasPrefix(name, v1.ResourceHugePagesPrefix) || strings.Contains(name, "/") {
		return nil
	}
	return field.ErrorList{field.Invalid(path, name, "unknown resource: must be cpu, memory, ephemeral-storage, "+
		"hugepages-<size> or an extended resource such as nvidia.com/gpu")}
}

func (p Policy) checkMissingLimits(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	type key struct{ pods, resource string }
	seen := map[key]bool{}
	for i, m := range p.MissingLimits {
		at := path.Index(i)
		errs = append(errs, limitPods.Require(at.Child("pods"), m.Pods)...)
		errs = append(errs, limitRules.Require(at.Child("rule"), m.Rule)...)
		errs = append(errs, checkResourceName(at.Child("resource"), m.Resource)...)
		if !slices.ContainsFunc(p.CountedResources(), func(r ResourceWeight) bool { return r.Resource == m.Resource }) {
			errs = append(errs,
				field.Invalid(at.Child("resource"), m.Resource, "must be one of the policy's resources"))
		}
		if seen[key{m.Pods, m.Resource}] {
			errs = append(errs, field.Duplicate(at, m.Pods+" "+m.Resource))
		}
		seen[key{m.Pods, m.Resource}] = true
		errs = append(errs, m.checkFixed(at.Child("fixed"))...)
	}
	return errs
}

func (m MissingLimit) checkFixed(path *field.Path) field.ErrorList {
	if m.Rule != "Fixed" {
		if m.Fixed != "" {
			return field.ErrorList{field.Invalid(path, m.Fixed, "goes with rule Fixed only")}
		}
		return nil
	}
	if m.Fixed == "" {
		return field.ErrorList{field.Required(path, "a quantity, such as 500m or 1Gi")}
	}
	quantity, err := resource.ParseQuantity(m.Fixed)
	if err != nil {
		return field.ErrorList{field.Invalid(path, m.Fixed, err.Error())}
	}
	if quantity.Sign() < 0 {
		return field.ErrorList{field.Invalid(path, m.Fixed, "must not be negative")}
	}
	return nil
}

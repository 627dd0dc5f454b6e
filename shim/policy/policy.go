// Package policy holds the score policy as people write it, in YAML or JSON: in the arguments of the
// scheduler plugin, in the gateway's configuration and on the command line.
//
// It names the options and checks them; what they mean, and what a preset sets, the engine knows.
package policy

import (
	"fmt"
	"reflect"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"loadline.dev/shim/internal/unwrap"
)

// DefaultPreset is taken where no preset is named.
const DefaultPreset = "strict"

// DefaultResources count where a policy names none. The engine fills in the same; a test holds the two lists against
// each other.
var DefaultResources = []ResourceWeight{{Resource: "cpu", Weight: 1}, {Resource: "memory", Weight: 1}}

// Policy is a way to score. A field that is empty has the value that the preset sets.
type Policy struct {
	// Preset is a bundle of all options below: strict or kep217. Default: strict.
	Preset string `json:"preset,omitempty"`
	// Resources says what counts, each resource once, at most 16. Default: cpu 1 and memory 1.
	Resources []ResourceWeight `json:"resources,omitempty"`
	// Arithmetic is FixedPoint or Truncating. Default: that of the preset.
	Arithmetic string `json:"arithmetic,omitempty"`
	// PodLimits says what counts as the limit of a pod: Effective or Proposal. Default: that of the preset.
	PodLimits string `json:"podLimits,omitempty"`
	// MaxLimitRatio bounds what one pod counts on one node, as a multiple of the node's allocatable:
	// 1 to 1000; -1: no bound. Default: that of the preset.
	MaxLimitRatio *int32 `json:"maxLimitRatio,omitempty"`
	// Aggregate makes one number of all resources: WeightedMean, WeightedSum or Worst. Default: that of the preset.
	Aggregate string `json:"aggregate,omitempty"`
	// AbsentResource says what becomes of a node that lacks a resource: Exclude or AddNothing. Default: that of the
	// preset.
	AbsentResource string `json:"absentResource,omitempty"`
	// MissingLimitScope says which pods missingLimits hold for: AllPods or IncomingPod. Default: that of the preset.
	MissingLimitScope string `json:"missingLimitScope,omitempty"`
	// MissingLimits override the preset's rules for the pods and resources that they name. Default: none.
	MissingLimits []MissingLimit `json:"missingLimits,omitempty"`
	// Normalization makes [0, 100] of raw scores: MinMax or Absolute. Default: that of the preset.
	Normalization string `json:"normalization,omitempty"`
	// ExpectedUse has pods count as what their workload is expected to use by the hour. Default: they do not.
	ExpectedUse *ExpectedUse `json:"expectedUse,omitempty"`
	// BlockersTogether is how many points of the raw score a node loses for a pod that blocks drains where no pod there
	// does: 0 to 50. Such pods have no owner, are not to be evicted or disrupted by their annotations, or have budgets
	// that never allow an eviction. Default: 0, so that they make no difference.
	BlockersTogether int32 `json:"blockersTogether,omitempty"`
}

// ResourceWeight is a resource that counts.
type ResourceWeight struct {
	// Resource is cpu, memory, ephemeral-storage, hugepages-* or an extended resource. Required.
	Resource string `json:"resource"`
	// Weight is 1 to 100. Required.
	Weight int32 `json:"weight"`
}

// MissingLimit says what a pod without a limit for a resource counts as.
type MissingLimit struct {
	// Pods is BestEffort or Others. Required.
	Pods string `json:"pods"`
	// Resource is one of the policy's resources. Required.
	Resource string `json:"resource"`
	// Rule is Zero, Request, Allocatable or Fixed. Required.
	Rule string `json:"rule"`
	// Fixed is the amount of rule Fixed, such as "500m" or "1Gi"; required there. Default: none.
	Fixed string `json:"fixed,omitempty"`
}

// Default names the default preset where none is named.
func (p *Policy) Default() {
	if p.Preset == "" {
		p.Preset = DefaultPreset
	}
}

// CountedResources returns the resources that the policy counts.
func (p Policy) CountedResources() []ResourceWeight {
	if len(p.Resources) == 0 {
		return DefaultResources
	}
	return p.Resources
}

// Load reads a policy from a YAML or JSON file, fills in the default and checks it.
func Load(file string) (Policy, error) {
	data, err := unwrap.File(file, unwrap.MostBytes)
	if err != nil {
		return Policy{}, err
	}
	p, err := Parse(data)
	if err != nil {
		return Policy{}, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

// Parse reads a policy from YAML or JSON, fills in the default and checks it.
func Parse(data []byte) (Policy, error) {
	var p Policy
	if err := DecodeStrict(data, &p); err != nil {
		return Policy{}, err
	}
	p.Default()
	if err := p.Validate(); err != nil {
		return Policy{}, err
	}
	return p, nil
}

// DecodeStrict decodes YAML or JSON into a struct. Field names match by letter case; an unknown field and a
// repeated one are errors that name it, and so is a second document.
func DecodeStrict(data []byte, into any) error {
	document, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return err
	}
	if err := OneDocument(data); err != nil {
		return err
	}
	strict, err := kjson.UnmarshalStrict(document, into)
	if err != nil {
		return readable(err, document, reflect.TypeOf(into))
	}
	return utilerrors.NewAggregate(strict)
}

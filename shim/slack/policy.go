package slack

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/api/resource"

	"loadline.dev/shim/api/loadlinev1"
)

// Policy says how much room is kept free, as people write it. The tag `json` is the key of a field in the autoscaler's
// configuration, and `range` what it may be there. ParseClassRule and ParseGroupRule read Classes and Groups.
type Policy struct {
	ExtraCapacityMinRate  Share    `json:"extraCapacityMinRate" flag:"extra-capacity-min-rate" help:"room to keep free at least, such as 10% or 0.1"`
	Basis                 string   `json:"basis" flag:"slack-basis" help:"what that is a share of: requested, capacity"`
	Version               string   `json:"version" flag:"slack-version" help:"what is kept free beside equal pieces: 1 (nothing), 2a, 2b, pareto"`
	Granularity           int      `json:"granularity" flag:"slack-granularity" range:"1:1000" help:"a piece of slack is at most this part of a node: 1/N, N from 1 to 1000"`
	MaxPlaceholders       int      `json:"maxPlaceholders" flag:"max-placeholders" range:"1:100000" help:"pieces of a class, and copies of a pod, at most"`
	BoundByPods           string   `json:"boundByPods" flag:"slack-bound-by-pods" help:"pieces are no larger than the largest requests of pods of their class: true, false, or auto (where room is kept for the biggest)"`
	MaxExtraCPU           string   `json:"maxExtraCPU" flag:"slack-max-extra-cpu" help:"cpu of a class that is kept free at most, such as 64 (default: no limit)"`
	MaxExtraMemory        string   `json:"maxExtraMemory" flag:"slack-max-extra-memory" help:"memory of a class that is kept free at most, such as 256Gi (default: no limit)"`
	SizeTolerance         Share    `json:"sizeTolerance" flag:"slack-size-tolerance" help:"pieces get a new size when they exceed what is wanted by this share"`
	ClassLabels           []string `json:"classLabels" flag:"slack-class-labels" help:"labels of nodes that tell classes apart (default: architecture, operating system, instance type and zone)"`
	Classes               []string `json:"classes" flag:"slack-class" range:":1000" help:"what holds for some nodes, first match first: labels, then off, max-cpu or max-memory, such as \"disk=ssd;off\" or \"disk=ssd;max-cpu=64\""`
	Groups                []string `json:"groups" flag:"slack-group" range:":1000" help:"what holds for a node group: \"GROUP;off\", or \"GROUP;max-nodes=5\" for nodes that it has at most when it grows for slack"`
	BuyExtendedResources  bool     `json:"buyExtendedResources" flag:"slack-buy-extended-resources" help:"nodes with GPUs and other extended resources come also for pieces that need none of them"`
	CommonResources       []string `json:"commonResources" flag:"slack-common-resources" range:":1000" help:"names of extended resources that nodes of any kind have, or what they begin with (default: those of some network and device plugins)"`
	MaxCopies             int      `json:"maxCopies" flag:"slack-max-copies" range:"1:100000" help:"copies of all pods together at most"`
	MaxCopiesPerNamespace int      `json:"maxCopiesPerNamespace" flag:"slack-max-copies-per-namespace" range:"1:100000" help:"copies of the pods of one namespace at most"`
	MaxCopiesCPU          string   `json:"maxCopiesCPU" flag:"slack-max-copies-cpu" help:"cpu that the copies of one namespace request at most"`
	MaxCopiesMemory       string   `json:"maxCopiesMemory" flag:"slack-max-copies-memory" help:"memory that the copies of one namespace request at most"`
}

// Share is a number or a percentage: in a file 0.1, "0.1" or 10%.
type Share string

// UnmarshalJSON reads a number or a text.
func (s *Share) UnmarshalJSON(data []byte) error {
	if len(data) > 1 && data[0] == '"' {
		data = data[1 : len(data)-1]
	}
	*s = Share(data)
	return nil
}

// Set, String and Type make it a flag.
func (s *Share) Set(text string) error { *s = Share(text); return nil }

// String returns it as it was written.
func (s *Share) String() string { return string(*s) }

// Type names what the flag takes.
func (s *Share) Type() string { return "share" }

// DefaultPolicy is version 1 of the proposal with a tenth of what pods request.
func DefaultPolicy() Policy {
	return Policy{ExtraCapacityMinRate: "10%", Basis: "requested", Version: "1", Granularity: 5, MaxPlaceholders: 10000,
		BoundByPods: "auto", SizeTolerance: "25%",
		MaxCopies: 10000, MaxCopiesPerNamespace: 1000, MaxCopiesCPU: "64", MaxCopiesMemory: "256Gi"}
}

var (
	bases = map[string]loadlinev1.SlackPolicy_Basis{"requested": loadlinev1.SlackPolicy_REQUESTED,
		"capacity": loadlinev1.SlackPolicy_CAPACITY}
	versions = map[string]loadlinev1.SlackPolicy_Reserve{"1": loadlinev1.SlackPolicy_NONE,
		"2a": loadlinev1.SlackPolicy_BIGGEST,
		"2b": loadlinev1.SlackPolicy_HULL, "pareto": loadlinev1.SlackPolicy_PARETO}
)

// Bases returns the words for what room is measured by, Versions those for the versions of the proposal, by name.
func Bases() []string    { return slices.Sorted(maps.Keys(bases)) }
func Versions() []string { return slices.Sorted(maps.Keys(versions)) }

// Proto returns the policy as the engine takes it, which knows how large numbers may be. An error begins with the key
// of the field.
func (p *Policy) Proto() (*loadlinev1.SlackPolicy, error) {
	rate, err := parseShare(p.ExtraCapacityMinRate)
	if err != nil {
		return nil, fmt.Errorf("extraCapacityMinRate: %q must be a number such as 0.1, or a percentage such "+
			"as 10%%", p.ExtraCapacityMinRate)
	}
	policy := &loadlinev1.SlackPolicy{ExtraCapacityMinRate: proto.Float64(rate), Granularity: int32(p.Granularity),
		MaxPlaceholders: int32(p.MaxPlaceholders)}
	var known bool
	if policy.Basis, known = bases[p.Basis]; !known {
		return nil, fmt.Errorf("basis: %q must be requested or capacity", p.Basis)
	}
	if policy.Reserve, known = versions[p.Version]; !known {
		return nil, fmt.Errorf("version: %q must be 1, 2a, 2b or pareto", p.Version)
	}
	if p.Granularity < 1 || p.Granularity > math.MaxInt32 || p.MaxPlaceholders < 1 ||
		p.MaxPlaceholders > math.MaxInt32 {
		return nil, fmt.Errorf("granularity: %d, and maxPlaceholders: %d must be at least 1",
			p.Granularity, p.MaxPlaceholders)
	}
	return policy, p.limits(policy)
}

// limits adds what bounds the room that is kept.
func (p *Policy) limits(policy *loadlinev1.SlackPolicy) error {
	switch p.BoundByPods {
	case "true", "false":
		policy.BoundByPods = proto.Bool(p.BoundByPods == "true")
	case "", "auto":
	default:
		return fmt.Errorf("boundByPods: %q must be true, false or auto", p.BoundByPods)
	}
	tolerance, err := parseShare(cmp.Or(p.SizeTolerance, "25%"))
	if err != nil {
		return fmt.Errorf("sizeTolerance: %q must be a number such as 0.25, or a percentage such as 25%%",
			p.SizeTolerance)
	}
	policy.SizeTolerance = proto.Float64(tolerance)
	if p.MaxCopies < 1 || p.MaxCopies > math.MaxInt32 || p.MaxCopiesPerNamespace < 1 ||
		p.MaxCopiesPerNamespace > math.MaxInt32 {
		return fmt.Errorf("maxCopies: %d, and maxCopiesPerNamespace: %d must be at least 1",
			p.MaxCopies, p.MaxCopiesPerNamespace)
	}
	policy.MaxCopies, policy.MaxCopiesPerNamespace = int32(p.MaxCopies), int32(p.MaxCopiesPerNamespace)
	for _, amount := range []struct {
		key, text string
		cpu       bool
		to        **int64
	}{{"maxExtraCPU", p.MaxExtraCPU, true, &policy.MaxExtraMilliCpu},
		{"maxExtraMemory", p.MaxExtraMemory, false, &policy.MaxExtraMemoryBytes},
		{"maxCopiesCPU", p.MaxCopiesCPU, true, &policy.MaxCopiesMilliCpuPerNamespace},
		{"maxCopiesMemory", p.MaxCopiesMemory, false, &policy.MaxCopiesMemoryBytesPerNamespace}} {
		if *amount.to, err = parseAmount(amount.text, amount.cpu); err != nil {
			return fmt.Errorf("%s: %q %w", amount.key, amount.text, err)
		}
	}
	policy.ClassLabels, policy.BuyExtendedResources, policy.CommonResources = p.ClassLabels, p.BuyExtendedResources,
		p.CommonResources
	for _, text := range p.Classes {
		rule, err := ParseClassRule(text)
		if err != nil {
			return fmt.Errorf("classes: %q: %w", text, err)
		}
		policy.ClassRules = append(policy.ClassRules, rule)
	}
	for _, text := range p.Groups {
		rule, err := ParseGroupRule(text)
		if err != nil {
			return fmt.Errorf("groups: %q: %w", text, err)
		}
		policy.GroupRules = append(policy.GroupRules, rule)
	}
	return nil
}

// parseAmount reads cores as millicores, and bytes; nil for an empty text.
func parseAmount(text string, cpu bool) (*int64, error) {
	if text == "" {
		return nil, nil
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil || quantity.Sign() < 0 {
		return nil, errors.New("must be an amount such as 64 or 256Gi")
	}
	if cpu {
		return proto.Int64(quantity.MilliValue()), nil
	}
	return proto.Int64(quantity.Value()), nil
}

// ParseClassRule reads a rule such as "topology.kubernetes.io/zone=a;node.kubernetes.io/instance-type=m5.large;off" or
// "disk=ssd;max-cpu=64;max-memory=256Gi": labels that nodes of the class have all, and what holds for them.
// "class=NAME" names a class as plans do.
func ParseClassRule(text string) (*loadlinev1.SlackClassRule, error) {
	rule, says := &loadlinev1.SlackClassRule{}, false
	for part := range strings.SplitSeq(text, ";") {
		key, value, ok := strings.Cut(part, "=")
		var err error
		switch {
		case part == "off":
			rule.Off, says = true, true
		case !ok || key == "" || value == "":
			return nil, fmt.Errorf("%q must be off, or a key and a value", part)
		case key == "class":
			// The name of a class is made of such pairs itself.
			rule.ClassName = value
		case key == "max-cpu":
			rule.MaxExtraMilliCpu, err = parseAmount(value, true)
			says = true
		case key == "max-memory":
			rule.MaxExtraMemoryBytes, err = parseAmount(value, false)
			says = true
		default:
			rule.Labels = append(rule.Labels, &loadlinev1.ClassSlack_NodeLabel{Key: key, Value: value})
		}
		if err != nil {
			return nil, fmt.Errorf("%q %w", part, err)
		}
	}
	if !says {
		return nil, errors.New("says neither off nor max-cpu or max-memory")
	}
	return rule, nil
}

// ParseGroupRule reads "GROUP;off" or "GROUP;max-nodes=5": no node of the group is added for room that is kept free, or
// only until it has so many.
func ParseGroupRule(text string) (*loadlinev1.SlackGroupRule, error) {
	group, says, _ := strings.Cut(text, ";")
	rule := &loadlinev1.SlackGroupRule{NodeGroup: group}
	switch most, limited := strings.CutPrefix(says, "max-nodes="); {
	case group == "":
		return nil, errors.New("names no node group")
	case says == "off":
		rule.Off = true
	case limited:
		nodes, err := strconv.ParseInt(most, 10, 32)
		if err != nil || nodes < 0 {
			return nil, fmt.Errorf("%q is no number of nodes", most)
		}
		rule.MaxNodes = proto.Int32(int32(nodes))
	default:
		return nil, errors.New("must say off or max-nodes=N after the group and a semicolon")
	}
	return rule, nil
}

// parseShare reads 0.1 or 10%.
func parseShare(share Share) (float64, error) {
	percent, isPercent := strings.CutSuffix(string(share), "%")
	value, err := strconv.ParseFloat(percent, 64)
	if isPercent {
		value /= 100
	}
	return value, err
}

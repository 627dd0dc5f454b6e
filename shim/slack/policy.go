package slack

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/api/resource"

	"loadline.dev/shim/api/loadlinev1"
)

// Policy says how much room is kept free, as people write it.
type Policy struct {
	// Rate is the share to keep free: "10%" or "0.1".
	Rate string
	// Basis is what that is a share of: requested or capacity.
	Basis string
	// Version is what is kept beside equal pieces: 1, 2a, 2b or pareto.
	Version string
	// Granularity: a piece is at most one part in so many of a node.
	Granularity int
	// MaxPlaceholders of a class, and copies of a pod.
	MaxPlaceholders int
	// BoundByPods: pieces are no larger than pods of their class: true, false, or auto where room is kept for the
	// biggest.
	BoundByPods string
	// MaxExtraCPU and MaxExtraMemory bound the room of a class, such as 64 and 256Gi; empty: they do not.
	MaxExtraCPU, MaxExtraMemory string
	// SizeTolerance is the share by which pieces may exceed what is wanted before they get a new size.
	SizeTolerance string
	// ClassLabels tell classes apart; none: architecture, operating system, instance type and zone.
	ClassLabels []string
	// Classes and Groups are rules, see ParseClassRule and ParseGroupRule.
	Classes, Groups []string
	// BuyExtendedResources: nodes with GPUs and the like come also for pieces that need none of them.
	BuyExtendedResources bool
	// CommonResources are names, or prefixes of names, of extended resources that do not count as such; none: the
	// engine's defaults.
	CommonResources []string
	// MaxCopies of all pods together, and of those of one namespace.
	MaxCopies, MaxCopiesPerNamespace int
	// MaxCopiesCPU and MaxCopiesMemory bound what the copies of one namespace request together.
	MaxCopiesCPU, MaxCopiesMemory string
}

// DefaultPolicy is version 1 of the proposal with a tenth of what pods request.
func DefaultPolicy() Policy {
	return Policy{Rate: "10%", Basis: "requested", Version: "1", Granularity: 5, MaxPlaceholders: 10000,
		BoundByPods: "auto", SizeTolerance: "25%",
		MaxCopies: 10000, MaxCopiesPerNamespace: 1000, MaxCopiesCPU: "64", MaxCopiesMemory: "256Gi"}
}

// Help of the flags.
const (
	BoundByPodsHelp = "pieces are no larger than the largest requests of pods of their class: true, false, " +
		"or auto (where room is kept for the biggest)"
	MaxExtraCPUHelp    = "cpu of a class that is kept free at most, such as 64 (default: no limit)"
	MaxExtraMemoryHelp = "memory of a class that is kept free at most, such as 256Gi (default: no limit)"
	SizeToleranceHelp  = "pieces get a new size when they exceed what is wanted by this share"
	ClassLabelsHelp    = "labels of nodes that tell classes apart (default: architecture, operating system, " +
		"instance type and zone)"
	ClassHelp = `what holds for some nodes, first match first: labels, then off, max-cpu or max-memory, ` +
		`such as "disk=ssd;off" or "disk=ssd;max-cpu=64"`
	GroupHelp = `what holds for a node group: "GROUP;off", or "GROUP;max-nodes=5" for nodes that it has at most ` +
		`when it grows for slack`
	BuyExtendedResourcesHelp = "nodes with GPUs and other extended resources come also for pieces that need none " +
		"of them"
	CommonResourcesHelp = "names of extended resources that nodes of any kind have, or what they begin with " +
		"(default: those of some network and device plugins)"
	MaxCopiesHelp             = "copies of all pods together at most"
	MaxCopiesPerNamespaceHelp = "copies of the pods of one namespace at most"
	MaxCopiesCPUHelp          = "cpu that the copies of one namespace request at most"
	MaxCopiesMemoryHelp       = "memory that the copies of one namespace request at most"
)

var (
	bases = map[string]loadlinev1.SlackPolicy_Basis{"requested": loadlinev1.SlackPolicy_REQUESTED,
		"capacity": loadlinev1.SlackPolicy_CAPACITY}
	versions = map[string]loadlinev1.SlackPolicy_Reserve{"1": loadlinev1.SlackPolicy_NONE,
		"2a": loadlinev1.SlackPolicy_BIGGEST,
		"2b": loadlinev1.SlackPolicy_HULL, "pareto": loadlinev1.SlackPolicy_PARETO}
)

// Proto returns the policy as the engine takes it, which knows how large numbers may be. An error names the flag.
func (p *Policy) Proto() (*loadlinev1.SlackPolicy, error) {
	rate, err := parseShare(p.Rate)
	if err != nil {
		return nil, fmt.Errorf("--extra-capacity-min-rate %q: must be a number such as 0.1, or a percentage such "+
			"as 10%%", p.Rate)
	}
	policy := &loadlinev1.SlackPolicy{ExtraCapacityMinRate: proto.Float64(rate), Granularity: int32(p.Granularity),
		MaxPlaceholders: int32(p.MaxPlaceholders)}
	var known bool
	if policy.Basis, known = bases[p.Basis]; !known {
		return nil, fmt.Errorf("--slack-basis %q: must be requested or capacity", p.Basis)
	}
	if policy.Reserve, known = versions[p.Version]; !known {
		return nil, fmt.Errorf("--slack-version %q: must be 1, 2a, 2b or pareto", p.Version)
	}
	if p.Granularity < 1 || p.Granularity > math.MaxInt32 || p.MaxPlaceholders < 1 ||
		p.MaxPlaceholders > math.MaxInt32 {
		return nil, fmt.Errorf("--slack-granularity %d, --max-placeholders %d: must be at least 1",
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
		return fmt.Errorf("--slack-bound-by-pods %q: must be true, false or auto", p.BoundByPods)
	}
	tolerance, err := parseShare(cmp.Or(p.SizeTolerance, "25%"))
	if err != nil {
		return fmt.Errorf("--slack-size-tolerance %q: must be a number such as 0.25, or a percentage such as 25%%",
			p.SizeTolerance)
	}
	policy.SizeTolerance = proto.Float64(tolerance)
	if p.MaxCopies < 1 || p.MaxCopies > math.MaxInt32 || p.MaxCopiesPerNamespace < 1 ||
		p.MaxCopiesPerNamespace > math.MaxInt32 {
		return fmt.Errorf("--slack-max-copies %d, --slack-max-copies-per-namespace %d: must be at least 1",
			p.MaxCopies, p.MaxCopiesPerNamespace)
	}
	policy.MaxCopies, policy.MaxCopiesPerNamespace = int32(p.MaxCopies), int32(p.MaxCopiesPerNamespace)
	for _, amount := range []struct {
		flag, text string
		cpu        bool
		to         **int64
	}{{"slack-max-extra-cpu", p.MaxExtraCPU, true, &policy.MaxExtraMilliCpu},
		{"slack-max-extra-memory", p.MaxExtraMemory, false, &policy.MaxExtraMemoryBytes},
		{"slack-max-copies-cpu", p.MaxCopiesCPU, true, &policy.MaxCopiesMilliCpuPerNamespace},
		{"slack-max-copies-memory", p.MaxCopiesMemory, false, &policy.MaxCopiesMemoryBytesPerNamespace}} {
		if *amount.to, err = parseAmount(amount.text, amount.cpu); err != nil {
			return fmt.Errorf("--%s %q: %w", amount.flag, amount.text, err)
		}
	}
	policy.ClassLabels, policy.BuyExtendedResources, policy.CommonResources = p.ClassLabels, p.BuyExtendedResources,
		p.CommonResources
	for _, text := range p.Classes {
		rule, err := ParseClassRule(text)
		if err != nil {
			return fmt.Errorf("--slack-class %q: %w", text, err)
		}
		policy.ClassRules = append(policy.ClassRules, rule)
	}
	for _, text := range p.Groups {
		rule, err := ParseGroupRule(text)
		if err != nil {
			return fmt.Errorf("--slack-group %q: %w", text, err)
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

// ParseGroupRule reads "GROUP;off" or "GROUP;max-nodes=5": no node of the group comes for room that is kept free, or
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

// AddFlags adds a flag for each field.
func (p *Policy) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&p.Rate, "extra-capacity-min-rate", p.Rate, "room to keep free at least, such as 10% or 0.1")
	flags.StringVar(&p.Basis, "slack-basis", p.Basis, "what that is a share of: requested, capacity")
	flags.StringVar(&p.Version, "slack-version", p.Version,
		"what is kept free beside equal pieces: 1 (nothing), 2a, 2b, pareto")
	flags.IntVar(&p.Granularity, "slack-granularity", p.Granularity,
		"a piece is at most one part in so many of a node, 1 to 1000")
	flags.IntVar(&p.MaxPlaceholders, "max-placeholders", p.MaxPlaceholders,
		"pieces of a class, and copies of a pod, at most")
	flags.StringVar(&p.BoundByPods, "slack-bound-by-pods", p.BoundByPods, BoundByPodsHelp)
	flags.StringVar(&p.MaxExtraCPU, "slack-max-extra-cpu", p.MaxExtraCPU, MaxExtraCPUHelp)
	flags.StringVar(&p.MaxExtraMemory, "slack-max-extra-memory", p.MaxExtraMemory, MaxExtraMemoryHelp)
	flags.StringVar(&p.SizeTolerance, "slack-size-tolerance", p.SizeTolerance, SizeToleranceHelp)
	flags.StringSliceVar(&p.ClassLabels, "slack-class-labels", p.ClassLabels, ClassLabelsHelp)
	flags.StringSliceVar(&p.Classes, "slack-class", p.Classes, ClassHelp)
	flags.StringSliceVar(&p.Groups, "slack-group", p.Groups, GroupHelp)
	flags.BoolVar(&p.BuyExtendedResources, "slack-buy-extended-resources",
		p.BuyExtendedResources, BuyExtendedResourcesHelp)
	flags.StringSliceVar(&p.CommonResources, "slack-common-resources", p.CommonResources, CommonResourcesHelp)
	flags.IntVar(&p.MaxCopies, "slack-max-copies", p.MaxCopies, MaxCopiesHelp)
	flags.IntVar(&p.MaxCopiesPerNamespace, "slack-max-copies-per-namespace", p.MaxCopiesPerNamespace,
		MaxCopiesPerNamespaceHelp)
	flags.StringVar(&p.MaxCopiesCPU, "slack-max-copies-cpu", p.MaxCopiesCPU, MaxCopiesCPUHelp)
	flags.StringVar(&p.MaxCopiesMemory, "slack-max-copies-memory", p.MaxCopiesMemory, MaxCopiesMemoryHelp)
}

// parseShare reads 0.1 or 10%.
func parseShare(text string) (float64, error) {
	percent, isPercent := strings.CutSuffix(text, "%")
	value, err := strconv.ParseFloat(percent, 64)
	if isPercent {
		value /= 100
	}
	return value, err
}

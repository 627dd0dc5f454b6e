package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"loadline.dev/shim/api/loadlinev1"
)

// Line is the load line as people write it: how far above its allocatable the limits of the pods of a node may add
// up. It is off unless a resource has one.
type Line struct {
	// MaxLimitsOverAllocatable holds the line of each resource that has one: cpu, memory or ephemeral-storage. A node
	// takes no pod that would lift the sum of limits over allocatable above it; 0.1 to 1000, at most 3 decimals.
	// Default: none, so that there is no load line.
	MaxLimitsOverAllocatable map[string]Ratio `json:"maxLimitsOverAllocatable,omitempty"`
	// MaxExpectedOverAllocatable holds a second line of each resource that has one, likewise: for what the pods of a node
	// are expected to use in any hour, over allocatable. It takes expectedUse On. Both lines hold. Default: none.
	MaxExpectedOverAllocatable map[string]Ratio `json:"maxExpectedOverAllocatable,omitempty"`
	// LineNodeLabelPrefix lets nodes have lines of their own, by labels such as PREFIX/memory: "2.5". Default: none.
	LineNodeLabelPrefix string `json:"lineNodeLabelPrefix,omitempty"`
	// LineExemptNamespaces are those whose pods go where they want. They count for others. Default: none.
	LineExemptNamespaces []string `json:"lineExemptNamespaces,omitempty"`
}

// Ratio is a decimal, written as a number or as text, and kept as it is written.
type Ratio string

// UnmarshalJSON reads a number or a text.
func (r *Ratio) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		return json.Unmarshal(data, (*string)(r))
	}
	var number json.Number
	if err := json.Unmarshal(data, &number); err != nil {
		return errors.New("must be a number")
	}
	*r = Ratio(number)
	return nil
}

var (
	lineResources = []string{"cpu", "ephemeral-storage", "memory"}
	decimal       = regexp.MustCompile(`^[0-9]{1,4}(\.[0-9]{1,3})?$`)
)

const (
	minRatio, maxRatio  = 0.1, 1000
	maxExemptNamespaces = 1000
)

// ReadLine returns the line of entries such as cpu=3 and memory=1.5. An error begins with the name of the first wrong
// field.
func ReadLine(entries []string, labelPrefix string, exempt []string) (Line, error) {
	line := Line{LineNodeLabelPrefix: labelPrefix, LineExemptNamespaces: exempt}
	for _, entry := range entries {
		resource, ratio, ok := strings.Cut(entry, "=")
		if _, twice := line.MaxLimitsOverAllocatable[resource]; !ok || twice {
			return line, fmt.Errorf("maxLimitsOverAllocatable: %q must be RESOURCE=RATIO, each resource once", entry)
		}
		if line.MaxLimitsOverAllocatable == nil {
			line.MaxLimitsOverAllocatable = map[string]Ratio{}
		}
		line.MaxLimitsOverAllocatable[resource] = Ratio(ratio)
	}
	if errs := line.ValidateAt(nil); len(errs) > 0 {
		return line, errs[0]
	}
	return line, nil
}

// On says whether there is a load line.
func (l Line) On() bool { return len(l.MaxLimitsOverAllocatable)+len(l.MaxExpectedOverAllocatable) > 0 }

// ValidateAt returns an error for each wrong field, of a line that lies at a path of a larger document.
func (l Line) ValidateAt(path *field.Path) field.ErrorList {
	at := path.Child("maxLimitsOverAllocatable")
	errs := append(checkRatios(at, l.MaxLimitsOverAllocatable),
		checkRatios(path.Child("maxExpectedOverAllocatable"), l.MaxExpectedOverAllocatable)...)
	if l.LineNodeLabelPrefix != "" {
		for _, problem := range validation.IsDNS1123Subdomain(l.LineNodeLabelPrefix) {
			errs = append(errs, field.Invalid(path.Child("lineNodeLabelPrefix"), l.LineNodeLabelPrefix, problem))
		}
	}
	if len(l.LineExemptNamespaces) > maxExemptNamespaces {
		errs = append(errs, field.TooMany(path.Child("lineExemptNamespaces"), len(l.LineExemptNamespaces),
			maxExemptNamespaces))
	}
	for i, name := range l.LineExemptNamespaces {
		for _, problem := range validation.IsDNS1123Label(name) {
			errs = append(errs, field.Invalid(path.Child("lineExemptNamespaces").Index(i), name, problem))
		}
	}
	if !l.On() && (l.LineNodeLabelPrefix != "" || len(l.LineExemptNamespaces) > 0) {
		errs = append(errs, field.Required(at, "a label prefix or exempt namespaces without a line do nothing"))
	}
	return errs
}

// checkRatios returns an error for each wrong line of a resource.
func checkRatios(at *field.Path, lines map[string]Ratio) field.ErrorList {
	var errs field.ErrorList
	for _, resource := range slices.Sorted(maps.Keys(lines)) {
		if !slices.Contains(lineResources, resource) {
			errs = append(errs, field.NotSupported(at.Key(resource), resource, lineResources))
		}
		ratio := string(lines[resource])
		value, err := strconv.ParseFloat(ratio, 64)
		if !decimal.MatchString(ratio) || err != nil || value < minRatio || value > maxRatio {
			errs = append(errs, field.Invalid(at.Key(resource), ratio,
				fmt.Sprintf("must be a decimal of at most 3 places in [%v, %v]", minRatio, maxRatio)))
		}
	}
	return errs
}

// CheckCounting returns an error where a policy cannot say how limits are counted under the line: a pod would count
// as something else once it is placed.
func (l Line) CheckCounting(by Policy) error {
	if !l.On() {
		return nil
	}
	if len(l.MaxExpectedOverAllocatable) > 0 && !by.ExpectedUse.On() {
		return fmt.Errorf("maxExpectedOverAllocatable: takes expectedUse with mode On")
	}
	if by.Preset == "kep217" || by.PodLimits == "Proposal" || by.MissingLimitScope == "IncomingPod" {
		return fmt.Errorf("maxLimitsOverAllocatable: a load line counts the effective limits of all pods alike: " +
			"neither preset kep217 nor podLimits Proposal nor missingLimitScope IncomingPod goes with it")
	}
	return nil
}

// Proto returns the line as the engine takes it; nil: there is none. Limits are counted by the policy; nil: strict.
func (l Line) Proto(by *loadlinev1.ScorePolicy) *loadlinev1.LoadLine {
	if !l.On() {
		return nil
	}
	out := &loadlinev1.LoadLine{Counting: by, NodeLabelPrefix: l.LineNodeLabelPrefix,
		ExemptNamespaces: l.LineExemptNamespaces}
	if len(l.MaxExpectedOverAllocatable) > 0 {
		out.ExpectedUse = by.GetExpectedUse()
	}
	for _, resource := range lineResources {
		limits, expected := l.MaxLimitsOverAllocatable[resource], l.MaxExpectedOverAllocatable[resource]
		if limits != "" || expected != "" {
			out.Resources = append(out.Resources, &loadlinev1.LineResource{Resource: resource,
				MaxLimitsOverAllocatable: string(limits), MaxExpectedOverAllocatable: string(expected)})
		}
	}
	return out
}

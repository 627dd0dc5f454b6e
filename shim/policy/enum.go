package policy

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"loadline.dev/shim/api/loadlinev1"
)

// Choice is one option whose values are those of an enum of the API. Deriving the words from the enum keeps
// the two from parting.
type Choice struct {
	spell  func(name string) string
	values protoreflect.EnumValueDescriptors
}

var (
	presets        = NewChoice(loadlinev1.ScorePolicy_PRESET_UNSPECIFIED, strings.ToLower)
	arithmetics    = NewChoice(loadlinev1.ScorePolicy_ARITHMETIC_UNSPECIFIED, camelCase)
	podLimits      = NewChoice(loadlinev1.ScorePolicy_POD_LIMITS_UNSPECIFIED, camelCase)
	aggregates     = NewChoice(loadlinev1.ScorePolicy_AGGREGATE_UNSPECIFIED, camelCase)
	absentRules    = NewChoice(loadlinev1.ScorePolicy_ABSENT_RESOURCE_UNSPECIFIED, camelCase)
	limitScopes    = NewChoice(loadlinev1.ScorePolicy_MISSING_LIMIT_SCOPE_UNSPECIFIED, camelCase)
	normalizations = NewChoice(loadlinev1.ScorePolicy_NORMALIZATION_UNSPECIFIED, camelCase)
	limitRules     = NewChoice(loadlinev1.MissingLimitRule_RULE_UNSPECIFIED, camelCase)
	limitPods      = NewChoice(loadlinev1.MissingLimitRule_PODS_UNSPECIFIED, camelCase)
)

// NewChoice returns the choice among the values of the enum that `unspecified` belongs to. `spell` makes a word of the
// name of a value.
func NewChoice(unspecified protoreflect.Enum, spell func(string) string) Choice {
	return Choice{spell: spell, values: unspecified.Descriptor().Values()}
}

// camelCase makes WeightedMean of WEIGHTED_MEAN.
func camelCase(name string) string {
	var out strings.Builder
	for _, word := range strings.Split(name, "_") {
		out.WriteString(word[:1])
		out.WriteString(strings.ToLower(word[1:]))
	}
	return out.String()
}

// Number returns the enum value of a word: 0, which is UNSPECIFIED, when empty or unknown.
func (c Choice) Number(word string) protoreflect.EnumNumber {
	for i := 1; i < c.values.Len(); i++ {
		if c.spell(string(c.values.Get(i).Name())) == word {
			return c.values.Get(i).Number()
		}
	}
	return 0
}

// Word returns the word of an enum value: empty for UNSPECIFIED and for unknown values.
func (c Choice) Word(number protoreflect.EnumNumber) string {
	value := c.values.ByNumber(number)
	if number == 0 || value == nil {
		return ""
	}
	return c.spell(string(value.Name()))
}

// Words lists all values, in the order of the API.
func (c Choice) Words() []string {
	var out []string
	for i := 1; i < c.values.Len(); i++ {
		out = append(out, c.spell(string(c.values.Get(i).Name())))
	}
	return out
}

// Check says whether a word is a value of the option; empty is the preset's business.
func (c Choice) Check(path *field.Path, word string) field.ErrorList {
	if word == "" || c.Number(word) != 0 {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, word, c.Words())}
}

// Require is Check for an option that no preset sets.
func (c Choice) Require(path *field.Path, word string) field.ErrorList {
	if word == "" {
		return field.ErrorList{field.Required(path, "one of "+strings.Join(c.Words(), ", "))}
	}
	return c.Check(path, word)
}

package policy

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"loadline.dev/shim/api/loadlinev1"
)

// choice is one option whose values are those of an enum of the API. Deriving the words from the enum keeps
// the two from parting.
type choice struct {
	spell  func(name string) string
	values protoreflect.EnumValueDescriptors
}

var (
	presets        = newChoice(loadlinev1.ScorePolicy_PRESET_UNSPECIFIED, strings.ToLower)
	arithmetics    = newChoice(loadlinev1.ScorePolicy_ARITHMETIC_UNSPECIFIED, camelCase)
	podLimits      = newChoice(loadlinev1.ScorePolicy_POD_LIMITS_UNSPECIFIED, camelCase)
	aggregates     = newChoice(loadlinev1.ScorePolicy_AGGREGATE_UNSPECIFIED, camelCase)
	absentRules    = newChoice(loadlinev1.ScorePolicy_ABSENT_RESOURCE_UNSPECIFIED, camelCase)
	limitScopes    = newChoice(loadlinev1.ScorePolicy_MISSING_LIMIT_SCOPE_UNSPECIFIED, camelCase)
	normalizations = newChoice(loadlinev1.ScorePolicy_NORMALIZATION_UNSPECIFIED, camelCase)
	limitRules     = newChoice(loadlinev1.MissingLimitRule_RULE_UNSPECIFIED, camelCase)
	limitPods      = newChoice(loadlinev1.MissingLimitRule_PODS_UNSPECIFIED, camelCase)
)

func newChoice(unspecified protoreflect.Enum, spell func(string) string) choice {
	return choice{spell: spell, values: unspecified.Descriptor().Values()}
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

// number returns the enum value of a word: 0, which is UNSPECIFIED, when empty or unknown.
func (c choice) number(word string) protoreflect.EnumNumber {
	for i := 1; i < c.values.Len(); i++ {
		if c.spell(string(c.values.Get(i).Name())) == word {
			return c.values.Get(i).Number()
		}
	}
	return 0
}

// word returns the word of an enum value: empty for UNSPECIFIED and for unknown values.
func (c choice) word(number protoreflect.EnumNumber) string {
	value := c.values.ByNumber(number)
	if number == 0 || value == nil {
		return ""
	}
	return c.spell(string(value.Name()))
}

// words lists all values, in the order of the API.
func (c choice) words() []string {
	var out []string
	for i := 1; i < c.values.Len(); i++ {
		out = append(out, c.spell(string(c.values.Get(i).Name())))
	}
	return out
}

// check says whether a word is a value of the option; empty is the preset's business.
func (c choice) check(path *field.Path, word string) field.ErrorList {
	if word == "" || c.number(word) != 0 {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, word, c.words())}
}

// require is check for an option that no preset sets.
func (c choice) require(path *field.Path, word string) field.ErrorList {
	if word == "" {
		return field.ErrorList{field.Required(path, "one of "+strings.Join(c.words(), ", "))}
	}
	return c.check(path, word)
}

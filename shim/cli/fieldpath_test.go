package cli

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ofJSON reads an assertion about JSON: a path, an operator and a value.
//
//	.bill.nodes = 3                      equal; of several values, all of them, in any order, with commas between
//	.remove[].node lacks cp-1            none of the values
//	.keep[].node has cp-1, cp-2          all of these, and perhaps others
//	.groups[name=gke-a].price <= 0.07    each of the values, at least one
//	.moves[] none                        there is none
//	.groups[] count 3                    how many
//	.note matches base rates             one of the values, as a regular expression
func ofJSON(line string) (func(fieldOutput, any) string, error) {
	path, rest, _ := strings.Cut(line, " ")
	operator, value, _ := strings.Cut(rest, " ")
	steps, err := parsePath(path)
	if err != nil {
		return nil, err
	}
	if !slices.Contains([]string{"=", "has", "lacks", "<", "<=", ">", ">=", "none", "count", "matches"}, operator) {
		return nil, fmt.Errorf("there is no operator %q", operator)
	}
	if (value == "") != (operator == "none") {
		return nil, fmt.Errorf("%s: one value too many or too few", operator)
	}
	return func(_ fieldOutput, object any) string {
		values := []any{object}
		for _, step := range steps {
			values = step(values)
		}
		var texts []string
		for _, v := range values {
			texts = append(texts, textOf(v))
		}
		if holds(operator, texts, value) {
			return ""
		}
		return "it is " + listed(texts)
	}, nil
}

func listed(texts []string) string {
	if len(texts) == 0 {
		return "none"
	}
	return strings.Join(texts, ", ")
}

func holds(operator string, is []string, value string) bool {
	wanted := strings.Split(value, ", ")
	slices.Sort(wanted)
	contains := func(one string) bool { return slices.Contains(is, one) }
	switch operator {
	case "=":
		slices.Sort(is)
		return slices.Equal(is, wanted)
	case "has":
		return !slices.ContainsFunc(wanted, func(one string) bool { return !contains(one) })
	case "lacks":
		return !slices.ContainsFunc(wanted, contains)
	case "none":
		return len(is) == 0
	case "count":
		return strconv.Itoa(len(is)) == value
	case "matches":
		return slices.ContainsFunc(is, regexp.MustCompile(value).MatchString)
	default:
		bound, err := strconv.ParseFloat(value, 64)
		return err == nil && len(is) > 0 && !slices.ContainsFunc(is, func(text string) bool {
			number, err := strconv.ParseFloat(text, 64)
			return err != nil || !compares(operator, number, bound)
		})
	}
}

func compares(operator string, a, b float64) bool {
	switch operator {
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	default:
		return a >= b
	}
}

func textOf(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	bytes, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(bytes)
}

// step takes values to what lies in them.
type step func([]any) []any

var stepPattern = regexp.MustCompile(`^(?:\.([A-Za-z_][A-Za-z0-9_]*)|\[\]|\[([A-Za-z_]+)=([^\]]*)\])`)

// parsePath reads `.field`, `[]` (each element) and `[field=text]` (elements of which a field is that).
func parsePath(path string) (steps []step, err error) {
	for rest := path; rest != ""; {
		m := stepPattern.FindStringSubmatch(rest)
		if m == nil {
			return nil, fmt.Errorf("path %s: not understood from %q on", path, rest)
		}
		rest = rest[len(m[0]):]
		switch {
		case m[1] != "":
			steps = append(steps, fieldOf(m[1]))
		case m[2] != "":
			steps = append(steps, elements, where(m[2], m[3]))
		default:
			steps = append(steps, elements)
		}
	}
	return steps, nil
}

// fieldOf leaves out what is not there and null.
func fieldOf(name string) step {
	return func(values []any) (out []any) {
		for _, v := range values {
			if object, ok := v.(map[string]any); ok && object[name] != nil {
				out = append(out, object[name])
			}
		}
		return out
	}
}

func elements(values []any) (out []any) {
	for _, v := range values {
		list, _ := v.([]any)
		out = append(out, list...)
	}
	return out
}

func where(name, text string) step {
	return func(values []any) []any {
		return slices.DeleteFunc(slices.Clone(values), func(v any) bool {
			object, ok := v.(map[string]any)
			return !ok || object[name] == nil || textOf(object[name]) != text
		})
	}
}

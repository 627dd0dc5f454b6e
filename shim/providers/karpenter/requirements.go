package karpenter

import (
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
)

// requirement is one of a NodePool or a NodeClaim.
type requirement struct {
	Key      string                  `json:"key"`
	Operator v1.NodeSelectorOperator `json:"operator"`
	Values   []string                `json:"values,omitempty"`
	// MinValues is not copied into claims, which name one instance type, zone and capacity type.
	MinValues *int64 `json:"minValues,omitempty"`
}

// Operators that Karpenter adds to those of node affinity.
const (
	atLeast = v1.NodeSelectorOperator("Gte")
	atMost  = v1.NodeSelectorOperator("Lte")
)

// allows says whether a value of its label meets the requirement.
func (r *requirement) allows(value string) bool {
	switch r.Operator {
	case v1.NodeSelectorOpIn:
		return slices.Contains(r.Values, value)
	case v1.NodeSelectorOpNotIn:
		return !slices.Contains(r.Values, value)
	case v1.NodeSelectorOpExists:
		return true
	case v1.NodeSelectorOpDoesNotExist:
		return false
	}
	number, err1 := strconv.ParseInt(value, 10, 64)
	if len(r.Values) != 1 || err1 != nil {
		return false
	}
	bound, err := strconv.ParseInt(r.Values[0], 10, 64)
	if err != nil {
		return false
	}
	switch r.Operator {
	case v1.NodeSelectorOpGt:
		return number > bound
	case v1.NodeSelectorOpLt:
		return number < bound
	case atLeast:
		return number >= bound
	case atMost:
		return number <= bound
	}
	return false
}

// allow says whether labels meet all requirements. A label whose value is not known meets them: the claim repeats the
// requirements, so that Karpenter has the last word.
func allow(requirements []requirement, labels map[string]string) bool {
	for i := range requirements {
		value, known := labels[requirements[i].Key]
		if known && !requirements[i].allows(value) {
			return false
		}
	}
	return true
}

// valuesOf returns the values that requirements name for a key and allow; nil: they name none.
func valuesOf(requirements []requirement, key string) (values []string) {
	for i := range requirements {
		if r := &requirements[i]; r.Key == key && r.Operator == v1.NodeSelectorOpIn {
			for _, value := range r.Values {
				if allow(requirements, map[string]string{key: value}) && !slices.Contains(values, value) {
					values = append(values, value)
				}
			}
		}
	}
	return values
}

func singleValue(requirements []requirement, key string) string {
	if values := valuesOf(requirements, key); len(values) == 1 {
		return values[0]
	}
	return ""
}

// require returns the requirements with one value for each of these keys.
func require(requirements []requirement, values map[string]string, order ...string) []requirement {
	var all []requirement
	for _, r := range requirements {
		if values[r.Key] == "" {
			r.MinValues = nil
			all = append(all, r)
		}
	}
	for _, key := range order {
		if values[key] != "" {
			all = append(all, requirement{Key: key, Operator: v1.NodeSelectorOpIn, Values: []string{values[key]}})
		}
	}
	return all
}

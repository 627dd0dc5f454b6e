package karpenter

import (
	"math"
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

// allowsAbsence says whether a node without the label meets the requirement.
func (r *requirement) allowsAbsence() bool {
	return r.Operator == v1.NodeSelectorOpNotIn || r.Operator == v1.NodeSelectorOpDoesNotExist
}

// allow says whether labels meet all requirements. `lacks` says of a label that is not among them whether it is known
// that there is none; nil: of no label. A label of which nothing is known meets the requirements: the claim repeats
// them, so that Karpenter has the last word.
func allow(requirements []requirement, labels map[string]string, lacks func(key string) bool) bool {
	for i := range requirements {
		r := &requirements[i]
		value, known := labels[r.Key]
		if known && !r.allows(value) || !known && lacks != nil && lacks(r.Key) && !r.allowsAbsence() {
			return false
		}
	}
	return true
}

// allowed returns which of these values of a label meet all requirements, each once.
func allowed(requirements []requirement, key string, values []string) (all []string) {
	for _, value := range values {
		if allow(requirements, map[string]string{key: value}, nil) && !slices.Contains(all, value) {
			all = append(all, value)
		}
	}
	return all
}

// of returns the requirements of one key.
func of(requirements []requirement, key string) []requirement {
	return slices.DeleteFunc(slices.Clone(requirements), func(r requirement) bool { return r.Key != key })
}

// named returns the values that requirements of a key name by In, in their order.
func named(requirements []requirement, key string) (values []string, some bool) {
	for _, r := range requirements {
		if r.Key == key && r.Operator == v1.NodeSelectorOpIn {
			values, some = append(values, r.Values...), true
		}
	}
	return values, some
}

// valuesOf returns the values that requirements name for a key and allow; nil: they name none.
func valuesOf(requirements []requirement, key string) []string {
	values, _ := named(requirements, key)
	return allowed(requirements, key, values)
}

// contradiction returns a key whose requirements no node can meet, whatever it is; empty: there is none.
func contradiction(requirements []requirement) string {
	for i := range requirements {
		if key := requirements[i].Key; !satisfiable(of(requirements, key)) {
			return key
		}
	}
	return ""
}

// satisfiable says whether some value, or the absence of the label, meets all requirements of one key.
func satisfiable(requirements []requirement) bool {
	if !slices.ContainsFunc(requirements, func(r requirement) bool { return !r.allowsAbsence() }) {
		return true
	}
	if slices.ContainsFunc(requirements, func(r requirement) bool {
		return r.Operator == v1.NodeSelectorOpDoesNotExist
	}) {
		return false
	}
	key := requirements[0].Key
	if values, some := named(requirements, key); some {
		return len(allowed(requirements, key, values)) > 0
	}
	least, most := int64(math.MinInt64), int64(math.MaxInt64)
	for i := range requirements {
		low, high := requirements[i].bounds()
		least, most = max(least, low), min(most, high)
	}
	return least <= most
}

// bounds returns the numbers between which a value must be; all numbers where the operator does not compare.
func (r *requirement) bounds() (least, most int64) {
	least, most = math.MinInt64, math.MaxInt64
	if !r.compares() || len(r.Values) != 1 {
		return least, most
	}
	bound, err := strconv.ParseInt(r.Values[0], 10, 64)
	if err != nil || bound == math.MaxInt64 || bound == math.MinInt64 {
		return least, most
	}
	switch r.Operator {
	case v1.NodeSelectorOpGt:
		least = bound + 1
	case atLeast:
		least = bound
	case v1.NodeSelectorOpLt:
		most = bound - 1
	case atMost:
		most = bound
	}
	return least, most
}

// compares says whether the operator compares numbers.
func (r *requirement) compares() bool {
	return slices.Contains([]v1.NodeSelectorOperator{v1.NodeSelectorOpGt, v1.NodeSelectorOpLt, atLeast, atMost},
		r.Operator)
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

package defaultscores

import (
	"fmt"
	"math"
)

// mode says which nodes scheduler-plugins' NodeResourcesAllocatable prefers.
type mode string

// least prefers small nodes, and "Most" large ones.
const least mode = "Least"

// allocatableScores are the normalized scores of scheduler-plugins' NodeResourcesAllocatable, one per node: by nothing
// but the size of the nodes, of which each has one amount per weight.
func allocatableScores(weights []int64, prefers mode, nodes [][]int64) []int64 {
	sign := int64(1)
	if prefers == least {
		sign = -1
	}
	var total int64
	for _, w := range weights {
		total += w
	}
	raw := make([]int64, len(nodes))
	lowest, highest := int64(math.MaxInt64), int64(math.MinInt64)
	for i, amounts := range nodes {
		for j, amount := range amounts {
			raw[i] += sign * amount * weights[j]
		}
		raw[i] /= total
		lowest, highest = min(lowest, raw[i]), max(highest, raw[i])
	}
	for i := range raw {
		if highest == lowest {
			raw[i] = 0
			continue
		}
		raw[i] = (raw[i] - lowest) * maxScore / (highest - lowest)
	}
	return raw
}

// resourceWeight is one entry of the arguments of NodeResourcesAllocatable.
type resourceWeight struct {
	Name   string
	Weight int64
}

// refusedWeights returns the field paths of the weights that NodeResourcesAllocatable refuses.
func refusedWeights(resources []resourceWeight) []string {
	var refused []string
	for i, r := range resources {
		if r.Weight <= 0 {
			refused = append(refused, fmt.Sprintf("resources[%d].weight", i))
		}
	}
	return refused
}

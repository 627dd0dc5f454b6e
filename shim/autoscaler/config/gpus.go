package config

import (
	"fmt"
	"strings"
)

// GPUTotal bounds how many GPUs of one type all nodes together offer.
type GPUTotal struct {
	Type     string
	Min, Max int64
}

// mostGPUs is the largest number of GPUs that the engine takes.
const mostGPUs = mostCores

// GPUTotals returns gpuTotal, in its order.
func (s *RemovalLimits) GPUTotals() ([]GPUTotal, error) {
	var totals []GPUTotal
	known := map[string]bool{}
	for _, entry := range s.GPUTotal {
		kind, rest, _ := strings.Cut(entry, ":")
		low, high, err := bounds(rest, mostGPUs)
		switch {
		case kind == "" || err != nil:
			return nil, fmt.Errorf("scaleDown.gpuTotal: %q: must be TYPE:MIN:MAX, at most %d", entry, int64(mostGPUs))
		case known[kind]:
			return nil, fmt.Errorf("scaleDown.gpuTotal: %q: type %s is there twice", entry, kind)
		}
		known[kind] = true
		totals = append(totals, GPUTotal{kind, low, high})
	}
	return totals, nil
}

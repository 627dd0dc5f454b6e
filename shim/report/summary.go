package report

import (
	"math"
	"slices"
)

// Thresholds are the ratios above which nodes are counted. 1.0 is the load line.
var Thresholds = [...]float64{1.0, 1.5, 2.0}

// Summary describes the ratios limits/allocatable of one resource over the nodes of one placement.
type Summary struct {
	// Nodes that offer the resource, and those that lack it. Only the former have a ratio.
	Nodes, Lacking int
	// P50, P95, P99 by nearest rank; all 0 without nodes.
	P50, P95, P99, Max float64
	// Above counts the nodes with a ratio above each of Thresholds.
	Above [len(Thresholds)]int
	// Total sums the amounts of the nodes that offer the resource, saturating.
	Total Amounts
}

// Summarize returns the summary of one resource. O(n log n) in the number of nodes.
func Summarize(p Placement, resource string) Summary {
	var s Summary
	ratios := make([]float64, 0, len(p.Nodes))
	for _, node := range p.Nodes {
		amounts := node.Resources[resource]
		ratio, ok := amounts.Ratio()
		if !ok {
			s.Lacking++
			continue
		}
		ratios = append(ratios, ratio)
		for i, threshold := range Thresholds {
			if ratio > threshold {
				s.Above[i]++
			}
		}
		s.Total.Allocatable = SaturatingAdd(s.Total.Allocatable, amounts.Allocatable)
		s.Total.Limits = SaturatingAdd(s.Total.Limits, amounts.Limits)
		s.Total.Requests = SaturatingAdd(s.Total.Requests, amounts.Requests)
	}
	slices.Sort(ratios)
	s.Nodes = len(ratios)
	s.P50, s.P95, s.P99 = Percentile(ratios, 50), Percentile(ratios, 95), Percentile(ratios, 99)
	s.Max = Percentile(ratios, 100)
	return s
}

// Percentile returns the nearest-rank percentile of sorted values: the smallest value such that at least `percent`
// percent of all values are less than or equal to it. It is always one of the values; 0 when there are none.
// `percent` is in [1, 100].
func Percentile(sorted []float64, percent int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*percent + 99) / 100 // ceil without a detour over floating point
	return sorted[rank-1]
}

// SaturatingAdd adds amounts, which are at least 0.
func SaturatingAdd(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Package defaultscores has the score formulas of kube-scheduler's default plugins, to compare our scores with.
package defaultscores

import "math"

// maxScore is the highest score of a node.
const maxScore = 100

// LeastAllocated is the score of kube-scheduler's NodeResourcesFit with the strategy LeastAllocated: the weighted mean
// of the shares that stay free. `requested` includes the pod to be placed; a resource that the node lacks has
// allocatable 0 and does not count. The slices run in parallel; all amounts are at least 0.
func LeastAllocated(weights, requested, allocatable []int64) int64 {
	var sum, total int64
	for i, capacity := range allocatable {
		if capacity == 0 {
			continue
		}
		if requested[i] <= capacity {
			sum += weights[i] * share(capacity-requested[i], capacity)
		}
		total += weights[i]
	}
	if total == 0 {
		return 0
	}
	return sum / total
}

// share returns 100 * part / whole, rounded down, for 0 <= part <= whole. Where kube-scheduler's product wraps, above
// 2^63 / 100 bytes or so, this does not.
func share(part, whole int64) int64 {
	if part <= math.MaxInt64/maxScore {
		return part * maxScore / whole
	}
	return part / (whole / maxScore)
}

// BalancedAllocation is the score of kube-scheduler's NodeResourcesBalancedAllocation from 1.36 on: 75 when the pod
// leaves the resources of the node as evenly used as they are, up to 100 when it evens them out, down to 50 when it
// does the opposite. `before` and `after` are the requests on the node without and with the pod.
func BalancedAllocation(before, after, allocatable []int64) int64 {
	return maxScore/2 + (maxScore/2+evenness(after, allocatable)-evenness(before, allocatable))/2
}

// evenness is 100 less the standard deviation, in percent, of the shares in use.
func evenness(requested, allocatable []int64) int64 {
	var shares []float64
	sum := 0.0
	for i, capacity := range allocatable {
		if capacity == 0 {
			continue
		}
		share := min(float64(requested[i])/float64(capacity), 1)
		shares = append(shares, share)
		sum += share
	}
	deviation := 0.0
	switch n := float64(len(shares)); {
	case len(shares) == 2: // as upstream has it: the general formula rounds differently
		deviation = math.Abs((shares[0] - shares[1]) / 2)
	case len(shares) > 2:
		squares := 0.0
		for _, share := range shares {
			squares += (share - sum/n) * (share - sum/n)
		}
		deviation = math.Sqrt(squares / n)
	}
	return int64((1 - deviation) * maxScore)
}

// MostAllocated is the score of NodeResourcesFit with the strategy MostAllocated: the weighted mean of the shares that
// are requested. See LeastAllocated for the slices.
func MostAllocated(weights, requested, allocatable []int64) int64 {
	var sum, total int64
	for i, capacity := range allocatable {
		if capacity == 0 {
			continue
		}
		sum += weights[i] * share(min(requested[i], capacity), capacity)
		total += weights[i]
	}
	if total == 0 {
		return 0
	}
	return sum / total
}

// Point is one of a line that is straight between points: a share in use in percent, [0, 100], and a score, [0, 10].
// Points of a line are in the order of the shares, no two of which are equal.
type Point struct{ Utilization, Score int64 }

// RequestedToCapacityRatio is the score of NodeResourcesFit with that strategy: the weighted mean of what the line says
// of the shares that are requested, over the resources of which it says more than 0, rounded half away from 0.
func RequestedToCapacityRatio(line []Point, weights, requested, allocatable []int64) int64 {
	var sum, total int64
	for i, capacity := range allocatable {
		if capacity == 0 {
			continue
		}
		if score := at(line, share(min(requested[i], capacity), capacity)); score > 0 {
			sum += weights[i] * score
			total += weights[i]
		}
	}
	if total == 0 {
		return 0
	}
	return int64(math.Round(float64(sum) / float64(total)))
}

// at returns the value of a line at a share, scaled to [0, 100]. Outside of its points the line is level.
func at(line []Point, percent int64) int64 {
	const scale = maxScore / 10
	for i, point := range line {
		switch {
		case percent > point.Utilization:
			continue
		case i == 0:
			return point.Score * scale
		}
		before := line[i-1]
		return before.Score*scale +
			(point.Score-before.Score)*scale*(percent-before.Utilization)/(point.Utilization-before.Utilization)
	}
	return line[len(line)-1].Score * scale
}

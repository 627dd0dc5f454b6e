package scheduler

import (
	"math"
	"math/bits"

	fwk "k8s.io/kube-scheduler/framework"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/view"
)

// normalize makes scores of raw scores as a scale says, the same as the engine would over these nodes. It returns how
// many had to be clamped.
//
// A batch of Kubernetes 1.37 may mix nodes that were scored with ones that were not, because the engine did not answer
// in one of the batch's cycles: the framework leaves these without a name. Then no node is better than another.
func normalize(scale *loadlinev1.RawScale, list fwk.NodeScoreList) (clamped int) {
	for i := range list {
		if list[i].Name == "" {
			withoutOpinion(list)
			return 0
		}
	}
	switch scale.GetKind() {
	case loadlinev1.RawScale_SCORES:
		return clamp(list)
	case loadlinev1.RawScale_MIN_MAX_FIXED_POINT:
		minMax(list, scale.GetEqualBelow(), roundFixedPoint)
	case loadlinev1.RawScale_MIN_MAX_TRUNCATING:
		minMax(list, scale.GetEqualBelow(), truncate)
	default:
		withoutOpinion(list)
	}
	return 0
}

// withoutOpinion gives all nodes the same score.
func withoutOpinion(list fwk.NodeScoreList) {
	for i := range list {
		list[i].Score = fwk.MinScore
	}
}

func clamp(list fwk.NodeScoreList) (clamped int) {
	for i := range list {
		if score := min(max(list[i].Score, fwk.MinScore), fwk.MaxScore); score != list[i].Score {
			if list[i].Score != view.NoRawScore {
				clamped++
			}
			list[i].Score = score
		}
	}
	return clamped
}

// minMax scores each node by where it lies between the lowest and the highest raw score.
func minMax(list fwk.NodeScoreList, equalBelow int64, ratio func(width uint64) func(part uint64) int64) {
	lowest, highest := int64(math.MaxInt64), int64(math.MinInt64)
	for i := range list {
		if raw := list[i].Score; raw != view.NoRawScore {
			lowest, highest = min(lowest, raw), max(highest, raw)
		}
	}
	width := uint64(highest) - uint64(lowest) // up to 2^64 - 1
	if lowest > highest || width < uint64(max(equalBelow, 1)) {
		withoutOpinion(list)
		return
	}
	score := ratio(width)
	for i := range list {
		raw := list[i].Score
		if list[i].Score = fwk.MinScore; raw != view.NoRawScore {
			list[i].Score = score(uint64(raw) - uint64(lowest))
		}
	}
}

// truncate returns the function 100 * part / width, rounded down; part is at most width.
func truncate(width uint64) func(part uint64) int64 {
	return func(part uint64) int64 {
		high, low := bits.Mul64(part, uint64(fwk.MaxScore))
		score, _ := bits.Div64(high, low, width) // high < width, for part <= width and 100 < 2^64
		return int64(score)
	}
}

// roundFixedPoint returns the function 100 * part / width, rounded down, where less than 2^-16 below an integer counts
// as that integer. Like the engine it divides once for all nodes: core/score/limit_score.cc has the same numbers.
func roundFixedPoint(width uint64) func(part uint64) int64 {
	const scoreBits, fractionBits = 16, 39
	const units = uint64(fwk.MaxScore) << scoreBits
	const roundUp = uint64(1)<<fractionBits - 1
	up := bits.LeadingZeros64(width)
	reciprocal, _ := bits.Div64(units<<fractionBits, 0, width<<up)
	return func(part uint64) int64 {
		scaled, _ := bits.Mul64(part<<up, reciprocal)
		return int64((scaled + roundUp) >> (fractionBits + scoreBits))
	}
}

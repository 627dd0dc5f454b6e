package profile

import (
	"math/bits"
	"slices"
)

// histogram counts amounts in buckets: 0 to 63 exactly, and from there on 32 to each power of two, so that the upper
// end of a bucket is less than 1/32 above what is in it. Entries are in the order of their buckets. An entry is bucket
// << countBits | count.
type histogram []uint32

const (
	subBits   = 5 // 32 buckets to a power of two
	countBits = 21
	mostCount = 1<<countBits - 1
	// mostAmount bounds what is counted, 2^62, as amounts of the engine are.
	mostAmount = int64(1) << 62
)

// bucketOf returns the bucket of an amount that is not negative.
func bucketOf(amount int64) uint32 {
	amount = min(amount, mostAmount)
	if amount < 2<<subBits {
		return uint32(amount)
	}
	shift := bits.Len64(uint64(amount)) - subBits - 1
	return uint32(shift)<<subBits + uint32(amount>>shift)
}

// topOf returns the largest amount of a bucket.
func topOf(bucket uint32) int64 {
	if bucket < 2<<subBits {
		return int64(bucket)
	}
	shift := bucket>>subBits - 1
	mantissa := int64(bucket) - int64(shift)<<subBits
	return min((mantissa+1)<<shift-1, mostAmount)
}

// add counts an amount. A bucket that is full stays full.
func (h *histogram) add(amount int64) { h.addMany(bucketOf(amount), 1) }

func (h *histogram) addMany(bucket, count uint32) {
	i, found := slices.BinarySearchFunc(*h, bucket, func(e, bucket uint32) int { return int(e>>countBits) - int(bucket) })
	if !found {
		*h = slices.Insert(*h, i, bucket<<countBits|min(count, mostCount))
		return
	}
	e := &(*h)[i]
	*e = bucket<<countBits | min(*e&mostCount+count, mostCount)
}

// merge adds what another has counted.
func (h *histogram) merge(other histogram) {
	for _, e := range other {
		h.addMany(e>>countBits, e&mostCount)
	}
}

// count returns how many amounts were counted.
func (h histogram) count() (n int64) {
	for _, e := range h {
		n += int64(e & mostCount)
	}
	return n
}

// percentile returns the top of the bucket that has the percentile by nearest rank; Unknown of nothing.
func (h histogram) percentile(percent int64) int64 {
	n := h.count()
	if n == 0 {
		return Unknown
	}
	rank := max((n*percent+99)/100, 1)
	seen := int64(0)
	for _, e := range h {
		if seen += int64(e & mostCount); seen >= rank {
			return topOf(e >> countBits)
		}
	}
	return Unknown
}

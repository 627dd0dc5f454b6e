package store

import (
	"cmp"
	"fmt"
	"slices"

	"loadline.dev/shim/usage/profile"
)

// Prefix begins the names of the ConfigMaps, Key is that of their data.
const (
	Prefix = "loadline-usage-"
	Key    = "profiles"
	// DefaultNamespace is where they are unless somebody says otherwise.
	DefaultNamespace = "kube-system"
)

// Name returns the name of the ConfigMap of a shard, [0, Shards).
func Name(shard int) string { return fmt.Sprint(Prefix, shard) }

// Encode returns as many shards as profiles take, in their order, at least one and at most Shards. Where there is no
// room for all, those with the fewest samples are left out: of the largest number of pods for the longest time most is
// gained. It returns how many were. The same profiles give the same bytes.
func Encode(head *Head, profiles []profile.Profile) (shards [][]byte, leftOut int) {
	kept, pieces := slices.Clone(profiles), make([][]byte, 0, len(profiles))
	slices.SortStableFunc(kept, func(a, b profile.Profile) int { return cmp.Compare(b.Samples, a.Samples) })
	// The room that is left by all headers and digests, and by what a shard may waste at its end, since a profile is
	// not cut.
	room := Shards * (MostShard - len(seal(encodeHead(head, 1<<20))) - mostProfile)
	for i := range kept {
		if room -= len(encodeProfile(nil, &kept[i])); room < 0 {
			leftOut = len(kept) - i
			kept = kept[:i]
			break
		}
	}
	slices.SortFunc(kept, func(a, b profile.Profile) int { return a.Workload.Compare(b.Workload) })
	size := len(seal(encodeHead(head, 1<<20)))
	full := func() {
		shard := encodeHead(head, len(pieces))
		for _, piece := range pieces {
			shard = append(shard, piece...)
		}
		shards = append(shards, seal(shard))
		pieces, size = pieces[:0], len(seal(encodeHead(head, 1<<20)))
	}
	for i := range kept {
		piece := encodeProfile(nil, &kept[i])
		if size+len(piece) > MostShard {
			full()
		}
		pieces = append(pieces, piece)
		size += len(piece)
	}
	full()
	return shards, leftOut
}

// mostProfile bounds the bytes of a profile: three texts with two bytes of length each, eight numbers of at most
// nine bytes, two days.
const mostProfile = 3*(mostText+2) + 8*9 + 2*profile.Hours

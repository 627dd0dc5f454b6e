package drain

import (
	"slices"
	"testing"
	"time"
)

// Most pods end in no time: they are looked at soon, and then as often as the interval says.
func TestNextPoll(t *testing.T) {
	for poll, want := range map[time.Duration][]time.Duration{
		5 * time.Second: {250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second,
			5 * time.Second, 10 * time.Second, 15 * time.Second},
		100 * time.Millisecond: {100 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond},
	} {
		var got []time.Duration
		for at := time.Duration(0); len(got) < len(want); {
			at = nextPoll(at, poll)
			got = append(got, at)
		}
		if !slices.Equal(got, want) {
			t.Errorf("with a poll of %v at %v, want %v", poll, got, want)
		}
	}
}

package tell

import (
	"encoding/json"
	"testing"
	"time"

	"loadline.dev/shim/internal/vectortest"
)

// TestVectors has a subtest per row that this package answers, named by its id.
func TestVectors(t *testing.T) {
	vectortest.Run(t, "drain_actuation", map[string]vectortest.Answer{"max_skip_time": maxSkipTimeRow}, nil)
}

func maxSkipTimeRow(t *testing.T, in json.RawMessage) map[string]any {
	var q struct {
		Interval int        `json:"loop_interval_s"`
		Skipped  [][]string `json:"skipped_per_loop"`
	}
	vectortest.Decode(t, in, &q)
	var tracker skipTracker
	longest := []int{}
	now := time.Unix(1000, 0)
	for _, skipped := range q.Skipped {
		longest = append(longest, int(tracker.update(skipped, now)/time.Second))
		now = now.Add(time.Duration(q.Interval) * time.Second)
	}
	return map[string]any{"max_skip_s": longest}
}

// A node that is skipped in the very first loop has not waited yet.
func TestFirstLoop(t *testing.T) {
	var tracker skipTracker
	if got := tracker.update([]string{"n"}, time.Unix(1000, 0)); got != 0 {
		t.Errorf("waited %v", got)
	}
	if got := tracker.update([]string{"n"}, time.Unix(1010, 0)); got != 10*time.Second {
		t.Errorf("waited %v, want 10s", got)
	}
}

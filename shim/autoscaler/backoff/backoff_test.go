package backoff

import (
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	b := New(Options{Initial: 5 * time.Minute, Max: 30 * time.Minute, Reset: 3 * time.Hour})
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	// Each failure: when, and until which minute the group then backs off.
	for _, step := range []struct{ at, until int }{
		{0, 5},     // the first one
		{2, 7},     // while it backs off: not longer
		{7, 17},    // right behind: twice
		{17, 37},   // four times
		{40, 70},   // eight times is beyond the most
		{300, 305}, // more than three hours later
		{480, 490}, // less than three hours later
	} {
		if got := b.Fail("g", ReasonTimeout, "late", at(step.at)); got.Until != at(step.until) {
			t.Errorf("failure at minute %d: until %v, want minute %d", step.at, got.Until.Sub(start), step.until)
		}
		if info, held := b.Of("g", at(step.until).Add(-time.Second)); !held || info.Reason != ReasonTimeout ||
			info.Text != "late" {
			t.Errorf("a second before minute %d: %+v, %v", step.until, info, held)
		}
		if _, held := b.Of("g", at(step.until)); held {
			t.Errorf("at minute %d it still backs off", step.until)
		}
	}
	if _, held := b.Of("other", at(481)); held {
		t.Error("another group backs off")
	}
	b.Succeed("g")
	if _, held := b.Of("g", at(481)); held {
		t.Error("backs off after a success")
	}
	if got := b.Fail("g", ReasonAPIError, "", at(481)); got.Until != at(486) {
		t.Errorf("after a success: until %v", got.Until.Sub(start))
	}
	b.Prune(at(481 + 180))
	if len(b.groups) != 1 {
		t.Error("forgotten too early")
	}
	if b.Prune(at(481 + 181)); len(b.groups) != 0 {
		t.Error("not forgotten")
	}
}

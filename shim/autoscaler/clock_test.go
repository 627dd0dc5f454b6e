package autoscaler

import (
	"testing"
	"time"
)

// A wall clock that is set changes nothing while timers run, and is followed when none does.
func TestPlanClock(t *testing.T) {
	begin := time.Date(2026, 2, 17, 9, 0, 0, 0, time.UTC)
	for name, set := range map[string]time.Duration{"Ahead": time.Hour, "Back": -time.Hour, "NotAtAll": 0} {
		t.Run(name, func(t *testing.T) {
			passed, wall := 100*time.Second, time.Duration(0)
			c := newPlanClock(Clock{Now: func() time.Time { return begin.Add(passed - 100*time.Second + wall) },
				Passed: func() time.Duration { return passed }})
			expect := func(want time.Duration) {
				t.Helper()
				if got := c.now().Sub(begin); got != want {
					t.Errorf("%v after the begin it is %v", want, got)
				}
			}
			passed += 10 * time.Second
			expect(10 * time.Second)
			wall = set
			c.look(true)
			passed += 5 * time.Second
			expect(15 * time.Second)
			c.look(false)
			expect(15*time.Second + set)
			passed += time.Second
			expect(16*time.Second + set)
		})
	}
}

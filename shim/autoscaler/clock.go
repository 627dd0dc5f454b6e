package autoscaler

import (
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// Clock is what tells the time.
type Clock struct {
	// Now is the wall clock, which may be set at any time.
	Now func() time.Time
	// Passed is the time since some moment, however the wall clock is set.
	Passed func() time.Duration
}

func systemClock() Clock {
	began := time.Now()
	return Clock{Now: time.Now, Passed: func() time.Duration { return time.Since(began) }}
}

// planClock is the time that plans are made by. It begins with the wall clock and then follows the time that passes, so
// that no timer ends early, and none runs for too long, when the wall clock is set. Times that the API server has noted
// may then seem older or younger than they are, so planClock follows the wall clock again as soon as no timer runs.
// Safe for concurrent use.
type planClock struct {
	clock Clock

	mu     sync.Mutex
	begin  time.Time     // by the wall clock; guarded by mu
	passed time.Duration // at the begin; guarded by mu
	told   time.Duration // by how much the wall clock was ahead when that was logged; guarded by mu
}

func newPlanClock(clock Clock) *planClock {
	return &planClock{clock: clock, begin: clock.Now(), passed: clock.Passed()}
}

// now is safe for concurrent use.
func (c *planClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begin.Add(c.clock.Passed() - c.passed)
}

// wall is what the wall clock says, for people and for what they compare with their own.
func (c *planClock) wall() time.Time { return c.clock.Now() }

// wallClockSet is by how much the wall clock must differ to count as set: both are not read in the same moment.
const wallClockSet = time.Second

// look compares with the wall clock, and follows it if no timer runs.
func (c *planClock) look(timersRun bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, passed := c.clock.Now(), c.clock.Passed()
	ahead := wall.Round(0).Sub(c.begin.Add(passed - c.passed).Round(0)) // Round takes the monotonic reading away
	if !timersRun {
		c.begin, c.passed = wall, passed
	}
	if (ahead - c.told).Abs() > wallClockSet {
		klog.InfoS("The wall clock was set: timers that run go on by the time that passes",
			"ahead", ahead, "followed", !timersRun)
	}
	c.told = ahead
	if !timersRun {
		c.told = 0
	}
}

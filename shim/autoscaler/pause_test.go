package autoscaler

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// The next loop comes with the tick, or soon after the last one began when a removal has ended, and never with the end.
func TestPause(t *testing.T) {
	const interval = 10 * time.Second
	for _, c := range []struct {
		name         string
		freed, stops time.Duration // after the loop began; 0: never
		batch        time.Duration // for which growth waits
		want         time.Duration
		goesOn       bool
	}{
		{name: "nothing ends", want: interval, goesOn: true},
		{name: "ended while the loop ran", freed: time.Nanosecond, want: betweenLoops, goesOn: true},
		{name: "ended soon", freed: time.Second, want: betweenLoops, goesOn: true},
		{name: "ended later", freed: 5 * time.Second, want: 5 * time.Second, goesOn: true},
		{name: "growth waits", batch: 900 * time.Millisecond, want: 900 * time.Millisecond, goesOn: true},
		{name: "growth waits and places are free", batch: 1500 * time.Millisecond, freed: time.Second,
			want: 1500 * time.Millisecond, goesOn: true},
		{name: "growth waits longer", batch: time.Minute, want: interval, goesOn: true},
		{name: "stopped", stops: 3 * time.Second, want: 3 * time.Second},
		{name: "stopped before places are filled", freed: time.Second, stops: 1500 * time.Millisecond,
			want: 1500 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				began, freed := time.Now(), make(chan struct{}, 1)
				if c.freed > 0 {
					time.AfterFunc(c.freed, func() { freed <- struct{}{} })
				}
				if c.stops > 0 {
					time.AfterFunc(c.stops, cancel)
				}
				if goesOn := pause(ctx, time.After(interval), freed, c.batch, began); goesOn != c.goesOn {
					t.Errorf("goes on: %v", goesOn)
				}
				if took := time.Since(began); took != c.want {
					t.Errorf("after %v, want %v", took, c.want)
				}
			})
		})
	}
}

package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestWindowsHoldInTheirTimeZone(t *testing.T) {
	for _, c := range []struct{ window, now, from, until string }{
		// Berlin is two hours ahead of UTC in summer, one in winter.
		{"0 22 * * * 6h Europe/Berlin", "2026-07-01T12:00:00Z", "2026-07-01T20:00:00Z", "2026-07-02T02:00:00Z"},
		{"0 22 * * * 6h Europe/Berlin", "2026-12-01T12:00:00Z", "2026-12-01T21:00:00Z", "2026-12-02T03:00:00Z"},
		// Within one, to its last second.
		{"0 22 * * * 6h", "2026-07-02T03:59:59Z", "2026-07-01T22:00:00Z", "2026-07-02T04:00:00Z"},
		{"0 22 * * * 6h", "2026-07-02T04:00:00Z", "2026-07-02T22:00:00Z", "2026-07-03T04:00:00Z"},
		// A Saturday: the next working day.
		{"30 9 * * 1-5 90m UTC", "2026-11-28T00:00:00Z", "2026-11-30T09:30:00Z", "2026-11-30T11:00:00Z"},
	} {
		s := defaultConsolidation()
		s.ReplacementWindows = []string{c.window}
		windows, err := s.Windows()
		if err != nil {
			t.Fatal(err)
		}
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		from, until, ok := windows[0].At(now)
		if !ok || from.UTC().Format(time.RFC3339) != c.from || until.UTC().Format(time.RFC3339) != c.until {
			t.Errorf("%s at %s: from %v until %v, %v; want %s until %s", c.window, c.now, from.UTC(), until.UTC(), ok, c.from,
				c.until)
		}
	}
}

func TestAWindowThatNeverComes(t *testing.T) {
	window, err := parseWindow("0 0 30 2 * 1h")
	if err != nil {
		t.Fatal(err)
	}
	if from, _, ok := window.At(time.Unix(1_800_000_000, 0)); ok {
		t.Errorf("30 February comes on %v", from)
	}
}

func TestWindowsAndCostsAreRefusedWithTheirKey(t *testing.T) {
	for want, s := range map[string]Consolidation{
		"replacementWindows: \"0 22 * *\" must have":    {ReplacementWindows: []string{"0 22 * *"}},
		"replacementWindows: \"0 22 * * * 6 UTC\"":      {ReplacementWindows: []string{"0 22 * * * 6 UTC"}},
		"it must last for 1s to":                        {ReplacementWindows: []string{"0 22 * * * 0s"}},
		"unknown time zone Moon/Tycho":                  {ReplacementWindows: []string{"0 22 * * * 6h Moon/Tycho"}},
		"replacementWindows: \"0 25 * * * 6h\"":         {ReplacementWindows: []string{"0 25 * * * 6h"}},
		"replacementWindows: 65 are more than 64":       {ReplacementWindows: make([]string, 65)},
		"podDisruptionCosts: \"high=1\" must be":        {PodDisruptionCosts: []string{"high=1"}},
		"podDisruptionCosts: \"1000\" must be":          {PodDisruptionCosts: []string{"1000"}},
		"podDisruptionCosts: \"1000=-1\" must be":       {PodDisruptionCosts: []string{"1000=-1"}},
		"podDisruptionCosts: \"1000=NaN\" must be":      {PodDisruptionCosts: []string{"1000=NaN"}},
		"podDisruptionCosts: priority 7 is there twice": {PodDisruptionCosts: []string{"7=1", "7=2"}},
		"podDisruptionCosts: 65 are more than 64":       {PodDisruptionCosts: make([]string, 65)},
	} {
		c := Default()
		c.Consolidation.ReplacementWindows, c.Consolidation.PodDisruptionCosts = s.ReplacementWindows, s.PodDisruptionCosts
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

func TestCostsByPriority(t *testing.T) {
	s := Consolidation{PodDisruptionCosts: []string{"1000=0.01", " -5 = 0"}}
	costs, err := s.CostsByPriority()
	if err != nil {
		t.Fatal(err)
	}
	if want := []PriorityCost{{1000, 0.01}, {-5, 0}}; !slices.Equal(costs, want) {
		t.Errorf("got %v, want %v", costs, want)
	}
}

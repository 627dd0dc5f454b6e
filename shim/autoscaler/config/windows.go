package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // images have no time zones

	"github.com/robfig/cron/v3"
)

const (
	mostWindows   = 64 // as the engine takes
	mostCosts     = 64
	longestWindow = 366 * 24 * time.Hour
)

// Window begins by a cron schedule, again and again, and lasts for some time.
type Window struct {
	schedule cron.Schedule
	lasts    time.Duration
}

// parseWindow reads the five fields of a cron schedule, a duration and a time zone, without which it is UTC:
// "0 22 * * 1-5 6h Europe/Berlin".
func parseWindow(text string) (Window, error) {
	fields := strings.Fields(text)
	if len(fields) == 6 {
		fields = append(fields, "UTC")
	}
	if len(fields) != 7 {
		return Window{}, fmt.Errorf("%q must have the five fields of a cron schedule, a duration and perhaps a time zone, "+
			"such as \"0 22 * * 1-5 6h Europe/Berlin\"", text)
	}
	lasts, err := time.ParseDuration(fields[5])
	if err != nil {
		return Window{}, fmt.Errorf("%q: %w", text, err)
	}
	if lasts < time.Second || lasts > longestWindow {
		return Window{}, fmt.Errorf("%q: it must last for 1s to %v", text, longestWindow)
	}
	zone, err := time.LoadLocation(fields[6])
	if err != nil {
		return Window{}, fmt.Errorf("%q: %w", text, err)
	}
	schedule, err := cron.ParseStandard("CRON_TZ=" + zone.String() + " " + strings.Join(fields[:5], " "))
	if err != nil {
		return Window{}, fmt.Errorf("%q: %w", text, err)
	}
	return Window{schedule: schedule, lasts: lasts}, nil
}

// At returns the window that a time is in, or else the next one; false: none comes within five years.
func (w Window) At(now time.Time) (from, until time.Time, ok bool) {
	from = w.schedule.Next(now.Add(-w.lasts))
	return from, from.Add(w.lasts), !from.IsZero()
}

// Windows returns those in which moves begin; none: at any time.
func (s *Consolidation) Windows() (windows []Window, err error) {
	if len(s.ReplacementWindows) > mostWindows {
		return nil, fmt.Errorf("consolidation.replacementWindows: %d are more than %d", len(s.ReplacementWindows),
			mostWindows)
	}
	for _, text := range s.ReplacementWindows {
		window, err := parseWindow(text)
		if err != nil {
			return nil, fmt.Errorf("consolidation.replacementWindows: %w", err)
		}
		windows = append(windows, window)
	}
	return windows, nil
}

// PriorityCost is what it costs to disturb a pod from some priority on, in US dollars.
type PriorityCost struct {
	FromPriority int32
	USD          float64
}

// CostsByPriority returns what disturbed pods cost that have a priority of at least some value.
func (s *Consolidation) CostsByPriority() (costs []PriorityCost, err error) {
	if len(s.PodDisruptionCosts) > mostCosts {
		return nil, fmt.Errorf("consolidation.podDisruptionCosts: %d are more than %d", len(s.PodDisruptionCosts), mostCosts)
	}
	for _, text := range s.PodDisruptionCosts {
		from, usd, _ := strings.Cut(text, "=")
		priority, notPriority := strconv.ParseInt(strings.TrimSpace(from), 10, 32)
		cost, notCost := strconv.ParseFloat(strings.TrimSpace(usd), 64)
		if notPriority != nil || notCost != nil || !(cost >= 0 && cost <= 1e6) {
			return nil, fmt.Errorf("consolidation.podDisruptionCosts: %q must be PRIORITY=USD with 0 to 1000000 US "+
				"dollars, such as 1000=0.01", text)
		}
		if slices.ContainsFunc(costs, func(c PriorityCost) bool { return c.FromPriority == int32(priority) }) {
			return nil, fmt.Errorf("consolidation.podDisruptionCosts: priority %d is there twice", priority)
		}
		costs = append(costs, PriorityCost{int32(priority), cost})
	}
	return costs, nil
}

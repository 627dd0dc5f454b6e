// Package timewindow reads windows of time that come again and again: a cron schedule, for how long, and a time zone.
package timewindow

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // images have no time zones

	"github.com/robfig/cron/v3"

	"loadline.dev/shim/api/loadlinev1"
)

const longest = 366 * 24 * time.Hour

// Window begins by a cron schedule, again and again, and lasts for some time.
type Window struct {
	schedule cron.Schedule
	lasts    time.Duration
}

// Parse reads the five fields of a cron schedule, a duration and a time zone, without which it is UTC:
// "0 22 * * 1-5 6h Europe/Berlin".
func Parse(text string) (Window, error) {
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
	if lasts < time.Second || lasts > longest {
		return Window{}, fmt.Errorf("%q: it must last for 1s to %v", text, longest)
	}
	zone, err := time.LoadLocation(fields[6])
	if err == nil && zone == time.Local {
		err = errors.New("a time zone must be named, such as Europe/Berlin, and not that of the machine")
	}
	if err != nil {
		return Window{}, fmt.Errorf("%q: %w", text, err)
	}
	schedule, err := cron.ParseStandard("CRON_TZ=" + zone.String() + " " + strings.Join(fields[:5], " "))
	if err != nil {
		return Window{}, fmt.Errorf("%q: %w", text, err)
	}
	return Window{schedule: schedule, lasts: lasts}, nil
}

// At returns the window that a time is in, or else the next one; false: there is none within five years.
func (w Window) At(now time.Time) (from, until time.Time, ok bool) {
	from = w.schedule.Next(now.Add(-w.lasts))
	return from, from.Add(w.lasts), !from.IsZero()
}

// Between returns the windows that hold at some time of a span, in order: one for each minute of it at most.
func (w Window) Between(from, until time.Time) (windows []*loadlinev1.TimeWindow) {
	next := w.schedule.Next
	for begin := next(from.Add(-w.lasts)); !begin.IsZero() && begin.Before(until); begin = next(begin) {
		windows = append(windows, &loadlinev1.TimeWindow{FromS: begin.Unix(), UntilS: begin.Add(w.lasts).Unix()})
	}
	return windows
}

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
	window, err := New(strings.Join(fields[:5], " "), fields[5], fields[6])
	if err != nil {
		return Window{}, fmt.Errorf("%q: %w", text, err)
	}
	return window, nil
}

// New returns the windows of a cron schedule, also one such as @daily, that last for a duration such as 8h.
func New(cronSchedule, duration, timeZone string) (Window, error) {
	lasts, err := time.ParseDuration(duration)
	if err != nil {
		return Window{}, err
	}
	if lasts < time.Second || lasts > longest {
		return Window{}, fmt.Errorf("it must last for 1s to %v", longest)
	}
	zone, err := time.LoadLocation(timeZone)
	if err != nil {
		return Window{}, err
	}
	if zone == time.Local {
		return Window{}, errors.New("a time zone must be named, such as Europe/Berlin, and not that of the machine")
	}
	if strings.Contains(cronSchedule, "=") {
		return Window{}, fmt.Errorf("%q is no cron schedule of five fields", cronSchedule)
	}
	schedule, err := cron.ParseStandard("CRON_TZ=" + zone.String() + " " + cronSchedule)
	return Window{schedule: schedule, lasts: lasts}, err
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

// Package backoff keeps node groups from growing for a time after they have failed to: twice as long each time, as
// Cluster Autoscaler does.
package backoff

import "time"

// Reasons for which groups back off. Each is a label of a metric.
const (
	ReasonTimeout   = "timeout"        // nodes did not come in time
	ReasonAPIError  = "apiError"       // the provider refused to grow the group, or did not answer
	ReasonResources = "outOfResources" // there are no such machines left, or a quota is used up
	ReasonCreation  = "creationFailed" // machines could not be created for another reason
)

// Options of a back-off.
type Options struct {
	// Initial is how long a group backs off after its first failure, Max how long at most.
	Initial, Max time.Duration
	// Reset is after which time without a failure the next one counts as the first.
	Reset time.Duration
}

// Info is why a group backs off.
type Info struct {
	// Reason is one of those above; Text tells people more.
	Reason, Text string
	// Since and Until bound the time.
	Since, Until time.Time
}

// Backoff of node groups. Not safe for concurrent use.
type Backoff struct {
	options Options
	groups  map[string]*state
}

type state struct {
	Info
	duration time.Duration
}

// New returns a back-off of no group.
func New(options Options) *Backoff {
	return &Backoff{options: options, groups: map[string]*state{}}
}

// Fail takes note of a failure. Several of them while a group backs off count as one.
func (b *Backoff) Fail(group, reason, text string, now time.Time) Info {
	s, known := b.groups[group]
	switch {
	case !known || now.Sub(s.Since) > b.options.Reset:
		s = &state{duration: b.options.Initial}
		b.groups[group] = s
	case !now.Before(s.Until):
		s.duration = min(2*s.duration, b.options.Max)
	}
	s.Info = Info{Reason: reason, Text: text, Since: now, Until: now.Add(s.duration)}
	return s.Info
}

// Of returns why a group backs off; false: it does not.
func (b *Backoff) Of(group string, now time.Time) (Info, bool) {
	s, known := b.groups[group]
	if !known || !now.Before(s.Until) {
		return Info{}, false
	}
	return s.Info, true
}

// Any says whether some group backs off.
func (b *Backoff) Any(now time.Time) bool {
	for group := range b.groups {
		if _, backsOff := b.Of(group, now); backsOff {
			return true
		}
	}
	return false
}

// Succeed forgets what has failed in a group.
func (b *Backoff) Succeed(group string) { delete(b.groups, group) }

// Prune forgets what failed long ago.
func (b *Backoff) Prune(now time.Time) {
	for group, s := range b.groups {
		if now.Sub(s.Since) > b.options.Reset && !now.Before(s.Until) {
			delete(b.groups, group)
		}
	}
}

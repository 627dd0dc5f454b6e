package usage

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/klog/v2"

	"loadline.dev/shim/usage/source"
)

// leftovers are what the source said that was not taken, since the process began.
type leftovers struct {
	outcome  source.Outcome
	reported map[source.Reason]bool
}

// report tells which samples were left out, and why: a line for each reason, the first time that it is there. Metrics
// count on.
func (c *Collector) report() {
	for _, why := range source.Reasons {
		count := c.left.outcome.Dropped[why]
		if why == source.NoRoom {
			count = c.samples.Refused() // and what had to make room
		}
		if count == 0 || c.left.reported[why] {
			continue
		}
		c.left.reported[why] = true
		text := fmt.Sprintf("Left out %d samples: %s (%s)", count, why.Text(), why)
		if example := c.left.outcome.Examples[why]; example != "" {
			text += ", such as " + example
		}
		klog.Warning(text)
	}
}

// noProfiles says why there are no profiles: by the reason for which most samples were left out.
func (l *leftovers) noProfiles() error {
	dropped := l.outcome.Dropped
	switch {
	case l.outcome.Samples > 0:
		return errors.New("there are no profiles: all samples are older than the days that count")
	case len(dropped) == 0:
		return errors.New("there are no profiles: there is no sample")
	}
	var parts []string
	for _, why := range source.Reasons {
		if count := dropped[why]; count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s, such as %s", count, why.Text(), l.outcome.Examples[why]))
		}
	}
	return fmt.Errorf("there are no profiles: all samples were left out: %s", strings.Join(parts, "; "))
}

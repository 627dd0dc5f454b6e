package scheduler

import (
	"fmt"
	"runtime/debug"
)

// recovered notes a panic.
func (p *Plugin) recovered(where string, r any) {
	panics.Inc()
	p.logger.Error(fmt.Errorf("panic: %v", r), "Recovered", "where", where, "stack", string(debug.Stack()))
}

// logTrouble logs when cycles begin to go without scores, when the reason changes, and when it is over; not each
// cycle. The breaker logs for itself.
func (p *Plugin) logTrouble(why reason, err error) {
	last := p.trouble.Load()
	if last == nil && why == "" || last != nil && *last == why || why == reasonBreakerOpen || why == reasonCanceled {
		return
	}
	if why == "" {
		p.trouble.Store(nil)
		p.logger.V(2).Info("Cycles have limit-aware scores again", "before", *last)
		return
	}
	p.trouble.Store(&why)
	p.logger.V(2).Info("Cycles go without limit-aware scores", "reason", why, "err", err)
}

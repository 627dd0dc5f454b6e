package watch

import (
	"sync"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/usage/profile"
)

// heldUsage holds the profiles of use that arrived since the last call of Apply. Safe for concurrent use.
type heldUsage struct {
	mu       sync.Mutex
	profiles []profile.Profile // guarded by mu
	changed  bool              // guarded by mu
}

// SetUsage notes profiles, which the next call of Apply brings into effect.
func (h *heldUsage) SetUsage(profiles []profile.Profile) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.profiles, h.changed = profiles, true
}

// SetUsage is that of a cluster that is not watched.
func (c *Cluster) SetUsage(profiles []profile.Profile) { c.usage.SetUsage(profiles) }

func (h *heldUsage) take() ([]profile.Profile, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	profiles, changed := h.profiles, h.changed
	h.profiles, h.changed = nil, false
	return profiles, changed
}

// countsUse says whether plans count pods by what they are expected to use.
func countsUse(fit *loadlinev1.FitOptions) bool { return fit.GetLoadLine().GetExpectedUse() != nil }

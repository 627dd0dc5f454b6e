package tell

import (
	"fmt"
	"strings"

	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/sizing"
)

// GroupSizeStatus tells how full a group is that is sized by it, and what happens to it.
type GroupSizeStatus struct {
	// CPU and Memory are what is requested, of what its untainted nodes offer: "71.4 %", or "from zero" without nodes.
	CPU    string `json:"cpu"`
	Memory string `json:"memory"`
	// Action is nothing, scale-up, remove-slowly or remove-fast; Delta is how many nodes it wins, or if negative are
	// tainted.
	Action string `json:"action"`
	Delta  int    `json:"delta"`
	Reason string `json:"reason"`
	// Tainted nodes wait for their grace period to end, or for pods that keep them.
	Tainted int `json:"tainted"`
	// Held is why nothing is asked of the cloud for it. In DryMode nothing is done at all.
	Held     string   `json:"held,omitempty"`
	DryMode  bool     `json:"dryMode,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// String says it in a line.
func (s *GroupSizeStatus) String() string {
	text := fmt.Sprintf("cpu %s, memory %s, %s, %+d: %s", s.CPU, s.Memory, s.Action, s.Delta, s.Reason)
	if s.Tainted > 0 {
		text += fmt.Sprintf("; %d tainted", s.Tainted)
	}
	if s.Held != "" {
		text += "; asks for nothing: " + s.Held
	}
	if s.DryMode {
		text += "; dry mode, nothing is done"
	}
	return text
}

// sizeStatus returns what there is to be told of a group; nil: it is not sized, or there is no plan.
func sizeStatus(o *plan.Loop, group string) *GroupSizeStatus {
	g := o.Sized[group]
	if g == nil || g.Size == nil {
		return nil
	}
	s := &GroupSizeStatus{Action: sizing.Action(g.Size), Delta: int(g.Size.GetDelta()), Reason: g.Size.GetReasonText(),
		Tainted: int(g.Size.GetTaintedNodes()),
		Held:    g.BlockedReason, DryMode: g.Policy.Spec.Size.DryMode, Warnings: sizing.Warnings(g.Size, o.SizePods)}
	u := g.Size.GetUtilization()
	s.CPU, s.Memory = fmt.Sprintf("%.1f %%", u.GetCpuPercent()), fmt.Sprintf("%.1f %%", u.GetMemoryPercent())
	switch u.GetKind() {
	case loadlinev1.Utilization_FROM_ZERO:
		s.CPU, s.Memory = "from zero", "from zero"
	case loadlinev1.Utilization_NO_CAPACITY:
		s.CPU, s.Memory = "no capacity", "no capacity"
	}
	return s
}

// addSizes tells of the groups that are sized.
func (s *snapshot) addSizes(status *Status) {
	s.Page.Warnings = append(s.Page.Warnings, status.Warnings...)
	for i := range status.NodeGroups {
		if g := &status.NodeGroups[i]; g.Size != nil {
			s.Page.Lines = append(s.Page.Lines, fmt.Sprintf("Sized: %s: %s.", g.Name, g.Size))
		}
	}
}

// logSizes tells of the groups that are sized, and why others are not, when what there is to tell has changed.
func (t *Teller) logSizes(o *plan.Loop) {
	before := t.said.sizes
	t.said.sizes = map[string]string{}
	tell := func(key, text string, log func()) {
		t.said.sizes[key] = text
		if before[key] != text {
			log()
		}
	}
	tell("", strings.Join(o.Warnings, "\n"), func() {
		for _, warning := range o.Warnings {
			klog.InfoS("Warning: " + warning)
		}
	})
	for _, g := range o.Groups {
		s := sizeStatus(o, g.ID)
		if s == nil {
			continue
		}
		tell(g.ID, s.String(), func() {
			klog.V(2).InfoS("Sized", "group", g.ID, "cpu", s.CPU, "memory", s.Memory, "action", s.Action,
				"delta", s.Delta, "reason", s.Reason,
				"tainted", s.Tainted, "held", s.Held, "dryMode", s.DryMode, "warnings", s.Warnings)
		})
	}
}

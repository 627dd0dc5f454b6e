package nodegroup

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Modes of sizing.
const (
	// ModeDefault keeps Escalator's laws, with exact arithmetic and without its cycles.
	ModeDefault = "default"
	// ModeCompat is Escalator's arithmetic and membership exactly.
	ModeCompat = "compat"
)

// What becomes of the requests of DaemonSet pods, which are no demand.
const (
	// DaemonSetsSubtract takes them off the capacity.
	DaemonSetsSubtract = "subtract"
	// DaemonSetsIgnore leaves them out altogether, as Escalator does.
	DaemonSetsIgnore = "ignore"
)

// Size says when a group grows and shrinks. The options are Escalator's, under its names.
type Size struct {
	// Mode is default or compat. Empty: default.
	Mode string `json:"mode,omitempty"`
	// DaemonSets is subtract or ignore. Empty: subtract, and in mode compat ignore, where subtract plays no part; see
	// Ignored.
	DaemonSets string `json:"daemonSets,omitempty"`
	// CatchAll makes the group that of all pods without node selector and affinity, as Escalator's group `default`.
	CatchAll bool `json:"catchAll,omitempty"`

	// The group grows above ScaleUpThresholdPercent of CPU or memory, and nodes are tainted below the taint thresholds:
	// SlowNodeRemovalRate of them a pass below the upper one, FastNodeRemovalRate below the lower one.
	ScaleUpThresholdPercent            int32 `json:"scaleUpThresholdPercent"`
	TaintUpperCapacityThresholdPercent int32 `json:"taintUpperCapacityThresholdPercent"`
	TaintLowerCapacityThresholdPercent int32 `json:"taintLowerCapacityThresholdPercent"`
	SlowNodeRemovalRate                int32 `json:"slowNodeRemovalRate,omitempty"`
	FastNodeRemovalRate                int32 `json:"fastNodeRemovalRate,omitempty"`

	// A tainted node goes after SoftDeleteGracePeriod when it is empty, after HardDeleteGracePeriod whatever it holds.
	SoftDeleteGracePeriod metav1.Duration `json:"softDeleteGracePeriod"`
	HardDeleteGracePeriod metav1.Duration `json:"hardDeleteGracePeriod"`
	// ScaleUpCoolDownPeriod is how long the group is left alone after nodes were asked of the cloud.
	ScaleUpCoolDownPeriod metav1.Duration `json:"scaleUpCoolDownPeriod"`

	// ScaleOnStarve adds a node when a pending pod fits on none.
	ScaleOnStarve bool `json:"scaleOnStarve,omitempty"`
	// MaxNodeAge replaces nodes that are older, while the group is at its minimum. 0: off.
	MaxNodeAge metav1.Duration `json:"maxNodeAge,omitempty"`

	// UnhealthyNodeGracePeriod is how old a node is that has to be ready. 0: health plays no part.
	UnhealthyNodeGracePeriod metav1.Duration `json:"unhealthyNodeGracePeriod,omitempty"`
	// Of the newest HealthCheckNewestNodesPercent of these nodes, at most MaxUnhealthyNodesPercent may not be ready.
	HealthCheckNewestNodesPercent int32 `json:"healthCheckNewestNodesPercent,omitempty"`
	MaxUnhealthyNodesPercent      int32 `json:"maxUnhealthyNodesPercent,omitempty"`

	// CloudGroup is the id of the group at the cloud provider. Empty: the name of the group. Only the autoscaler reads
	// it, and the two below.
	CloudGroup string `json:"cloudGroup,omitempty"`
	// TaintEffect is that of the taint of nodes that the group does without: NoSchedule, NoExecute or PreferNoSchedule.
	// Empty: NoSchedule.
	TaintEffect v1.TaintEffect `json:"taintEffect,omitempty"`
	// DryMode only tells what would be done. Nothing else lets the group grow or shrink then.
	DryMode bool `json:"dryMode,omitempty"`

	// CloudMin and CloudMax are the bounds of the cloud's own group. Absent: min and max.
	CloudMin *int32 `json:"cloudMin,omitempty"`
	CloudMax *int32 `json:"cloudMax,omitempty"`
}

// Ignored says in a line which option plays no part in the mode that the group is sized in; empty: all do.
func (s *Size) Ignored() string {
	if s.Mode == ModeCompat && s.DaemonSets == DaemonSetsSubtract {
		return "spec.size.daemonSets: " + DaemonSetsSubtract + " plays no part in mode " + ModeCompat + ", which is " +
			"Escalator's arithmetic: DaemonSet pods are left out"
	}
	return ""
}

// check checks the options as Escalator does at its start. The error starts with the field.
func (s *Size) check() error {
	positive := func(field string, value time.Duration) error {
		if value <= 0 {
			return fmt.Errorf("%s: %v is not positive", field, value)
		}
		return nil
	}
	switch {
	case s.Mode != "" && s.Mode != ModeDefault && s.Mode != ModeCompat:
		return fmt.Errorf("mode: %q must be %s or %s", s.Mode, ModeDefault, ModeCompat)
	case s.DaemonSets != "" && s.DaemonSets != DaemonSetsSubtract && s.DaemonSets != DaemonSetsIgnore:
		return fmt.Errorf("daemonSets: %q must be %s or %s", s.DaemonSets, DaemonSetsSubtract, DaemonSetsIgnore)
	}
	switch s.TaintEffect {
	case "", v1.TaintEffectNoSchedule, v1.TaintEffectNoExecute, v1.TaintEffectPreferNoSchedule:
	default:
		return fmt.Errorf("taintEffect: %q must be NoSchedule, NoExecute or PreferNoSchedule", s.TaintEffect)
	}
	if err := s.checkThresholds(); err != nil {
		return err
	}
	for _, period := range []struct {
		field string
		value time.Duration
	}{
		{"softDeleteGracePeriod", s.SoftDeleteGracePeriod.Duration},
		{"hardDeleteGracePeriod", s.HardDeleteGracePeriod.Duration},
		{"scaleUpCoolDownPeriod", s.ScaleUpCoolDownPeriod.Duration},
	} {
		if err := positive(period.field, period.value); err != nil {
			return err
		}
	}
	switch {
	case s.SoftDeleteGracePeriod.Duration >= s.HardDeleteGracePeriod.Duration:
		return fmt.Errorf("softDeleteGracePeriod: %v is not less than hardDeleteGracePeriod, %v",
			s.SoftDeleteGracePeriod.Duration, s.HardDeleteGracePeriod.Duration)
	case s.MaxNodeAge.Duration < 0:
		return fmt.Errorf("maxNodeAge: %v is negative", s.MaxNodeAge.Duration)
	}
	return s.checkHealth()
}

func (s *Size) checkThresholds() error {
	switch {
	case s.TaintLowerCapacityThresholdPercent <= 0:
		return fmt.Errorf("taintLowerCapacityThresholdPercent: %d is not positive",
			s.TaintLowerCapacityThresholdPercent)
	case s.TaintLowerCapacityThresholdPercent >= s.TaintUpperCapacityThresholdPercent:
		return fmt.Errorf("taintLowerCapacityThresholdPercent: %d is not less than "+
			"taintUpperCapacityThresholdPercent, %d",
			s.TaintLowerCapacityThresholdPercent, s.TaintUpperCapacityThresholdPercent)
	case s.TaintUpperCapacityThresholdPercent >= s.ScaleUpThresholdPercent:
		return fmt.Errorf("taintUpperCapacityThresholdPercent: %d is not less than scaleUpThresholdPercent, %d",
			s.TaintUpperCapacityThresholdPercent, s.ScaleUpThresholdPercent)
	case s.ScaleUpThresholdPercent > maxThresholdPercent:
		return fmt.Errorf("scaleUpThresholdPercent: %d is more than %d", s.ScaleUpThresholdPercent, maxThresholdPercent)
	case s.SlowNodeRemovalRate < 0:
		return fmt.Errorf("slowNodeRemovalRate: %d is negative", s.SlowNodeRemovalRate)
	case s.SlowNodeRemovalRate > s.FastNodeRemovalRate:
		return fmt.Errorf("slowNodeRemovalRate: %d is more than fastNodeRemovalRate, %d",
			s.SlowNodeRemovalRate, s.FastNodeRemovalRate)
	}
	return nil
}

// maxThresholdPercent is the most that the engine takes: a threshold above 100 overcommits on purpose.
const maxThresholdPercent = 1_000_000

func (s *Size) checkHealth() error {
	switch {
	case s.UnhealthyNodeGracePeriod.Duration < 0:
		return fmt.Errorf("unhealthyNodeGracePeriod: %v is negative", s.UnhealthyNodeGracePeriod.Duration)
	case s.UnhealthyNodeGracePeriod.Duration == 0:
		return nil
	case s.HealthCheckNewestNodesPercent < 1 || s.HealthCheckNewestNodesPercent > 100:
		return fmt.Errorf("healthCheckNewestNodesPercent: %d is not in [1, 100]", s.HealthCheckNewestNodesPercent)
	case s.MaxUnhealthyNodesPercent < 0 || s.MaxUnhealthyNodesPercent > 99:
		return fmt.Errorf("maxUnhealthyNodesPercent: %d is not in [0, 99]", s.MaxUnhealthyNodesPercent)
	}
	return nil
}

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

// The treatments of the requests of DaemonSet pods, which are no demand.
const (
	// DaemonSetsSubtract takes them off the capacity.
	DaemonSetsSubtract = "subtract"
	// DaemonSetsIgnore leaves them out altogether, as Escalator does.
	DaemonSetsIgnore = "ignore"
)

// Size says when a group grows and shrinks. The options are Escalator's, under its names, in camelCase.
type Size struct {
	// Mode says how the group counts: default has exact arithmetic and none of Escalator's cycles, compat has Escalator's
	// arithmetic and membership exactly. Default: default.
	Mode string `json:"mode,omitempty"`
	// DaemonSets says what becomes of the requests of DaemonSet pods, which are no demand: subtract takes them off the
	// capacity, ignore leaves them out. With mode compat they are ignored, and subtract is a warning. Default: subtract.
	DaemonSets string `json:"daemonSets,omitempty"`
	// CatchAll makes the group that of all pods without node selector and affinity, as Escalator's group `default`.
	CatchAll bool `json:"catchAll,omitempty"`

	// ScaleUpThresholdPercent is the utilization of CPU or memory above which the group grows, until it is below; more
	// than taintUpperCapacityThresholdPercent, at most 1000000. Required.
	ScaleUpThresholdPercent int32 `json:"scaleUpThresholdPercent"`
	// TaintUpperCapacityThresholdPercent is the utilization below which nodes are tainted slowly; more than
	// taintLowerCapacityThresholdPercent. Required.
	TaintUpperCapacityThresholdPercent int32 `json:"taintUpperCapacityThresholdPercent"`
	// TaintLowerCapacityThresholdPercent is the utilization below which nodes are tainted fast; above 0. Required.
	TaintLowerCapacityThresholdPercent int32 `json:"taintLowerCapacityThresholdPercent"`
	// SlowNodeRemovalRate is how many nodes are tainted in a pass below the upper threshold; at most
	// fastNodeRemovalRate. Default: 0.
	SlowNodeRemovalRate int32 `json:"slowNodeRemovalRate,omitempty"`
	// FastNodeRemovalRate is how many nodes are tainted in a pass below the lower threshold. Default: 0.
	FastNodeRemovalRate int32 `json:"fastNodeRemovalRate,omitempty"`

	// SoftDeleteGracePeriod is how long a tainted node stays at least: then it is deleted when it is empty. Less than
	// hardDeleteGracePeriod. Required.
	SoftDeleteGracePeriod metav1.Duration `json:"softDeleteGracePeriod"`
	// HardDeleteGracePeriod is how long a tainted node stays at most: then it is deleted whatever is on it. Required.
	HardDeleteGracePeriod metav1.Duration `json:"hardDeleteGracePeriod"`
	// ScaleUpCoolDownPeriod is how long the group is left alone after nodes were asked of the cloud; above 0. Required.
	ScaleUpCoolDownPeriod metav1.Duration `json:"scaleUpCoolDownPeriod"`

	// ScaleOnStarve adds a node when a pending pod fits on none.
	ScaleOnStarve bool `json:"scaleOnStarve,omitempty"`
	// MaxNodeAge replaces nodes that are older, while the group is at its minimum; 0: off. Default: 0s.
	MaxNodeAge metav1.Duration `json:"maxNodeAge,omitempty"`

	// UnhealthyNodeGracePeriod is how old a node is that has to be ready; 0: health plays no part. Default: 0s.
	UnhealthyNodeGracePeriod metav1.Duration `json:"unhealthyNodeGracePeriod,omitempty"`
	// HealthCheckNewestNodesPercent is the share of these nodes, the newest first, whose health is looked at; 1 to 100.
	// Required with unhealthyNodeGracePeriod.
	HealthCheckNewestNodesPercent int32 `json:"healthCheckNewestNodesPercent,omitempty"`
	// MaxUnhealthyNodesPercent is the share of the nodes looked at that may be not ready; 0 to 99. Default: 0.
	MaxUnhealthyNodesPercent int32 `json:"maxUnhealthyNodesPercent,omitempty"`

	// CloudGroup is the id of the group at the cloud provider. Only the autoscaler reads it. Default: the name of the
	// group.
	CloudGroup string `json:"cloudGroup,omitempty"`
	// TaintEffect is what the taint of a node does that the group can spare: NoSchedule, NoExecute or PreferNoSchedule.
	// Only the autoscaler reads it. Default: NoSchedule.
	TaintEffect v1.TaintEffect `json:"taintEffect,omitempty"`
	// DryMode has the autoscaler only tell what it would do. Nothing else lets the group grow or shrink then.
	DryMode bool `json:"dryMode,omitempty"`

	// CloudMin is the least number of nodes that the cloud's own group allows. Default: min.
	CloudMin *int32 `json:"cloudMin,omitempty"`
	// CloudMax is the largest number of nodes that the cloud's own group allows. Default: max.
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

package nodegroup

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ScaleDown says when nodes of a group may go. The options are Cluster Autoscaler's, under its names; what is absent
// holds as it does for all groups.
type ScaleDown struct {
	// ZeroOrMaxNodeScaling: the group scales to none or to all only.
	ZeroOrMaxNodeScaling bool `json:"zeroOrMaxNodeScaling,omitempty"`
	// Shares of a node that may be requested at most for it to go, [0, 1].
	ScaleDownUtilizationThreshold    *float64 `json:"scaleDownUtilizationThreshold,omitempty"`
	ScaleDownGpuUtilizationThreshold *float64 `json:"scaleDownGpuUtilizationThreshold,omitempty"`
	// How long a node has to be unneeded, or not ready, before it goes.
	ScaleDownUnneededTime *metav1.Duration `json:"scaleDownUnneededTime,omitempty"`
	ScaleDownUnreadyTime  *metav1.Duration `json:"scaleDownUnreadyTime,omitempty"`
	// IgnoreDaemonSetsUtilization leaves pods of DaemonSets out of the utilization.
	IgnoreDaemonSetsUtilization *bool `json:"ignoreDaemonSetsUtilization,omitempty"`
}

// check checks the options. The error starts with the field.
func (s *ScaleDown) check() error {
	for _, share := range []struct {
		name  string
		value *float64
	}{
		{"scaleDownUtilizationThreshold", s.ScaleDownUtilizationThreshold},
		{"scaleDownGpuUtilizationThreshold", s.ScaleDownGpuUtilizationThreshold},
	} {
		if share.value != nil && !(*share.value >= 0 && *share.value <= 1) {
			return fmt.Errorf("%s: %v is not in [0, 1]", share.name, *share.value)
		}
	}
	for _, wait := range []struct {
		name  string
		value *metav1.Duration
	}{{"scaleDownUnneededTime", s.ScaleDownUnneededTime}, {"scaleDownUnreadyTime", s.ScaleDownUnreadyTime}} {
		if wait.value != nil && wait.value.Duration < 0 {
			return fmt.Errorf("%s: %s is negative", wait.name, wait.value.Duration)
		}
	}
	return nil
}

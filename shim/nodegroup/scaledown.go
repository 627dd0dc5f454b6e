package nodegroup

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ScaleDown says when nodes of a group may go. The options are Cluster Autoscaler's, under its names; what is absent
// holds as it does for all groups.
type ScaleDown struct {
	// ZeroOrMaxNodeScaling lets the group scale to none or to all only.
	ZeroOrMaxNodeScaling bool `json:"zeroOrMaxNodeScaling,omitempty"`
	// ScaleDownUtilizationThreshold is the share of a node, [0, 1], that may be requested at most for it to go.
	// Default: as for all groups.
	ScaleDownUtilizationThreshold *float64 `json:"scaleDownUtilizationThreshold,omitempty"`
	// ScaleDownGpuUtilizationThreshold is the same for the GPUs of a node that has some. Default: as for all groups.
	ScaleDownGpuUtilizationThreshold *float64 `json:"scaleDownGpuUtilizationThreshold,omitempty"`
	// ScaleDownUnneededTime is how long a node has to be unneeded before it is removed. Default: as for all groups.
	ScaleDownUnneededTime *metav1.Duration `json:"scaleDownUnneededTime,omitempty"`
	// ScaleDownUnreadyTime is how long a node has to be not ready before it is removed. Default: as for all groups.
	ScaleDownUnreadyTime *metav1.Duration `json:"scaleDownUnreadyTime,omitempty"`
	// IgnoreDaemonSetsUtilization leaves DaemonSet pods out of the utilization. Default: as for all groups.
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

package drain

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/autoscaler/config"
)

// Options of a scale-down: a section of a configuration that has been checked, and what is known of pods.
type Options struct {
	config.ScaleDown
	// IsPlaceholder says whether a pod only keeps room free. Such a pod goes with its node, and its controller makes
	// another one. nil: no pod does.
	IsPlaceholder func(*v1.Pod) bool
	// IsOfDaemonSet says whether the DaemonSet that a pod names as its owner exists. Such a pod ends with its node.
	// nil: none does.
	IsOfDaemonSet func(*v1.Pod) bool
	// Now returns the time that is written on nodes, and that decides whether a pod should have ended: the time of the
	// plans. nil: the wall clock.
	Now func() time.Time
}

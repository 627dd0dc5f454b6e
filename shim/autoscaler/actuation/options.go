package actuation

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// Options of a scale-down, under the names of Cluster Autoscaler's flags. There are no defaults here.
type Options struct {
	// NodeDeleteDelayAfterTaint is waited after the hard taint, so that all schedulers have seen it.
	NodeDeleteDelayAfterTaint time.Duration
	// CordonNodeBeforeTerminating also makes the node unschedulable.
	CordonNodeBeforeTerminating bool
	// MaxGracefulTermination bounds the grace period of each pod, where no priority groups are given.
	MaxGracefulTermination time.Duration
	// DrainPriorityGroups, in the order of their priority: which pods end together. Empty: all do.
	DrainPriorityGroups []PriorityGroup
	// MaxPodEviction is how long the eviction of a pod is tried. 0: once.
	MaxPodEviction time.Duration
	// EvictionRetry is the time between two attempts, give or take a fifth.
	EvictionRetry time.Duration
	// UnsafeDeletePodsDespiteDisruptionBudgets: a pod whose eviction was refused for its budgets until the time was up
	// is deleted all the same, with its grace period. That violates the budgets. Cluster Autoscaler has no such flag.
	UnsafeDeletePodsDespiteDisruptionBudgets bool
	// TerminationHeadroom is what pods may take beyond their grace period.
	TerminationHeadroom time.Duration
	// Poll is how often it is seen whether pods have ended, and whether deletion is still delayed.
	Poll time.Duration
	// DaemonSetEvictionForEmptyNodes and ...ForOccupiedNodes: DaemonSet pods are asked to leave too.
	DaemonSetEvictionForEmptyNodes, DaemonSetEvictionForOccupiedNodes bool
	// IsPlaceholder says whether a pod only keeps room free. Such a pod goes with its node, and its controller makes
	// another one. nil: no pod does.
	IsPlaceholder func(*v1.Pod) bool
	// IsOfDaemonSet says whether the DaemonSet that a pod names as its owner exists. Such a pod ends with its node.
	// nil: none does.
	IsOfDaemonSet func(*v1.Pod) bool
	// NodeDeletionDelayTimeout is how long annotations may delay the deletion of a node.
	NodeDeletionDelayTimeout time.Duration
	// NodeDeletionBatcherInterval is how long a node waits for others of its group, to be deleted in one call. 0: not.
	NodeDeletionBatcherInterval time.Duration
	// Now returns the time that is written on nodes, and that decides whether a pod should have ended: the time of the
	// plans. nil: the wall clock.
	Now func() time.Time
}

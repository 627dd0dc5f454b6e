package drain

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"loadline.dev/shim/autoscaler/config"
)

// Removal is one node of a plan. Its objects are those that the plan was made from.
type Removal struct {
	Node  *v1.Node
	Group string
	// Wave says which nodes are tainted together.
	Wave int32
	// Atomic says that all nodes of the group go, or none.
	Atomic bool
	// Empty says that no pod has to move.
	Empty bool
	// Since is since when the node was not needed.
	Since time.Time
	// Reason is a label of a metric.
	Reason string
	// Pods are all pods of the node, of which Moves are the UIDs of those that are to be evicted.
	Pods  []*v1.Pod
	Moves map[types.UID]bool
}

// Options of a scale-down: a section of a configuration that has been checked, and what is known of pods.
type Options struct {
	config.ScaleDown
	// IsPlaceholder says whether a pod only keeps room free. Such a pod ends with its node, and its controller makes
	// another one.
	IsPlaceholder func(*v1.Pod) bool
	// IsOfDaemonSet says whether the DaemonSet that a pod names as its owner exists. Such a pod ends with its node.
	IsOfDaemonSet func(*v1.Pod) bool
	// SharesMachine says whether another node states the provider id of a node: pods of that one may run on the machine.
	SharesMachine func(*v1.Node) bool
	// Now returns the time that is written on nodes, and that decides whether a pod should have ended: the time of the
	// plans.
	Now func() time.Time
}

// Outcomes of Begin, under the names of Cluster Autoscaler.
const (
	NoNodeDeleted     = "ScaleDownNoNodeDeleted"
	NodeDeleteStarted = "ScaleDownNodeDeleteStarted"
)

// Result says how the removal of a node ended.
type Result string

// Results, under the names of Cluster Autoscaler.
const (
	NodeDeleteOK       Result = "NodeDeleteOk"
	ErrorFailedToMark  Result = "NodeDeleteErrorFailedToMarkToBeDeleted"
	ErrorFailedToEvict Result = "NodeDeleteErrorFailedToEvictPods"
	ErrorFailedDelete  Result = "NodeDeleteErrorFailedToDelete"
	ErrorInternal      Result = "NodeDeleteErrorInternal"
)

package drain

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Reasons for which nodes are removed. Each is a label of a metric.
const (
	ReasonEmpty         = "empty"
	ReasonUnderutilized = "underutilized"
	ReasonUnready       = "unready"
)

// Removal is one node of a plan. Its objects are those that the plan was made from.
type Removal struct {
	Node  *v1.Node
	Group string
	// Empty says that no pod has to move.
	Empty bool
	// Since is since when the node was not needed.
	Since time.Time
	// Reason is one of those above.
	Reason string
	// Pods are all pods of the node, of which Moves are the UIDs of those that are to be evicted.
	Pods  []*v1.Pod
	Moves map[types.UID]bool
}

// Plan is what is removed together.
type Plan struct {
	Removals []Removal
	// Atomic are the groups of which all nodes go, or none.
	Atomic map[string]bool
}

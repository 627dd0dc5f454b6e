package drain

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

// SoftTaintChange is what is to become of the soft taint of a node.
type SoftTaintChange struct {
	Node *v1.Node
	// Since is since when the node is not needed, in seconds since 1970; nil: its taint is taken off.
	Since *int64
}

// SoftTaints puts soft taints on nodes and takes them off others, as a plan says.
type SoftTaints struct {
	nodes nodeClient
	background

	mu    sync.Mutex
	tried []string
}

// NewSoftTaints returns what begins no write of a loop after `duration`.
func NewSoftTaints(client kubernetes.Interface, term int64, duration time.Duration) *SoftTaints {
	return &SoftTaints{nodes: nodeClient{client: client, term: term}, background: background{duration: duration}}
}

// Begin writes the changes of a loop in their order and in the background, so that no loop waits for the API server;
// `done` hears how it ended. While the writes of a loop before go on, nothing begins: they end in their time, and the
// next loop sees what they have left. A node that carries a hard taint by now gets no soft one.
func (s *SoftTaints) Begin(ctx context.Context, changes []SoftTaintChange,
	done func(took time.Duration, err error)) {
	writeLater(&s.background, changes, func(c SoftTaintChange) error {
		s.mu.Lock()
		s.tried = append(s.tried, string(c.Node.UID))
		s.mu.Unlock()
		return s.nodes.changeIfThere(ctx, c.Node, func(node *v1.Node) error {
			dropTaint(node, SoftTaint)
			if c.Since != nil && !HasTaint(node, HardTaint) {
				putTaint(node, SoftTaint, *c.Since, v1.TaintEffectPreferNoSchedule)
			}
			return nil
		})
	}, done)
}

// TakeTried returns the UIDs of the nodes that were written, or could not be, since the last call.
func (s *SoftTaints) TakeTried() []string { return take(&s.mu, &s.tried) }

package drain

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

// SoftTaints puts soft taints on nodes that may go and takes them off others, so much at a time.
type SoftTaints struct {
	nodes nodeClient
	// tried says in which update a node was tried last, since it is to change; 0: in none. By name.
	tried   map[string]int
	updates int
	background
}

// NewSoftTaints returns what writes at most `count` times a loop and begins no write after `duration`. A count of 0
// writes nothing.
func NewSoftTaints(client kubernetes.Interface, term int64, count int, duration time.Duration) *SoftTaints {
	return &SoftTaints{nodes: nodeClient{client: client, term: term},
		background: background{count: count, duration: duration}}
}

// Begin is Update in the background, so that no loop waits for the API server; `done` hears how it ended. While the
// writes of a loop before go on, nothing begins: they end in their time, and the next loop sees what they have left.
func (s *SoftTaints) Begin(ctx context.Context, nodes []*v1.Node, unneeded map[string]time.Time,
	done func(took time.Duration, err error)) {
	s.begin(func() error { return s.Update(ctx, nodes, unneeded) }, done)
}

// Update brings the soft taints of nodes into line with since when each is not needed, as far as the bounds of one loop
// allow: first those that are to lose theirs, then those that are to get one, both in the order of their names. Nodes
// that were tried before and are still to change come after all others, and take turns. Nodes that carry a hard taint
// are left alone. Only one loop at a time may call it.
func (s *SoftTaints) Update(ctx context.Context, nodes []*v1.Node, unneeded map[string]time.Time) error {
	var off, on []*v1.Node
	for _, node := range nodes {
		_, wanted := unneeded[node.Name]
		switch has := HasTaint(node, SoftTaint); {
		case HasTaint(node, HardTaint):
		case has && !wanted:
			off = append(off, node)
		case wanted && !has:
			on = append(on, node)
		}
	}
	byName := func(a, b *v1.Node) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(off, byName)
	slices.SortFunc(on, byName)
	due, tried := slices.Concat(off, on), map[string]int{}
	for _, node := range due {
		tried[node.Name] = s.tried[node.Name]
	}
	slices.SortStableFunc(due, func(a, b *v1.Node) int { return cmp.Compare(tried[a.Name], tried[b.Name]) })
	s.tried = tried // without nodes that have changed or are gone
	s.updates++
	return writeSome(&s.background, due, func(node *v1.Node) error {
		tried[node.Name] = s.updates
		since, wanted := unneeded[node.Name]
		return s.nodes.changeIfThere(ctx, identityOf(node), func(node *v1.Node) error {
			dropTaint(node, SoftTaint)
			if wanted && !HasTaint(node, HardTaint) {
				node.Spec.Taints = append(node.Spec.Taints, softTaint(since.Unix()))
			}
			return nil
		})
	})
}

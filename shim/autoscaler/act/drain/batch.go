package drain

import (
	"context"
	"sync"
	"time"
)

// batcher gathers nodes that are ready to be deleted, and sends them to the cloud group by group. The nodes of an
// atomic group wait for each other: they go together, or none of them does.
type batcher struct {
	// interval is how long the first node of a batch waits for others; 0: it goes alone.
	interval time.Duration
	// send deletes nodes of one group. It reports what becomes of each itself.
	send func(ctx context.Context, group string, nodes []*deletion)
	// fail hears of nodes that are not deleted: for a reason of their own, or with another one of their atomic group.
	fail func(nodes []*deletion)

	mu     sync.Mutex
	groups map[string]*batch // guarded by mu
}

type batch struct {
	waiting []*deletion
	// expected is how many nodes of an atomic group are on their way; 0: the group is not atomic.
	expected int
	failed   bool
	gone     int // of those expected: failed by themselves, or together with others
	timed    bool
}

func newBatcher(interval time.Duration, send func(context.Context, string, []*deletion),
	fail func([]*deletion)) *batcher {
	return &batcher{interval: interval, send: send, fail: fail, groups: map[string]*batch{}}
}

// expect says that so many nodes of an atomic group are on their way. All of them must end in schedule or abort.
func (b *batcher) expect(group string, nodes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.of(group).expected += nodes
}

func (b *batcher) of(group string) *batch {
	if b.groups[group] == nil {
		b.groups[group] = &batch{}
	}
	return b.groups[group]
}

// schedule hands over a node that is ready. It returns when the node was sent, or is left to a later call.
func (b *batcher) schedule(ctx context.Context, node *deletion) {
	group := node.removal.Group
	send, fail, wait := b.add(group, node)
	if wait {
		if sleep(ctx, b.interval) != nil {
			return // the process ends; the nodes keep their marks
		}
		send = b.take(group)
	}
	if len(fail) > 0 {
		b.fail(fail)
	}
	if len(send) > 0 {
		b.send(ctx, group, send)
	}
}

func (b *batcher) add(group string, node *deletion) (send, fail []*deletion, wait bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.of(group)
	switch {
	case g.failed:
		b.leave(group, g, 1)
		return nil, []*deletion{node}, false
	case g.expected > 0:
		g.waiting = append(g.waiting, node)
		if len(g.waiting) < g.expected {
			return nil, nil, false
		}
		delete(b.groups, group)
		return g.waiting, nil, false
	case b.interval == 0:
		return []*deletion{node}, nil, false
	}
	g.waiting = append(g.waiting, node)
	if g.timed {
		return nil, nil, false
	}
	g.timed = true
	return nil, nil, true
}

func (b *batcher) take(group string) []*deletion {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.of(group)
	delete(b.groups, group)
	return g.waiting
}

// abort says that a node is not deleted. In an atomic group, those that wait fail with it, and so do later ones.
func (b *batcher) abort(node *deletion) {
	b.fail(append([]*deletion{node}, b.giveUp(node.removal.Group)...))
}

// giveUp notes that a node of a group failed, and returns the others that fail with it now.
func (b *batcher) giveUp(group string) []*deletion {
	b.mu.Lock()
	defer b.mu.Unlock()
	g, ok := b.groups[group]
	if !ok || g.expected == 0 {
		return nil
	}
	failed := g.waiting
	g.waiting, g.failed = nil, true
	b.leave(group, g, 1+len(failed))
	return failed
}

// leave counts nodes of a failed atomic group, and forgets the group with the last one. The caller holds mu.
func (b *batcher) leave(group string, g *batch, nodes int) {
	if g.gone += nodes; g.gone >= g.expected {
		delete(b.groups, group)
	}
}

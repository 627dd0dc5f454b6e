package drain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
)

// batch is nodes of a group for which the cloud is asked in one call. Guarded by tracker.mu, unless it says else.
type batch struct {
	nodes   []*deletion
	sinceMs int64  // where not all of them need go: when the first one was ready
	failed  string // where they do: why one of them stays; empty: none does
	// changed is closed, and made anew, when nodes may wait no longer for each other.
	changed chan struct{}
	ready   []*deletion   // for the call
	sent    bool          // nobody else may send it
	done    chan struct{} // is closed when err is the answer
	err     error

	listing  sync.Mutex
	listed   map[string]bool // machines of the group that the cloud deletes; guarded by listing
	listedAt time.Time       // guarded by listing
}

// join has a node go with the others of its group, in the group's batch. The caller holds mu.
func (a *Actuator) join(batches map[string]*batch, d *deletion) {
	if batches[d.Group] == nil {
		batches[d.Group] = &batch{sinceMs: a.nowMs(), changed: make(chan struct{}), done: make(chan struct{})}
	}
	d.batch = batches[d.Group]
	d.batch.nodes = append(d.batch.nodes, d)
}

// before returns how many nodes other than `d` have yet to reach a stage.
func (b *batch) before(stage loadlinev1.RemovalState_Stage, d *deletion) (count int64) {
	for _, other := range b.nodes {
		if other != d && other.reached < stage {
			count++
		}
	}
	return count
}

// siblings tells how far the others are that go with a node, and returns what is closed when that matters to it.
func (t *tracker) siblings(d *deletion) (*loadlinev1.RemovalSiblings, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := d.batch
	switch {
	case b == nil:
		return nil, nil
	case !d.Atomic:
		return &loadlinev1.RemovalSiblings{GatheredSinceMs: &b.sinceMs}, nil
	}
	return &loadlinev1.RemovalSiblings{Atomic: true, NotReady: b.before(loadlinev1.RemovalState_READY, d),
		NotMarked: b.before(loadlinev1.RemovalState_MARKED, d), Failed: b.failed}, b.changed
}

// note takes note of how far a node is, and wakes its siblings where they may wait for it.
func (a *Actuator) note(d *deletion, answer *loadlinev1.StepRemovalResponse) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := d.reached
	d.told, d.reached = cmp.Or(answer.ToldStage, d.told), answer.State.GetStage()
	if answer.End != nil {
		d.reached = loadlinev1.RemovalState_ENDED
	}
	if d.batch == nil && d.reached == loadlinev1.RemovalState_READY && a.rules.BatchIntervalMilliseconds > 0 {
		a.join(a.gathering, d)
	}
	b := d.batch
	if b == nil || d.reached == before {
		return
	}
	if a.gathering[d.Group] == b && d.reached > loadlinev1.RemovalState_READY {
		delete(a.gathering, d.Group) // its time is over
	}
	if end := answer.End; d.Atomic && end.GetFailsSiblings() && b.failed == "" {
		b.failed = fmt.Sprintf("node %s cannot be removed: %s", d.Node.Name, end.Error)
	}
	if answer.End != nil || b.before(loadlinev1.RemovalState_READY, nil) == 0 && before < loadlinev1.RemovalState_READY ||
		b.before(loadlinev1.RemovalState_MARKED, nil) == 0 && before < loadlinev1.RemovalState_MARKED {
		close(b.changed)
		b.changed = make(chan struct{})
	}
}

// deleteTogether has the cloud delete a node, in one call with the others of its batch.
func (a *Actuator) deleteTogether(ctx context.Context, d *deletion) error {
	b := d.batch
	if b == nil {
		return a.delete(ctx, d.Group, []*deletion{d})
	}
	a.mu.Lock()
	b.ready = append(b.ready, d)
	a.mu.Unlock()
	for {
		sends, changed, err := a.turn(b)
		if err != nil {
			return err
		}
		if sends {
			b.err = a.delete(ctx, d.Group, b.ready)
			close(b.done)
		}
		select {
		case <-b.done:
			return b.err
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// delete has the cloud delete nodes of a group, and notes where it has said so: also of nodes of which nobody waits for
// the answer any more, since the process ends.
func (a *Actuator) delete(ctx context.Context, group string, nodes []*deletion) error {
	var objects []*v1.Node
	for _, d := range nodes {
		if a.options.SharesMachine(d.Node) {
			return fmt.Errorf("another node states the provider id %q of node %s: its pods may run on this machine",
				d.Node.Spec.ProviderID, d.Node.Name)
		}
		objects = append(objects, d.Node)
	}
	err := a.cloud.DeleteNodes(ctx, group, objects)
	for _, d := range nodes {
		if err == nil {
			a.acknowledge(ctx, d)
		}
	}
	return err
}

func (a *Actuator) wasSent(b *batch) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return b.sent
}

// turn says whether the caller is to send the call of a batch, since all that are left are in it; and else returns what
// is closed when that may be so.
func (a *Actuator) turn(b *batch) (sends bool, changed <-chan struct{}, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if b.failed != "" && !b.sent {
		return false, nil, errors.New(b.failed)
	}
	sends = !b.sent && int64(len(b.ready)) == b.before(loadlinev1.RemovalState_ENDED, nil)
	b.sent = b.sent || sends
	return sends, b.changed, nil
}

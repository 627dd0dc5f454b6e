package drain

import (
	"context"
	"maps"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// UnderWay is a removal under way, as it is seen from outside.
type UnderWay struct {
	Group string
	Since time.Time
	Empty bool
	Stage string // for people
}

// Eviction is one that was accepted.
type Eviction struct {
	Pod *v1.Pod
	At  time.Time
}

// Ended is a removal that has ended.
type Ended struct {
	*Removal
	Result Result
	Err    error
}

// tracker knows what is under way, and what has happened since it was last asked. Safe for concurrent use.
type tracker struct {
	mu        sync.Mutex
	underWay  map[string]*deletion // by node; guarded by mu
	gathering map[string]*batch    // of nodes that need not go together, by group; guarded by mu
	evictions []Eviction           // guarded by mu
	failure   error                // of tainting; guarded by mu
	ended     []Ended              // guarded by mu
	// acknowledged are the nodes that the cloud has said it deletes, until they are gone. What a watch tells of them
	// may be older. Guarded by mu.
	acknowledged map[types.UID]*v1.Node
}

// UnderWay returns the removals under way, by node.
func (t *tracker) UnderWay() map[string]UnderWay {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make(map[string]UnderWay, len(t.underWay))
	for name, d := range t.underWay {
		all[name] = UnderWay{Group: d.Group, Since: d.Since, Empty: d.Empty, Stage: d.told}
	}
	return all
}

// Acknowledged says whether the cloud has said that it deletes a node. Such a node will be gone, however long that
// takes.
func (t *tracker) Acknowledged(node *v1.Node) bool {
	if mark, ours := MarkOf(node); ours && mark.Acknowledged {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.acknowledged[node.UID] != nil
}

// ForgetGone forgets acknowledged deletions of nodes that are not there any more. `there`: nodes by name.
func (t *tracker) ForgetGone(there map[string]*v1.Node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.acknowledged, func(uid types.UID, node *v1.Node) bool {
		now := there[node.Name]
		return now == nil || now.UID != uid
	})
}

// acknowledge notes that the cloud deletes a node, here and, for the next leader, on the node.
func (a *Actuator) acknowledge(ctx context.Context, d *deletion) {
	a.mu.Lock()
	a.acknowledged[d.Node.UID] = d.Node
	a.mu.Unlock()
	// Also while the process ends: the next leader has nothing else to go by.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
	defer cancel()
	if err := a.nodes.markAcknowledged(ctx, d.Node); err != nil {
		klog.ErrorS(err, "Node does not say that the cloud deletes it; a next leader may ask a second time",
			"node", klog.KRef("", d.Node.Name))
	}
}

// take takes what has been noted since the last call, which mu guards.
func take[T any](mu *sync.Mutex, from *T) (taken T) {
	mu.Lock()
	defer mu.Unlock()
	taken, *from = *from, taken
	return taken
}

// TakeEvictions returns the evictions since the last call.
func (t *tracker) TakeEvictions() []Eviction { return take(&t.mu, &t.evictions) }

// Freed tells that a removal has ended since it was last read: there is a place for another one.
func (a *Actuator) Freed() <-chan struct{} { return a.freed }

// TakeEnded returns the removals that have ended since the last call, in the order in which they ended.
func (t *tracker) TakeEnded() []Ended { return take(&t.mu, &t.ended) }

// TakeFailure returns why nodes could not be tainted since the last call; nil: they could.
func (t *tracker) TakeFailure() error { return take(&t.mu, &t.failure) }

// Wait returns when no removal is under way: with the context of each Begin, they all end soon.
func (a *Actuator) Wait() { a.running.Wait() }

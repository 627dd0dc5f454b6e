package actuation

import (
	"context"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// UnderWay is a removal under way, as it is seen from outside.
type UnderWay struct {
	Node  string
	Group string
	UID   types.UID
	Since time.Time
	Drain bool
	Stage Stage
}

// Eviction is one that was accepted.
type Eviction struct {
	Pod *v1.Pod
	At  time.Time
}

// Ended is a removal that has ended.
type Ended struct {
	Node       string
	ProviderID string
	UID        types.UID
	Group      string
	Result     Result
	Err        error
	At         time.Time
}

// UnderWay returns the removals under way.
func (a *Actuator) UnderWay() map[string]UnderWay {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make(map[string]UnderWay, len(a.underWay))
	for name, d := range a.underWay {
		all[name] = UnderWay{Node: name, Group: d.removal.Group, UID: d.id.uid, Since: d.removal.Since,
			Drain: !d.removal.Empty, Stage: d.stage}
	}
	return all
}

// Acknowledged says whether the cloud has said that it deletes a node. Such a node goes, however long that takes.
func (a *Actuator) Acknowledged(node *v1.Node) bool {
	if mark, ours := MarkOf(node); ours && mark.Acknowledged {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.acknowledged[node.UID]
}

// ForgetGone forgets acknowledged deletions of nodes that are not there any more.
func (a *Actuator) ForgetGone(there func(types.UID) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.acknowledged, func(uid types.UID, _ bool) bool { return !there(uid) })
}

// acknowledge notes that the cloud deletes a node, here and, for the next leader, on the node.
func (a *Actuator) acknowledge(ctx context.Context, d *deletion) {
	a.mu.Lock()
	a.acknowledged[d.id.uid] = true
	a.mu.Unlock()
	// Also while the process ends: the next leader has nothing else to go by.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
	defer cancel()
	if err := a.nodes.markAcknowledged(ctx, d.id); err != nil {
		klog.ErrorS(err, "Node does not say that the cloud deletes it; a next leader may ask a second time",
			"node", klog.KRef("", d.id.name))
	}
}

// TakeEvictions returns the evictions since the last call.
func (a *Actuator) TakeEvictions() []Eviction {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := a.evictions
	a.evictions = nil
	return taken
}

// Freed tells that a removal has ended since it was last read: there is a place for another one.
func (a *Actuator) Freed() <-chan struct{} { return a.freed }

// TakeEnded returns the removals that have ended since the last call, in the order in which they ended.
func (a *Actuator) TakeEnded() []Ended {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := a.ended
	a.ended = nil
	return taken
}

// TakeFailure returns why nodes could not be tainted since the last call; nil: they could.
func (a *Actuator) TakeFailure() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := a.failure
	a.failure = nil
	return taken
}

// Wait returns when no removal is under way: with the context of each Start, they all end soon.
func (a *Actuator) Wait() { a.running.Wait() }

func (a *Actuator) noteEviction(pod *v1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.evictions = append(a.evictions, Eviction{Pod: pod, At: a.now()})
}

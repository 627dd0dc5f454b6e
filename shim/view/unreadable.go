package view

import (
	"context"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/leftout"
)

const (
	// hearEvery is how often Cycles asks which objects the engine could not read: the answer to a question for scores
	// does not name them.
	hearEvery = 10 * time.Second
	// hearAttempts bounds how often it asks at a time: a cycle that runs meanwhile makes the engine refuse.
	hearAttempts = 5
	// roomEvery is how often a full list may be sent to make room for names.
	roomEvery = time.Minute
	// mostRemembered bounds the objects that are remembered as reported.
	mostRemembered = 4096
)

// Unreadable hears of objects that the engine keeps with what it could read of them, such as a node with a negative
// amount: of each that is new among those that it names, and how many there are in all. It is called with locks taken:
// it must not call back.
type Unreadable func(news []leftout.Object, total int64)

// unreadableAmount is the name of an amount that no engine can read: of an object of which something else could not be
// read, before an engine had it.
const unreadableAmount = "loadline.dev/unreadable"

// MarkPod has the engine hold a pod on a node as one that it could not read in full.
func MarkPod(pod *v1.Pod) { pod.Spec.Overhead = withUnreadable(pod.Spec.Overhead) }

// MarkNode has the engine hold a node as one that it could not read in full. It reads capacities where nothing is
// allocatable.
func MarkNode(node *v1.Node) {
	if len(node.Status.Allocatable) == 0 {
		node.Status.Capacity = withUnreadable(node.Status.Capacity)
		return
	}
	node.Status.Allocatable = withUnreadable(node.Status.Allocatable)
}

func withUnreadable(list v1.ResourceList) v1.ResourceList {
	list = maps.Clone(list)
	if list == nil {
		list = v1.ResourceList{}
	}
	list[unreadableAmount] = resource.MustParse("-1")
	return list
}

// unreadable compares what the engine's answers name with what was reported before.
type unreadable struct {
	hear  Unreadable // nil: nobody listens
	told  map[leftout.Object]bool
	total int64
	room  time.Time // when a full list was last sent to make room for names; zero: never
}

// answered takes note of an answer to Sync that tells of the state after the batch. It says whether a node is named for
// the first time since there was no room for a name of its resources.
func (u *unreadable) answered(answer *loadlinev1.SyncResponse) (crowded bool) {
	named := make(map[leftout.Object]bool, len(answer.GetLeftOut()))
	var news []leftout.Object
	for _, o := range answer.GetLeftOut() {
		object := leftout.New(o.GetKind(), o.GetNamespace(), o.GetName(), o.GetReason())
		if !u.told[object] && !named[object] {
			news = append(news, object)
			crowded = crowded || object.Kind == "Node" && o.GetNoRoomForName()
		}
		named[object] = true
	}
	// The answer names only the first of many objects. One that it does not name now may still be there, and is not
	// reported a second time.
	if answer.GetLeftOutTotal() > int64(len(answer.GetLeftOut())) && len(u.told)+len(news) <= mostRemembered {
		for object := range u.told {
			named[object] = true
		}
	}
	changed := len(news) > 0 || u.total != answer.GetLeftOutTotal()
	u.told, u.total = named, answer.GetLeftOutTotal()
	if changed && u.hear != nil {
		u.hear(news, u.total)
	}
	return crowded
}

// heard takes note of an answer to Sync, and begins a new epoch if nodes that are gone may have left room for the names
// of one that came: an engine gives up no resource name before the epoch ends. The caller holds mu.
func (f *feed) heard(answer *loadlinev1.SyncResponse, now time.Time) {
	if f.unreadable.answered(answer) && f.ledger.replaced && now.Sub(f.unreadable.room) >= f.roomEvery {
		f.unreadable.room = now
		f.ledger.full.due = true
	}
}

// HearUnreadable makes each Sync report the objects that the engine could not read in full. Call it before the first
// Sync.
func (v *View) HearUnreadable(hear Unreadable) { v.unreadable.hear = hear }

// hearing is when Cycles last asked which objects the engine could not read, and whether it has to ask again.
type hearing struct {
	every  time.Duration
	due    bool // nodes went to the engine with a question since
	going  bool
	latest time.Time
}

// hearSoon notes that nodes went to the engine with a question, and asks in the background which of them it could not
// read, unless that was done a short time ago. The caller holds mu.
func (c *Cycles[N, R]) hearSoon(b *batch, now time.Time) {
	c.hearing.due = c.hearing.due || len(b.changes.GetNodes()) > 0
	if !c.hearing.due || c.hearing.going || c.unreadable.hear == nil || c.ctx.Err() != nil ||
		now.Sub(c.hearing.latest) < c.hearing.every {
		return
	}
	c.hearing.going = true
	c.wg.Add(1)
	go c.ask()
}

// ask asks without a turn, so that no cycle waits for it. It changes nothing, and may be refused because a cycle went
// on.
func (c *Cycles[N, R]) ask() {
	defer c.wg.Done()
	defer func() {
		if r := recover(); r != nil { // a panic in a goroutine of ours would end the scheduler
			c.events.Synced(errPanic(r))
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.hearing.going, c.hearing.latest = false, time.Now()
	}()
	for range hearAttempts {
		if c.askOnce() {
			return
		}
	}
}

func (c *Cycles[N, R]) askOnce() (heard bool) {
	c.mu.Lock()
	at, known := c.ledger.pin(), c.ledger.standsAtPin()
	c.mu.Unlock()
	if !known {
		return true // what is sent next is reported
	}
	ctx, cancel := context.WithTimeout(c.ctx, backgroundPatience)
	defer cancel()
	answer, err := c.client.Sync(ctx, &loadlinev1.SyncRequest{Changes: at})
	if err != nil {
		return !refused(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hearing.due = c.hearing.due && (c.ledger.acked != at.GetRevision() || c.ledger.epoch != at.GetEpoch())
	c.heard(answer, time.Now())
	return true
}

package view

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"loadline.dev/shim/api/loadlinev1"
)

// backgroundPatience is how long one message of the background may take.
const backgroundPatience = 5 * time.Second

// inlineLimits bound what a question carries and what is done for it. More is done in the background, so that a
// first sync can neither stall a scheduling cycle nor fail for ever at the cycle's timeout.
type inlineLimits struct {
	bytes       int // of changes
	bytesUnsure int // the same, when the last question had an unknown outcome: perhaps for its size
	trims       int // pods to trim, at 1 to 3 microseconds each
}

var defaultInline = inlineLimits{bytes: 256 << 10, bytesUnsure: 16 << 10, trims: 1000}

// ErrSyncing says that the engine is being brought up to date in the background: there is no question to ask in
// this cycle.
var ErrSyncing = errors.New("the engine is being brought up to date")

var errUnknownOutcome = errors.New("unknown outcome")

// Cycles is one scheduler's cluster, fed with the NodeInfos of each scheduling cycle. A node is compared, by its
// generation, when it comes up as feasible; other nodes cost nothing. Safe for concurrent use, but a cycle that
// asks while another one does gets ErrSyncing.
type Cycles struct {
	feed
	events Events
	inline inlineLimits
	// byObject finds the entry of a node by its object, at a third of the price of its name. Guarded by feed.mu.
	byObject map[*v1.Node]*entry
	hearing  hearing // guarded by feed.mu

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// Events are what happens beside the questions. Each function may be nil.
type Events struct {
	// Synced hears how each background sync ended.
	Synced func(err error)
	// LeftOut hears of a node that the engine finds invalid, such as one with a negative amount, or has no room
	// for: it has no slot until it changes. Called with locks held: it must not call back.
	LeftOut func(node string, err error)
	// Unreadable hears of what the engine could not read in full.
	Unreadable Unreadable
}

// NewCycles returns an empty view.
func NewCycles(conn grpc.ClientConnInterface, name string, events Events) *Cycles {
	if events.Synced == nil {
		events.Synced = func(error) {}
	}
	if events.LeftOut == nil {
		events.LeftOut = func(string, error) {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &Cycles{
		feed: newFeed(conn, newLedger(name, false, true)), events: events, inline: defaultInline,
		byObject: map[*v1.Node]*entry{}, hearing: hearing{every: hearEvery}, ctx: ctx, cancel: cancel,
	}
	c.ledger.leaveOut, c.unreadable.hear = events.LeftOut, events.Unreadable
	return c
}

// Close ends the background sync. No question may be asked afterwards.
func (c *Cycles) Close() {
	c.cancel()
	c.wg.Wait()
}

// Wait waits for what goes on in the background.
func (c *Cycles) Wait() { c.wg.Wait() }

// NoSlot stands for a node that the engine has left out.
const NoSlot = noSlot

// Question asks the engine: changes lead it to the state in which it is asked; slots are those of the feasible
// nodes, in their order, NoSlot among them.
type Question func(changes *loadlinev1.Changes, slots []int32) error

// Ask calls ask with what the engine has to know for a question about the feasible nodes of a cycle. `all` are
// the nodes of the scheduler's snapshot, among them the feasible ones; both are read only before ask is called.
// Returns ErrSyncing, or the error of ask. After a refusal the next cycle sends everything that it needs again.
func (c *Cycles) Ask(feasible, all []fwk.NodeInfo, ask Question) error {
	if c.ctx.Err() != nil || !c.turn.TryLock() {
		return ErrSyncing
	}
	handedOver := false
	defer func() {
		if !handedOver {
			c.turn.Unlock()
		}
	}()
	slots := make([]int32, len(feasible))
	b, work := c.prepare(feasible, all, slots)
	if work != nil {
		handedOver = true
		c.wg.Add(1)
		go c.syncInBackground(work)
		return ErrSyncing
	}
	err := errUnknownOutcome // holds if ask panics
	defer func() { c.note(b, err) }()
	err = ask(b.changes, slots)
	return err
}

// prepare fills in the slots and returns the batch that goes with the question, or else what is to be sent in the
// background.
func (c *Cycles) prepare(feasible, all []fwk.NodeInfo, slots []int32) (*batch, []nodeWork) {
	c.mu.Lock()
	defer c.mu.Unlock()
	complete := false
	defer func() {
		if !complete {
			c.reset()
		}
	}()
	now := time.Now().UnixNano()
	if c.ledger.full.due { // before the comparison: it must find that the engine has nothing
		c.ledger.startEpoch(now)
	}
	updated := c.update(feasible, slots)
	if c.ledger.present > len(all) {
		c.sweep(all)
	}
	var b *batch
	var work []nodeWork
	switch {
	case !updated || c.tooMuch():
		work = c.collect(all)
	case c.ledger.pending():
		b = c.ledger.build(math.MaxInt, now)
	default:
		b = &batch{changes: c.ledger.pin(), pinned: true}
	}
	complete = true
	return b, work
}

// reset forgets everything after a panic: the books are not to be trusted. The caller holds mu.
func (c *Cycles) reset() {
	c.ledger.reset()
	c.byObject = map[*v1.Node]*entry{}
}

// note takes down the outcome of a question.
func (c *Cycles) note(b *batch, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !b.pinned {
		c.ledger.finish(b, outcomeOf(err))
	} else if refused(outcomeOf(err)) {
		c.ledger.full.due = true
	}
	if outcomeOf(err) == nil {
		c.hearSoon(b, time.Now())
	}
}

// update compares the feasible nodes with the books and fills in their slots. It gives up and returns false when
// too many pods have to be trimmed. The caller holds mu.
func (c *Cycles) update(feasible []fwk.NodeInfo, slots []int32) bool {
	trims := 0
	for i, info := range feasible {
		node := info.Node()
		e := c.byObject[node]
		if generation := info.GetGeneration(); e == nil || e.clean != generation || generation == 0 {
			if trims > c.inline.trims {
				return false
			}
			e = c.ledger.entry(node.Name)
			pods := info.GetPods()
			trims += c.set(e, node, generation, len(pods), func(i int) *v1.Pod { return pods[i].GetPod() })
		}
		if slots[i] = e.slot; e.leftOut() {
			slots[i] = NoSlot
		}
	}
	return true
}

// tooMuch says whether the changes are too large to go with a question, or invalid. The caller holds mu.
func (c *Cycles) tooMuch() bool {
	if len(c.ledger.queue) == 0 {
		return false
	}
	if c.ledger.careful || c.ledger.full.index > 0 { // a question does not go on with a full list
		return true
	}
	bound := c.inline.bytes
	if c.ledger.unsure {
		bound = c.inline.bytesUnsure
	}
	return c.ledger.queuedBytes(bound) > bound
}

// set gives an entry the content of a NodeInfo and returns how many pods had to be trimmed for it. The caller
// holds mu.
func (c *Cycles) set(e *entry, node *v1.Node, generation int64, pods int, pod func(int) *v1.Pod) int {
	e.generation = generation
	if e.object != node {
		delete(c.byObject, e.object)
		e.object = node
		c.byObject[node] = e
		if trimmed := TrimNode(node); !e.present() || string(e.node) != string(trimmed) {
			c.ledger.setNode(e, trimmed)
		}
	}
	trims, changed := c.setPods(e, pods, pod)
	switch {
	case changed:
		c.ledger.touch(e)
	case e.acked != e.version:
		c.ledger.enqueue(e) // the engine lost it
	default:
		e.clean = generation // other objects of the same content, such as a heartbeat's
	}
	return trims
}

// setPods gives an entry its pods. Those that it had are recognized and not trimmed again.
func (c *Cycles) setPods(e *entry, count int, pod func(int) *v1.Pod) (trims int, changed bool) {
	before := e.pods
	after := make([]podEntry, count)
	changed = count != len(before)
	for i := range after {
		p := pod(i)
		if known := recall(before, i, p); known != nil {
			after[i] = *known
			after[i].pod = p
			after[i].shape.refs++
		} else {
			trims++
			after[i] = podEntry{shape: c.ledger.shapes.acquire(TrimPod(p)), uid: string(p.UID),
				resourceVersion: p.ResourceVersion, pod: p}
		}
		changed = changed || after[i].shape != before[i].shape
	}
	for i := range before {
		c.ledger.shapes.release(before[i].shape, c.ledger.batches)
	}
	e.pods = after
	return trims, changed
}

// recall finds a pod among those that its node had, most likely at the same place: the very object, or another
// object of the same UID and resourceVersion.
func recall(before []podEntry, i int, pod *v1.Pod) *podEntry {
	if i < len(before) && before[i].is(pod) {
		return &before[i]
	}
	for j := range before {
		if before[j].is(pod) {
			return &before[j]
		}
	}
	return nil
}

func (p *podEntry) is(pod *v1.Pod) bool {
	return p.pod == pod ||
		p.uid == string(pod.UID) && p.resourceVersion == pod.ResourceVersion && p.uid != "" && p.resourceVersion != ""
}

// sweep removes the nodes that the snapshot does not list any more. The caller holds mu.
func (c *Cycles) sweep(all []fwk.NodeInfo) {
	listed := make(map[string]bool, len(all))
	for _, info := range all {
		listed[info.Node().Name] = true
	}
	for name, e := range c.ledger.entries {
		if !e.present() || listed[name] {
			continue
		}
		for i := range e.pods {
			c.ledger.shapes.release(e.pods[i].shape, c.ledger.batches)
		}
		e.pods = nil
		delete(c.byObject, e.object)
		c.ledger.removeNode(e)
	}
}

// nodeWork is a changed node that is left to the background. The framework may change a NodeInfo as soon as the
// cycle goes on, but not the objects in it.
type nodeWork struct {
	node       *v1.Node
	generation int64
	pods       []*v1.Pod
}

// collect lists the nodes that changed. The caller holds mu.
func (c *Cycles) collect(all []fwk.NodeInfo) []nodeWork {
	out := []nodeWork{}
	for _, info := range all {
		generation := info.GetGeneration()
		if e := c.byObject[info.Node()]; e != nil && e.clean == generation && generation != 0 {
			continue
		}
		work := nodeWork{node: info.Node(), generation: generation, pods: make([]*v1.Pod, len(info.GetPods()))}
		for i, pod := range info.GetPods() {
			work.pods[i] = pod.GetPod()
		}
		out = append(out, work)
	}
	return out
}

// syncInBackground takes over turn from Ask.
func (c *Cycles) syncInBackground(work []nodeWork) {
	defer c.wg.Done()
	err := errUnknownOutcome
	defer func() {
		if r := recover(); r != nil { // a panic in a goroutine of ours would end the scheduler
			err = errPanic(r)
		}
		c.turn.Unlock()
		c.events.Synced(err)
	}()
	c.take(work)
	err = c.sync(c.ctx, backgroundPatience)
}

func errPanic(r any) error { return fmt.Errorf("panic: %v", r) }

func (c *Cycles) take(work []nodeWork) {
	c.mu.Lock()
	defer c.mu.Unlock()
	complete := false
	defer func() {
		if !complete {
			c.reset()
		}
	}()
	for _, w := range work {
		c.set(c.ledger.entry(w.node.Name), w.node, w.generation, len(w.pods), func(i int) *v1.Pod { return w.pods[i] })
	}
	complete = true
}

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

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/kuberelease"
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
// generation, when it is feasible; other nodes cost nothing. Within the cycle of a pod group it is compared by
// its pods: the scheduler then places pods in its snapshot, and takes them away again, without another generation.
// Safe for concurrent use, but a cycle that asks while another one does gets ErrSyncing. N is the type of a NodeInfo.
type Cycles[N any, R NodeReader[N]] struct {
	feed
	read   R
	events Events
	inline inlineLimits
	// byObject finds the entry of a node by its object, at a third of the price of its name. Guarded by feed.mu.
	byObject map[*v1.Node]*entry
	hearing  hearing // guarded by feed.mu
	// group is that of the last cycle, of which tentative have the content. Guarded by feed.mu.
	group     any
	tentative []*entry
	memory    memory        // guarded by feed.turn
	workloads bool          // pods state theirs
	blockers  bool          // pods state what says whether they block drains
	synced    chan struct{} // closed when the background sync under way ends; nil: there is none. Guarded by feed.mu

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// Events are what happens beside the questions. Each function may be nil.
type Events struct {
	// Synced hears how each background sync ended.
	Synced func(err error)
	// LeftOut hears of a node that the engine finds invalid, such as one with a negative amount, or has no room
	// for: it has no slot until it changes. Called with locks taken: it must not call back.
	LeftOut func(node string, err error)
	// Unreadable hears of what the engine could not read in full.
	Unreadable Unreadable
}

// NewCycles returns an empty view.
func NewCycles[N any, R NodeReader[N]](conn grpc.ClientConnInterface, name string, events Events) *Cycles[N, R] {
	if events.Synced == nil {
		events.Synced = func(error) {}
	}
	if events.LeftOut == nil {
		events.LeftOut = func(string, error) {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &Cycles[N, R]{
		feed: newFeed(conn, newLedger(name, false, true)), events: events, inline: defaultInline,
		byObject: map[*v1.Node]*entry{}, hearing: hearing{every: hearEvery}, ctx: ctx, cancel: cancel,
	}
	c.ledger.leaveOut, c.unreadable.hear = events.LeftOut, events.Unreadable
	c.ledger.minor = kuberelease.Compiled() // that of the scheduler around us, by whose rules its NodeInfos add up
	return c
}

// Close ends the background sync. A question under way then ends without one, and later ones get ErrSyncing.
func (c *Cycles[N, R]) Close() {
	c.mu.Lock()
	c.cancel() // with mu locked: nothing begins in the background after Wait
	c.mu.Unlock()
	c.wg.Wait()
}

// awaitEvery is how often Await has another look where another question is under way.
const awaitEvery = time.Millisecond

// Await waits after ErrSyncing until it is worth while to ask again. It returns false where ctx ends first.
func (c *Cycles[N, R]) Await(ctx context.Context) bool {
	c.mu.Lock()
	synced := c.synced
	c.mu.Unlock()
	var later <-chan time.Time
	if synced == nil {
		later = time.After(awaitEvery)
	}
	select {
	case <-synced:
	case <-later:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// Wait waits for what runs in the background.
func (c *Cycles[N, R]) Wait() { c.wg.Wait() }

// NoSlot is the slot of a node that the engine has left out.
const NoSlot = noSlot

// NodeReader reads a NodeInfo of a scheduler. View knows none itself, so that programs without a scheduler need nothing
// of one.
type NodeReader[N any] interface {
	Node(info N) *v1.Node
	// Generation returns a number that changes with the NodeInfo; 0: it has none.
	Generation(info N) int64
	Pods(info N) int
	Pod(info N, i int) *v1.Pod
}

// NodeLister lists the nodes of a scheduler, and finds them by name.
type NodeLister[N any] interface {
	List() ([]N, error)
	Get(name string) (N, error)
}

// Cycle is what one scheduling cycle sees.
type Cycle[N any] struct {
	// Feasible are the nodes that are asked about. An HTTP extender may have made them: with a node, but without its pods.
	Feasible []N
	// Snapshot lists all nodes of the scheduler. What a node holds is read there.
	Snapshot NodeLister[N]
	// Group is not nil in the cycle of a pod group, and another value for each of these.
	Group any
}

// Question asks the engine: changes lead it to the state in which it is asked; slots are those of the feasible
// nodes, in their order, NoSlot among them.
type Question func(changes *loadlinev1.Changes, slots []int32) error

// Ask calls ask with what the engine has to know for a question about the feasible nodes of a cycle, which is read only
// before ask is called. Returns ErrSyncing, or the error of ask. After a refusal the next cycle sends everything that
// it needs again.
func (c *Cycles[N, R]) Ask(cycle Cycle[N], ask Question) error {
	return c.question(cycle, func(slots []int32) []int32 { return slots }, ask)
}

// question is Ask about the slots that pick returns; ask is not called if these are nil.
func (c *Cycles[N, R]) question(cycle Cycle[N], pick func(slots []int32) []int32, ask Question) error {
	if c.ctx.Err() != nil || !c.turn.tryLock() {
		return ErrSyncing
	}
	handedOver := false
	defer func() {
		if !handedOver {
			c.turn.unlock()
		}
	}()
	slots, b, work, err := c.prepare(cycle, pick)
	switch {
	case err != nil || slots == nil && work == nil:
		return err
	case work != nil:
		handedOver = c.syncSoon(work)
		return ErrSyncing
	}
	err = errUnknownOutcome // holds if ask panics
	defer func() { c.note(b, err) }()
	err = ask(b.changes, slots)
	return err
}

// prepare returns the slots that are asked about and the batch that is sent with the question, or else what is to be
// sent in the background, or nothing of it where there is nothing to ask.
func (c *Cycles[N, R]) prepare(cycle Cycle[N], pick func([]int32) []int32) (slots []int32, b *batch, work []content,
	err error) {
	all, err := cycle.Snapshot.List()
	if err != nil {
		return nil, nil, nil, err
	}
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
	slots = make([]int32, len(cycle.Feasible))
	updated := c.update(cycle, slots)
	if c.ledger.present > len(all) {
		c.sweep(all)
	}
	if !updated || c.tooMuch() {
		complete = true
		return nil, nil, c.collect(all, cycle.Group), nil
	}
	slots = pick(slots)
	switch {
	case slots == nil:
	case c.ledger.pending():
		b = c.ledger.build(math.MaxInt, now)
	default:
		b = &batch{changes: c.ledger.pin(), pinned: true}
	}
	complete = true
	return slots, b, nil, nil
}

// reset forgets everything after a panic: the books are not to be trusted. The caller holds mu.
func (c *Cycles[N, R]) reset() {
	c.ledger.reset()
	c.byObject = map[*v1.Node]*entry{}
	c.group, c.tentative = nil, nil
}

// note takes down the outcome of a question.
func (c *Cycles[N, R]) note(b *batch, err error) {
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

// tooMuch says whether the changes are too large to go with a question, or invalid. The caller holds mu.
func (c *Cycles[N, R]) tooMuch() bool {
	if len(c.ledger.queue) == 0 && len(c.ledger.objects.queue) == 0 {
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

// syncSoon starts a background sync, which takes over turn; false: the view is closed.
func (c *Cycles[N, R]) syncSoon(work []content) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return false
	}
	c.synced = make(chan struct{})
	c.wg.Add(1)
	go c.syncInBackground(work, c.synced)
	return true
}

func (c *Cycles[N, R]) syncInBackground(work []content, synced chan struct{}) {
	defer c.wg.Done()
	defer close(synced)
	err := errUnknownOutcome
	defer func() {
		if r := recover(); r != nil { // a panic in a goroutine of ours would end the scheduler
			err = errPanic(r)
		}
		c.mu.Lock()
		c.synced = nil
		c.mu.Unlock()
		c.turn.unlock()
		c.events.Synced(err)
	}()
	c.take(work)
	err = c.sync(c.ctx, backgroundPatience)
}

func errPanic(r any) error { return fmt.Errorf("panic: %v", r) }

func (c *Cycles[N, R]) take(work []content) {
	c.mu.Lock()
	defer c.mu.Unlock()
	complete := false
	defer func() {
		if !complete {
			c.reset()
		}
	}()
	for _, w := range work {
		c.set(c.ledger.entry(w.node.Name), w)
	}
	complete = true
}

package view

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"loadline.dev/shim/api/loadlinev1"
)

const (
	// chunkBytes bounds a batch that is sent on its own, of what a message may have.
	chunkBytes = 1 << 20
	// maxRefusals bounds the full lists that one Sync sends one after another: more mean that somebody else
	// writes to the view.
	maxRefusals = 2
)

// feed is a ledger with its connection.
type feed struct {
	conn   grpc.ClientConnInterface
	client loadlinev1.ClusterStateClient
	chunk  int // bytes of a batch that is sent on its own
	// turn is locked exclusively while batches are sent, and shared by questions that change nothing, so that the
	// engine stays at the revision that they name.
	turn      turn
	mu        sync.Mutex
	ledger    ledger        // guarded by mu
	roomEvery time.Duration // see roomEvery
	// unreadable hears of what the engine could not read. Guarded by mu.
	unreadable unreadable
}

func newFeed(conn grpc.ClientConnInterface, ledger ledger) feed {
	return feed{conn: conn, client: loadlinev1.NewClusterStateClient(conn), chunk: chunkBytes, turn: newTurn(),
		ledger: ledger, roomEvery: roomEvery}
}

// sync sends what the engine lacks at the time of the call; the caller holds turn. Each message may take as long
// as `patience`; 0: as long as ctx.
func (f *feed) sync(ctx context.Context, patience time.Duration) error {
	for refusals := 0; ; {
		b := f.next()
		if b == nil {
			return nil
		}
		again, err := f.send(ctx, b, patience)
		switch {
		case err == nil && b.last:
			return nil
		case err != nil && refused(err) && refusals < maxRefusals:
			refusals++
		case err != nil && !again:
			return err
		}
	}
}

// pending says whether the engine lacks anything, or may do so.
func (f *feed) pending() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ledger.pending()
}

func (f *feed) next() *batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ledger.pending() {
		return nil
	}
	return f.ledger.build(f.chunk, time.Now().UnixNano())
}

// send also says whether the next batch may do better than one that was rejected.
func (f *feed) send(ctx context.Context, b *batch, patience time.Duration) (again bool, err error) {
	if patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	answer, err := f.client.Sync(ctx, &loadlinev1.SyncRequest{Changes: b.changes})
	f.mu.Lock()
	defer f.mu.Unlock()
	again = f.ledger.finish(b, err)
	// Else it tells of the state before the list.
	if list := b.changes.GetFullList(); err == nil && (list == nil || list.GetLast()) {
		f.heard(answer, time.Now())
		b.last = b.last && !f.ledger.full.due
	}
	return again, err
}

// restart makes the next batch start a full list: the engine has lost the view.
func (f *feed) restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ledger.full.due = true
}

var errLostView = status.Error(codes.FailedPrecondition, "the engine has lost the view")

package guard

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestAsk(t *testing.T) {
	for name, c := range map[string]struct {
		ask     func(context.Context) (int, error)
		answer  int
		verdict Verdict
	}{
		"answer":    {func(context.Context) (int, error) { return 7, nil }, 7, Answered},
		"error":     {func(context.Context) (int, error) { return 0, errAway }, 0, Away},
		"not asked": {func(context.Context) (int, error) { return 8, ErrNotAsked }, 8, NotAsked},
		"panic":     {func(context.Context) (int, error) { panic("injected") }, 0, Panicked},
		"heeds the time-out": {func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, status.FromContextError(ctx.Err()).Err()
		}, 0, Late},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := New(&link{up: true}, Options{AtOnce: 1, Timeout: time.Second})
				answer, verdict, err := Ask(t.Context(), g, c.ask)
				if answer != c.answer || verdict != c.verdict || (err == nil) != (verdict == Answered || verdict == NotAsked) {
					t.Errorf("got %d, verdict %v, error %v", answer, verdict, err)
				}
			})
		})
	}
}

// A question that hangs holds up its caller until the time-out, and keeps its ticket.
func TestAskWithAnEngineThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(&link{up: true}, Options{AtOnce: 1, Timeout: time.Second})
		release := make(chan struct{})
		hangs := func(context.Context) (int, error) { <-release; return 1, nil }
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		if _, verdict, _ := Ask(gone, g, hangs); verdict != Late || time.Since(began) != time.Second {
			t.Errorf("verdict %v after %v: a caller that hangs up does not end a question", verdict, time.Since(began))
		}
		if _, verdict, _ := Ask(t.Context(), g, hangs); verdict != Busy || time.Since(began) != time.Second {
			t.Errorf("verdict %v while a question hangs, want Busy", verdict)
		}
		close(release)
		synctest.Wait()
		if answer, verdict, _ := Ask(t.Context(), g, hangs); answer != 1 || verdict != Answered {
			t.Errorf("got %d, verdict %v after the question had ended", answer, verdict)
		}
	})
}

// Without a time-out of the guard the context ends a question, and one that has ended already says nothing.
func TestAskWithTheTimeOfItsContext(t *testing.T) {
	g := New(&link{up: true}, Options{AtOnce: 1})
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for range Failures + 1 {
		if _, verdict, err := Ask(late, g, func(context.Context) (int, error) { return 1, nil }); verdict != Late ||
			status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("verdict %v, error %v", verdict, err)
		}
	}
	if !g.Allow() {
		t.Error("questions for which there was no time opened the guard")
	}
}

// An open guard asks nothing. The question that it lets through is not used up by one that does not ask.
func TestAskWithAnOpenGuard(t *testing.T) {
	g := newGuarded(&link{up: true})
	fail(g, Failures)
	none := func(context.Context) (int, error) { return 0, ErrNotAsked }
	if _, verdict, _ := Ask(t.Context(), g.Guard, none); verdict != Open {
		t.Errorf("verdict %v, want Open", verdict)
	}
	g.now = g.now.Add(ProbeInterval)
	for range 2 {
		if _, verdict, err := Ask(t.Context(), g.Guard, none); verdict != NotAsked || err != nil {
			t.Errorf("verdict %v, error %v, want NotAsked", verdict, err)
		}
	}
	probe := func(context.Context) (int, error) { return 0, errors.New("fails") }
	if _, verdict, _ := Ask(t.Context(), g.Guard, probe); verdict != Failed || g.Allow() {
		t.Errorf("verdict %v, want one probe", verdict)
	}
}

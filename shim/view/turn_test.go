package view

import (
	"context"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/testing/enginetest"
)

// longQuestion has a question under way until the returned function is called.
func longQuestion(t *testing.T, v *View) (end func()) {
	t.Helper()
	begun, ended := make(chan struct{}), make(chan struct{})
	var under sync.WaitGroup
	under.Go(func() {
		if err := v.Ask(t.Context(), func(*loadlinev1.Changes) error { close(begun); <-ended; return nil }); err != nil {
			t.Error(err)
		}
	})
	<-begun
	return func() { close(ended); under.Wait() }
}

func noQuestion(*loadlinev1.Changes) error { return nil }

func TestAQuestionWithoutChangesDoesNotWaitForAnother(t *testing.T) {
	v := New(enginetest.Open(t), "v")
	v.SetNode(named("a"))
	expectSync(t, v)
	end := longQuestion(t, v)
	defer end()
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	asked := false
	if err := v.Ask(ctx, func(*loadlinev1.Changes) error { asked = true; return ctx.Err() }); err != nil || !asked {
		t.Errorf("asked: %v, error %v", asked, err)
	}
	if err := v.Sync(ctx); err != nil {
		t.Errorf("Sync without changes: %v", err)
	}
}

func TestWaitingForATurnEndsWithTheContext(t *testing.T) {
	v := New(enginetest.Open(t), "v")
	v.SetNode(named("a"))
	expectSync(t, v)
	end := longQuestion(t, v)
	v.SetNode(named("b"))
	for name, wait := range map[string]func(ctx context.Context) error{
		"Sync": v.Sync,
		"Ask":  func(ctx context.Context) error { return v.Ask(ctx, noQuestion) },
		"Drop": v.Drop,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if err := wait(ctx); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("%s with changes behind a question: got error %v, want that of the context", name, err)
		}
		cancel()
	}
	end()
	expectSync(t, v)
	if _, held := v.Slot("b"); !held {
		t.Error("the change was not sent after the question had ended")
	}
}

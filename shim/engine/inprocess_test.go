package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/internal/testing/enginetest"
)

func syncRequest(view string) *loadlinev1.SyncRequest {
	return &loadlinev1.SyncRequest{Changes: &loadlinev1.Changes{
		View: view, Epoch: 1, Revision: 1, FullList: &loadlinev1.FullListChunk{Last: true},
	}}
}

func TestInProcessCalls(t *testing.T) {
	conn := enginetest.Open(t)
	client := loadlinev1.NewClusterStateClient(conn)
	answer, err := client.Sync(t.Context(), syncRequest("a"))
	if err != nil || answer.GetEpoch() != 1 || answer.GetRevision() != 1 {
		t.Errorf("Sync: got %v and error %v", answer, err)
	}
	if _, err := client.Describe(t.Context(),
		&loadlinev1.DescribeRequest{View: "b"}); status.Code(err) != codes.NotFound {
		t.Errorf("Describe of another view: got error %v, want NotFound", err)
	}
	if version := conn.(interface{ Version() string }).Version(); version == "" {
		t.Error("the engine has no version")
	}
}

func TestEnginesInOneProcessAreApart(t *testing.T) {
	first, second := enginetest.Open(t), enginetest.Open(t)
	if _, err := loadlinev1.NewClusterStateClient(first).Sync(t.Context(), syncRequest("a")); err != nil {
		t.Fatal(err)
	}
	answer, err := loadlinev1.NewClusterStateClient(second).Describe(t.Context(), &loadlinev1.DescribeRequest{})
	if err != nil || len(answer.GetViews()) != 0 {
		t.Errorf("the second engine holds %v, error %v", answer.GetViews(), err)
	}
}

// Invariant H1.
func TestInProcessHeedsTheContext(t *testing.T) {
	client := loadlinev1.NewClusterStateClient(enginetest.Open(t))
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.Sync(canceled, syncRequest("a")); status.Code(err) != codes.Canceled {
		t.Errorf("canceled: got error %v", err)
	}
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if _, err := client.Sync(late, syncRequest("a")); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("late: got error %v", err)
	}
	answer, err := client.Describe(t.Context(), &loadlinev1.DescribeRequest{})
	if err != nil || len(answer.GetViews()) != 0 {
		t.Errorf("the engine was asked all the same: it holds %v, error %v", answer.GetViews(), err)
	}
}

func TestInProcessRefusesWhatIsNoCall(t *testing.T) {
	conn := enginetest.Open(t)
	if err := conn.Invoke(t.Context(), "/x/y", "text", &loadlinev1.DropResponse{}); status.Code(err) != codes.Internal {
		t.Errorf("a text as a message: got error %v", err)
	}
	broken := &loadlinev1.DropRequest{View: "\xff"}
	if err := conn.Invoke(t.Context(), "/x/y", broken, &loadlinev1.DropResponse{}); status.Code(err) != codes.Internal {
		t.Errorf("a text that is not UTF-8: got error %v", err)
	}
	if _, err := conn.NewStream(t.Context(), nil, "/x/y"); status.Code(err) != codes.Unimplemented {
		t.Errorf("a stream: got error %v", err)
	}
}

// Close waits for calls under way; those after it fail.
func TestCloseDuringCalls(t *testing.T) {
	for range 20 {
		conn, err := engine.Open(enginetest.Address(t))
		if err != nil {
			t.Fatal(err)
		}
		client := loadlinev1.NewClusterStateClient(conn)
		var wg sync.WaitGroup
		for caller := range 4 {
			view := fmt.Sprint("view-", caller)
			wg.Go(func() {
				for {
					_, err := client.Sync(context.Background(), syncRequest(view))
					if status.Code(err) == codes.Canceled {
						return
					}
					if err != nil {
						t.Errorf("got error %v", err)
						return
					}
				}
			})
		}
		time.Sleep(2 * time.Millisecond)
		if err := errors.Join(conn.Close(), conn.Close()); err != nil {
			t.Error(err)
		}
		wg.Wait()
	}
}

func BenchmarkCall(b *testing.B) {
	client := loadlinev1.NewClusterStateClient(enginetest.Open(b))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := client.Sync(b.Context(), syncRequest("a")); err != nil {
			b.Fatal(err)
		}
	}
}

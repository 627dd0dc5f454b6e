package extender

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/guard"
)

// knownNodes is a state in which each node has a slot.
type knownNodes map[string]int32

func (k knownNodes) Slot(name string) (int32, bool) {
	slot, ok := k[name]
	return slot, ok
}

func (k knownNodes) Ask(_ context.Context, ask func(*loadlinev1.Changes) error) error {
	return ask(&loadlinev1.Changes{View: "test", Epoch: 1, BaseRevision: 3, Revision: 3})
}

// scriptedEngine answers Score with a function.
type scriptedEngine struct {
	loadlinev1.SchedulerExtenderClient // nil: nothing else is asked
	calls                              atomic.Int32
	score                              func(ctx context.Context,
		in *loadlinev1.ScoreRequest) (*loadlinev1.ScoreResponse, error)
	line func(ctx context.Context,
		in *loadlinev1.CheckLoadLineRequest) (*loadlinev1.CheckLoadLineResponse, error)
}

func (e *scriptedEngine) Score(ctx context.Context, in *loadlinev1.ScoreRequest,
	_ ...grpc.CallOption) (*loadlinev1.ScoreResponse, error) {
	e.calls.Add(1)
	return e.score(ctx, in)
}

// slotTimesTen gives the node in slot n the score 10 n.
func slotTimesTen(_ context.Context, in *loadlinev1.ScoreRequest) (*loadlinev1.ScoreResponse, error) {
	response := &loadlinev1.ScoreResponse{}
	for _, slot := range in.GetSlots() {
		response.Scores = append(response.Scores, slot*10)
	}
	return response, nil
}

// localConn is a connection that cannot be lost.
type localConn struct{ grpc.ClientConnInterface }

func (localConn) Close() error { return nil }

type bench struct {
	*prioritizer
	engine   *scriptedEngine
	suspects atomic.Int32
}

func newBench(score func(context.Context, *loadlinev1.ScoreRequest) (*loadlinev1.ScoreResponse, error)) *bench {
	engine := &scriptedEngine{score: score}
	b := &bench{engine: engine}
	b.prioritizer = &prioritizer{
		state: knownNodes{"a": 1, "b": 2, "c": 10}, engine: engine,
		policy:  &loadlinev1.ScorePolicy{Preset: loadlinev1.ScorePolicy_STRICT},
		guard:   guard.New(localConn{}, guard.Options{AtOnce: maxInFlight, Timeout: DefaultTimeout}),
		metrics: newMetrics("test"),
		synced:  func() bool { return true }, suspect: func() { b.suspects.Add(1) },
		reading: make(chan struct{}, maxReading), bodies: &byteBudget{limit: maxBodiesBytes},
	}
	return b
}

// post sends a body and returns the answer.
func (b *bench) post(t *testing.T, body string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	b.ServeHTTP(w, httptest.NewRequest(http.MethodPost, PrioritizePath, strings.NewReader(body)))
	return w
}

func (b *bench) skipped(reason string) float64 {
	return testutil.ToFloat64(b.metrics.skips.WithLabelValues(reason))
}

func ask(names ...string) string {
	list, _ := json.Marshal(names)
	return `{"Pod":{"metadata":{"name":"p"}},"NodeNames":` + string(list) + `}`
}

func hosts(pairs ...any) extenderv1.HostPriorityList {
	list := extenderv1.HostPriorityList{}
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, extenderv1.HostPriority{Host: pairs[i].(string), Score: int64(pairs[i+1].(int))})
	}
	return list
}

func answerOf(t *testing.T, w *httptest.ResponseRecorder) extenderv1.HostPriorityList {
	t.Helper()
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	if got := w.Header().Get("Content-Length"); got != strconv.Itoa(w.Body.Len()) {
		t.Errorf("Content-Length %q of %d bytes", got, w.Body.Len())
	}
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type %q", got)
	}
	var list extenderv1.HostPriorityList
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// Invariants A2, A8.
func TestScoresInTheOrderAsked(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       extenderv1.HostPriorityList
	}{
		{"Order", ask("c", "a", "b"), hosts("c", 10, "a", 1, "b", 2)},
		{"LowerCase", `{"pod":{"metadata":{"name":"p"}},"nodenames":["a"]}`, hosts("a", 1)},
		{"UnknownIsZero", ask("x", "c", "y"), hosts("x", 0, "c", 10, "y", 0)},
		{"TwiceIsOnce", ask("c", "c", "a", "c"), hosts("c", 10, "a", 1)},
		{"HostileNames", ask("a\x00", "\x1b[31m", "b"), hosts("a\x00", 0, "\x1b[31m", 0, "b", 2)},
		{"WholeNodes", `{"Pod":{},"Nodes":{"items":[{"metadata":{"name":"c"}},{"metadata":{"name":"b"}}]}}`,
			hosts("c", 10, "b", 2)},
		{"NoNodes", ask(), hosts()},
		{"NullNodes", `{"Pod":{},"Nodes":null,"NodeNames":null}`, hosts()},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(slotTimesTen)
			if diff := cmp.Diff(c.want, answerOf(t, b.post(t, c.body))); diff != "" {
				t.Error("(-want +got):", diff)
			}
			if got := testutil.ToFloat64(b.metrics.requests.WithLabelValues(resultScored)); got != 1 {
				t.Errorf("%v requests scored", got)
			}
		})
	}
}

func TestRequestReachesTheEngine(t *testing.T) {
	var got *loadlinev1.ScoreRequest
	b := newBench(func(ctx context.Context, in *loadlinev1.ScoreRequest) (*loadlinev1.ScoreResponse, error) {
		got = in
		return slotTimesTen(ctx, in)
	})
	answerOf(t, b.post(t, string(request(t, 0)[:len(request(t, 0))-3])+`["b","x","a"]}`))
	if diff := cmp.Diff([]int32{2, 1}, got.GetSlots()); diff != "" {
		t.Error("slots (-want +got):", diff)
	}
	if at := got.GetChanges(); at.GetRevision() != 3 || at.GetBaseRevision() != 3 {
		t.Errorf("asked at %v", at)
	}
	var pod v1.Pod
	if err := pod.Unmarshal(got.GetPod()); err != nil {
		t.Fatal(err)
	}
	if memory := pod.Spec.Containers[0].Resources.Limits.Memory(); memory.Value() != 4<<30 {
		t.Errorf("the engine was told a memory limit of %v", memory)
	}
	if len(pod.Spec.InitContainers) != 1 || pod.Spec.InitContainers[0].RestartPolicy == nil {
		t.Error("the engine was not told of the sidecar")
	}
}

// Invariant A8.
func TestTroubleIsNeutralAndCounted(t *testing.T) {
	fails := func(err error) func(context.Context, *loadlinev1.ScoreRequest) (*loadlinev1.ScoreResponse, error) {
		return func(context.Context, *loadlinev1.ScoreRequest) (*loadlinev1.ScoreResponse, error) { return nil, err }
	}
	scores := func(scores ...int32) func(context.Context, *loadlinev1.ScoreRequest) (*loadlinev1.ScoreResponse, error) {
		return func(context.Context, *loadlinev1.ScoreRequest) (*loadlinev1.ScoreResponse, error) {
			return &loadlinev1.ScoreResponse{Scores: scores}, nil
		}
	}
	for _, c := range []struct {
		name    string
		score   func(context.Context, *loadlinev1.ScoreRequest) (*loadlinev1.ScoreResponse, error)
		body    string
		reason  string
		suspect bool
	}{
		{"Unavailable", fails(status.Error(codes.Unavailable, "no socket")), ask("a", "b"), skipUnavailable, true},
		{"Internal", fails(status.Error(codes.Internal, "bug")), ask("a", "b"), skipUnavailable, true},
		{"PlainError", fails(errors.New("x")), ask("a", "b"), skipUnavailable, true},
		{"Refused", fails(status.Error(codes.FailedPrecondition, "revision")), ask("a", "b"), skipRefused, true},
		{"ViewLost", fails(status.Error(codes.NotFound, "view")), ask("a", "b"), skipRefused, true},
		{"PodRefused", fails(status.Error(codes.InvalidArgument, "cpu: negative")), ask("a", "b"), skipBadPod, false},
		{"PodMissing", slotTimesTen, `{"NodeNames":["a","b"]}`, skipBadPod, false},
		{"PodNull", slotTimesTen, `{"Pod":null,"NodeNames":["a","b"]}`, skipBadPod, false},
		{"UnknownNodes", slotTimesTen, ask("x", "y"), skipUnknown, false},
		{"TooFewScores", scores(1), ask("a", "b"), skipBadAnswer, false},
		{"TooManyScores", scores(1, 2, 3), ask("a", "b"), skipBadAnswer, false},
		{"ScoreTooHigh", scores(100, 101), ask("a", "b"), skipBadAnswer, false},
		{"ScoreNegative", scores(100, -1), ask("a", "b"), skipBadAnswer, false},
		{"Panic", func(context.Context, *loadlinev1.ScoreRequest) (*loadlinev1.ScoreResponse, error) { panic("bug") },
			ask("a", "b"), skipPanic, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(c.score)
			for _, got := range answerOf(t, b.post(t, c.body)) {
				if got.Score != 0 {
					t.Errorf("%s has score %d", got.Host, got.Score)
				}
			}
			if got := b.skipped(c.reason); got != 1 {
				t.Errorf("counted %v times as %s", got, c.reason)
			}
			if got := b.suspects.Load() > 0; got != c.suspect {
				t.Errorf("engine suspected: %v", got)
			}
			b.engine.score = slotTimesTen
			if diff := cmp.Diff(hosts("a", 1), answerOf(t, b.post(t, ask("a")))); diff != "" {
				t.Error("the next request (-want +got):", diff)
			}
		})
	}
}

// Invariant H4.
func TestNotSyncedIsNeutralWithoutAsking(t *testing.T) {
	b := newBench(slotTimesTen)
	b.synced = func() bool { return false }
	if diff := cmp.Diff(hosts("a", 0, "b", 0), answerOf(t, b.post(t, ask("a", "b")))); diff != "" {
		t.Error("(-want +got):", diff)
	}
	if b.skipped(skipNotSynced) != 1 || b.engine.calls.Load() != 0 {
		t.Error("not counted as not synced, or the engine was asked")
	}
}

// expectResults checks how many requests were none, and for how many there was no room.
func (b *bench) expectResults(t *testing.T, rejected, refused float64) {
	t.Helper()
	for result, want := range map[string]float64{resultRejected: rejected, resultRefused: refused} {
		if got := testutil.ToFloat64(b.metrics.requests.WithLabelValues(result)); got != want {
			t.Errorf("%v requests are counted as %s, want %v", got, result, want)
		}
	}
}

// Invariant H3.
func TestWhatIsNotARequestIsRejected(t *testing.T) {
	for _, c := range []struct {
		name string
		body io.Reader
		code int
		says string
	}{
		{"Malformed", strings.NewReader(`{"Pod":`), http.StatusBadRequest, "unexpected end of JSON"},
		{"Empty", strings.NewReader(""), http.StatusBadRequest, "unexpected end of JSON"},
		{"List", strings.NewReader("[]"), http.StatusBadRequest, "cannot unmarshal array"},
		{"NamesAreNumbers", strings.NewReader(`{"Pod":{},"NodeNames":[1]}`), http.StatusBadRequest, "NodeNames"},
		{"Quantity", strings.NewReader(`{"Pod":{"spec":{"overhead":{"cpu":"\u001b[31m"}}}}`), http.StatusBadRequest,
			"quantities must match"},
		{"Oversize", &endless{}, http.StatusRequestEntityTooLarge, "request body too large"},
		{"OversizeDeclared", io.LimitReader(&endless{}, maxBodyBytes+1), http.StatusRequestEntityTooLarge,
			"request body too large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(slotTimesTen)
			w := httptest.NewRecorder()
			b.ServeHTTP(w, httptest.NewRequest(http.MethodPost, PrioritizePath, c.body))
			if w.Code != c.code || !strings.Contains(w.Body.String(), c.says) {
				t.Errorf("status %d: %s", w.Code, w.Body)
			}
			if bytes.ContainsAny(w.Body.Bytes(), "\x1b\x00") {
				t.Errorf("control characters in %q", w.Body)
			}
			b.expectResults(t, 1, 0)
		})
	}
}

// endless yields white space.
type endless struct{}

func (*endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// hanging waits for the end of the context, or, as an engine that is stopped, longer.
func hanging(release <-chan struct{}) func(context.Context,
	*loadlinev1.ScoreRequest) (*loadlinev1.ScoreResponse, error) {
	return func(context.Context, *loadlinev1.ScoreRequest) (*loadlinev1.ScoreResponse, error) {
		<-release
		return nil, status.Error(codes.DeadlineExceeded, "late")
	}
}

// Invariant H1.
func TestEngineThatHangsCostsTheDeadlineAndThenNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		b := newBench(hanging(release))
		start := time.Now()
		for range guard.Failures {
			if diff := cmp.Diff(hosts("a", 0, "b", 0), answerOf(t, b.post(t, ask("a", "b")))); diff != "" {
				t.Error("(-want +got):", diff)
			}
		}
		if took := time.Since(start); took != guard.Failures*DefaultTimeout {
			t.Errorf("%d requests took %v, want the time-out of each", guard.Failures, took)
		}
		if got := b.skipped(skipDeadline); got != guard.Failures {
			t.Errorf("%v deadlines counted", got)
		}
		start = time.Now()
		answerOf(t, b.post(t, ask("a")))
		if b.skipped(skipBreakerOpen) != 1 || b.engine.calls.Load() != guard.Failures || time.Since(start) != 0 {
			t.Error("the breaker did not open")
		}
		close(release)
	})
}

// Invariant H2.
func TestTooManyRequestsAtATime(t *testing.T) {
	release := make(chan struct{})
	b := newBench(hanging(release))
	b.guard = guard.New(localConn{}, guard.Options{AtOnce: 2, Timeout: 10 * time.Millisecond})
	for range 3 {
		answerOf(t, b.post(t, ask("a")))
	}
	if b.skipped(skipDeadline) != 2 || b.skipped(skipBusy) != 1 {
		t.Errorf("%v deadlines, %v busy", b.skipped(skipDeadline), b.skipped(skipBusy))
	}
	close(release)
}

// Invariant H2.
func TestTooManyBodiesAtATime(t *testing.T) {
	b := newBench(slotTimesTen)
	b.reading = make(chan struct{})
	if w := b.post(t, ask("a")); w.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	b.expectResults(t, 0, 1)
}

// A body counts with what is made from it: short elements take many times their bytes. What people send is far below.
func TestBodiesCountWithWhatIsMadeFromThem(t *testing.T) {
	many := func(before, element, after string, bytes int) string {
		return before + strings.Repeat(element+",", bytes/(len(element)+1)) + element + after
	}
	pod := many(`{"metadata":{"name":"p","annotations":{"a":"`, "{", `"}}}`, 1<<20)
	node := many(`{"metadata":{"name":"n"},"status":{"images":[`, `{"names":["a","b"],"sizeBytes":1}`, `]}}`, 20<<10)
	for name, c := range map[string]struct {
		body string
		code int
	}{
		"EmptyNodes": {many(`{"Nodes":{"items":[`, "{}", `]}}`, 14<<20), http.StatusServiceUnavailable},
		"ShortNames": {many(`{"NodeNames":[`, `"a"`, `]}`, 14<<20), http.StatusServiceUnavailable},
		"Containers": {many(`{"Pod":{"spec":{"containers":[`, "{}", `]}},"NodeNames":["a"]}`, 1<<20),
			http.StatusServiceUnavailable},
		"PodsTwice": {many(`{"pod":{},"pod":{"spec":{"volumes":[`, "{}", `]}}}`, 1<<20),
			http.StatusServiceUnavailable},
		"NestedLists": {many(`{"Pod":{"spec":{"containers":[`, `{"ports":[{}]}`, `]}}}`, 1<<20),
			http.StatusServiceUnavailable},
		"NoJSON":     {many(`{"P\u006fd":[`, "{}", `]}`, 1<<20), http.StatusServiceUnavailable},
		"NotAPod":    {many(`[`, "{}", `]`, 1<<20), http.StatusServiceUnavailable},
		"WholeNodes": {many(`{"Pod":{},"Nodes":{"items":[`, node, `]}}`, 10<<20), http.StatusOK},
		"Names": {many(`{"Pod":{},"NodeNames":[`, `"ip-10-0-255-255.eu-central-1.compute.internal"`, `]}`, 1<<20),
			http.StatusOK},
		"LongText": {`{"Pod":` + pod + `,"NodeNames":["a"]}`, http.StatusOK},
	} {
		b := newBench(slotTimesTen)
		w := b.post(t, c.body)
		if w.Code != c.code || b.bodies.held.Load() != 0 {
			t.Errorf("%s: status %d, want %d; %d bytes are still held", name, w.Code, c.code, b.bodies.held.Load())
		}
	}
}

// All bodies together are bounded, by what was sent and not by what was announced; what was answered makes room again.
func TestBodiesAreBoundedTogether(t *testing.T) {
	hold := make(chan struct{})
	b := newBench(slotTimesTen)
	body := ask("a")
	b.bodies = &byteBudget{limit: int64(2*len(body) - 1)}
	slow, sent := io.Pipe()
	done := make(chan int)
	go func() {
		w := httptest.NewRecorder()
		b.ServeHTTP(w, httptest.NewRequest(http.MethodPost, PrioritizePath, slow))
		close(hold)
		done <- w.Code
	}()
	if _, err := io.WriteString(sent, body); err != nil {
		t.Fatal(err)
	}
	for b.bodies.held.Load() != int64(len(body)) {
		time.Sleep(time.Millisecond)
	}
	if w := b.post(t, body); w.Code != http.StatusServiceUnavailable ||
		!strings.Contains(w.Body.String(), "too large for one more") {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	b.expectResults(t, 0, 1)
	sent.Close()
	<-hold
	if code := <-done; code != http.StatusOK {
		t.Errorf("status %d of the first request", code)
	}
	if w := b.post(t, body); w.Code != http.StatusOK || b.bodies.held.Load() != 0 {
		t.Errorf("status %d, %d bytes are still held", w.Code, b.bodies.held.Load())
	}
	if maxBodiesBytes*3 > 256<<20 {
		t.Error("bodies, their buffers and names may take more than half of 512 MiB")
	}
}

func TestClientThatHangsUpSaysNothingOfTheEngine(t *testing.T) {
	b := newBench(slotTimesTen)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w := httptest.NewRecorder()
	b.ServeHTTP(w, httptest.NewRequest(http.MethodPost, PrioritizePath, strings.NewReader(ask("a"))).WithContext(ctx))
	if got := testutil.ToFloat64(b.metrics.requests.WithLabelValues(resultScored)); got != 1 || b.suspects.Load() != 0 {
		t.Error("a cancelled request was taken for a failure of the engine")
	}
}

func TestConcurrentRequestsKeepTheirAnswers(t *testing.T) {
	b := newBench(slotTimesTen)
	b.guard = guard.New(localConn{}, guard.Options{AtOnce: 64, Timeout: DefaultTimeout})
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			name, score := "a", 1
			if i%2 == 1 {
				name, score = "c", 10
			}
			w := httptest.NewRecorder()
			b.ServeHTTP(w, httptest.NewRequest(http.MethodPost, PrioritizePath, strings.NewReader(ask(name))))
			if want := fmt.Sprintf(`[{"Host":%q,"Score":%d}]`, name, score); w.Body.String() != want {
				t.Errorf("got %s want %s", w.Body, want)
			}
		})
	}
	all.Wait()
}

func BenchmarkPrioritize500(b *testing.B) {
	body := request(b, 500)
	nodes := knownNodes{}
	_, names, _, err := decodeArguments(body)
	if err != nil {
		b.Fatal(err)
	}
	for i, name := range names {
		nodes[name] = int32(i)
	}
	scores := make([]int32, 500)
	rig := newBench(func(context.Context, *loadlinev1.ScoreRequest) (*loadlinev1.ScoreResponse, error) {
		return &loadlinev1.ScoreResponse{Scores: scores}, nil
	})
	rig.state = nodes
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		rig.ServeHTTP(w, httptest.NewRequest(http.MethodPost, PrioritizePath, bytes.NewReader(body)))
		if w.Code != http.StatusOK {
			b.Fatal(w.Body)
		}
	}
}

package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/internal/testing/enginetest"
)

// recorded is what a client asks: a view, what it holds, and a question that fails.
func recorded(t *testing.T) []byte {
	t.Helper()
	var file bytes.Buffer
	client := loadlinev1.NewClusterStateClient(engine.Record(enginetest.Open(t), &file))
	if _, err := client.Sync(t.Context(), syncRequest("a")); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Describe(t.Context(), &loadlinev1.DescribeRequest{View: "a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Describe(t.Context(),
		&loadlinev1.DescribeRequest{View: "b"}); status.Code(err) != codes.NotFound {
		t.Fatal(err)
	}
	return file.Bytes()
}

func TestReplayAsksTheSameAgain(t *testing.T) {
	var got []string
	err := engine.Replay(t.Context(), enginetest.Open(t), bytes.NewReader(recorded(t)), func(r engine.Replayed) error {
		got = append(got, r.Recorded.GetMethod())
		if !r.Same || (r.Answer == nil) != (r.Err != nil) {
			t.Errorf("%s: same %t, answer %v, error %v", r.Recorded.GetMethod(), r.Same, r.Answer, r.Err)
		}
		return nil
	})
	const service = "/loadline.v1.ClusterState/"
	if want := service + "Sync " + service + "Describe " + service + "Describe"; err != nil ||
		strings.Join(got, " ") != want {
		t.Errorf("calls %v, error %v", got, err)
	}
}

func TestReplayTellsWhatDiffers(t *testing.T) {
	other := enginetest.Open(t) // it knows the view that the recording was not to find
	if _, err := loadlinev1.NewClusterStateClient(other).Sync(t.Context(), syncRequest("b")); err != nil {
		t.Fatal(err)
	}
	var same []bool
	err := engine.Replay(t.Context(), other, bytes.NewReader(recorded(t)), func(r engine.Replayed) error {
		same = append(same, r.Same)
		return nil
	})
	if err != nil || len(same) != 3 || !same[0] || !same[1] || same[2] {
		t.Errorf("same %v, error %v", same, err)
	}
}

func TestReplayRefusesWhatIsNoRecording(t *testing.T) {
	file := recorded(t)
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"empty":   {nil, "not a recording: it is empty"},
		"text":    {[]byte("apiVersion: v1\n"), "call 0: not a recording"},
		"cut off": {file[:len(file)-1], "the recording ends within a call"},
		"method":  {append([]byte{6, 10, 4}, "/a/b"...), `call 0: method "/a/b"`},
	} {
		err := engine.Replay(t.Context(), enginetest.Open(t), bytes.NewReader(c.file),
			func(engine.Replayed) error { return nil })
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// The memory of the engine from loop to loop is part of each question: a recording replays a whole loop, with what
// became late and what was done.
func TestReplayOfLoops(t *testing.T) {
	var file bytes.Buffer
	client := loadlinev1.NewAutoscalerClient(engine.Record(enginetest.Open(t), &file))
	group := &loadlinev1.LoopGroup{Growth: &loadlinev1.ScalableGroup{NodeGroup: "g", MaxNodes: 3},
		Cloud: &loadlinev1.CloudGroup{Target: 1,
			Machines: []*loadlinev1.CloudMachine{{Id: "m", State: loadlinev1.CloudMachine_CREATING}}}}
	question := &loadlinev1.PlanLoopRequest{Cluster: &loadlinev1.PlanLoopRequest_Own{Own: &loadlinev1.Changes{}},
		Groups: []*loadlinev1.LoopGroup{group}, Fleet: &loadlinev1.LoopFleet{Acts: true,
			Options: &loadlinev1.FleetOptions{MaxNodeProvisionMilliseconds: 60_000, InitialBackOffMilliseconds: 60_000,
				MaxBackOffMilliseconds: 60_000, DeletionPatienceMilliseconds: 300_000, MaxDeletions: 1}}}
	late, deletions := int64(0), 0
	for minute := range int64(3) {
		question.NowS, question.Fleet.NowMilliseconds = 60*(1+minute), 60_000*(1+minute)
		answer, err := client.PlanLoop(t.Context(), question)
		if err != nil {
			t.Fatal(err)
		}
		question.Fleet.State = answer.GetFleet().GetState()
		late += answer.GetFleet().GetGroups()[0].GetLate()
		question.Fleet.Outcomes = nil
		for _, action := range answer.GetFleet().GetActions() {
			deletions++
			question.Fleet.Outcomes = append(question.Fleet.Outcomes,
				&loadlinev1.ActionOutcome{Id: action.GetId(), Result: loadlinev1.ActionOutcome_DONE})
		}
	}
	loops := 0
	err := engine.Replay(t.Context(), enginetest.Open(t), &file, func(r engine.Replayed) error {
		if loops++; !r.Same {
			t.Errorf("loop %d: answer %v, error %v", loops, r.Answer, r.Err)
		}
		return nil
	})
	if err != nil || loops != 3 || late != 1 || deletions != 1 {
		t.Errorf("%d loops, %d times late, %d deletions, error %v", loops, late, deletions, err)
	}
}

// slow is a connection on which calls of PlanLoop wait for others.
type slow struct {
	engine.Conn
	began, others chan bool
}

func (s *slow) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	if strings.HasSuffix(method, "/PlanLoop") {
		s.began <- true
		<-s.others
	}
	return s.Conn.Invoke(ctx, method, args, reply, options...)
}

// recordSlowCall begins a call of PlanLoop that is recorded, and returns the connection and what ends the call.
func recordSlowCall(t *testing.T, file *bytes.Buffer) (recorded engine.Conn, end func()) {
	t.Helper()
	conn := &slow{enginetest.Open(t), make(chan bool), make(chan bool)}
	recorded = engine.Record(conn, file)
	ended := make(chan error)
	go func() {
		_, err := loadlinev1.NewAutoscalerClient(recorded).PlanLoop(t.Context(), &loadlinev1.PlanLoopRequest{NowS: 60,
			Cluster: &loadlinev1.PlanLoopRequest_Own{Own: &loadlinev1.Changes{}}})
		ended <- err
	}()
	<-conn.began
	return recorded, func() {
		t.Helper()
		conn.others <- true
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
}

// A call that takes long holds up no other one. Those that began after it are written behind it, since the engine may
// have answered them with what the long one has changed.
func TestRecordedCallsOverlap(t *testing.T) {
	var file bytes.Buffer
	recorded, end := recordSlowCall(t, &file)
	if _, err := loadlinev1.NewClusterStateClient(recorded).Sync(t.Context(), syncRequest("a")); err != nil {
		t.Fatal(err)
	}
	end()
	var got []string
	err := engine.Replay(t.Context(), enginetest.Open(t), &file, func(r engine.Replayed) error {
		got = append(got, r.Recorded.GetMethod(), fmt.Sprint(r.Same))
		return nil
	})
	const want = "/loadline.v1.Autoscaler/PlanLoop true /loadline.v1.ClusterState/Sync true"
	if err != nil || strings.Join(got, " ") != want {
		t.Errorf("%v, error %v", got, err)
	}
}

// Behind a call that does not end, 64 others wait to be written.
func TestRecordedCallThatDoesNotEnd(t *testing.T) {
	var file bytes.Buffer
	recorded, end := recordSlowCall(t, &file)
	for i := range 66 {
		if _, err := loadlinev1.NewClusterStateClient(recorded).Sync(t.Context(), syncRequest(fmt.Sprint(i%8))); err != nil {
			t.Fatal(err)
		}
	}
	end()
	var got []string
	err := engine.Replay(t.Context(), enginetest.Open(t), &file, func(r engine.Replayed) error {
		got = append(got, r.Recorded.GetMethod())
		return nil
	})
	if at := slices.Index(got, "/loadline.v1.Autoscaler/PlanLoop"); err != nil || len(got) != 67 || at != 3 {
		t.Errorf("call %d of %d, error %v", at, len(got), err)
	}
}

// full is a disk that takes no byte.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

// A recording that is full, or that cannot be written, fails no call, and ends behind whole calls.
func TestBoundedRecordingEndsBehindAWholeCall(t *testing.T) {
	var file bytes.Buffer
	for _, c := range []struct {
		to           io.Writer
		left         int64
		want, reason string
	}{{&file, 8, "one, two", ""}, {&file, 7, "one, ", "it is as large as it may be"}, {full{}, 8, "", "full"}} {
		file.Reset()
		reason := ""
		bounded := &engine.Bounded{W: c.to, Left: c.left, Ended: func(err error) { reason += err.Error() }}
		for _, text := range []string{"one, ", "two", ""} {
			if n, err := bounded.Write([]byte(text)); n != len(text) || err != nil {
				t.Error(n, err)
			}
		}
		if file.String() != c.want || reason != c.reason {
			t.Errorf("%d bytes: %q, %s", c.left, file.String(), reason)
		}
	}
}

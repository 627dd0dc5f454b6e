package engine_test

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/internal/enginetest"
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
		got = append(got, r.Method)
		if !r.Same || (r.Answer == nil) != (r.Err != nil) {
			t.Errorf("%s: same %t, answer %v, error %v", r.Method, r.Same, r.Answer, r.Err)
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
		"cut off": {file[:len(file)-1], "call 2: not a recording"},
		"method":  {append([]byte{6, 10, 4}, "/a/b"...), `call 0: method "/a/b"`},
	} {
		err := engine.Replay(t.Context(), enginetest.Open(t), bytes.NewReader(c.file),
			func(engine.Replayed) error { return nil })
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// What the engine remembers of machines is part of each question: a recording holds all that a look goes out from.
func TestReplayOfLooksAtTheFleet(t *testing.T) {
	var file bytes.Buffer
	client := loadlinev1.NewAutoscalerClient(engine.Record(enginetest.Open(t), &file))
	question := &loadlinev1.LookAtFleetRequest{Options: &loadlinev1.FleetOptions{MaxNodeProvisionMilliseconds: 60_000,
		InitialBackOffMilliseconds: 60_000, MaxBackOffMilliseconds: 60_000, MaxDeletions: 1},
		Observation: &loadlinev1.FleetObservation{Groups: []*loadlinev1.FleetGroup{{NodeGroup: "g", Target: 1,
			Machines: []*loadlinev1.FleetMachine{{Id: "m", State: loadlinev1.FleetMachine_CREATING}}}}}}
	late := int64(0)
	for minute := range 3 {
		question.NowMilliseconds = int64(1+minute) * 60_000
		answer, err := client.LookAtFleet(t.Context(), question)
		if err != nil {
			t.Fatal(err)
		}
		question.State = answer.GetState()
		late += answer.GetGroups()[0].GetLate()
	}
	looks := 0
	err := engine.Replay(t.Context(), enginetest.Open(t), &file, func(r engine.Replayed) error {
		if looks++; !r.Same {
			t.Errorf("look %d: answer %v, error %v", looks, r.Answer, r.Err)
		}
		return nil
	})
	if err != nil || looks != 3 || late != 2 {
		t.Errorf("%d looks, %d times late, error %v", looks, late, err)
	}
}

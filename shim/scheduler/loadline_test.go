package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/internal/testing/enginetest"
	"loadline.dev/shim/internal/testing/nodeinfo"
)

const cpuLine = `{"maxLimitsOverAllocatable": {"cpu": 1.5}}`

// refusing answers that nodes in these slots refuse the pod.
func refusing(unresolvable bool,
	slots ...int32) func(*loadlinev1.CheckLoadLineRequest) (*loadlinev1.CheckLoadLineResponse, error) {
	return func(*loadlinev1.CheckLoadLineRequest) (*loadlinev1.CheckLoadLineResponse, error) {
		answer := &loadlinev1.CheckLoadLineResponse{NodesAbove: int32(len(slots))}
		if len(slots) > 0 {
			answer.Refusals = []*loadlinev1.LineRefusal{
				{Reasons: []string{"load line: x"}, Unresolvable: unresolvable, Slots: slots}}
		}
		return answer, nil
	}
}

func failingLine(err error) func(*loadlinev1.CheckLoadLineRequest) (*loadlinev1.CheckLoadLineResponse, error) {
	return func(*loadlinev1.CheckLoadLineRequest) (*loadlinev1.CheckLoadLineResponse, error) { return nil, err }
}

// filter runs PreFilter, and Filter of each node unless it is skipped or fails. It returns the codes of the nodes.
func (f *fixture) filter(state *cycleState, pod *v1.Pod) ([]fwk.Code, *fwk.Status) {
	_, status := f.plugin.PreFilter(f.t.Context(), state, pod, f.nodes)
	if !status.IsSuccess() {
		return nil, status
	}
	var codes []fwk.Code
	for _, node := range f.nodes {
		codes = append(codes, f.plugin.Filter(f.t.Context(), state, pod, node).Code())
	}
	return codes, nil
}

func TestLoadLineIsOffByDefault(t *testing.T) {
	f := newFixture(t, `{}`)
	if _, status := f.filter(&cycleState{}, pod()); status.Code() != fwk.Skip {
		t.Errorf("got %v, want Skip", status)
	}
	if events, err := f.plugin.EventsToRegister(t.Context()); events != nil || err != nil {
		t.Errorf("got %v, error %v", events, err)
	}
	if len(f.engine.lineAsked) != 0 {
		t.Errorf("asked %v", f.engine.lineAsked)
	}
}

func TestLoadLineAsksOncePerCycle(t *testing.T) {
	f := newFixture(t, `{"maxLimitsOverAllocatable": {"cpu": 1.5}, "maxLimitRatio": 2}`)
	f.engine.lineAnswer = refusing(false, 1)
	got, status := f.filter(&cycleState{}, pod())
	if want := []fwk.Code{fwk.Success, fwk.Unschedulable, fwk.Success}; !slices.Equal(got, want) {
		t.Errorf("got %v and %v, want %v", got, status, want)
	}
	if len(f.engine.lineAsked) != 1 {
		t.Fatalf("asked %d times", len(f.engine.lineAsked))
	}
	asked := f.engine.lineAsked[0]
	if len(asked.GetSlots()) != 0 || len(asked.GetChanges().GetNodes()) != 3 ||
		asked.GetLine().GetResources()[0].GetMaxLimitsOverAllocatable() != "1.5" ||
		asked.GetLine().GetCounting().GetMaxLimitRatio() != 2 {
		t.Errorf("asked %v", asked)
	}
	f.engine.lineAnswer = refusing(true, 0)
	if got, _ := f.filter(&cycleState{}, pod()); got[0] != fwk.UnschedulableAndUnresolvable {
		t.Errorf("got %v", got)
	}
	// Changes that the question about the line brought need not be brought again by the score.
	f.cycle()
	if changes := f.engine.asked[0].GetChanges(); len(changes.GetNodes()) != 0 {
		t.Errorf("the score brings %v", changes)
	}
}

func TestLoadLineRefusesWhereTheEngineDoesNotAnswer(t *testing.T) {
	for _, c := range []struct {
		err    error
		reason reason
	}{
		{status.Error(codes.Unavailable, "gone"), reasonUnavailable},
		{status.Error(codes.DeadlineExceeded, ""), reasonTimeout},
		{status.Error(codes.InvalidArgument, "pod: bad"), reasonInvalid},
		{status.Error(codes.FailedPrecondition, ""), reasonRefused},
	} {
		for _, allow := range []bool{false, true} {
			args, want := cpuLine, fwk.Error
			if allow {
				args, want = strings.Replace(cpuLine, "{", `{"onEngineFailure": "Allow", `, 1), fwk.Skip
			}
			f := newFixture(t, args)
			f.engine.lineAnswer = failingLine(c.err)
			state := &cycleState{}
			n := counted(t, lineFailures.WithLabelValues(string(c.reason)), func() {
				_, status := f.filter(state, pod())
				if status.Code() != want || !allow && !strings.Contains(status.Message(), string(c.reason)) {
					t.Errorf("%v, allow %v: got %v", c.reason, allow, status)
				}
			})
			if n != 1 {
				t.Errorf("%v: counted %v times", c.reason, n)
			}
		}
	}
}

func TestLoadLineSurvivesAPanic(t *testing.T) {
	f := newFixture(t, cpuLine)
	f.engine.lineAnswer = func(*loadlinev1.CheckLoadLineRequest) (*loadlinev1.CheckLoadLineResponse, error) {
		panic("bug")
	}
	if _, status := f.filter(&cycleState{}, pod()); status.Code() != fwk.Error {
		t.Errorf("got %v", status)
	}
}

// Without what PreFilter writes nothing is known: the framework calls nothing more after Skip.
func TestLoadLineWithoutItsState(t *testing.T) {
	for args, want := range map[string]fwk.Code{
		cpuLine: fwk.Error, strings.Replace(cpuLine, "{", `{"onEngineFailure": "Allow", `, 1): fwk.Success, `{}`: fwk.Success,
	} {
		f := newFixture(t, args)
		state, other := &cycleState{}, nodeinfo.New(9, node(1), pod()).GetPods()[0]
		failures := 0.0
		if args != `{}` {
			failures = 3
		}
		n := counted(t, lineFailures.WithLabelValues(string(reasonNoState)), func() {
			for _, status := range []*fwk.Status{
				f.plugin.Filter(t.Context(), state, pod(), f.nodes[0]),
				f.plugin.AddPod(t.Context(), state, pod(), other, f.nodes[0]),
				f.plugin.RemovePod(t.Context(), state, pod(), other, f.nodes[0]),
			} {
				if status.Code() != want || want == fwk.Error && !strings.Contains(status.Message(), "preFilter") {
					t.Errorf("%s: got %v, want %v", args, status, want)
				}
			}
		})
		if n != failures {
			t.Errorf("%s: counted %v failures", args, n)
		}
	}
}

// A cycle waits for the engine no longer than it lasts itself.
func TestLoadLineWaitsNoLongerThanTheCycle(t *testing.T) {
	f := newFixture(t, cpuLine)
	f.engine.lineAnswer = failingLine(status.Error(codes.FailedPrecondition, ""))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, status := f.plugin.PreFilter(ctx, &cycleState{}, pod(), f.nodes); status.Code() != fwk.Error {
		t.Errorf("got %v", status)
	}
	if len(f.engine.lineAsked) != 1 {
		t.Errorf("asked %d times", len(f.engine.lineAsked))
	}
}

func TestLoadLineOfExemptNamespacesSignsNamespaces(t *testing.T) {
	f := newFixture(t, `{"maxLimitsOverAllocatable": {"cpu": 1}, "lineExemptNamespaces": ["kube-system"]}`)
	fragments, status := f.plugin.SignPod(t.Context(), pod())
	if len(fragments) != 2 || fragments[1].Value != "ns" || !status.IsSuccess() {
		t.Errorf("got %v, %v", fragments, status)
	}
}

func TestLoadLineArgs(t *testing.T) {
	for args, says := range map[string]string{
		`{"maxLimitsOverAllocatable": {"gpu": 1}}`:                     "Unsupported value",
		`{"maxLimitsOverAllocatable": {"cpu": 0}}`:                     "[0.1, 1000]",
		`{"maxLimitsOverAllocatable": {"cpu": 1}, "preset": "kep217"}`: "effective limits of all pods alike",
		`{"onEngineFailure": "Ignore"}`:                                "onEngineFailure",
	} {
		_, err := decodeArgs(&runtime.Unknown{Raw: []byte(args)})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: error %v, want %q in it", args, err, says)
		}
	}
}

// Two nodes of 8 cores under a line of 1.5: of node1 10 are limited, of node2 5.
func newRealLineFixture(t *testing.T, address, args string) *fixture {
	t.Helper()
	f := &fixture{t: t, clients: &clients{dial: engine.Open, now: time.Now}}
	f.nodes = []fwk.NodeInfo{
		nodeinfo.New(1, cores("node1", 8), limited("pod1", 6), limited("pod2", 4)),
		nodeinfo.New(2, cores("node2", 8), limited("pod3", 3), limited("pod4", 2)),
	}
	f.handle = &fakeHandle{nodes: f.nodes}
	f.plugin = f.newPlugin(fmt.Sprintf(
		`{"engineAddress": %q, "timeout": "1s", "maxLimitsOverAllocatable": {"cpu": 1.5}%s}`, address, args))
	return f
}

func TestBothTransportsKeepToTheLoadLine(t *testing.T) {
	for name, address := range map[string]string{
		"inprocess": enginetest.Address(t), "unix": enginetest.StartDaemon(t).Address(),
	} {
		t.Run(name, func(t *testing.T) {
			f := newRealLineFixture(t, address, `, "lineExemptNamespaces": ["kube-system"]`)
			for cpu, want := range map[int64][]fwk.Code{
				2: {fwk.Success, fwk.Success}, 3: {fwk.Unschedulable, fwk.Success},
				7: {fwk.Unschedulable, fwk.Success}, 8: {fwk.Unschedulable, fwk.Unschedulable},
				// It counts as at most the node.
				100: {fwk.Unschedulable, fwk.Unschedulable},
			} {
				if got, status := f.filter(&cycleState{}, limited("new", cpu)); !slices.Equal(got, want) {
					t.Errorf("%d cores: got %v and %v, want %v", cpu, got, status, want)
				}
			}
			exempt := limited("new", 8)
			exempt.Namespace = "kube-system"
			if got, _ := f.filter(&cycleState{}, exempt); !slices.Equal(got, []fwk.Code{fwk.Success, fwk.Success}) {
				t.Errorf("exempt: got %v", got)
			}
			state := &cycleState{}
			f.filter(state, limited("new", 4))
			if message := f.plugin.Filter(t.Context(), state, pod(), f.nodes[0]).Message(); message !=
				"load line: cpu limits would exceed 1.5 x allocatable" {
				t.Errorf("says %q", message)
			}
			// Without pod2 it fits; with pod1 beside the new one again it does not.
			f.plugin.RemovePod(t.Context(), state, pod(), f.nodes[0].GetPods()[1], f.nodes[0])
			if status := f.plugin.Filter(t.Context(), state, limited("new", 4), f.nodes[0]); !status.IsSuccess() {
				t.Errorf("without pod2: %v", status)
			}
			f.plugin.AddPod(t.Context(), state, pod(), f.nodes[0].GetPods()[1], f.nodes[0])
			if status := f.plugin.Filter(t.Context(), state, limited("new", 4), f.nodes[0]); status.IsSuccess() {
				t.Error("with pod2 again it fits")
			}
		})
	}
}

func TestANodesLabelIsItsLine(t *testing.T) {
	f := newRealLineFixture(t, enginetest.Address(t), `, "lineNodeLabelPrefix": "lines.example.com"`)
	labeled := cores("node1", 8)
	labeled.Labels = map[string]string{"lines.example.com/cpu": "2", "other": "1"}
	f.nodes[0] = nodeinfo.New(3, labeled, limited("pod1", 6), limited("pod2", 4))
	if got, _ := f.filter(&cycleState{}, limited("new", 6)); got[0] != fwk.Success {
		t.Errorf("got %v", got)
	}
	if got, _ := f.filter(&cycleState{}, limited("new", 7)); got[0] != fwk.Unschedulable {
		t.Errorf("got %v", got)
	}
}

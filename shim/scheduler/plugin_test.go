package scheduler

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-base/metrics/legacyregistry"
	fwk "k8s.io/kube-scheduler/framework"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/guard"
	"loadline.dev/shim/internal/testing/nodeinfo"
	"loadline.dev/shim/internal/testing/promtest"
	"loadline.dev/shim/view"
)

// Invariant A2.
func TestOneQuestionPerCycleGivesTheScores(t *testing.T) {
	f := newFixture(t, `{}`)
	var scores []int64
	if n := counted(t, answered, func() { scores, _ = f.cycle() }); n != 1 {
		t.Errorf("counted %v answered cycles, want 1", n)
	}
	if want := []int64{0, 1, 2}; !slices.Equal(scores, want) {
		t.Errorf("got scores %v, want %v", scores, want)
	}
	if len(f.engine.asked) != 1 {
		t.Fatalf("asked %d times, want once", len(f.engine.asked))
	}
	question := f.engine.asked[0]
	if !slices.Equal(question.GetSlots(), []int32{0, 1, 2}) ||
		question.GetPolicy().GetPreset() != loadlinev1.ScorePolicy_STRICT ||
		question.GetChanges().GetView() != "scheduler" || len(question.GetChanges().GetNodes()) != 3 {
		t.Errorf("asked %v", question)
	}
	f.cycle()
	if again := f.engine.asked[1].GetChanges(); len(again.GetNodes()) != 0 ||
		again.GetBaseRevision() != again.GetRevision() {
		t.Errorf("nothing changed, but the second question carries %v", again)
	}
}

// Invariants A8, H4.
func TestAnyTroubleIsSkippedAndCountedByReason(t *testing.T) {
	for _, c := range []struct {
		reason reason
		answer func(*loadlinev1.ScoreRequest) (*loadlinev1.ScoreResponse, error)
	}{
		{reasonRefused, failing(status.Error(codes.FailedPrecondition, ""))},
		{reasonRefused, failing(status.Error(codes.NotFound, ""))},
		{reasonUnavailable, failing(status.Error(codes.Unavailable, ""))},
		{reasonTimeout, failing(status.Error(codes.DeadlineExceeded, ""))},
		{reasonInvalid, failing(status.Error(codes.InvalidArgument, ""))},
		{reasonExhausted, failing(status.Error(codes.ResourceExhausted, ""))},
		{reasonCanceled, failing(status.Error(codes.Canceled, ""))},
		{reasonError, failing(status.Error(codes.Internal, ""))},
		{reasonError, failing(status.Error(codes.Unimplemented, ""))},
		{reasonError, failing(errors.New("plain"))},
		{reasonBadAnswer, func(*loadlinev1.ScoreRequest) (*loadlinev1.ScoreResponse, error) {
			return &loadlinev1.ScoreResponse{RawScores: []int64{1, 2}}, nil
		}},
		{reasonPanic, func(*loadlinev1.ScoreRequest) (*loadlinev1.ScoreResponse, error) { panic("injected") }},
	} {
		t.Run(string(c.reason), func(t *testing.T) {
			f := newFixture(t, `{}`)
			f.engine.answerWith(c.answer)
			n := counted(t, skippedFor[c.reason], func() {
				if _, status := f.cycle(); !status.IsSkip() {
					t.Errorf("got status %v, want Skip", status)
				}
			})
			if n != 1 {
				t.Errorf("counted %v times, want once", n)
			}
			f.engine.answerWith(inOrder)
			if scores, status := f.waitForScores(); !slices.Equal(scores, []int64{0, 1, 2}) {
				t.Errorf("afterwards: got scores %v and status %v", scores, status)
			}
		})
	}
}

// Invariant H3.
func TestPanicsAreRecoveredInEveryEntryPoint(t *testing.T) {
	f := newFixture(t, `{}`)
	state := &cycleState{}
	broken := nodeinfo.New(9, nil) // a node without its object
	for name, call := range map[string]func(){
		"PreScore": func() {
			if status := f.plugin.PreScore(t.Context(), state, pod(), []fwk.NodeInfo{broken}); !status.IsSkip() {
				t.Errorf("PreScore: got status %v, want Skip", status)
			}
		},
		"Score": func() {
			state.Write(stateKey, &scores{})
			if score, status := f.plugin.Score(t.Context(), state, pod(), nil); score != view.NoRawScore ||
				!status.IsSuccess() {
				t.Errorf("Score: got %d and status %v, want the lowest and success", score, status)
			}
		},
		"NormalizeScore": func() {
			list := fwk.NodeScoreList{{Name: "a", Score: 1000}}
			if status := f.plugin.NormalizeScore(t.Context(), nil, pod(), list); !status.IsSuccess() ||
				list[0].Score != 0 {
				t.Errorf("NormalizeScore: got %v and status %v, want 0 and success", list, status)
			}
		},
		"SignPod": func() {
			if _, status := f.plugin.SignPod(t.Context(), nil); status.Code() != fwk.Unschedulable {
				t.Errorf("SignPod: got status %v, want Unschedulable", status)
			}
		},
	} {
		if n := counted(t, panics, call); n != 1 {
			t.Errorf("%s: counted %v panics, want 1", name, n)
		}
	}
	if scores, status := f.cycle(); !slices.Equal(scores, []int64{0, 1, 2}) {
		t.Errorf("the next cycle got scores %v and status %v", scores, status)
	}
}

func TestScoreWithoutAnAnswerIsTheLowest(t *testing.T) {
	f := newFixture(t, `{}`)
	if score, status := f.plugin.Score(t.Context(), &cycleState{}, pod(), f.nodes[0]); score != view.NoRawScore ||
		!status.IsSuccess() {
		t.Errorf("got %d and status %v", score, status)
	}
}

// Invariant A1.
func TestNormalizeScoreGuardsTheRange(t *testing.T) {
	f := newFixture(t, `{}`)
	list := fwk.NodeScoreList{{Name: "a", Score: -1}, {Name: "b", Score: 0}, {Name: "c", Score: 100},
		{Name: "d", Score: 1 << 40}, {Name: "e", Score: view.NoRawScore}}
	state := &cycleState{}
	state.Write(stateKey, &scores{scale: &loadlinev1.RawScale{Kind: loadlinev1.RawScale_SCORES}})
	n := counted(t, clamped, func() {
		if status := f.plugin.ScoreExtensions().NormalizeScore(t.Context(), state, pod(),
			list); !status.IsSuccess() {
			t.Errorf("got status %v", status)
		}
	})
	if want := (fwk.NodeScoreList{{Name: "a", Score: 0}, {Name: "b", Score: 0}, {Name: "c", Score: 100},
		{Name: "d", Score: 100}, {Name: "e", Score: 0}}); !slices.Equal(list, want) {
		t.Errorf("got %v, want %v", list, want)
	}
	if n != 2 {
		t.Errorf("counted %v clamped scores, want 2", n)
	}
}

func TestBreakerStopsAskingADeadEngine(t *testing.T) {
	f := newFixture(t, `{}`)
	f.engine.answerWith(failing(status.Error(codes.Unavailable, "down")))
	asked := func() int { return len(f.engine.asked) }
	for range 20 {
		f.cycle()
	}
	if asked() != guard.Failures {
		t.Fatalf("20 cycles asked %d times, want %d", asked(), guard.Failures)
	}
	for second := range 3 {
		f.clock.time = f.clock.time.Add(time.Second)
		if n := counted(t, skippedFor[reasonBreakerOpen], func() { f.cycle(); f.cycle(); f.cycle() }); n != 2 {
			t.Errorf("second %d: %v of 3 cycles were not asked about, want 2", second, n)
		}
	}
	f.engine.answerWith(inOrder)
	if _, status := f.cycle(); !status.IsSkip() {
		t.Errorf("before the next probe: got status %v, want Skip", status)
	}
	f.clock.time = f.clock.time.Add(time.Second)
	for range 3 {
		if scores, status := f.cycle(); !slices.Equal(scores, []int64{0, 1, 2}) {
			t.Errorf("the engine is back: got scores %v and status %v", scores, status)
		}
	}
}

// A cycle whose scores are all known does not ask: it says nothing of the engine, neither before the breaker is open
// nor after.
func TestKnownScoresDoNotCloseTheBreaker(t *testing.T) {
	f := newFixture(t, `{}`)
	known := pod()
	knownCycle := func() {
		f.pod = known
		defer func() { f.pod = nil }()
		f.cycle()
	}
	knownCycle()
	f.engine.answerWith(failing(status.Error(codes.DeadlineExceeded, "late")))
	before := len(f.engine.asked)
	for range 20 {
		f.cycle()
		knownCycle()
	}
	if asked := len(f.engine.asked) - before; asked != guard.Failures {
		t.Errorf("20 cycles for new pods asked %d times, want %d", asked, guard.Failures)
	}
	f.clock.time = f.clock.time.Add(time.Second)
	knownCycle()
	if !f.plugin.client.guard.Allow() {
		t.Error("known scores took the question of this second")
	}
	if f.plugin.client.guard.Allow() {
		t.Error("known scores closed the breaker")
	}
}

// A restarted engine refuses once and then gets everything: no failure of the engine.
// Invariant F4.
func TestRefusalIsAnsweredWithAFullList(t *testing.T) {
	f := newFixture(t, `{}`)
	f.cycle()
	for range 3 * guard.Failures {
		f.engine.answerWith(failing(status.Error(codes.NotFound, "no such view")))
		if n := counted(t, skippedFor[reasonRefused], func() { f.cycle() }); n != 1 {
			t.Fatalf("counted %v refusals, want 1", n)
		}
		f.engine.answerWith(inOrder)
		if _, status := f.cycle(); !status.IsSuccess() {
			t.Fatalf("after a refusal: got status %v", status)
		}
		changes := f.engine.asked[len(f.engine.asked)-1].GetChanges()
		if !changes.GetFullList().GetLast() || len(changes.GetNodes()) != 3 {
			t.Fatalf("after a refusal the question carries %v", changes)
		}
	}
}

// An engine that refuses whatever it gets is asked once a second like one that does not answer.
func TestEndlessRefusalsOpenTheBreaker(t *testing.T) {
	f := newFixture(t, `{}`)
	f.engine.answerWith(failing(status.Error(codes.FailedPrecondition, "no")))
	for range 50 {
		f.cycle()
	}
	if got, want := len(f.engine.asked), guard.MaxRefusals+guard.Failures; got != want {
		t.Errorf("asked %d times, want %d", got, want)
	}
}

// Changes that are too many for a question are sent in the background; the cycles until then are skipped, and the
// engine's fate there counts like any other.
func TestLargeChangesAreSyncedInTheBackground(t *testing.T) {
	f := newFixture(t, `{}`)
	for i := range 400 {
		pods := make([]*v1.Pod, 5)
		for j := range pods {
			pods[j] = pod()
		}
		f.nodes = append(f.nodes, nodeinfo.New(int64(i+10), node(i+3), pods...))
	}
	f.handle.nodes = f.nodes
	synced := make(chan *loadlinev1.SyncRequest, 100)
	f.engine.sync = func(r *loadlinev1.SyncRequest) error {
		synced <- r
		return nil
	}
	if n := counted(t, skippedFor[reasonSyncing], func() { f.cycle() }); n != 1 {
		t.Errorf("counted %v cycles that were skipped for it, want 1", n)
	}
	select {
	case r := <-synced:
		if len(r.GetChanges().GetNodes()) != 403 || !r.GetChanges().GetFullList().GetLast() {
			t.Errorf("sent %d nodes, want all 403 at once", len(r.GetChanges().GetNodes()))
		}
	case <-time.After(10 * time.Second):
		t.Fatal("nothing was sent")
	}
	for start := time.Now(); time.Since(start) < 10*time.Second; time.Sleep(time.Millisecond) {
		if _, status := f.cycle(); status.IsSuccess() {
			if changes := f.engine.asked[0].GetChanges(); len(changes.GetNodes()) != 0 {
				t.Errorf("the question carries %d nodes again", len(changes.GetNodes()))
			}
			return
		}
	}
	t.Fatal("no cycle was answered")
}

func TestProfilesShareAnEngine(t *testing.T) {
	f := newFixture(t, `{"preset":"strict"}`)
	second := f.newPlugin(`{"preset":"kep217"}`)
	other := f.newPlugin(`{"view":"other"}`)
	if f.plugin.client != second.client || f.plugin.client == other.client {
		t.Error("profiles share a client if and only if they name the same engine and view")
	}
	f.cycle()
	f.plugin, second = second, f.plugin
	f.cycle()
	if q := f.engine.asked[1]; len(q.GetChanges().GetNodes()) != 0 ||
		q.GetPolicy().GetPreset() != loadlinev1.ScorePolicy_KEP217 {
		t.Errorf("the second profile asked %v", q)
	}
	other.Close()
	second.Close()
	second.Close() // again: no harm
	if f.engine.closed != 1 {
		t.Errorf("closed %d connections, want that of the other view", f.engine.closed)
	}
	f.plugin.Close()
	if f.engine.closed != 2 {
		t.Errorf("closed %d connections, want both", f.engine.closed)
	}
}

func TestNewFailsWithoutAnEngine(t *testing.T) {
	c := &clients{dial: func(string) (engine.Conn, error) { return nil, errors.New("no library") }}
	if _, err := newPlugin(t.Context(), nil, &fakeHandle{}, c); err == nil ||
		!strings.Contains(err.Error(), "NodeResourcesLimitAware: no library") {
		t.Errorf("got error %v", err)
	}
}

func TestSignPodTellsPodsApartByWhatIsScored(t *testing.T) {
	f := newFixture(t, `{}`)
	sign := func(pod *v1.Pod) string {
		fragments, status := f.plugin.SignPod(t.Context(), pod)
		if !status.IsSuccess() || len(fragments) != 1 || fragments[0].Key != signKey {
			t.Fatalf("got %v and status %v", fragments, status)
		}
		text, err := json.Marshal(fragments[0].Value)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	always := v1.ContainerRestartPolicyAlways
	two := v1.ResourceList{"cpu": resource.MustParse("2")}
	for _, c := range []struct {
		name   string
		same   bool
		change func(*v1.Pod)
	}{
		{"Nothing", true, func(*v1.Pod) {}},
		{"Name", true, func(p *v1.Pod) { p.Name, p.UID, p.Namespace = "x", "x", "x" }},
		{"ContainerName", true, func(p *v1.Pod) { p.Spec.Containers[0].Name = "x" }},
		{"Image", true, func(p *v1.Pod) { p.Spec.Containers[0].Image = "x" }},
		{"Status", true, func(p *v1.Pod) { p.Status.AllocatedResources = two }},
		{"Spelling", true,
			func(p *v1.Pod) { p.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("1000m") }},
		{"Limit", false,
			func(p *v1.Pod) { p.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("1001m") }},
		{"OtherLimit", false,
			func(p *v1.Pod) { p.Spec.Containers[0].Resources.Limits["memory"] = resource.MustParse("1") }},
		{"NoLimit", false, func(p *v1.Pod) { p.Spec.Containers[0].Resources.Limits = nil }},
		{"Request", false,
			func(p *v1.Pod) { p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("2") }},
		{"BestEffort", false, func(p *v1.Pod) { p.Spec.Containers[0].Resources = v1.ResourceRequirements{} }},
		{"InitContainer", false, func(p *v1.Pod) {
			p.Spec.InitContainers = []v1.Container{{Resources: v1.ResourceRequirements{Limits: two}}}
		}},
		{"Sidecar", false, func(p *v1.Pod) { p.Spec.InitContainers = []v1.Container{{RestartPolicy: &always}} }},
		{"Overhead", false, func(p *v1.Pod) { p.Spec.Overhead = two }},
		{"PodLevel", false, func(p *v1.Pod) { p.Spec.Resources = &v1.ResourceRequirements{Limits: two} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			changed := pod()
			c.change(changed)
			if same := sign(changed) == sign(pod()); same != c.same {
				t.Errorf("the signature is the same: %v, want %v", same, c.same)
			}
		})
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				sign(pod())
			}
		})
	}
	wg.Wait()
}

func TestMetricNamesAreThoseOnMetrics(t *testing.T) {
	f := newFixture(t, cpuLine)
	f.engine.lineAnswer = failingLine(status.Error(codes.Unavailable, ""))
	f.filter(&cycleState{}, pod())
	f.engine.lineAnswer = refusing(false)
	f.filter(&cycleState{}, pod())
	f.cycle()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	series := 0
	for _, family := range families {
		if strings.HasPrefix(family.GetName(), "loadline_") {
			got = append(got, family.GetName())
			series += len(family.GetMetric())
		}
	}
	want := slices.Sorted(slices.Values(slices.Concat(MetricNames, LineMetricNames)))
	promtest.LintAmongOthers(t, legacyregistry.DefaultGatherer, want...)
	promtest.AsksForServed(t, "../../manifests/second-scheduler/monitoring/30-rules.yaml", legacyregistry.DefaultGatherer)
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	// One per reason, one breaker per engine and view, one of each other: no label takes names from a cluster.
	if most := len(MetricNames) + len(LineMetricNames) + 2*len(reasons) + 20; series > most {
		t.Errorf("%d series, want at most %d", series, most)
	}
}

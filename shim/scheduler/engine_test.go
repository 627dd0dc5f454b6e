package scheduler

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/testutil"
	fwk "k8s.io/kube-scheduler/framework"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/guard"
	"loadline.dev/shim/internal/testing/enginetest"
	"loadline.dev/shim/internal/testing/nodeinfo"
)

// newRealFixture is a plugin in front of a real engine, with the proposal's own example: node1 offers 8 cores and
// its pods may use 10, node2 offers 8 and its pods may use 5; a pod that may use 4 is to be placed.
func newRealFixture(t *testing.T, address string, now func() time.Time) *fixture {
	t.Helper()
	f := &fixture{t: t, clients: &clients{dial: engine.Open, now: now}}
	f.nodes = []fwk.NodeInfo{
		nodeinfo.New(1, cores("node1", 8), limited("pod1", 6), limited("pod2", 4)),
		nodeinfo.New(2, cores("node2", 8), limited("pod3", 3), limited("pod4", 2)),
	}
	f.handle = &fakeHandle{nodes: f.nodes}
	f.plugin = f.newPlugin(fmt.Sprintf(`{"engineAddress": %q, "resources": [{"resource": "cpu", "weight": 1}]}`,
		address))
	return f
}

func cores(name string, n int64) *v1.Node {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	node.Status.Allocatable = v1.ResourceList{"cpu": *resource.NewQuantity(n, resource.DecimalSI)}
	return node
}

func limited(name string, cpu int64) *v1.Pod {
	p := pod()
	p.Name = name
	p.Spec.Containers[0].Resources.Limits = v1.ResourceList{"cpu": *resource.NewQuantity(cpu, resource.DecimalSI)}
	return p
}

// node2 ends at 6/8 (with this pod's limit of 1), node1 at 11/8: the lower one gets all.
var exampleScores = []int64{0, 100}

func TestBothTransportsScoreTheProposalsExample(t *testing.T) {
	for name, address := range map[string]string{
		"inprocess": enginetest.Address(t), "unix": enginetest.StartDaemon(t).Address(),
	} {
		t.Run(name, func(t *testing.T) {
			f := newRealFixture(t, address, time.Now)
			if scores, status := f.waitForScores(); !slices.Equal(scores, exampleScores) {
				t.Errorf("got scores %v and status %v, want %v", scores, status, exampleScores)
			}
			// node2 fills up: the change travels with the next question.
			f.nodes[1] = nodeinfo.New(3, cores("node2", 8), limited("pod3", 3), limited("pod4", 2), limited("pod6", 8))
			if scores, status := f.waitForScores(); !slices.Equal(scores, []int64{100, 0}) {
				t.Errorf("got scores %v and status %v, want node1 first", scores, status)
			}
		})
	}
}

// waitForScores runs cycles, a millisecond apart, until one is answered. It gives up only where something hangs.
func (f *fixture) waitForScores() (scores []int64, status *fwk.Status) {
	for start := time.Now(); time.Since(start) < 60*time.Second; time.Sleep(time.Millisecond) {
		if scores, status = f.cycle(); status.IsSuccess() {
			return scores, status
		}
	}
	return nil, status
}

// breakerClock is the time of a breaker, which passes when a test says so.
type breakerClock struct{ seconds atomic.Int64 }

func (c *breakerClock) now() time.Time { return time.Unix(c.seconds.Load(), 0) }
func (c *breakerClock) second()        { c.seconds.Add(1) }

// expectSkips runs cycles for seconds of the breaker's clock, of which none may be answered and only so many wait for
// the engine: five until the breaker opens, then one a second.
func (f *fixture) expectSkips(clock *breakerClock, seconds int) {
	f.t.Helper()
	asked := func(cycles int) float64 {
		var late float64
		away := counted(f.t, skipped.WithLabelValues(string(reasonUnavailable)), func() {
			late = counted(f.t, skipped.WithLabelValues(string(reasonTimeout)), func() {
				for range cycles {
					if _, status := f.cycle(); !status.IsSkip() {
						f.t.Fatalf("got status %v, want Skip", status)
					}
				}
			})
		})
		return away + late
	}
	if got := asked(guard.Failures + 20); got != guard.Failures {
		f.t.Errorf("%v cycles waited for the engine before the breaker opened, want %d", got, guard.Failures)
	}
	for range seconds {
		clock.second()
		if got := asked(20); got != 1 {
			f.t.Errorf("%v cycles of a second waited for the engine, want 1", got)
		}
	}
}

// expectBack waits for scores after the engine is back.
func (f *fixture) expectBack(what string, clock *breakerClock) {
	f.t.Helper()
	for start := time.Now(); time.Since(start) < 60*time.Second; time.Sleep(time.Millisecond) {
		if scores, status := f.cycle(); status.IsSuccess() {
			if !slices.Equal(scores, exampleScores) {
				f.t.Fatalf("%s: got scores %v", what, scores)
			}
			return
		}
		clock.second()
	}
	f.t.Fatalf("%s: no scores", what)
}

// faulty is a plugin in front of a daemon that has answered, with the clock of its breaker.
func faulty(t *testing.T) (*enginetest.Daemon, *fixture, *breakerClock) {
	t.Helper()
	daemon, clock := enginetest.StartDaemon(t), &breakerClock{}
	f := newRealFixture(t, daemon.Address(), clock.now)
	if _, status := f.waitForScores(); !status.IsSuccess() {
		t.Fatalf("no answer after the start: %v", status)
	}
	return daemon, f, clock
}

// A restarted engine gives the scores of one that never died, and few cycles wait for it. Invariants F7, H1.
func TestKilledDaemon(t *testing.T) {
	daemon, f, clock := faulty(t)
	for range 3 {
		daemon.Kill()
		f.expectSkips(clock, 2)
		daemon.Start()
		f.expectBack("restarted", clock)
	}
}

func TestStoppedDaemon(t *testing.T) {
	daemon, f, clock := faulty(t)
	for range 2 {
		daemon.Stop()
		f.expectSkips(clock, 3)
		daemon.Continue()
		f.expectBack("continued", clock)
	}
}

// One node that the engine cannot read in full, such as one with a broken kubelet, does not cost the others their
// scores. It is counted and named once.
func TestNodeThatCannotBeReadIsNamed(t *testing.T) {
	f := newRealFixture(t, enginetest.Address(t), time.Now)
	f.nodes = append(f.nodes, nodeinfo.New(3, cores("node3", -1)))
	f.handle.nodes = f.nodes
	want := []int64{0, 100, 0}
	objects := unreadable.WithLabelValues(f.plugin.client.key.address, f.plugin.client.key.view)
	n := counted(t, leftOut, func() {
		if scores, status := f.waitForScores(); !slices.Equal(scores, want) {
			t.Errorf("got scores %v and status %v, want %v", scores, status, want)
		}
		f.plugin.client.cycles.Wait() // it asks the engine what it could not read
		if got, err := testutil.GetGaugeMetricValue(objects); got != 1 || err != nil {
			t.Errorf("%v objects cannot be read, want 1, error %v", got, err)
		}
		f.nodes[0] = nodeinfo.New(4, cores("node1", 8), limited("pod1", 6)) // 7/8 and 6/8
		if scores, status := f.cycle(); !slices.Equal(scores, want) {
			t.Errorf("the next change: got scores %v and status %v, want %v", scores, status, want)
		}
		f.plugin.client.cycles.Wait()
	})
	if n != 1 {
		t.Errorf("counted %v nodes that were left out, want 1", n)
	}
	f.nodes[2] = nodeinfo.New(5, cores("node3", 80))
	if scores, status := f.waitForScores(); !slices.Equal(scores, []int64{0, 14, 100}) {
		t.Errorf("the node is put right: got scores %v and status %v", scores, status)
	}
}

// The pod limits memory only, and node3 would be the best by its memory alone: its cpu must not be passed over because
// it could not be read.
func TestNodeThatCannotBeReadDoesNotWin(t *testing.T) {
	f := newRealFixture(t, enginetest.Address(t), time.Now)
	f.plugin.policy.Resources = []*loadlinev1.ResourceWeight{{Resource: "cpu", Weight: 1},
		{Resource: "memory", Weight: 1}}
	offer := func(name string, cpu, memory string) *v1.Node {
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{Allocatable: v1.ResourceList{
			"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}}}
	}
	f.nodes = []fwk.NodeInfo{nodeinfo.New(1, offer("node1", "8", "8Gi")), nodeinfo.New(2, offer("node2", "8", "16Gi")),
		nodeinfo.New(3, offer("node3", "-8", "64Gi"))}
	f.handle.nodes = f.nodes
	f.pod = pod()
	f.pod.Spec.Containers[0].Resources = v1.ResourceRequirements{
		Limits: v1.ResourceList{"memory": resource.MustParse("4Gi")}}
	if scores, status := f.waitForScores(); !slices.Equal(scores, []int64{0, 100, 0}) {
		t.Errorf("got scores %v and status %v, want node2 first and nothing for node3", scores, status)
	}
}

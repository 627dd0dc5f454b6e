package e2e

import (
	"context"
	"fmt"
	"math"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/test/e2e/demo"
	"loadline.dev/test/e2e/harness"
	"loadline.dev/test/e2e/workload"
)

const (
	breakerOpensAt = 5 // failures in a row; then one question a second
	faultPods      = 1000
	placedWithout  = 5 // pods that have to be placed while the engine is away
)

// loadlined is killed, stopped and restarted while 1,000 pods are placed through it. Every pod is placed, also while
// there is no engine, few cycles wait for a dead one, and afterwards scores come from the engine again. How long a
// cycle waits is a matter of its deadline, which tests of the plugin hold. Invariants H1, F7.
func TestEngineFaultsDelayNoPod(t *testing.T) {
	const count = faultPods
	ctx := deadline(t)
	cluster := startCluster(t, ctx, harness.Options{Log: t.Logf})
	w := workload.Generate(3, 300)
	if err := cluster.CreateNodes(ctx, w.Nodes); err != nil {
		t.Fatal(err)
	}
	watch, err := cluster.WatchPods(ctx)
	if err != nil {
		t.Fatal(err)
	}
	engine := startEngine(t, ctx, cluster)
	scheduler := startOurs(t, ctx, cluster, harness.SecondSchedulerConfig, engine.Address, 0)
	created := make(chan error, 1)
	go func() { created <- createPaced(ctx, cluster, forOurs(w.Pods[:count])) }()

	f := &faults{t: t, ctx: ctx, cluster: cluster, watch: watch, engine: engine, scheduler: scheduler}
	f.during(150, "kill and restart", 1500*time.Millisecond, engine.Kill, f.restart)
	f.during(400, "stop and continue", 1500*time.Millisecond,
		func() { f.signal(syscall.SIGSTOP) }, func() { f.signal(syscall.SIGCONT) })
	f.during(650, "orderly restart", 500*time.Millisecond, func() {
		if err := engine.Stop(); err != nil {
			t.Error(err)
		}
	}, f.restart)
	if err := <-created; err != nil {
		t.Fatal(err)
	}
	if err := watch.WaitBound(ctx, count); err != nil {
		t.Fatal(err)
	}
	if !scheduler.Running() {
		t.Errorf("the scheduler has ended: %s", scheduler.Exit())
	}
	f.checkCost()
	f.checkEngineIsBack(w.Pods[count : count+200])
}

// createPaced creates at most 100 pods a second, so that on a fast machine too some are left for the last fault.
func createPaced(ctx context.Context, cluster *harness.Cluster, pods []*v1.Pod) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for i := range pods {
		<-ticker.C
		if err := cluster.CreatePodsInOrder(ctx, pods[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// forOurs lets pods be placed by the scheduler of manifests/second-scheduler.
func forOurs(pods []*v1.Pod) []*v1.Pod {
	for _, pod := range pods {
		pod.Spec.SchedulerName = demo.OurScheduler
	}
	return pods
}

type faults struct {
	t         *testing.T
	ctx       context.Context
	cluster   *harness.Cluster
	watch     *harness.PodWatch
	engine    *harness.Engine
	scheduler *harness.Scheduler
}

func (f *faults) metrics() harness.Metrics {
	f.t.Helper()
	return metricsOf(f.t, f.ctx, f.scheduler)
}

// failures counts the cycles that waited for an engine and got no answer.
func (f *faults) failures() float64 {
	f.t.Helper()
	skipped := f.metrics().By(demo.CyclesSkipped, "reason")
	return skipped["timeout"] + skipped["unavailable"]
}

// during takes the engine away, for a while and until some pods are placed without it, once so many are bound. It
// checks that few cycles wait for the engine, and that it answers again after it is back.
func (f *faults) during(bound int, name string, outage time.Duration, down, up func()) {
	f.t.Helper()
	f.waitBound(bound)
	down()
	placed, failures, start := f.watch.Progress().Bound, f.failures(), time.Now()
	time.Sleep(outage)
	f.waitBound(placed + placedWithout)
	placed, failures = f.watch.Progress().Bound-placed, f.failures()-failures
	gone := time.Since(start)
	up()
	// Five in a row open the breaker; then there is one a second.
	if most := breakerOpensAt + math.Ceil(gone.Seconds()); failures > most {
		f.t.Errorf("%s: %v cycles waited for the engine in %v, want at most %v", name, failures, gone, most)
	}
	f.waitAnswer(name)
	f.t.Logf("%s: %d pods were placed in %v, %v cycles waited for the engine",
		name, placed, gone.Round(time.Millisecond), failures)
}

// waitAnswer waits until the engine has scored one more cycle.
func (f *faults) waitAnswer(name string) {
	f.t.Helper()
	answered := f.metrics().Sum(demo.CyclesAnswered, nil)
	for start := time.Now(); time.Since(start) < 5*time.Minute; time.Sleep(20 * time.Millisecond) {
		if f.metrics().Sum(demo.CyclesAnswered, nil) > answered {
			return
		}
		if f.watch.Progress().Bound == faultPods {
			f.t.Fatalf("%s: no pod is left for the engine to score: more of them are needed", name)
		}
	}
	f.t.Fatalf("%s: the engine is not asked again; skipped by reason: %v",
		name, f.metrics().By(demo.CyclesSkipped, "reason"))
}

func (f *faults) waitBound(bound int) {
	f.t.Helper()
	for f.watch.Progress().Bound < bound {
		select {
		case <-f.ctx.Done():
			f.t.Fatalf("%+v: %v", f.watch.Progress(), f.ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (f *faults) signal(sig syscall.Signal) {
	f.t.Helper()
	if err := f.engine.Signal(sig); err != nil {
		f.t.Fatal(err)
	}
}

func (f *faults) restart() {
	f.t.Helper()
	if err := f.engine.Restart(f.ctx); err != nil {
		f.t.Fatal(err)
	}
}

// checkCost checks that the faults were felt, and no other trouble.
func (f *faults) checkCost() {
	f.t.Helper()
	metrics := f.metrics()
	skipped := metrics.By(demo.CyclesSkipped, "reason")
	prescore := metrics.Histogram("loadline_scheduler_prescore_duration_seconds", nil)
	f.t.Logf("answered %v, skipped by reason %v; PreScore: %d calls, %.3f s in all",
		metrics.Sum(demo.CyclesAnswered, nil), skipped, prescore.Count, prescore.Sum)
	if skipped["timeout"] == 0 || skipped["breaker_open"] == 0 {
		f.t.Errorf("no timeout or no open breaker: the faults did not reach the plugin; skipped by reason: %v", skipped)
	}
	for _, never := range []string{"panic", "bad_answer", "error", "invalid_argument"} {
		if skipped[never] > 0 {
			f.t.Errorf("%v cycles were skipped for reason %q", skipped[never], never)
		}
	}
}

// checkEngineIsBack places more pods and checks that they have the engine's scores, but for cycles in which it was
// late, as it may be on a busy machine.
func (f *faults) checkEngineIsBack(pods []*v1.Pod) {
	f.t.Helper()
	before := f.metrics()
	bound := f.watch.Progress().Total
	for _, pod := range forOurs(pods) {
		pod.Name = "after-" + pod.Name
	}
	if err := f.cluster.CreatePods(f.ctx, pods); err != nil {
		f.t.Fatal(err)
	}
	if err := f.watch.WaitBound(f.ctx, bound+len(pods)); err != nil {
		f.t.Fatal(err)
	}
	after := f.metrics()
	answered := after.Sum(demo.CyclesAnswered, nil) - before.Sum(demo.CyclesAnswered, nil)
	skippedBefore, skipped := before.By(demo.CyclesSkipped, "reason"), after.By(demo.CyclesSkipped, "reason")
	late := skipped["timeout"] + skipped["breaker_open"] - skippedBefore["timeout"] - skippedBefore["breaker_open"]
	if answered == 0 || answered+late < float64(len(pods)) || skipped["unavailable"] > skippedBefore["unavailable"] {
		f.t.Errorf("after the faults the engine scored %v of %d cycles; skipped by reason: before %v, after %v",
			answered, len(pods), skippedBefore, skipped)
	}
}

// A second loadlined on the same socket refuses to start, says why, and leaves the first one alone.
func TestSecondEngineRefusesToStart(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	cluster := startCluster(t, ctx, harness.Options{Log: t.Logf})
	if err := demo.SetUpExample(ctx, cluster); err != nil {
		t.Fatal(err)
	}
	engine := startEngine(t, ctx, cluster)
	scheduler := startOurs(t, ctx, cluster, harness.SecondSchedulerConfig, engine.Address, demo.PatientTimeout)
	second, err := engine.SecondEngine(ctx)
	if err != nil {
		t.Fatal(err)
	}
	log, err := second.Log()
	if err != nil {
		t.Fatal(err)
	}
	if second.ExitCode() != 3 || !strings.Contains(log, "another loadlined serves") ||
		!strings.Contains(log, strings.TrimPrefix(engine.Address, "unix://")) {
		t.Errorf("the second loadlined: %s, want exit status 3; and a word of the other one on that socket; it "+
			"said:\n%s", second.Exit(), log)
	}
	if !engine.Running() {
		t.Fatalf("the first loadlined has ended: %s", engine.Exit())
	}
	for range 2 {
		node, err := demo.PlaceExamplePod(ctx, cluster, demo.OurScheduler)
		if err != nil {
			t.Fatal(err)
		}
		if node != "node2" {
			t.Errorf("pod5 is on %s, want node2 as the first engine has it", node)
		}
	}
	if answered := metricsOf(t, ctx, scheduler).Sum(demo.CyclesAnswered, nil); answered != 2 {
		t.Errorf("the first engine scored %v cycles, want 2", answered)
	}
	if got := fmt.Sprint(metricsOf(t, ctx, scheduler).Sum(demo.CyclesSkipped, nil)); got != "0" {
		t.Errorf("%s cycles were skipped", got)
	}
}

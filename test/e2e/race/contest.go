package race

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/test/e2e/harness"
)

// Contestant makes nodes and takes them away.
type Contestant struct {
	Name string
	// Settings are for people: what it is set to, but for what it has by default.
	Settings string
	// Simulated is how the simulator is set to be it; nil: it cannot be.
	Simulated *loadlinev1.SimulatedSettings
	start     func(context.Context, *contest) error
	// memoryLine is up to which share of a node's memory limits may come: our scheduler's load line; 0: the stock
	// scheduler, which has none.
	memoryLine float64
}

// contest is one contestant on its way through a scenario.
type contest struct {
	*harness.Cluster
	scenario *Scenario
	log      harness.Logf
	closers  []func() error
}

func (c *contest) close() error {
	var errs []error
	for i := len(c.closers) - 1; i >= 0; i-- {
		errs = append(errs, c.closers[i]())
	}
	return errors.Join(errs...)
}

// stockScheduler is the unchanged kube-scheduler, but that it may ask as often as it likes.
const stockScheduler = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

// Compete lets one contestant run through a scenario, on a control plane of its own.
func Compete(ctx context.Context, s *Scenario, who *Contestant, log harness.Logf) (run *Run, err error) {
	cluster, err := harness.Start(ctx, harness.Options{Log: log, ControllerManager: true, Kubelet: true})
	if err != nil {
		return nil, err
	}
	c := &contest{Cluster: cluster, scenario: s, log: log, closers: []func() error{cluster.Close}}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := c.prepare(ctx, who.memoryLine); err != nil {
		return nil, err
	}
	if err := who.start(ctx, c); err != nil {
		return nil, fmt.Errorf("%s: %w", who.Name, err)
	}
	watcher, err := watchCluster(ctx, cluster.Client, s)
	if err != nil {
		return nil, err
	}
	player := &player{client: cluster.Client, scenario: s}
	watcher.begin()
	if err := player.play(ctx, watcher.sample); err != nil {
		return nil, err
	}
	run = &Run{Contestant: who.Name, Settings: who.Settings, Measured: watcher.end()}
	if folder := os.Getenv("RACE_LOGS"); folder != "" {
		err = os.WriteFile(filepath.Join(folder, fmt.Sprintf("%s-%d-%s.log", s.Name, s.Seed, who.Name)),
			[]byte(cluster.Logs()), 0o644)
	}
	return run, err
}

// startScheduler starts the stock scheduler, or with a load line ours.
func (c *contest) startScheduler(ctx context.Context, memoryLine float64) error {
	options := harness.SchedulerOptions{Name: "scheduler", Config: []byte(stockScheduler),
		Site: harness.Site{QPS: 5000, NoLeaderElection: true}}
	if memoryLine > 0 {
		engine, err := c.StartEngine(ctx, "loadlined-of-scheduler")
		if err != nil {
			return err
		}
		if options.Executable, err = harness.LoadlineScheduler.Path(); err != nil {
			return err
		}
		if options.Config, err = harness.ManifestConfig(harness.ReplacementConfig); err != nil {
			return err
		}
		options.Site.EngineAddress = engine.Address
		options.Site.MaxLimitsOverAllocatable = map[string]float64{string(v1.ResourceMemory): memoryLine}
	}
	_, err := c.StartScheduler(ctx, options)
	return err
}

// prepare starts the scheduler, and makes one node that runs what every cluster runs: no contestant has made it, and no
// pod of the load is placed there.
func (c *contest) prepare(ctx context.Context, memoryLine float64) error {
	if err := c.startScheduler(ctx, memoryLine); err != nil {
		return err
	}
	size := v1.ResourceList{v1.ResourceCPU: resource.MustParse("2"), v1.ResourceMemory: resource.MustParse("4Gi"),
		v1.ResourcePods: resource.MustParse("110")}
	const taint = "CriticalAddonsOnly"
	if err := c.CreateNodes(ctx, []*v1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "base",
		Labels: map[string]string{v1.LabelHostname: "base"}},
		Spec: v1.NodeSpec{Taints: []v1.Taint{{Key: taint, Effect: v1.TaintEffectNoSchedule}}},
		Status: v1.NodeStatus{Capacity: size, Allocatable: size,
			Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}}}}); err != nil {
		return err
	}
	return c.CreatePods(ctx, []*v1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "resident"},
		Spec: v1.PodSpec{Tolerations: []v1.Toleration{{Key: taint, Operator: v1.TolerationOpExists}},
			Containers: []v1.Container{{Name: "c", Image: "registry.example/dns:1"}}}}})
}

// until waits until something holds, for a minute at most.
func until(ctx context.Context, what string, holds func() error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := holds()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain for %s: %w", what, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

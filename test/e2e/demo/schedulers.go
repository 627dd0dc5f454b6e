package demo

import (
	"context"
	"errors"
	"fmt"

	"loadline.dev/test/e2e/harness"
	"loadline.dev/test/e2e/workload"
)

// Names that pods give in spec.schedulerName. The second is set in manifests/second-scheduler.
const (
	StockScheduler = "default-scheduler"
	OurScheduler   = "loadline-scheduler"
)

// demoSite lifts the schedulers' own request limit, 50 a second by default, and starts without a lease.
var demoSite = harness.Site{QPS: 5000, NoLeaderElection: true}

// An Example is the set-up of KEP 217's example with both schedulers running.
type Example struct {
	cluster     *harness.Cluster
	engine      *harness.Engine
	stock, ours *harness.Scheduler
}

// StartExample creates nodes and pods of the example and starts the stock scheduler and, beside it, ours with a
// loadlined.
func StartExample(ctx context.Context, cluster *harness.Cluster) (*Example, error) {
	if err := SetUpExample(ctx, cluster); err != nil {
		return nil, err
	}
	e := &Example{cluster: cluster}
	var err error
	if e.stock, err = cluster.StartScheduler(ctx, harness.SchedulerOptions{
		Name: StockName, Config: []byte(stockConfig), Site: demoSite,
	}); err != nil {
		return nil, err
	}
	if e.engine, err = cluster.StartEngine(ctx, "loadlined"); err != nil {
		return nil, err
	}
	options, err := OurOptions(harness.SecondSchedulerConfig, e.engine.Address)
	if err != nil {
		return nil, err
	}
	e.ours, err = cluster.StartScheduler(ctx, options)
	return e, err
}

// Stop stops what StartExample started and empties the cluster.
func (e *Example) Stop(ctx context.Context) error {
	return errors.Join(e.ours.Stop(), e.engine.Stop(), e.stock.Stop(), e.cluster.Clear(ctx))
}

// stockConfig is the stock scheduler as it comes.
const stockConfig = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

// OurOptions are loadline-scheduler with a configuration of manifests/ and an engine at an address.
func OurOptions(config, engineAddress string) (harness.SchedulerOptions, error) {
	executable, err := harness.LoadlineScheduler.Path()
	if err != nil {
		return harness.SchedulerOptions{}, err
	}
	content, err := harness.ManifestConfig(config)
	if err != nil {
		return harness.SchedulerOptions{}, err
	}
	site := demoSite
	site.EngineAddress = engineAddress
	return harness.SchedulerOptions{Name: OursName, Executable: executable, Config: content, Site: site}, nil
}

// FillWithStock places a workload with the stock scheduler, configured as in manifests/replacement but without the
// plugin.
func FillWithStock(ctx context.Context, cluster *harness.Cluster, w workload.Workload, progress func(harness.Progress)) (Filling, error) {
	config, err := harness.ManifestConfig(harness.ReplacementConfig)
	if err != nil {
		return Filling{}, err
	}
	if config, err = harness.WithoutPlugin(config); err != nil {
		return Filling{}, err
	}
	return Fill(ctx, cluster, w, harness.SchedulerOptions{Name: StockName, Config: config, Site: demoSite}, progress)
}

// FillWithOurs places a workload with loadline-scheduler and a loadlined, configured as in manifests/replacement.
func FillWithOurs(ctx context.Context, cluster *harness.Cluster, w workload.Workload, progress func(harness.Progress)) (filling Filling, err error) {
	engine, err := cluster.StartEngine(ctx, "loadlined")
	if err != nil {
		return Filling{}, err
	}
	defer func() { err = errors.Join(err, engine.Stop()) }()
	options, err := OurOptions(harness.ReplacementConfig, engine.Address)
	if err != nil {
		return Filling{}, err
	}
	return Fill(ctx, cluster, w, options, progress)
}

// Counters of the plugin on the scheduler's /metrics.
const (
	CyclesAnswered = "loadline_scheduler_cycles_answered_total"
	CyclesSkipped  = "loadline_scheduler_cycles_skipped_total"
)

// CheckAnswered says when the placement was not the engine's doing: fewer than 99 % of the cycles had its scores.
func CheckAnswered(ours Filling) []string {
	answered, skipped := ours.Metrics.Sum(CyclesAnswered, nil), ours.Metrics.Sum(CyclesSkipped, nil)
	if answered == 0 || skipped > (answered+skipped)/100 {
		return []string{fmt.Sprintf("the engine scored only %.0f of %.0f cycles; skipped by reason: %v",
			answered, answered+skipped, ours.Metrics.By(CyclesSkipped, "reason"))}
	}
	return nil
}

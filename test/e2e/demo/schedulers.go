package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

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

// StartExample creates nodes and pods of KEP 217's example and starts the stock scheduler and, beside it, ours with a
// loadlined, as manifests/second-scheduler has it. They run until the cluster is closed.
func StartExample(ctx context.Context, cluster *harness.Cluster) error {
	if err := SetUpExample(ctx, cluster); err != nil {
		return err
	}
	if _, err := cluster.StartScheduler(ctx, harness.SchedulerOptions{
		Name: StockName, Config: []byte(stockConfig), Site: demoSite,
	}); err != nil {
		return err
	}
	engine, err := cluster.StartEngine(ctx, "loadlined")
	if err != nil {
		return err
	}
	options, err := OurOptions(harness.SecondSchedulerConfig, engine.Address)
	if err != nil {
		return err
	}
	options.Site.EngineTimeout = PatientTimeout
	_, err = cluster.StartScheduler(ctx, options)
	return err
}

// stockConfig is the unchanged stock scheduler.
const stockConfig = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

// PatientTimeout is how long a scheduler waits for the engine where the place of each single pod counts.
const PatientTimeout = 500 * time.Millisecond

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
// plugin, on a control plane of its own.
func FillWithStock(ctx context.Context, w workload.Workload, log harness.Logf) (Filling, error) {
	config, err := harness.ManifestConfig(harness.ReplacementConfig)
	if err != nil {
		return Filling{}, err
	}
	if config, err = harness.WithoutPlugin(config); err != nil {
		return Filling{}, err
	}
	return onFreshCluster(ctx, log, func(cluster *harness.Cluster) (Filling, error) {
		return Fill(ctx, cluster, w, harness.SchedulerOptions{Name: StockName, Config: config, Site: demoSite}, log)
	})
}

// FillWithOurs places a workload with loadline-scheduler and a loadlined, configured as in manifests/replacement, on a
// control plane of its own.
func FillWithOurs(ctx context.Context, w workload.Workload, log harness.Logf) (Filling, error) {
	return onFreshCluster(ctx, log, func(cluster *harness.Cluster) (Filling, error) {
		engine, err := cluster.StartEngine(ctx, "loadlined")
		if err != nil {
			return Filling{}, err
		}
		options, err := OurOptions(harness.ReplacementConfig, engine.Address)
		if err != nil {
			return Filling{}, err
		}
		return Fill(ctx, cluster, w, options, log)
	})
}

// onFreshCluster fills an empty cluster: no placement learns anything from the one before.
func onFreshCluster(ctx context.Context, log harness.Logf,
	fill func(*harness.Cluster) (Filling, error)) (filling Filling, err error) {
	cluster, err := harness.Start(ctx, harness.Options{Log: log})
	if err != nil {
		return Filling{}, err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	return fill(cluster)
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

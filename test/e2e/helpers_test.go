// Package e2e holds the end-to-end tests: real etcd, kube-apiserver and schedulers, our own binaries as `make build`
// leaves them, and the configurations of manifests/.
package e2e

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"loadline.dev/test/e2e/demo"
	"loadline.dev/test/e2e/harness"
)

// startCluster starts a control plane for one test. Afterwards it checks that nothing of it is left: neither our
// binaries nor the others.
func startCluster(t *testing.T, ctx context.Context, options harness.Options) *harness.Cluster {
	t.Helper()
	cluster, err := harness.Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(cluster.Logs())
		}
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
		checkNothingLeft(t, cluster.Dir())
	})
	return cluster
}

func checkNothingLeft(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder %s is left: %v", dir, err)
	}
	commandLines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range commandLines {
		if line, err := os.ReadFile(file); err == nil && bytes.Contains(line, []byte(dir)) {
			t.Errorf("a process is left: %s", bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
		}
	}
}

// skipFor skips a test that needs a program which is not built. tools/test.sh says how many there were.
func skipFor(t *testing.T, why, target string) {
	t.Helper()
	if err := harness.NoteSkipped(t.Name(), target); err != nil {
		t.Error(err)
	}
	t.Skipf("%s: make %s takes some minutes for it", why, target)
}

// deadline bounds a whole test; alone on two cores each takes a tenth of that at most.
func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func startEngine(t *testing.T, ctx context.Context, cluster *harness.Cluster) *harness.Engine {
	t.Helper()
	engine, err := cluster.StartEngine(ctx, "loadlined")
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

// startPlainScheduler starts kube-scheduler with its default configuration, without leader election.
func startPlainScheduler(t *testing.T, ctx context.Context, cluster *harness.Cluster) {
	t.Helper()
	if _, err := cluster.StartScheduler(ctx, harness.SchedulerOptions{Name: "stock",
		Config: []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"),
		Site:   harness.Site{Kubeconfig: cluster.Kubeconfig, QPS: 1000, NoLeaderElection: true}}); err != nil {
		t.Fatal(err)
	}
}

// startOurs starts loadline-scheduler with a configuration of manifests/, and with patience for the engine if that is
// not 0.
func startOurs(t *testing.T, ctx context.Context, cluster *harness.Cluster, config, engineAddress string,
	patience time.Duration) *harness.Scheduler {
	t.Helper()
	options, err := demo.OurOptions(config, engineAddress)
	if err != nil {
		t.Fatal(err)
	}
	options.Site.EngineTimeout = patience
	scheduler, err := cluster.StartScheduler(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	return scheduler
}

func metricsOf(t *testing.T, ctx context.Context, component interface {
	Metrics(context.Context) (harness.Metrics, error)
}) harness.Metrics {
	t.Helper()
	metrics, err := component.Metrics(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return metrics
}

// accepted returns the autoscalers' requests that the API server has accepted, in order.
func accepted(t *testing.T, cluster *harness.Cluster, verb, resource string) []harness.Change {
	t.Helper()
	changes, err := cluster.Changes(autoscalerUser)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(changes, func(c harness.Change) bool {
		return c.Verb != verb || c.Resource != resource || c.Code >= 300
	})
}

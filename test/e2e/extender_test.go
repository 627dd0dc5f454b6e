package e2e

import (
	"context"
	"syscall"
	"testing"
	"time"

	"loadline.dev/test/e2e/demo"
	"loadline.dev/test/e2e/harness"
)

// extenderCluster is the example's cluster with the gateway of manifests/extender, running with its rights.
func extenderCluster(t *testing.T, ctx context.Context) (*harness.Cluster, string) {
	t.Helper()
	cluster := startCluster(t, ctx, harness.Options{Log: t.Logf})
	apply(t, ctx, cluster, "extender")
	if err := demo.SetUpExample(ctx, cluster); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := cluster.ServiceAccountKubeconfig(ctx, "kube-system", "loadline-gateway")
	if err != nil {
		t.Fatal(err)
	}
	return cluster, kubeconfig
}

// startStock starts the stock scheduler with the configuration of manifests/extender, as the user that it has.
func startStock(t *testing.T, ctx context.Context, cluster *harness.Cluster, extenderURL string) *harness.Scheduler {
	t.Helper()
	config, err := harness.ManifestConfig(harness.ExtenderConfig)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := cluster.UserKubeconfig("system:kube-scheduler", "system:authenticated")
	if err != nil {
		t.Fatal(err)
	}
	scheduler, err := cluster.StartScheduler(ctx, harness.SchedulerOptions{
		Name: "stock", Config: config, Site: harness.Site{Kubeconfig: kubeconfig, ExtenderURL: extenderURL}})
	if err != nil {
		t.Fatal(err)
	}
	return scheduler
}

// The stock scheduler asks the gateway and puts pod5 on node2. While the gateway is dead or does not answer it places
// pod5 all the same, by its own scores on node1, once httpTimeout is over.
func TestStockSchedulerWithGateway(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	cluster, kubeconfig := extenderCluster(t, ctx)
	engine := startEngine(t, ctx, cluster)
	gateway, err := cluster.StartGateway(ctx, "gateway", kubeconfig, engine.Address)
	if err != nil {
		t.Fatal(err)
	}
	scheduler := startStock(t, ctx, cluster, gateway.URL)
	expectNode(t, ctx, cluster, demo.StockScheduler, "node2")
	if scored := metricsOf(t, ctx, gateway).Sum("loadline_extender_requests_total",
		harness.Labels{"result": "scored"}); scored != 1 {
		t.Errorf("the gateway scored %v requests, want 1", scored)
	}
	if whole := metricsOf(t, ctx, gateway).Sum("loadline_extender_full_node_requests_total", nil); whole != 0 {
		t.Errorf("%v requests had whole nodes, want names only", whole)
	}

	if err := gateway.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	expectNode(t, ctx, cluster, demo.StockScheduler, "node1") // after httpTimeout, by the scheduler's own scores
	if err := gateway.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	expectNode(t, ctx, cluster, demo.StockScheduler, "node2")

	gateway.Kill()
	expectNode(t, ctx, cluster, demo.StockScheduler, "node1")
	if !scheduler.Running() {
		t.Errorf("the scheduler has ended: %s", scheduler.Exit())
	}
	expectNothingForbidden(t, gateway.Process)
	expectNothingForbidden(t, scheduler.Process)
}

// A gateway is ready once its engine knows the cluster, and not before; without an engine it answers all the same,
// and the scheduler continues by its own scores.
func TestGatewayIsReadyWithItsEngine(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	cluster, kubeconfig := extenderCluster(t, ctx)
	engine := startEngine(t, ctx, cluster)
	engine.Kill()
	gateway, err := cluster.StartGatewayUnready(ctx, "gateway", kubeconfig, engine.Address)
	if err != nil {
		t.Fatal(err)
	}
	startStock(t, ctx, cluster, gateway.URL)
	if err := gateway.Ready(ctx); err == nil {
		t.Error("the gateway is ready without an engine")
	}
	expectNode(t, ctx, cluster, demo.StockScheduler, "node1")
	if scored := metricsOf(t, ctx, gateway).Sum("loadline_extender_requests_total",
		harness.Labels{"result": "scored"}); scored != 0 {
		t.Errorf("the gateway scored %v requests without an engine", scored)
	}
	if neutral := metricsOf(t, ctx, gateway).Sum("loadline_extender_requests_total",
		harness.Labels{"result": "neutral"}); neutral != 1 {
		t.Errorf("the gateway gave %v neutral answers, want 1", neutral)
	}
	if err := engine.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		err := gateway.Ready(ctx)
		if err == nil {
			break
		}
		if time.Since(start) > 60*time.Second {
			t.Fatalf("the gateway does not get ready: %v", err)
		}
	}
	expectNode(t, ctx, cluster, demo.StockScheduler, "node2")
}

package e2e

import (
	"testing"
	"time"

	"loadline.dev/test/e2e/demo"
	"loadline.dev/test/e2e/harness"
)

// With exactly one feasible node kube-scheduler asks for no score: neither the plugin nor the extender is called, and
// the node is taken. With a second one both are.
func TestOneFeasibleNodeIsNotScored(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	cluster := startCluster(t, ctx, harness.Options{Log: t.Logf})
	apply(t, ctx, cluster, "extender")
	nodes := demo.ExampleNodes()
	if err := cluster.CreateNodes(ctx, nodes[:1]); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := cluster.ServiceAccountKubeconfig(ctx, "kube-system", "loadline-gateway")
	if err != nil {
		t.Fatal(err)
	}
	engine := startEngine(t, ctx, cluster)
	ours := startOurs(t, ctx, cluster, harness.SecondSchedulerConfig, engine.Address, demo.PatientTimeout)
	gateway, err := cluster.StartGateway(ctx, "gateway", kubeconfig, engine.Address)
	if err != nil {
		t.Fatal(err)
	}
	startStock(t, ctx, cluster, gateway.URL)

	asked := func() (cycles, requests float64) {
		m := metricsOf(t, ctx, ours)
		return m.Sum(demo.CyclesAnswered, nil) + m.Sum(demo.CyclesSkipped, nil),
			metricsOf(t, ctx, gateway).Sum("loadline_extender_requests_total", nil)
	}
	expectNode(t, ctx, cluster, demo.OurScheduler, "node1")
	expectNode(t, ctx, cluster, demo.StockScheduler, "node1")
	if cycles, requests := asked(); cycles != 0 || requests != 0 {
		t.Errorf("with one node the plugin was asked in %v cycles, the gateway %v times", cycles, requests)
	}

	if err := cluster.CreateNodes(ctx, nodes[1:]); err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); ; { // until both schedulers have heard of the node
		for _, scheduler := range []string{demo.OurScheduler, demo.StockScheduler} {
			if _, err := demo.PlaceExamplePod(ctx, cluster, scheduler); err != nil {
				t.Fatal(err)
			}
		}
		cycles, requests := asked()
		if cycles > 0 && requests > 0 {
			break
		}
		if time.Since(start) > 30*time.Second {
			t.Fatalf("with two nodes the plugin was asked in %v cycles, the gateway %v times", cycles, requests)
		}
	}
}

package e2e

import (
	"fmt"
	"os"
	"testing"

	"loadline.dev/shim/report"
	"loadline.dev/test/e2e/demo"
	"loadline.dev/test/e2e/workload"
)

// The result of the demo on one seed is true on each of five: p95 and maximum of limits/allocatable are lower with
// loadline-scheduler, for cpu and memory, with no more pods pending; and no pod is where it must not be. The seeds run
// one after another: five control planes at once on two cores take each other's time until schedulers time out.
// Invariant A7.
func TestClaimOnFiveSeeds(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		t.Run(fmt.Sprintf("Seed%d", seed), func(t *testing.T) {
			ctx := deadline(t)
			w := workload.Generate(seed, 300)
			stock, err := demo.FillWithStock(ctx, w, t.Logf)
			if err != nil {
				t.Fatal(err)
			}
			ours, err := demo.FillWithOurs(ctx, w, t.Logf)
			if err != nil {
				t.Fatal(err)
			}
			for _, broken := range append(demo.CheckClaim(stock.Placement, ours.Placement),
				demo.CheckAnswered(ours)...) {
				t.Error(broken)
			}
			for _, problem := range violations(w.Nodes, ours.Pods) {
				t.Error(problem)
			}
			if err := report.Table(os.Stdout, []report.Placement{stock.Placement, ours.Placement}); err != nil {
				t.Error(err)
			}
		})
	}
}

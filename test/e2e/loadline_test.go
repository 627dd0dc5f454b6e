package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/report"
	"loadline.dev/test/e2e/demo"
	"loadline.dev/test/e2e/workload"
)

// Under a load line for memory no node is ever above it; where the demo's pods have room at all, on at most 5 % more
// nodes with no more pods pending. No pod is where it must not be, and a pod that nothing takes gets the reason.
func TestLoadLineOnAControlPlane(t *testing.T) {
	ctx := deadline(t)
	for seed := uint64(1); seed <= 2; seed++ {
		t.Run(fmt.Sprintf("Seed%d", seed), func(t *testing.T) {
			w := workload.Generate(seed, 100)
			ours, err := demo.FillWithOurs(ctx, w, t.Logf)
			if err != nil {
				t.Fatal(err)
			}
			more := demo.WithMoreNodes(w, demo.MoreNodes)
			lined, err := demo.FillWithLine(ctx, more, demo.MemoryLine, t.Logf)
			if err != nil {
				t.Fatal(err)
			}
			for _, broken := range demo.CheckLine(more.Nodes, lined.Pods, demo.MemoryLine) {
				t.Error(broken)
			}
			// The limits of memory of the second workload are 1.48 times what there is, in the mean.
			if before, after := ours.Placement.PendingPods, lined.Placement.PendingPods; seed == 1 && after > before {
				t.Errorf("%d pods are pending on %d nodes, without the line %d on %d", after, len(more.Nodes), before,
					len(w.Nodes))
			}
			for _, problem := range violations(more.Nodes, lined.Pods) {
				t.Error(problem)
			}
			if failures := lined.Metrics.Sum("loadline_scheduler_load_line_failures_total", nil); failures > 0 {
				t.Logf("%v cycles had no answer: %v", failures,
					lined.Metrics.By("loadline_scheduler_load_line_failures_total", "reason"))
			}
			if err := report.Table(os.Stdout, []report.Placement{ours.Placement, lined.Placement}); err != nil {
				t.Error(err)
			}
		})
	}
	// On few nodes the line keeps pods off, and the scheduler says so.
	w := workload.Generate(3, 30)
	lined, err := demo.FillWithLine(ctx, w, 0.5, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	told := false
	for _, pod := range lined.Pods {
		for _, condition := range pod.Status.Conditions {
			told = told || condition.Type == v1.PodScheduled &&
				strings.Contains(condition.Message, "load line: memory limits would exceed 0.5 x allocatable")
		}
	}
	if lined.Placement.PendingPods == 0 || !told {
		t.Errorf("%d pods are pending, the reason is told: %v", lined.Placement.PendingPods, told)
	}
}

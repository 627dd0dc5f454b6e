package e2e

import (
	"testing"

	"loadline.dev/test/e2e/demo"
)

// The demo's third part: load arrives and the cheapest mix of nodes appears; a burst is placed at once where slack is kept,
// and waits for a node where it is not; load leaves, and nodes drain in parallel within budgets. By the records of API server
// and cloud, nothing happened that must not. Invariants D1, D2, D3.
func TestScaling(t *testing.T) {
	without, with, err := demo.RunScalings(deadline(t), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range demo.CheckScaling(&without, &with) {
		t.Error(problem)
	}
}

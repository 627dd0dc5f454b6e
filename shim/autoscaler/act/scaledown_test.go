package act

import (
	"maps"
	"testing"
	"time"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/plan"
)

// Nodes that wait for budgets of others are as little needed as those that can go: both get soft taints.
func TestNodesBehindBudgetsAreNotNeeded(t *testing.T) {
	o := &plan.Loop{Plan: &plan.Plan{
		PlanDrainResponse: &loadlinev1.PlanDrainResponse{
			Remove:        []*loadlinev1.NodeRemoval{{Slot: 1, SinceS: 100}},
			BehindBudgets: []*loadlinev1.UnneededBehindBudget{{Slot: 2, SinceS: 200}}},
		NameOf: map[int32]string{1: "goes", 2: "waits", 3: "stays"}}}
	want := map[string]time.Time{"goes": time.Unix(100, 0), "waits": time.Unix(200, 0)}
	if got := unneededOf(o); !maps.Equal(got, want) {
		t.Errorf("not needed: %v, want %v", got, want)
	}
}

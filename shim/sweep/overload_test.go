package sweep

import (
	"strings"
	"testing"

	"loadline.dev/shim/api/loadlinev1"
)

// overloadPlan has today's point and three lines.
func overloadPlan(t *testing.T, goal string, use *loadlinev1.SimulatedUse) (*Plan, error) {
	t.Helper()
	file, err := ParseFile([]byte(`{apiVersion: loadline.dev/v1alpha1, kind: Sweep, metadata: {name: s}, spec: {inputs: [
		{scenario: x}], settings: [{path: settings.maxLimitsOverAllocatable.cpu, values: [1, 2, 3]}], goal: ` + goal + `}}`))
	if err != nil {
		return nil, err
	}
	return NewPlan(file, []string{"x"}, []*loadlinev1.Scenario{{
		Workloads: []*loadlinev1.SimulatedWorkload{{Name: "w", Use: use}}}})
}

// A wider line costs less and overloads nodes for longer: the cheapest within the goal is the second line, and with a
// bound of the wait as well the first.
func TestTheCheapestLineIsChosenByOverload(t *testing.T) {
	use := &loadlinev1.SimulatedUse{Pattern: loadlinev1.SimulatedUse_FLAT}
	rows := map[int]*Row{}
	for i, row := range []Row{{USD: 50, WaitP95: 1, CPUOverload: 90}, {USD: 100, WaitP95: 3},
		{USD: 80, WaitP95: 9, CPUOverload: 1, MemoryOverload: 1}, {USD: 60, WaitP95: 2, CPUOverload: 20}} {
		row.Row = i
		rows[i] = &row
	}
	for goal, want := range map[string]int{"{overloadNodeHours: 2}": 2, "{overloadNodeHours: 0}": 1,
		"{overloadNodeHours: 2, p95WaitSeconds: 5}": 1, "{p95WaitSeconds: 5}": 0} {
		plan, err := overloadPlan(t, goal, use)
		if err != nil {
			t.Fatalf("%s: %v", goal, err)
		}
		s := plan.Summaries(Sorted(rows))[0]
		if s.Best == nil || s.Best.Point != want {
			t.Errorf("%s: the best is %+v, want point %d", goal, s.Best, want)
		}
		best := plan.best(rows, plan.allPoints(), 1, 1)
		if want != 0 && (len(best) != 2 || best[1] != want) {
			t.Errorf("%s: halving keeps %v, want %d and today's", goal, best, want)
		}
	}
	var table strings.Builder
	plan, _ := overloadPlan(t, "{overloadNodeHours: 2}", use)
	if err := plan.WriteCSV(&table, Sorted(rows)); err != nil || !strings.Contains(table.String(),
		",violations,cpu_overload_node_hours,memory_overload_node_hours\n") {
		t.Errorf("%v, %s", err, table.String())
	}
}

func TestAGoalOfOverloadTakesUse(t *testing.T) {
	for goal, want := range map[string]string{"{overloadNodeHours: 1}": "no workload of an input states its use",
		"{overloadNodeHours: -1}":                "goal.overloadNodeHours: -1 is below 0",
		"{}":                                     "goal: must have one of",
		"{p95WaitSeconds: 1, p50WaitSeconds: 1}": "goal: must have one of"} {
		if _, err := overloadPlan(t, goal, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", goal, err, want)
		}
	}
	plan, err := overloadPlan(t, "{p95WaitSeconds: 1}", nil)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := plan.WriteCSV(&table, []*Row{{}}); err != nil || strings.Contains(table.String(), "overload") {
		t.Errorf("%v: columns of overload without use: %s", err, table.String())
	}
}

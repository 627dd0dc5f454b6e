package karpenter

import (
	"slices"
	"strings"
	"testing"
	"time"

	"loadline.dev/shim/api/loadlinev1"
)

// A NodePool states in an annotation what spec.disruption.budgets would say. Its groups share each budget.
func TestBudgetsOfANodePool(t *testing.T) {
	w := newWorld(t, strings.Replace(managedPool, `labels: {loadline.dev/managed: "true"}`,
		`labels: {loadline.dev/managed: "true"}, annotations: {loadline.dev/disruption-budgets: '[{nodes: 20%}, `+
			`{nodes: "0", reasons: [Underutilized, Drifted], schedule: "0 9 * * 1-5", duration: 8h}, `+
			`{reasons: [Drifted]}, {}]'}`, 1))
	groups := w.groups()
	budgets := groups[small].Budgets
	if len(budgets) != 3 || !slices.Equal(budgets, groups["default/m5.xlarge/z1/spot"].Budgets) {
		t.Fatalf("budgets %v", budgets)
	}
	if budgets[0].GetPercent() != 20 || budgets[0].Window != nil || len(budgets[0].Reasons) != 0 ||
		budgets[2].GetPercent() != 10 {
		t.Errorf("of all reasons: %v and %v, want 20 percent and Karpenter's 10", budgets[0], budgets[2])
	}
	if want := []loadlinev1.NodeBudget_Reason{loadlinev1.NodeBudget_UNDERUTILIZED,
		loadlinev1.NodeBudget_REPLACED}; !slices.Equal(budgets[1].Reasons, want) || budgets[1].GetNodes() != 0 {
		t.Errorf("of one reason: %v", budgets[1])
	}
	from, until, _ := budgets[1].Window.At(time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)) // a Saturday
	got, want := from.Format(time.DateTime)+" "+until.Format(time.DateTime), "2026-11-30 09:00:00 2026-11-30 17:00:00"
	if got != want {
		t.Errorf("it holds %s", got)
	}
}

func TestBudgetsThatCannotBeRead(t *testing.T) {
	for text, want := range map[string]string{
		"10%":                                   "must be a list as in spec.disruption.budgets",
		"[{node: 1}]":                           "unknown field",
		"[{nodes: 1%}, {nodes: 110%}]":          `budget 1: nodes: "110%"`,
		"[{nodes: -1}]":                         `"-1" must be a number`,
		`[{nodes: "-1"}]`:                       `"-1" must be`,
		"[{reasons: [Expired]}]":                `"Expired" must be Empty, Underutilized or Drifted`,
		`[{schedule: "@daily"}]`:                "must be given together",
		"[{schedule: x, duration: 1h}]":         "schedule and duration:",
		"[{schedule: '@daily', duration: 1}]":   "duration",
		"[" + strings.Repeat("{},", 50) + "{}]": "has 51 budgets, at most 50",
	} {
		if _, err := readBudgets(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: error %v, want %q", text, err, want)
		}
	}
	if none, err := readBudgets(""); err != nil || len(none) != 0 {
		t.Errorf("without a text: %v, %v", none, err)
	}
}

package config

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"loadline.dev/shim/api/loadlinev1"
)

func TestNodeBudgets(t *testing.T) {
	s := RemovalLimits{NodeBudgets: []string{"10%", "2 of=spot of=main=web for=empty for=replaced",
		"0 for=underutilized in=0 9 * * 1-5 8h Europe/Berlin"}}
	budgets, err := s.Budgets()
	if err != nil || len(budgets) != 3 {
		t.Fatalf("%d budgets, error %v", len(budgets), err)
	}
	want := []*loadlinev1.NodeBudget{{Limit: &loadlinev1.NodeBudget_Percent{Percent: 10}},
		{Limit: &loadlinev1.NodeBudget_Nodes{Nodes: 2}, NodeGroups: []string{"spot", "main=web"},
			Reasons: []loadlinev1.NodeBudget_Reason{loadlinev1.NodeBudget_EMPTY, loadlinev1.NodeBudget_REPLACED}},
		{Limit: &loadlinev1.NodeBudget_Nodes{}, Reasons: []loadlinev1.NodeBudget_Reason{
			loadlinev1.NodeBudget_UNDERUTILIZED}}}
	for i, b := range budgets {
		if !proto.Equal(b.NodeBudget, want[i]) || (b.Window != nil) != (i == 2) {
			t.Errorf("%+v, want %v", b, want[i])
		}
	}
	// A Thursday in winter: from eight in the morning, UTC.
	from, until, ok := budgets[2].Window.At(time.Date(2026, time.November, 26, 7, 0, 0, 0, time.UTC))
	if begins := from.UTC().Format(time.TimeOnly); begins != "08:00:00" || until.Sub(from) != 8*time.Hour || !ok {
		t.Errorf("from %v until %v, %v", from, until, ok)
	}
}

func TestNodeBudgetsAreRefusedWithTheirKey(t *testing.T) {
	for text, want := range map[string]string{
		"":                "must begin with a number of nodes or a percentage",
		"of=a":            "must begin with a number of nodes, such as 2",
		"-1":              "must begin with a number of nodes, such as 2",
		"101%":            "must begin with a number of nodes, such as 2",
		"2147483648":      "must begin with a number of nodes, such as 2",
		"1 for=drift":     `reason "drift" must be empty, underutilized or replaced`,
		"1 of=":           `"of=" must be of=GROUP`,
		"1 spot":          `"spot" must be of=GROUP`,
		"1 in=0 9 * * 25": "must have the five fields",
	} {
		s := RemovalLimits{NodeBudgets: []string{text}}
		if _, err := s.Budgets(); err == nil || !strings.Contains(err.Error(), "scaleDown.nodeBudgets: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

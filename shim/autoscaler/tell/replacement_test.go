package tell

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"loadline.dev/shim/api/loadlinev1"
)

func TestStatusTellsMoves(t *testing.T) {
	m := NewMetrics("test")
	plan := &loadlinev1.LoopReplacement{Begun: 1,
		Bill: &loadlinev1.ConsolidationBill{Now: 3, Bound: 1.5, Reachable: 2, Proven: true},
		Moves: []*loadlinev1.MoveUnderWay{
			{Phase: "draining", Seconds: 90, Remove: []string{"a", "b"}, Add: []string{"c"}},
			{Phase: "ordered", Remove: []string{"d"}, ToCome: 2}},
		Ended: []*loadlinev1.EndedMove{{Nodes: 1}, {Why: "its saving is gone", Nodes: 2, Remove: []string{"e"}}}}
	m.replacements.count(plan)
	m.replacements.count(&loadlinev1.LoopReplacement{Moves: plan.Moves[:1]}) // of a loop that did not look for moves

	s := m.replacements.status(plan)
	wantMoves := []string{"draining since 1m30s: a, b by c", "ordered since 0s: d by 2 to come"}
	wantEnded := []string{"done: 1 node replaced", "given up: its saving is gone; nodes that stay: e"}
	if s.Status != "InProgress" || !slices.Equal(s.Moves, wantMoves) || !slices.Equal(s.Ended, wantEnded) ||
		*s.Bill != (BillStatus{3, 1.5, 2, true}) {
		t.Errorf("got %+v with bill %+v, want moves %q, ended %q", s, s.Bill, wantMoves, wantEnded)
	}
	if none := m.replacements.status(nil); none.Status != "NoActivity" || none.Bill == nil {
		t.Errorf("without a plan: %+v", none)
	}
	if rows := movesTable(plan).Rows; len(rows) != 2 || !slices.Equal(rows[1], []string{"d", "", "2", "ordered", "0s"}) {
		t.Errorf("table %q", rows)
	}
	const want = `
# HELP loadline_autoscaler_bill_usd_per_hour What nodes cost when moves were looked for last: now, what nothing costs less than (bound), and what moves reach (reachable).
# TYPE loadline_autoscaler_bill_usd_per_hour gauge
loadline_autoscaler_bill_usd_per_hour{kind="bound"} 1.5
loadline_autoscaler_bill_usd_per_hour{kind="now"} 3
loadline_autoscaler_bill_usd_per_hour{kind="reachable"} 2
# HELP loadline_autoscaler_replacement_moves Moves that are carried out, by phase: ordered, draining or giving back.
# TYPE loadline_autoscaler_replacement_moves gauge
loadline_autoscaler_replacement_moves{phase="draining"} 1
loadline_autoscaler_replacement_moves{phase="giving back"} 0
loadline_autoscaler_replacement_moves{phase="ordered"} 0
# HELP loadline_autoscaler_replacement_moves_total Moves by what became of them: begun, done or givenUp.
# TYPE loadline_autoscaler_replacement_moves_total counter
loadline_autoscaler_replacement_moves_total{result="begun"} 1
loadline_autoscaler_replacement_moves_total{result="done"} 1
loadline_autoscaler_replacement_moves_total{result="givenUp"} 1
`
	if err := testutil.GatherAndCompare(m.Registry, strings.NewReader(want), prefix+"bill_usd_per_hour",
		prefix+"replacement_moves", prefix+"replacement_moves_total"); err != nil {
		t.Error(err)
	}
}

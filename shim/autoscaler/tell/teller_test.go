package tell

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/internal/vectortest"
)

// What is missing of a plan that was cut short is a warning, in the log and in the status.
func TestPlansSayThatTheyWereCutShort(t *testing.T) {
	planOf := func(growth, slack, drain string) *plan.Plan {
		return &plan.Plan{PlanDrainResponse: &loadlinev1.PlanDrainResponse{CutShortBy: drain},
			Answer: &loadlinev1.PlanLoopResponse{
				ScaleUp: &loadlinev1.PlanScaleUpResponse{CutShortBy: growth},
				Slack:   &loadlinev1.PlanSlackResponse{CutShort: slack}}}
	}
	for want, p := range map[string]*plan.Plan{
		"[]": planOf("", "", ""),
		"[the plan is cut short by work: more might grow, or at less cost]": planOf("work", "", ""),
		"[the plan is cut short by memory: some slack may have no node, and no node is asked for it " +
			"the plan is cut short by time: not all nodes were looked at to see whether they " +
			"can go]": planOf("", "memory", "time"),
	} {
		l, o := &Teller{Metrics: NewMetrics("test")}, &plan.Loop{Plan: p}
		l.TellCutShort(o)
		if got := fmt.Sprint(o.Warnings); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		for part, by := range map[string]string{"scaleUp": p.Answer.GetScaleUp().GetCutShortBy(),
			"slack": p.Answer.GetSlack().GetCutShort(), "drain": p.GetCutShortBy()} {
			if got := testutil.ToFloat64(l.Metrics.cutShort.WithLabelValues(part)); (got == 1) != (by != "") {
				t.Errorf("%s: %s is counted %v times", want, part, got)
			}
		}
	}
}

// What an answer holds only the first of is said to be more.
func TestSlackReasonsTellWhatIsNotShown(t *testing.T) {
	plan := &loadlinev1.PlanSlackResponse{
		Classes: []*loadlinev1.ClassSlack{
			{Name: "small", Status: loadlinev1.SlackStatus_SLACK_MISSING, Reason: "no node"}},
		Errors: []*loadlinev1.SlackWishError{
			{Source: "Deployment shop/web", Text: "slack-copies \"x\" is no number"}},
		ErrorsTotal: 1001, ClassesTotal: 300,
	}
	worst, whys := slackReasons(plan)
	want := []string{"small: no node", "Deployment shop/web: slack-copies \"x\" is no number",
		"1000 more wishes for copies cannot be met", "the status is that of the first 1 of 300 classes"}
	if worst != loadlinev1.SlackStatus_SLACK_MISSING || !slices.Equal(whys, want) {
		t.Errorf("%v %q, want %q", worst, whys, want)
	}
	plan.ErrorsTotal, plan.ClassesTotal = 1, 1
	if _, whys := slackReasons(plan); !slices.Equal(whys, want[:2]) {
		t.Errorf("%q, want %q", whys, want[:2])
	}
}

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

// TestVectors has a subtest per row that this package answers, named by its id.
func TestVectors(t *testing.T) {
	vectortest.Run(t, "drain_actuation", map[string]vectortest.Answer{"max_skip_time": maxSkipTimeRow}, nil)
}

func maxSkipTimeRow(t *testing.T, in json.RawMessage) map[string]any {
	var q struct {
		Interval int        `json:"loop_interval_s"`
		Skipped  [][]string `json:"skipped_per_loop"`
	}
	vectortest.Decode(t, in, &q)
	var tracker skipTracker
	longest := []int{}
	now := time.Unix(1000, 0)
	for _, skipped := range q.Skipped {
		longest = append(longest, int(tracker.update(skipped, now)/time.Second))
		now = now.Add(time.Duration(q.Interval) * time.Second)
	}
	return map[string]any{"max_skip_s": longest}
}

// A node that is skipped in the very first loop has not waited yet.
func TestFirstLoop(t *testing.T) {
	var tracker skipTracker
	if got := tracker.update([]string{"n"}, time.Unix(1000, 0)); got != 0 {
		t.Errorf("waited %v", got)
	}
	if got := tracker.update([]string{"n"}, time.Unix(1010, 0)); got != 10*time.Second {
		t.Errorf("waited %v, want 10s", got)
	}
}

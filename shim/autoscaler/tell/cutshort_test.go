package tell

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/plan"
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

package autoscaler

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"loadline.dev/shim/api/loadlinev1"
)

// What is missing of a plan that was cut short is a warning, in the log and in the status.
func TestPlansSayThatTheyWereCutShort(t *testing.T) {
	plan := func(growth, slack, drain string) *loopPlan {
		return &loopPlan{PlanDrainResponse: &loadlinev1.PlanDrainResponse{CutShortBy: drain},
			loop: &loadlinev1.PlanLoopResponse{
				ScaleUp: &loadlinev1.PlanScaleUpResponse{CutShortBy: growth},
				Slack:   &loadlinev1.PlanSlackResponse{CutShort: slack}}}
	}
	for want, p := range map[string]*loopPlan{
		"[]": plan("", "", ""),
		"[the plan is cut short by work: more might grow, or at less cost]": plan("work", "", ""),
		"[the plan is cut short by memory: some slack may have no node, and no node is asked for it " +
			"the plan is cut short by time: not all nodes were looked at to see whether they " +
			"can go]": plan("", "memory", "time"),
	} {
		l, o := &leader{metrics: newMetrics("test")}, &loop{plan: p}
		l.noteCutShort(o)
		if got := fmt.Sprint(o.warnings); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		for part, by := range map[string]string{"scaleUp": p.loop.GetScaleUp().GetCutShortBy(),
			"slack": p.loop.GetSlack().GetCutShort(), "drain": p.GetCutShortBy()} {
			if got := testutil.ToFloat64(l.metrics.cutShort.WithLabelValues(part)); (got == 1) != (by != "") {
				t.Errorf("%s: %s is counted %v times", want, part, got)
			}
		}
	}
}

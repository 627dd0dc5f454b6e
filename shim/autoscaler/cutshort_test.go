package autoscaler

import (
	"fmt"
	"testing"

	"loadline.dev/shim/api/loadlinev1"
)

// What is missing of a plan that was cut short is a warning, in the log and in the status.
func TestPlansSayThatTheyWereCutShort(t *testing.T) {
	plan := func(growth, slack, drain string) *loopPlan {
		return &loopPlan{PlanDrainResponse: &loadlinev1.PlanDrainResponse{CutShortBy: drain}, loop: &loadlinev1.PlanLoopResponse{
			ScaleUp: &loadlinev1.PlanScaleUpResponse{CutShortBy: growth}, Slack: &loadlinev1.PlanSlackResponse{CutShort: slack}}}
	}
	for want, p := range map[string]*loopPlan{
		"[]": plan("", "", ""),
		"[the plan is cut short by work: more might grow, or at less cost]": plan("work", "", ""),
		"[the plan is cut short by memory: some slack may have no node, and no node is asked for it " +
			"the plan is cut short by time: not all nodes were looked at to see whether they can go]": plan("", "memory", "time"),
	} {
		if got := fmt.Sprint(p.cutShort()); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

package tell

import (
	"slices"
	"testing"

	"loadline.dev/shim/api/loadlinev1"
)

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

package tell

import (
	"fmt"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
)

// SlackStatus tells what room is kept free.
type SlackStatus struct {
	// Status is ready, missing, limited, unplaceable, or none where no room is wanted.
	Status string `json:"status"`
	// Keep is how it is kept. Wanted pieces fit now but for Missing; Running are pods that stand for them.
	Keep    string `json:"keep"`
	Wanted  int    `json:"wanted"`
	Placed  int    `json:"placed"`
	Missing int    `json:"missing"`
	Running int    `json:"running"`
	// Nodes are missing for it.
	Nodes   int      `json:"nodes"`
	Why     []string `json:"why,omitempty"`
	Problem string   `json:"problem,omitempty"`
}

// slackWords are the worse the later.
var slackWords = map[loadlinev1.SlackStatus]string{loadlinev1.SlackStatus_SLACK_READY: "ready",
	loadlinev1.SlackStatus_SLACK_MISSING: "missing",
	loadlinev1.SlackStatus_SLACK_LIMITED: "limited", loadlinev1.SlackStatus_SLACK_UNPLACEABLE: "unplaceable"}

func (t *Teller) slackStatus(o *plan.Loop) *SlackStatus {
	if !t.config.Decides(config.SlackDecision) || o.Plan == nil {
		return nil
	}
	s := &SlackStatus{Status: "none", Keep: t.config.Slack.Keep, Running: len(t.cluster.Standing)}
	if t.config.Mode != config.Act {
		s.Keep = config.SlackReport
	}
	if o.SlackProblem != nil {
		s.Problem = o.SlackProblem.Error()
	}
	plan := o.Plan.Answer.GetSlack()
	for _, shape := range plan.GetShapes() {
		s.Wanted += int(shape.GetCount())
		s.Placed += int(shape.GetPlaced())
	}
	s.Missing = s.Wanted - s.Placed
	for _, demand := range plan.GetDemands() {
		s.Nodes += int(demand.GetNodes())
	}
	worst, why := slackReasons(plan)
	s.Why = why
	if word, known := slackWords[worst]; known && s.Wanted > 0 {
		s.Status = word
	}
	return s
}

// slackReasons returns the worst status of all classes and copies, and the first reasons why something is missing.
func slackReasons(plan *loadlinev1.PlanSlackResponse) (loadlinev1.SlackStatus, []string) {
	worst := loadlinev1.SlackStatus_SLACK_STATUS_UNSPECIFIED
	var whys []string
	note := func(name string, status loadlinev1.SlackStatus, why string) {
		worst = max(worst, status)
		if why != "" && len(whys) < topEntries {
			whys = append(whys, fmt.Sprintf("%s: %s", name, why))
		}
	}
	for _, class := range plan.GetClasses() {
		note(class.GetName(), class.GetStatus(), class.GetReason())
	}
	for _, mirrored := range plan.GetMirrored() {
		note(fmt.Sprint(mirrored.GetSources()), mirrored.GetStatus(), mirrored.GetReason())
	}
	for _, wrong := range plan.GetErrors() {
		note(wrong.GetSource(), worst, wrong.GetText())
	}
	if further := plan.GetErrorsTotal() - int64(len(plan.GetErrors())); further > 0 {
		whys = append(whys, fmt.Sprintf("%d more wishes for copies cannot be met", further))
	}
	if shown := int64(len(plan.GetClasses())); plan.GetClassesTotal() > shown {
		whys = append(whys,
			fmt.Sprintf("the status is that of the first %d of %d classes", shown, plan.GetClassesTotal()))
	}
	return worst, whys
}

// reportSlack brings the metrics of slack up to date.
func (t *Teller) reportSlack(o *plan.Loop) {
	if o.Plan == nil || !t.config.Decides(config.SlackDecision) {
		return
	}
	var wanted, ready loadlinev1.CpuAndMemory
	for _, class := range o.Plan.Answer.GetSlack().GetClasses() {
		wanted.MilliCpu += class.GetSum().GetMilliCpu()
		wanted.MemoryBytes += class.GetSum().GetMemoryBytes()
		ready.MilliCpu += class.GetReady().GetMilliCpu()
		ready.MemoryBytes += class.GetReady().GetMemoryBytes()
	}
	m := t.Metrics
	m.slackTarget.Set(float64(wanted.MilliCpu) / 1000)
	m.slackCurrent.Set(float64(ready.MilliCpu) / 1000)
	m.slackTargetBytes.Set(float64(wanted.MemoryBytes))
	m.slackCurrentBytes.Set(float64(ready.MemoryBytes))
	s := t.slackStatus(o)
	setEach(m.placeholders, map[string]int{"wanted": s.Wanted, "placed": s.Placed, "running": s.Running})
}

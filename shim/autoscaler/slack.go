package autoscaler

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/act/placeholders"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/slack"
)

// keepTime bounds what bringing the objects that keep slack into line takes in one loop.
const keepTime = 15 * time.Second

// keeper keeps slack by objects.
type keeper interface {
	Keep(ctx context.Context, shapes []slack.Shape) error
}

// keeperOf returns what keeps slack as a configuration says; nil: nothing does.
func keeperOf(c *config.Configuration, objects dynamic.Interface) keeper {
	switch {
	case c.Mode != config.Act || !c.Decides(config.SlackDecision):
		return nil
	case c.Slack.Keep == config.SlackDeployments:
		return placeholders.Deployments(objects, c.Slack.Namespace)
	case c.Slack.Keep == config.SlackCapacityBuffers:
		return placeholders.CapacityBuffers(objects, c.Slack.Namespace)
	}
	return nil
}

// keepSlack has objects keep the slack of a plan.
func (l *leader) keepSlack(ctx context.Context, o *loop) error {
	if l.keeper == nil {
		return nil
	}
	defer l.metrics.time(functionSlack)()
	ctx, cancel := context.WithTimeout(ctx, keepTime)
	defer cancel()
	known := slack.NewGatherer()
	for _, object := range l.cluster.Asking {
		if pod, ok := object.(*v1.Pod); ok {
			known.AddPod(pod)
		} else {
			known.AddObject(object)
		}
	}
	shapes, warnings := known.Shapes(o.plan.loop.GetSlack(), l.config.Slack.Namespace)
	for _, warning := range warnings {
		klog.InfoS("Slack: " + warning)
	}
	return l.keeper.Keep(ctx, shapes)
}

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

func (l *leader) slackStatus(o *loop) *SlackStatus {
	if !l.config.Decides(config.SlackDecision) || o.plan == nil {
		return nil
	}
	s := &SlackStatus{Status: "none", Keep: l.config.Slack.Keep, Running: len(l.cluster.Standing)}
	if l.config.Mode != config.Act {
		s.Keep = config.SlackReport
	}
	if o.slackProblem != nil {
		s.Problem = o.slackProblem.Error()
	}
	plan := o.plan.loop.GetSlack()
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
func (l *leader) reportSlack(o *loop) {
	if o.plan == nil || !l.config.Decides(config.SlackDecision) {
		return
	}
	var wanted, ready loadlinev1.CpuAndMemory
	for _, class := range o.plan.loop.GetSlack().GetClasses() {
		wanted.MilliCpu += class.GetSum().GetMilliCpu()
		wanted.MemoryBytes += class.GetSum().GetMemoryBytes()
		ready.MilliCpu += class.GetReady().GetMilliCpu()
		ready.MemoryBytes += class.GetReady().GetMemoryBytes()
	}
	m := l.metrics
	m.slackTarget.Set(float64(wanted.MilliCpu) / 1000)
	m.slackCurrent.Set(float64(ready.MilliCpu) / 1000)
	m.slackTargetBytes.Set(float64(wanted.MemoryBytes))
	m.slackCurrentBytes.Set(float64(ready.MemoryBytes))
	s := l.slackStatus(o)
	for state, count := range map[string]int{"wanted": s.Wanted, "placed": s.Placed, "running": s.Running} {
		m.placeholders.WithLabelValues(state).Set(float64(count))
	}
}

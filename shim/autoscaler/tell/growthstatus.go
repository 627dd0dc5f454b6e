package tell

import (
	"fmt"
	"time"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
)

// countsOf counts the nodes of a group.
func countsOf(g *plan.Group) NodeCounts {
	f := g.Found
	ready, unready, starting := int(f.GetReady()), int(f.GetUnready()), int(f.GetStarting())
	return NodeCounts{Unregistered: int(f.GetComing()),
		LongUnregistered: int(f.GetLate() + f.GetLost() + f.GetFailed() + f.GetNotBegun()),
		Registered: RegisteredCounts{Total: ready + unready + starting, Ready: ready, Unready: unready,
			NotStarted: starting}}
}

// nodeCounts counts all nodes of the cluster, also those of no group.
func (t *Teller) nodeCounts(o *plan.Loop) NodeCounts {
	var all NodeCounts
	for _, g := range o.Groups {
		c := countsOf(g)
		all.Registered.NotStarted += c.Registered.NotStarted
		all.Unregistered += c.Unregistered
		all.LongUnregistered += c.LongUnregistered
	}
	all.Registered.Total = len(t.cluster.Nodes)
	all.Registered.Ready, all.Registered.Unready = int(o.Fleet().GetReadyNodes()), int(o.Fleet().GetUnreadyNodes())
	return all
}

func (t *Teller) groupStatus(o *plan.Loop, g *plan.Group, candidates int) GroupStatus {
	s := GroupStatus{Name: g.ID,
		Health: GroupHealth{Status: healthy, NodeCounts: countsOf(g), Target: g.Target, MinSize: g.Min,
			MaxSize: g.Max},
		ScaleUp:   GroupScaleUpStatus{Status: noActivity},
		ScaleDown: GroupScaleDownStatus{Status: "NoCandidates", Candidates: candidates}}
	if s.Health.NodeCounts.LongUnregistered > 0 {
		s.Health.Status = unhealthy
	}
	if candidates > 0 {
		s.ScaleDown.Status = "CandidatesPresent"
	}
	if g.Upcoming() > 0 {
		s.ScaleUp.Status = inProgress
	}
	s.Size = sizeStatus(o, g.ID)
	if info := g.Found.GetBackOff(); info != nil {
		s.ScaleUp.Status = inBackoff
		s.ScaleUp.BackoffInfo = &BackoffInfo{ErrorCode: backOffReasons[info.GetReason()], ErrorMessage: info.GetText(),
			Until: time.UnixMilli(info.GetUntilMilliseconds()).UTC().Format(time.RFC3339)}
	}
	return s
}

func (t *Teller) scaleUpStatus(o *plan.Loop) ScaleUpStatus {
	s := ScaleUpStatus{Status: noActivity, Result: o.GrowthOutcome}
	upcoming, held := 0, 0
	for _, g := range o.Groups {
		upcoming += g.Upcoming()
		if g.BacksOff() {
			held++
		}
	}
	switch {
	case upcoming > 0:
		s.Status = inProgress
	case held > 0 && held == len(o.Groups):
		s.Status = inBackoff
	}
	if o.Plan == nil {
		return s
	}
	s.PendingPods = o.Waiting()
	for _, run := range o.Plan.Answer.GetScaleUp().GetUnplaced() {
		s.Unplaced += min(int(run.GetCount()), len(o.Entry(run.GetPod())))
	}
	s.Deferred = o.Plan.Deferred
	s.Placed = s.PendingPods - s.Unplaced - s.Deferred - o.Pods.LeftOutPods()
	if s.Unplaced > 0 {
		s.Why = o.Fleet().GetWhyNoGrowth()
	}
	all := o.Plan.Answer.GetGrowth()
	for _, growth := range all[:min(len(all), topEntries)] {
		s.Growth = append(s.Growth, growthText(growth))
	}
	return s
}

// growthText tells what a group is to grow by, and for what.
func growthText(growth *loadlinev1.LoopGrowth) string {
	text := fmt.Sprintf("%s: %d for pods, %d for slack", growth.GetNodeGroup(), growth.GetNodesForPods(),
		growth.GetNodesForSlack())
	for _, use := range []struct {
		nodes int64
		what  string
	}{{growth.GetNodesForUtilization(), "for utilization"}, {growth.GetNodesForMinimum(), "for the minimum"},
		{growth.GetNodesForReplacement(), "to replace others"}} {
		if use.nodes > 0 {
			text += fmt.Sprintf(", %d %s", use.nodes, use.what)
		}
	}
	return fmt.Sprintf("%s, %.4f USD per hour", text, growth.GetUsdPerHour())
}

// holds are the labels of a metric.
var holds = map[loadlinev1.GroupSight_Hold]string{loadlinev1.GroupSight_HOLD_UNSPECIFIED: "none",
	loadlinev1.GroupSight_SIZED: "none", loadlinev1.GroupSight_BACKS_OFF: "backoff",
	loadlinev1.GroupSight_AT_MAXIMUM: "maximum", loadlinev1.GroupSight_UNPRICED: "unpriced",
	loadlinev1.GroupSight_OPTIONS_UNKNOWN: "other", loadlinev1.GroupSight_HELD: "other",
	loadlinev1.GroupSight_CLUSTER_MAXIMUM: "other"}

// reportGrowth brings the metrics of growth up to date.
func (t *Teller) reportGrowth(o *plan.Loop) {
	m := t.Metrics
	t.reportSlack(o)
	if o.Plan == nil {
		return
	}
	m.unschedulable.Set(float64(o.Waiting()))
	counts := t.nodeCounts(o)
	setEach(m.nodes, map[string]int{"ready": counts.Registered.Ready, "unready": counts.Registered.Unready,
		"notStarted": counts.Registered.NotStarted, "unregistered": counts.Unregistered,
		"longUnregistered": counts.LongUnregistered})
	set(m.safe, o.Fleet().GetUnhealthy() == "")
	if !t.config.Decides(config.ScaleUpDecision) {
		return // somebody else knows what holds groups
	}
	groups := map[string]int{"none": 0, "backoff": 0, "maximum": 0, "unpriced": 0, "other": 0}
	for _, g := range o.Groups {
		groups[holds[g.Found.GetHold()]]++
	}
	setEach(m.nodeGroups, groups)
}

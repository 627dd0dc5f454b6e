// Package tell tells people what loops find out and do: by metrics, events, the log, a ConfigMap and pages. What there
// is to say of a plan the engine says; this package adds what only this process knows.
package tell

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/autoscaler/watch"
	"loadline.dev/shim/report"
)

// Teller tells of the loops of one leader.
type Teller struct {
	config  *config.Configuration
	cluster *watch.Cluster
	Metrics *Metrics
	Events  record.EventRecorder
	client  kubernetes.Interface
	About   *v1.ObjectReference // what events are about that concern no single node: the status
	Term    int64               // of this leader
	// The pages that people see: the snapshot of the last loop, and how the nodes of the engine are asked for.
	Snapshot atomic.Pointer[snapshot]
	Loads    func() (report.Placement, error)
	said     said
	skips    skipTracker
	Line     lineWatch
}

// said is what has been reported, so that it is reported once.
type said struct {
	pods    saidEvents
	leftOut saidEvents             // of objects that plans are made without
	lines   map[string]string      // of the log, by what they are about
	sizes   map[string]string      // of the log, by node group
	bill    *loadlinev1.BillStatus // of the last loop that looked for moves
	// transitions are conditions of a status in Cluster Autoscaler's form, by what they are about.
	transitions map[string]transition
}

// New returns what tells of the loops of the leader of a term.
func New(c *watch.Cluster, options *config.Configuration, client kubernetes.Interface,
	events record.EventRecorder, m *Metrics, term int64) *Teller {
	down := &options.ScaleDown
	m.Set("scale_down_limit", float64(down.MaxScaleDownParallelism), "all")
	m.Set("scale_down_limit", float64(down.MaxDrainParallelism), "drain")
	return &Teller{config: options, cluster: c, Metrics: m, Events: boundedEvents{events}, Term: term, client: client,
		About: &v1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: options.Namespace,
			Name: options.StatusConfigMap},
		said: said{pods: newSaidEvents(), leftOut: newSaidEvents(), lines: map[string]string{}}}
}

// TellPlan tells what the engine says of a plan, before it is carried out: the process may end meanwhile.
func (t *Teller) TellPlan(o *plan.Loop) {
	t.Metrics.told(o.Report())
	t.Metrics.Set(skipDuration, t.skips.update(o.Plan.NotEvaluated(), o.Now).Seconds())
	t.tellNodes(o.Report().GetEvents())
	if t.config.Mode == config.Act {
		t.tellTimeouts(o)
	}
	for _, line := range o.Report().GetLog() {
		values := make([]any, len(line.Values))
		for i, value := range line.Values {
			values[i] = value
		}
		klog.InfoS(line.Message, values...)
	}
}

// Tell tells of a loop that took so long and ended at that time of the wall clock.
func (t *Teller) Tell(ctx context.Context, o *plan.Loop, wall time.Time, took time.Duration) {
	t.Metrics.Count("decision_total", 1, "drain", o.Outcome)
	t.Metrics.Count("decision_total", 1, "scaleUp", o.GrowthOutcome)
	t.gatherLeftOut(o)
	report := t.reportOf(o)
	status := t.statusOf(o, report.Status)
	t.setMetrics(o, status)
	t.tellLeftOut(o)
	if o.Plan != nil {
		t.log(o, status)
	}
	t.Snapshot.Store(t.snapshotOf(o, report, wall, took))
	if !t.config.WriteStatus {
		return
	}
	if err := t.write(ctx, status); err != nil && ctx.Err() == nil {
		t.Metrics.Failed("status")
		klog.ErrorS(err, "Status cannot be written")
	}
}

// setMetrics sets the metrics of what only this process knows.
func (t *Teller) setMetrics(o *plan.Loop, status *loadlinev1.AutoscalerStatus) {
	if o.Plan == nil {
		t.Metrics.withoutPlan()
	}
	empty := 0
	for _, d := range o.UnderWay {
		if d.Empty {
			empty++
		}
	}
	t.Metrics.Set("pending_node_deletions", float64(empty), "empty")
	t.Metrics.Set("pending_node_deletions", float64(len(o.UnderWay)-empty), "drain")
	t.upstreamOf(o, status)
	if kept := status.ClusterWide.Slack; kept != nil {
		for state, pieces := range map[string]int32{"wanted": kept.Wanted, "placed": kept.Placed, "running": kept.Running} {
			t.Metrics.Set("slack_placeholders", float64(pieces), state)
		}
	}
}

// log logs the result of a plan. What stays the same is logged once, but the last at a level at which each loop is
// worth a line.
func (t *Teller) log(o *plan.Loop, status *loadlinev1.AutoscalerStatus) {
	if warnings := strings.Join(status.Warnings, "\n"); t.isNew("warnings", warnings) {
		for _, warning := range status.Warnings {
			klog.InfoS("Warning: " + warning)
		}
	}
	said := t.said.sizes
	t.said.sizes = make(map[string]string, len(status.NodeGroups)) // without groups that are gone
	for _, g := range status.NodeGroups {
		t.said.sizes[g.Name] = said[g.Name]
		if s := g.Size; s != nil {
			values := []any{"group", g.Name, "cpu", s.Cpu, "memory", s.Memory, "action", s.Action, "delta", s.Delta,
				"reason", s.Reason, "tainted", s.Tainted, "held", s.Held, "dryMode", s.DryMode, "warnings", s.Warnings}
			t.said.sizes[g.Name] = fmt.Sprint(values...)
			if t.said.sizes[g.Name] != said[g.Name] {
				klog.V(2).InfoS("Sized", values...)
			}
		}
	}
	values := []any{"outcome", o.Outcome, "canGo", len(o.Plan.GetRemove()), "stay", o.Plan.Staying(),
		"underWay", len(o.UnderWay), "brake", o.Plan.GetBrake(), "limit", o.Plan.GetLimit(),
		"growth", o.GrowthOutcome, "waiting", status.ClusterWide.ScaleUp.PendingPods}
	level := klog.Level(4)
	if t.isNew("plan", fmt.Sprint(values...)) {
		level = 2
	}
	klog.V(level).InfoS("Planned", values...)
}

// isNew says whether a text differs from the last one about something, and supposes that it is reported.
func (t *Teller) isNew(about, text string) bool {
	if t.said.lines[about] == text {
		return false
	}
	t.said.lines[about] = text
	return true
}

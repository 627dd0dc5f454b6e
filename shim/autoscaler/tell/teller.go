// Package tell tells people what loops find out and do: by metrics, events, the log, a ConfigMap and pages.
package tell

import (
	"context"
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
	// What people see: the snapshot of the last loop, and how the nodes of the engine are asked for.
	Snapshot atomic.Pointer[snapshot]
	Loads    func() (report.Placement, error)
	said     said
	skips    skipTracker
	Line     lineWatch
}

// said is what has been told, so that it is told once.
type said struct {
	pods    saidEvents
	leftOut saidEvents // of objects that plans are made without
	// leftOutLog is what the log says of them, plan what it says of the last plan, sizes of each group that is sized.
	leftOutLog, plan string
	sizes            map[string]string
}

// New returns what tells of the loops of the leader of a term.
func New(c *watch.Cluster, options *config.Configuration, client kubernetes.Interface,
	events record.EventRecorder, m *Metrics, term int64) *Teller {
	return &Teller{config: options, cluster: c, Metrics: m, Events: boundedEvents{events}, Term: term, client: client,
		About: &v1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: options.Namespace,
			Name: options.StatusConfigMap},
		said: said{pods: newSaidEvents(), leftOut: newSaidEvents()}}
}

// Tell tells of a loop that took so long and ended at that time of the wall clock.
func (t *Teller) Tell(ctx context.Context, o *plan.Loop, wall time.Time, took time.Duration) {
	t.Metrics.decisions.WithLabelValues("drain", o.Outcome).Inc()
	t.Metrics.decisions.WithLabelValues("scaleUp", o.GrowthOutcome).Inc()
	t.gatherLeftOut(o)
	t.updateMetrics(o)
	t.tellLeftOut(o)
	status := t.statusOf(o)
	t.Snapshot.Store(t.snapshotOf(o, status, wall, took))
	if err := t.write(ctx, status); err != nil && ctx.Err() == nil {
		t.Metrics.Failed("status")
		klog.ErrorS(err, "Status cannot be written")
	}
}

// backOffReasons are the labels of metrics and the codes of the status.
var backOffReasons = map[loadlinev1.GroupBackOff_Reason]string{
	loadlinev1.GroupBackOff_TIMEOUT:          "timeout",
	loadlinev1.GroupBackOff_API_ERROR:        "apiError",
	loadlinev1.GroupBackOff_OUT_OF_RESOURCES: "outOfResources",
	loadlinev1.GroupBackOff_CREATION_FAILED:  "creationFailed",
}

// TellAnswer tells of groups that have failed to grow.
func (t *Teller) TellAnswer(answer *loadlinev1.LoopFleetAnswer, now time.Time) {
	if problem := answer.GetStateProblem(); problem != "" {
		t.Metrics.Failed("state")
		klog.InfoS("What was remembered of machines and groups cannot be read: all times begin anew", "why", problem)
	}
	for _, failed := range answer.GetFailedCreations() {
		t.Metrics.failedCreations.WithLabelValues(backOffReasons[failed.GetReason()]).Add(float64(failed.GetMachines()))
	}
	for _, failure := range answer.GetFailures() {
		reason := backOffReasons[failure.GetBackOff().GetReason()]
		t.Metrics.failedScaleUps.WithLabelValues(reason).Inc()
		klog.InfoS("Node group backs off", "group", failure.GetNodeGroup(), "reason", reason,
			"text", failure.GetBackOff().GetText(),
			"for", time.UnixMilli(failure.GetBackOff().GetUntilMilliseconds()).Sub(now).Round(time.Millisecond))
	}
}

// TellCutShort warns of the parts of a plan that were cut short, and counts them.
func (t *Teller) TellCutShort(o *plan.Loop) {
	for _, c := range o.Plan.CutShort() {
		o.Warnings = append(o.Warnings, c.String())
		t.Metrics.cutShort.WithLabelValues(c.Part).Inc()
	}
}

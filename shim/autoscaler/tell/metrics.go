package tell

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/act/drain"
	"loadline.dev/shim/autoscaler/plan"
)

// Functions whose duration is measured.
const (
	FunctionMain          = "main"
	FunctionRefresh       = "cloudProviderRefresh"
	FunctionUpdate        = "updateClusterState"
	FunctionPlan          = "plan"
	FunctionScaleUp       = "scaleUp"
	FunctionSlack         = "slack"
	FunctionStart         = "scaleDown"
	FunctionSoftTaints    = "scaleDown:softTaintUnneeded"
	FunctionDeletionCosts = "scaleDown:deletionCosts"
)

// prefix is that of all metrics of the autoscaler. The gateway counts some of the same things under names of its own.
const prefix = "loadline_autoscaler_"

// Metrics are served on /metrics, from a registry of their own, beside what Kubernetes libraries count. No label holds
// the name of a node or a pod.
type Metrics struct {
	Registry maker
	loopMetrics
	drainMetrics
	growthMetrics
	slackMetrics
	sizes        *sizeMetrics
	replacements *replacements
}

// loopMetrics are those of loops and of plans as a whole.
type loopMetrics struct {
	duration       *prometheus.HistogramVec
	decisions      *prometheus.CounterVec
	errors         *prometheus.CounterVec
	cutShort       *prometheus.CounterVec
	Leader         prometheus.Gauge
	LastLoop       prometheus.Gauge
	leftOut        *prometheus.GaugeVec
	NodesAboveLine prometheus.Gauge
}

// drainMetrics are those of nodes that go.
type drainMetrics struct {
	deletion    *prometheus.HistogramVec
	scaledDown  *prometheus.CounterVec
	failedNodes *prometheus.CounterVec
	evictions   *prometheus.CounterVec
	unneeded    prometheus.Gauge
	unremovable *prometheus.GaugeVec
	underWay    *prometheus.GaugeVec
	limits      *prometheus.GaugeVec
	cooldown    prometheus.Gauge
	brake       *prometheus.GaugeVec
	longestSkip prometheus.Gauge
	costWrites  *prometheus.CounterVec
}

// growthMetrics are those of groups that grow.
type growthMetrics struct {
	scaledUp        *prometheus.CounterVec
	failedScaleUps  *prometheus.CounterVec
	failedCreations *prometheus.CounterVec
	givenUp         *prometheus.CounterVec
	unschedulable   prometheus.Gauge
	nodes           *prometheus.GaugeVec
	nodeGroups      *prometheus.GaugeVec
	safe            prometheus.Gauge
}

// slackMetrics are those of room that is kept free.
type slackMetrics struct {
	slackTarget, slackCurrent           prometheus.Gauge
	slackTargetBytes, slackCurrentBytes prometheus.Gauge
	placeholders                        *prometheus.GaugeVec
}

// maker makes metrics and registers them.
type maker struct{ *prometheus.Registry }

func made[M prometheus.Collector](m maker, metric M) M {
	m.MustRegister(metric)
	return metric
}

func (m maker) counter(name, help string, labels ...string) *prometheus.CounterVec {
	return made(m, prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels))
}

func (m maker) gauge(name, help string) prometheus.Gauge {
	return made(m, prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + name, Help: help}))
}

func (m maker) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return made(m, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, labels))
}

func (m maker) histogram(name, help string, first float64, labels ...string) *prometheus.HistogramVec {
	return made(m, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + name, Help: help,
		Buckets: prometheus.ExponentialBuckets(first, 2, 14)}, labels))
}

// NewMetrics returns the metrics of a build.
func NewMetrics(version string) *Metrics {
	r := maker{prometheus.NewRegistry()}
	made(r, prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + "build_info",
		Help: "Always 1; the labels tell the build.", ConstLabels: prometheus.Labels{"version": version}})).Set(1)
	m := &Metrics{Registry: r, loopMetrics: newLoopMetrics(r), drainMetrics: newDrainMetrics(r),
		growthMetrics: newGrowthMetrics(r), slackMetrics: newSlackMetrics(r), sizes: newSizeMetrics(r),
		replacements: newReplacements(r)}
	for _, part := range []string{plan.PartScaleUp, plan.PartSlack, plan.PartDrain} {
		m.cutShort.WithLabelValues(part) // so that a rate can be taken before the first one
	}
	return m
}

func newLoopMetrics(r maker) loopMetrics {
	return loopMetrics{
		duration:  r.histogram("function_duration_seconds", "Time that parts of a loop take.", 0.1/64, "function"),
		decisions: r.counter("decision_total", "Loops by what came of them.", "kind", "outcome"),
		errors:    r.counter("errors_total", "What could not be done in loops, by what failed.", "type"),
		cutShort: r.counter("plans_cut_short_total",
			"Plans that a budget of work, time or memory ended early, by part: scaleUp, slack or drain.", "part"),
		Leader:   r.gauge("leader", "Whether this process leads."),
		LastLoop: r.gauge("last_loop_timestamp_seconds", "When the last loop was finished without an error."),
		leftOut: r.gauges("left_out_objects",
			"Objects that plans are made without, since they alone cannot be taken, by kind.", "kind"),
		NodesAboveLine: r.gauge("nodes_above_load_line",
			"Nodes whose pods have more limits than the load line allows; 0 where there is no line."),
	}
}

func newDrainMetrics(r maker) drainMetrics {
	return drainMetrics{
		deletion: r.histogram("node_deletion_duration_seconds",
			"Time from the taint of a node to the end of its removal; kind is empty or drain.", 0.5, "kind", "result"),
		scaledDown: r.counter("scaled_down_nodes_total",
			"Nodes that the cloud was asked to delete, by reason and GPU resource.", "reason", "gpu_resource_name"),
		failedNodes: r.counter("scale_down_failed_nodes_total", "Nodes that were given back, by result.", "result"),
		evictions: r.counter("evicted_pods_total", "Answers to evictions: accepted, or why not; "+
			"deleted_despite_budget: a deletion took its place.", "eviction_result"),
		unneeded:    r.gauge("unneeded_nodes", "Nodes that can go."),
		unremovable: r.gauges("unremovable_nodes", "Nodes that stay, by reason.", "reason"),
		underWay: r.gauges("pending_node_deletions", "Nodes whose removal is under way; kind is empty or drain.",
			"kind"),
		limits:   r.gauges("scale_down_limit", "Nodes that may go at once; kind is all or drain.", "kind"),
		cooldown: r.gauge("scale_down_in_cooldown", "Whether no removal begins for some time."),
		brake:    r.gauges("scale_down_brake", "1 for what holds all removals back.", "brake"),
		longestSkip: r.gauge("max_node_skip_eval_duration_seconds",
			"How long the planner has not come to look at some node."),
		costWrites: r.counter("pod_deletion_cost_writes_total", "Writes of the annotation pod-deletion-cost to pods: "+
			"set, removed, stale (the pod has changed, or is gone) or failed.", "result"),
	}
}

func newGrowthMetrics(r maker) growthMetrics {
	return growthMetrics{
		scaledUp: r.counter("scaled_up_nodes_total", "Nodes that the cloud was asked for, by GPU resource.",
			"gpu_resource_name"),
		failedScaleUps: r.counter("failed_scale_ups_total",
			"Failures to grow after which a node group backs off, by reason.", "reason"),
		failedCreations: r.counter("failed_node_creations_total",
			"Machines that the cloud could not create, by reason.", "reason"),
		givenUp: r.counter("given_up_nodes_total", "Machines that did not become nodes and that the cloud was asked to "+
			"delete: failed, late or notBegun.", "reason"),
		unschedulable: r.gauge("unschedulable_pods_count", "Pods that wait for a node."),
		nodes: r.gauges("nodes_count",
			"Nodes by state: ready, unready, notStarted, unregistered, longUnregistered.", "state"),
		nodeGroups: r.gauges("node_groups_count",
			"Node groups by what keeps them from growing: none, backoff, maximum, unpriced, other.", "held"),
		safe: r.gauge("cluster_safe_to_autoscale", "Whether enough nodes are ready for groups to grow."),
	}
}

func newSlackMetrics(r maker) slackMetrics {
	return slackMetrics{
		slackTarget:       r.gauge("slack_target_cores", "Room that is to be kept free, in cores."),
		slackCurrent:      r.gauge("slack_current_cores", "Room that is free for it now, in cores."),
		slackTargetBytes:  r.gauge("slack_target_bytes", "Room that is to be kept free, in bytes of memory."),
		slackCurrentBytes: r.gauge("slack_current_bytes", "Room that is free for it now, in bytes of memory."),
		placeholders: r.gauges("slack_placeholders",
			"Pieces of that room: wanted, placed, and pods running for them.", "state"),
	}
}

// Failed counts what could not be done in a loop.
func (m *Metrics) Failed(what string) { m.errors.WithLabelValues(what).Inc() }

// GaveUp counts nodes that the cloud was asked to make no more.
func (m *Metrics) GaveUp(reason string, nodes int) {
	m.givenUp.WithLabelValues(reason).Add(float64(nodes))
}

// Grew counts nodes like a model that the cloud was asked for.
func (m *Metrics) Grew(model *v1.Node, nodes int64) {
	m.scaledUp.WithLabelValues(gpuResource(model)).Add(float64(nodes))
}

// Time measures a function until the returned one is called.
func (m *Metrics) Time(function string) func() {
	began := time.Now()
	return func() { m.Took(function, time.Since(began)) }
}

// Took notes how long a function has taken.
func (m *Metrics) Took(function string, took time.Duration) {
	m.duration.WithLabelValues(function).Observe(took.Seconds())
}

// WroteDeletionCost counts a write of what a pod's deletion costs.
func (m *Metrics) WroteDeletionCost(result string) { m.costWrites.WithLabelValues(result).Inc() }

func kindOf(empty bool) string {
	if empty {
		return "empty"
	}
	return "drain"
}

// Hooks count what the actuator does.
func (m *Metrics) Hooks() drain.Hooks {
	return drain.Hooks{
		Evicted: func(result string) { m.evictions.WithLabelValues(result).Inc() },
		Removed: func(r *drain.Removal, result drain.Result, took time.Duration) {
			m.deletion.WithLabelValues(kindOf(r.Empty), string(result)).Observe(took.Seconds())
			if result == drain.NodeDeleteOK {
				m.scaledDown.WithLabelValues(r.Reason, gpuResource(r.Node)).Inc()
			} else {
				m.failedNodes.WithLabelValues(string(result)).Inc()
			}
		},
	}
}

// gpuResources are those that Cluster Autoscaler knows.
var gpuResources = []v1.ResourceName{"nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe"}

// gpuResource returns the name of the GPUs of a node; empty: it has none.
func gpuResource(node *v1.Node) string {
	for _, name := range gpuResources {
		if amount, ok := node.Status.Capacity[name]; ok && !amount.IsZero() {
			return string(name)
		}
	}
	return ""
}

// setEach sets the gauge of each label.
func setEach[N int | int64 | float64](gauges *prometheus.GaugeVec, values map[string]N) {
	for label, value := range values {
		gauges.WithLabelValues(label).Set(float64(value))
	}
}

func set(gauge prometheus.Gauge, yes bool) {
	if yes {
		gauge.Set(1)
	} else {
		gauge.Set(0)
	}
}

// sizeMetrics are those of groups that are sized by how full they are. Their label is the id of the group: a file names
// each of these groups, so that there are few.
type sizeMetrics struct {
	utilization, delta, tainted, locked *prometheus.GaugeVec
}

func newSizeMetrics(r maker) *sizeMetrics {
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return r.gauges("sized_group_"+name, help, append([]string{"node_group"}, labels...)...)
	}
	return &sizeMetrics{
		utilization: gauges("utilization_percent",
			"What is requested of a sized group, of what its untainted nodes offer; resource is cpu or memory. A group "+
				"without such nodes has none.", "resource"),
		delta: gauges("delta_nodes", "Nodes that a sized group wins, or if negative loses."),
		tainted: gauges("tainted_nodes",
			"Nodes of a sized group that are tainted and wait for their grace period to end, or for pods."),
		locked: gauges("locked", "Whether a sized group does nothing because it grew a short time ago."),
	}
}

// update tells what a plan says of the groups. Those that are not sized any more are told no longer.
func (m *sizeMetrics) update(sized map[string]*plan.SizedGroup) {
	for _, vec := range []*prometheus.GaugeVec{m.utilization, m.delta, m.tainted, m.locked} {
		vec.Reset()
	}
	for id, g := range sized {
		if g.Size == nil {
			continue // there is no plan
		}
		if u := g.Size.GetUtilization(); u.GetKind() == loadlinev1.Utilization_PERCENT {
			m.utilization.WithLabelValues(id, "cpu").Set(u.GetCpuPercent())
			m.utilization.WithLabelValues(id, "memory").Set(u.GetMemoryPercent())
		}
		m.delta.WithLabelValues(id).Set(float64(g.Size.GetDelta()))
		m.tainted.WithLabelValues(id).Set(float64(g.Size.GetTaintedNodes()))
		set(m.locked.WithLabelValues(id), g.Size.GetReason() == loadlinev1.GroupSize_LOCKED)
	}
}

package tell

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/act/drain"
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

// family is a metric with all of its labels.
type family struct {
	name, help string
	labels     []string
}

// Metrics that others than this package count or set.
const (
	Leader         = "leader"
	LastLoop       = "last_loop_timestamp_seconds"
	NodesAboveLine = "nodes_above_load_line"
	GivenUpNodes   = "given_up_nodes_total"
	costWrites     = "pod_deletion_cost_writes_total"
	errorsTotal    = "errors_total"
	skipDuration   = "max_node_skip_eval_duration_seconds"
)

// counters are counted here; the last four the engine tells.
var counters = []family{
	{"decision_total", "Loops by what came of them.", []string{"kind", "outcome"}},
	{errorsTotal, "What could not be done in loops, by what failed.", []string{"type"}},
	{"scaled_down_nodes_total", "Nodes that the cloud was asked to delete, by reason and GPU resource.",
		[]string{"reason", "gpu_resource_name"}},
	{"scale_down_failed_nodes_total", "Nodes that were given back, by result.", []string{"result"}},
	{"evicted_pods_total", "Answers to evictions: accepted, or why not; deleted_despite_budget: a deletion took its " +
		"place.", []string{"eviction_result"}},
	{costWrites, "Writes of the annotation pod-deletion-cost to pods: set, removed, stale (the pod has changed, or is " +
		"gone) or failed.", []string{"result"}},
	{"scaled_up_nodes_total", "Nodes that the cloud was asked for, by GPU resource.", []string{"gpu_resource_name"}},
	{GivenUpNodes, "Machines that did not become nodes and that the cloud was asked to delete: failed, late or " +
		"notBegun.", []string{"reason"}},
	{"plans_cut_short_total", "Plans that a budget of work, time or memory ended early, by part: scaleUp, slack or " +
		"drain.", []string{"part"}},
	{"failed_scale_ups_total", "Failures to grow after which a node group backs off, by reason.", []string{"reason"}},
	{"failed_node_creations_total", "Machines that the cloud could not create, by reason.", []string{"reason"}},
	{"replacement_moves_total", "Moves by what became of them: begun, done or givenUp.", []string{"result"}},
}

// gauges keep their values from loop to loop.
var gauges = []family{
	{Leader, "Whether this process leads.", nil},
	{LastLoop, "When the last loop was finished without an error.", nil},
	{"left_out_objects", "Objects that plans are made without, since they alone cannot be taken, by kind.",
		[]string{"kind"}},
	{NodesAboveLine, "Nodes whose pods have more limits than the load line allows; 0 where there is no line.", nil},
	{"pending_node_deletions", "Nodes whose removal is under way; kind is empty or drain.", []string{"kind"}},
	{"slack_placeholders", "Pieces of the room that is kept free: wanted, placed, and pods running for them.",
		[]string{"state"}},
	{"scale_down_limit", "Nodes that may go at once; kind is all or drain.", []string{"kind"}},
	{skipDuration, "How long the planner has not come to look at some node.", nil},
	{"bill_usd_per_hour", "What nodes cost when moves were looked for last: now, what nothing costs less than " +
		"(bound), and what moves reach (reachable).", []string{"kind"}},
}

// loopGauges are what the engine tells of each plan. The label of sized groups is the id of the group: a file names
// each of them, so that there are few.
var loopGauges = []family{
	{"unneeded_nodes", "Nodes that can go.", nil},
	{"unremovable_nodes", "Nodes that stay, by reason.", []string{"reason"}},
	{"scale_down_in_cooldown", "Whether no removal begins for some time.", nil},
	{brake, "1 for what holds all removals back.", []string{"brake"}},
	{"unschedulable_pods", "Pods that wait for a node.", nil},
	{"nodes", "Nodes by state: ready, unready, notStarted, unregistered, longUnregistered.", []string{"state"}},
	{"node_groups", "Node groups by what keeps them from growing: none, backoff, maximum, unpriced, other.",
		[]string{"held"}},
	{"cluster_safe_to_autoscale", "Whether enough nodes are ready for groups to grow.", nil},
	{"slack_target_cores", "Room that is to be kept free, in cores.", nil},
	{"slack_current_cores", "Room that is free for it now, in cores.", nil},
	{"slack_target_bytes", "Room that is to be kept free, in bytes of memory.", nil},
	{"slack_current_bytes", "Room that is free for it now, in bytes of memory.", nil},
	{"sized_group_utilization_percent", "What is requested of a sized group, of what its untainted nodes offer; " +
		"resource is cpu or memory. A group without such nodes has none.", []string{"node_group", "resource"}},
	{"sized_group_delta_nodes", "Nodes that a sized group wins, or if negative loses.", []string{"node_group"}},
	{"sized_group_tainted_nodes", "Nodes of a sized group that are tainted and wait for their grace period to end, or " +
		"for pods.", []string{"node_group"}},
	{"sized_group_locked", "Whether a sized group does nothing because it grew a short time ago.",
		[]string{"node_group"}},
	{"replacement_moves", "Moves that are carried out, by phase: ordered, draining or giving back.", []string{"phase"}},
}

const brake = "scale_down_brake"

// Metrics are served on /metrics, from a registry of their own, beside what Kubernetes libraries count. No label holds
// the name of a node or a pod.
type Metrics struct {
	Registry *prometheus.Registry
	// GPUResources asks the engine which resources are GPUs.
	GPUResources       func() ([]string, error)
	counters           map[string]*prometheus.CounterVec
	gauges             map[string]*prometheus.GaugeVec
	families           map[string]family // those that an engine may tell
	loop               *loopCollector
	upstream           *upstream // nil: Cluster Autoscaler's metrics are not served
	duration, deletion *prometheus.HistogramVec
}

// NewMetrics returns the metrics of a build.
func NewMetrics(version string) *Metrics {
	histogram := func(name, help string, first float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + name, Help: help,
			Buckets: prometheus.ExponentialBuckets(first, 2, 14)}, labels)
	}
	m := &Metrics{Registry: prometheus.NewRegistry(), GPUResources: func() ([]string, error) { return nil, nil },
		counters: map[string]*prometheus.CounterVec{},
		gauges:   map[string]*prometheus.GaugeVec{}, loop: newLoopCollector(), families: map[string]family{},
		duration: histogram("function_duration_seconds", "Time that parts of a loop take.", 0.1/64, "function"),
		deletion: histogram("node_deletion_duration_seconds",
			"Time from the taint of a node to the end of its removal; kind is empty or drain.", 0.5, "kind", "result")}
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + "build_info",
		Help: "Always 1; the labels tell the build.", ConstLabels: prometheus.Labels{"version": version}})
	build.Set(1)
	m.Registry.MustRegister(build, m.duration, m.deletion, m.loop)
	for _, f := range counters {
		m.counters[f.name] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + f.name, Help: f.help}, f.labels)
		m.Registry.MustRegister(m.counters[f.name])
	}
	for _, f := range gauges {
		m.gauges[f.name] = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + f.name, Help: f.help}, f.labels)
		m.Registry.MustRegister(m.gauges[f.name])
	}
	for _, f := range slices.Concat(counters, gauges, loopGauges) {
		m.families[f.name] = f
	}
	for _, name := range []string{Leader, LastLoop, NodesAboveLine} {
		m.Set(name, 0)
	}
	for _, part := range []string{"scaleUp", "slack", "drain"} {
		m.Count("plans_cut_short_total", 0, part) // so that a rate can be taken before the first one
	}
	for _, result := range []string{"begun", "done", "givenUp"} {
		m.Count("replacement_moves_total", 0, result)
	}
	return m
}

// Count adds to a counter.
func (m *Metrics) Count(name string, more float64, labels ...string) {
	m.counters[name].WithLabelValues(labels...).Add(more)
	m.upstream.counted(name, more, labels)
}

// Set sets a gauge.
func (m *Metrics) Set(name string, value float64, labels ...string) {
	m.gauges[name].WithLabelValues(labels...).Set(value)
	if m.upstream != nil && name == skipDuration {
		m.upstream.set(name, value)
	}
}

// Failed counts what could not be done in a loop.
func (m *Metrics) Failed(what string) { m.Count(errorsTotal, 1, what) }

// told takes over the engine's report of a plan. It ignores what a later engine reports beyond the metrics here.
func (m *Metrics) told(report *loadlinev1.LoopReport) {
	values := map[string]*loadlinev1.MetricValue{}
	for _, value := range report.GetMetrics() {
		if f, known := m.families[value.Name]; !known || len(f.labels) != len(value.Labels) {
			continue
		}
		switch {
		case m.counters[value.Name] != nil:
			m.Count(value.Name, max(0, value.Value), value.Labels...)
		case m.gauges[value.Name] != nil:
			m.Set(value.Name, value.Value, value.Labels...)
		default:
			values[value.Name+"\n"+strings.Join(value.Labels, "\n")] = value
		}
	}
	m.loop.tell(slices.Collect(maps.Values(values)))
	m.upstream.told(m.loop.told())
}

// withoutPlan keeps the report of the last plan, but for what keeps removals back and for groups that are sized.
func (m *Metrics) withoutPlan() {
	m.loop.tell(append(slices.DeleteFunc(m.loop.told(), func(value *loadlinev1.MetricValue) bool {
		return value.Name == brake || strings.HasPrefix(value.Name, "sized_group_")
	}), &loadlinev1.MetricValue{Name: brake, Labels: []string{"NoPlan"}, Value: 1}))
}

// loopCollector collects the engine's report of the last plan, all of it at once.
type loopCollector struct {
	descriptions map[string]*prometheus.Desc
	values       atomic.Pointer[[]*loadlinev1.MetricValue]
}

func newLoopCollector() *loopCollector {
	c := &loopCollector{descriptions: map[string]*prometheus.Desc{}}
	for _, f := range loopGauges {
		c.descriptions[f.name] = prometheus.NewDesc(prefix+f.name, f.help, f.labels, nil)
	}
	return c
}

func (c *loopCollector) tell(values []*loadlinev1.MetricValue) { c.values.Store(&values) }

// told returns a copy of the present values.
func (c *loopCollector) told() []*loadlinev1.MetricValue {
	if values := c.values.Load(); values != nil {
		return slices.Clone(*values)
	}
	return nil
}

// Describe is part of prometheus.Collector.
func (c *loopCollector) Describe(to chan<- *prometheus.Desc) {
	for _, description := range c.descriptions {
		to <- description
	}
}

// Collect is part of prometheus.Collector.
func (c *loopCollector) Collect(to chan<- prometheus.Metric) {
	for _, v := range c.told() {
		metric, err := prometheus.NewConstMetric(c.descriptions[v.Name], prometheus.GaugeValue, v.Value, v.Labels...)
		if err != nil {
			metric = prometheus.NewInvalidMetric(c.descriptions[v.Name], err)
		}
		to <- metric
	}
}

// Grew counts nodes that the cloud was asked for; model is their template.
func (m *Metrics) Grew(model *v1.Node, nodes int64) {
	m.Count("scaled_up_nodes_total", float64(nodes), m.gpuResource(model))
}

// Time measures a function until the returned one is called.
func (m *Metrics) Time(function string) func() {
	began := time.Now()
	return func() { m.Took(function, time.Since(began)) }
}

// Took notes how long a function has taken.
func (m *Metrics) Took(function string, took time.Duration) {
	m.duration.WithLabelValues(function).Observe(took.Seconds())
	m.upstream.took(function, took)
}

// WroteDeletionCost counts a write of what a pod's deletion costs.
func (m *Metrics) WroteDeletionCost(result string) { m.Count(costWrites, 1, result) }

// Hooks count what the actuator does.
func (m *Metrics) Hooks() drain.Hooks {
	return drain.Hooks{
		Evicted: func(result string) { m.Count("evicted_pods_total", 1, result) },
		Removed: func(r *drain.Removal, result drain.Result, took time.Duration) {
			kind := "drain"
			if r.Empty {
				kind = "empty"
			}
			m.deletion.WithLabelValues(kind, string(result)).Observe(took.Seconds())
			if result == drain.NodeDeleteOK {
				m.upstream.removed(took)
				m.Count("scaled_down_nodes_total", 1, r.Reason, m.gpuResource(r.Node))
			} else {
				m.Count("scale_down_failed_nodes_total", 1, string(result))
			}
		},
	}
}

// gpuResource returns the name of the GPUs of a node; empty: it has none, or the engine cannot be asked. A template may
// state either of its amounts alone.
func (m *Metrics) gpuResource(node *v1.Node) string {
	if node == nil {
		return ""
	}
	names, err := m.GPUResources()
	if err != nil {
		klog.ErrorS(err, "The engine does not say which resources are GPUs", "node", node.Name)
	}
	for _, name := range names {
		for _, amounts := range []v1.ResourceList{node.Status.Capacity, node.Status.Allocatable} {
			if amount, ok := amounts[v1.ResourceName(name)]; ok && !amount.IsZero() {
				return name
			}
		}
	}
	return ""
}

package autoscaler

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/autoscaler/act/drain"
)

// Functions whose duration is measured.
const (
	functionMain       = "main"
	functionRefresh    = "cloudProviderRefresh"
	functionUpdate     = "updateClusterState"
	functionPlan       = "plan"
	functionScaleUp    = "scaleUp"
	functionSlack      = "slack"
	functionStart      = "scaleDown"
	functionSoftTaints = "scaleDown:softTaintUnneeded"
)

// prefix is that of all metrics of the autoscaler. The gateway counts some of the same things under names of its own.
const prefix = "loadline_autoscaler_"

// metrics are served on /metrics, from a registry of their own, beside what Kubernetes libraries count. No label holds
// the name of a node or a pod.
type metrics struct {
	registry    *prometheus.Registry
	duration    *prometheus.HistogramVec
	deletion    *prometheus.HistogramVec
	scaledDown  *prometheus.CounterVec
	failed      *prometheus.CounterVec
	evictions   *prometheus.CounterVec
	decisions   *prometheus.CounterVec
	errors      *prometheus.CounterVec
	cutShort    *prometheus.CounterVec
	unneeded    prometheus.Gauge
	unremovable *prometheus.GaugeVec
	underWay    *prometheus.GaugeVec
	limits      *prometheus.GaugeVec
	cooldown    prometheus.Gauge
	brake       *prometheus.GaugeVec
	longestSkip prometheus.Gauge
	leader      prometheus.Gauge
	lastLoop    prometheus.Gauge

	scaledUp        *prometheus.CounterVec
	failedScaleUps  *prometheus.CounterVec
	failedCreations *prometheus.CounterVec
	givenUp         *prometheus.CounterVec
	unschedulable   prometheus.Gauge
	nodes           *prometheus.GaugeVec
	nodeGroups      *prometheus.GaugeVec
	safe            prometheus.Gauge

	leftOut *prometheus.GaugeVec

	slackTarget, slackCurrent           prometheus.Gauge
	slackTargetBytes, slackCurrentBytes prometheus.Gauge
	placeholders                        *prometheus.GaugeVec

	sizes        *sizeMetrics
	replacements *replacements

	nodesAboveLine prometheus.Gauge
}

func newMetrics(version string) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + name, Help: help})
	}
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, labels)
	}
	histogram := func(name, help string, first float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + name, Help: help,
			Buckets: prometheus.ExponentialBuckets(first, 2, 14)}, labels)
	}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		duration: histogram("function_duration_seconds", "Time that parts of a loop take.", 1e-3, "function"),
		deletion: histogram("node_deletion_duration_seconds",
			"Time from the taint of a node to the end of its removal; kind is empty or drain.", 0.5, "kind", "result"),
		scaledDown: counter("scaled_down_nodes_total",
			"Nodes that the cloud was asked to delete, by reason and GPU resource.", "reason", "gpu_resource_name"),
		failed: counter("scale_down_failed_nodes_total", "Nodes that were given back, by result.", "result"),
		evictions: counter("evicted_pods_total", "Answers to evictions: accepted, or why not; "+
			"deleted_despite_budget: a deletion took its place.", "eviction_result"),
		decisions: counter("decision_total", "Loops by what came of them.", "kind", "outcome"),
		errors:    counter("errors_total", "Loops that could not be finished, by what failed.", "type"),
		cutShort: counter("plans_cut_short_total",
			"Plans that a budget of work, time or memory ended early, by part: scaleUp, slack or drain.", "part"),
		unneeded:    gauge("unneeded_nodes", "Nodes that can go."),
		unremovable: gauges("unremovable_nodes", "Nodes that stay, by reason.", "reason"),
		underWay: gauges("pending_node_deletions", "Nodes whose removal is under way; kind is empty or drain.",
			"kind"),
		limits:   gauges("scale_down_limit", "Nodes that may go at once; kind is all or drain.", "kind"),
		cooldown: gauge("scale_down_in_cooldown", "Whether no removal begins for some time."),
		brake:    gauges("scale_down_brake", "1 for what holds all removals back.", "brake"),
		longestSkip: gauge("max_node_skip_eval_duration_seconds",
			"How long the planner has not come to look at some node."),
		leader:   gauge("leader", "Whether this process leads."),
		lastLoop: gauge("last_loop_timestamp_seconds", "When the last loop was finished without an error."),
	}
	m.nodesAboveLine = gauge("nodes_above_load_line",
		"Nodes whose pods have more limits than the load line allows; 0 where there is no line.")
	m.registry.MustRegister(m.nodesAboveLine)
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + "build_info",
		Help: "Always 1; the labels tell the build.", ConstLabels: prometheus.Labels{"version": version}})
	build.Set(1)
	m.scaledUp = counter("scaled_up_nodes_total", "Nodes that the cloud was asked for, by GPU resource.",
		"gpu_resource_name")
	m.failedScaleUps = counter("failed_scale_ups_total",
		"Failures to grow after which a node group backs off, by reason.", "reason")
	m.failedCreations = counter("failed_node_creations_total", "Machines that the cloud could not create, by reason.",
		"reason")
	m.givenUp = counter("given_up_nodes_total", "Machines that did not become nodes and that the cloud was asked to "+
		"delete: failed, late or notBegun.", "reason")
	m.unschedulable = gauge("unschedulable_pods_count", "Pods that wait for a node.")
	m.nodes = gauges("nodes_count", "Nodes by state: ready, unready, notStarted, unregistered, longUnregistered.",
		"state")
	m.nodeGroups = gauges("node_groups_count",
		"Node groups by what keeps them from growing: none, backoff, maximum, unpriced, other.", "held")
	m.safe = gauge("cluster_safe_to_autoscale", "Whether enough nodes are ready for groups to grow.")
	m.registry.MustRegister(m.scaledUp, m.failedScaleUps, m.failedCreations, m.givenUp, m.unschedulable, m.nodes,
		m.nodeGroups, m.safe)
	m.slackTarget = gauge("slack_target_cores", "Room that is to be kept free, in cores.")
	m.slackCurrent = gauge("slack_current_cores", "Room that is free for it now, in cores.")
	m.slackTargetBytes = gauge("slack_target_bytes", "Room that is to be kept free, in bytes of memory.")
	m.slackCurrentBytes = gauge("slack_current_bytes", "Room that is free for it now, in bytes of memory.")
	m.placeholders = gauges("slack_placeholders", "Pieces of that room: wanted, placed, and pods running for them.",
		"state")
	m.leftOut = gauges("left_out_objects",
		"Objects that plans are made without, since they alone cannot be taken, by kind.", "kind")
	m.registry.MustRegister(m.leftOut, m.slackTarget, m.slackCurrent, m.slackTargetBytes, m.slackCurrentBytes,
		m.placeholders)
	m.registry.MustRegister(m.duration, m.deletion, m.scaledDown, m.failed, m.evictions, m.decisions, m.errors,
		m.cutShort, m.unneeded, m.unremovable,
		m.underWay, m.limits, m.cooldown, m.brake, m.longestSkip, m.leader, m.lastLoop, build)
	m.sizes, m.replacements = newSizeMetrics(m.registry), newReplacements(m.registry)
	for _, part := range []string{partScaleUp, partSlack, partDrain} {
		m.cutShort.WithLabelValues(part) // so that a rate can be taken before the first one
	}
	return m
}

// time measures a function until the returned one is called.
func (m *metrics) time(function string) func() {
	began := time.Now()
	return func() { m.duration.WithLabelValues(function).Observe(time.Since(began).Seconds()) }
}

func kindOf(empty bool) string {
	if empty {
		return "empty"
	}
	return "drain"
}

// hooks count what the actuator does.
func (m *metrics) hooks() drain.Hooks {
	return drain.Hooks{
		Evicted: func(result string) { m.evictions.WithLabelValues(result).Inc() },
		Removed: func(r *drain.Removal, result drain.Result, took time.Duration) {
			m.deletion.WithLabelValues(kindOf(r.Empty), string(result)).Observe(took.Seconds())
			if result == drain.NodeDeleteOK {
				m.scaledDown.WithLabelValues(r.Reason, gpuResource(r.Node)).Inc()
			} else {
				m.failed.WithLabelValues(string(result)).Inc()
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

func set(gauge prometheus.Gauge, yes bool) {
	if yes {
		gauge.Set(1)
	} else {
		gauge.Set(0)
	}
}

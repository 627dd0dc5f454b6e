package extender

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Results of a request.
const (
	resultScored   = "scored"   // the engine's scores
	resultNeutral  = "neutral"  // 0 for every node; the reason is counted as a skip
	resultRejected = "rejected" // not a request: answered with a 4xx status
	resultRefused  = "refused"  // no room for one more at a time, or for its body: answered with 503
)

// Reasons for answering without the engine's scores.
const (
	skipNotSynced   = "not_synced"    // the engine does not have the cluster yet, or lost it
	skipBreakerOpen = "breaker_open"  // the engine failed repeatedly
	skipBusy        = "busy"          // too many requests at a time, or a limit of the engine is reached
	skipDeadline    = "deadline"      // no answer in time
	skipUnavailable = "unavailable"   // no engine
	skipRefused     = "refused"       // the engine refused state or question
	skipBadPod      = "bad_pod"       // the pod is missing, or the engine cannot make sense of it
	skipUnknown     = "unknown_nodes" // none of the nodes is known yet
	skipBadAnswer   = "bad_answer"    // scores that do not match the question
	skipPanic       = "panic"         // our own bug
)

var skipReasons = []string{
	skipNotSynced, skipBreakerOpen, skipBusy, skipDeadline, skipUnavailable, skipRefused, skipBadPod, skipUnknown,
	skipBadAnswer, skipPanic,
}

// metrics are served on /metrics, from a registry of their own.
type metrics struct {
	registry     *prometheus.Registry
	requests     *prometheus.CounterVec
	skips        *prometheus.CounterVec
	duration     prometheus.Histogram
	fullNodes    prometheus.Counter
	unknownNodes prometheus.Counter
	syncs        *prometheus.HistogramVec
	viewNodes    prometheus.Gauge
	viewPods     prometheus.Gauge
	leftOut      prometheus.Counter
	unreadable   prometheus.Gauge
	clamped      prometheus.Gauge
	failedChecks prometheus.Gauge
	engineUp     prometheus.Gauge
	reloaded     prometheus.Gauge
	filters      *prometheus.CounterVec
	nodesAbove   prometheus.Gauge
}

func newMetrics(version string) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: counter("loadline_extender_requests_total",
			"Prioritize requests by result: scored; neutral, 0 for every node; rejected, no request (4xx); "+
				"refused, too many at a time (503).", "result"),
		skips: counter("loadline_extender_skips_total",
			"Prioritize requests answered with 0 for every node, by reason.", "reason"),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "loadline_extender_request_duration_seconds",
			Help:    "Time from the last byte of a request to its answer.",
			Buckets: prometheus.ExponentialBuckets(1e-4, 2, 12),
		}),
		fullNodes: prometheus.NewCounter(prometheus.CounterOpts{Name: "loadline_extender_full_node_requests_total",
			Help: "Requests with whole nodes instead of names: nodeCacheCapable is not set in the scheduler's " +
				"configuration."}),
		unknownNodes: prometheus.NewCounter(prometheus.CounterOpts{Name: "loadline_extender_unknown_nodes_total",
			Help: "Nodes asked about that were not known, and scored 0."}),
		leftOut: prometheus.NewCounter(prometheus.CounterOpts{Name: "loadline_view_nodes_left_out_total",
			Help: "Times that a node was left out because the engine finds it invalid, or cannot read all of it."}),
		syncs: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "loadline_view_sync_duration_seconds", Help: "Time to bring the engine up to date in the background.",
			Buckets: prometheus.ExponentialBuckets(1e-4, 3, 11),
		}, []string{"result"}),
		viewNodes: gauge("loadline_view_nodes", "Nodes that the engine holds."),
		viewPods:  gauge("loadline_view_pods", "Pods that the engine holds."),
		unreadable: gauge("loadline_view_unreadable_objects",
			"Nodes and pods that count only with what the engine could read of them; the log names them."),
		clamped: gauge("loadline_view_clamped_amounts", "Amounts that the engine has clamped since it holds the view."),
		failedChecks: gauge("loadline_engine_failed_checks",
			"Calls that the engine has refused since it started because a check of its own failed: a fault of "+
				"Loadline."),
		engineUp: gauge("loadline_engine_up", "Whether the engine answered when it was last asked how it is."),
		reloaded: gauge("loadline_tls_last_reload_successful",
			"Whether the certificate files could be read when they last changed."),
		filters: counter("loadline_extender_filter_requests_total",
			"Filter requests by result: answered, or the reason why the engine did not say what the load line allows.",
			"result"),
		nodesAbove: gauge("loadline_nodes_above_line",
			"Nodes above the load line, of those that the last filter request asked about."),
	}
	m.begin(version)
	return m
}

// begin registers the metrics that each gateway has, and sets those that do not begin with 0.
func (m *metrics) begin(version string) {
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "loadline_build_info",
		Help: "Always 1; the labels tell the build.", ConstLabels: prometheus.Labels{"version": version}})
	build.Set(1)
	m.reloaded.Set(1)
	m.registry.MustRegister(m.reloaded, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, result := range []string{resultScored, resultNeutral, resultRejected, resultRefused} {
		m.requests.WithLabelValues(result) // so that a rate can be taken before the first one
	}
	for _, reason := range skipReasons {
		m.skips.WithLabelValues(reason)
	}
}

// registerExtender adds the metrics that an extender has.
func (m *metrics) registerExtender() {
	m.registry.MustRegister(m.requests, m.skips, m.duration, m.fullNodes, m.unknownNodes, m.leftOut, m.unreadable,
		m.syncs, m.viewNodes, m.viewPods, m.clamped, m.failedChecks, m.engineUp)
}

// registerFilter adds the metrics that an extender with a load line has.
func (m *metrics) registerFilter() { m.registry.MustRegister(m.filters, m.nodesAbove) }

// filtered counts a filter request. `skip` is empty when the engine has answered.
func (m *metrics) filtered(skip string, took time.Duration) {
	m.duration.Observe(took.Seconds())
	if skip == "" {
		skip = "answered"
	}
	m.filters.WithLabelValues(skip).Inc()
}

// answered counts a request. `skip` is empty when the engine's scores were answered.
func (m *metrics) answered(skip string, took time.Duration) {
	m.duration.Observe(took.Seconds())
	if skip == "" {
		m.requests.WithLabelValues(resultScored).Inc()
		return
	}
	m.requests.WithLabelValues(resultNeutral).Inc()
	m.skips.WithLabelValues(skip).Inc()
}

func set(gauge prometheus.Gauge, yes bool) {
	if yes {
		gauge.Set(1)
	} else {
		gauge.Set(0)
	}
}

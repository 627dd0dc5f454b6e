package scheduler

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	lineCycles = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "load_line_cycles_total", StabilityLevel: metrics.ALPHA,
		Help: "Scheduling cycles in which the engine said which nodes the load line keeps the pod off.",
	})
	lineFailures = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "load_line_failures_total", StabilityLevel: metrics.ALPHA,
		Help: "Times that the engine did not say what the load line allows, by reason.",
	}, []string{"reason"})
	lineSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "load_line_duration_seconds", StabilityLevel: metrics.ALPHA, Buckets: fineBuckets,
		Help: "Time that the plugin's PreFilter took for the load line, the question to the engine included.",
	})
	nodesAbove = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "nodes_above_load_line", StabilityLevel: metrics.ALPHA,
		Help: "Nodes whose pods have more limits than the load line allows, as of the last cycle.",
	}, []string{"engine", "view"})
)

// LineMetricNames lists the metrics that the plugin adds to the scheduler's /metrics where it has a load line.
var LineMetricNames = []string{
	subsystem + "_load_line_cycles_total",
	subsystem + "_load_line_failures_total",
	subsystem + "_load_line_duration_seconds",
	subsystem + "_nodes_above_load_line",
}

var registerLineMetrics = sync.OnceFunc(func() {
	legacyregistry.MustRegister(lineCycles, lineFailures, lineSeconds, nodesAbove)
})

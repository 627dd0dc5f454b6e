package scheduler

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// reason says why a cycle went on without the plugin's opinion.
type reason string

const (
	reasonBreakerOpen reason = "breaker_open"     // the engine did not answer lately
	reasonSyncing     reason = "syncing"          // the engine is being brought up to date in the background
	reasonRefused     reason = "refused"          // the engine has lost the view; it gets everything again
	reasonUnavailable reason = "unavailable"      // there is no connection to the engine
	reasonTimeout     reason = "timeout"          // the engine did not answer in time
	reasonInvalid     reason = "invalid_argument" // the engine cannot take the pod, a node or the policy
	reasonExhausted   reason = "exhausted"        // a limit of the engine was reached
	reasonCanceled    reason = "canceled"         // the scheduler gave the cycle up
	reasonBadAnswer   reason = "bad_answer"       // the engine answered for other nodes than it was asked about
	reasonNoState     reason = "no_state"         // PreFilter has not run
	reasonPanic       reason = "panic"            // a bug of ours
	reasonError       reason = "error"            // any other error
)

var reasons = []reason{
	reasonBreakerOpen, reasonSyncing, reasonRefused, reasonUnavailable, reasonTimeout, reasonInvalid,
	reasonExhausted, reasonCanceled, reasonBadAnswer, reasonPanic, reasonError,
}

const subsystem = "loadline_scheduler"

// fineBuckets begin at 1 microsecond: what a table read and a call within the process take.
var fineBuckets = metrics.ExponentialBuckets(1e-6, 2, 20)

var (
	answered = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "cycles_answered_total", StabilityLevel: metrics.ALPHA,
		Help: "Scheduling cycles in which the engine scored the feasible nodes.",
	})
	skipped = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "cycles_skipped_total", StabilityLevel: metrics.ALPHA,
		Help: "Scheduling cycles that went on without scores of the engine, by reason.",
	}, []string{"reason"})
	panics = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "panics_total", StabilityLevel: metrics.ALPHA,
		Help: "Panics that the plugin recovered from.",
	})
	clamped = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "scores_clamped_total", StabilityLevel: metrics.ALPHA,
		Help: "Scores that lay outside of 0 to 100 and were clamped.",
	})
	leftOut = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "nodes_left_out_total", StabilityLevel: metrics.ALPHA,
		Help: "Times that a node was left out because the engine found it invalid, or could not read all of it.",
	})
	unreadable = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "unreadable_objects", StabilityLevel: metrics.ALPHA,
		Help: "Nodes and pods that count only with what the engine could read of them; the log names them.",
	}, []string{"engine", "view"})
	breakerOpen = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "breaker_open", StabilityLevel: metrics.ALPHA,
		Help: "1 while the engine is asked only once a second because it did not answer, else 0.",
	}, []string{"engine", "view"})
	preScoreSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "prescore_duration_seconds", StabilityLevel: metrics.ALPHA, Buckets: fineBuckets,
		Help: "Time that the plugin's PreScore took, the question to the engine included.",
	})
	scoreSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "score_duration_seconds", StabilityLevel: metrics.ALPHA,
		Buckets: metrics.ExponentialBuckets(1e-8, 2, 20),
		Help:    "Time that the plugin's Score took for one node; one node of each cycle is measured.",
	})
	engineSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "engine_call_duration_seconds", StabilityLevel: metrics.ALPHA, Buckets: fineBuckets,
		Help: "Time that the question to the engine took, whatever its outcome.",
	})
)

// MetricNames lists the metrics that the plugin adds to the scheduler's /metrics.
var MetricNames = []string{
	subsystem + "_cycles_answered_total",
	subsystem + "_cycles_skipped_total",
	subsystem + "_panics_total",
	subsystem + "_scores_clamped_total",
	subsystem + "_nodes_left_out_total",
	subsystem + "_unreadable_objects",
	subsystem + "_breaker_open",
	subsystem + "_prescore_duration_seconds",
	subsystem + "_score_duration_seconds",
	subsystem + "_engine_call_duration_seconds",
}

// skippedFor holds the counter of each reason: looking a label up costs more than counting.
var skippedFor = map[reason]metrics.CounterMetric{}

var registerMetrics = sync.OnceFunc(func() {
	legacyregistry.MustRegister(answered, skipped, panics, clamped, leftOut, unreadable, breakerOpen, preScoreSeconds,
		scoreSeconds, engineSeconds)
	for _, r := range reasons {
		skippedFor[r] = skipped.WithLabelValues(string(r))
	}
})

func observeSince(histogram metrics.ObserverMetric, start time.Time) {
	histogram.Observe(time.Since(start).Seconds())
}

package usage

import (
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/restclient" // rest_client_*

	"loadline.dev/shim/internal/health"
	"loadline.dev/shim/internal/ports"
	"loadline.dev/shim/usage/source"
)

// Metrics are served on /metrics. No label holds the name of a workload.
type Metrics struct {
	registry          *prometheus.Registry
	samples           prometheus.Counter
	dropped, failures *prometheus.CounterVec
	seconds           prometheus.Histogram
	pending, asked    prometheus.Gauge
	warned            prometheus.Counter
	withoutData       prometheus.Gauge
	written           prometheus.Gauge
	workloads, bytes  prometheus.Gauge
	leftOut           prometheus.Gauge
}

// NewMetrics returns metrics of a build, which begin at 0.
func NewMetrics(version string) *Metrics {
	const prefix = "loadline_usage_"
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Name: prefix + name, Help: help}
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + name, Help: help})
	}
	m := &Metrics{registry: prometheus.NewRegistry(),
		samples: prometheus.NewCounter(counter("samples_total", "Samples that were taken.")),
		dropped: prometheus.NewCounterVec(counter("dropped_samples_total", "Samples that were not taken, by reason."),
			[]string{"reason"}),
		failures: prometheus.NewCounterVec(counter("errors_total", "What failed: to ask the source, or to write."),
			[]string{"type"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: prefix + "question_duration_seconds",
			Help: "Time until the source has answered a question.", Buckets: prometheus.ExponentialBuckets(0.01, 2, 14)}),
		pending: gauge("pending_seconds", "How much of the past is to be asked about."),
		warned: prometheus.NewCounter(counter("warned_answers_total",
			"Answers with warnings, such as of a store that is away; they are asked for again a few times.")),
		withoutData: gauge("without_data_seconds", "How much of the past the source has no data of."),
		asked:       gauge("last_answer_timestamp_seconds", "When the source has last answered."),
		written:     gauge("last_write_timestamp_seconds", "When profiles were last written."),
		workloads:   gauge("profiles", "Workloads with a profile that was written last."),
		bytes:       gauge("profile_bytes", "What the profiles take in ConfigMaps."),
		leftOut:     gauge("left_out_profiles", "Workloads whose profile found no room when profiles were last written."),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + "build_info",
		Help: "Always 1; the labels tell the build.", ConstLabels: prometheus.Labels{"version": version}})
	build.Set(1)
	m.registry.MustRegister(build, m.samples, m.dropped, m.failures, m.seconds, m.pending, m.asked, m.warned,
		m.withoutData, m.written, m.workloads, m.bytes, m.leftOut)
	for _, reason := range source.Reasons {
		m.dropped.WithLabelValues(string(reason)) // so that a rate can be taken before the first one
	}
	for _, what := range []string{"ask", "write"} {
		m.failures.WithLabelValues(what)
	}
	return m
}

// count takes note of an answer.
func (m *Metrics) count(out *source.Outcome, err error, took time.Duration) {
	m.seconds.Observe(took.Seconds())
	m.samples.Add(float64(out.Samples))
	for reason, count := range out.Dropped {
		m.dropped.WithLabelValues(string(reason)).Add(float64(count))
	}
	if err != nil && !errors.Is(err, source.ErrNoData) {
		m.failures.WithLabelValues("ask").Inc()
		return
	}
	if len(out.Warnings) > 0 {
		m.warned.Inc()
	}
	m.asked.SetToCurrentTime()
}

// wrote takes note of profiles that were written.
func (m *Metrics) wrote(at time.Time, workloads, leftOut, size int) {
	m.written.Set(float64(at.Unix()))
	m.workloads.Set(float64(workloads))
	m.bytes.Set(float64(size))
	m.leftOut.Set(float64(leftOut))
}

// vitals are what probes ask for.
type vitals struct {
	roundBegan atomic.Int64 // of the last question, in nanoseconds since 1970; 0: there was none
	asked      atomic.Bool  // the source has answered
}

// stuckAfter is how long one question may take before only a restart helps: several times its timeout.
const stuckAfter = 15 * time.Minute

// Ports bound what others hold of them.
const (
	maxConnections = 64
	maxOfClient    = 16
)

// Serve answers probes and metrics at an address, until the function that it returns is called.
func (c *Collector) Serve(address string) (closeServer func(), err error) {
	return ports.Serve(address, c.handler(), maxConnections, maxOfClient)
}

func (c *Collector) handler() http.Handler {
	mux := http.NewServeMux()
	health.Handle(mux, c.alive, c.ready)
	mux.Handle("GET /metrics", ports.Metrics(prometheus.Gatherers{c.metrics.registry, legacyregistry.DefaultGatherer}))
	return mux
}

// alive fails when a question has hung for so long that only a restart helps.
func (c *Collector) alive() []health.Check {
	return []health.Check{health.Stuck("questions", c.vitals.roundBegan.Load(), stuckAfter+c.options.Poll)}
}

// ready fails until the source has answered.
func (c *Collector) ready() []health.Check {
	check := health.Check{Name: "source"}
	if !c.vitals.asked.Load() {
		check.Problem = "it has not answered yet"
	}
	return []health.Check{check}
}

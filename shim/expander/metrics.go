package expander

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"loadline.dev/shim/api/loadlinev1"
)

// kind is the label of decisions of this package: those which node group grows.
const kind = "rank"

// Outcomes of a decision.
const (
	outcomeRanked   = "ranked"   // the best option of the engine's ranking
	outcomeFallback = "fallback" // without the engine, by least waste; the reason is counted beside
)

// Reasons for a decision without the engine.
const (
	fallbackBreakerOpen = "breaker_open" // the engine failed repeatedly
	fallbackBusy        = "busy"         // too many questions at a time, or a limit of the engine is reached
	fallbackDeadline    = "deadline"     // no answer in time
	fallbackUnavailable = "unavailable"  // no engine
	fallbackRefused     = "refused"      // the engine refused the question
	fallbackBadAnswer   = "bad_answer"   // a ranking that does not match the question
	fallbackPanic       = "panic"        // our own bug
)

// Reasons for no decision.
const (
	rejectSize     = "size"     // more than we read
	rejectBusy     = "busy"     // too many requests at a time
	rejectDeadline = "deadline" // it did not arrive in time
	rejectBroken   = "broken"   // it did not arrive whole
	rejectInvalid  = "invalid"  // not a request
)

var (
	fallbackReasons = []string{fallbackBreakerOpen, fallbackBusy, fallbackDeadline, fallbackUnavailable,
		fallbackRefused, fallbackBadAnswer, fallbackPanic}
	rejectReasons = []string{rejectSize, rejectBusy, rejectDeadline, rejectBroken, rejectInvalid}
)

// maxWinners bounds the node groups with their own time series: a client of the port can invent any number of names.
const maxWinners = 1000

// otherWinners is the label of all further groups.
const otherWinners = "other"

// metrics of a server.
type metrics struct {
	decisions *prometheus.CounterVec
	fallbacks *prometheus.CounterVec
	rejected  *prometheus.CounterVec
	winners   *prometheus.CounterVec
	unpriced  prometheus.Counter
	duration  prometheus.Histogram
	bytes     prometheus.Histogram

	mu    sync.Mutex
	named map[string]struct{} // groups with a series; guarded by mu
}

func newMetrics() *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		decisions: counter("loadline_decision_total", "Decisions by kind and outcome.", "kind", "outcome"),
		fallbacks: counter("loadline_decision_fallback_total", "Decisions without the engine, by kind and reason.",
			"kind", "reason"),
		rejected: counter("loadline_requests_rejected_total", "Requests of autoscalers that got no answer, by reason.",
			"reason"),
		winners: counter("loadline_rank_winner_total", "Choices by node group.", "node_group"),
		unpriced: prometheus.NewCounter(prometheus.CounterOpts{Name: "loadline_rank_unpriced_options_total",
			Help: "Options of which no source has a price, and which were ranked behind the others."}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "loadline_rank_duration_seconds", Help: "Time from the first byte of a request to its answer.",
			Buckets: prometheus.ExponentialBuckets(1e-3, 2, 13),
		}),
		bytes: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "loadline_rank_request_bytes", Help: "Size of the requests that were read.",
			Buckets: prometheus.ExponentialBuckets(4<<10, 4, 10),
		}),
		named: map[string]struct{}{},
	}
	for _, outcome := range []string{outcomeRanked, outcomeFallback} {
		m.decisions.WithLabelValues(kind, outcome) // so that a rate can be taken before the first one
	}
	for _, reason := range fallbackReasons {
		m.fallbacks.WithLabelValues(kind, reason)
	}
	for _, reason := range rejectReasons {
		m.rejected.WithLabelValues(reason)
	}
	return m
}

// Collectors returns the metrics of the server, to be registered.
func (s *Server) Collectors() []prometheus.Collector {
	m := s.metrics
	return []prometheus.Collector{m.decisions, m.fallbacks, m.rejected, m.winners, m.unpriced, m.duration, m.bytes}
}

// chosen counts a decision.
func (m *metrics) chosen(c choice, took time.Duration) {
	m.duration.Observe(took.Seconds())
	m.winners.WithLabelValues(m.winner(c.group)).Inc()
	for _, option := range c.ranked {
		if option.GetOutcome() == loadlinev1.RankedOption_NO_PRICE {
			m.unpriced.Inc()
		}
	}
	if c.fallback == "" {
		m.decisions.WithLabelValues(kind, outcomeRanked).Inc()
		return
	}
	m.decisions.WithLabelValues(kind, outcomeFallback).Inc()
	m.fallbacks.WithLabelValues(kind, c.fallback).Inc()
}

// winner returns the label of a group.
func (m *metrics) winner(group string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.named[group]; !ok {
		if len(m.named) >= maxWinners {
			return otherWinners
		}
		m.named[group] = struct{}{}
	}
	return group
}

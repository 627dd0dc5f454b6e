package expander

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"loadline.dev/shim/internal/promtest"
)

func TestNamesOfMetrics(t *testing.T) {
	s := &Server{metrics: newMetrics()}
	s.metrics.chosen(choice{group: "g"}, time.Second)
	registry := prometheus.NewRegistry()
	registry.MustRegister(s.Collectors()...)
	promtest.Lint(t, registry, "loadline_decision_total", "loadline_decision_fallback_total",
		"loadline_requests_rejected_total", "loadline_rank_winner_total", "loadline_rank_duration_seconds")
}

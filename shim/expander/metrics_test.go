package expander

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"loadline.dev/shim/internal/testing/promtest"
)

func TestNamesOfMetrics(t *testing.T) {
	s := &Server{metrics: newMetrics()}
	s.metrics.chosen(choice{group: "g"}, time.Second)
	registry := prometheus.NewRegistry()
	registry.MustRegister(s.Collectors()...)
	promtest.Lint(t, registry, "loadline_decision_total", "loadline_decision_fallback_total",
		"loadline_requests_rejected_total", "loadline_rank_winner_total", "loadline_rank_duration_seconds")
	certificate := prometheus.NewGauge(prometheus.GaugeOpts{Name: "loadline_tls_last_reload_successful"}) // of the gateway
	registry.MustRegister(certificate)
	promtest.AsksForServed(t, "../../manifests/expander/monitoring/30-rules.yaml", registry)
}

package usage

import (
	"testing"

	"loadline.dev/shim/internal/testing/promtest"
)

func TestNamesOfMetrics(t *testing.T) {
	promtest.Lint(t, NewMetrics("test").registry, "loadline_usage_pending_seconds",
		"loadline_usage_dropped_samples_total", "loadline_usage_question_duration_seconds")
}

// Alerts and panels ask for metrics that there are.
func TestMonitoringAsksForServedMetrics(t *testing.T) {
	for _, file := range []string{"30-rules.yaml", "dashboard.json"} {
		promtest.AsksForServed(t, "../../manifests/usage/monitoring/"+file, NewMetrics("test").registry)
	}
}

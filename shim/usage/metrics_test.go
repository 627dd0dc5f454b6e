package usage

import (
	"testing"

	"loadline.dev/shim/internal/promtest"
)

func TestNamesOfMetrics(t *testing.T) {
	promtest.Lint(t, NewMetrics("test").registry, "loadline_usage_pending_seconds",
		"loadline_usage_dropped_samples_total", "loadline_usage_question_duration_seconds")
}

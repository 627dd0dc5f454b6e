package extender

import (
	"testing"
	"time"

	"loadline.dev/shim/internal/testing/promtest"
)

func TestNamesOfMetrics(t *testing.T) {
	m := newMetrics("test")
	m.registerExtender()
	m.registerFilter()
	m.filtered("", time.Second)
	m.syncs.WithLabelValues("ok").Observe(1)
	promtest.Lint(t, m.registry, "loadline_build_info", "loadline_extender_requests_total",
		"loadline_extender_skips_total", "loadline_extender_filter_requests_total", "loadline_view_nodes",
		"loadline_view_sync_duration_seconds", "loadline_nodes_above_line", "loadline_engine_up")
	promtest.AsksForServed(t, "../../manifests/extender/monitoring/30-rules.yaml", m.registry)
}

package tell

import (
	"slices"
	"testing"
	"time"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/act/drain"
	"loadline.dev/shim/internal/testing/promtest"
)

// The names of all metrics follow the rules of Prometheus. Those of Cluster Autoscaler are its own.
func TestNamesOfMetrics(t *testing.T) {
	m := NewMetrics("test")
	report := &loadlinev1.LoopReport{}
	var names []string
	for _, f := range slices.Concat(counters, gauges, loopGauges) {
		names = append(names, prefix+f.name)
		report.Metrics = append(report.Metrics,
			&loadlinev1.MetricValue{Name: f.name, Labels: slices.Repeat([]string{"x"}, len(f.labels)), Value: 1})
	}
	m.told(report)
	m.Took(FunctionMain, time.Second)
	m.Hooks().Removed(&drain.Removal{}, drain.NodeDeleteOK, time.Second)
	promtest.Lint(t, m.Registry, append(names, prefix+"build_info", prefix+"function_duration_seconds",
		prefix+"node_deletion_duration_seconds")...)
}

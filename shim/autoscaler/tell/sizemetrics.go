package tell

import (
	"github.com/prometheus/client_golang/prometheus"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/plan"
)

// sizeMetrics are those of groups that are sized by how full they are. Their label is the id of the group: a file names
// each of these groups, so that there are few.
type sizeMetrics struct {
	utilization, delta, tainted, locked *prometheus.GaugeVec
}

func newSizeMetrics(r maker) *sizeMetrics {
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return r.gauges("sized_group_"+name, help, append([]string{"node_group"}, labels...)...)
	}
	return &sizeMetrics{
		utilization: gauges("utilization_percent",
			"What is requested of a sized group, of what its untainted nodes offer; resource is cpu or memory. A group "+
				"without such nodes has none.", "resource"),
		delta: gauges("delta_nodes", "Nodes that a sized group wins, or if negative loses."),
		tainted: gauges("tainted_nodes",
			"Nodes of a sized group that are tainted and wait for their grace period to end, or for pods."),
		locked: gauges("locked", "Whether a sized group does nothing because it grew a short time ago."),
	}
}

// update tells what a plan says of the groups. Those that are not sized any more are told no longer.
func (m *sizeMetrics) update(sized map[string]*plan.SizedGroup) {
	for _, vec := range []*prometheus.GaugeVec{m.utilization, m.delta, m.tainted, m.locked} {
		vec.Reset()
	}
	for id, g := range sized {
		if g.Size == nil {
			continue // there is no plan
		}
		if u := g.Size.GetUtilization(); u.GetKind() == loadlinev1.Utilization_PERCENT {
			m.utilization.WithLabelValues(id, "cpu").Set(u.GetCpuPercent())
			m.utilization.WithLabelValues(id, "memory").Set(u.GetMemoryPercent())
		}
		m.delta.WithLabelValues(id).Set(float64(g.Size.GetDelta()))
		m.tainted.WithLabelValues(id).Set(float64(g.Size.GetTaintedNodes()))
		set(m.locked.WithLabelValues(id), g.Size.GetReason() == loadlinev1.GroupSize_LOCKED)
	}
}

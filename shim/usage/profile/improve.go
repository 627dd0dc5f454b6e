package profile

import (
	"maps"
	"slices"
)

// Improve adds what another collector has gathered of hours that may be known already. Of each workload and hour it
// keeps the CPU of the collector with more samples, and the larger memory. No sample counts twice, and an answer that
// lacks pods takes nothing away.
func (c *Collector) Improve(by *Collector) {
	for _, w := range slices.SortedFunc(maps.Keys(by.workloads), Workload.Compare) {
		h := c.room(w)
		if h == nil {
			continue
		}
		other := by.workloads[w]
		for i := range other.cells {
			better := &other.cells[i]
			at := h.cell(int64(better.ofHour))
			if at == nil {
				continue
			}
			if before, now := at.cpu.count(), better.cpu.count(); now > before {
				at.cpu = better.cpu
				h.samples += now - before
			}
			at.memory = max(at.memory, better.memory)
		}
		h.newest = max(h.newest, other.newest)
		for of := range h.limits {
			h.limits[of] = newer(h.limits[of], other.limits[of])
		}
	}
}

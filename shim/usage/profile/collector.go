package profile

import (
	"maps"
	"math"
	"slices"
)

// Options say what counts. The zero value is of no use: see Default.
type Options struct {
	// Days are the days that count, back from the hour that profiles are asked for. [1, 31].
	Days int
	// Percent is the percentile of CPU. [1, 100]; 100 is the maximum.
	Percent int
	// MostWorkloads bounds the workloads that are kept. At least 1.
	MostWorkloads int
}

// Default has the 90th percentile of seven days, of at most 10,000 workloads.
func Default() Options { return Options{Days: 7, Percent: 90, MostWorkloads: 10_000} }

// cell has the samples of one workload in one hour of one day.
type cell struct {
	cpu    histogram
	memory int64 // the maximum
	ofHour int32 // hours since 1970; a cell of another hour is empty
}

// history has the cells of a workload, a ring of as many hours as count.
type history struct {
	cells   []cell
	samples int64
	newest  int64 // the time of the newest sample
	limits  [Resources]limit
}

// limit is the limit of a pod at a time.
type limit struct{ seconds, amount int64 }

// Collector gathers samples. Not safe for concurrent use.
//
// Its memory is bounded by MostWorkloads. When there are more, namespaces share the room: one more workload takes the
// place of the one with the fewest samples in the namespace that has most workloads, unless its own namespace has as
// many already. So no namespace drives out those of others by making many.
type Collector struct {
	options   Options
	workloads map[Workload]*history
	byOwner   map[string]int // workloads by namespace
	fullest   *string        // the namespace with most of them; nil: to be found again
	refused   int64
}

// NewCollector returns a collector that has gathered nothing.
func NewCollector(options Options) *Collector {
	return &Collector{options: options, workloads: map[Workload]*history{}, byOwner: map[string]int{}}
}

// Refused returns how many samples found no room, and workloads that lost theirs.
func (c *Collector) Refused() int64 { return c.refused }

// Workloads returns how many workloads have room.
func (c *Collector) Workloads() int { return len(c.workloads) }

// ring is how many hours count.
func (c *Collector) ring() int { return c.options.Days * Hours }

// Add takes one sample: what one pod used at a time in seconds since 1970. Whoever calls has checked that the amount is
// not negative. Times need no order, but a sample of an hour displaces those of the same hour of the day so many days
// before, and one older than what is there is ignored. Of limits the newest counts, of several at a time the largest;
// one of a workload without any other sample is ignored. It returns false where there is no room for the workload.
func (c *Collector) Add(w Workload, of Resource, seconds, amount int64) bool {
	h := c.workloads[w]
	if of >= Resources {
		if told := (limit{seconds, min(amount, mostAmount)}); h != nil {
			h.limits[of-Resources] = newer(h.limits[of-Resources], told)
		}
		return true
	}
	if h = c.room(w); h == nil {
		return false
	}
	at := h.cell(seconds / 3600)
	if at == nil {
		return true
	}
	h.newest = max(h.newest, seconds)
	if of == CPU {
		at.cpu.add(amount)
		h.samples++
	} else {
		at.memory = max(at.memory, min(amount, mostAmount))
	}
	return true
}

// room returns the history of a workload, a new one where it has none; nil: there is no room for it.
func (c *Collector) room(w Workload) *history {
	h := c.workloads[w]
	if h == nil {
		if !c.makeRoom(w) {
			c.refused++
			return nil
		}
		h = &history{cells: make([]cell, c.ring())}
		c.workloads[w] = h
		c.byOwner[w.Namespace]++
		c.fullest = nil
	}
	return h
}

// cell returns the cell of an hour since 1970, and displaces an older one; nil: a newer one is there, or no sample may
// be of this hour.
func (h *history) cell(hour int64) *cell {
	if hour <= 0 || hour > math.MaxInt32 {
		return nil
	}
	at := &h.cells[hour%int64(len(h.cells))]
	switch {
	case int64(at.ofHour) > hour:
		return nil
	case int64(at.ofHour) < hour:
		*at = cell{ofHour: int32(hour), memory: Unknown, cpu: at.cpu[:0]}
	}
	return at
}

// newer returns the newer one of two limits, or the larger one of the same time.
func newer(a, b limit) limit {
	if b.seconds > a.seconds || b.seconds == a.seconds && b.amount > a.amount {
		return b
	}
	return a
}

// makeRoom says whether a workload that is not kept may be, and drops another one for it where that is fair.
func (c *Collector) makeRoom(w Workload) bool {
	if len(c.workloads) < c.options.MostWorkloads {
		return true
	}
	fullest := c.fullestNamespace()
	if c.byOwner[fullest] <= c.byOwner[w.Namespace]+1 {
		return false
	}
	least, found := Workload{}, false
	for other, h := range c.workloads {
		if other.Namespace != fullest {
			continue
		}
		if fewest := c.workloads[least]; !found || h.samples < fewest.samples ||
			h.samples == fewest.samples && other.Compare(least) > 0 {
			least, found = other, true
		}
	}
	c.drop(least)
	c.refused++
	return true
}

// fullestNamespace returns the namespace with most workloads; of those with equally many the first by name.
func (c *Collector) fullestNamespace() string {
	if c.fullest != nil {
		return *c.fullest
	}
	fullest := ""
	for namespace, count := range c.byOwner {
		if most := c.byOwner[fullest]; count > most || count == most && namespace < fullest {
			fullest = namespace
		}
	}
	c.fullest = &fullest
	return fullest
}

func (c *Collector) drop(w Workload) {
	delete(c.workloads, w)
	if c.byOwner[w.Namespace]--; c.byOwner[w.Namespace] == 0 {
		delete(c.byOwner, w.Namespace)
	}
	c.fullest = nil
}

// Profiles returns the profiles at a time in seconds since 1970, in the order of the workloads, of all workloads with a
// sample in the days before. Others are forgotten.
func (c *Collector) Profiles(now int64) []Profile {
	last := now / 3600
	first := last - int64(c.ring()) + 1
	var out []Profile
	for _, w := range slices.SortedFunc(maps.Keys(c.workloads), Workload.Compare) {
		h := c.workloads[w]
		if h.newest < first*3600 {
			c.drop(w)
			continue
		}
		if p, any := h.profile(first, last, c.options); any { // else all is of the next hour, by another clock
			p.Workload = w
			p.Limits = [Resources]int64{h.limits[CPU].amount, h.limits[Memory].amount}
			out = append(out, p)
		}
	}
	return out
}

// profile returns the profile from the cells of the hours [first, last], and whether there are any.
func (h *history) profile(first, last int64, options Options) (p Profile, any bool) {
	p.First, p.Last, p.Days = last*3600, min(h.newest, last*3600+3599), int64(options.Days)
	for hour := range int64(Hours) {
		var cpu histogram
		memory, days := Unknown, [Resources]int64{}
		for day := range int64(options.Days) {
			at := &h.cells[hour+day*Hours]
			if of := int64(at.ofHour); of < first || of > last || of == 0 {
				continue
			}
			if len(at.cpu) > 0 {
				days[CPU]++
			}
			if at.memory != Unknown {
				days[Memory]++
			}
			cpu.merge(at.cpu)
			memory = max(memory, at.memory)
			p.First, any = min(p.First, int64(at.ofHour)*3600), true
		}
		p.Day[CPU][hour], p.Day[Memory][hour] = cpu.percentile(int64(options.Percent)), memory
		p.Samples += cpu.count()
		for _, measured := range days {
			if measured > 0 {
				p.Days = min(p.Days, measured)
			}
		}
	}
	return p, any
}

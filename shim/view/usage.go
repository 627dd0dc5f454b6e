package view

import (
	"time"

	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/usage/profile"
)

// usageEra is the time for which a raw score that was found by profiles is remembered: meanwhile a profile may have
// become too old to count, which no object tells.
const usageEra = 10 * time.Minute

// setUsage has the view hold these profiles and no others.
func (f *feed) setUsage(profiles []profile.Profile) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ledger.usage++
	objects := &f.ledger.objects
	now := make(map[objectKey]bool, len(profiles))
	for i := range profiles {
		message := usageOf(&profiles[i])
		key := objectKey{loadlinev1.ObjectKind_WORKLOAD_USAGE, message.Namespace, message.Kind + "/" + message.Name}
		bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
		if err != nil {
			continue // a name that is not UTF-8, which store.Decode lets not pass
		}
		now[key] = true
		objects.set(key, bytes)
	}
	for key := range objects.byKey {
		if key.kind == loadlinev1.ObjectKind_WORKLOAD_USAGE && !now[key] {
			objects.set(key, nil)
		}
	}
}

// SetUsage has the view keep these profiles and no others, with the next Sync or Ask. From then on the engine gets the
// time as well, by which profiles become too old.
func (v *View) SetUsage(profiles []profile.Profile) { v.setUsage(profiles) }

// SetUsage has the view keep these profiles and no others. They are sent in the background at once; a cycle that asks
// meanwhile gets ErrSyncing. From then on the engine gets the time as well, by which profiles become too old.
func (c *Cycles[N, R]) SetUsage(profiles []profile.Profile) {
	c.setUsage(profiles)
	if c.turn.lock(c.ctx) != nil {
		return
	}
	c.mu.Lock()
	first := c.ledger.full.due // the first cycle sends all
	c.mu.Unlock()
	if first || !c.syncSoon(nil) {
		c.turn.unlock()
	}
}

// TellWorkloads has each pod sent to the engine with the workload that it belongs to. To be called before the first
// cycle.
func (c *Cycles[N, R]) TellWorkloads() { c.workloads = true }

// IncomingPod is TrimIncomingPod for a question with these options, by which the workload of the pod may count; nil: it
// does not.
func IncomingPod(pod *v1.Pod, use *loadlinev1.ExpectedUse) []byte {
	if use == nil {
		return TrimIncomingPod(pod)
	}
	return WithWorkload(TrimIncomingPod(pod), pod)
}

// usageOf returns a profile as the engine takes it: 0 means an hour that is not known, and an amount that is not known
// in any hour is left out.
func usageOf(p *profile.Profile) *loadlinev1.WorkloadUsage {
	amounts := func(day *profile.Day) []int64 {
		if peak, _ := day.Peak(); peak == profile.Unknown {
			return nil
		}
		out := make([]int64, len(day))
		for hour, amount := range day {
			switch amount {
			case profile.Unknown:
			case 0:
				out[hour] = 1
			default:
				out[hour] = amount
			}
		}
		return out
	}
	return &loadlinev1.WorkloadUsage{Namespace: p.Workload.Namespace, Kind: p.Workload.Kind, Name: p.Workload.Name,
		CpuMilli: amounts(&p.Day[profile.CPU]), MemoryBytes: amounts(&p.Day[profile.Memory]),
		CpuLimitMilli: p.Limits[profile.CPU], MemoryLimitBytes: p.Limits[profile.Memory],
		Days: int32(min(p.Days, 1<<30)), Samples: p.Samples, OldestS: min(p.First, p.Last, mostTime),
		NewestS: min(max(p.First, p.Last), mostTime)}
}

// mostTime is the latest time that the engine takes, in seconds since 1970.
const mostTime = int64(1) << 40

// seconds returns the time that a batch tells; 0: none, for there are no profiles.
func (l *ledger) seconds() int64 {
	if l.usage == 0 {
		return 0
	}
	return time.Now().Unix()
}

// era is another one where raw scores may be others though no node has changed.
type era struct{ usage, time, rules uint64 }

func (l *ledger) era() era {
	now := era{usage: l.usage, rules: l.rules}
	if l.usage > 0 {
		now.time = uint64(time.Now().UnixNano() / int64(usageEra))
	}
	return now
}

// queuedBytes estimates what the queued objects take in a batch.
func (o *objects) queuedBytes() (size int) {
	for _, e := range o.queue {
		size += e.size()
	}
	return size
}

// size estimates what an object takes in a batch.
func (e *objectEntry) size() int { return len(e.bytes) + len(e.key.namespace) + len(e.key.name) + 8 }

// kept returns objects of the same content of which the engine is not known to hold any.
func (o *objects) kept() objects {
	var out objects
	for key, e := range o.byKey {
		out.set(key, e.bytes)
	}
	out.complete = o.complete
	return out
}

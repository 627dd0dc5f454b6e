package main

import (
	"fmt"
	"math/rand/v2"

	"loadline.dev/shim/api/loadlinev1"
)

// drawDays draws one or two days of a cluster in the simulator, with faults in three of four.
func drawDays(seed uint64) *loadlinev1.SimulateRequest {
	r := &days{rand.New(rand.NewPCG(seed, 42))}
	s := &loadlinev1.Scenario{LoadStepSeconds: 60 * r.between(1, 10), Settings: r.settings()}
	zones := r.chance(30)
	for i := range r.between(1, 4) {
		s.Groups = append(s.Groups, r.group(i, zones))
	}
	for i := range r.between(1, 8) {
		s.Workloads = append(s.Workloads, r.workload(i, s.Groups, zones))
	}
	if seed%4 != 0 {
		s.Faults = r.faults()
	}
	return &loadlinev1.SimulateRequest{Scenario: s, Days: 1 + int64(seed%2), Seed: int64(seed)}
}

type days struct{ *rand.Rand }

func (r *days) between(low, high int64) int64 { return low + r.Int64N(high-low+1) }
func (r *days) chance(percent int) bool       { return r.IntN(100) < percent }

// maybe is 0 or lies between both.
func (r *days) maybe(percent int, low, high int64) int64 {
	if !r.chance(percent) {
		return 0
	}
	return r.between(low, high)
}

func (r *days) seconds(low, most, longer int64) *loadlinev1.SecondsRange {
	first := r.between(low, most)
	return &loadlinev1.SecondsRange{Min: first, Max: first + r.between(0, longer)}
}

func (r *days) group(i int64, zones bool) *loadlinev1.SimulatedGroup {
	cores := int64(2) << r.between(0, 3)
	g := &loadlinev1.SimulatedGroup{Name: fmt.Sprintf("g%d", i), MilliCpu: cores * 1000,
		MemoryMib: cores * 1024 * r.between(2, 8), UsdPerHour: float64(cores) / 25, Min: r.maybe(30, 1, 4),
		Max: r.between(5, 40), StartSeconds: r.seconds(20, 120, 120), Spot: r.chance(30), Tainted: i > 0 && r.chance(20)}
	g.Nodes = min(g.Max, g.Min+r.between(0, 4))
	if r.chance(15) {
		g.Gpus = r.between(1, 4)
		g.UsdPerHour *= 5
	}
	if zones {
		g.Zone = string(rune('a' + r.IntN(3)))
	}
	return g
}

func (r *days) workload(i int64, groups []*loadlinev1.SimulatedGroup, zones bool) *loadlinev1.SimulatedWorkload {
	w := &loadlinev1.SimulatedWorkload{Name: fmt.Sprintf("w%d", i), MilliCpu: 100 * r.between(1, 15),
		MemoryMib: 128 * r.between(1, 24), GraceSeconds: new(r.between(0, 60)), Priority: int32(100 * r.between(0, 2)),
		NotEvictable: r.chance(5), ForgedOwner: r.chance(5), PodStartSeconds: r.seconds(2, 10, 60),
		Kind: loadlinev1.SimulatedWorkload_DEPLOYMENT}
	if r.chance(50) {
		times := r.between(1, 4)
		w.LimitMilliCpu, w.LimitMemoryMib = w.MilliCpu*times, w.MemoryMib*times
	}
	if g := groups[r.IntN(len(groups))]; r.chance(30) {
		w.Group = g.Name
		w.Gpus = min(g.Gpus, r.between(0, 1))
	}
	if zones {
		w.MaxZoneSkew = r.maybe(30, 1, 2)
	}
	switch r.IntN(10) {
	case 0:
		return &loadlinev1.SimulatedWorkload{Name: w.Name, Kind: loadlinev1.SimulatedWorkload_DAEMON, MilliCpu: 100,
			MemoryMib: 128, GraceSeconds: w.GraceSeconds}
	case 1, 2:
		w.Kind, w.Replicas = loadlinev1.SimulatedWorkload_BATCH, r.between(1, 30)
		w.FirstSeconds, w.EverySeconds = r.between(0, 10_000), r.between(3_600, 40_000)
		w.RunSeconds = r.seconds(60, 60, 5_000)
	case 3:
		w.Kind = loadlinev1.SimulatedWorkload_TRACE
		for at, j := int64(0), 0; j < 20; j++ {
			at += r.between(0, 5_000)
			w.Arrivals = append(w.Arrivals, &loadlinev1.SimulatedArrival{AtSeconds: at, Count: r.between(1, 10)})
		}
	default:
		r.load(w)
	}
	return w
}

func (r *days) load(w *loadlinev1.SimulatedWorkload) {
	w.Replicas, w.Apart = r.between(1, 30), r.chance(10)
	w.DailyPercent, w.WeekendPercent = r.maybe(60, 10, 100), r.maybe(30, 10, 100)
	w.PeakHour, w.RolloutEverySeconds = new(r.between(0, 23)), r.maybe(30, 7_200, 50_000)
	if r.chance(40) {
		w.Bursts = []*loadlinev1.SimulatedBurst{{AtSeconds: r.between(0, 80_000), ForSeconds: r.between(300, 20_000),
			Replicas: r.between(1, 60)}}
	}
	if r.chance(50) {
		w.MaxUnavailable, w.TwoBudgets = new(r.between(0, 5)), r.chance(10)
	}
}

func (r *days) settings() *loadlinev1.SimulatedSettings {
	s := &loadlinev1.SimulatedSettings{Score: loadlinev1.SimulatedSettings_Score(r.between(1, 3)),
		ScanSeconds: 10 * r.between(1, 3), UnneededSeconds: new(60 * r.between(0, 10)),
		UtilizationThreshold: new(float64(r.between(3, 10)) / 10), SlackPercent: new(r.maybe(50, 1, 50)),
		MaxScaleDownParallelism: r.between(1, 10), NodeBudget: r.maybe(30, 1, 4), Replace: r.chance(40),
		DownscaleOrder: r.chance(15), NewPodScaleUpDelaySeconds: r.maybe(15, 1, 120)}
	s.MaxDrainParallelism = r.between(1, s.MaxScaleDownParallelism)
	s.UnreadySeconds = new(*s.UnneededSeconds + 60*r.between(0, 10))
	if r.chance(50) {
		s.DelayAfterAddSeconds = new(60 * r.between(0, 10))
	}
	s.DelayAfterDeleteSeconds = new(60 * r.maybe(30, 0, 5))
	if r.chance(30) {
		s.BatchMaxMilliseconds = new(r.between(0, 60_000))
		s.BatchIdleMilliseconds = new(r.between(0, *s.BatchMaxMilliseconds))
	}
	if s.Replace {
		s.Consolidation = &loadlinev1.ConsolidationPolicy{LeastSavingPercent: new(float64(r.between(0, 10))),
			UsdPerDisturbedPod: new(float64(r.between(0, 10)) / 10_000), PaybackHours: new(float64(r.between(1, 8))),
			MaxNodesAtOnce: new(int32(r.between(1, 10))), MaxNodesPerMove: new(int32(r.between(1, 24))),
			MaxPodsAtOnce: new(int32(r.between(20, 200))), RestSeconds: new(int32(60 * r.between(0, 60)))}
	}
	return s
}

// faults are each on in a part of the scenarios that have any.
func (r *days) faults() *loadlinev1.SimulatedFaults {
	f := &loadlinev1.SimulatedFaults{
		WatchLagMillisecondsMax: r.maybe(33, 100, 20_000), LostEvent: r.maybe(33, 100, 20_000),
		StockOut: r.maybe(33, 20_000, 500_000), StockOutSeconds: r.between(300, 10_000),
		Phantom: r.maybe(33, 10_000, 300_000), SlowStart: r.maybe(33, 10_000, 300_000),
		LateDevicesSeconds: r.maybe(33, 10, 600), CallsPerMinute: r.maybe(33, 1, 10),
		FailedCall: r.maybe(33, 10_000, 500_000), SpotInterruption: r.maybe(33, 10_000, 300_000),
		NodeUnready: r.maybe(33, 1_000, 100_000), NodeUnreadySeconds: r.between(20, 1_500),
		NodeLost: r.maybe(33, 1_000, 30_000), LostAnswer: r.maybe(16, 10_000, 500_000),
		FailedList: r.maybe(16, 10_000, 500_000), FailedMachine: r.maybe(16, 10_000, 300_000),
		TakenBack: r.maybe(16, 10_000, 500_000), StuckDeletion: r.maybe(16, 10_000, 500_000),
		StuckDeletionSeconds: r.between(600, 20_000), HandScaling: r.maybe(16, 10_000, 300_000),
		NodeFlaps: r.maybe(16, 1_000, 50_000), NodeReturns: r.maybe(16, 1_000, 50_000),
		DoubledEvent: r.maybe(16, 1_000, 500_000), BrokenList: r.maybe(16, 10_000, 500_000),
		FailedWrite: r.maybe(16, 10_000, 500_000), ApiDown: r.maybe(16, 10_000, 500_000),
		ApiDownSeconds: r.between(10, 3_600), StuckPod: r.maybe(16, 10_000, 300_000),
		StuckPodSeconds: r.between(60, 5_000), LeaderEnds: r.maybe(16, 10_000, 500_000),
		LeaderEndsActing: r.maybe(16, 10_000, 300_000), UnreadGroup: r.maybe(16, 10_000, 300_000),
		UnreadGroupSeconds: r.between(300, 3_000)}
	if f.LeaderEnds+f.LeaderEndsActing > 0 {
		f.FailedStateWrite, f.LeaderClockMilliseconds = r.maybe(16, 10_000, 1_000_000), r.maybe(16, 100, 30_000)
	}
	return f
}

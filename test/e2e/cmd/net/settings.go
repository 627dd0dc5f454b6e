package main

import (
	"loadline.dev/shim/api/loadlinev1"
)

// settings are what stays the same in all questions of a world.
type settings struct {
	base          *loadlinev1.PlanLoopRequest
	fleet         bool // the engine finds out what becomes of machines
	remembers     bool // the state between loops is what the engine keeps; else it is sent
	own           bool // questions bring their cluster
	packs         bool // how the scheduler places
	ranked, sizes bool
	startupTaints bool
	operator      bool // somebody labels, taints, cordons and annotates nodes by hand
	uneven        int  // MiB by which nodes of a group may differ
	faults        bool
}

func (w *world) drawSettings() {
	s := &w.set
	s.fleet, s.packs = w.chance(75), w.chance(50)
	s.remembers = w.tag("remembers", w.chance(25))
	s.own = !s.remembers && w.tag("own-cluster", w.chance(30))
	s.sizes = w.chance(12)
	s.startupTaints = w.tag("startup-taints", w.chance(20))
	s.operator = w.tag("operator", w.chance(20))
	if w.tag("uneven-nodes", w.chance(20)) {
		s.uneven = 8
	}
	s.faults = w.tag("faults", w.chance(40))
	w.tag("no-fleet", !s.fleet)
	b := &loadlinev1.PlanLoopRequest{Prices: w.drawPrices(), Slack: w.drawSlack(), Drain: w.drawDrain()}
	s.base = b
	w.drawDecisions()
	if w.tag("ranking", w.chance(30)) {
		s.ranked = true
		b.Ranking = w.drawRanking()
	}
	if w.tag("balance", w.chance(15)) {
		b.Balance = &loadlinev1.GroupSimilarity{}
	}
	if w.tag("limits", w.chance(30)) {
		b.MaxNewNodes, b.MaxNodesTotal = int32(w.IntN(10)), int32(w.IntN(3)*15)
		if w.chance(40) {
			b.MaxCoresTotal = new(int64(10 + w.IntN(100)))
		}
		if w.chance(20) {
			b.MaxGpusTotal = []*loadlinev1.GpuCount{{GpuType: gpuResource, Gpus: int64(w.IntN(4))}}
		}
	}
	b.EnforceMinSizes = w.chance(30)
	if w.tag("batches", w.chance(20)) {
		b.BatchIdleMilliseconds, b.BatchMaxMilliseconds = 5_000, 30_000
	}
	if w.chance(70) {
		b.Waiting = &loadlinev1.WaitingRules{ScaleUpDelayMilliseconds: int64(w.IntN(2) * 5_000)}
	}
	if w.tag("little-work", w.chance(4)) {
		b.MaxWork = int64(2_000 + w.IntN(50_000))
	}
	if w.chance(20) {
		b.UsdPerFurtherType = 0.02
	}
	w.drawFilters()
	b.Compact = s.remembers && w.chance(50)
}

func (w *world) drawDecisions() {
	b := w.set.base
	switch {
	case w.set.fleet && w.tag("replace", w.chance(35)):
		b.Decisions = []loadlinev1.PlanLoopRequest_Decision{loadlinev1.PlanLoopRequest_SCALE_UP,
			loadlinev1.PlanLoopRequest_SCALE_DOWN, loadlinev1.PlanLoopRequest_REPLACE}
		if w.chance(50) {
			b.Decisions = append(b.Decisions, loadlinev1.PlanLoopRequest_SLACK)
		}
		b.Consolidation = &loadlinev1.ConsolidationPolicy{LeastSavingPercent: new(float64(w.IntN(5))),
			UsdPerDisturbedPod: new(0.0001 * float64(w.IntN(10))), PaybackHours: new(float64(1 + w.IntN(12))),
			MaxNodesPerMove: new(int32(1 + w.IntN(10))), MaxNodesAtOnce: new(int32(1 + w.IntN(10))),
			RestSeconds: new(int32(w.IntN(4) * 60)), LeastSpotGroups: new(int32(1 + w.IntN(2)))}
	case w.chance(10):
		b.Decisions = []loadlinev1.PlanLoopRequest_Decision{
			loadlinev1.PlanLoopRequest_Decision(1 + w.IntN(3))}
	}
	if w.set.fleet && len(b.Decisions) != 1 && w.tag("downscale-order", w.chance(15)) {
		if len(b.Decisions) == 0 {
			b.Decisions = []loadlinev1.PlanLoopRequest_Decision{loadlinev1.PlanLoopRequest_SCALE_UP,
				loadlinev1.PlanLoopRequest_SLACK, loadlinev1.PlanLoopRequest_SCALE_DOWN}
		}
		b.Decisions = append(b.Decisions, loadlinev1.PlanLoopRequest_DOWNSCALE_ORDER)
	}
}

const catalogue = `instance_type,arch,capacity_vcpu,capacity_memory_mib,on_demand_usd_per_hour
m5.large,amd64,2,8192,0.096
m5.xlarge,amd64,4,16384,0.192
c5.xlarge,amd64,4,8192,0.17
g4dn.xlarge,amd64,4,16384,0.526
`

func (w *world) drawPrices() *loadlinev1.PriceModel {
	prices := &loadlinev1.PriceModel{}
	if w.tag("catalogue", w.chance(40)) {
		prices.Catalogues = []*loadlinev1.PriceCatalogue{{Name: "list", Csv: []byte(catalogue)}}
	}
	if w.chance(60) {
		prices.BaseRates = &loadlinev1.ResourceRates{CpuUsdPerHour: new(0.03), MemoryGibUsdPerHour: new(0.004),
			GpuUsdPerHour: new(0.4)}
	}
	if w.chance(30) {
		prices.SpotFactor = new(0.4)
	}
	if w.chance(15) {
		prices.InterruptionRisk = 0.05
	}
	return prices
}

func (w *world) drawSlack() *loadlinev1.SlackPolicy {
	s := &loadlinev1.SlackPolicy{}
	if w.tag("slack", w.chance(55)) {
		s.ExtraCapacityMinRate = new(float64(1+w.IntN(30)) / 100)
		s.Basis = loadlinev1.SlackPolicy_Basis(w.IntN(3))
		s.Reserve = loadlinev1.SlackPolicy_Reserve(w.IntN(5))
		s.RemovalDelaySeconds = new(int32(w.IntN(3) * 60))
		s.Granularity = int32(w.IntN(4))
	} else {
		s.ExtraCapacityMinRate = new(0.0)
	}
	if w.chance(20) {
		s.ClassLabels = []string{"topology.kubernetes.io/zone"}
	}
	if w.chance(15) {
		s.GroupRules = []*loadlinev1.SlackGroupRule{{NodeGroup: "group-a", Off: w.chance(50),
			MaxNodes: new(int32(w.IntN(3)))}}
	}
	return s
}

func (w *world) drawDrain() *loadlinev1.DrainOptions {
	d := &loadlinev1.DrainOptions{ScaleDownUnneededTimeS: new(int32(w.IntN(5) * 30)),
		ScaleDownUnreadyTimeS:         new(int32(60 + w.IntN(5)*30)),
		ScaleDownUtilizationThreshold: new(float64(4+w.IntN(7)) / 10), MinNodesTotal: int32(w.IntN(3)),
		MaxScaleDownParallelism: new(int32(1 + w.IntN(10))), Exclusive: w.chance(10), PlainGreedy: w.chance(10)}
	d.MaxDrainParallelism = new(min(*d.MaxScaleDownParallelism, int32(1+w.IntN(5))))
	if w.chance(30) {
		d.IgnoreDaemonsetsUtilization = new(true)
	}
	if w.chance(30) {
		d.SkipNodesWithLocalStorage = new(false)
	}
	if w.chance(20) {
		d.MinCoresTotal = int64(w.IntN(12))
	}
	if w.tag("node-budgets", w.chance(20)) {
		budget := &loadlinev1.NodeBudget{Limit: &loadlinev1.NodeBudget_Nodes{Nodes: int32(w.IntN(3))}}
		if w.chance(50) {
			budget.NodeGroups = []string{"group-a"}
		}
		d.NodeBudgets = []*loadlinev1.NodeBudget{budget}
	}
	return d
}

func (w *world) drawRanking() *loadlinev1.RankPolicy {
	policy := &loadlinev1.RankPolicy{Preset: loadlinev1.RankPolicy_Preset(1 + w.IntN(2))}
	for _, strategy := range w.Perm(5)[:w.IntN(3)] {
		policy.Strategies = append(policy.Strategies, loadlinev1.RankPolicy_Strategy(1+strategy))
	}
	return policy
}

func (w *world) drawFilters() {
	if !w.tag("filters", w.chance(10)) {
		return
	}
	fit := &loadlinev1.FitOptions{}
	switch w.IntN(3) {
	case 0:
		fit.DisabledFilters = []loadlinev1.VerdictGroup_Filter{loadlinev1.VerdictGroup_POD_TOPOLOGY_SPREAD}
	case 1:
		fit.IgnoredResources = []string{gpuResource}
	default:
		fit.KubernetesMinor = 37
	}
	w.set.base.Fit = fit
}

package plan

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/ranking"
	"loadline.dev/shim/timewindow"
)

// The optional 32-bit numbers that the engine takes.
func number(n int) *int32              { return new(Number(n)) }
func seconds(d config.Duration) *int32 { return number(int(d.Duration / time.Second)) }

// Rules are the parts of a question that follow from a configuration alone.
type Rules struct {
	// Settings is what is the same at any time.
	Settings *loadlinev1.PlanLoopRequest
	// windows are those in which moves begin; none: at any time.
	windows []timewindow.Window
	// budgets bound how many nodes of single groups go at once.
	budgets []cloud.NodeBudget
}

// decisions of a configuration, as the engine has them.
var decisions = map[string]loadlinev1.PlanLoopRequest_Decision{
	config.ScaleUpDecision:        loadlinev1.PlanLoopRequest_SCALE_UP,
	config.SlackDecision:          loadlinev1.PlanLoopRequest_SLACK,
	config.ScaleDownDecision:      loadlinev1.PlanLoopRequest_SCALE_DOWN,
	config.ReplaceDecision:        loadlinev1.PlanLoopRequest_REPLACE,
	config.DownscaleOrderDecision: loadlinev1.PlanLoopRequest_DOWNSCALE_ORDER}

// RulesOf returns the rules of a configuration that has been checked, with the files that it names.
func RulesOf(options *config.Configuration, files *config.Loaded) Rules {
	up, down := &options.ScaleUp, &options.ScaleDown
	totals, _ := down.Totals()
	settings := &loadlinev1.PlanLoopRequest{Drain: optionsOf(down), Prices: files.Prices, Ranking: files.Ranking,
		Fit: files.Fit, StartupTaints: up.StartupTaints.Proto(up.MaxNodeStartupTime.Duration),
		UsdPerFurtherType: up.USDPerFurtherType, MaxWork: int64(options.MaxWork),
		MaxMilliseconds: Number(int(down.ScaleDownSimulationTimeout.Milliseconds())), MaxCoresTotal: &totals.MaxCores,
		MaxMemoryTotal: &totals.MaxBytes, EnforceMinSizes: up.EnforceNodeGroupMinSize,
		PlanWaitingPodsAlone:         up.PlanWaitingPodsAlone,
		HoldGroupsTooSmallForDaemons: up.ForceDaemonSets, Balance: balanceOf(&up.Balancing),
		MaxNewNodes: Number(up.MaxNodesPerScaleUp), MaxNodesTotal: Number(up.MaxNodesTotal),
		BatchIdleMilliseconds: Number(int(up.BatchIdle.Milliseconds())),
		BatchMaxMilliseconds:  Number(int(up.BatchMax.Milliseconds())), Fleet: fleetSettings(options),
		Consolidation: consolidationOf(&options.Consolidation), Waiting: waitingOf(&options.ScaleUp)}
	_, settings.MaxGpusTotal, _ = down.GPUTotals()
	settings.Slack, _ = options.Slack.Proto()
	for _, decision := range options.Decisions {
		settings.Decisions = append(settings.Decisions, decisions[decision])
	}
	windows, _ := options.Consolidation.Windows()
	budgets, _ := options.ScaleDown.Budgets()
	return Rules{settings, windows, budgets}
}

// consolidationOf returns which moves are wanted.
func consolidationOf(s *config.Consolidation) *loadlinev1.ConsolidationPolicy {
	policy := &loadlinev1.ConsolidationPolicy{LeastSavingUsdPerHour: &s.LeastSaving,
		LeastSavingPercent: &s.LeastSavingPercent, UsdPerDisturbedPod: &s.PodDisruptionCost,
		PaybackHours: &s.PaybackHours, MaxNodesPerMove: number(s.MaxNodesPerMove),
		MaxNodesAtOnce: number(s.MaxNodesAtOnce), MaxPodsAtOnce: number(s.MaxPodsAtOnce),
		LeastSpotGroups: number(s.LeastSpotGroups),
		RestSeconds:     seconds(s.ReplacementRest)}
	policy.UsdByPriority, _ = s.CostsByPriority()
	return policy
}

// Consolidation returns which moves are wanted at a time.
func (r *Rules) Consolidation(now time.Time) *loadlinev1.ConsolidationPolicy {
	if len(r.windows) == 0 {
		return r.Settings.Consolidation
	}
	policy := proto.CloneOf(r.Settings.Consolidation)
	policy.Windows = windowsAt(now, r.windows...)
	return policy
}

// windowsAt returns the windows that a time is in, or else those that come next, without those that never come.
func windowsAt(now time.Time, windows ...timewindow.Window) *loadlinev1.TimeWindows {
	out := &loadlinev1.TimeWindows{}
	for _, window := range windows {
		if from, until, ok := window.At(now); ok {
			out.Windows = append(out.Windows, &loadlinev1.TimeWindow{FromS: from.Unix(), UntilS: until.Unix()})
		}
	}
	return out
}

// Drain returns how nodes of these groups go at a time.
func (r *Rules) Drain(now time.Time, groups []*Group) *loadlinev1.DrainOptions {
	var budgets []*loadlinev1.NodeBudget
	for _, budget := range r.budgets {
		budgets = append(budgets, budgetAt(now, &budget))
	}
	shared := map[*cloud.NodeBudget]*loadlinev1.NodeBudget{}
	for _, g := range groups {
		for _, budget := range g.Budgets {
			if shared[budget] == nil {
				shared[budget] = budgetAt(now, budget)
				budgets = append(budgets, shared[budget])
			}
			shared[budget].NodeGroups, shared[budget].Together = append(shared[budget].NodeGroups, g.ID), true
		}
	}
	if len(budgets) == 0 {
		return r.Settings.Drain
	}
	options := proto.CloneOf(r.Settings.Drain)
	options.NodeBudgets = budgets
	return options
}

func budgetAt(now time.Time, budget *cloud.NodeBudget) *loadlinev1.NodeBudget {
	message := proto.CloneOf(budget.NodeBudget)
	if budget.Window != nil {
		message.Windows = windowsAt(now, *budget.Window)
	}
	return message
}

// waitingOf returns which pods without a node wait for one.
func waitingOf(s *config.ScaleUp) *loadlinev1.WaitingRules {
	return &loadlinev1.WaitingRules{ExpendablePriorityCutoff: new(int32(s.ExpendablePodsPriorityCutoff)),
		BypassedSchedulers:       s.BypassedSchedulerNames,
		ScaleUpDelayMilliseconds: s.NewPodScaleUpDelay.Milliseconds()}
}

// balanceOf returns when groups share what they grow by; nil: they do not.
func balanceOf(s *config.Balancing) *loadlinev1.GroupSimilarity {
	if !s.BalanceSimilarNodeGroups {
		return nil
	}
	return &loadlinev1.GroupSimilarity{Labels: s.BalancingLabels, IgnoredLabels: s.BalancingIgnoreLabels,
		MaxAllocatableDifference: &s.MaxAllocatableDifferenceRatio, MaxMemoryDifference: &s.MemoryDifferenceRatio}
}

// optionsOf returns the options of a configuration as the engine has them. It has been checked.
func optionsOf(s *config.ScaleDown) *loadlinev1.DrainOptions {
	totals, _ := s.Totals()
	minGPUs, _, _ := s.GPUTotals()
	return &loadlinev1.DrainOptions{
		SkipNodesWithSystemPods: &s.SkipNodesWithSystemPods, SkipNodesWithLocalStorage: &s.SkipNodesWithLocalStorage,
		SkipNodesWithCustomControllerPods:   &s.SkipNodesWithCustomControllerPods,
		MinReplicaCount:                     number(s.MinReplicaCount),
		BlockingSystemPodDisruptionTimeoutS: seconds(s.BlockingSystemPodTimeout),
		ScaleDownUtilizationThreshold:       &s.ScaleDownUtilizationThreshold,
		ScaleDownGpuUtilizationThreshold:    &s.ScaleDownGPUThreshold,
		IgnoreDaemonsetsUtilization:         &s.IgnoreDaemonSets, IgnoreMirrorPodsUtilization: &s.IgnoreMirrorPods,
		ScaleDownUnreadyEnabled:   &s.ScaleDownUnreadyEnabled,
		ScaleDownUnneededTimeS:    seconds(s.ScaleDownUnneededTime),
		ScaleDownUnreadyTimeS:     seconds(s.ScaleDownUnreadyTime),
		NodeDeletionCandidateTtlS: seconds(s.NodeDeletionCandidateTTL),
		MaxScaleDownParallelism:   number(s.MaxScaleDownParallelism),
		MaxDrainParallelism:       number(s.MaxDrainParallelism), MinCoresTotal: totals.MinCores,
		MinMemoryTotal: totals.MinBytes, MinGpusTotal: minGPUs,
		OkTotalUnreadyCount:       number(s.OKTotalUnreadyCount),
		MaxTotalUnreadyPercentage: number(s.UnreadyPercent()),
		MostVanishedPercent:       number(s.MostVanishedPercent), MaxViewAgeS: seconds(s.MaxViewAge),
		MinNodesTotal: Number(s.MinNodesTotal), GpuLabels: s.GPULabels, Exclusive: s.ExclusiveDrains,
		RecentEvictionS: seconds(s.RecentEvictionTime), MinEvaluatedNodes: number(s.MinEvaluatedNodes),
		PlainGreedy: s.PlainGreedy,
	}
}

// Follow takes what files say into the next questions, and returns which parts of it are new.
func (p *Planner) Follow(files *config.Loaded) (changed []string) {
	for part, same := range map[string]bool{
		"prices":     proto.Equal(p.Settings.Prices, files.Prices),
		"rankPolicy": proto.Equal(p.Settings.Ranking, files.Ranking),
		"filters":    proto.Equal(p.Settings.Fit, files.Fit),
	} {
		if !same {
			changed = append(changed, part)
		}
	}
	slices.Sort(changed)
	p.Settings.Prices, p.Settings.Ranking, p.Settings.Fit = files.Prices, files.Ranking, files.Fit
	if !p.Config.ScaleUp.FollowsPriorities() {
		p.priorities = files.Priorities
	}
	return changed
}

// Prioritize has the next questions state other priorities of node groups.
func (p *Planner) Prioritize(priorities ranking.Priorities) { p.priorities = priorities }

// GroupDefaults is what holds for groups that state nothing.
func GroupDefaults(c *config.Configuration) *externalgrpc.NodeGroupAutoscalingOptions {
	s := &c.ScaleDown
	return &externalgrpc.NodeGroupAutoscalingOptions{
		ScaleDownUtilizationThreshold:    s.ScaleDownUtilizationThreshold,
		ScaleDownGpuUtilizationThreshold: s.ScaleDownGPUThreshold, IgnoreDaemonSetsUtilization: s.IgnoreDaemonSets,
		ScaleDownUnneededDuration: durationpb.New(s.ScaleDownUnneededTime.Duration),
		ScaleDownUnreadyDuration:  durationpb.New(s.ScaleDownUnreadyTime.Duration),
		MaxNodeProvisionDuration:  durationpb.New(c.ScaleUp.MaxNodeProvisionTime.Duration),
		MaxNodeStartupDuration:    durationpb.New(c.ScaleUp.MaxNodeStartupTime.Duration),
	}
}

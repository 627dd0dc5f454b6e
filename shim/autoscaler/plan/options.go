package plan

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
)

// consolidationOf returns which moves are wanted.
func consolidationOf(s *config.Consolidation) *loadlinev1.ConsolidationPolicy {
	number := func(n int) *int32 { return new(int32(n)) }
	policy := &loadlinev1.ConsolidationPolicy{LeastSavingUsdPerHour: &s.LeastSaving,
		LeastSavingPercent: &s.LeastSavingPercent, UsdPerDisturbedPod: &s.PodDisruptionCost,
		PaybackHours: &s.PaybackHours, MaxNodesPerMove: number(s.MaxNodesPerMove),
		MaxNodesAtOnce: number(s.MaxNodesAtOnce), MaxPodsAtOnce: number(s.MaxPodsAtOnce),
		LeastSpotGroups: number(s.LeastSpotGroups),
		RestSeconds:     number(int(s.ReplacementRest.Duration / time.Second))}
	costs, _ := s.CostsByPriority()
	for _, cost := range costs {
		policy.UsdByPriority = append(policy.UsdByPriority,
			&loadlinev1.DisturbancePrice{FromPriority: cost.FromPriority, Usd: cost.USD})
	}
	return policy
}

// consolidation returns which moves are wanted now.
func (p *Planner) consolidation(now time.Time) *loadlinev1.ConsolidationPolicy {
	if len(p.windows) == 0 {
		return p.Settings.Consolidation
	}
	policy := proto.CloneOf(p.Settings.Consolidation)
	policy.Windows = &loadlinev1.TimeWindows{}
	for _, window := range p.windows {
		addWindow(policy.Windows, window.At, now)
	}
	return policy
}

// addWindow adds the window that a time is in, or the next one, if there is any.
func addWindow(to *loadlinev1.TimeWindows, at func(time.Time) (from, until time.Time, ok bool), now time.Time) {
	if from, until, ok := at(now); ok {
		to.Windows = append(to.Windows, &loadlinev1.TimeWindow{FromS: from.Unix(), UntilS: until.Unix()})
	}
}

// reasons for which nodes go, as the engine has them.
var reasons = map[string]loadlinev1.NodeBudget_Reason{config.Empty: loadlinev1.NodeBudget_EMPTY,
	config.Underutilized: loadlinev1.NodeBudget_UNDERUTILIZED, config.Replaced: loadlinev1.NodeBudget_REPLACED}

// drain returns how nodes go now.
func (p *Planner) drain(now time.Time) *loadlinev1.DrainOptions {
	if len(p.budgets) == 0 {
		return p.Settings.Drain
	}
	options := proto.CloneOf(p.Settings.Drain)
	for _, budget := range p.budgets {
		message := &loadlinev1.NodeBudget{NodeGroups: budget.Groups}
		message.Limit = &loadlinev1.NodeBudget_Nodes{Nodes: budget.Nodes}
		if budget.Percent {
			message.Limit = &loadlinev1.NodeBudget_Percent{Percent: budget.Nodes}
		}
		for _, reason := range budget.Reasons {
			message.Reasons = append(message.Reasons, reasons[reason])
		}
		if budget.Window != nil {
			message.Windows = &loadlinev1.TimeWindows{}
			addWindow(message.Windows, budget.Window.At, now)
		}
		options.NodeBudgets = append(options.NodeBudgets, message)
	}
	return options
}

// balanceOf returns when groups share what they grow by; nil: they do not.
func balanceOf(s *config.ScaleUp) *loadlinev1.GroupSimilarity {
	if !s.BalanceSimilarNodeGroups {
		return nil
	}
	return &loadlinev1.GroupSimilarity{Labels: s.BalancingLabels, IgnoredLabels: s.BalancingIgnoreLabels,
		MaxAllocatableDifference: &s.MaxAllocatableDifferenceRatio, MaxMemoryDifference: &s.MemoryDifferenceRatio}
}

// optionsOf returns the options of a configuration as the engine has them. It has been checked.
func optionsOf(s *config.ScaleDown) *loadlinev1.DrainOptions {
	seconds := func(d config.Duration) *int32 { return new(int32(d.Duration / time.Second)) }
	number := func(n int) *int32 { return new(int32(n)) }
	totals, _ := s.Totals()
	gpus, _ := s.GPUTotals()
	var minGPUs []*loadlinev1.GpuCount
	for _, total := range gpus {
		if total.Min > 0 {
			minGPUs = append(minGPUs, &loadlinev1.GpuCount{GpuType: total.Type, Gpus: total.Min})
		}
	}
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
		MaxTotalUnreadyPercentage: number(s.MaxTotalUnreadyPercentage),
		MostVanishedPercent:       number(s.MostVanishedPercent), MaxViewAgeS: seconds(s.MaxViewAge),
		MinNodesTotal: int32(s.MinNodesTotal), GpuLabels: s.GPULabels, Exclusive: s.ExclusiveDrains,
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
	p.priorities = files.Priorities
	return changed
}

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

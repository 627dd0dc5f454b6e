package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/ranking"
	"loadline.dev/shim/scaleup"
)

// settings are those of the autoscaler that a command has too: from a file of its configuration and from flags, which
// win.
type settings struct {
	config.Configuration
	file  string
	flags *config.Flags
}

// The parts of the configuration that commands read, by paths of settings. One that ends in a dot means all that is in
// a section, and one that begins with ! takes some out again.
var (
	readsFilters = []string{"filters.", "scaleUp.startupTaints", "scaleUp.ignoreTaints", "scaleUp.startupTaintPrefixes",
		"scaleUp.statusTaints", "scaleUp.maxNodeStartupTime", "slack.namespace"}
	readsPrices  = []string{"scaleUp.prices", "scaleUp.baseRatePrices", "scaleUp.rankPolicy", "scaleUp.pricing."}
	readsRanking = []string{"scaleUp.rankPreset", "scaleUp.strategies"}
	readsWaiting = []string{"scaleUp.newPodScaleUpDelay", "scaleUp.expendablePodsPriorityCutoff",
		"scaleUp.allowedSchedulerNames", "scaleUp.bypassedSchedulerNames"}
	readsBlockers = []string{"scaleDown.skipNodesWithSystemPods", "scaleDown.skipNodesWithLocalStorage",
		"scaleDown.skipNodesWithCustomControllerPods", "scaleDown.minReplicaCount",
		"scaleDown.blockingSystemPodDistruptionTimeout"}
	readsMinimum = []string{"scaleDown.coresTotal", "scaleDown.memoryTotal", "scaleDown.gpuTotal", "scaleDown.gpuLabels",
		"scaleDown.minNodesTotal"}
	readsSlack  = []string{"slack.", "!slack.keep", "!slack.capacityBuffers"}
	readsGrowth = []string{"maxWork", "scaleUp.", "!scaleUp.batchIdle", "!scaleUp.batchMax", "!scaleUp.swapNotBegun",
		"!scaleUp.capacityQuotas"}
)

// readBy are the paths that each command with --config reads.
var readBy = map[string][]string{
	"drain": slices.Concat(readsFilters, readsBlockers, readsWaiting, readsMinimum, []string{
		"scaleDown.maxScaleDownParallelism", "scaleDown.maxDrainParallelism", "scaleDown.exclusiveDrains",
		"scaleDown.nodeBudgets", "scaleDown.scaleDownUnneededTime", "scaleDown.scaleDownUnreadyTime",
		"scaleDown.scaleDownUnreadyEnabled", "scaleDown.scaleDownUtilizationThreshold",
		"scaleDown.scaleDownGpuUtilizationThreshold",
		"scaleDown.ignoreDaemonsetsUtilization", "scaleDown.ignoreMirrorPodsUtilization", "scaleDown.plainGreedy",
		"scaleDown.okTotalUnreadyCount", "scaleDown.maxTotalUnreadyPercentage", "scaleDown.nodeDeletionCandidateTtl"}),
	"rank": slices.Concat(readsFilters, readsPrices, readsRanking, readsWaiting, []string{
		"scaleUp.maxNodesTotal", "scaleDown.coresTotal", "scaleDown.memoryTotal"}),
	"slack": slices.Concat(readsFilters, readsSlack, readsGrowth, []string{
		"scaleDown.coresTotal", "scaleDown.memoryTotal", "scaleDown.gpuTotal"}),
	"bill":        readsBill,
	"consolidate": readsBill,
}

var readsBill = slices.Concat(readsFilters, readsBlockers, readsPrices, readsWaiting, readsMinimum, []string{
	"scaleUp.maxNodesTotal", "scaleDown.okTotalUnreadyCount", "scaleDown.maxTotalUnreadyPercentage", "consolidation.",
	"!consolidation.replacementRest"})

func init() {
	readBy["plan"] = slices.Concat(readBy["drain"], readBy["rank"], readsSlack, readsGrowth,
		[]string{"decisions", "consolidation.", "usageNamespace"})
	readBy["why"], readBy["why-not"] = slices.Concat(readBy["rank"], readBy["drain"], readsBill), readBy["rank"]
}

// reads says whether paths stand for a setting.
func reads(paths []string, setting string) bool {
	stand := func(pattern string) bool {
		return pattern == setting || strings.HasSuffix(pattern, ".") && strings.HasPrefix(setting, pattern)
	}
	return slices.ContainsFunc(paths, stand) &&
		!slices.ContainsFunc(paths, func(path string) bool { return path[0] == '!' && stand(path[1:]) })
}

// addTo adds --config, and a flag for each setting that the command reads.
func (s *settings) addTo(flags *pflag.FlagSet, command string, base config.Configuration) {
	s.Configuration = base
	flags.StringVar(&s.file, "config", "", "configuration file of the autoscaler, kind "+config.Kind+" of "+
		config.APIVersion+": what it says of what is asked here holds; flags override it")
	s.addFlags(flags, base, readBy[command])
}

func (s *settings) addFlags(flags *pflag.FlagSet, base config.Configuration, paths []string) {
	s.flags = config.AddFlagsOf(flags, base, func(path string) bool { return reads(paths, path) })
	acceptFormerNames(flags)
}

// acceptFormerNames lets flags be given by names that they had.
func acceptFormerNames(flags *pflag.FlagSet) {
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "scheduler-config" {
			name = "scheduler-config-file"
		}
		return pflag.NormalizedName(name)
	})
}

// read reads file and flags, and tells the engine of the namespace of placeholders.
func (s *settings) read(engine *engineFlags) (err error) {
	if s.Configuration, err = s.flags.Question(s.file); err != nil {
		return usageError{err}
	}
	engine.slackNamespace = s.Slack.Namespace
	return nil
}

// fit returns how the filters are configured; nil: as kube-scheduler's defaults.
func (s *settings) fit(ctx context.Context) (*loadlinev1.FitOptions, error) {
	return (&filterFlags{s.Filters}).fit(ctx)
}

// filters are the files of the settings for what asks about no growth: that of the scheduler.
func (s *settings) filters(ctx context.Context) (*config.Loaded, error) {
	fit, err := s.fit(ctx)
	return &config.Loaded{Fit: fit}, err
}

// deciding are the settings of an autoscaler that takes these decisions alone.
func (s *settings) deciding(decisions ...string) config.Configuration {
	c := s.Configuration
	c.Decisions = decisions
	return c
}

// once returns the configuration of one loop that decides these, at one moment: it waits for no further pods, for no
// machine and for no clock.
func (s *settings) once(decisions ...string) config.Configuration {
	c := s.deciding(decisions...)
	c.ScaleUp.BatchIdle.Duration, c.ScaleUp.BatchMax.Duration, c.ScaleUp.SwapNotBegun = 0, 0, false
	c.ScaleDown.ScaleDownSimulationTimeout.Duration = 0
	return c
}

// rank returns the policy by which node groups are ranked.
func (s *settings) rank() (*ranking.Policy, error) {
	policy, err := s.ScaleUp.Rank()
	if err != nil {
		return nil, usageError{err}
	}
	return policy, nil
}

// remarks returns what gathers the pods that are not planned for as others are, once it gets the time.
func (s *settings) remarks() *scaleup.Remarks {
	up := &s.ScaleUp
	return &scaleup.Remarks{Rules: scaleup.Rules{Cutoff: int32(up.ExpendablePodsPriorityCutoff),
		Delay: up.NewPodScaleUpDelay.Duration, Allows: up.Allows,
		Bypassed: func(scheduler string) bool { return slices.Contains(up.BypassedSchedulerNames, scheduler) }}}
}

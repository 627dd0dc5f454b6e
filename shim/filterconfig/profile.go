package filterconfig

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/policy"
)

// profile is what was read of one profile.
type profile struct {
	name     string
	fit      *loadlinev1.FitOptions
	scoring  *Scoring
	line     *loadlinev1.LoadLine // of our plugin; nil: none
	warnings []string
}

func readProfile(config *schedulerv1.KubeSchedulerProfile) (*profile, error) {
	p := &profile{name: v1.DefaultSchedulerName, fit: &loadlinev1.FitOptions{}, scoring: defaultScoring()}
	if config.SchedulerName != nil {
		p.name = *config.SchedulerName
	}
	if p.name == "" {
		return nil, fmt.Errorf("schedulerName: must not be empty")
	}
	seen := map[string]bool{}
	for i := range config.PluginConfig {
		plugin := &config.PluginConfig[i]
		if seen[plugin.Name] {
			return nil, fmt.Errorf("pluginConfig[%d].name: %q occurs twice", i, plugin.Name)
		}
		seen[plugin.Name] = true
		if err := p.readArgs(plugin); err != nil {
			return nil, fmt.Errorf("pluginConfig[%d] (%s).args%w", i, plugin.Name, err)
		}
	}
	if err := p.readPlugins(config.Plugins); err != nil {
		return nil, fmt.Errorf("plugins.%w", err)
	}
	p.fit.MostAllocated = p.scoring.fills()
	return p, nil
}

// readArgs reads the arguments of a plugin that filters, or of one whose score is simulated. Errors continue the path
// of the arguments.
func (p *profile) readArgs(plugin *schedulerv1.PluginConfig) error {
	switch plugin.Name {
	case "NodeAffinity":
		var args schedulerv1.NodeAffinityArgs
		if err := decodeArgs(plugin, &args); err != nil || args.AddedAffinity == nil {
			return err
		}
		var err error
		if p.fit.AddedAffinity, err = args.AddedAffinity.Marshal(); err != nil {
			return fmt.Errorf(".addedAffinity: %w", err)
		}
	case "PodTopologySpread":
		var args schedulerv1.PodTopologySpreadArgs
		if err := decodeArgs(plugin, &args); err != nil {
			return err
		}
		return p.readSpread(&args)
	case "NodeResourcesFit":
		var args schedulerv1.NodeResourcesFitArgs
		if err := decodeArgs(plugin, &args); err != nil {
			return err
		}
		for i, group := range args.IgnoredResourceGroups {
			if group == "" || strings.Contains(group, "/") {
				return fmt.Errorf(".ignoredResourceGroups[%d]: %q must be the part of a name before its slash", i, group)
			}
		}
		p.fit.IgnoredResources, p.fit.IgnoredResourceGroups = args.IgnoredResources, args.IgnoredResourceGroups
		if args.ScoringStrategy != nil {
			return p.scoring.readStrategy(args.ScoringStrategy)
		}
	case "NodeResourcesBalancedAllocation":
		var args schedulerv1.NodeResourcesBalancedAllocationArgs
		if err := decodeArgs(plugin, &args); err != nil || len(args.Resources) == 0 {
			return err
		}
		return p.scoring.readBalanced(args.Resources)
	case linePlugin:
		var err error
		p.line, err = readLine(plugin.Args.Raw)
		return err
	}
	return nil
}

func decodeArgs(plugin *schedulerv1.PluginConfig, into any) error {
	if len(plugin.Args.Raw) == 0 {
		return nil
	}
	if err := policy.DecodeStrict(plugin.Args.Raw, into); err != nil {
		return fmt.Errorf(": %w", err)
	}
	return nil
}

// readSpread reads the default constraints. Those of the system, and all that do not keep pods from nodes, only score.
func (p *profile) readSpread(args *schedulerv1.PodTopologySpreadArgs) error {
	list := args.DefaultingType == schedulerv1.ListDefaulting
	switch {
	case !list && args.DefaultingType != "" && args.DefaultingType != schedulerv1.SystemDefaulting:
		return fmt.Errorf(".defaultingType: %q must be System or List", args.DefaultingType)
	case !list && len(args.DefaultConstraints) > 0:
		return fmt.Errorf(".defaultConstraints: need defaultingType List")
	}
	for i := range args.DefaultConstraints {
		constraint := &args.DefaultConstraints[i]
		if err := checkConstraint(constraint); err != nil {
			return fmt.Errorf(".defaultConstraints[%d].%w", i, err)
		}
		if constraint.WhenUnsatisfiable != v1.DoNotSchedule {
			continue
		}
		data, err := constraint.Marshal()
		if err != nil {
			return fmt.Errorf(".defaultConstraints[%d]: %w", i, err)
		}
		p.fit.DefaultSpreadConstraints = append(p.fit.DefaultSpreadConstraints, data)
	}
	return nil
}

func checkConstraint(c *v1.TopologySpreadConstraint) error {
	switch {
	case c.MaxSkew <= 0:
		return fmt.Errorf("maxSkew: %d must be at least 1", c.MaxSkew)
	case c.TopologyKey == "":
		return fmt.Errorf("topologyKey: must not be empty")
	case c.WhenUnsatisfiable != v1.DoNotSchedule && c.WhenUnsatisfiable != v1.ScheduleAnyway:
		return fmt.Errorf("whenUnsatisfiable: %q must be DoNotSchedule or ScheduleAnyway", c.WhenUnsatisfiable)
	case c.LabelSelector != nil:
		return fmt.Errorf("labelSelector: must be empty, it is deduced for each pod")
	}
	return nil
}

// FilterName writes a filter as kube-scheduler does: NODE_RESOURCES_FIT as NodeResourcesFit; empty: it is none.
func FilterName(filter loadlinev1.VerdictGroup_Filter) string {
	if filter == loadlinev1.VerdictGroup_FILTER_UNSPECIFIED {
		return ""
	}
	var name strings.Builder
	for word := range strings.SplitSeq(filter.String(), "_") {
		name.WriteString(word[:1] + strings.ToLower(word[1:]))
	}
	return name.String()
}

// filters are kube-scheduler's plugins that filter, by their names.
var filters = func() map[string]loadlinev1.VerdictGroup_Filter {
	out := map[string]loadlinev1.VerdictGroup_Filter{}
	for number := range loadlinev1.VerdictGroup_Filter_name {
		filter := loadlinev1.VerdictGroup_Filter(number)
		if name := FilterName(filter); name != "" && filter != loadlinev1.VerdictGroup_LOAD_LINE {
			out[name] = filter
		}
	}
	return out
}()

// others are the plugins of kube-scheduler that never filter, and ours.
var others = []string{"SchedulingGates", "PrioritySort", "DefaultPreemption", "NodeResourcesBalancedAllocation",
	"ImageLocality", "DefaultBinder", "GangScheduling", "PodGroupPodsCount", "NodeResourcesLimitAware",
	"TopologyPlacementGenerator", "DeferredPodScheduling"}

// readPlugins reads which plugins filter and score, as kube-scheduler merges them with its defaults: what multiPoint
// leaves enabled, and what an extension point itself names.
func (p *profile) readPlugins(plugins *schedulerv1.Plugins) error {
	if plugins == nil {
		return nil
	}
	if len(plugins.PreFilter.Disabled) > 0 {
		return fmt.Errorf("preFilter.disabled: is not supported: a plugin that filters without it fails on every pod")
	}
	for filter, number := range filters {
		if on, _ := enabled(filter, plugins, &plugins.Filter); !on {
			p.fit.DisabledFilters = append(p.fit.DisabledFilters, number)
		}
	}
	slices.Sort(p.fit.DisabledFilters)
	for _, set := range []struct {
		at      string
		enabled []schedulerv1.Plugin
	}{{"multiPoint", plugins.MultiPoint.Enabled}, {"filter", plugins.Filter.Enabled},
		{"preFilter", plugins.PreFilter.Enabled}} {
		for i, plugin := range set.enabled {
			if _, known := filters[plugin.Name]; !known && !slices.Contains(others, plugin.Name) {
				p.warnings = append(p.warnings, fmt.Sprintf("plugins.%s.enabled[%d]: what %s refuses is not known here",
					set.at, i, plugin.Name))
			}
		}
	}
	return p.scoring.readWeights(plugins)
}

// enabled says whether a plugin of the default profile is enabled at an extension point, and the weight that is set
// for it; 0: none is.
func enabled(name string, plugins *schedulerv1.Plugins, at *schedulerv1.PluginSet) (on bool, weight int32) {
	names := func(list []schedulerv1.Plugin) bool {
		return slices.ContainsFunc(list, func(p schedulerv1.Plugin) bool { return p.Name == name || p.Name == "*" })
	}
	on = !names(plugins.MultiPoint.Disabled)
	for _, plugin := range plugins.MultiPoint.Enabled {
		if plugin.Name == name {
			on, weight = true, weightOf(plugin)
		}
	}
	on = on && !names(at.Disabled)
	for _, plugin := range at.Enabled {
		if plugin.Name == name {
			on, weight = true, weightOf(plugin)
		}
	}
	return on, weight
}

func weightOf(plugin schedulerv1.Plugin) int32 {
	if plugin.Weight == nil {
		return 0
	}
	return *plugin.Weight
}

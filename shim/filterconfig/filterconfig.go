// Package filterconfig reads how a kube-scheduler's filters are configured, so that plans are made by the same rules.
package filterconfig

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/api/loadlinev1"
)

// configuration is what is read of a KubeSchedulerConfiguration.
type configuration struct {
	Kind     string `json:"kind"`
	Profiles []struct {
		PluginConfig []struct {
			Name string          `json:"name"`
			Args json.RawMessage `json:"args"`
		} `json:"pluginConfig"`
	} `json:"profiles"`
}

// arguments are those of the plugins that filter, all in one: their names differ.
type arguments struct {
	AddedAffinity         *v1.NodeAffinity              `json:"addedAffinity"`
	DefaultConstraints    []v1.TopologySpreadConstraint `json:"defaultConstraints"`
	IgnoredResources      []string                      `json:"ignoredResources"`
	IgnoredResourceGroups []string                      `json:"ignoredResourceGroups"`
}

// plugins are those whose arguments filters read.
var plugins = []string{"NodeAffinity", "PodTopologySpread", "NodeResourcesFit"}

// NamespaceSelectorSeesNoLabels is the name of a defect of kube-scheduler that can be reproduced.
const NamespaceSelectorSeesNoLabels = "namespace-selector-sees-no-labels"

// Options returns how filters are configured: as in the first profile of a file with a KubeSchedulerConfiguration, if
// one is named, and with these defects of kube-scheduler. Nil: as kube-scheduler's defaults.
func Options(file string, defects []string) (*loadlinev1.FitOptions, error) {
	var options *loadlinev1.FitOptions
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if options, err = parse(data); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	for _, defect := range defects {
		if defect != NamespaceSelectorSeesNoLabels {
			return nil, fmt.Errorf("upstream defect %q is not known: %s is", defect, NamespaceSelectorSeesNoLabels)
		}
		if options == nil {
			options = &loadlinev1.FitOptions{}
		}
		options.Defects = &loadlinev1.UpstreamDefects{NamespaceSelectorSeesNoLabels: true}
	}
	return options, nil
}

func parse(data []byte) (*loadlinev1.FitOptions, error) {
	var config configuration
	if err := yaml.Unmarshal(data, &config); err != nil {
		return nil, err
	}
	if config.Kind != "KubeSchedulerConfiguration" {
		return nil, fmt.Errorf("kind %q: must be KubeSchedulerConfiguration", config.Kind)
	}
	options := &loadlinev1.FitOptions{}
	if len(config.Profiles) == 0 {
		return options, nil
	}
	for _, plugin := range config.Profiles[0].PluginConfig {
		if plugin.Name == linePlugin {
			if err := addLine(options, plugin.Args); err != nil {
				return nil, fmt.Errorf("pluginConfig of %s: %w", plugin.Name, err)
			}
		}
		if !slices.Contains(plugins, plugin.Name) {
			continue
		}
		var args arguments
		if err := json.Unmarshal(plugin.Args, &args); err != nil {
			return nil, fmt.Errorf("pluginConfig of %s: %w", plugin.Name, err)
		}
		if err := add(options, &args); err != nil {
			return nil, fmt.Errorf("pluginConfig of %s: %w", plugin.Name, err)
		}
	}
	return options, nil
}

func add(options *loadlinev1.FitOptions, args *arguments) (err error) {
	if args.AddedAffinity != nil {
		if options.AddedAffinity, err = args.AddedAffinity.Marshal(); err != nil {
			return err
		}
	}
	for i := range args.DefaultConstraints {
		constraint, err := args.DefaultConstraints[i].Marshal()
		if err != nil {
			return err
		}
		options.DefaultSpreadConstraints = append(options.DefaultSpreadConstraints, constraint)
	}
	options.IgnoredResources = append(options.IgnoredResources, args.IgnoredResources...)
	options.IgnoredResourceGroups = append(options.IgnoredResourceGroups, args.IgnoredResourceGroups...)
	return nil
}

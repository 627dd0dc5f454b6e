package harness

import (
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/yaml"
)

// PluginName is the name of our plugin in a KubeSchedulerConfiguration.
const PluginName = "NodeResourcesLimitAware"

// Site is what a configuration that was written for a cluster cannot know about this machine. Empty fields leave
// the configuration as it is.
type Site struct {
	// Kubeconfig replaces clientConnection.kubeconfig, and says as whom the scheduler asks who may read its
	// metrics; default: the administrator.
	Kubeconfig string
	// EngineAddress replaces the engine address in the arguments of our plugin.
	EngineAddress string
	// EngineTimeout replaces how long our plugin waits for the engine. The default is made for clusters, and not for a
	// machine that is busy with other tests.
	EngineTimeout time.Duration
	// MaxLimitsOverAllocatable is the load line of our plugin; nil: that of the configuration.
	MaxLimitsOverAllocatable map[string]float64
	// PluginArgs are further arguments of our plugin, by their names.
	PluginArgs map[string]any
	// ExtenderURL replaces the urlPrefix of the extenders.
	ExtenderURL string
	// QPS replaces clientConnection.qps and burst. The defaults, 50 and 100, bound the throughput of any
	// scheduler at 50 pods a second.
	QPS int
	// NoLeaderElection switches leader election off, which otherwise costs the first seconds.
	NoLeaderElection bool
}

// Apply returns the configuration with what is known here put in.
func (site Site) Apply(config []byte) ([]byte, error) {
	var root map[string]any
	if err := yaml.UnmarshalStrict(config, &root); err != nil {
		return nil, err
	}
	connection := child(root, "clientConnection")
	setIf(connection, "kubeconfig", site.Kubeconfig, site.Kubeconfig != "")
	setIf(connection, "qps", site.QPS, site.QPS != 0)
	setIf(connection, "burst", site.QPS, site.QPS != 0)
	setIf(child(root, "leaderElection"), "leaderElect", false, site.NoLeaderElection)
	for _, extender := range list(root, "extenders") {
		setIf(extender, "urlPrefix", site.ExtenderURL, site.ExtenderURL != "")
	}
	for _, profile := range list(root, "profiles") {
		for _, plugin := range list(profile, "pluginConfig") {
			if plugin["name"] == PluginName {
				args := child(plugin, "args")
				setIf(args, "engineAddress", site.EngineAddress, site.EngineAddress != "")
				setIf(args, "timeout", site.EngineTimeout.String(), site.EngineTimeout != 0)
				setIf(args, "maxLimitsOverAllocatable", site.MaxLimitsOverAllocatable,
					len(site.MaxLimitsOverAllocatable) > 0)
				maps.Copy(args, site.PluginArgs)
			}
		}
	}
	return yaml.Marshal(root)
}

// WithoutPlugin returns the configuration with our plugin taken out and everything else as it is.
func WithoutPlugin(config []byte) ([]byte, error) {
	var root map[string]any
	if err := yaml.UnmarshalStrict(config, &root); err != nil {
		return nil, err
	}
	for _, profile := range list(root, "profiles") {
		dropPlugin(profile, "pluginConfig")
		points, _ := profile["plugins"].(map[string]any)
		for name := range points {
			dropPlugin(child(points, name), "enabled")
		}
	}
	return yaml.Marshal(root)
}

// dropPlugin takes our plugin out of the list under a key.
func dropPlugin(object map[string]any, key string) {
	if items, ok := object[key].([]any); ok {
		object[key] = slices.DeleteFunc(items, func(item any) bool {
			plugin, _ := item.(map[string]any)
			return plugin["name"] == PluginName
		})
	}
}

func setIf[T any](object map[string]any, key string, value T, condition bool) {
	if condition {
		object[key] = value
	}
}

// child returns the object under a key, which is made when it is missing.
func child(object map[string]any, key string) map[string]any {
	if existing, ok := object[key].(map[string]any); ok {
		return existing
	}
	made := map[string]any{}
	object[key] = made
	return made
}

// list returns the objects of the list under a key.
func list(object map[string]any, key string) []map[string]any {
	var objects []map[string]any
	items, _ := object[key].([]any)
	for _, item := range items {
		if object, ok := item.(map[string]any); ok {
			objects = append(objects, object)
		}
	}
	return objects
}

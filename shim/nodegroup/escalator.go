package nodegroup

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// escalatorDefault is the name of the group that Escalator gives all pods without node selector and affinity.
const escalatorDefault = "default"

// escalatorFile is Escalator's node group file.
type escalatorFile struct {
	NodeGroups []escalatorGroup `json:"node_groups"`
}

// escalatorGroup has every option that Escalator 1.16 reads, in the order of its documentation.
type escalatorGroup struct {
	Name                               string       `json:"name"`
	LabelKey                           string       `json:"label_key"`
	LabelValue                         string       `json:"label_value"`
	CloudProviderGroupName             string       `json:"cloud_provider_group_name"`
	MinNodes                           int32        `json:"min_nodes"`
	MaxNodes                           int32        `json:"max_nodes"`
	DryMode                            bool         `json:"dry_mode"`
	ScaleOnStarve                      bool         `json:"scale_on_starve"`
	TaintUpperCapacityThresholdPercent int32        `json:"taint_upper_capacity_threshold_percent"`
	TaintLowerCapacityThresholdPercent int32        `json:"taint_lower_capacity_threshold_percent"`
	ScaleUpThresholdPercent            int32        `json:"scale_up_threshold_percent"`
	SlowNodeRemovalRate                int32        `json:"slow_node_removal_rate"`
	FastNodeRemovalRate                int32        `json:"fast_node_removal_rate"`
	SoftDeleteGracePeriod              string       `json:"soft_delete_grace_period"`
	HardDeleteGracePeriod              string       `json:"hard_delete_grace_period"`
	ScaleUpCoolDownPeriod              string       `json:"scale_up_cool_down_period"`
	TaintEffect                        string       `json:"taint_effect"`
	MaxNodeAge                         string       `json:"max_node_age"`
	UnhealthyNodeGracePeriod           string       `json:"unhealthy_node_grace_period"`
	HealthCheckNewestNodesPercent      int32        `json:"health_check_newest_nodes_percent"`
	MaxUnhealthyNodesPercent           int32        `json:"max_unhealthy_nodes_percent"`
	AWS                                escalatorAWS `json:"aws"`
}

// escalatorAWS says how nodes are bought, which has no part in how many are wanted.
type escalatorAWS struct {
	FleetInstanceReadyTimeout string   `json:"fleet_instance_ready_timeout"`
	LaunchTemplateID          string   `json:"launch_template_id"`
	LaunchTemplateVersion     string   `json:"launch_template_version"`
	Lifecycle                 string   `json:"lifecycle"`
	InstanceTypeOverrides     []string `json:"instance_type_overrides"`
	ResourceTagging           bool     `json:"resource_tagging"`
}

// isEscalator tells whether a document is Escalator's file.
func isEscalator(document []byte) bool {
	var content map[string]any
	if err := yaml.Unmarshal(document, &content); err != nil {
		return false
	}
	_, ok := content["node_groups"]
	return ok
}

func parseEscalator(document []byte) (File, error) {
	content, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return File{}, err
	}
	var read escalatorFile
	unknown, err := kjson.UnmarshalStrict(content, &read)
	if err != nil {
		return File{}, err
	}
	var file File
	for _, problem := range unknown {
		file.Warnings = append(file.Warnings,
			strings.TrimPrefix(problem.Error(), "json: ")+": Escalator has no such option, it plays no part")
	}
	for i := range read.NodeGroups {
		from := &read.NodeGroups[i]
		group, err := from.group()
		if err != nil {
			return File{}, fmt.Errorf("node_groups[%d] %q: %w", i, from.Name, err)
		}
		if from.MinNodes == 0 && from.MaxNodes == 0 {
			file.Warnings = append(file.Warnings, fmt.Sprintf(
				"node_groups[%d] %q: min_nodes and max_nodes are left to the cloud provider, which only the "+
					"autoscaler asks: elsewhere there are no bounds", i, from.Name))
		}
		file.Groups = append(file.Groups, group)
	}
	return file, nil
}

// group checks a group by Escalator's rules and restates it. The error starts with the option.
func (e *escalatorGroup) group() (NodeGroup, error) {
	none := NodeGroup{}
	if err := e.checkNames(); err != nil {
		return none, err
	}
	size := &Size{
		CatchAll:                           e.Name == escalatorDefault,
		ScaleUpThresholdPercent:            e.ScaleUpThresholdPercent,
		TaintUpperCapacityThresholdPercent: e.TaintUpperCapacityThresholdPercent,
		TaintLowerCapacityThresholdPercent: e.TaintLowerCapacityThresholdPercent,
		SlowNodeRemovalRate:                e.SlowNodeRemovalRate,
		FastNodeRemovalRate:                e.FastNodeRemovalRate,
		ScaleOnStarve:                      e.ScaleOnStarve,
		HealthCheckNewestNodesPercent:      e.HealthCheckNewestNodesPercent,
		MaxUnhealthyNodesPercent:           e.MaxUnhealthyNodesPercent,
		CloudGroup:                         e.CloudProviderGroupName,
		TaintEffect:                        v1.TaintEffect(e.TaintEffect),
		DryMode:                            e.DryMode,
	}
	if err := e.durations(size); err != nil {
		return none, err
	}
	if err := size.check(); err != nil {
		return none, errors.New(snakeCase(err.Error()))
	}
	lowest, highest, err := e.bounds()
	if err != nil {
		return none, err
	}
	return NodeGroup{
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind},
		Metadata: Metadata{Name: e.Name},
		Spec: Spec{
			NodeSelector: map[string]string{e.LabelKey: e.LabelValue},
			Min:          lowest, Max: highest,
			Size: size,
		},
	}, nil
}

func (e *escalatorGroup) checkNames() error {
	for _, required := range []struct{ option, value string }{
		{"name", e.Name}, {"label_key", e.LabelKey}, {"label_value", e.LabelValue},
		{"cloud_provider_group_name", e.CloudProviderGroupName},
	} {
		if required.value == "" {
			return fmt.Errorf("%s: missing", required.option)
		}
	}
	switch e.TaintEffect {
	case "", "NoSchedule", "NoExecute", "PreferNoSchedule":
	default:
		return fmt.Errorf("taint_effect: %q must be NoSchedule, NoExecute or PreferNoSchedule", e.TaintEffect)
	}
	switch e.AWS.Lifecycle {
	case "", "on-demand", "spot":
		return nil
	}
	return fmt.Errorf("aws.lifecycle: %q must be on-demand or spot", e.AWS.Lifecycle)
}

func (e *escalatorGroup) durations(size *Size) error {
	for _, d := range []struct {
		option, text string
		into         *metav1.Duration
		optional     bool
	}{
		{"soft_delete_grace_period", e.SoftDeleteGracePeriod, &size.SoftDeleteGracePeriod, false},
		{"hard_delete_grace_period", e.HardDeleteGracePeriod, &size.HardDeleteGracePeriod, false},
		{"scale_up_cool_down_period", e.ScaleUpCoolDownPeriod, &size.ScaleUpCoolDownPeriod, false},
		{"max_node_age", e.MaxNodeAge, &size.MaxNodeAge, true},
		{"unhealthy_node_grace_period", e.UnhealthyNodeGracePeriod, &size.UnhealthyNodeGracePeriod, true},
	} {
		if d.text == "" && d.optional {
			continue
		}
		value, err := time.ParseDuration(d.text)
		if err != nil {
			return fmt.Errorf("%s: %q is not a duration, such as 5m", d.option, d.text)
		}
		d.into.Duration = value
	}
	return nil
}

// bounds returns minimum and maximum; both 0 leave them to the cloud provider.
func (e *escalatorGroup) bounds() (lowest, highest int32, err error) {
	switch {
	case e.MinNodes == 0 && e.MaxNodes == 0:
		return 0, math.MaxInt32, nil
	case e.MinNodes < 0:
		return 0, 0, fmt.Errorf("min_nodes: %d is negative", e.MinNodes)
	case e.MaxNodes <= 0:
		return 0, 0, fmt.Errorf("max_nodes: %d is not positive", e.MaxNodes)
	case e.MinNodes >= e.MaxNodes:
		return 0, 0, fmt.Errorf("min_nodes: %d is not less than max_nodes, %d", e.MinNodes, e.MaxNodes)
	}
	return e.MinNodes, e.MaxNodes, nil
}

// snakeCase restates the names of our options as Escalator's: an upper case letter inside a word starts a new one.
func snakeCase(text string) string {
	var b strings.Builder
	for i, r := range text {
		if r >= 'A' && r <= 'Z' && i > 0 && text[i-1] >= 'a' && text[i-1] <= 'z' {
			b.WriteByte('_')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

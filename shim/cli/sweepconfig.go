package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/sweep"
)

// configured says which key of the autoscaler's configuration a setting of a scenario is, and how it is written there.
var configured = map[string]struct {
	section, key string
	unit         time.Duration // of a duration; 0: a number
}{
	"scanSeconds":             {"", "scanInterval", time.Second},
	"utilizationThreshold":    {"scaleDown", "scaleDownUtilizationThreshold", 0},
	"unneededSeconds":         {"scaleDown", "scaleDownUnneededTime", time.Second},
	"unreadySeconds":          {"scaleDown", "scaleDownUnreadyTime", time.Second},
	"maxScaleDownParallelism": {"scaleDown", "maxScaleDownParallelism", 0},
	"maxDrainParallelism":     {"scaleDown", "maxDrainParallelism", 0},
	"maxNodeProvisionSeconds": {"scaleUp", "maxNodeProvisionTime", time.Second},
	"delayAfterAddSeconds":    {"scaleDown", "scaleDownDelayAfterAdd", time.Second},
	"delayAfterDeleteSeconds": {"scaleDown", "scaleDownDelayAfterDelete", time.Second},
	"delayAfterFailureSeconds": {"scaleDown", "scaleDownDelayAfterFailure",
		time.Second},
	"newPodScaleUpDelaySeconds": {"scaleUp", "newPodScaleUpDelay",
		time.Second},
	"batchIdleMilliseconds": {"scaleUp", "batchIdle", time.Millisecond},
	"batchMaxMilliseconds":  {"scaleUp", "batchMax", time.Millisecond},

	"consolidation.leastSavingUsdPerHour": {"consolidation", "leastSaving", 0},
	"consolidation.leastSavingPercent":    {"consolidation", "leastSavingPercent", 0},
	"consolidation.usdPerDisturbedPod":    {"consolidation", "podDisruptionCost", 0},
	"consolidation.paybackHours":          {"consolidation", "paybackHours", 0},
	"consolidation.maxNodesAtOnce":        {"consolidation", "maxNodesAtOnce", 0},
	"consolidation.maxPodsAtOnce":         {"consolidation", "maxPodsAtOnce", 0},
	"consolidation.restSeconds":           {"consolidation", "replacementRest", time.Second},
}

// settingsOf calls `note` for each setting that is set; those of a message within go by its name and theirs.
func settingsOf(message protoreflect.Message, prefix string,
	note func(string, protoreflect.FieldDescriptor, protoreflect.Value)) {
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if name := prefix + field.JSONName(); field.Message() != nil && !field.IsList() {
			settingsOf(value.Message(), name+".", note)
		} else {
			note(name, field, value)
		}
		return true
	})
}

func sortOutcomes(all []sweep.Outcome) {
	slices.SortStableFunc(all, func(x, y sweep.Outcome) int {
		return cmp.Or(cmp.Compare(x.USD.Mean, y.USD.Mean), cmp.Compare(x.Wait.Mean, y.Wait.Mean))
	})
}

// configuration is the autoscaler's configuration of the best point, and what else is to be set; empty: there is none.
// Of all inputs together it has what the point sets; of one also what its scenario does.
func (a *sweepAnswer) configuration(s *sweep.Summary) string {
	if s.Best == nil {
		return ""
	}
	input := max(0, slices.Index(a.plan.Names, s.Input))
	request, err := a.plan.Request((input*len(a.plan.Points) + s.Best.Point) * a.plan.Spec.Seeds.Count)
	if err != nil {
		return ""
	}
	f := configFile{root: map[string]any{"apiVersion": config.APIVersion, "kind": config.Kind}}
	settingsOf(request.GetScenario().GetSettings().ProtoReflect(), "",
		func(name string, field protoreflect.FieldDescriptor, value protoreflect.Value) {
			if s.Input != sweep.Everything || a.plan.Points[s.Best.Point].Get("settings."+name) != "" {
				f.take(name, field, value)
			}
		})
	for _, v := range a.plan.Points[s.Best.Point] {
		if !strings.HasPrefix(v.Path, "settings.") {
			f.others = append(f.others, fmt.Sprintf("%s: %v, where it belongs", v.Path, v.Value))
		}
	}
	return f.text()
}

// configFile is a configuration of the autoscaler that is being made.
type configFile struct {
	root map[string]any
	// others is said beside it; more are further decisions than by default.
	others, more []string
}

// take adds a setting of a scenario.
func (f *configFile) take(name string, field protoreflect.FieldDescriptor, value protoreflect.Value) {
	switch key, known := configured[name]; {
	case known:
		set(f.root, key.section, key.key, written(value, key.unit))
	case name == "slackPercent":
		set(f.root, "slack", "extraCapacityMinRate", fmt.Sprintf("%d%%", value.Int()))
	case name == "noScaleDown":
		f.root["decisions"] = []string{config.ScaleUpDecision, config.SlackDecision}
	case name == "replace":
		f.more = append(f.more, config.ReplaceDecision)
	case name == "downscaleOrder":
		f.more = append(f.more, config.DownscaleOrderDecision)
	case name == "score":
		f.others = append(f.others, scoreNote(string(field.Enum().Values().ByNumber(value.Enum()).Name())))
	default:
		f.others = append(f.others, fmt.Sprintf("settings.%s: %v", name, value))
	}
}

// text is the file, with what is to be set beside it; empty: it cannot be written.
func (f *configFile) text() string {
	if len(f.more) > 0 && f.root["decisions"] == nil {
		slices.Sort(f.more)
		f.root["decisions"] = slices.Concat(config.Default().Decisions, f.more)
	}
	content, err := yaml.Marshal(f.root)
	if err != nil {
		return ""
	}
	slices.Sort(f.others)
	text := string(content)
	for _, other := range f.others {
		text += "# Beside it, " + other + "\n"
	}
	return text
}

func set(root map[string]any, section, key string, value any) {
	if section == "" {
		root[key] = value
		return
	}
	within, ok := root[section].(map[string]any)
	if !ok {
		within = map[string]any{}
		root[section] = within
	}
	within[key] = value
}

func written(value protoreflect.Value, unit time.Duration) any {
	if unit > 0 {
		return (time.Duration(value.Int()) * unit).String()
	}
	return value.Interface()
}

func scoreNote(score string) string {
	switch score {
	case "MOST_ALLOCATED":
		return "the scheduler: NodeResourcesFit with scoringStrategy MostAllocated"
	case "LIMIT_AWARE":
		return "the scheduler: LeastAllocated, with NodeResourcesLimitAware as in manifests/second-scheduler/30-config.yaml"
	}
	return "the scheduler: NodeResourcesFit with scoringStrategy LeastAllocated, its default"
}

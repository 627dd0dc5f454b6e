package plan

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/sizing"
)

// ofOurPlugin is why a field has no flag that the arguments of our plugin fill.
const ofOurPlugin = "what our plugin says in schedulerConfig: see TestLoadLineOfOurPluginHoldsForPlans"

// notOptions are the fields of questions that are no options, each with the reason.
var notOptions = map[string]string{
	"PlanLoopRequest.changes":                   "the cluster",
	"PlanLoopRequest.since_growth_milliseconds": "what was done",
	"PlanLoopRequest.own":                       "the cluster",
	"PlanLoopRequest.now_s":                     "the time",
	"PlanLoopRequest.seen_s":                    "the time",
	"PlanLoopRequest.groups": "what the provider says; scaleDown, scaleUp and a rank policy have the " +
		"options of all groups",
	"PlanLoopRequest.maxima":                      "the cluster: CapacityQuotas",
	"PlanLoopRequest.pods":                        "the cluster",
	"PlanLoopRequest.deferred_pods":               "the cluster",
	"PlanLoopRequest.left_out_pods":               "the cluster",
	"PlanLoopRequest.daemon_pods":                 "the cluster",
	"PlanLoopRequest.size_pods":                   "the cluster",
	"PlanLoopRequest.pools":                       "the cluster: devices on nodes",
	"PlanLoopRequest.state":                       "what the engine remembers",
	"PlanLoopRequest.progress":                    "what was done",
	"PlanLoopRequest.compact":                     "how the answer travels",
	"PlanLoopRequest.sized":                       "see TestEveryOptionOfSizingHasAKey",
	"LoopFleet.now_milliseconds":                  "the time",
	"LoopFleet.state":                             "what the engine remembers",
	"LoopFleet.first":                             "whether this process has told of the cloud",
	"LoopFleet.outcomes":                          "what was done",
	"LoopFleet.removals":                          "what was done",
	"LoopFleet.acknowledged":                      "what was done",
	"LoopFleet.tainting_failed":                   "what was done",
	"LoopFleet.soft_taints_tried":                 "what was done",
	"LoopFleet.marks":                             "the cluster",
	"LoopFleet.under_way":                         "what is being done",
	"FleetOptions.deletion_patience_milliseconds": "the same for all",
	"GroupSimilarity.labels":                      "balancing-label, which goes without balancing-ignore-label: see TestBalancingLabels",
	"LoadLine.counting":                           ofOurPlugin,
	"LoadLine.expected_use":                       ofOurPlugin,
	"LineResource.max_expected_over_allocatable":  ofOurPlugin,
	"ExpectedUse.mode":                            ofOurPlugin,
	"ExpectedUse.floor":                           ofOurPlugin,
	"ExpectedUse.cpu_margin_percent":              ofOurPlugin,
	"ExpectedUse.memory_margin_percent":           ofOurPlugin,
	"ExpectedUse.neighbor_hours":                  ofOurPlugin,
	"ExpectedUse.min_days":                        ofOurPlugin,
	"ExpectedUse.max_age_s":                       ofOurPlugin,
	"SchedulerProfile.options":                    "those of the profile, which TestReadsEachProfile of filterconfig reads",
	"DrainOptions.may_be_incomplete":              "what a client could not list",
	"PriceCatalogue.name":                         "the name of the file",
	"ConsolidationPolicy.mode":                    "the decision replace says it",
}

// values are what flags are set to of which no value can be made up.
var values = map[string]string{
	"mode": "act", "cloud": "externalgrpc", "decisions": "slack", "view": "other", "bind-address": ":1",
	"leader-elect-retry-period": "1s", "max-total-unready-percentage": "50",
	"cores-total": "7:9", "memory-total": "7:9", "slack-basis": "capacity", "slack-version": "2b",
	"slack-keep": "report", "extra-capacity-min-rate": "20%",
	"rank-preset": "proposal", "strategies": "least-waste", "upstream-defects": "namespace-selector-sees-no-labels",
	"drain-priority-config": "0:1",
	"sized-node-groups":     "", "slack-bound-by-pods": "true", "slack-max-extra-cpu": "64",
	"slack-max-extra-memory": "256Gi", "slack-class-labels": "disk",
	"slack-class": "disk=ssd;off,disk=hdd;max-cpu=64,disk=tape;max-memory=1Gi,class=x;off",
	"slack-group": "g;off,h;max-nodes=5", "slack-common-resources": "example.com/x",
	"gpu-total": "t4:7:9", "balancing-label": "", "commitment": "m5=4", "preferred-table": "learned",
	"preferred-node": "8:32Gi", "kubernetes-version": "1.37", "max-limits-over-allocatable": "memory=1.5",
	"interruption-risks":   "m5.large=0.1",
	"node-budgets":         "2 of=a together for=empty in=0 22 * * * 6h,10%",
	"pod-disruption-costs": "1000=0.01", "replacement-windows": "0 22 * * 1-5 6h",
	"slack-max-copies-cpu": "7", "slack-max-copies-memory": "7Gi"}

const everyRankPolicy = `
apiVersion: loadline.dev/v1alpha1
kind: RankPolicy
damper: 0.5
podRates: &rates {cpu: 1, memoryGiB: 2, gpu: 3, ephemeralGiB: 4, ephemeralFlat: 5}
suppressionDivisor: 6
gpuUnfitness: 7
gpuUnfitnessIfUnneeded: true
creationFactor: 8
countPreferredNodes: true
preferredTable: proposal
preferredNode: {cpu: 2, memory: 3Gi}
unfitnessResources: cpu-and-memory
prices: {baseRates: *rates, lastSource: family, spotFactor: 0.5, interruptionRisk: 0.25, interruptionRisks: {m5: 0.2}, nodeSurcharge: 0.125, commitments: [{instance: m5, unusedCPU: 4}]}
`

const everySchedulerConfig = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: other
- schedulerName: default-scheduler
  plugins: {filter: {disabled: [{name: NodePorts}]}}
  pluginConfig:
  - {name: NodeAffinity, args: {addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}}
  - {name: PodTopologySpread, args: {defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}}
  - name: NodeResourcesFit
    args: {ignoredResources: [a], ignoredResourceGroups: [b], scoringStrategy: {type: MostAllocated}}
`

// settingsOf returns the options that a planner sends at some time, of a command line.
func settingsOf(t *testing.T, set func(*pflag.FlagSet)) *loadlinev1.PlanLoopRequest {
	t.Helper()
	p, now := plannerOf(t, set), time.Unix(1e9, 0)
	settings := proto.CloneOf(p.Settings)
	settings.Drain, settings.Consolidation = p.Drain(now, nil), p.Consolidation(now)
	return settings
}

// plannerOf returns the planner of a command line.
func plannerOf(t *testing.T, set func(*pflag.FlagSet)) *Planner {
	t.Helper()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	settings := config.AddFlags(flags, false)
	set(flags)
	c, _, err := settings.Configuration("")
	if err != nil {
		t.Fatal(err)
	}
	files, err := c.ReadFiles()
	if err != nil {
		t.Fatal(err)
	}
	return NewPlanner(nil, nil, &c, files, nil)
}

// another returns a value for a flag that is not its default.
func another(t *testing.T, flag *pflag.Flag) string {
	t.Helper()
	switch flag.Value.Type() {
	case "bool":
		return strconv.FormatBool(flag.DefValue != "true")
	case "int":
		number, err := strconv.Atoi(flag.DefValue)
		if err != nil {
			t.Fatal(err)
		}
		return strconv.Itoa(number + 1)
	case "float64":
		number, err := strconv.ParseFloat(flag.DefValue, 64)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(number + 0.25)
	case "share":
		return "0.5"
	case "duration":
		length, err := time.ParseDuration(flag.DefValue)
		if err != nil {
			t.Fatal(err)
		}
		return (length + time.Minute).String()
	}
	return "other"
}

// Every option that PlanLoop takes can be set by a flag, and so by a key of the configuration, which has one for each
// flag. A new field of these messages needs one, or a place among notOptions with the reason.
func TestEveryOptionHasAFlagAndAKey(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	files := map[string]string{"rank-policy": write("rank.yaml", everyRankPolicy),
		"scheduler-config-file": write("scheduler.yaml", everySchedulerConfig),
		"prices":                write("prices.csv", "instance_type,region,usd_per_hour\nm5.large,here,0.1\n")}
	before := settingsOf(t, func(*pflag.FlagSet) {})
	after := settingsOf(t, func(flags *pflag.FlagSet) {
		flags.VisitAll(func(flag *pflag.Flag) {
			if flag.Name == "expander" || flag.Hidden { // other names, as --strategies has, or without effect
				return
			}
			value, known := values[flag.Name]
			if file, isFile := files[flag.Name]; isFile {
				value, known = file, true
			}
			if !known {
				value = another(t, flag)
			}
			if err := flags.Set(flag.Name, value); err != nil {
				t.Fatalf("--%s=%s: %v", flag.Name, value, err)
			}
		})
	})
	reached := map[string]bool{}
	changed(before.ProtoReflect(), after.ProtoReflect(), reached)
	expectReached(t, after.ProtoReflect().Descriptor(), reached)
}

// The same for groups that are sized, whose options a file of node groups has.
func TestEveryOptionOfSizingHasAKey(t *testing.T) {
	file, err := nodegroup.Parse([]byte(`
apiVersion: loadline.dev/v1alpha1
kind: NodeGroup
metadata: {name: g}
spec:
  min: 1
  max: 9
  target: 3
  nodeSelector: {pool: a}
  template: {status: {capacity: {cpu: 4}}}
  size: {mode: compat, daemonSets: ignore, catchAll: true, scaleUpThresholdPercent: 70, taintUpperCapacityThresholdPercent: 40, taintLowerCapacityThresholdPercent: 20,
    slowNodeRemovalRate: 1, fastNodeRemovalRate: 2, softDeleteGracePeriod: 1m, hardDeleteGracePeriod: 2m, scaleUpCoolDownPeriod: 3m, scaleOnStarve: true,
    maxNodeAge: 4m, unhealthyNodeGracePeriod: 5m, healthCheckNewestNodesPercent: 6, maxUnhealthyNodesPercent: 7, dryMode: true, cloudMin: 1, cloudMax: 8}
`))
	if err != nil {
		t.Fatal(err)
	}
	reached := map[string]bool{}
	asked, err := sizing.New().Request(file.Groups, time.Unix(1, 0), nil)
	if err != nil {
		t.Fatal(err)
	}
	looped, err := sizing.ForLoop(&file.Groups[0], sizing.Cloud{ID: "g", Max: 9})
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range []*loadlinev1.SizedGroup{asked.GetGroups()[0], looped} {
		changed((&loadlinev1.SizedGroup{}).ProtoReflect(), group.ProtoReflect(), reached)
	}
	expectReached(t, looped.ProtoReflect().Descriptor(), reached)
}

// changed adds the fields in which two messages differ, by message and name, at any depth.
func changed(before, after protoreflect.Message, reached map[string]bool) {
	after.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		name := nameOfField(field)
		switch {
		case field.IsList() && field.Message() != nil:
			for i := range value.List().Len() {
				reached[name] = true
				one := value.List().Get(i).Message()
				changed(one.Type().Zero(), one, reached)
			}
		case field.Message() != nil && !field.IsMap():
			reached[name] = true
			changed(before.Get(field).Message(), value.Message(), reached)
		case !before.Get(field).Equal(value):
			reached[name] = true
		}
		return true
	})
	before.Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if !after.Has(field) {
			reached[nameOfField(field)] = true
		}
		return true
	})
}

func nameOfField(field protoreflect.FieldDescriptor) string {
	return fmt.Sprintf("%s.%s", field.Parent().Name(), field.Name())
}

// expectReached fails for each field of a message, at any depth, that is neither reached nor known to be no option.
func expectReached(t *testing.T, of protoreflect.MessageDescriptor, reached map[string]bool) {
	t.Helper()
	var missing []string
	seen := map[protoreflect.FullName]bool{}
	var visit func(protoreflect.MessageDescriptor)
	visit = func(of protoreflect.MessageDescriptor) {
		if seen[of.FullName()] {
			return
		}
		seen[of.FullName()] = true
		for i := range of.Fields().Len() {
			field := of.Fields().Get(i)
			name := nameOfField(field)
			if _, known := notOptions[name]; known {
				continue
			}
			if !reached[name] {
				missing = append(missing, name)
			}
			if field.Message() != nil && strings.HasPrefix(string(field.Message().FullName()), "loadline.") {
				visit(field.Message())
			}
		}
	}
	visit(of)
	slices.Sort(missing)
	if len(missing) > 0 {
		t.Errorf("no flag reaches %s", strings.Join(missing, ", "))
	}
}

// A percentage arrives without its fraction: the engine knows whole ones, and brakes sooner.
func TestFractionsOfUnreadyNodes(t *testing.T) {
	for given, want := range map[string]int32{"0": 0, "0.1": 0, "45": 45, "45.5": 45, "100": 100} {
		settings := settingsOf(t, func(flags *pflag.FlagSet) {
			if err := flags.Set("max-total-unready-percentage", given); err != nil {
				t.Fatal(err)
			}
		})
		drains := settings.GetDrain().GetMaxTotalUnreadyPercentage()
		grows := settings.GetFleet().GetOptions().GetMaxUnreadyPercent()
		if drains != want || grows != want {
			t.Errorf("%s counts as %d for removals and %d for growth, want %d", given, drains, grows, want)
		}
	}
}

// Labels that decide alone arrive as such.
func TestBalancingLabels(t *testing.T) {
	settings := settingsOf(t, func(flags *pflag.FlagSet) {
		for name, value := range map[string]string{"balance-similar-node-groups": "true", "balancing-label": "a,b"} {
			if err := flags.Set(name, value); err != nil {
				t.Fatal(err)
			}
		}
	})
	if got := settings.GetBalance(); !slices.Equal(got.GetLabels(), []string{"a", "b"}) || got.GetIgnoredLabels() != nil {
		t.Errorf("groups are similar by %v", got)
	}
	if settings := settingsOf(t, func(*pflag.FlagSet) {}); settings.Balance != nil || settings.EnforceMinSizes {
		t.Errorf("by default: %v", settings)
	}
}

// Groups that share a budget of the provider have it together, beside those of the configuration.
func TestBudgetsOfProviders(t *testing.T) {
	c := config.Default()
	c.ScaleDown.NodeBudgets = []string{"2"}
	pool := &cloud.NodeBudget{NodeBudget: &loadlinev1.NodeBudget{Limit: &loadlinev1.NodeBudget_Percent{Percent: 10}}}
	var groups []*Group
	for _, id := range []string{"a", "b", "c"} {
		groups = append(groups, &Group{Group: &cloud.Group{ID: id}})
	}
	groups[0].Budgets, groups[2].Budgets = []*cloud.NodeBudget{pool}, []*cloud.NodeBudget{pool}
	rules := RulesOf(&c, &config.Loaded{})
	want := []*loadlinev1.NodeBudget{{Limit: &loadlinev1.NodeBudget_Nodes{Nodes: 2}},
		{Limit: &loadlinev1.NodeBudget_Percent{Percent: 10}, NodeGroups: []string{"a", "c"}, Together: true}}
	for range 2 { // the budget of the provider stays as it is
		got := rules.Drain(time.Unix(0, 0), groups).GetNodeBudgets()
		if !slices.EqualFunc(got, want, func(a, b *loadlinev1.NodeBudget) bool { return proto.Equal(a, b) }) {
			t.Fatalf("budgets %v, want %v", got, want)
		}
	}
}

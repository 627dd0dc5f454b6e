package filterconfig

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
)

const head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

// scheduler is a file as kube-scheduler takes it, with what plays no part here as well.
const scheduler = head + `
parallelism: 16
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf, qps: 100}
profiles:
- schedulerName: batch
  plugins:
    multiPoint: {disabled: [{name: NodePorts}]}
    filter: {disabled: [{name: VolumeZone}]}
    score: {disabled: [{name: "*"}], enabled: [{name: NodeResourcesFit, weight: 5}]}
  pluginConfig:
  - name: NodeResourcesFit
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: NodeResourcesFitArgs
      ignoredResources: [example.com/b]
      scoringStrategy:
        type: RequestedToCapacityRatio
        resources: [{name: cpu, weight: 3}, {name: nvidia.com/gpu, weight: 100}]
        requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}, {utilization: 70, score: 10}]}
- schedulerName: default-scheduler
  plugins:
    multiPoint: {enabled: [{name: NodeResourcesLimitAware}, {name: Coscheduling}]}
    score: {disabled: [{name: NodeResourcesBalancedAllocation}]}
  pluginConfig:
  - name: NodeAffinity
    args: {addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [a]}]}]}}}
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints:
      - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}
      - {maxSkew: 1, topologyKey: host, whenUnsatisfiable: ScheduleAnyway}
  - name: NodeResourcesFit
    args: {ignoredResources: [example.com/a], ignoredResourceGroups: [example.org], scoringStrategy: {type: MostAllocated}}
  - name: InterPodAffinity
    args: {hardPodAffinityWeight: 3}
extenders:
- urlPrefix: "http://127.0.0.1:1/"
  filterVerb: filter
  managedResources: [{name: example.com/gpumem, ignoredByScheduler: true}, {name: example.com/shown}]
`

func read(t *testing.T, text string, request Request) (*Scheduler, error) {
	t.Helper()
	request.File = filepath.Join(t.TempDir(), "scheduler.yaml")
	if err := os.WriteFile(request.File, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Read(request)
}

// said tells in one line what filters read of a profile.
func said(t *testing.T, options *loadlinev1.FitOptions) string {
	t.Helper()
	var affinity v1.NodeAffinity
	if err := affinity.Unmarshal(options.GetAddedAffinity()); err != nil {
		t.Fatal(err)
	}
	var out []string
	if required := affinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		out = append(out, "affinity "+required.NodeSelectorTerms[0].MatchExpressions[0].Key)
	}
	for _, data := range options.GetDefaultSpreadConstraints() {
		var constraint v1.TopologySpreadConstraint
		if err := constraint.Unmarshal(data); err != nil {
			t.Fatal(err)
		}
		out = append(out, "spread "+constraint.TopologyKey)
	}
	for _, name := range options.GetIgnoredResources() {
		out = append(out, "ignored "+name)
	}
	for _, name := range options.GetIgnoredResourceGroups() {
		out = append(out, "ignored group "+name)
	}
	for _, filter := range options.GetDisabledFilters() {
		out = append(out, "without "+filter.String())
	}
	return strings.Join(out, ", ")
}

func TestReadsEachProfile(t *testing.T) {
	got, err := read(t, scheduler, Request{})
	if err != nil {
		t.Fatal(err)
	}
	if first := said(t, got.Fit); first != "affinity pool, spread zone, ignored example.com/a, "+
		"ignored example.com/gpumem, ignored group example.org" {
		t.Errorf("default-scheduler filters: %s", first)
	}
	if profiles := got.Fit.GetProfiles(); len(profiles) != 1 || profiles[0].SchedulerName != "batch" ||
		said(t, profiles[0].Options) != "ignored example.com/b, ignored example.com/gpumem, "+
			"without NODE_PORTS, without VOLUME_ZONE" {
		t.Errorf("profiles %v", profiles)
	}
	for name, want := range map[string]string{
		"batch": "{RequestedToCapacityRatio [{cpu 3} {nvidia.com/gpu 100}] [{0 0} {70 10}] [cpu memory] 5 0}",
		"":      "{MostAllocated [{cpu 1} {memory 1}] [] [cpu memory] 1 0}",
		"other": "{MostAllocated [{cpu 1} {memory 1}] [] [cpu memory] 1 0}",
		// The name that the API server fills in.
		"default-scheduler": "{MostAllocated [{cpu 1} {memory 1}] [] [cpu memory] 1 0}",
	} {
		pod := &v1.Pod{Spec: v1.PodSpec{SchedulerName: name}}
		if scoring := fmt.Sprint(*got.Scoring(pod)); scoring != want {
			t.Errorf("pods of %q are scored by %s, want %s", name, scoring, want)
		}
	}
	want := "profiles[1].plugins.multiPoint.enabled[1]: what Coscheduling refuses is not known here; " +
		"extenders[0].filterVerb: what it refuses is not known here"
	if warnings := strings.Join(got.Warnings, "; "); warnings != want {
		t.Errorf("warnings %s", warnings)
	}
	if !NeedsSelectors(got.Fit) || NeedsSelectors(nil) {
		t.Error("who needs selectors")
	}
}

func TestDefectsAndVersion(t *testing.T) {
	if got, err := Read(Request{}); err != nil || got.Fit != nil || fmt.Sprint(*got.Profiles[""]) !=
		"{LeastAllocated [{cpu 1} {memory 1}] [] [cpu memory] 1 1}" {
		t.Errorf("by default %v, error %v", got, err)
	}
	got, err := read(t, scheduler, Request{Defects: []string{"none"}, Version: "v1.37.2"})
	if err != nil || got.Fit.GetKubernetesMinor() != 37 ||
		!proto.Equal(got.Fit.GetDefects(), &loadlinev1.UpstreamDefects{}) || got.Fit.GetDefects() == nil ||
		got.Fit.GetProfiles()[0].Options.Defects == nil {
		t.Errorf("got %v, error %v", got.Fit, err)
	}
	if got, err := Read(Request{Defects: []string{NamespaceSelectorSeesNoLabels}}); err != nil ||
		!got.Fit.GetDefects().GetNamespaceSelectorSeesNoLabels() {
		t.Errorf("got %v, error %v", got, err)
	}
	for says, request := range map[string]Request{
		`upstreamDefects: "all" must be one of`:               {Defects: []string{"all"}},
		`kubernetesVersion: "1.35" must be one of 1.36, 1.37`: {Version: "1.35"},
		`kubernetesVersion: "new" must be such as`:            {Version: "new"},
		"no such file":                           {File: "/does/not/exist"},
		`upstreamDefects: "none" must be one of`: {Defects: []string{"none", NamespaceSelectorSeesNoLabels}},
	} {
		if _, err := Read(request); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want %q in it", err, says)
		}
	}
}

func TestErrorsNameTheField(t *testing.T) {
	plugin := func(name, args string) string {
		return head + "profiles: [{pluginConfig: [{name: " + name + ", args: " + args + "}]}]"
	}
	for text, says := range map[string]string{
		"kind: Pod": "kind", "[": "yaml",
		"apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration": `v1beta3": must be ` +
			"kubescheduler.config.k8s.io/v1",
		head + "profile: []": `unknown field "profile"`,
		head + "extenders: [{managedResources: [{name: cpu}]}]": `extenders[0].managedResources[0].name: "cpu" must be`,
		head + "kind: A": `key "kind" already set`,
		head + "profiles: [{}, {schedulerName: default-scheduler}]":    `profiles[1].schedulerName: "default-scheduler" occurs twice`,
		head + `profiles: [{schedulerName: ""}]`:                       "profiles[0].schedulerName: must not be empty",
		head + "profiles: [" + strings.Repeat("{},", 33) + "{}]":       "profiles: has 34 entries",
		plugin("NodeAffinity", "{addedAffinity: 7}"):                   "profiles[0].pluginConfig[0] (NodeAffinity).args: ",
		plugin("NodeAffinity", "{addedAffinty: {}}"):                   `unknown field "addedAffinty"`,
		plugin("NodeResourcesFit", "{ignoredResourceGroups: [a/b]}"):   "args.ignoredResourceGroups[0]",
		plugin("NodeResourcesFit", "{scoringStrategy: {type: Least}}"): `args.scoringStrategy.type: "Least"`,
		plugin("NodeResourcesFit", "{scoringStrategy: {resources: [{name: cpu, weight: 101}]}}"): "args.scoringStrategy." +
			"resources[0].weight: 101 is not in [1, 100]",
		plugin("NodeResourcesFit", "{scoringStrategy: {type: RequestedToCapacityRatio}}"): "requestedToCapacityRatio.shape",
		plugin("NodeResourcesFit", "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: "+
			"{shape: [{utilization: 50, score: 1}, {utilization: 50, score: 2}]}}}"): "shape[1].utilization: 50 must be more",
		plugin("NodeResourcesFit", "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: "+
			"{shape: [{utilization: 50, score: 11}]}}}"): "shape[0].score: 11 is not in [0, 10]",
		plugin("NodeResourcesBalancedAllocation", "{resources: [{name: cpu, weight: 2}]}"): "args.resources[0].weight",
		plugin("PodTopologySpread", "{defaultConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: "+
			"DoNotSchedule}]}"): "args.defaultConstraints: need defaultingType List",
		plugin("PodTopologySpread", "{defaultingType: Lst}"): `args.defaultingType: "Lst"`,
		plugin("PodTopologySpread", "{defaultingType: List, defaultConstraints: [{maxSkew: 0, topologyKey: z, "+
			"whenUnsatisfiable: DoNotSchedule}]}"): "args.defaultConstraints[0].maxSkew",
		plugin("PodTopologySpread", "{defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: z, "+
			"whenUnsatisfiable: DoNotSchedule, labelSelector: {}}]}"): "args.defaultConstraints[0].labelSelector",
		head + "profiles: [{pluginConfig: [{name: NodeAffinity}, {name: NodeAffinity}]}]":          "pluginConfig[1].name",
		head + "profiles: [{plugins: {preFilter: {disabled: [{name: NodePorts}]}}}]":               "plugins.preFilter.disabled",
		head + "profiles: [{plugins: {score: {enabled: [{name: NodeResourcesFit, weight: -1}]}}}]": "plugins.score.enabled",
	} {
		if _, err := read(t, text, Request{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: error %v, want %q in it", text, err, says)
		}
	}
}

func TestSetStrategy(t *testing.T) {
	got, err := read(t, scheduler, Request{})
	if err != nil {
		t.Fatal(err)
	}
	if err := got.SetStrategy(RequestedToCapacityRatio); err != nil {
		t.Fatal(err)
	}
	if a, b := got.Profiles["batch"].Shape, got.Profiles[""].Shape; fmt.Sprint(a, b) != "[{0 0} {70 10}] [{0 0} {100 10}]" {
		t.Errorf("shapes %v, %v", a, b)
	}
	if err := got.SetStrategy("Fullest"); err == nil {
		t.Error("any strategy is taken")
	}
}

func TestLoadLineOfOurPluginHoldsForPlans(t *testing.T) {
	const text = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: other
  pluginConfig:
  - name: NodeResourcesLimitAware
    args: {engineAddress: inprocess, maxLimitRatio: 2, maxLimitsOverAllocatable: {memory: 1.5},
      lineExemptNamespaces: [kube-system], onEngineFailure: Refuse}
`
	scheduler, err := parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	options := scheduler.Fit
	line := options.GetLoadLine()
	if line.GetResources()[0].GetMaxLimitsOverAllocatable() != "1.5" || line.GetCounting().GetMaxLimitRatio() != 2 ||
		line.GetExemptNamespaces()[0] != "kube-system" {
		t.Errorf("got %v", line)
	}
	options, err = WithLine(options, []string{"cpu=3"}, "", nil)
	if line := options.GetLoadLine(); err != nil || len(line.GetResources()) != 1 ||
		line.GetResources()[0].GetResource() != "cpu" || line.GetCounting().GetMaxLimitRatio() != 2 {
		t.Errorf("got %v, error %v", line, err)
	}
	if none, err := WithLine(nil, nil, "", nil); none != nil || err != nil {
		t.Errorf("got %v, error %v", none, err)
	}
	if _, err := WithLine(nil, []string{"cpu=0"}, "", nil); err == nil {
		t.Error("a line of 0 is taken")
	}
	if profile := options.GetProfiles()[0]; profile.GetSchedulerName() != "other" || profile.GetOptions().LoadLine != nil {
		t.Errorf("a profile has a line of its own: %v", profile)
	}
	_, err = parse([]byte(strings.ReplaceAll(text, "maxLimitRatio: 2", "preset: kep217")))
	if err == nil || !strings.Contains(err.Error(), "effective limits of all pods alike") {
		t.Errorf("error %v", err)
	}
	_, err = parse([]byte(text + "- {schedulerName: third, pluginConfig: [{name: NodeResourcesLimitAware, " +
		"args: {maxLimitsOverAllocatable: {memory: 2}}}]}\n"))
	if err == nil || !strings.Contains(err.Error(), "profiles[2]: pluginConfig of NodeResourcesLimitAware: the load line") {
		t.Errorf("error %v", err)
	}
}

package filterconfig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

const scheduler = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeAffinity
    args: {addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [a]}]}]}}}
  - name: PodTopologySpread
    args: {defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}], defaultingType: List}
  - name: NodeResourcesFit
    args: {ignoredResources: [example.com/a], ignoredResourceGroups: [example.org], scoringStrategy: {type: LeastAllocated}}
  - name: Other
    args: {ignoredResources: [no]}
- schedulerName: second
  pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [no]}}]
`

func optionsOf(t *testing.T, text string, defects ...string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "scheduler.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	options, err := Options(file, defects)
	if err != nil {
		return "", err
	}
	var affinity v1.NodeAffinity
	if err := affinity.Unmarshal(options.GetAddedAffinity()); err != nil {
		t.Fatal(err)
	}
	said := []string{}
	if affinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		said = append(said,
			affinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Key)
	}
	for _, data := range options.GetDefaultSpreadConstraints() {
		var constraint v1.TopologySpreadConstraint
		if err := constraint.Unmarshal(data); err != nil {
			t.Fatal(err)
		}
		said = append(said, constraint.TopologyKey)
	}
	said = append(append(said, options.GetIgnoredResources()...), options.GetIgnoredResourceGroups()...)
	if options.GetDefects().GetNamespaceSelectorSeesNoLabels() {
		said = append(said, "defect")
	}
	return strings.Join(said, " "), nil
}

func TestOptions(t *testing.T) {
	if got, err := optionsOf(t, scheduler); err != nil || got != "pool zone example.com/a example.org" {
		t.Errorf("got %q, error %v", got, err)
	}
	if got, err := optionsOf(t, "kind: KubeSchedulerConfiguration", NamespaceSelectorSeesNoLabels); err != nil ||
		got != "defect" {
		t.Errorf("got %q, error %v", got, err)
	}
	if options, err := Options("", nil); options != nil || err != nil {
		t.Errorf("got %v, error %v", options, err)
	}
	for text, says := range map[string]string{
		"kind: Pod": "must be KubeSchedulerConfiguration", "[": "yaml",
		"kind: KubeSchedulerConfiguration\nprofiles: [{pluginConfig: [{name: NodeAffinity, args: " +
			"{addedAffinity: 7}}]}]": "pluginConfig of NodeAffinity",
	} {
		if _, err := optionsOf(t, text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: error %v, want %q in it", text, err, says)
		}
	}
	if _, err := Options("", []string{"all"}); err == nil || !strings.Contains(err.Error(), `"all" is not known`) {
		t.Errorf("error %v", err)
	}
}

func TestLoadLineOfOurPluginHoldsForPlans(t *testing.T) {
	file := filepath.Join(t.TempDir(), "scheduler.yaml")
	const text = `
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesLimitAware
    args: {engineAddress: inprocess, maxLimitRatio: 2, maxLimitsOverAllocatable: {memory: 1.5},
      lineExemptNamespaces: [kube-system], onEngineFailure: Refuse}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	options, err := Options(file, nil)
	if err != nil {
		t.Fatal(err)
	}
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
	_, err = optionsOf(t, strings.ReplaceAll(text, "maxLimitRatio: 2", "preset: kep217"))
	if err == nil || !strings.Contains(err.Error(), "effective limits of all pods alike") {
		t.Errorf("error %v", err)
	}
}

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

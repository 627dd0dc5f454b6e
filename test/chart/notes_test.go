package chart

import (
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// notesOf returns what helm install prints.
func notesOf(t *testing.T, v values) string {
	t.Helper()
	c := load(t)
	all, err := chartutil.ToRenderValues(c, v, chartutil.ReleaseOptions{Name: "test", Namespace: "anywhere"},
		chartutil.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(c, all)
	if err != nil {
		t.Fatal(err)
	}
	return files["loadline/templates/NOTES.txt"]
}

// The notes have a command for each workload that waits until it is ready, whatever the name of the release.
func TestNotesCheckEachWorkload(t *testing.T) {
	for _, component := range []string{"scheduler", "scheduler.replace", "extender", "expander", "autoscaler", "usage"} {
		for _, name := range []string{"", "blue"} {
			component, replace := strings.CutSuffix(component, ".replace")
			v := setter{on(component)}.with("scheduler.replace", replace).with("fullnameOverride", name).values
			notes, workloads := notesOf(t, v), 0
			for _, o := range mustRender(t, load(t), "anywhere", v) {
				if kind := o.GetKind(); kind != "Deployment" && kind != "DaemonSet" {
					continue
				}
				workloads++
				want := "kubectl -n anywhere rollout status " + strings.ToLower(o.GetKind()) + "/" + o.GetName() + "\n"
				if !strings.Contains(notes, want) {
					t.Errorf("%s, name %q: no command %q in\n%s", component, name, want, notes)
				}
			}
			if workloads != 1 {
				t.Errorf("%s: %d workloads, want 1", component, workloads)
			}
		}
	}
}

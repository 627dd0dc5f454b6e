package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each command warns once, in the same words, of what plans do not see of the scheduler's configuration.
func TestWarningsOfTheSchedulersConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "scheduler.yaml")
	if err := os.WriteFile(file, []byte(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders: [{urlPrefix: "http://x", filterVerb: filter}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	want := "warning: " + file + ": extenders[0].filterVerb: what it refuses is not known here\n"
	for _, command := range []string{"top", "fit shop/wait-0", "why node-1", "drain", "slack", "bill", "rank", "plan"} {
		args := append(strings.Fields(command), "-f", "testdata/plan.yaml", "--scheduler-config-file", file)
		if command == "rank" || command == "plan" {
			args = append(args, "--groups", "testdata/plan-groups.yaml")
		}
		if _, errs, code := run(t, "loadline", "", args...); code != 0 || strings.Count(errs, want) != 1 {
			t.Errorf("%s: exit %d, %s", command, code, errs)
		}
	}
}

package usage

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"loadline.dev/shim/internal/promtest"
)

func TestNamesOfMetrics(t *testing.T) {
	promtest.Lint(t, NewMetrics("test").registry, "loadline_usage_pending_seconds",
		"loadline_usage_dropped_samples_total", "loadline_usage_question_duration_seconds")
}

// Alerts and panels ask for metrics that there are.
func TestMonitoringAsksForServedMetrics(t *testing.T) {
	families, err := NewMetrics("test").registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]bool{}
	for _, family := range families {
		served[family.GetName()] = true
	}
	for _, file := range []string{"30-rules.yaml", "dashboard.json"} {
		content, err := os.ReadFile("../../manifests/usage/monitoring/" + file)
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile(`loadline_usage_\w+`).FindAllString(string(content), -1)
		if len(names) < 5 {
			t.Errorf("%s asks for %d metrics only", file, len(names))
		}
		for _, name := range names {
			if !served[strings.TrimSuffix(name, "_bucket")] {
				t.Errorf("%s: no metric %s", file, name)
			}
		}
	}
}

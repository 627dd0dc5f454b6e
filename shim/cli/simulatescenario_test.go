package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"loadline.dev/shim/api/loadlinev1"
)

const exampleScenario = "../../docs/scenario.yaml"

func TestSimulateScenario(t *testing.T) {
	args := []string{"simulate", "--scenario", exampleScenario, "--days", "2", "--seed", "3", "-o", "json"}
	first, errs, code := run(t, "loadline", "", args...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	var data scenarioData
	if err := json.Unmarshal([]byte(first), &data); err != nil {
		t.Fatal(err)
	}
	if data.BoundUSD <= 0 || data.BoundUSD > data.USD || data.Growths == 0 {
		t.Errorf("%.2f dollars are spent with %d orders, and at least %.2f have to be", data.USD, data.Growths, data.BoundUSD)
	}
	if len(data.Digest) != 16 || data.Days != 2 || data.USD <= 0 || data.NodesAdded == 0 || len(data.Violations) > 0 ||
		data.PodWaitSeconds.P95 < data.PodWaitSeconds.P50 {
		t.Errorf("two days end as %+v", data)
	}
	if again, _, _ := run(t, "loadline", "", args...); again != first {
		t.Error("the same seed does not give the same answer")
	}
	other := run2(t, "simulate", "--scenario", exampleScenario, "--days", "2", "--seed", "4", "-o", "json")
	if strings.Contains(other, data.Digest) {
		t.Error("another seed gives the same digest")
	}
}

func run2(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, code := run(t, "loadline", "", args...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	return out
}

func TestSimulateTwoScenariosSideBySide(t *testing.T) {
	content, err := os.ReadFile(exampleScenario)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.yaml")
	if err := os.WriteFile(other, []byte(strings.Replace(string(content), "LEAST_ALLOCATED #", "MOST_ALLOCATED #", 1)),
		0o600); err != nil {
		t.Fatal(err)
	}
	page := run2(t, "simulate", "--scenario", exampleScenario, "--against", other, "-o", "html")
	for _, want := range []string{"Nodes", "Pods that wait for a node", "line0", "line1", "other.yaml", ">days<"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	table := run2(t, "simulate", "--scenario", exampleScenario, "--against", other)
	if !strings.Contains(table, "digest") {
		t.Errorf("the table is\n%s", table)
	}
}

func TestSimulateScenarioNamesTheField(t *testing.T) {
	for _, row := range []struct{ from, to, want string }{
		{"max: 60", "max: 60000", "groups[0].max"},
		{"name: web", "name: agent", "workloads[2].name"},
		{"replicas: 120", "replicas: -1", "workloads[0].replicas"},
		{"milliCpu: 900", "millicpu: 900", "millicpu"},
		{"scanSeconds: 10", "scanSeconds: -10", "settings.scanSeconds"},
		{"slackPercent: 10", "slackPercent: 5000", "settings.slackPercent"},
		{"restSeconds: 1800", "restSeconds: -1", "settings.consolidation"},
		{"leastSavingPercent: 2", "leastSavingPercent: 200", "least_saving_percent"},
		{"leaderEnds: 20000", "leaderEnds: 2000000", "faults.leaderEnds"},
	} {
		content, err := os.ReadFile(exampleScenario)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "scenario.yaml")
		if err := os.WriteFile(file, []byte(strings.Replace(string(content), row.from, row.to, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		_, errs, code := run(t, "loadline", "", "simulate", "--scenario", file)
		if code != 1 || !strings.Contains(errs, row.want) {
			t.Errorf("%s: exit code %d and %q, which does not name %s", row.to, code, errs, row.want)
		}
	}
}

// Each number of faults and settings arrives in the simulator: it refuses -1, and says of what.
func TestSimulateScenarioReadsAllFields(t *testing.T) {
	content, err := os.ReadFile(exampleScenario)
	if err != nil {
		t.Fatal(err)
	}
	head, _, found := strings.Cut(string(content), "  settings:")
	if !found {
		t.Fatal("the example has no settings")
	}
	for section, fields := range map[string]protoreflect.FieldDescriptors{
		"settings": (&loadlinev1.SimulatedSettings{}).ProtoReflect().Descriptor().Fields(),
		"faults":   (&loadlinev1.SimulatedFaults{}).ProtoReflect().Descriptor().Fields(),
	} {
		for i := range fields.Len() {
			field := fields.Get(i)
			if field.Kind() != protoreflect.Int64Kind && field.Kind() != protoreflect.DoubleKind {
				continue
			}
			file := filepath.Join(t.TempDir(), "scenario.yaml")
			text := head + "  " + section + ":\n    " + field.JSONName() + ": -1\n"
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, errs, code := run(t, "loadline", "", "simulate", "--scenario", file)
			said := strings.ToLower(strings.ReplaceAll(errs, ".", ""))
			if code != 1 || !strings.Contains(said, strings.ToLower(section+field.JSONName())) {
				t.Errorf("%s.%s: -1 ends with %d and %q", section, field.JSONName(), code, errs)
			}
		}
	}
}

package cli

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loadline.dev/shim/autoscaler/config"
)

const smallSweep = `apiVersion: loadline.dev/v1alpha1
kind: Sweep
metadata: {name: small}
spec:
  inputs:
  - {scenario: scenario.yaml}
  - {name: drains, dump: drain.json, load: {dailyPercent: 50}}
  days: 1
  seeds: {count: 2}
  settings: [{path: settings.slackPercent, values: [0, 20]}]
  goal: {p95WaitSeconds: 100}
`

// sweepFolder has a sweep of docs/scenario.yaml and a dump.
func sweepFolder(t *testing.T, file string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, from := range map[string]string{"scenario.yaml": exampleScenario, "drain.json": "testdata/drain.json"} {
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "sweep.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Rows are the same by one worker and by four, and each can be run again alone with its digest.
func TestSweepHere(t *testing.T) {
	dir := sweepFolder(t, smallSweep)
	file := filepath.Join(dir, "sweep.yaml")
	one := run2(t, "sweep", file, "--results", filepath.Join(dir, "one"), "--workers", "1", "-o", "csv")
	four := run2(t, "sweep", file, "--results", filepath.Join(dir, "four"), "--workers", "4", "-o", "csv")
	if one != four {
		t.Errorf("four workers give\n%s\nand one\n%s", four, one)
	}
	rows, err := csv.NewReader(strings.NewReader(one)).ReadAll()
	if err != nil || len(rows) != 13 { // two inputs, three points, two seeds
		t.Fatalf("%d lines, %v", len(rows), err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	for _, number := range []int{3, 10} {
		row := rows[1+number]
		var again scenarioData
		out := run2(t, "simulate", "--row", row[column["row"]], file, "-o", "json")
		if err := json.Unmarshal([]byte(out), &again); err != nil || again.Digest != row[column["digest"]] {
			t.Errorf("row %d has digest %s again, and had %s: %v", number, again.Digest, row[column["digest"]], err)
		}
	}
	if rows[3][column["limits_over_allocatable_cpu_p99"]] == "0" || rows[3][column["nodes_mean"]] == "0" {
		t.Errorf("the third row is %v", rows[3])
	}
	for _, name := range []string{"rows.csv", "rows.parquet", "rows.jsonl"} {
		if _, err := os.Stat(filepath.Join(dir, "four", name)); err != nil {
			t.Error(err)
		}
	}
	// All rows are there: nothing is simulated again.
	_, errs, code := run(t, "loadline", "", "sweep", file, "--results", filepath.Join(dir, "one"))
	if code != 0 || !strings.Contains(errs, "12 rows of at most 12 are there already") || strings.Contains(errs, "to simulate") {
		t.Errorf("again: %d, %s", code, errs)
	}
	checkConfigurations(t, run2(t, "sweep", file, "--results", filepath.Join(dir, "one"), "-o", "json"))
	page := run2(t, "sweep", file, "--results", filepath.Join(dir, "one"), "-o", "html")
	for _, want := range []string{"Cost against waiting time", "drains", "all together", "today", "What each setting does",
		"kind: AutoscalerConfiguration"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
}

// checkConfigurations sees that the autoscaler takes each configuration that is there to copy, and with what was
// chosen.
func checkConfigurations(t *testing.T, out string) {
	t.Helper()
	var data sweepData
	if err := json.Unmarshal([]byte(out), &data); err != nil {
		t.Fatal(err)
	}
	if len(data.Inputs) != 3 || data.Inputs[0].Name != "all together" || data.Inputs[2].Name != "drains" {
		t.Fatalf("inputs %+v", data.Inputs)
	}
	for _, in := range data.Inputs {
		if in.Best == nil {
			continue
		}
		file := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(file, []byte(in.Configuration), 0o600); err != nil {
			t.Fatal(err)
		}
		c := config.Default()
		if err := c.Load(file); err != nil {
			t.Errorf("%s: %v\n%s", in.Name, err, in.Configuration)
		}
		if slack, ok := in.Best.Settings["settings.slackPercent"]; ok &&
			!strings.Contains(in.Configuration, "extraCapacityMinRate: "+slack+"%") {
			t.Errorf("%s: a slack of %s %% is chosen, and the configuration is\n%s", in.Name, slack, in.Configuration)
		}
	}
}

func TestSweepNamesWhatIsWrong(t *testing.T) {
	for _, row := range []struct{ from, to, want string }{
		{"values: [0, 20]", "values: [0, 5000]", "settings.slackPercent"},
		{"scenario: scenario.yaml", "scenario: none.yaml", "none.yaml"},
		{"path: settings.slackPercent", "path: settings.slackpercent", "slackpercent"},
		{"days: 1", "dais: 1", "dais"},
	} {
		dir := sweepFolder(t, strings.Replace(smallSweep, row.from, row.to, 1))
		_, errs, code := run(t, "loadline", "", "sweep", filepath.Join(dir, "sweep.yaml"), "--results",
			filepath.Join(dir, "r"))
		if code != 1 || !strings.Contains(strings.ReplaceAll(errs, "slack_percent", "slackPercent"), row.want) {
			t.Errorf("%s: exit code %d and %q, which does not name %s", row.to, code, errs, row.want)
		}
	}
}

func TestSweepPrintsItsJob(t *testing.T) {
	dir := sweepFolder(t, smallSweep)
	out := run2(t, "sweep", filepath.Join(dir, "sweep.yaml"), "--on-cluster", "--dry-run", "-n", "sweeps", "--queue", "team",
		"--shards", "5", "--image", "registry.example/loadline:v1")
	for _, want := range []string{"completionMode: Indexed", "completions: 4", "kueue.x-k8s.io/queue-name: team",
		"backoffLimitPerIndex: 3", "maxFailedIndexes: 4", "type: DisruptionTarget", "namespace: sweeps", "rows: 0-11",
		"--rows-per-shard=3", "image: registry.example/loadline:v1"} {
		if !strings.Contains(out, want) {
			t.Errorf("the objects do not have %q:\n%s", want, out)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "sweep-small")); err == nil {
		t.Error("a dry run leaves a folder")
	}
}

func TestSweepOnAClusterNeedsAnImage(t *testing.T) {
	dir := sweepFolder(t, smallSweep)
	_, errs, code := run(t, "loadline", "", "sweep", filepath.Join(dir, "sweep.yaml"), "--on-cluster", "--dry-run")
	if code != 2 || !strings.Contains(errs, "--image is missing: name the image") {
		t.Errorf("without --image: exit code %d and %q", code, errs)
	}
}

func TestBillOfAFleet(t *testing.T) {
	dir := sweepFolder(t, smallSweep)
	one, other := "testdata/drain.json", filepath.Join(dir, "drain.json")
	out := run2(t, "bill", one, other, "--now", drainNow, "-o", "json")
	var got fleetAnswer
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Clusters) != 2 || got.Now < 16*drainNodePrice-1e-6 || got.Now > 16*drainNodePrice+1e-6 ||
		got.Clusters[0].Nodes != 8 || got.Clusters[1].Bound != nil || got.Bound != nil {
		t.Errorf("the bill is %+v", got)
	}
	if len(got.Moves) < 2 || got.Moves[0].Saves != got.Moves[1].Saves || got.Moves[0].Cluster == got.Moves[1].Cluster {
		t.Errorf("two clusters that are alike have moves %+v", got.Moves)
	}
	out, errs, code := run(t, "loadline", "", "bill", one, "/nonexistent", "--now", drainNow)
	if code != 1 || !strings.Contains(errs, "/nonexistent") || !strings.Contains(out, "drain.json") {
		t.Errorf("with one that is not there: %d, %s, %s", code, errs, out)
	}
}

// The example of docs/sweeps.md: a line of expected use is the cheapest that keeps the goal. Without a line all costs
// less, and nodes are overloaded.
func TestALineIsChosenByRisk(t *testing.T) {
	out, errs, code := run(t, "loadline", "", "sweep", "../../docs/line-sweep.yaml", "--results", t.TempDir(), "-o", "json")
	if code != 0 {
		t.Fatal(errs)
	}
	var got sweepData
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	best, today := got.Inputs[0].Best, got.Inputs[0].Today
	if got.OverloadGoal == nil || best == nil || best.OverloadNodeHours.Mean > *got.OverloadGoal {
		t.Fatalf("goal %v, best %+v", got.OverloadGoal, best)
	}
	if len(best.Settings) != 1 || best.Settings["settings.maxExpectedOverAllocatable.cpu"] == "" {
		t.Errorf("the best sets %v", best.Settings)
	}
	if today.OverloadNodeHours.Mean < 10**got.OverloadGoal || today.USD.Mean > best.USD.Mean {
		t.Errorf("without a line %+v, best %+v", today, best)
	}
}

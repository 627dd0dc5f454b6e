package sweep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"google.golang.org/protobuf/proto"

	"loadline.dev/shim/api/loadlinev1"
)

const front = "apiVersion: loadline.dev/v1alpha1\nkind: Sweep\nmetadata: {name: s}\nspec:\n  inputs: [{scenario: a.yaml}]\n"

func scenarioOf(groups ...string) *loadlinev1.Scenario {
	s := &loadlinev1.Scenario{}
	for _, name := range groups {
		s.Groups = append(s.Groups, &loadlinev1.SimulatedGroup{Name: name, Max: 10})
	}
	return s
}

func planOf(t *testing.T, spec string, inputs ...string) *Plan {
	t.Helper()
	file, err := ParseFile([]byte(front + spec))
	if err != nil {
		t.Fatal(err)
	}
	if len(inputs) == 0 {
		inputs = []string{"a"}
	}
	var scenarios []*loadlinev1.Scenario
	for range inputs {
		scenarios = append(scenarios, scenarioOf("g"))
	}
	plan, err := NewPlan(file, inputs, scenarios)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func TestParseFileNamesTheFieldThatIsWrong(t *testing.T) {
	for _, row := range []struct{ spec, want string }{
		{"  dais: 3\n", "dais"},
		{"  days: 500\n", "spec.days"},
		{"  seeds: {count: -1}\n", "spec.seeds.count"},
		{"  settings: [{path: settings.slackPercent}]\n", "values and range"},
		{"  settings: [{path: settings.slackPercent, range: {from: 3, to: 1}}]\n", "spec.settings[0].range"},
		{"  settings: [{path: settings.slackPercent, range: {from: 0, to: 1}}]\n", "range.steps"},
		{"  search: {kind: Best}\n", "spec.search.kind"},
		{"  search: {kind: Random}\n", "spec.search.points"},
		{"  search: {kind: Halving}\n", "spec.goal"},
		{"  search: {points: 4}\n", "spec.search.points"},
		{"  goal: {p95WaitSeconds: 3, maxWaitSeconds: 2}\n", "spec.goal"},
	} {
		if _, err := ParseFile([]byte(front + row.spec)); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: error %v does not name %s", row.spec, err, row.want)
		}
	}
	for _, row := range []struct{ from, to, want string }{
		{"kind: Sweep", "kind: Scenario", "kind"}, {"name: s", "name: S", "metadata.name"},
		{"{scenario: a.yaml}", "{}", "inputs[0]"}, {"{scenario: a.yaml}", "", "spec.inputs"},
		{"{scenario: a.yaml}", "{scenario: a.yaml, prices: [p]}", "inputs[0]"},
	} {
		if _, err := ParseFile([]byte(strings.Replace(front, row.from, row.to, 1))); err == nil ||
			!strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: error %v does not name %s", row.to, err, row.want)
		}
	}
}

func TestPointsAreSetByPath(t *testing.T) {
	plan := planOf(t, `  settings:
  - {path: settings.score, values: [MOST_ALLOCATED]}
  - {path: settings.utilizationThreshold, values: [0]}
  - {path: groups.g.max, range: {from: 4, to: 10, steps: 2}}
  - {path: faults.spotInterruption, values: [7]}
`)
	want := []string{AsItIs, "score=MOST_ALLOCATED utilizationThreshold=0 groups.g.max=4 faults.spotInterruption=7",
		"score=MOST_ALLOCATED utilizationThreshold=0 groups.g.max=10 faults.spotInterruption=7"}
	for i, w := range want {
		if got := plan.Points[i].String(); got != w {
			t.Errorf("point %d is %q, want %q", i, got, w)
		}
	}
	request, err := plan.Request(1)
	if err != nil {
		t.Fatal(err)
	}
	s := request.GetScenario()
	if s.GetSettings().GetScore() != loadlinev1.SimulatedSettings_MOST_ALLOCATED || s.GetGroups()[0].GetMax() != 4 ||
		s.GetSettings().UtilizationThreshold == nil || s.GetFaults().GetSpotInterruption() != 7 {
		t.Errorf("the scenario is %v", s)
	}
	if today, _ := plan.Request(0); !proto.Equal(today.GetScenario(), scenarioOf("g")) {
		t.Errorf("as it is, the scenario is %v", today.GetScenario())
	}
	for _, row := range []struct{ setting, want string }{
		{"path: settings.slackPerzent, values: [1]", "slackPerzent"},
		{"path: groups.h.max, values: [1]", `no "h"`},
		{"path: groups.g, values: [1]", "name a field"},
		{"path: groups, values: [1]", "is a list"},
		{"path: settings, values: [1]", "name a field"},
		{"path: settings.slackPercent.x, values: [1]", "has no fields"},
		{"path: settings.slackPercent, values: [1.5]", "1.5"},
		{"path: settings.score, values: [FAST]", "FAST"},
	} {
		file, err := ParseFile([]byte(front + "  settings: [{" + row.setting + "}]\n"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewPlan(file, []string{"a"}, []*loadlinev1.Scenario{scenarioOf("g")}); err == nil ||
			!strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: error %v does not name %s", row.setting, err, row.want)
		}
	}
}

func TestRandomPointsFollowFromTheSeed(t *testing.T) {
	const spec = `  settings:
  - {path: settings.slackPercent, range: {from: 0, to: 50}}
  - {path: settings.utilizationThreshold, range: {from: 0.1, to: 0.9, log: true}}
  search: {kind: Random, points: 200, seed: %d}
`
	one, again, other := planOf(t, fmt.Sprintf(spec, 1)), planOf(t, fmt.Sprintf(spec, 1)), planOf(t, fmt.Sprintf(spec, 2))
	if one.Digest != again.Digest || one.Points[7].String() != again.Points[7].String() {
		t.Error("the same seed draws other points")
	}
	if one.Points[7].String() == other.Points[7].String() {
		t.Error("another seed draws the same point")
	}
	below := 0
	for _, p := range one.Points[1:] {
		slack, threshold := p[0].Value.(float64), p[1].Value.(float64)
		if slack < 0 || slack > 50 || slack != float64(int(slack)) || threshold < 0.1 || threshold > 0.9 {
			t.Errorf("%s is out of range", p)
		}
		if threshold < 0.3 { // half of all, evenly by ratio
			below++
		}
	}
	if below < 70 || below > 130 {
		t.Errorf("%d of 200 are below the middle", below)
	}
}

// simulated is a month of a simulator for tests: it costs less and waits longer with less slack, give or take its seed.
func simulated(_ context.Context, r *loadlinev1.SimulateRequest) (*loadlinev1.SimulateResponse, error) {
	slack := float64(r.GetScenario().GetSettings().GetSlackPercent())
	noise := float64(r.GetSeed()%7) / 10
	return &loadlinev1.SimulateResponse{Digest: uint64(r.GetSeed())*1000 + uint64(slack), Usd: 100 + slack + noise,
		Waits: &loadlinev1.SimulatedWaits{P95: 100 - 2*slack + noise}, Load: &loadlinev1.SimulatedLoad{NodesMean: 3}}, nil
}

func journalOf(t *testing.T, plan *Plan, dir string) *Journal {
	t.Helper()
	j, err := OpenJournal(dir, plan, "v")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func runAll(t *testing.T, plan *Plan, workers int, shuffle bool, simulate Simulate) []*Row {
	t.Helper()
	j := journalOf(t, plan, t.TempDir())
	for {
		rows := plan.Next(j.Rows())
		if len(rows) == 0 {
			return Sorted(j.Rows())
		}
		if shuffle {
			rand.Shuffle(len(rows), func(x, y int) { rows[x], rows[y] = rows[y], rows[x] })
		}
		if err := plan.Run(t.Context(), rows, slices.Repeat([]Simulate{simulate}, workers), j.Add); err != nil {
			t.Fatal(err)
		}
	}
}

const slacks = "  settings: [{path: settings.slackPercent, range: {from: 0, to: 45, steps: 46}}]\n" +
	"  seeds: {count: 9}\n  goal: {p95WaitSeconds: 60}\n"

// Same inputs, same rows: whatever the order and the number of workers, as bytes.
func TestRowsDependOnInputsAlone(t *testing.T) {
	for _, search := range []string{"", "  search: {kind: Halving, firstSeeds: 2, keepPercent: 30}\n"} {
		plan := planOf(t, slacks+search, "a", "b")
		var csvs, parquets []string
		for _, workers := range []int{1, 4} {
			rows := runAll(t, plan, workers, workers > 1, simulated)
			var csv, parquet bytes.Buffer
			if err := errors.Join(plan.WriteCSV(&csv, rows), plan.WriteParquet(&parquet, rows)); err != nil {
				t.Fatal(err)
			}
			csvs, parquets = append(csvs, csv.String()), append(parquets, parquet.String())
		}
		if csvs[0] != csvs[1] || parquets[0] != parquets[1] {
			t.Errorf("%s: 4 workers in any order give other bytes than 1", search)
		}
	}
}

// 46 points and today's: the cheapest that meets the goal of 60 has a slack of 20 (60 s, and up to 0.6 by the seed, so
// 21). Halving finds it with fewer months: 2 seeds of 47, 6 of 15 and 9 of 5 and today's.
func TestHalvingFindsTheCheapestWithinTheGoal(t *testing.T) {
	all := planOf(t, slacks)
	halved := planOf(t, slacks+"  search: {kind: Halving, firstSeeds: 2, keepPercent: 30}\n")
	allRows, rows := runAll(t, all, 2, false, simulated), runAll(t, halved, 2, false, simulated)
	best, want := halved.Summaries(rows)[0].Best, all.Summaries(allRows)[0].Best
	if best == nil || want == nil || best.Point != want.Point || halved.Points[best.Point].Get("settings.slackPercent") != "21" {
		t.Errorf("best is %+v, want %+v", best, want)
	}
	if want := 47*2 + 16*4 + 6*3; len(rows) != want {
		t.Errorf("%d months, want %d", len(rows), want)
	}
}

func TestJournalContinuesWhereItWas(t *testing.T) {
	plan, dir := planOf(t, slacks), t.TempDir()
	j := journalOf(t, plan, dir)
	if err := plan.Run(t.Context(), plan.Next(j.Rows())[:10], []Simulate{simulated}, j.Add); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenJournal(dir, plan, "v"); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("two have the folder: %v", err)
	}
	if err := j.Add(&Row{Row: 3, Digest: "other"}); err == nil {
		t.Error("another row 3 is taken")
	}
	j.Close()
	file := filepath.Join(dir, journalName)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content[:len(content)-5], 0o600); err != nil { // cut off in the last line
		t.Fatal(err)
	}
	j = journalOf(t, plan, dir)
	if there := len(j.Rows()); there != 9 {
		t.Errorf("%d rows are there, want 9", there)
	}
	ran := 0
	counting := func(ctx context.Context, r *loadlinev1.SimulateRequest) (*loadlinev1.SimulateResponse, error) {
		ran++
		return simulated(ctx, r)
	}
	if err := plan.Run(t.Context(), plan.Next(j.Rows()), []Simulate{counting}, j.Add); err != nil {
		t.Fatal(err)
	}
	if want := plan.Rows() - 9; ran != want {
		t.Errorf("%d months ran, want %d", ran, want)
	}
	j.Close()
	if _, err := OpenJournal(dir, planOf(t, slacks+"  days: 2\n"), "v"); err == nil ||
		!strings.Contains(err.Error(), "another sweep") {
		t.Errorf("another sweep goes on there: %v", err)
	}
	if _, err := OpenJournal(dir, plan, "w"); err == nil || !strings.Contains(err.Error(), "engine") {
		t.Errorf("another engine goes on there: %v", err)
	}
}

func TestRunEndsWithTheFirstErrorAndNamesTheRow(t *testing.T) {
	plan := planOf(t, slacks)
	failing := func(ctx context.Context, r *loadlinev1.SimulateRequest) (*loadlinev1.SimulateResponse, error) {
		if r.GetSeed() == 5 {
			return nil, errors.New("no")
		}
		return simulated(ctx, r)
	}
	err := plan.Run(t.Context(), plan.Next(nil), []Simulate{failing}, func(*Row) error { return nil })
	if err == nil || err.Error() != "row 4: a, as it is, seed 5: no" {
		t.Errorf("error %v", err)
	}
}

func TestBundlesHaveAllOfAPlan(t *testing.T) {
	plan := planOf(t, slacks, "a", "b")
	packed, err := plan.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	read, err := ReadBundle(bytes.NewReader(packed), plan.Digest)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []int{0, plan.Rows() / 2, plan.Rows() - 1} {
		one, _ := plan.Request(row)
		other, _ := read.Request(row)
		if !proto.Equal(one, other) || plan.Describe(row) != read.Describe(row) {
			t.Errorf("row %d is %v, and was %v", row, other, one)
		}
	}
	if _, err := ReadBundle(bytes.NewReader(packed), "f00"); err == nil {
		t.Error("another digest will do")
	}
}

// Three points: today's costs 100 and waits 100; a slack of 10, 110 and 80; one of 30, 130 and 40.
func TestSummariesTellFrontBestAndEffects(t *testing.T) {
	plan := planOf(t, "  settings: [{path: settings.slackPercent, values: [10, 30]}]\n  goal: {p95WaitSeconds: 90}\n", "a", "b")
	same := func(ctx context.Context, r *loadlinev1.SimulateRequest) (*loadlinev1.SimulateResponse, error) {
		r.Seed = 7
		return simulated(ctx, r)
	}
	summaries := plan.Summaries(runAll(t, plan, 1, false, same))
	if len(summaries) != 3 || summaries[0].Input != Everything || summaries[2].Input != "b" {
		t.Fatalf("summaries %+v", summaries)
	}
	for i, factor := range []float64{2, 1, 1} {
		s := summaries[i]
		if s.Best == nil || s.Best.Point != 1 || s.Best.USD.Mean != 110*factor || s.Best.Wait.Mean != 80 {
			t.Errorf("%s: best is %+v", s.Input, s.Best)
		}
		if s.Today.USD.Mean != 100*factor || s.Today.Meets || !s.Today.OnFront || !s.Outcomes[2].OnFront {
			t.Errorf("%s: today is %+v", s.Input, s.Today)
		}
	}
	want := []Effect{{"settings.slackPercent", "10", 1, 110, 80}, {"settings.slackPercent", "30", 1, 130, 40}}
	if got := plan.Effects(&summaries[1]); !slices.Equal(got, want) {
		t.Errorf("effects %+v, want %+v", got, want)
	}
}

func TestParquetHasTheColumnsOfTheCSV(t *testing.T) {
	plan := planOf(t, "  settings: [{path: settings.slackPercent, values: [10]}, {path: settings.score, values: [LIMIT_AWARE]}]\n")
	rows := runAll(t, plan, 1, false, simulated)
	var file bytes.Buffer
	if err := plan.WriteParquet(&file, rows); err != nil {
		t.Fatal(err)
	}
	type row struct {
		Row   int64    `parquet:"row,optional"`
		Input string   `parquet:"input,optional"`
		USD   float64  `parquet:"usd,optional"`
		Slack *float64 `parquet:"settings.slackPercent,optional"`
		Score *string  `parquet:"settings.score,optional"`
	}
	read, err := parquet.Read[row](bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if len(read) != 2 || read[0].Slack != nil || read[1].Slack == nil || *read[1].Slack != 10 || *read[1].Score != "LIMIT_AWARE" ||
		read[1].Row != 1 || read[1].Input != "a" || read[1].USD != rows[1].USD {
		t.Errorf("the file has %+v", read)
	}
}

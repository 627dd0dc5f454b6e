package race_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loadline.dev/test/e2e/harness"
	"loadline.dev/test/e2e/race"
)

// A minute with few pods shows that the command works: no number of it is compared with another one.
func TestTheRaceRuns(t *testing.T) {
	s, err := race.Draw(race.Smoke, 1)
	if err != nil {
		t.Fatal(err)
	}
	contestants := map[string]func(*testing.T) *race.Contestant{
		"loadline": func(*testing.T) *race.Contestant {
			return race.LoadlineWith("loadline", race.Settings{SlackPercent: 10, Threshold: 0.5})
		},
		"karpenter": func(t *testing.T) *race.Contestant {
			if !harness.KarpenterIsBuilt() {
				if err := harness.NoteSkipped(t.Name(), "race-smoke"); err != nil {
					t.Error(err)
				}
				t.Skip("Karpenter is not built: make race-smoke takes some minutes for it")
			}
			built, err := harness.BuildKarpenter(t.Context(), t.Logf)
			if err != nil {
				t.Fatal(err)
			}
			return race.Karpenter(built)
		},
	}
	for name, contestant := range contestants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			who := contestant(t)
			result := &race.Result{}
			run, err := race.Compete(t.Context(), s, who, t.Logf)
			if err != nil {
				t.Fatal(err)
			}
			// Six pods and four of the job, and more where some were evicted.
			if run.Waits.Pods < 10 || run.LeftWaiting > 0 || run.NodesAdded == 0 || run.USD < run.BoundUSD || run.BoundUSD <= 0 {
				t.Errorf("measured %+v", run.Measured)
			}
			result.Put(s, run)
			if who.Simulated != nil {
				simulated, err := race.Simulate(t.Context(), s, who, t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				result.Put(s, simulated)
			}
			check(t, result, name)
		})
	}
}

// check writes and reads what has run.
func check(t *testing.T, result *race.Result, name string) {
	t.Helper()
	var table bytes.Buffer
	if err := result.Table(&table); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if _, err := result.Write(folder); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(folder, "smoke-1.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{table.String(), string(page)} {
		if !strings.Contains(strings.ToLower(text), name) {
			t.Errorf("%s is missing in\n%s", name, text)
		}
	}
	again, err := race.Read(folder)
	if err != nil || len(again.Heats) != 1 || len(again.Heats[0].Runs) != len(result.Heats[0].Runs) {
		t.Errorf("what was written is read as %+v: %v", again, err)
	}
}

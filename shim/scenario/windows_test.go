package scenario

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func withPolicy(policy string) []byte {
	return []byte(head + "spec: {settings: {replace: true, consolidation: {leastSavingPercent: 3, " + policy + "}}}\n")
}

func TestReplacementWindowsAreExpanded(t *testing.T) {
	_, scenario, err := parse(withPolicy(`replacementWindows: ["0 22 * * 1-5 6h Europe/Berlin", "0 12 1 12 * 30m"]`))
	if err != nil {
		t.Fatal(err)
	}
	settings := scenario.GetSettings()
	if !settings.GetReplace() || settings.GetConsolidation().GetLeastSavingPercent() != 3 {
		t.Errorf("settings beside the windows are lost: %v", settings)
	}
	var got []string
	for _, window := range settings.GetConsolidation().GetWindows().GetWindows() {
		got = append(got, time.Unix(window.GetFromS(), 0).UTC().Format(time.RFC3339)+" "+
			fmt.Sprint(window.GetUntilS()-window.GetFromS()))
	}
	// 400 days from a Monday on are 57 weeks of five days and one more Monday. Two of them have the first of December.
	if want := 57*5 + 1 + 2; len(got) != want {
		t.Errorf("%d windows, want %d", len(got), want)
	}
	for i, want := range map[int]string{0: "2023-11-13T21:00:00Z 21600", 5: "2023-11-20T21:00:00Z 21600",
		286: "2023-12-01T12:00:00Z 1800"} {
		if i < len(got) && got[i] != want {
			t.Errorf("window %d is %s, want %s", i, got[i], want)
		}
	}
}

func TestReplacementWindowsThatAreWrong(t *testing.T) {
	const field = "spec.settings.consolidation.replacementWindows: "
	for policy, want := range map[string]string{
		`replacementWindows: 22`:                                field + "must be a list of texts",
		`replacementWindows: [0 22 * *]`:                        field + "\"0 22 * *\" must have the five fields",
		`replacementWindows: ["*/5 * * * * 1m"]`:                field + "\"*/5 * * * * 1m\": with those before it",
		`replacementWindows: [0 22 * * * 6h Local]`:             field + "\"0 22 * * * 6h Local\": a time zone must be named",
		`replacementWindows: [0 22 * * * 6h], windows: {}`:      field + "has windows beside it",
		`replacementWindows: [0 22 * * * 6h], restSecond: 1800`: "restSecond",
	} {
		if _, _, err := parse(withPolicy(policy)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v has no %q", policy, err, want)
		}
	}
	if _, scenario, err := parse(withPolicy("replacementWindows: []")); err != nil ||
		scenario.GetSettings().GetConsolidation().GetWindows() != nil {
		t.Errorf("at any time: %v, %v", scenario, err)
	}
}

// The engine begins when the documents and we say so.
func TestASimulationBeginsWhenTheEngineSays(t *testing.T) {
	for _, file := range []string{"../../core/sim/world.h", "../../docs/scenario.yaml"} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.ReplaceAll(string(content), "'", ""), fmt.Sprint(begins)) {
			t.Errorf("%s does not name %d", file, begins)
		}
	}
	if weekday := time.Unix(begins, 0).UTC().Weekday(); weekday != time.Monday {
		t.Errorf("it begins on a %v", weekday)
	}
}

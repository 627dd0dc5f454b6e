package race

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

// drawnUp is a result that nobody has measured.
func drawnUp(t *testing.T) (*Result, *Scenario) {
	t.Helper()
	s, err := Draw(Services, 1)
	if err != nil {
		t.Fatal(err)
	}
	result := &Result{Date: "1 January 2026", Machine: "2 cores", Command: "make race"}
	for i, name := range []string{"loadline", "loadline-no-slack", "karpenter"} {
		run := &Run{Contestant: name, Settings: "--some=flag", Measured: Measured{USD: 0.7 - 0.1*float64(i), USDWithStarts: 0.75,
			BoundUSD: 0.4, Evictions: 10 * i, NodesAdded: 20, NodesRemoved: 15,
			Waits: Waits{Pods: 100, Mean: 5, P50: 4, P95: 12, Max: 18}}}
		for at := range 401 {
			wave := 1 - math.Cos(float64(at)/60)
			run.Series = append(run.Series, Moment{Seconds: float64(at), Nodes: 10 + int(10*wave),
				Waiting: at / 20 % 7, USDPerHour: 4 + (4+float64(i))*wave, BoundUSDPerHour: 3 + 3*wave,
				Evictions: at / 20})
		}
		result.Put(s, run)
	}
	result.Put(s, &Run{Contestant: "loadline", Simulated: true, Measured: Measured{USDWithStarts: 0.74, BoundUSD: 0.4}})
	return result, s
}

func TestARunReplacesAnEarlierOne(t *testing.T) {
	result, s := drawnUp(t)
	result.Put(s, &Run{Contestant: "karpenter"})
	if len(result.Heats) != 1 || len(result.Heats[0].Runs) != 4 || result.Heats[0].Runs[2].USD != 0 {
		t.Errorf("the heat has %d runs: %+v", len(result.Heats[0].Runs), result.Heats[0].Runs[2])
	}
}

func TestTableAndPageHaveAllRuns(t *testing.T) {
	result, _ := drawnUp(t)
	var table, page bytes.Buffer
	if err := result.Table(&table); err != nil {
		t.Fatal(err)
	}
	if err := result.Heats[0].Page(&page, result); err != nil {
		t.Fatal(err)
	}
	if file := os.Getenv("RACE_PAGE"); file != "" {
		if err := os.WriteFile(file, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"loadline-no-slack", "karpenter", "loadline, simulated", "batch gone"} {
		if !strings.Contains(table.String(), want) || !strings.Contains(page.String(), want) {
			t.Errorf("%q is missing in\n%s", want, table.String())
		}
	}
	// In the last tenth, from 360 s to 400 s: hand-counted for the first run.
	usd, least := 0.0, 0.0
	for at := 360; at <= 400; at++ {
		wave := 1 - math.Cos(float64(at)/60)
		usd, least = usd+4+4*wave, least+3+3*wave
	}
	if got := fmt.Sprintf("%.2f", result.Heats[0].Runs[0].AtRest()); got != fmt.Sprintf("%.2f", usd/least) {
		t.Errorf("at rest: %s, want %.2f", got, usd/least)
	}
	if !strings.Contains(page.String(), "karpenter costs least: 0.500") {
		t.Error("the page does not say who costs least")
	}
}

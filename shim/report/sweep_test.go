package report

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
)

func sweepPageOf(t *testing.T, s *Sweep) string {
	t.Helper()
	var page bytes.Buffer
	if err := s.Write(&page); err != nil {
		t.Fatal(err)
	}
	if file := os.Getenv("SWEEP_PAGE"); file != "" { // to look at
		if err := os.WriteFile(file, page.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return page.String()
}

// exampleSweep has points that cost less the longer pods wait, some of them not worth their price.
func exampleSweep() *Sweep {
	section := SweepSection{Title: "east", Verdict: "Cheapest with a p95 wait of at most 60 s: slackPercent=10.",
		WaitName: "p95 wait", GoalSeconds: 60, Configuration: "kind: AutoscalerConfiguration\n",
		Chosen: Grid{Header: []string{"US dollars"}, Rows: [][]string{{"140.00"}}}}
	for i := range 60 {
		wait := 10 + 2*float64(i)
		usd := 100 + 3000/wait + float64(i*37%20)
		section.Points = append(section.Points, SweepPoint{Name: fmt.Sprintf("slackPercent=%d", i),
			USD: SweepSpread{usd, usd - 4, usd + 5}, Wait: SweepSpread{wait, wait - 3, wait + 6}, OnFront: i*37%20 == 0,
			Today: i == 50, Best: i == 20})
	}
	for _, setting := range []string{"settings.slackPercent", "settings.score"} {
		for i := range 3 {
			section.Effects = append(section.Effects, SweepEffect{setting, fmt.Sprint("<", i), 120 + 10*float64(i),
				90 - 20*float64(i)})
		}
	}
	return &Sweep{Title: "Sweep: shop", Verdict: "Cheapest: <b>", Lines: []string{"60 months."},
		Fleet:    Grid{Header: []string{"cluster", "saved"}, Rows: [][]string{{"east", "12 %"}, {"west", "3 %"}}},
		Fronts:   []SweepFront{{"east", []SweepFrontPoint{{10, 180}, {50, 90}}}, {"west", []SweepFrontPoint{{30, 100}}}},
		Sections: []SweepSection{section}}
}

func TestSweepPage(t *testing.T) {
	page := sweepPageOf(t, exampleSweep())
	for text, count := range map[string]int{
		"<circle class=\"other\"": 56 + 1, "<circle class=\"front\"": 3 - 1 + 1, "<circle class=\"today\"": 2, "<circle class=\"best\"": 2,
		"Cheapest: &lt;b&gt;": 1, "kind: AutoscalerConfiguration": 1, "&lt;2": 2, "cheapest within the goal": 1,
		"<path class=\"line0\" d=\"M": 3, "<path class=\"line1\" d=\"M": 1, "class=\"goal\"": 3, "<script": 0, "http": 1, // the legend has one of each; http-equiv
	} {
		if got := strings.Count(page, text); got != count {
			t.Errorf("%q is there %d times, want %d", text, got, count)
		}
	}
}

// Without points, and with a single one, there is nothing to draw a scale from.
func TestSweepPageOfFewPoints(t *testing.T) {
	for _, points := range [][]SweepPoint{nil, {{Name: "as it is", Today: true, OnFront: true}}} {
		page := sweepPageOf(t, &Sweep{Sections: []SweepSection{{Points: points}}})
		if strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
			t.Errorf("%d points: the page has what is no number", len(points))
		}
	}
}

// A goal is drawn where it is: at 60 of an axis that ends beyond the longest wait.
func TestSweepChartIsToScale(t *testing.T) {
	s := SweepSection{GoalSeconds: 60, Points: []SweepPoint{
		{USD: SweepSpread{100, 90, 110}, Wait: SweepSpread{60, 50, 80}}, {USD: SweepSpread{200, 190, 210}, Wait: SweepSpread{30, 30, 30}}}}
	c := s.draw()
	goal := shapesOf(c, "line", "goal")[0].X
	dear, today := shapesOf(c, "circle", "")[0], shapesOf(c, "circle", "")[1]
	if dear.X != goal {
		t.Errorf("a wait of 60 s is at %v, and the goal at %v", dear.X, goal)
	}
	if half := (marginLeft + goal) / 2; today.X < half-1e-9 || today.X > half+1e-9 {
		t.Errorf("a wait of 30 s is at %v, want %v", today.X, half)
	}
	// 1.6 times the height of a plot begins at 14. The spreads are as far apart as the numbers that they show.
	if spread := shapesOf(c, "path", "spread")[0].Path; dear.Y <= today.Y || today.Y < 14 ||
		!strings.HasPrefix(spread, fmt.Sprintf("M%.1f ", marginLeft+(goal-marginLeft)*50/60)) ||
		!strings.Contains(spread, fmt.Sprintf("H%.1fM", marginLeft+(goal-marginLeft)*80/60)) {
		t.Errorf("points %+v %+v, %s", dear, today, spread)
	}
}

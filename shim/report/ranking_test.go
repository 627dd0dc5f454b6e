package report

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
)

func score(value float64) *float64 { return &value }

func TestFactorsOfABarEndAtItsScore(t *testing.T) {
	bars := []RankBar{
		{Name: "a", Score: score(20), Factors: []Factor{{"cost ratio", 5}, {"unfitness", 4}, {"creation", 1}}},
		{Name: "b", Score: score(100), Factors: []Factor{{"cost ratio", 100}, {"unfitness", 1}, {"creation", 1}}},
		{Name: "c", Score: score(0.5), Factors: []Factor{{"cost ratio", 0.1}, {"unfitness", 5}, {"creation", 1}}},
	}
	s := newLogScale(bars)
	// All begin at the power of ten below 0.1, and the scale ends at 100: four powers of ten.
	decade := rankWidth / 4
	for i, want := range [][]shape{
		{{X: 0, Width: (2 + math.Log10(5)) * decade}, {X: (2 + math.Log10(5)) * decade, Width: math.Log10(4) * decade}},
		{{X: 0, Width: 4 * decade}},
		{{X: 0, Width: decade}, {X: decade, Width: math.Log10(5) * decade}},
	} {
		got := shapesOf(s.row(bars[i])[2].Drawing, "rect", "")
		if len(got) != len(want) {
			t.Errorf("%s: %d parts, want %d", bars[i].Name, len(got), len(want))
			continue
		}
		for k := range want {
			if math.Abs(got[k].X-want[k].X) > 1e-9 || math.Abs(got[k].Width-want[k].Width) > 1e-9 {
				t.Errorf("%s: part %d from %v, %v wide, want %v, %v", bars[i].Name, k, got[k].X, got[k].Width,
					want[k].X, want[k].Width)
			}
		}
	}
	var labels []string
	for _, tick := range s.ticks() {
		labels = append(labels, fmt.Sprintf("%s@%.3f", tick.Label, tick.At/decade))
	}
	if got, want := strings.Join(labels, " "), "0.01@0.000 0.1@1.000 1@2.000 10@3.000 100@4.000"; got != want {
		t.Errorf("ticks %s, want %s", got, want)
	}
}

func TestRankingPageIsSelfContainedAndEscaped(t *testing.T) {
	hostile := "<script>alert(1)</script>\x1b[2J\x00"
	bars := []RankBar{
		{Name: hostile, Amount: "1 node", Reason: hostile, Score: score(4),
			Factors: []Factor{{"cost ratio", 2}, {"unfitness", 2}}},
		{Name: "free", Score: score(0), Factors: []Factor{{"cost ratio", 0}, {"unfitness", 2}}},
		{Name: "priceless", Reason: "no price"},
	}
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if err := Ranking(out, hostile, hostile, []string{hostile}, bars); err != nil {
			t.Fatal(err)
		}
	}
	text := first.String()
	if text != second.String() {
		t.Error("the same ranking gives two pages")
	}
	for _, bad := range []string{"<script", "\x1b", "\x00", "http://", "https://", "NaN", "Inf"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if got := strings.Count(text, "<rect"); got != 2 {
		t.Errorf("%d parts are drawn, want the 2 of the one bar that can be", got)
	}
	if !strings.Contains(text, "no price") || !strings.Contains(text, ">none<") {
		t.Error("the option without a score does not say so")
	}
}

package report

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

func TestGaugesShareAScale(t *testing.T) {
	group := func(percent, after *float64) GroupGauges {
		return GroupGauges{Name: "g", TaintLower: 40, TaintUpper: 60, ScaleUp: 70,
			Gauges: []Gauge{{Resource: "cpu", Percent: percent, After: after}}}
	}
	// The longest is 250 %: a percent is gaugeWidth / 250 wide.
	part := newGauges([]GroupGauges{group(score(250), score(62.5)), group(score(65), score(65)), group(score(25), nil),
		group(nil, score(60))})
	one := gaugeWidth / 250
	for i, want := range []gaugeCell{
		{Known: true, Fill: gaugeWidth, After: 62.5 * one, Class: "s6", Text: "250%, after: 62.5%"},
		{Known: true, Fill: 65 * one, After: -1, Class: "s1", Text: "65%"},
		{Known: true, Fill: 25 * one, After: -1, Class: "s2", Text: "25%"},
		{After: 60 * one, Text: "after: 60%"},
	} {
		got := part.Rows[i].Cells[0]
		if got.Known != want.Known || math.Abs(got.Fill-want.Fill) > 1e-9 || math.Abs(got.After-want.After) > 1e-9 ||
			got.Class != want.Class ||
			got.Text != want.Text || got.Open || math.Abs(got.Up-70*one) > 1e-9 {
			t.Errorf("row %d: got %+v, want %+v", i, got, want)
		}
	}
	// Nobody can tell 1000 % from 10000 %: the scale ends before, and the gauge says so.
	if cell := newGauges([]GroupGauges{group(score(1000), nil)}).Rows[0].Cells[0]; !cell.Open ||
		cell.Fill != gaugeWidth || cell.Up != gaugeWidth*70/gaugeEnd {
		t.Errorf("got %+v", cell)
	}
	// A threshold above 100 % is on the scale.
	high := group(score(10), nil)
	high.ScaleUp = 120
	if cell := newGauges([]GroupGauges{high}).Rows[0].Cells[0]; math.Abs(cell.Up-gaugeWidth/1.1) > 1e-9 {
		t.Errorf("got %+v", cell)
	}
}

func TestSizesPageIsSelfContainedAndEscaped(t *testing.T) {
	hostile := "<script>alert(1)</script>\x1b[2J\x00"
	groups := []GroupGauges{
		{Name: hostile, Amount: hostile, Verdict: hostile, TaintLower: 40, TaintUpper: 60, ScaleUp: 1e6,
			Gauges: []Gauge{{hostile, score(20), nil}, {"memory", nil, nil}}},
		{Name: "b", ScaleUp: 70, Gauges: []Gauge{{"cpu", score(80), score(60)}, {"memory", score(4.6e20), score(1)}}},
	}
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if err := Sizes(out, hostile, hostile, []string{hostile}, groups); err != nil {
			t.Fatal(err)
		}
	}
	text := first.String()
	if text != second.String() {
		t.Error("the same groups give two pages")
	}
	for _, bad := range []string{"<script", "\x1b", "\x00", "http://", "https://", "NaN", "Inf"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	// Three of four have a percentage; the threshold of the first group is beyond the scale.
	for part, want := range map[string]int{`class="empty"`: 4, "<rect class=\"s": 3, "no percentage": 3,
		"(longer than drawn)": 1, `class="load" x1="6"`: 1, `class="load"`: 3} {
		if got := strings.Count(text, part); got != want {
			t.Errorf("%q comes %d times, want %d", part, got, want)
		}
	}
}

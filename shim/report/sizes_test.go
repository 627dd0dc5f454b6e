package report

import (
	"bytes"
	"fmt"
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
	cell := func(of GroupGauges, among ...GroupGauges) *cell {
		return &gaugesPart("", append([]GroupGauges{of}, among...)).Table.Rows[0][1]
	}
	one := gaugeWidth / 250
	longest := group(score(250), score(62.5))
	for _, c := range []struct {
		of          GroupGauges
		class       string
		fill, after float64 // after 0: it is not drawn
		text        string
	}{
		{longest, "s6", gaugeWidth, 62.5 * one, "250%, after: 62.5%"},
		{group(score(65), score(65)), "s1", 65 * one, 0, "65%"},
		{group(score(25), nil), "s2", 25 * one, 0, "25%"},
		{group(nil, score(60)), "", 0, 60 * one, "after: 60%"},
	} {
		got := cell(c.of, longest)
		if bars := shapesOf(got.Drawing, "rect", c.class); c.class != "" && (len(bars) != 1 ||
			math.Abs(bars[0].Width-c.fill) > 1e-9) {
			t.Errorf("%s: bars %+v, want one of %v", c.text, bars, c.fill)
		}
		if all := shapesOf(got.Drawing, "rect", ""); c.class == "" && len(all) != 1 { // the empty one
			t.Errorf("%s: bars %+v", c.text, all)
		}
		want := fmt.Sprintf("M%g 1L", c.after)
		if marks := shapesOf(got.Drawing, "path", "after"); (len(marks) == 1) != (c.after > 0) ||
			c.after > 0 && !strings.HasPrefix(marks[0].Path, want) {
			t.Errorf("%s: %+v, want %s", c.text, marks, want)
		}
		if up := shapesOf(got.Drawing, "line", "load"); got.Text != c.text || len(up) != 1 ||
			math.Abs(up[0].X-70*one) > 1e-9 {
			t.Errorf("got %s %+v, want %s", got.Text, up, c.text)
		}
	}
	// Nobody can tell 1000 % from 10000 %: the scale ends before, and the gauge says so.
	far := cell(group(score(1000), nil))
	if bar := shapesOf(far.Drawing, "rect", "s6"); far.Text != "1000% (longer than drawn)" || bar[0].Width != gaugeWidth ||
		shapesOf(far.Drawing, "line", "load")[0].X != gaugeWidth*70/gaugeEnd {
		t.Errorf("got %s %+v", far.Text, far.Drawing)
	}
	// A threshold above 100 % is on the scale.
	high := group(score(10), nil)
	high.ScaleUp = 120
	if up := shapesOf(cell(high).Drawing, "line", "load"); math.Abs(up[0].X-gaugeWidth/1.1) > 1e-9 {
		t.Errorf("got %+v", up)
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

package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
)

// GroupGauges is how full one node group is, against its thresholds. All numbers are percent of capacity.
type GroupGauges struct {
	Name, Amount, Verdict string
	// Below TaintLower nodes are removed fast, below TaintUpper slowly, above ScaleUp nodes are added.
	TaintLower, TaintUpper, ScaleUp float64
	// Gauges, one per resource: in all groups the same ones in the same order.
	Gauges []Gauge
}

// Gauge is one resource of a group.
type Gauge struct {
	Resource string
	// Percent is nil where there is none, After also where it is not known.
	Percent, After *float64
}

// FormatPercent writes a percentage with at most three decimals.
func FormatPercent(value float64) string {
	return trimZeros(strconv.FormatFloat(value, 'f', 3, 64)) + "%"
}

// Size of a gauge in units of its viewBox. All gauges of a page share a scale, which ends where the longest does, but
// not beyond gaugeEnd percent; thresholds beyond it are not drawn.
const (
	gaugeWidth = 300.0
	gaugeEnd   = 300.0
)

// Sizes writes a page: the verdict, lines of text, and of each node group a gauge per resource against its thresholds.
func Sizes(w io.Writer, title, verdict string, lines []string, groups []GroupGauges) error {
	p := page{Title: title, Verdict: verdict, Lines: lines, Parts: []part{gaugesPart("", groups)}}
	return p.write(w)
}

func gaugesPart(title string, groups []GroupGauges) part {
	end := gaugesEnd(groups)
	table := &cells{Class: "cards gauges", Header: texts("", "node group")}
	for i, group := range groups {
		row := []cell{{Class: "name", Text: group.Name, Note: group.Amount}}
		for _, gauge := range group.Gauges {
			if i == 0 {
				table.Header = append(table.Header, cell{Class: "bar", Text: gauge.Resource})
			}
			row = append(row, group.cell(gauge, end))
		}
		table.Rows = append(table.Rows, row, []cell{{Class: "soft", Span: 3, Text: group.Verdict}})
	}
	return part{Title: title, Table: table, Lines: []string{"Each gauge shows what the pods of a group request, in " +
		"percent of what its untainted nodes offer. The larger one of a group decides."},
		Legend: []key{swatch("s6", "above the scale-up threshold"), swatch("s1", "between the thresholds"),
			swatch("s2", "below the upper taint threshold"), stroke("load", "scale-up threshold"),
			stroke("p95", "taint thresholds"), {Drawing: &drawing{Class: "line", Width: 12, Height: 17,
				Shapes: []shape{{Kind: "path", Class: "after", Path: "M6 5L2 0H10Z"}}}, Label: "afterwards"}}}
}

// gaugesEnd returns the percentage at which gauges end.
func gaugesEnd(groups []GroupGauges) float64 {
	end := 100.0
	for _, group := range groups {
		end = max(end, group.ScaleUp*1.1)
		for _, gauge := range group.Gauges {
			for _, value := range []*float64{gauge.Percent, gauge.After} {
				if value != nil {
					end = max(end, *value)
				}
			}
		}
	}
	return min(end, gaugeEnd)
}

func (g *GroupGauges) cell(gauge Gauge, end float64) cell {
	x := func(percent float64) float64 { return gaugeWidth * percent / end }
	d := &drawing{X: -1, Y: -6, Width: gaugeWidth + 2, Height: 23}
	d.rect("empty", 0, 3, gaugeWidth, 11)
	text, open := "no percentage", false
	if percent := gauge.Percent; percent != nil {
		class := "s1"
		switch {
		case *percent > g.ScaleUp:
			class = "s6"
		case *percent < g.TaintUpper:
			class = "s2"
		}
		d.fill(class, 0, math.Min(x(*percent), gaugeWidth))
		text, open = FormatPercent(*percent), *percent > end
	}
	for _, threshold := range []struct {
		class   string
		percent float64
	}{{"p95", g.TaintLower}, {"p95", g.TaintUpper}, {"load", g.ScaleUp}} {
		if at := x(threshold.percent); at <= gaugeWidth {
			d.limit(threshold.class, at)
		}
	}
	if after := gauge.After; after != nil && (gauge.Percent == nil || *after != *gauge.Percent) {
		at := math.Min(x(*after), gaugeWidth)
		d.path("after", fmt.Sprintf("M%g 1L%g -5H%gZ", at, at-4, at+4), "")
		if gauge.Percent == nil {
			text = "after: " + FormatPercent(*after)
		} else {
			text += ", after: " + FormatPercent(*after)
		}
	}
	d.Label, d.Title = text, text
	if gauge.Percent != nil {
		d.Title += "; removes fast below " + FormatPercent(g.TaintLower) + ", slowly below " + FormatPercent(g.TaintUpper) +
			", grows above " + FormatPercent(g.ScaleUp)
	}
	if open {
		text += " (longer than drawn)"
	}
	return cell{Class: "bar", Drawing: d, Text: text}
}

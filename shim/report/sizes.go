package report

import (
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

type gaugesPart struct {
	Resources []string
	Wide      float64
	Rows      []gaugeRow
}

type gaugeRow struct {
	GroupGauges
	Cells []gaugeCell
}

type gaugeCell struct {
	Known       bool
	Fill, After float64 // After is below 0 where it is not drawn
	Lower, Upper,
	Up float64 // thresholds; beyond gaugeWidth: not drawn
	Class       string
	Open        bool // continues beyond the scale
	Text, Title string
}

// Sizes writes a page: the verdict, lines of text, and of each node group a gauge per resource against its thresholds.
func Sizes(w io.Writer, title, verdict string, lines []string, groups []GroupGauges) error {
	return write(w, "sizes", struct {
		head
		Gauges gaugesPart
	}{head{title, verdict, lines}, newGauges(groups)})
}

func newGauges(groups []GroupGauges) gaugesPart {
	end := gaugesEnd(groups)
	out := gaugesPart{Wide: gaugeWidth + 2}
	for i, group := range groups {
		row := gaugeRow{GroupGauges: group}
		for _, gauge := range group.Gauges {
			if i == 0 {
				out.Resources = append(out.Resources, gauge.Resource)
			}
			row.Cells = append(row.Cells, group.cell(gauge, end))
		}
		out.Rows = append(out.Rows, row)
	}
	return out
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

func (g *GroupGauges) cell(gauge Gauge, end float64) gaugeCell {
	x := func(percent float64) float64 { return gaugeWidth * percent / end }
	out := gaugeCell{Lower: x(g.TaintLower), Upper: x(g.TaintUpper), Up: x(g.ScaleUp), After: -1, Text: "no percentage"}
	if gauge.Percent == nil {
		if gauge.After != nil {
			out.After, out.Text = math.Min(x(*gauge.After), gaugeWidth), "after: "+FormatPercent(*gauge.After)
		}
		out.Title = out.Text
		return out
	}
	percent := *gauge.Percent
	out.Known, out.Fill, out.Open = true, math.Min(x(percent), gaugeWidth), percent > end
	switch {
	case percent > g.ScaleUp:
		out.Class = "s6"
	case percent < g.TaintUpper:
		out.Class = "s2"
	default:
		out.Class = "s1"
	}
	out.Text = FormatPercent(percent)
	if gauge.After != nil && *gauge.After != percent {
		out.After = math.Min(x(*gauge.After), gaugeWidth)
		out.Text += ", after: " + FormatPercent(*gauge.After)
	}
	out.Title = out.Text + "; removes fast below " + FormatPercent(g.TaintLower) + ", slowly below " +
		FormatPercent(g.TaintUpper) +
		", grows above " + FormatPercent(g.ScaleUp)
	return out
}

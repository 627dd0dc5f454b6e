package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Steps is a page of what has changed over time.
type Steps struct {
	Title, Verdict string
	Lines          []string
	// TimeUnit is what the axis of time counts; empty: seconds.
	TimeUnit string
	// Charts share their axis of time.
	Charts []StepChart
	Grid   Grid
}

// StepChart draws lines that hold a value until the next point. There are at most four of them.
type StepChart struct {
	Title  string
	Series []StepSeries
}

// StepSeries is one line, its points in order of time, and marks below the chart.
type StepSeries struct {
	Name   string
	Points []StepPoint
	Marks  []StepMark
}

// StepPoint is a value from a time on.
type StepPoint struct{ Seconds, Value float64 }

// StepMark is something that happened.
type StepMark struct {
	Seconds float64
	Label   string
}

// StepsPage writes a page. Lines differ by colour and by dashes.
func StepsPage(w io.Writer, s Steps) error {
	charts := part{}
	end := 1.0
	for _, chart := range s.Charts {
		for i, series := range chart.Series {
			if i == len(charts.Legend) {
				charts.Legend = append(charts.Legend, sample(series.Name, func(d *drawing) { d.path(lineClass(i), "M0 9H36", "") }))
			}
			for _, point := range series.Points {
				end = max(end, point.Seconds)
			}
		}
	}
	for _, chart := range s.Charts {
		charts.Figures = append(charts.Figures, chart.draw(end, cmp.Or(s.TimeUnit, "seconds")))
	}
	p := page{Title: s.Title, Verdict: s.Verdict, Lines: s.Lines, Parts: []part{{Table: s.Grid.cells()}, charts}}
	return p.write(w)
}

func lineClass(i int) string { return "line" + strconv.Itoa(i%4) }

// draw draws a chart whose axis of time ends at `end` seconds.
func (c *StepChart) draw(end float64, unit string) figure {
	rows, highest := 0, 0.0
	for _, series := range c.Series {
		if len(series.Marks) > 0 {
			rows++
		}
		for _, point := range series.Points {
			highest = max(highest, point.Value)
		}
	}
	out := newPlot(c.Title+", over time", 12, plotHeight, float64(rows)*labelRow)
	step := niceStep(max(highest, 0.05) / 4)
	top := step * math.Max(1, math.Ceil(highest/step-1e-9))
	x := func(seconds float64) float64 { return out.left + plotWidth*min(max(seconds, 0)/end, 1) }
	y := func(value float64) float64 { return out.bottom - plotHeight*value/top }
	out.axes(ticksUpTo(end, niceStep(max(end/10, 1)), x), ticksUpTo(top+1e-9, step, y))
	out.text("soft", "end", unit, out.right, out.Height-4)
	for i, series := range c.Series {
		out.path(lineClass(i), path(series.Points, x, y), series.Name)
	}
	row := 0
	for i, series := range c.Series {
		if len(series.Marks) == 0 {
			continue
		}
		row++
		for _, m := range series.Marks {
			at, anchor, beside := x(m.Seconds), "start", 2.0
			if at > out.right-70 { // it would not fit beside
				anchor, beside = "end", -2
			}
			out.path(lineClass(i)+" mark", fmt.Sprintf("M%g %gv8", at, out.bottom), "")
			out.text("", anchor, m.Label, at+beside, out.bottom+18+float64(row)*labelRow)
		}
	}
	return figure{c.Title, &out.drawing}
}

// ticksUpTo are the ticks of an axis from 0 on.
func ticksUpTo(end, step float64, at func(float64) float64) (out []tick) {
	for k := 0; float64(k)*step <= end; k++ {
		out = append(out, tick{at(float64(k) * step), formatTick(float64(k) * step)})
	}
	return out
}

// path follows the steps, and leaves out points that change nothing.
func path(points []StepPoint, x, y func(float64) float64) string {
	var out strings.Builder
	for i, p := range points {
		switch {
		case i == 0:
			fmt.Fprintf(&out, "M%.1f %.1f", x(p.Seconds), y(p.Value))
		case p.Value != points[i-1].Value:
			fmt.Fprintf(&out, "H%.1fV%.1f", x(p.Seconds), y(p.Value))
		case i == len(points)-1:
			fmt.Fprintf(&out, "H%.1f", x(p.Seconds))
		}
	}
	return out.String()
}

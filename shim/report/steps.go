package report

import (
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

type stepsPage struct {
	Steps
	Legend []stepLegend
	Charts []stepsChart
}

type stepLegend struct{ Name, Class string }

type stepsChart struct {
	Title                    string
	Width, Height            float64
	Left, Right, Top, Bottom float64
	XTicks, YTicks           []tick
	Lines                    []stepLine
	Marks                    []stepsMark
}

type stepLine struct{ Class, Path, Name string }

type stepsMark struct {
	X, LabelX, LabelY    float64
	Anchor, Class, Label string
}

// StepsPage writes a page. Lines differ by colour and by dashes.
func StepsPage(w io.Writer, s Steps) error {
	p := stepsPage{Steps: s}
	end := 1.0
	for _, chart := range s.Charts {
		for i, series := range chart.Series {
			if i == len(p.Legend) {
				p.Legend = append(p.Legend, stepLegend{series.Name, lineClass(i)})
			}
			for _, point := range series.Points {
				end = max(end, point.Seconds)
			}
		}
	}
	for _, chart := range s.Charts {
		p.Charts = append(p.Charts, chart.draw(end))
	}
	return write(w, "steps", p)
}

func lineClass(i int) string { return "line" + strconv.Itoa(i%4) }

// draw draws a chart whose axis of time ends at `end` seconds.
func (c *StepChart) draw(end float64) stepsChart {
	rows := 0
	highest := 0.0
	for _, series := range c.Series {
		if len(series.Marks) > 0 {
			rows++
		}
		for _, point := range series.Points {
			highest = max(highest, point.Value)
		}
	}
	out := stepsChart{Title: c.Title, Left: marginLeft, Right: marginLeft + plotWidth, Top: 12,
		Bottom: 12 + plotHeight, Width: marginLeft + plotWidth + marginRight}
	out.Height = out.Bottom + marginBottom + float64(rows)*labelRow
	step := niceStep(max(highest, 0.05) / 4)
	top := step * math.Max(1, math.Ceil(highest/step-1e-9))
	x := func(seconds float64) float64 { return out.Left + plotWidth*min(max(seconds, 0)/end, 1) }
	y := func(value float64) float64 { return out.Bottom - plotHeight*value/top }
	for k := 0; float64(k)*step <= top+1e-9; k++ {
		out.YTicks = append(out.YTicks, tick{y(float64(k) * step), formatTick(float64(k) * step)})
	}
	seconds := niceStep(max(end/10, 1))
	for k := 0; float64(k)*seconds <= end; k++ {
		out.XTicks = append(out.XTicks, tick{x(float64(k) * seconds), formatTick(float64(k) * seconds)})
	}
	row := 0
	for i, series := range c.Series {
		out.Lines = append(out.Lines, stepLine{lineClass(i), path(series.Points, x, y), series.Name})
		if len(series.Marks) == 0 {
			continue
		}
		row++
		for _, m := range series.Marks {
			at := stepsMark{X: x(m.Seconds), LabelX: x(m.Seconds) + 2, LabelY: out.Bottom + 18 + float64(row)*labelRow,
				Anchor: "start", Class: lineClass(i), Label: m.Label}
			if at.X > out.Right-70 { // it would not fit beside
				at.LabelX, at.Anchor = at.X-2, "end"
			}
			out.Marks = append(out.Marks, at)
		}
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

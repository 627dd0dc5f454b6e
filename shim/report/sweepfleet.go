package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"loadline.dev/shim/report/texttable"
)

// SweepFront is a line of the picture of all clusters: for each wait the least that a cluster costs, in percent of what
// it costs today.
type SweepFront struct {
	Name   string
	Points []SweepFrontPoint
}

// SweepFrontPoint is a set of settings that nothing cheaper undercuts.
type SweepFrontPoint struct{ Wait, Percent float64 }

type sweepFleet struct {
	XName                                   string
	Width, Height, Left, Right, Top, Bottom float64
	XTicks, YTicks                          []tick
	Goal                                    float64
	Lines                                   []sweepFleetLine
}

type sweepFleetLine struct {
	Class, Name, Path string
	X, Y              float64 // of its cheapest point, where its name is drawn
}

// drawFleet draws a line for each cluster; nil: there are none.
func (s *Sweep) drawFleet() *sweepFleet {
	if len(s.Fronts) == 0 || len(s.Sections) == 0 {
		return nil
	}
	goal := s.Sections[0].GoalSeconds
	c := &sweepFleet{XName: texttable.Escape(s.Sections[0].WaitName) + ", seconds", Left: marginLeft,
		Right: marginLeft + plotWidth, Top: 14, Bottom: 14 + 1.6*plotHeight, Width: marginLeft + plotWidth + marginRight}
	c.Height = c.Bottom + marginBottom
	longest, low, high := goal, 100.0, 100.0
	for _, front := range s.Fronts {
		for _, p := range front.Points {
			longest, low, high = max(longest, p.Wait), min(low, p.Percent), max(high, p.Percent)
		}
	}
	stepX, stepY := niceStep(max(longest, 1)/8), niceStep(max(high-low, 4)/6)
	endX := stepX * math.Ceil(max(longest, 1)*1.02/stepX)
	from, to := stepY*math.Floor(low/stepY-0.1), stepY*math.Ceil(high/stepY+0.1)
	x := func(seconds float64) float64 { return c.Left + plotWidth*seconds/endX }
	y := func(percent float64) float64 { return c.Bottom - (c.Bottom-c.Top)*(percent-from)/(to-from) }
	for k := 0; float64(k)*stepX <= endX*1.0001; k++ {
		c.XTicks = append(c.XTicks, tick{x(float64(k) * stepX), formatTick(float64(k) * stepX)})
	}
	for percent := from; percent <= to*1.0001; percent += stepY {
		c.YTicks = append(c.YTicks, tick{y(percent), formatTick(percent) + " %"})
	}
	if goal > 0 {
		c.Goal = x(goal)
	}
	for i, front := range s.Fronts {
		if line, ok := front.draw(i, c.Right, x, y); ok {
			c.Lines = append(c.Lines, line)
		}
	}
	return c
}

func (f *SweepFront) draw(i int, end float64, x, y func(float64) float64) (sweepFleetLine, bool) {
	points := slices.SortedFunc(slices.Values(f.Points),
		func(a, b SweepFrontPoint) int { return cmp.Compare(a.Wait, b.Wait) })
	if len(points) == 0 {
		return sweepFleetLine{}, false
	}
	var path strings.Builder
	for k, p := range points {
		if k == 0 {
			fmt.Fprintf(&path, "M%.1f %.1f", x(p.Wait), y(p.Percent))
			continue
		}
		fmt.Fprintf(&path, "H%.1fV%.1f", x(p.Wait), y(p.Percent))
	}
	fmt.Fprintf(&path, "H%.1f", end) // who may wait longer pays no more
	last := points[len(points)-1]
	return sweepFleetLine{Class: lineClass(i), Name: texttable.Escape(f.Name), Path: path.String(), X: x(last.Wait) + 6,
		Y: y(last.Percent) - 7}, true
}

package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Sweep is a page of what settings cost, and how long pods wait with them.
type Sweep struct {
	Title, Verdict string
	Lines          []string
	// Fleet has a line for each cluster, where there are several.
	Fleet    Grid
	Fronts   []SweepFront
	Sections []SweepSection
}

// SweepSection is about one cluster, or all together.
type SweepSection struct {
	Title, Verdict string
	// WaitName is what is drawn against costs; GoalSeconds is the most that it should be, 0: none.
	WaitName    string
	GoalSeconds float64
	Points      []SweepPoint
	// Chosen are the points worth a look, in words.
	Chosen  Grid
	Effects []SweepEffect
	// Configuration is what to copy; empty: none.
	Configuration string
}

// SweepPoint is a set of settings, with its spread over seeds.
type SweepPoint struct {
	Name                 string
	USD, Wait            SweepSpread
	OnFront, Today, Best bool
}

// SweepSpread is a mean with the least and the greatest value.
type SweepSpread struct{ Mean, Min, Max float64 }

// SweepEffect is what a value of a setting costs in the mean over all points that have it.
type SweepEffect struct {
	Setting, Value string
	USD, Wait      float64
}

type sweepPage struct {
	*Sweep
	FleetChart *sweepFleet
	Sections   []sweepSection
}

type sweepSection struct {
	SweepSection
	Configuration verbatim
	Chart         sweepChart
	Effects       []sweepEffects
}

// waitChart is a chart over waiting times, from 0 on.
type waitChart struct {
	XName                                   string
	Width, Height, Left, Right, Top, Bottom float64
	XTicks, YTicks                          []tick
	Goal                                    float64 // 0: none
	x, y                                    func(float64) float64
}

// newWaitChart returns a chart up to the longest wait whose vertical axis has a tick each stepY, from around low to
// around high, but for a part of a step.
func newWaitChart(waitName string, goal, longest, stepY, low, high float64, unit string) waitChart {
	c := emptyWaitChart(waitName)
	stepX := niceStep(max(longest, 1) / 8)
	endX := stepX * math.Ceil(max(longest, 1)*1.02/stepX)
	from, to := max(0, stepY*math.Floor(low/stepY)), stepY*math.Ceil(high/stepY)
	c.x = func(seconds float64) float64 { return c.Left + plotWidth*seconds/endX }
	c.y = func(value float64) float64 { return c.Bottom - (c.Bottom-c.Top)*(value-from)/(to-from) }
	for k := 0; float64(k)*stepX <= endX*1.0001; k++ {
		c.XTicks = append(c.XTicks, tick{c.x(float64(k) * stepX), formatTick(float64(k) * stepX)})
	}
	for value := from; value <= to*1.0001; value += stepY {
		c.YTicks = append(c.YTicks, tick{c.y(value), formatTick(value) + unit})
	}
	if goal > 0 {
		c.Goal = c.x(goal)
	}
	return c
}

func emptyWaitChart(waitName string) waitChart {
	const top, bottom = 14, 14 + 1.6*plotHeight
	return waitChart{XName: waitName + ", seconds", Left: marginLeft, Right: marginLeft + plotWidth, Top: top,
		Bottom: bottom, Width: marginLeft + plotWidth + marginRight, Height: bottom + marginBottom}
}

// stairs leads from point to point, in order of their waits: nothing is known between two of them.
func (c *waitChart) stairs(points []SweepFrontPoint) string {
	var path strings.Builder
	for i, p := range points {
		format := "H%.1fV%.1f"
		if i == 0 {
			format = "M%.1f %.1f"
		}
		fmt.Fprintf(&path, format, c.x(p.Wait), c.y(p.Percent))
	}
	return path.String()
}

type sweepChart struct {
	waitChart
	Front  string
	Points []sweepMark
}

// sweepMark is a point with bars of its spread.
type sweepMark struct {
	Class, Name              string
	X, Y, R                  float64
	LowX, HighX, LowY, HighY float64
	Label, Anchor            string
	LabelX, LabelY           float64
}

type sweepEffects struct {
	Setting string
	Lines   []sweepEffectLine
}

type sweepEffectLine struct {
	Value, USD, Wait  string
	USDWide, WaitWide float64
	WaitName          string
}

// Write writes a page.
func (s *Sweep) Write(w io.Writer) error {
	p := sweepPage{Sweep: s, FleetChart: s.drawFleet()}
	for _, section := range s.Sections {
		p.Sections = append(p.Sections, sweepSection{SweepSection: section,
			Configuration: verbatim(section.Configuration), Chart: section.draw(), Effects: section.effects()})
	}
	return write(w, "sweep", p)
}

// draw draws costs over waiting times. Costs do not begin at 0, as the least are seldom near it.
func (s *SweepSection) draw() (c sweepChart) {
	longest, low, high := s.GoalSeconds, math.Inf(1), 0.0
	for _, p := range s.Points {
		longest = max(longest, p.Wait.Max)
		low, high = min(low, p.USD.Min), max(high, p.USD.Max)
	}
	if len(s.Points) == 0 {
		return sweepChart{waitChart: emptyWaitChart(s.WaitName)}
	}
	step := niceStep(max(high-low, high/100, 0.01) / 5)
	c.waitChart = newWaitChart(s.WaitName, s.GoalSeconds, longest, step, low-0.2*step, high+0.2*step, "")
	var front []SweepFrontPoint
	for _, p := range s.Points {
		if p.OnFront {
			front = append(front, SweepFrontPoint{p.Wait.Mean, p.USD.Mean})
		}
		c.Points = append(c.Points, p.mark(&c.waitChart))
	}
	slices.SortFunc(front, shorterWait)
	c.Front = c.stairs(front)
	slices.SortStableFunc(c.Points, func(a, b sweepMark) int { return int(a.R - b.R) }) // what matters on top
	return c
}

func shorterWait(a, b SweepFrontPoint) int { return cmp.Compare(a.Wait, b.Wait) }

func (p *SweepPoint) mark(c *waitChart) sweepMark {
	m := sweepMark{Class: "other", R: 3, X: c.x(p.Wait.Mean), Y: c.y(p.USD.Mean), LowX: c.x(p.Wait.Min),
		HighX: c.x(p.Wait.Max), LowY: c.y(p.USD.Min), HighY: c.y(p.USD.Max), Anchor: "start",
		Name: fmt.Sprintf("%s: %.2f USD, %.1f s", p.Name, p.USD.Mean, p.Wait.Mean)}
	if p.OnFront {
		m.Class, m.R = "front", 4
	}
	if p.Today {
		m.Class, m.R, m.Label = "today", 6, "today"
	}
	if p.Best {
		m.Class, m.R, m.Label = "best", 6, "cheapest within the goal"
		if p.Today {
			m.Label = "today, cheapest within the goal"
		}
	}
	m.LabelX, m.LabelY = m.X+10, m.Y-8
	if m.LabelX > c.Right-170 {
		m.LabelX, m.Anchor = m.X-10, "end"
	}
	return m
}

const effectWidth = 260.0

// effects draws what each value of each setting does.
func (s *SweepSection) effects() (out []sweepEffects) {
	dearest, longest := 0.0, 0.0
	for _, e := range s.Effects {
		dearest, longest = max(dearest, e.USD), max(longest, e.Wait)
	}
	for _, e := range s.Effects {
		if len(out) == 0 || out[len(out)-1].Setting != e.Setting {
			out = append(out, sweepEffects{Setting: e.Setting})
		}
		line := sweepEffectLine{Value: e.Value, USD: fmt.Sprintf("%.2f", e.USD),
			Wait: fmt.Sprintf("%.1f", e.Wait), WaitName: s.WaitName}
		if dearest > 0 {
			line.USDWide = effectWidth * e.USD / dearest
		}
		if longest > 0 {
			line.WaitWide = effectWidth * e.Wait / longest
		}
		last := &out[len(out)-1]
		last.Lines = append(last.Lines, line)
	}
	return out
}

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

// waitChart is a chart over waiting times, from 0 on.
type waitChart struct {
	plot
	x, y func(float64) float64
}

// newWaitChart returns a chart up to the longest wait whose vertical axis has a tick each stepY, from around low to
// around high, but for a part of a step.
func newWaitChart(title, waitName string, goal, longest, stepY, low, high float64, unit string) waitChart {
	c := emptyWaitChart(title, waitName)
	stepX := niceStep(max(longest, 1) / 8)
	endX := stepX * math.Ceil(max(longest, 1)*1.02/stepX)
	from, to := max(0, stepY*math.Floor(low/stepY)), stepY*math.Ceil(high/stepY)
	c.x = func(seconds float64) float64 { return c.left + plotWidth*seconds/endX }
	c.y = func(value float64) float64 { return c.bottom - (c.bottom-c.top)*(value-from)/(to-from) }
	var values []tick
	for value := from; value <= to*1.0001; value += stepY {
		values = append(values, tick{c.y(value), formatTick(value) + unit})
	}
	c.axes(ticksUpTo(endX*1.0001, stepX, c.x), values)
	if goal > 0 {
		c.upright("goal", c.x(goal), c.top, c.bottom)
	}
	return c
}

func emptyWaitChart(title, waitName string) waitChart {
	c := waitChart{plot: newPlot(title+" against "+waitName+", seconds", 14, 1.6*plotHeight, 0)}
	c.text("soft", "end", waitName+", seconds", c.right, c.Height-4)
	return c
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

// Write writes a page.
func (s *Sweep) Write(w io.Writer) error {
	p := page{Title: s.Title, Verdict: s.Verdict, Lines: s.Lines}
	if table := s.Fleet.cells(); table != nil {
		p.Parts = append(p.Parts, part{Title: "Clusters", Table: table, Figures: s.drawFleet()})
	}
	for i := range s.Sections {
		p.Parts = append(p.Parts, s.Sections[i].parts()...)
	}
	return p.write(w)
}

func (s *SweepSection) parts() []part {
	legend := []key{sample("settings", func(d *drawing) { d.circle("other", 18, 9, 4, "") }),
		sample("none is cheaper that waits no longer", func(d *drawing) {
			d.path("line0", "M0 9H36", "")
			d.circle("front", 18, 9, 4.5, "")
		}), sample("today", func(d *drawing) { d.circle("today", 18, 9, 5.5, "") }),
		sample("what to choose", func(d *drawing) { d.circle("best", 18, 9, 5.5, "") })}
	if s.GoalSeconds > 0 && len(s.Points) > 0 {
		legend = append(legend, sample("goal", func(d *drawing) { d.upright("goal", 18, 0, 17) }))
	}
	legend = append(legend, sample("from the least to the greatest of all seeds",
		func(d *drawing) { d.path("spread", "M4 9H32M18 1V16", "") }))
	out := []part{{Title: s.Title, Verdict: s.Verdict, Legend: legend,
		Figures: []figure{{"Cost against waiting time", s.draw()}}}}
	if table := s.Chosen.cells(); table != nil {
		out = append(out, part{Subtitle: "Points worth a look", Table: table})
	}
	if s.Configuration != "" {
		out = append(out, part{Subtitle: "To copy", Verbatim: verbatim(s.Configuration)})
	}
	if len(s.Effects) > 0 {
		out = append(out, part{Subtitle: "What each setting does", Table: s.effects(),
			Lines: []string{"The mean over all points that have a value, whatever the other settings are."}})
	}
	return out
}

// draw draws costs over waiting times. Costs do not begin at 0, as the least are seldom near it.
func (s *SweepSection) draw() *drawing {
	longest, low, high := s.GoalSeconds, math.Inf(1), 0.0
	for _, p := range s.Points {
		longest = max(longest, p.Wait.Max)
		low, high = min(low, p.USD.Min), max(high, p.USD.Max)
	}
	title := s.Title + ": cost"
	if len(s.Points) == 0 {
		c := emptyWaitChart(title, s.WaitName)
		return &c.drawing
	}
	step := niceStep(max(high-low, high/100, 0.01) / 5)
	c := newWaitChart(title, s.WaitName, s.GoalSeconds, longest, step, low-0.2*step, high+0.2*step, "")
	c.text("soft", "", "US dollars", c.left+6, c.top+6)
	var front []SweepFrontPoint
	for _, p := range s.Points {
		if p.OnFront {
			front = append(front, SweepFrontPoint{p.Wait.Mean, p.USD.Mean})
		}
		c.path("spread", fmt.Sprintf("M%.1f %.1fH%.1fM%.1f %.1fV%.1f", c.x(p.Wait.Min), c.y(p.USD.Mean), c.x(p.Wait.Max),
			c.x(p.Wait.Mean), c.y(p.USD.Min), c.y(p.USD.Max)), "")
	}
	slices.SortFunc(front, shorterWait)
	c.path("line0", c.stairs(front), "")
	points := slices.Clone(s.Points)
	slices.SortStableFunc(points, func(a, b SweepPoint) int { return a.weight() - b.weight() }) // what matters on top
	for _, p := range points {
		p.dot(&c)
	}
	for _, p := range points {
		p.label(&c)
	}
	return &c.drawing
}

func shorterWait(a, b SweepFrontPoint) int { return cmp.Compare(a.Wait, b.Wait) }

// weight is 3 for settings as others, and larger for those that matter more.
func (p *SweepPoint) weight() int {
	switch {
	case p.Best || p.Today:
		return 6
	case p.OnFront:
		return 4
	}
	return 3
}

func (p *SweepPoint) dot(c *waitChart) {
	class := "other"
	switch {
	case p.Best:
		class = "best"
	case p.Today:
		class = "today"
	case p.OnFront:
		class = "front"
	}
	c.circle(class, c.x(p.Wait.Mean), c.y(p.USD.Mean), float64(p.weight()),
		fmt.Sprintf("%s: %.2f USD, %.1f s", p.Name, p.USD.Mean, p.Wait.Mean))
}

func (p *SweepPoint) label(c *waitChart) {
	text := ""
	switch {
	case p.Best && p.Today:
		text = "today, cheapest within the goal"
	case p.Best:
		text = "cheapest within the goal"
	case p.Today:
		text = "today"
	default:
		return
	}
	x, beside, anchor := c.x(p.Wait.Mean), 10.0, "start"
	if x+beside > c.right-170 {
		beside, anchor = -10, "end"
	}
	c.text("label", anchor, text, x+beside, c.y(p.USD.Mean)-8)
}

const effectWidth = 260.0

// effects shows what each value of each setting does.
func (s *SweepSection) effects() *cells {
	dearest, longest := 0.0, 0.0
	for _, e := range s.Effects {
		dearest, longest = max(dearest, e.USD), max(longest, e.Wait)
	}
	bar := func(class, label string, value, most float64) cell {
		d := &drawing{Width: effectWidth, Height: 15, Label: label}
		if most > 0 {
			d.rect(class, 0, 1, effectWidth*value/most, 13)
		}
		return cell{Drawing: d}
	}
	out := &cells{Class: "effects", Header: []cell{{Text: "setting"}, {Text: "value"},
		{Class: "number", Text: "US dollars"}, {}, {Class: "number", Text: "wait, s"}, {}}}
	before := ""
	for _, e := range s.Effects {
		setting := e.Setting
		if setting == before {
			setting = ""
		}
		before = e.Setting
		usd, wait := fmt.Sprintf("%.2f", e.USD), fmt.Sprintf("%.1f", e.Wait)
		out.Rows = append(out.Rows, []cell{{Text: setting}, {Text: e.Value}, {Class: "number", Text: usd},
			bar("s1", usd+" US dollars", e.USD, dearest), {Class: "number", Text: wait},
			bar("s5", wait+" seconds, "+s.WaitName, e.Wait, longest)})
	}
	return out
}

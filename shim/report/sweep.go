package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"

	"loadline.dev/shim/report/texttable"
)

//go:embed sweep.html.tmpl
var sweepText string

var sweepTemplate = template.Must(template.New("sweep").Parse(sweepText))

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
	Title, Verdict string
	Style          template.CSS
	Lines          []string
	Fleet          Grid
	FleetChart     *sweepFleet
	Sections       []sweepSection
}

type sweepSection struct {
	Title, Verdict, Configuration string
	Chart                         sweepChart
	Chosen                        Grid
	Effects                       []sweepEffects
}

type sweepChart struct {
	Title, XName             string
	Width, Height            float64
	Left, Right, Top, Bottom float64
	XTicks, YTicks           []tick
	Goal                     float64 // 0: none
	Front                    string
	Points                   []sweepMark
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

// Write writes one HTML page that needs nothing else, in the manner of Page.
func (s *Sweep) Write(w io.Writer) error {
	p := sweepPage{Title: texttable.Escape(s.Title), Verdict: texttable.Escape(s.Verdict), Style: template.CSS(pageStyle),
		Lines: escaped(s.Lines), Fleet: s.Fleet.escaped(), FleetChart: s.drawFleet()}
	for _, section := range s.Sections {
		p.Sections = append(p.Sections, sweepSection{Title: texttable.Escape(section.Title),
			Verdict: texttable.Escape(section.Verdict), Configuration: section.Configuration, Chart: section.draw(),
			Chosen: section.Chosen.escaped(), Effects: section.effects()})
	}
	return sweepTemplate.Execute(w, p)
}

// draw draws costs over waiting times. Waits go from 0; costs do not, as the least are seldom near it.
func (s *SweepSection) draw() sweepChart {
	c := sweepChart{Title: texttable.Escape(s.Title), XName: texttable.Escape(s.WaitName) + ", seconds", Left: marginLeft,
		Right: marginLeft + plotWidth, Top: 14, Bottom: 14 + 1.6*plotHeight, Width: marginLeft + plotWidth + marginRight}
	c.Height = c.Bottom + marginBottom
	longest, low, high := s.GoalSeconds, math.Inf(1), 0.0
	for _, p := range s.Points {
		longest = max(longest, p.Wait.Max)
		low, high = min(low, p.USD.Min), max(high, p.USD.Max)
	}
	if len(s.Points) == 0 {
		return c
	}
	stepX, stepY := niceStep(max(longest, 1)/8), niceStep(max(high-low, high/100, 0.01)/5)
	endX := stepX * math.Ceil(max(longest, 1)*1.02/stepX)
	from, to := stepY*math.Floor(low/stepY-0.2), stepY*math.Ceil(high/stepY+0.2)
	from = max(0, from)
	x := func(seconds float64) float64 { return c.Left + (c.Right-c.Left)*seconds/endX }
	y := func(usd float64) float64 { return c.Bottom - (c.Bottom-c.Top)*(usd-from)/(to-from) }
	for k := 0; float64(k)*stepX <= endX*1.0001; k++ {
		c.XTicks = append(c.XTicks, tick{x(float64(k) * stepX), formatTick(float64(k) * stepX)})
	}
	for usd := from; usd <= to*1.0001; usd += stepY {
		c.YTicks = append(c.YTicks, tick{y(usd), formatTick(usd)})
	}
	if s.GoalSeconds > 0 {
		c.Goal = x(s.GoalSeconds)
	}
	c.Front = s.front(x, y)
	for _, p := range s.Points {
		c.Points = append(c.Points, p.mark(&c, x, y))
	}
	slices.SortStableFunc(c.Points, func(a, b sweepMark) int { return int(a.R - b.R) }) // what matters on top
	return c
}

// front leads from the cheapest point to the one that waits least, by steps: nothing is known between two points.
func (s *SweepSection) front(x, y func(float64) float64) string {
	var on []SweepPoint
	for _, p := range s.Points {
		if p.OnFront {
			on = append(on, p)
		}
	}
	slices.SortFunc(on, func(a, b SweepPoint) int {
		if a.Wait.Mean < b.Wait.Mean {
			return -1
		}
		return 1
	})
	var path strings.Builder
	for i, p := range on {
		if i == 0 {
			fmt.Fprintf(&path, "M%.1f %.1f", x(p.Wait.Mean), y(p.USD.Mean))
			continue
		}
		fmt.Fprintf(&path, "H%.1fV%.1f", x(p.Wait.Mean), y(p.USD.Mean))
	}
	return path.String()
}

func (p *SweepPoint) mark(c *sweepChart, x, y func(float64) float64) sweepMark {
	m := sweepMark{Class: "other", R: 3, X: x(p.Wait.Mean), Y: y(p.USD.Mean), LowX: x(p.Wait.Min), HighX: x(p.Wait.Max),
		LowY: y(p.USD.Min), HighY: y(p.USD.Max), Anchor: "start",
		Name: texttable.Escape(fmt.Sprintf("%s: %.2f USD, %.1f s", p.Name, p.USD.Mean, p.Wait.Mean))}
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
		if len(out) == 0 || out[len(out)-1].Setting != texttable.Escape(e.Setting) {
			out = append(out, sweepEffects{Setting: texttable.Escape(e.Setting)})
		}
		line := sweepEffectLine{Value: texttable.Escape(e.Value), USD: fmt.Sprintf("%.2f", e.USD),
			Wait: fmt.Sprintf("%.1f", e.Wait), WaitName: texttable.Escape(s.WaitName)}
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

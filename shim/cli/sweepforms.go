package cli

import (
	"fmt"
	"io"
	"slices"

	"loadline.dev/shim/report"
	"loadline.dev/shim/sweep"
)

// sweepAnswer is what a sweep has found.
type sweepAnswer struct {
	plan   *sweep.Plan
	rows   []*sweep.Row
	folder string
}

// sweepData is the answer as data.
type sweepData struct {
	Sweep  string  `json:"sweep"`
	Digest string  `json:"digest"`
	Rows   int     `json:"rows"`
	Points int     `json:"points"`
	Wait   string  `json:"wait"`
	Goal   float64 `json:"goalSeconds,omitempty"`
	// OverloadGoal bounds the hours of nodes with overload.
	OverloadGoal *float64        `json:"goalOverloadNodeHours,omitempty"`
	Inputs       []sweepDataPart `json:"inputs"`
}

type sweepDataPart struct {
	Name          string           `json:"name"`
	Today         *sweepDataPoint  `json:"today"`
	Best          *sweepDataPoint  `json:"best"`
	Front         []sweepDataPoint `json:"front"`
	Configuration string           `json:"configuration,omitempty"`
}

type sweepDataPoint struct {
	Point                          int               `json:"point"`
	Settings                       map[string]string `json:"settings"`
	Seeds                          int               `json:"seeds"`
	USD                            sweep.Spread      `json:"usd"`
	BoundUSD                       float64           `json:"boundUsd"`
	WaitSeconds                    sweep.Spread      `json:"waitSeconds"`
	Evictions                      float64           `json:"evictions"`
	LimitsOverAllocatableCPUP99    float64           `json:"limitsOverAllocatableCpuP99"`
	LimitsOverAllocatableMemoryP99 float64           `json:"limitsOverAllocatableMemoryP99"`
	Nodes                          float64           `json:"nodes"`
	// OverloadNodeHours is left out where no workload states its use.
	OverloadNodeHours *sweep.Spread `json:"overloadNodeHours,omitempty"`
}

func (a *sweepAnswer) point(o *sweep.Outcome) *sweepDataPoint {
	if o == nil {
		return nil
	}
	settings := map[string]string{}
	for _, path := range a.plan.Paths() {
		if value := a.plan.Points[o.Point].Get(path); value != "" {
			settings[path] = value
		}
	}
	point := &sweepDataPoint{Point: o.Point, Settings: settings, Seeds: o.Seeds, USD: o.USD, BoundUSD: o.Bound,
		WaitSeconds: o.Wait, Evictions: o.Evictions, LimitsOverAllocatableCPUP99: o.CPUP99,
		LimitsOverAllocatableMemoryP99: o.MemoryP99, Nodes: o.NodesMean}
	if a.plan.StatesUse() {
		point.OverloadNodeHours = new(o.Overload)
	}
	return point
}

func (a *sweepAnswer) forms() answer {
	summaries := a.plan.Summaries(a.rows)
	what, _, goal := a.plan.Spec.Goal.Wait()
	data := sweepData{Sweep: a.plan.Name, Digest: a.plan.Digest, Rows: len(a.rows), Points: len(a.plan.Points), Wait: what,
		Goal: goal}
	if bound, hours := a.plan.Spec.Goal.Overload(); bound {
		data.OverloadGoal = &hours
	}
	for i := range summaries {
		s := &summaries[i]
		part := sweepDataPart{Name: s.Input, Today: a.point(s.Today), Best: a.point(s.Best), Front: []sweepDataPoint{},
			Configuration: a.configuration(s)}
		for j := range s.Outcomes {
			if s.Outcomes[j].OnFront {
				part.Front = append(part.Front, *a.point(&s.Outcomes[j]))
			}
		}
		data.Inputs = append(data.Inputs, part)
	}
	return answer{data: data, verdict: fmt.Sprintf("%s of %s, %s each; all rows are in %s.",
		plural(len(a.rows), "month"), plural(len(a.plan.Points), "point"), plural(int(a.plan.Spec.Days), "day"),
		a.folder+"/rows.csv"),
		parts: a.parts(summaries), page: func(w io.Writer) error { return a.page(summaries).Write(w) }}
}

// verdict says what to choose.
func (a *sweepAnswer) verdict(s *sweep.Summary) string {
	what, _, goal := a.plan.Spec.Goal.Wait()
	within := ""
	if goal > 0 {
		within = fmt.Sprintf(" with a %s of at most %g s", what, goal)
	}
	if bound, hours := a.plan.Spec.Goal.Overload(); bound {
		within += fmt.Sprintf(" with at most %g node-hours of overload", hours)
	}
	switch {
	case s.Today == nil && s.Best == nil:
		return "No month was simulated."
	case s.Best == nil:
		return fmt.Sprintf("No point keeps the goal%s.", within)
	case s.Today == nil:
		return fmt.Sprintf("%.2f USD%s: %s.", s.Best.USD.Mean, within, a.plan.Points[s.Best.Point])
	case s.Best.Point == 0:
		return fmt.Sprintf("Nothing is cheaper%s than as it is: %.2f USD, %s %.1f s.", within, s.Today.USD.Mean, what,
			s.Today.Wait.Mean)
	}
	return fmt.Sprintf("Cheapest%s: %s. %.2f USD in place of %.2f, %s %.1f s in place of %.1f.", within,
		a.plan.Points[s.Best.Point], s.Best.USD.Mean, s.Today.USD.Mean, what, s.Best.Wait.Mean, s.Today.Wait.Mean)
}

// ifUse returns the last cells of a line: overload only where it is counted.
func (a *sweepAnswer) ifUse(overload, settings string) []string {
	if a.plan.StatesUse() {
		return []string{overload, settings}
	}
	return []string{settings}
}

// mostShown is how many points a table has.
const mostShown = 12

// shown are today's point, the front and the best, in the order of their costs.
func shown(s *sweep.Summary) (out []sweep.Outcome) {
	for _, o := range s.Outcomes {
		if o.OnFront || o.Point == 0 || s.Best != nil && o.Point == s.Best.Point {
			out = append(out, o)
		}
	}
	sortOutcomes(out)
	return out[:min(len(out), mostShown)]
}

// sweepHeader are the headers of a table; "OVERLOAD H" and "SETTINGS" follow.
var sweepHeader = []string{"USD", "BOUND", "WAIT S", "SEEDS", "EVICTIONS", "NODES"}

// parts has one for each cluster, and what holds for all of them.
func (a *sweepAnswer) parts(summaries []sweep.Summary) (out []answer) {
	what, _, _ := a.plan.Spec.Goal.Wait()
	for i := range summaries {
		s := &summaries[i]
		grid := report.Grid{Header: append(slices.Clone(sweepHeader), a.ifUse("OVERLOAD H", "SETTINGS")...)}
		for _, o := range shown(s) {
			grid.Rows = append(grid.Rows, append([]string{fmt.Sprintf("%.2f", o.USD.Mean), fmt.Sprintf("%.2f", o.Bound),
				fmt.Sprintf("%.1f", o.Wait.Mean), fmt.Sprint(o.Seeds), fmt.Sprintf("%.0f", o.Evictions),
				fmt.Sprintf("%.1f", o.NodesMean)},
				a.ifUse(fmt.Sprintf("%.1f", o.Overload.Mean), a.plan.Points[o.Point].String())...))
		}
		out = append(out, answer{verdict: s.Input + ": " + a.verdict(s),
			tables: []table{{fixed: grid, texts: []string{"SETTINGS"}}}})
	}
	lines := []string{"USD, bound, evictions and nodes are means over seeds; WAIT S is the mean of each seed's " +
		what + "."}
	if a.plan.StatesUse() {
		lines = append(lines, "OVERLOAD H is the mean of the hours of nodes whose pods use more than there is.")
	}
	return append(out, answer{lines: lines})
}

func (a *sweepAnswer) page(summaries []sweep.Summary) *report.Sweep {
	what, _, goal := a.plan.Spec.Goal.Wait()
	page := &report.Sweep{Title: "Sweep: " + a.plan.Name, Verdict: a.verdict(&summaries[0]), Lines: []string{
		fmt.Sprintf("%s: %s, %s and %s; %s each.", plural(len(a.rows), "month"),
			plural(len(a.plan.Scenarios), "cluster"), plural(len(a.plan.Points), "point"),
			plural(a.plan.Spec.Seeds.Count, "seed"), plural(int(a.plan.Spec.Days), "day"))}}
	if len(summaries) > 1 {
		page.Fleet, page.Fronts = a.fleet(summaries), fronts(summaries)
	}
	for i := range summaries {
		s := &summaries[i]
		section := report.SweepSection{Title: s.Input, Verdict: a.verdict(s), WaitName: what, GoalSeconds: goal,
			Configuration: a.configuration(s), Chosen: report.Grid{Header: []string{"US dollars", "no packing costs less",
				what + ", s", "evictions", "limits / allocatable p99, cpu", "memory", "nodes"}}}
		section.Chosen.Header = append(section.Chosen.Header, a.ifUse("overload, node-hours", "settings")...)
		for _, o := range s.Outcomes {
			section.Points = append(section.Points, report.SweepPoint{Name: a.plan.Points[o.Point].String(),
				USD: report.SweepSpread(o.USD), Wait: report.SweepSpread(o.Wait), OnFront: o.OnFront, Today: o.Point == 0,
				Best: s.Best != nil && s.Best.Point == o.Point})
		}
		for _, o := range shown(s) {
			section.Chosen.Rows = append(section.Chosen.Rows, append([]string{fmt.Sprintf("%.2f", o.USD.Mean),
				fmt.Sprintf("%.2f", o.Bound), fmt.Sprintf("%.1f", o.Wait.Mean), fmt.Sprintf("%.0f", o.Evictions),
				fmt.Sprintf("%.2f", o.CPUP99), fmt.Sprintf("%.2f", o.MemoryP99), fmt.Sprintf("%.1f", o.NodesMean)},
				a.ifUse(fmt.Sprintf("%.1f", o.Overload.Mean), a.plan.Points[o.Point].String())...))
		}
		for _, e := range a.plan.Effects(s) {
			section.Effects = append(section.Effects, report.SweepEffect{Setting: e.Path, Value: e.Value, USD: e.USD,
				Wait: e.Wait})
		}
		page.Sections = append(page.Sections, section)
	}
	return page
}

// fronts are those of each cluster, in percent of what it costs today.
func fronts(summaries []sweep.Summary) (out []report.SweepFront) {
	for _, s := range summaries {
		if s.Today == nil || s.Today.USD.Mean <= 0 {
			continue
		}
		front := report.SweepFront{Name: s.Input}
		for _, o := range s.Outcomes {
			if o.OnFront {
				front.Points = append(front.Points, report.SweepFrontPoint{Wait: o.Wait.Mean,
					Percent: 100 * o.USD.Mean / s.Today.USD.Mean})
			}
		}
		out = append(out, front)
	}
	return out
}

// fleet has a line for each cluster.
func (a *sweepAnswer) fleet(summaries []sweep.Summary) report.Grid {
	what, _, _ := a.plan.Spec.Goal.Wait()
	grid := report.Grid{Header: []string{"cluster", "US dollars today", "no packing costs less", "within the goal",
		"saved",
		what + " today, s", "then", "settings"}}
	for i := range summaries {
		s := &summaries[i]
		if s.Today == nil {
			continue
		}
		line := []string{s.Input, fmt.Sprintf("%.2f", s.Today.USD.Mean), fmt.Sprintf("%.2f", s.Today.Bound), "-", "-",
			fmt.Sprintf("%.1f", s.Today.Wait.Mean), "-", "no point keeps the goal"}
		if s.Best != nil {
			saved := 0.0
			if s.Today.USD.Mean > 0 {
				saved = 100 * (1 - s.Best.USD.Mean/s.Today.USD.Mean)
			}
			line[3], line[4] = fmt.Sprintf("%.2f", s.Best.USD.Mean), fmt.Sprintf("%.1f %%", saved)
			line[6], line[7] = fmt.Sprintf("%.1f", s.Best.Wait.Mean), a.plan.Points[s.Best.Point].String()
		}
		grid.Rows = append(grid.Rows, line)
	}
	return grid
}

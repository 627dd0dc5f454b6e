package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/report"
)

const secondsOfDay = 86400

// scenarioRow is a line of a grid of runs.
type scenarioRow struct {
	name  string
	value func(*loadlinev1.SimulateResponse) string
}

// overloadRow has a number of the overload; nothing where no workload states its use.
func overloadRow(name, format string, value func(*loadlinev1.SimulatedOverload) float64) scenarioRow {
	return scenarioRow{name, func(r *loadlinev1.SimulateResponse) string {
		if r.GetOverload() == nil {
			return ""
		}
		return fmt.Sprintf(format, value(r.GetOverload()))
	}}
}

// overloadRows are in a grid of runs of which one states its use.
var overloadRows = []scenarioRow{
	overloadRow("overloaded, node-hours: cpu", "%.1f", (*loadlinev1.SimulatedOverload).GetCpuNodeHours),
	overloadRow("  memory, above 97 %", "%.1f", (*loadlinev1.SimulatedOverload).GetMemoryNodeHours),
	overloadRow("overload, in nodes for an hour", "%.2f", (*loadlinev1.SimulatedOverload).GetCpuVolume),
	overloadRow("  memory", "%.2f", (*loadlinev1.SimulatedOverload).GetMemoryVolume),
}

func statesUse(runs []*scenarioRun) bool {
	return slices.ContainsFunc(runs, func(run *scenarioRun) bool { return run.result.GetOverload() != nil })
}

// scenarioRows are the lines of a grid of runs.
var scenarioRows = []scenarioRow{
	{"cost, US dollars", func(r *loadlinev1.SimulateResponse) string { return fmt.Sprintf("%.2f", r.GetUsd()) }},
	{"  no packing costs less than", func(r *loadlinev1.SimulateResponse) string {
		return fmt.Sprintf("%.2f", r.GetBoundUsd())
	}},
	{"wait of pods, seconds: mean", func(r *loadlinev1.SimulateResponse) string {
		return fmt.Sprintf("%.1f", r.GetWaits().GetMean())
	}},
	{"p50", func(r *loadlinev1.SimulateResponse) string { return fmt.Sprintf("%.1f", r.GetWaits().GetP50()) }},
	{"p95", func(r *loadlinev1.SimulateResponse) string { return fmt.Sprintf("%.1f", r.GetWaits().GetP95()) }},
	{"max", func(r *loadlinev1.SimulateResponse) string { return fmt.Sprintf("%.1f", r.GetWaits().GetMax()) }},
	{"pods that waited, or not", func(r *loadlinev1.SimulateResponse) string {
		return fmt.Sprint(r.GetWaits().GetPods())
	}},
	{"pods without a node at the end", func(r *loadlinev1.SimulateResponse) string {
		return fmt.Sprint(r.GetLeftWaiting())
	}},
	{"evictions", func(r *loadlinev1.SimulateResponse) string { return fmt.Sprint(r.GetEvictions()) }},
	{"orders of machines", func(r *loadlinev1.SimulateResponse) string { return fmt.Sprint(r.GetGrowths()) }},
	{"moves that replace nodes", func(r *loadlinev1.SimulateResponse) string {
		return fmt.Sprint(r.GetMoves().GetBegun())
	}},
	{"nodes that came", func(r *loadlinev1.SimulateResponse) string { return fmt.Sprint(r.GetNodesAdded()) }},
	{"nodes that went", func(r *loadlinev1.SimulateResponse) string { return fmt.Sprint(r.GetNodesRemoved()) }},
	{"nodes in the mean", func(r *loadlinev1.SimulateResponse) string {
		return fmt.Sprintf("%.1f", r.GetLoad().GetNodesMean())
	}},
	{"limits / allocatable p99: cpu", func(r *loadlinev1.SimulateResponse) string {
		return fmt.Sprintf("%.2f", r.GetLoad().GetLimitsOverAllocatableCpuP99())
	}},
	{"  memory", func(r *loadlinev1.SimulateResponse) string {
		return fmt.Sprintf("%.2f", r.GetLoad().GetLimitsOverAllocatableMemoryP99())
	}},
	{"loops with something new", func(r *loadlinev1.SimulateResponse) string { return fmt.Sprint(r.GetLoops()) }},
	{"broken invariants", func(r *loadlinev1.SimulateResponse) string { return fmt.Sprint(len(r.GetViolations())) }},
	{"digest", func(r *loadlinev1.SimulateResponse) string { return fmt.Sprintf("%016x", r.GetDigest()) }},
}

// rowsAtTheEnd say how the simulation went: loops, invariants and digest.
const rowsAtTheEnd = 3

// scenarioGrid has a line for each number, and a column for each run.
func scenarioGrid(runs []*scenarioRun) report.Grid {
	grid := report.Grid{Header: []string{""}}
	for _, run := range runs {
		grid.Header = append(grid.Header, run.name)
	}
	rows := scenarioRows
	if statesUse(runs) {
		rows = slices.Concat(rows[:len(rows)-rowsAtTheEnd], overloadRows, rows[len(rows)-rowsAtTheEnd:])
	}
	for _, row := range rows {
		line := []string{row.name}
		for _, run := range runs {
			line = append(line, row.value(run.result))
		}
		grid.Rows = append(grid.Rows, line)
	}
	return grid
}

// violations are the invariants that runs broke.
func violations(runs []*scenarioRun) (lines []string) {
	for _, run := range runs {
		for _, violation := range run.result.GetViolations() {
			lines = append(lines, run.name+": "+violation)
		}
	}
	return lines
}

// scenarioPage draws both runs in the same pictures.
func scenarioPage(w io.Writer, runs []*scenarioRun) error {
	page := report.Steps{Title: "Simulation: " + runs[0].name, Grid: scenarioGrid(runs), TimeUnit: "days",
		Verdict: fmt.Sprintf("%s: %.2f US dollars; half of all pods waited at most %.1f s for a node, 95 %% at most "+
			"%.1f s.", plural(int(runs[0].days), "day"), runs[0].result.GetUsd(), runs[0].result.GetWaits().GetP50(),
			runs[0].result.GetWaits().GetP95())}
	charts := scenarioCharts
	if statesUse(runs) {
		charts = slices.Concat(charts, useCharts)
	}
	for _, chart := range charts {
		drawn := report.StepChart{Title: chart.title}
		for _, run := range runs {
			drawn.Series = append(drawn.Series, seriesOf(run.name, run, chart.value))
		}
		if chart.bound != nil && len(runs) == 1 {
			drawn.Series = append(drawn.Series, seriesOf("no packing costs less", runs[0], chart.bound))
		}
		page.Charts = append(page.Charts, drawn)
	}
	for _, run := range runs {
		page.Lines = append(page.Lines, run.name+": "+waitsLine(run.result.GetWaits()))
	}
	return report.StepsPage(w, page)
}

// moment is what a chart shows of one.
type moment func(*loadlinev1.SimulatedMoment) float64

type scenarioChart struct {
	title        string
	value, bound moment
}

// useCharts are drawn where a workload states its use.
var useCharts = []scenarioChart{
	{"CPU that the pods of the busiest node use, over what it offers", (*loadlinev1.SimulatedMoment).GetBusiestCpu, nil},
	{"Memory, likewise", (*loadlinev1.SimulatedMoment).GetBusiestMemory, nil},
	{"Overloaded nodes", func(m *loadlinev1.SimulatedMoment) float64 { return float64(m.GetNodesOverloaded()) }, nil},
}

var scenarioCharts = []scenarioChart{
	{"Nodes", func(m *loadlinev1.SimulatedMoment) float64 { return float64(m.GetNodes()) }, nil},
	{"Pods", func(m *loadlinev1.SimulatedMoment) float64 { return float64(m.GetPods()) }, nil},
	{"Pods that wait for a node", func(m *loadlinev1.SimulatedMoment) float64 { return float64(m.GetWaiting()) }, nil},
	{"Cost, US dollars per hour", (*loadlinev1.SimulatedMoment).GetUsdPerHour,
		(*loadlinev1.SimulatedMoment).GetBoundUsdPerHour},
	{"Seconds that pods waited for a node: half of them at most", (*loadlinev1.SimulatedMoment).GetWaitP50, nil},
	{"Seconds that pods waited for a node: 95 % of them at most", (*loadlinev1.SimulatedMoment).GetWaitP95, nil},
	{"Seconds that pods waited for a node: the longest", (*loadlinev1.SimulatedMoment).GetWaitMax, nil},
}

func seriesOf(name string, run *scenarioRun, value moment) report.StepSeries {
	series := report.StepSeries{Name: name}
	for _, m := range run.result.GetSeries() {
		series.Points = append(series.Points,
			report.StepPoint{Seconds: float64(m.GetAtSeconds()) / secondsOfDay, Value: value(m)})
	}
	return series
}

// waitsLine tells how many pods waited at most how long.
func waitsLine(waits *loadlinev1.SimulatedWaits) string {
	var parts []string
	sum := int64(0)
	for _, count := range waits.GetHistogram() {
		sum += count.GetPods()
		if count.GetPods() == 0 || waits.GetPods() == 0 || count.GetAtMostSeconds() < 0 {
			continue
		}
		parts = append(parts, fmt.Sprintf("%.1f %% at most %d s", 100*float64(sum)/float64(waits.GetPods()),
			count.GetAtMostSeconds()))
	}
	return "pods waited for a node " + strings.Join(parts, ", ")
}

package demo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"loadline.dev/shim/report"
	"loadline.dev/shim/report/texttable"
	"loadline.dev/test/e2e/harness"
)

// showScaling runs the scenario without slack and with it, and shows both side by side.
func showScaling(ctx context.Context, out io.Writer, step harness.Logf, page string) error {
	fmt.Fprintf(out, "\n(c) The autoscaler acts on a simulated cloud whose nodes start in %.0f s. "+
		"%d pods of half a cpu arrive, then a burst\n"+
		"    of %d more; %d stay. While nodes drain, all disruption budgets close for a while. "+
		"Once no room is kept free, and once %s of\n"+
		"    what pods request.\n\n", NodeStart.Seconds(), LoadPods, BurstPods, RestPods, SlackRate)
	without, with, err := RunScalings(ctx, step)
	if err != nil {
		return err
	}
	runs := []*Scaling{&without, &with}
	fmt.Fprintln(out)
	if err := scalingTable(out, runs); err != nil {
		return err
	}
	if err := writeScalingPage(page, runs); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nCost, nodes and waiting pods over time: %s\n", page)
	if problems := CheckScaling(&without, &with); len(problems) > 0 {
		return fmt.Errorf("%w:\n  %s", ErrNotShown, strings.Join(problems, "\n  "))
	}
	fmt.Fprintf(out, "With slack the burst had its nodes after %.2f s, without it after %.2f s, "+
		"as long as a node takes to start. No budget was\n"+
		"broken, no pod went with its node, and no node keeps a taint.\n",
		with.BurstTook.Seconds(), without.BurstTook.Seconds())
	return nil
}

// scalingLines are the measures of a run, with their names.
func scalingLines(r *Scaling) (names, values []string) {
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
	for _, line := range [][2]string{
		{"nodes for the load", fmt.Sprintf("%s: %.2f USD per hour", r.MixText(), r.MixUSD()+ScalingGroups()[0].Price)},
		{"load: longest wait for a node", seconds(r.LoadTook)},
		{"burst: longest wait for a node", seconds(r.BurstTook)},
		{"nodes removed", fmt.Sprintf("%d, up to %d at once", r.Removed, r.Most)},
		{"evictions", fmt.Sprintf("%d, and %d that budgets put off", r.Evictions[201], r.Evictions[429])},
		{"highest cost", fmt.Sprintf("%.2f USD per hour", r.peak())},
		{"cost of the whole run", fmt.Sprintf("%.4f USD", r.USD)},
	} {
		names, values = append(names, line[0]), append(values, line[1])
	}
	return names, values
}

func (r *Scaling) peak() (peak float64) {
	for _, sample := range r.Samples {
		peak = max(peak, sample.USDPerHour)
	}
	return peak
}

func scalingTable(out io.Writer, runs []*Scaling) error {
	grid := scalingGrid(runs)
	var columns []texttable.Column
	for _, header := range grid.Header {
		columns = append(columns, texttable.Column{Header: header})
	}
	table := texttable.New(columns...)
	for _, row := range grid.Rows {
		table.Row(row...)
	}
	return table.Write(out)
}

func scalingGrid(runs []*Scaling) report.Grid {
	grid := report.Grid{Header: []string{""}}
	for _, r := range runs {
		grid.Header = append(grid.Header, r.Name)
		names, values := scalingLines(r)
		for i := range names {
			if len(grid.Rows) == i {
				grid.Rows = append(grid.Rows, []string{names[i]})
			}
			grid.Rows[i] = append(grid.Rows[i], values[i])
		}
	}
	return grid
}

func writeScalingPage(file string, runs []*Scaling) error {
	page := report.Steps{Title: "An autoscaler with slack and without", Grid: scalingGrid(runs),
		Verdict: fmt.Sprintf("A burst of %d pods waits %.2f s with slack and %.2f s without it.",
			BurstPods, runs[1].BurstTook.Seconds(), runs[0].BurstTook.Seconds()),
		Lines: []string{
			fmt.Sprintf("%d pods of half a cpu arrive, then %d more; %d stay. Nodes of the simulated cloud start "+
				"in %.0f s. Slack: %s of what pods request.", LoadPods, BurstPods, RestPods,
				NodeStart.Seconds(), SlackRate),
			"Cost is that of all machines from when they are asked for to when they are given back."},
		Charts: []report.StepChart{
			chart("US dollars per hour", runs, true, func(s *Sample) float64 { return s.USDPerHour }),
			chart("Nodes", runs, false, func(s *Sample) float64 { return float64(s.Nodes) }),
			chart("Nodes on their way out", runs, false, func(s *Sample) float64 { return float64(s.Going) }),
			chart("Pods that wait for a node", runs, false, func(s *Sample) float64 { return float64(s.Waiting) }),
		}}
	var content bytes.Buffer
	if err := report.StepsPage(&content, page); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content.Bytes(), 0o644)
}

func chart(title string, runs []*Scaling, marks bool, value func(*Sample) float64) report.StepChart {
	c := report.StepChart{Title: title}
	for _, r := range runs {
		series := report.StepSeries{Name: r.Name}
		for i := range r.Samples {
			series.Points = append(series.Points,
				report.StepPoint{Seconds: r.Samples[i].At.Seconds(), Value: value(&r.Samples[i])})
		}
		if marks {
			for _, m := range r.Marks {
				series.Marks = append(series.Marks, report.StepMark{Seconds: m.At.Seconds(), Label: m.What})
			}
		}
		c.Series = append(c.Series, series)
	}
	return c
}

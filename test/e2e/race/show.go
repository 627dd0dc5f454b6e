package race

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"loadline.dev/shim/report"
	"loadline.dev/shim/report/texttable"
)

// Table writes all heats as text.
func (r *Result) Table(out io.Writer) error {
	for _, heat := range r.Heats {
		fmt.Fprintf(out, "\n%s\n", heat.title())
		grid := heat.grid()
		var columns []texttable.Column
		for i, header := range grid.Header {
			columns = append(columns, texttable.Column{Header: header, Align: align(i)})
		}
		table := texttable.New(columns...)
		for _, row := range grid.Rows {
			table.Row(row...)
		}
		if err := table.Write(out); err != nil {
			return err
		}
	}
	return nil
}

func (h *Heat) title() string {
	return fmt.Sprintf("Scenario %s, seed %d, %.0f s", h.Scenario, h.Seed, h.Seconds)
}

// align has numbers on the right.
func align(column int) texttable.Align {
	if column == 0 {
		return texttable.Left
	}
	return texttable.Right
}

// ratio is a number, where it is known.
func ratio(value float64, decimals int) string {
	if value == 0 {
		return ""
	}
	return strconv.FormatFloat(value, 'f', decimals, 64)
}

// usd is an amount, where there is one.
func usd(amount float64) string {
	if amount == 0 {
		return ""
	}
	return fmt.Sprintf("%.3f", amount)
}

// grid is a table of the heat: a column for each run.
func (h *Heat) grid() report.Grid {
	grid := report.Grid{Header: []string{""}}
	for _, run := range h.Runs {
		grid.Header = append(grid.Header, run.Name())
	}
	row := func(name string, value func(*Run) string) {
		cells := []string{name}
		for _, run := range h.Runs {
			cells = append(cells, value(run))
		}
		grid.Rows = append(grid.Rows, cells)
	}
	row("USD", func(r *Run) string { return usd(r.USD) })
	row("USD from the orders on", func(r *Run) string { return usd(r.USDWithStarts) })
	row("lower bound, USD", func(r *Run) string { return usd(r.BoundUSD) })
	for i, mark := range h.Marks { // the last moment before the next one
		end := time.Duration(h.Seconds * float64(time.Second))
		if i+1 < len(h.Marks) {
			end = h.Marks[i+1].At - time.Second
		}
		row("USD per hour after: "+mark.Name, func(r *Run) string {
			if len(r.Series) == 0 {
				return ""
			}
			return fmt.Sprintf("%.2f", r.At(end).USDPerHour)
		})
	}
	row("at rest, over the bound", func(r *Run) string { return ratio(r.AtRest(), 2) })
	row("evictions", func(r *Run) string { return fmt.Sprint(r.Evictions) })
	row("nodes that came / went", func(r *Run) string { return fmt.Sprintf("%d / %d", r.NodesAdded, r.NodesRemoved) })
	if slices.ContainsFunc(h.Runs, func(r *Run) bool { return r.MemoryLimitsMost > 0 }) {
		row("limits over memory of a node, at most", func(r *Run) string { return ratio(r.MemoryLimitsMost, 3) })
	}
	row("wait of a pod, s: mean", func(r *Run) string { return fmt.Sprintf("%.1f", r.Waits.Mean) })
	row("p50", func(r *Run) string { return fmt.Sprintf("%.1f", r.Waits.P50) })
	row("p95", func(r *Run) string { return fmt.Sprintf("%.1f", r.Waits.P95) })
	row("longest", func(r *Run) string { return fmt.Sprintf("%.1f", r.Waits.Max) })
	row("pods that found a node", func(r *Run) string { return fmt.Sprint(r.Waits.Pods) })
	row("pods without one at the end", func(r *Run) string { return fmt.Sprint(r.LeftWaiting) })
	return grid
}

// mostLines is how many lines a chart has at most.
const mostLines = 4

// Page writes one heat as an HTML page. The simulator's runs are in its table only.
func (h *Heat) Page(w io.Writer, r *Result) error {
	runs := slices.DeleteFunc(slices.Clone(h.Runs), func(run *Run) bool { return run.Simulated })
	runs = runs[:min(len(runs), mostLines)]
	if len(runs) == 0 {
		return fmt.Errorf("%s: nothing has run", h.title())
	}
	cheapest := slices.MinFunc(runs, func(a, b *Run) int {
		if a.USD < b.USD {
			return -1
		}
		return 1
	})
	page := report.Steps{Title: "The race. " + h.title(), Grid: h.grid(),
		Verdict: fmt.Sprintf("%s costs least: %.3f US dollars in %.0f s, where no packing costs less than %.3f.",
			cheapest.Name(), cheapest.USD, h.Seconds, cheapest.BoundUSD),
		Lines: []string{
			"USD is what all nodes cost while they are there; from the orders on, also until machines are nodes. " +
				"At rest is the cost over the bound in the last tenth of the time. Waits are in seconds, from a pod's creation " +
				"to its node.",
			fmt.Sprintf("%s, %s. %s", r.Date, r.Machine, r.Command)},
		Charts: []report.StepChart{
			h.chart("US dollars per hour", runs, true, func(m *Moment) float64 { return m.USDPerHour }),
			h.chart("US dollars per hour over the lower bound", runs, false, func(m *Moment) float64 {
				if m.BoundUSDPerHour == 0 {
					return 0
				}
				return min(4, m.USDPerHour/m.BoundUSDPerHour)
			}),
			h.chart("Nodes", runs, false, func(m *Moment) float64 { return float64(m.Nodes) }),
			h.chart("Pods that wait for a node", runs, false, func(m *Moment) float64 { return float64(m.Waiting) }),
			h.chart("Evictions so far", runs, false, func(m *Moment) float64 { return float64(m.Evictions) }),
		}}
	for _, run := range runs {
		page.Lines = append(page.Lines, run.Name()+": "+run.Settings)
	}
	return report.StepsPage(w, page)
}

func (h *Heat) chart(title string, runs []*Run, marks bool, value func(*Moment) float64) report.StepChart {
	chart := report.StepChart{Title: title}
	for i, run := range runs {
		series := report.StepSeries{Name: run.Name()}
		for k := range run.Series {
			series.Points = append(series.Points, report.StepPoint{Seconds: run.Series[k].Seconds, Value: value(&run.Series[k])})
		}
		for _, mark := range h.Marks {
			if marks && i == 0 {
				series.Marks = append(series.Marks, report.StepMark{Seconds: mark.At.Seconds(), Label: mark.Name})
			}
		}
		chart.Series = append(chart.Series, series)
	}
	return chart
}

// Write writes the data and a page for each heat into a folder, and returns the names of the files.
func (r *Result) Write(folder string) (files []string, err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	write := func(name string, content []byte) error {
		files = append(files, filepath.Join(folder, name))
		return os.WriteFile(files[len(files)-1], content, 0o644)
	}
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return nil, err
	}
	if err := write("race.json", append(data, '\n')); err != nil {
		return nil, err
	}
	for _, heat := range r.Heats {
		var page bytes.Buffer
		if err := heat.Page(&page, r); err != nil {
			return nil, err
		}
		if err := write(fmt.Sprintf("%s-%d.html", heat.Scenario, heat.Seed), page.Bytes()); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// Read reads what Write has written, so that contestants may run at different times.
func Read(folder string) (*Result, error) {
	content, err := os.ReadFile(filepath.Join(folder, "race.json"))
	if err != nil {
		return nil, err
	}
	r := &Result{}
	return r, json.Unmarshal(content, r)
}

// Put adds a run to the heat of a scenario, in place of one of the same contestant.
func (r *Result) Put(s *Scenario, run *Run) {
	i := slices.IndexFunc(r.Heats, func(h *Heat) bool { return h.Scenario == s.Name && h.Seed == s.Seed })
	if i < 0 {
		i = len(r.Heats)
		r.Heats = append(r.Heats, &Heat{Scenario: s.Name, Seed: s.Seed, Seconds: s.Duration.Seconds(), Marks: s.Marks})
	}
	heat := r.Heats[i]
	k := slices.IndexFunc(heat.Runs, func(other *Run) bool { return other.Name() == run.Name() })
	if k < 0 {
		heat.Runs = append(heat.Runs, run)
	} else {
		heat.Runs[k] = run
	}
}

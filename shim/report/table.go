package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"loadline.dev/shim/report/texttable"
)

// SummaryTexts are the headers of SummaryGrid whose columns hold no numbers.
var SummaryTexts = []string{"RESOURCE", "LIMITS/ALLOCATABLE"}

// SummaryGrid has one block of lines per resource, with a column per placement: percentiles and maximum of
// limits/allocatable over the nodes (nearest rank), how many nodes are above 1.0, 1.5 and 2.0, then the pods
// left pending.
func SummaryGrid(placements []Placement) Grid {
	grid := Grid{Header: slices.Clone(SummaryTexts)}
	for _, p := range placements {
		grid.Header = append(grid.Header, p.Name)
	}
	for _, resource := range Resources(placements) {
		for i, line := range summaryLines(placements, resource) {
			name := ""
			if i == 0 {
				name = resource
			}
			grid.Rows = append(grid.Rows, append([]string{name, line.Label}, line.Values...))
		}
	}
	grid.Rows = append(grid.Rows, append([]string{"pods", "pending"}, each(placements, func(p Placement) string {
		return strconv.Itoa(p.PendingPods)
	})...))
	return grid
}

// Table writes SummaryGrid as text.
func Table(w io.Writer, placements []Placement) error {
	grid := SummaryGrid(placements)
	var columns []texttable.Column
	for _, header := range grid.Header {
		column := texttable.Column{Header: header, Align: texttable.Right}
		if slices.Contains(SummaryTexts, header) {
			column.Align = texttable.Left
		}
		columns = append(columns, column)
	}
	table := texttable.New(columns...)
	for _, row := range grid.Rows {
		table.Row(row...)
	}
	return table.Write(w)
}

// summaryLine is one measure of all placements.
type summaryLine struct {
	Label  string
	Values []string
}

func summaryLines(placements []Placement, resource string) []summaryLine {
	summaries := make([]Summary, len(placements))
	lacking := 0
	for i, p := range placements {
		summaries[i] = Summarize(p, resource)
		lacking = max(lacking, summaries[i].Lacking)
	}
	measure := func(label string, format func(Summary) string) summaryLine {
		return summaryLine{label, each(summaries, format)}
	}
	lines := []summaryLine{
		measure("p50", func(s Summary) string { return s.ratio(s.P50) }),
		measure("p95", func(s Summary) string { return s.ratio(s.P95) }),
		measure("p99", func(s Summary) string { return s.ratio(s.P99) }),
		measure("max", func(s Summary) string { return s.ratio(s.Max) }),
		measure("all nodes together", func(s Summary) string {
			ratio, _ := s.Total.Ratio()
			return s.ratio(ratio)
		}),
	}
	for i, threshold := range Thresholds {
		lines = append(lines, measure(fmt.Sprintf("nodes above %.1f", threshold), func(s Summary) string {
			return strconv.Itoa(s.Above[i])
		}))
	}
	if lacking > 0 {
		lines = append(lines, measure("nodes without it", func(s Summary) string { return strconv.Itoa(s.Lacking) }))
	}
	return lines
}

// ratio formats a ratio; without a node there is none.
func (s Summary) ratio(ratio float64) string {
	if s.Nodes == 0 {
		return "-"
	}
	return FormatRatio(ratio)
}

func each[T any](values []T, format func(T) string) []string {
	formatted := make([]string, len(values))
	for i, value := range values {
		formatted[i] = format(value)
	}
	return formatted
}

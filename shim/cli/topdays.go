package cli

import (
	"fmt"
	"io"

	"loadline.dev/shim/report"
)

// mostDays is how many days of nodes a page draws: those that are expected to be busiest come first.
const mostDays = 24

// usePage writes a page with the table of nodes, and the day of the busiest ones as pictures.
func usePage(w io.Writer, source string, a answer, nodes []useNode) error {
	d, err := documentOf(a.data)
	if err != nil {
		return err
	}
	grid, err := a.tables[0].gridOf(d)
	if err != nil {
		return err
	}
	page := report.Steps{
		Title:    "Expected use: " + source,
		Lines:    append(a.lines, leftOutLines(a.leftOut)...),
		Grid:     grid,
		TimeUnit: "hour of the day, UTC",
		Verdict:  "What pods are expected to use in each hour, beside their limits and requests.",
	}
	for i := range nodes {
		if len(nodes[i].ExpectedHours) > 0 && len(page.Charts) < mostDays {
			page.Charts = append(page.Charts, nodes[i].day())
		}
	}
	return report.StepsPage(w, page)
}

// day draws 24 hours of a node.
func (n *useNode) day() report.StepChart {
	unit, of := "cores", 1000.0
	if n.Resource == "memory" {
		unit, of = "GiB", float64(1<<30)
	}
	flat := func(name string, amount int64) report.StepSeries {
		value := float64(amount) / of
		return report.StepSeries{Name: name, Points: []report.StepPoint{{Value: value}, {Seconds: 24, Value: value}}}
	}
	use := report.StepSeries{Name: "expected use"}
	for hour, amount := range n.ExpectedHours {
		use.Points = append(use.Points, report.StepPoint{Seconds: float64(hour), Value: float64(amount) / of})
	}
	use.Points = append(use.Points, report.StepPoint{Seconds: 24, Value: use.Points[len(use.Points)-1].Value})
	return report.StepChart{Title: fmt.Sprintf("%s: %s, %s", n.Node, n.Resource, unit), Series: []report.StepSeries{use,
		flat("allocatable", n.Allocatable), flat("limits", n.Limits), flat("requests", n.Requests)}}
}

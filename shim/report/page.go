package report

import (
	_ "embed"
	"html/template"
	"io"
	"slices"

	"loadline.dev/shim/report/texttable"
)

//go:embed page.html.tmpl
var pageText string

//go:embed histogram.html.tmpl
var histogramText string

//go:embed page.css
var pageStyle string

var pageTemplate = template.Must(template.Must(template.New("page").Parse(pageText)).Parse(histogramText))

// page is what the template draws.
type page struct {
	Title      string
	Style      template.CSS
	Placements []placementHead
	Scale      []scaleStep
	Resources  []resourceSection
}

type placementHead struct {
	Name        string
	Nodes       int
	PendingPods int
}

type resourceSection struct {
	Name       string
	Names      []string
	Lines      []tableLine
	Histograms []histogram
	HeatMaps   []heatMap
}

type tableLine struct {
	Label  string
	Values []string
}

// Page writes one HTML page that needs nothing else: no script, no font, no picture from anywhere. Per resource it
// shows the summary of Table, a histogram of limits/allocatable over the nodes for each placement, on the same axes,
// and a heat map with one cell per node. The same input gives the same bytes.
func Page(w io.Writer, title string, placements []Placement) error {
	p := page{Title: texttable.Escape(title), Style: template.CSS(pageStyle), Scale: colourScale[:]}
	escaped := slices.Clone(placements)
	for i := range escaped {
		escaped[i].Name = texttable.Escape(escaped[i].Name)
		p.Placements = append(p.Placements,
			placementHead{escaped[i].Name, len(escaped[i].Nodes), escaped[i].PendingPods})
	}
	for _, resource := range Resources(placements) {
		p.Resources = append(p.Resources, newResourceSection(escaped, resource))
	}
	return pageTemplate.Execute(w, p)
}

func newResourceSection(placements []Placement, resource string) resourceSection {
	section := resourceSection{Name: texttable.Escape(resource)}
	for _, line := range summaryLines(placements, resource) {
		section.Lines = append(section.Lines, tableLine{line.label, line.values})
	}
	var all []float64
	for _, p := range placements {
		section.Names = append(section.Names, p.Name)
		section.HeatMaps = append(section.HeatMaps, newHeatMap(p, resource))
		all = append(all, ratios(p, resource)...)
	}
	shared := newAxis(all)
	highest := 1
	for _, p := range placements {
		highest = max(highest, slices.Max(shared.count(ratios(p, resource))))
	}
	for _, p := range placements {
		section.Histograms = append(section.Histograms, newHistogram(p, resource, shared, highest))
	}
	return section
}

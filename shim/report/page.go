package report

import (
	"embed"
	"html/template"
	"io"
	"slices"
	"text/template/parse"

	"loadline.dev/shim/report/texttable"
)

//go:embed *.html.tmpl
var files embed.FS

//go:embed page.css
var pageStyle string

// pages holds the template of each page, and the parts that pages share. Each text that a template prints passes
// texttable.Escape.
var pages = parsePages()

// verbatim is a text that a page shows as it is, with its lines. What users wrote in it has been escaped.
type verbatim string

func parsePages() *template.Template {
	set := template.New("").Funcs(template.FuncMap{
		"style": func() template.CSS { return template.CSS(pageStyle) },
		"visible": func(value any) any {
			if text, ok := value.(string); ok {
				return texttable.Escape(text)
			}
			return value
		},
	})
	template.Must(set.ParseFS(files, "*.html.tmpl"))
	for _, t := range set.Templates() {
		if t.Tree != nil {
			makeVisible(t.Tree.Root)
		}
	}
	return set
}

// makeVisible has all that a part of a template prints pass through its function "visible".
func makeVisible(of parse.Node) {
	list := func(nodes *parse.ListNode) {
		if nodes != nil {
			for _, node := range nodes.Nodes {
				makeVisible(node)
			}
		}
	}
	switch node := of.(type) {
	case *parse.ListNode:
		list(node)
	case *parse.IfNode:
		list(node.List)
		list(node.ElseList)
	case *parse.RangeNode:
		list(node.List)
		list(node.ElseList)
	case *parse.WithNode:
		list(node.List)
		list(node.ElseList)
	case *parse.ActionNode:
		if len(node.Pipe.Decl) == 0 {
			node.Pipe.Cmds = append(node.Pipe.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand,
				Args: []parse.Node{parse.NewIdentifier("visible").SetPos(node.Pos)}})
		}
	}
}

// write writes one HTML page that needs nothing else: no script, no font, no picture from anywhere. The same input
// gives the same bytes.
func write(w io.Writer, page string, data any) error {
	return pages.ExecuteTemplate(w, page+".html.tmpl", data)
}

// head begins most pages.
type head struct {
	Title, Verdict string
	Lines          []string
}

// page is what the template draws.
type page struct {
	Title      string
	Notes      []string
	Placements []Placement
	Scale      []scaleStep
	Resources  []resourceSection
}

type resourceSection struct {
	Name       string
	Names      []string
	Lines      []summaryLine
	Histograms []histogram
	HeatMaps   []heatMap
}

// Page writes a page that shows for each resource the summary of SummaryGrid, a histogram of limits/allocatable over
// the nodes for each placement, on the same axes, and a heat map with one cell per node. Each of notes is a paragraph
// above them.
func Page(w io.Writer, title string, placements []Placement, notes ...string) error {
	p := page{Title: title, Notes: notes, Scale: colourScale[:], Placements: placements}
	for _, resource := range Resources(placements) {
		p.Resources = append(p.Resources, newResourceSection(placements, resource))
	}
	return write(w, "page", p)
}

func newResourceSection(placements []Placement, resource string) resourceSection {
	section := resourceSection{Name: resource, Lines: summaryLines(placements, resource)}
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

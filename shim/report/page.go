package report

import (
	"embed"
	"html/template"
	"io"
	"slices"
	"strconv"
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
func (p *page) write(w io.Writer) error { return pages.ExecuteTemplate(w, "page.html.tmpl", p) }

// loadText explains what the ratios on a page are.
const loadText = "How much the pods of each node may use, over what the node offers to pods: the sum of their limits " +
	"divided by allocatable. At 1.0, the load line, the node can give every pod all that it may ask for; above it, it " +
	"cannot."

// Page writes a page that shows for each resource the summary of SummaryGrid, a histogram of limits/allocatable over
// the nodes for each placement, on the same axes, and a heat map with one cell per node. Each of notes is a paragraph
// above them.
func Page(w io.Writer, title string, placements []Placement, notes ...string) error {
	table := &cells{Header: append(texts("", "placement"), texts("number", "nodes", "pods pending")...)}
	for _, p := range placements {
		table.Rows = append(table.Rows, append(texts("", p.Name),
			texts("number", strconv.Itoa(len(p.Nodes)), strconv.Itoa(p.PendingPods))...))
	}
	p := page{Title: title, Lines: []string{loadText + " A pod without a limit adds nothing here."},
		Parts: []part{{Says: notes, Table: table}}}
	resources := Resources(placements)
	if len(resources) == 0 {
		p.Parts = append(p.Parts,
			part{Says: []string{"No node offers anything, and no pod asks for anything: there is nothing to draw."}})
	}
	for _, resource := range resources {
		p.Parts = append(p.Parts, loadParts(placements, resource)...)
	}
	return p.write(w)
}

func loadParts(placements []Placement, resource string) []part {
	summary := summaryCells(placements, resource, "limits / allocatable over the nodes")
	histograms := part{Subtitle: "How many nodes at which ratio", Figures: histograms(placements, resource)}
	maps := part{Subtitle: "Each node", Lines: []string{"One cell per node, in the same place in every map. A dot marks " +
		"what is above the load line. Point at a cell for its name and amounts."}}
	for _, step := range colourScale {
		class := step.Class
		if step.Over() {
			class += " over"
		}
		maps.Legend = append(maps.Legend, swatch(class, step.Label))
	}
	maps.Legend = append(maps.Legend, swatch("none", "offers none"))
	for _, p := range placements {
		maps.Maps = append(maps.Maps, newHeatMap(p, resource))
	}
	return []part{{Title: resource, Table: summary, After: "Percentiles by nearest rank: p95 is the smallest ratio that " +
		"at least 95 % of the nodes do not exceed."}, histograms, maps}
}

// summaryCells are the lines of a summary, with a column for each placement.
func summaryCells(placements []Placement, resource, title string) *cells {
	table := &cells{Header: texts("", title)}
	for _, p := range placements {
		table.Header = append(table.Header, cell{Class: "number", Text: p.Name})
	}
	for _, line := range summaryLines(placements, resource) {
		table.Rows = append(table.Rows, append(texts("", line.Label), texts("number", line.Values...)...))
	}
	return table
}

// histograms draws one for each placement, on the same axes.
func histograms(placements []Placement, resource string) (out []figure) {
	var all []float64
	for _, p := range placements {
		all = append(all, ratios(p, resource)...)
	}
	shared := newAxis(all)
	highest := 1
	for _, p := range placements {
		highest = max(highest, slices.Max(shared.count(ratios(p, resource))))
	}
	for _, p := range placements {
		out = append(out, newHistogram(p, resource, shared, highest))
	}
	return out
}

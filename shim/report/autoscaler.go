package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
)

// The bounds of a page of an autoscaler, so that it stays small in clusters of any size.
const (
	mostShownGroups    = 100
	mostShownNodes     = 40
	mostShownResources = 3
)

// Autoscaler is what an autoscaler tells of itself, its cluster and its last loop.
type Autoscaler struct {
	Title, Verdict string
	// Warnings are what must not be missed, Lines what else there is to say.
	Warnings, Lines []string
	// Refresh is after how many seconds a browser asks again; 0: it does not.
	Refresh int
	Groups  []AutoscalerGroup
	// MoreGroups are not among them.
	MoreGroups int
	// Slack is the room that is kept free for pods to come.
	Slack []SlackClass
	// Tables, in this order.
	Tables []TitledGrid
	// Nodes with their loads; NodesProblem: why they are not known. Notes tell more of some, by name.
	Nodes        Placement
	NodesProblem string
	Notes        map[string]string
}

// AutoscalerGroup is a node group. Target is what the cloud is to have, Nodes are there, Going of them are on their way
// out.
type AutoscalerGroup struct {
	Name, Note                     string
	Min, Max, Target, Nodes, Going int
}

// TitledGrid is a table under a title. None tells what it means that there are no rows, Note what else is to be said.
type TitledGrid struct {
	Title, None, Note string
	Grid
}

const groupWidth = 300.0

// AutoscalerPage writes a page. Of many groups and nodes it shows some, the fullest nodes first, and counts the others.
func AutoscalerPage(w io.Writer, a Autoscaler) error {
	p := page{Title: a.Title, Verdict: a.Verdict, Warnings: a.Warnings, Lines: a.Lines, Refresh: a.Refresh}
	if len(a.Groups) > 0 {
		p.Parts = append(p.Parts, a.groupsPart())
	}
	if len(a.Slack) > 0 {
		p.Parts = append(p.Parts, slackPart("Room for pods to come", a.Slack))
	}
	for _, grid := range a.Tables {
		of := part{Title: grid.Title, Table: grid.cells(), After: grid.Note}
		if of.Table == nil {
			of.Says = []string{grid.None}
		} else {
			of.Table.Class = "cards"
		}
		p.Parts = append(p.Parts, of)
	}
	if a.NodesProblem != "" {
		p.Parts = append(p.Parts, part{Title: "Nodes", Says: []string{"They cannot be shown: " + a.NodesProblem}})
	}
	if len(a.Nodes.Nodes) > 0 {
		p.Parts = append(p.Parts, a.nodesParts()...)
	}
	return p.write(w)
}

func (a *Autoscaler) groupsPart() part {
	table := &cells{Class: "cards groups", Header: []cell{{Text: "node group"}, {Class: "bar", Text: "nodes"}}}
	for _, g := range a.Groups[:min(len(a.Groups), mostShownGroups)] {
		table.Rows = append(table.Rows, g.row())
	}
	out := part{Title: "Node groups", Table: table, Legend: []key{swatch("s1", "there"), swatch("s6", "there and going"),
		swatch("none", "on their way"), stroke("load", "minimum and maximum")}}
	if more := max(0, a.MoreGroups) + max(0, len(a.Groups)-mostShownGroups); more > 0 {
		out.After = fmt.Sprintf("And %d others.", more)
	}
	return out
}

func (g *AutoscalerGroup) row() []cell {
	end := float64(max(g.Max, g.Target, g.Nodes, 1))
	x := func(nodes int) float64 { return groupWidth * float64(nodes) / end }
	stay, coming := max(0, g.Nodes-g.Going), max(0, g.Target-g.Nodes+g.Going)
	text := Counted(g.Nodes, "node")
	if g.Going > 0 {
		text += fmt.Sprintf(", %d going", g.Going)
	}
	if coming > 0 {
		text += fmt.Sprintf(", %d on their way", coming)
	}
	text = fmt.Sprintf("%s; target %d, %d to %d", text, g.Target, g.Min, g.Max)
	d := barDrawing(groupWidth, text)
	d.fill("s1", 0, x(stay))
	d.fill("s6", x(stay), x(g.Going))
	d.fill("none", x(stay+g.Going), x(coming))
	d.limit("load", x(g.Min))
	d.limit("load", x(g.Max))
	return []cell{{Class: "name", Text: g.Name, Note: g.Note}, {Class: "bar", Drawing: d, Note: text}}
}

// nodesParts show the loads of all nodes together, and of the fullest ones.
func (a *Autoscaler) nodesParts() []part {
	nodes := a.Nodes
	resources := Resources([]Placement{nodes})
	resources = resources[:min(len(resources), mostShownResources)]
	nodes.Name = "all nodes"
	out := []part{{Title: "Nodes", Lines: []string{loadText}}}
	for _, resource := range resources {
		summary := summaryCells([]Placement{nodes}, resource, "limits / allocatable")
		summary.Header[1].Text = ""
		out = append(out, part{Subtitle: resource, Table: summary, Figures: histograms([]Placement{nodes}, resource)})
	}
	fullest := fullestNodes(nodes.Nodes, resources)
	end := 1.25
	for i := range fullest {
		end = max(end, fullest[i].highest(resources))
	}
	end = min(end, cardEnd)
	table := &cells{Class: "cards", Header: append(texts("", "node"), texts("bar", resources...)...)}
	for i := range fullest {
		row := []cell{{Class: "name", Text: fullest[i].Name, Note: a.Notes[fullest[i].Name]}}
		for _, resource := range resources {
			row = append(row, fullest[i].bar(resource, end))
		}
		table.Rows = append(table.Rows, row)
	}
	shown := part{Subtitle: "The fullest", Table: table, Legend: []key{{Swatches: []string{"s3", "s7"},
		Label: "limits, below and above the load line"}, stroke("max", "requests"), stroke("load", "load line, 1.0")}}
	if more := len(nodes.Nodes) - len(fullest); more > 0 {
		shown.After = fmt.Sprintf("And %d others, none of them fuller. loadline top shows all.", more)
	}
	return append(out, shown)
}

// fullestNodes returns those with the highest limits over allocatable of any of these resources, ties by name.
func fullestNodes(nodes []Node, resources []string) []Node {
	type load struct {
		highest float64
		at      int
	}
	loads := make([]load, len(nodes))
	for i := range nodes {
		loads[i] = load{nodes[i].highest(resources), i}
	}
	slices.SortFunc(loads, func(a, b load) int {
		return cmp.Or(cmp.Compare(b.highest, a.highest), cmp.Compare(nodes[a.at].Name, nodes[b.at].Name))
	})
	var out []Node
	for _, l := range loads[:min(len(loads), mostShownNodes)] {
		out = append(out, nodes[l.at])
	}
	return out
}

// highest returns the highest limits over allocatable of any of these resources; -1 where the node has none of them.
func (n *Node) highest(resources []string) float64 {
	highest := -1.0
	for _, resource := range resources {
		if ratio, ok := n.Resources[resource].Ratio(); ok {
			highest = max(highest, ratio)
		}
	}
	return highest
}

func (n *Node) bar(resource string, end float64) cell {
	amounts := n.Resources[resource]
	limits, ok := amounts.Ratio()
	if !ok {
		return cell{Class: "bar", Note: "offers none"}
	}
	requests, _ := amounts.RequestsRatio()
	x := func(ratio float64) float64 { return cardWidth * min(ratio/end, 1) }
	text := "limits " + FormatRatio(limits) + ", requests " + FormatRatio(requests)
	if limits > end {
		text += " (longer than drawn)"
	}
	d := barDrawing(cardWidth, text)
	d.Title = "limits " + FormatAmount(resource, amounts.Limits) + ", requests " +
		FormatAmount(resource, amounts.Requests) + ", allocatable " + FormatAmount(resource, amounts.Allocatable) + " " +
		resource
	d.fill(scaleClass(limits), 0, x(limits))
	d.limit("max", x(requests))
	d.limit("load", x(1))
	return cell{Class: "bar", Drawing: d, Note: text}
}

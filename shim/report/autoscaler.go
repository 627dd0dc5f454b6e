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

type autoscalerPage struct {
	Autoscaler
	Groups     []groupRow
	MoreGroups int
	Slack      []slackRow
	Count      int
	Loads      []loadSection
	Resources  []string
	Nodes      []nodeRow
	MoreNodes  int
}

type groupRow struct {
	AutoscalerGroup
	Text                     string
	Stay, Going, Coming      float64 // lengths in viewBox units, one behind the other
	Second, Third, Low, High float64 // where they and the marks of minimum and maximum begin
}

type loadSection struct {
	Resource  string
	Lines     []summaryLine
	Histogram histogram
}

type nodeRow struct {
	Name, Note string
	Bars       []nodeCell
}

type nodeCell struct {
	Offered                bool
	Limits, Requests, Line float64 // in viewBox units
	Class, Text, Title     string
}

// AutoscalerPage writes a page. Of many groups and nodes it shows some, the fullest nodes first, and counts the others.
func AutoscalerPage(w io.Writer, a Autoscaler) error {
	p := autoscalerPage{Autoscaler: a, Slack: slackRows(a.Slack), Count: len(a.Nodes.Nodes),
		MoreGroups: max(0, a.MoreGroups) + max(0, len(a.Groups)-mostShownGroups)}
	for _, g := range a.Groups[:min(len(a.Groups), mostShownGroups)] {
		p.Groups = append(p.Groups, g.row())
	}
	p.addNodes(a.Nodes, a.Notes)
	return write(w, "autoscaler", p)
}

func (g AutoscalerGroup) row() groupRow {
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
	return groupRow{AutoscalerGroup: g,
		Text: fmt.Sprintf("%s; target %d, %d to %d", text, g.Target, g.Min, g.Max),
		Stay: x(stay), Going: x(g.Going), Coming: x(coming), Second: x(stay), Third: x(stay + g.Going), Low: x(g.Min),
		High: x(g.Max)}
}

// addNodes adds the loads of all nodes together, and of the fullest ones.
func (p *autoscalerPage) addNodes(nodes Placement, notes map[string]string) {
	resources := Resources([]Placement{nodes})
	resources = resources[:min(len(resources), mostShownResources)]
	nodes.Name = "all nodes"
	for _, resource := range resources {
		section := loadSection{Resource: resource, Lines: summaryLines([]Placement{nodes}, resource)}
		all := ratios(nodes, resource)
		shared := newAxis(all)
		section.Histogram = newHistogram(nodes, resource, shared, max(1, slices.Max(shared.count(all))))
		p.Loads, p.Resources = append(p.Loads, section), append(p.Resources, section.Resource)
	}
	fullest := fullestNodes(nodes.Nodes, resources)
	p.MoreNodes = len(nodes.Nodes) - len(fullest)
	end := 1.25
	for i := range fullest {
		end = max(end, fullest[i].highest(resources))
	}
	end = min(end, cardEnd)
	for i := range fullest {
		row := nodeRow{Name: fullest[i].Name, Note: notes[fullest[i].Name]}
		for _, resource := range resources {
			row.Bars = append(row.Bars, fullest[i].bar(resource, end))
		}
		p.Nodes = append(p.Nodes, row)
	}
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

func (n *Node) bar(resource string, end float64) nodeCell {
	amounts := n.Resources[resource]
	limits, ok := amounts.Ratio()
	if !ok {
		return nodeCell{Text: "offers none"}
	}
	requests, _ := amounts.RequestsRatio()
	x := func(ratio float64) float64 { return cardWidth * min(ratio/end, 1) }
	text := "limits " + FormatRatio(limits) + ", requests " + FormatRatio(requests)
	if limits > end {
		text += " (longer than drawn)"
	}
	return nodeCell{Offered: true, Limits: x(limits), Requests: x(requests), Line: x(1),
		Class: scaleClass(limits), Text: text,
		Title: "limits " + FormatAmount(resource, amounts.Limits) + ", requests " +
			FormatAmount(resource, amounts.Requests) +
			", allocatable " + FormatAmount(resource, amounts.Allocatable) + " " + resource}
}

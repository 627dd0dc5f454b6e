package report

import "slices"

const (
	// labelledCells is the most nodes for which each cell shows name and ratio; larger maps show them on hover.
	labelledCells = 48
	// denseCells is the number of nodes from which cells are small, so that a map fits on a screen or two.
	denseCells = 1000
)

// heatMap has one cell per node, in the order of the placement, so that a node has the same place in each map.
type heatMap struct {
	Placement string
	Style     string // CSS class, empty for cells of the usual size
	Cells     []mapCell
}

type mapCell struct {
	Class, Name, Ratio, Title string
}

func newHeatMap(p Placement, resource string) heatMap {
	h := heatMap{Placement: p.Name}
	nodes := p.Nodes
	if p.Listed != nil {
		nodes = slices.DeleteFunc(slices.Clone(nodes), func(node Node) bool { return !p.Listed(node.Name) })
	}
	labelled := len(nodes) <= labelledCells
	switch {
	case labelled:
		h.Style = "labelled"
	case len(nodes) >= denseCells:
		h.Style = "dense"
	}
	for _, node := range nodes {
		h.Cells = append(h.Cells, newCell(node, resource, labelled))
	}
	return h
}

func newCell(node Node, resource string, labelled bool) mapCell {
	amounts := node.Resources[resource]
	c := mapCell{Class: "none", Ratio: "none", Title: node.Name + ": offers no " + resource}
	if ratio, ok := amounts.Ratio(); ok {
		c.Class, c.Ratio = scaleClass(ratio), FormatRatio(ratio)
		if ratio > 1 {
			c.Class += " over"
		}
		requests, _ := amounts.RequestsRatio()
		c.Title = node.Name + ": limits " + FormatAmount(resource, amounts.Limits) +
			" / allocatable " + FormatAmount(resource, amounts.Allocatable) + " " + resource + " = " + c.Ratio +
			"; requests " + FormatAmount(resource, amounts.Requests) + " = " + FormatRatio(requests)
	}
	if labelled {
		c.Name = node.Name
	}
	return c
}

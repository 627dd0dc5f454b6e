package report

import "loadline.dev/shim/report/texttable"

// labelledCells is the most nodes for which each cell shows name and ratio; larger maps are for the eye, and
// show them on hover.
const labelledCells = 48

// heatMap has one cell per node, in the order of the placement, so that a node has the same place in each map.
type heatMap struct {
	Placement string
	Labelled  bool
	Cells     []cell
}

type cell struct {
	Class, Name, Ratio, Title string
}

func newHeatMap(p Placement, resource string) heatMap {
	h := heatMap{Placement: p.Name, Labelled: len(p.Nodes) <= labelledCells}
	for _, node := range p.Nodes {
		h.Cells = append(h.Cells, newCell(node, resource, h.Labelled))
	}
	return h
}

func newCell(node Node, resource string, labelled bool) cell {
	amounts := node.Resources[resource]
	name, unit := texttable.Escape(node.Name), texttable.Escape(resource)
	c := cell{Class: "none", Ratio: "none", Title: name + ": offers no " + unit}
	if ratio, ok := amounts.Ratio(); ok {
		c.Class, c.Ratio = scaleClass(ratio), FormatRatio(ratio)
		if ratio > 1 {
			c.Class += " over"
		}
		requests, _ := amounts.RequestsRatio()
		c.Title = name + ": limits " + FormatAmount(resource, amounts.Limits) +
			" / allocatable " + FormatAmount(resource, amounts.Allocatable) + " " + unit + " = " + c.Ratio +
			"; requests " + FormatAmount(resource, amounts.Requests) + " = " + FormatRatio(requests)
	}
	if labelled {
		c.Name = name
	}
	return c
}

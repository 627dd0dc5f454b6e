package report

import (
	"io"
	"math"
	"strconv"
)

// Section is a part of a page: a verdict and what it is made of.
type Section struct {
	Verdict string
	// Lines are sentences below the verdict.
	Lines []string
	// Cards have a row each, with a bar per resource.
	Cards []Card
	// Grid is a plain table; without rows there is none.
	Grid Grid
}

// Grid is a table of text.
type Grid struct {
	Header []string
	Rows   [][]string
}

// Card shows how the score of one node came about.
type Card struct {
	Node  string
	Score int32
	// Raw is the raw score; NaN: there is none, and Note says why.
	Raw  float64
	Note string
	// Bars has one element per resource, for all cards the same ones in the same order.
	Bars []CardBar
}

// CardBar is one resource of a card. Amounts as in Amounts.
type CardBar struct {
	Resource string
	// Allocatable is what the node offers; 0: it lacks the resource.
	Allocatable int64
	// There is what the pods on the node count as, Pod what the pod to be placed does.
	There, Pod int64
	// Note tells rule and clamp, if any.
	Note string
}

// Size of a bar in units of its viewBox. Bars of one page share a scale, which ends where the longest does, but not
// beyond cardEnd times the load line.
const (
	cardWidth = 220.0
	cardEnd   = 4.0
)

// Sections writes a page.
func Sections(w io.Writer, title string, sections ...Section) error {
	p := page{Title: title}
	for _, section := range sections {
		p.Parts = append(p.Parts, part{Verdict: section.Verdict, Lines: section.Lines})
		if len(section.Cards) > 0 {
			p.Parts = append(p.Parts, cardsPart(section.Cards))
		}
		p.Parts = append(p.Parts, part{Table: section.Grid.cells()})
	}
	return p.write(w)
}

func cardsPart(cards []Card) part {
	end := scaleEnd(cards)
	table := &cells{Class: "cards", Header: append(texts("", "node"), texts("number", "score", "raw")...)}
	for i, card := range cards {
		raw := "none"
		if !math.IsNaN(card.Raw) {
			raw = formatTwo(card.Raw)
		}
		row := append([]cell{{Class: "name", Text: card.Node, Note: card.Note}},
			texts("number", strconv.Itoa(int(card.Score)), raw)...)
		for _, bar := range card.Bars {
			if i == 0 {
				table.Header = append(table.Header, cell{Class: "bar", Text: bar.Resource})
			}
			row = append(row, bar.cell(end))
		}
		table.Rows = append(table.Rows, row)
	}
	return part{Table: table, Lines: []string{"Each bar shows what the pods of a node would be allowed to use, over " +
		"what the node offers to pods."},
		Legend: []key{swatch("s1", "pods there"), swatch("s6", "this pod"), stroke("load", "load line, 1.0")}}
}

// scaleEnd returns how many times the load line the longest bar is drawn.
func scaleEnd(cards []Card) float64 {
	end := 1.25
	for _, card := range cards {
		for _, bar := range card.Bars {
			if bar.Allocatable > 0 {
				end = max(end, bar.ratio())
			}
		}
	}
	return min(end, cardEnd)
}

func (b CardBar) ratio() float64 {
	return float64(SaturatingAdd(b.There, b.Pod)) / float64(b.Allocatable)
}

func (b CardBar) cell(end float64) cell {
	if b.Allocatable <= 0 {
		return cell{Class: "bar", Note: b.Note, Text: "offers none"}
	}
	x := func(amount int64) float64 {
		return cardWidth * min(float64(amount)/float64(b.Allocatable)/end, 1)
	}
	ratio, total := b.ratio(), SaturatingAdd(b.There, b.Pod)
	text := FormatAmount(b.Resource, total) + " / " + FormatAmount(b.Resource, b.Allocatable) + " = " + FormatRatio(ratio)
	d := barDrawing(cardWidth, text)
	d.Title = "pods there " + FormatAmount(b.Resource, b.There) + ", this pod " + FormatAmount(b.Resource, b.Pod) +
		", allocatable " + FormatAmount(b.Resource, b.Allocatable) + " " + b.Resource
	d.fill("s1", 0, x(b.There))
	d.fill("s6", x(b.There), x(total)-x(b.There))
	d.limit("load", cardWidth/end)
	if ratio > end {
		text += " (longer than drawn)"
	}
	return cell{Class: "bar", Drawing: d, Text: text, Strong: ratio > 1, Note: b.Note}
}

package report

import (
	_ "embed"
	"html/template"
	"io"
	"math"

	"loadline.dev/shim/report/texttable"
)

//go:embed cards.html.tmpl
var cardsText string

var cardsTemplate = template.Must(template.New("cards").Parse(cardsText))

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

type cardsPage struct {
	Title, Verdict string
	Style          template.CSS
	Lines          []string
	Resources      []string
	Cards          []cardRow
}

type cardRow struct {
	Node, Raw, Note string
	Score           int32
	Bars            []cardCell
}

type cardCell struct {
	Offered                         bool
	There, Pod, PodFrom, Line, Wide float64 // in viewBox units
	Open                            bool    // goes on beyond the scale
	Over                            bool
	Text, Title, Note               string
}

// Cards writes one HTML page that needs nothing else, in the manner of Page: the verdict, lines of text, and a row per
// card with a bar per resource.
func Cards(w io.Writer, title, verdict string, lines []string, cards []Card) error {
	p := cardsPage{Title: texttable.Escape(title), Verdict: texttable.Escape(verdict), Style: template.CSS(pageStyle)}
	for _, line := range lines {
		p.Lines = append(p.Lines, texttable.Escape(line))
	}
	end := 1.25
	for _, card := range cards {
		for _, bar := range card.Bars {
			if bar.Allocatable > 0 {
				end = max(end, bar.ratio())
			}
		}
	}
	end = min(end, cardEnd)
	for i, card := range cards {
		row := cardRow{Node: texttable.Escape(card.Node), Score: card.Score, Note: card.Note, Raw: "none"}
		if !math.IsNaN(card.Raw) {
			row.Raw = formatTwo(card.Raw)
		}
		for _, bar := range card.Bars {
			if i == 0 {
				p.Resources = append(p.Resources, texttable.Escape(bar.Resource))
			}
			row.Bars = append(row.Bars, bar.cell(end))
		}
		p.Cards = append(p.Cards, row)
	}
	return cardsTemplate.Execute(w, p)
}

func (b CardBar) ratio() float64 {
	return float64(SaturatingAdd(b.There, b.Pod)) / float64(b.Allocatable)
}

func (b CardBar) cell(end float64) cardCell {
	if b.Allocatable <= 0 {
		return cardCell{Note: b.Note, Text: "offers none"}
	}
	x := func(amount int64) float64 {
		return cardWidth * min(float64(amount)/float64(b.Allocatable)/end, 1)
	}
	ratio := b.ratio()
	total := SaturatingAdd(b.There, b.Pod)
	return cardCell{
		Offered: true, There: x(b.There), PodFrom: x(b.There), Pod: x(total) - x(b.There), Line: cardWidth / end,
		Wide: cardWidth, Open: ratio > end, Over: ratio > 1, Note: b.Note,
		Text: FormatAmount(b.Resource, total) + " / " + FormatAmount(b.Resource, b.Allocatable) + " = " + FormatRatio(ratio),
		Title: "pods there " + FormatAmount(b.Resource, b.There) + ", this pod " + FormatAmount(b.Resource, b.Pod) +
			", allocatable " + FormatAmount(b.Resource, b.Allocatable) + " " + texttable.Escape(b.Resource),
	}
}

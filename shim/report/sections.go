package report

import (
	"io"
	"math"
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

type sectionPart struct {
	Section
	Resources []string
	Cards     []cardRow
}

type cardRow struct {
	Card
	Raw  string
	Bars []cardCell
}

type cardCell struct {
	Offered                         bool
	There, Pod, PodFrom, Line, Wide float64 // in viewBox units
	Open                            bool    // continues beyond the scale
	Over                            bool
	Text, Title, Note               string
}

// Sections writes a page.
func Sections(w io.Writer, title string, sections ...Section) error {
	p := struct {
		Title    string
		Sections []sectionPart
	}{Title: title}
	for _, section := range sections {
		p.Sections = append(p.Sections, section.part())
	}
	return write(w, "sections", p)
}

func (s Section) part() sectionPart {
	p := sectionPart{Section: s}
	end := scaleEnd(s.Cards)
	for i, card := range s.Cards {
		row := cardRow{Card: card, Raw: "none"}
		if !math.IsNaN(card.Raw) {
			row.Raw = formatTwo(card.Raw)
		}
		for _, bar := range card.Bars {
			if i == 0 {
				p.Resources = append(p.Resources, bar.Resource)
			}
			row.Bars = append(row.Bars, bar.cell(end))
		}
		p.Cards = append(p.Cards, row)
	}
	return p
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
		Text: FormatAmount(b.Resource, total) + " / " + FormatAmount(b.Resource, b.Allocatable) + " = " +
			FormatRatio(ratio),
		Title: "pods there " + FormatAmount(b.Resource, b.There) + ", this pod " + FormatAmount(b.Resource, b.Pod) +
			", allocatable " + FormatAmount(b.Resource, b.Allocatable) + " " + b.Resource,
	}
}

package report

import "io"

// SlackPage is the room that is kept free for pods to come.
type SlackPage struct {
	Title, Verdict string
	Lines          []string
	Classes        []SlackClass
	Grid           Grid
}

// SlackClass is the room of nodes that take the same pods.
type SlackClass struct {
	Name, Note, Reason string
	Bars               []SlackBar
}

// SlackBar is one resource: what is wanted, what placeholders keep, and what of that is there now. Amounts as in
// Amounts.
type SlackBar struct {
	Resource            string
	Wanted, Kept, Ready int64
}

// slackWidth is the length of the longest bar of a resource, in units of its viewBox.
const slackWidth = 260.0

// Slack writes a page: a row per class with a bar for each resource. Bars of one resource share a scale.
func Slack(w io.Writer, of SlackPage) error {
	p := page{Title: of.Title, Verdict: of.Verdict, Lines: of.Lines, Parts: []part{slackPart("", of.Classes)}}
	if table := of.Grid.cells(); table != nil {
		p.Parts = append(p.Parts, part{Title: "Placeholders", Table: table})
	}
	return p.write(w)
}

func slackPart(title string, classes []SlackClass) part {
	longest := map[string]int64{}
	for _, class := range classes {
		for _, bar := range class.Bars {
			longest[bar.Resource] = max(longest[bar.Resource], bar.Wanted, bar.Kept)
		}
	}
	table := &cells{Class: "cards slack", Header: append(texts("", "class of nodes"), texts("bar", "cpu", "memory")...)}
	for _, class := range classes {
		row := []cell{{Class: "name", Text: class.Name, Note: class.Note + ": " + class.Reason}}
		for _, bar := range class.Bars {
			row = append(row, bar.cell(longest[bar.Resource]))
		}
		table.Rows = append(table.Rows, row)
	}
	return part{Title: title, Table: table,
		Legend: []key{swatch("s1", "there now"), swatch("s6", "missing"), stroke("load", "wanted")}}
}

func (b SlackBar) cell(longest int64) cell {
	x := func(amount int64) float64 {
		if longest == 0 {
			return 0
		}
		return slackWidth * float64(amount) / float64(longest)
	}
	text := FormatAmount(b.Resource, b.Ready) + " of " + FormatAmount(b.Resource, b.Wanted) + " " + b.Resource
	d := barDrawing(slackWidth, text)
	d.fill("s1", 0, x(b.Ready))
	d.fill("s6", x(b.Ready), x(max(0, b.Kept-b.Ready)))
	d.limit("load", x(b.Wanted))
	return cell{Class: "bar", Drawing: d, Note: text}
}

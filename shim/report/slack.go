package report

import (
	_ "embed"
	"html/template"
	"io"

	"loadline.dev/shim/report/texttable"
)

//go:embed slack.html.tmpl
var slackText string

//go:embed slackclasses.html.tmpl
var slackClassesText string

var slackTemplate = template.Must(template.Must(template.New("slack").Parse(slackText)).Parse(slackClassesText))

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

type slackPage struct {
	Title, Verdict string
	Style          template.CSS
	Lines          []string
	Rows           []slackRow
	Grid           Grid
}

type slackRow struct {
	Name, Note, Reason string
	Bars               []slackCell
}

type slackCell struct {
	Ready, Missing, Line float64 // in viewBox units
	Text                 string
}

// Slack writes one HTML page that needs nothing else, in the manner of Page: a row per class with a bar for each
// resource. Bars of one resource share a scale.
func Slack(w io.Writer, page SlackPage) error {
	p := slackPage{Title: texttable.Escape(page.Title), Verdict: texttable.Escape(page.Verdict),
		Style: template.CSS(pageStyle), Lines: escaped(page.Lines), Grid: Grid{Header: escaped(page.Grid.Header)}}
	for _, row := range page.Grid.Rows {
		p.Grid.Rows = append(p.Grid.Rows, escaped(row))
	}
	p.Rows = slackRows(page.Classes)
	return slackTemplate.Execute(w, p)
}

func slackRows(classes []SlackClass) (rows []slackRow) {
	longest := map[string]int64{}
	for _, class := range classes {
		for _, bar := range class.Bars {
			longest[bar.Resource] = max(longest[bar.Resource], bar.Wanted, bar.Kept)
		}
	}
	for _, class := range classes {
		row := slackRow{Name: texttable.Escape(class.Name), Note: class.Note, Reason: texttable.Escape(class.Reason)}
		for _, bar := range class.Bars {
			row.Bars = append(row.Bars, bar.cell(longest[bar.Resource]))
		}
		rows = append(rows, row)
	}
	return rows
}

func (b SlackBar) cell(longest int64) slackCell {
	x := func(amount int64) float64 {
		if longest == 0 {
			return 0
		}
		return slackWidth * float64(amount) / float64(longest)
	}
	return slackCell{Ready: x(b.Ready), Missing: x(max(0, b.Kept-b.Ready)), Line: x(b.Wanted),
		Text: FormatAmount(b.Resource, b.Ready) + " of " + FormatAmount(b.Resource, b.Wanted) + " " + b.Resource}
}

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

type slackRow struct {
	SlackClass
	Bars []slackCell
}

type slackCell struct {
	Ready, Missing, Line float64 // in viewBox units
	Text                 string
}

// Slack writes a page: a row per class with a bar for each resource. Bars of one resource share a scale.
func Slack(w io.Writer, page SlackPage) error { return write(w, "slack", page) }

// Rows are the classes as they are drawn.
func (p SlackPage) Rows() []slackRow { return slackRows(p.Classes) }

func slackRows(classes []SlackClass) (rows []slackRow) {
	longest := map[string]int64{}
	for _, class := range classes {
		for _, bar := range class.Bars {
			longest[bar.Resource] = max(longest[bar.Resource], bar.Wanted, bar.Kept)
		}
	}
	for _, class := range classes {
		row := slackRow{SlackClass: class}
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

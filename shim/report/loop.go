package report

import "loadline.dev/shim/api/loadlinev1"

// FromLoop returns what an engine tells of a loop: what must not be missed, what else there is to say, groups, slack
// and tables. nil: it tells nothing.
func FromLoop(told *loadlinev1.LoopReport) Autoscaler {
	a := Autoscaler{Warnings: told.GetWarnings(), Lines: told.GetLines(), Notes: map[string]string{}}
	for _, g := range told.GetGroups() {
		a.Groups = append(a.Groups, AutoscalerGroup{Name: g.Name, Note: g.Note, Min: int(g.MinSize), Max: int(g.MaxSize),
			Target: int(g.Target), Nodes: int(g.Nodes), Going: int(g.Going)})
	}
	for _, s := range told.GetSlack() {
		class := SlackClass{Name: s.Name, Note: s.Note, Reason: s.Reason}
		for _, b := range s.Bars {
			class.Bars = append(class.Bars, SlackBar{Resource: b.Resource, Wanted: b.Wanted, Kept: b.Kept, Ready: b.Ready})
		}
		a.Slack = append(a.Slack, class)
	}
	for _, t := range told.GetTables() {
		table := TitledGrid{Title: t.Title, None: t.None, Note: Others(int(t.RowsTotal)-len(t.Rows), t.RowsAre),
			Grid: Grid{Header: t.Header}}
		for _, row := range t.Rows {
			table.Rows = append(table.Rows, row.Cells)
		}
		a.Tables = append(a.Tables, table)
	}
	for _, note := range told.GetNotes() {
		a.Notes[note.Node] = note.Text
	}
	return a
}

// Others says how many rows of a table are not shown.
func Others(rows int, what string) string {
	if rows <= 0 {
		return ""
	}
	return "And " + Counted(rows, "other "+what) + "."
}

package report

import "loadline.dev/shim/api/loadlinev1"

// FromLoop returns what an engine tells of a loop, but for nodes that go: what must not be missed, what else there is
// to say, groups, slack and tables.
func FromLoop(told *loadlinev1.LoopReport) Autoscaler {
	a := Autoscaler{Warnings: told.GetWarnings(), Lines: told.GetLines(), Notes: map[string]string{},
		MoreGroups: int(told.GetGroupsTotal()) - len(told.GetGroups())}
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
		a.Tables = append(a.Tables, FromTable(t))
	}
	for _, note := range told.GetNotes() {
		a.Notes[note.Node] = note.Text
	}
	return a
}

// FromTable returns a table as an engine tells it.
func FromTable(t *loadlinev1.PageTable) TitledGrid {
	table := TitledGrid{Title: t.GetTitle(), None: t.GetNone(),
		Note: Others(int(t.GetRowsTotal())-len(t.GetRows()), t.GetRowsAre()), Grid: Grid{Header: t.GetHeader()}}
	for _, row := range t.GetRows() {
		table.Rows = append(table.Rows, row.Cells)
	}
	return table
}

// Others says how many rows of a table are not shown.
func Others(rows int, what string) string {
	if rows <= 0 {
		return ""
	}
	return "And " + Counted(rows, "other "+what) + "."
}

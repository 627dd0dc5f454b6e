package report

import (
	"cmp"
	"fmt"
	"io"
)

// Bill is what a cluster costs, and must cost at least. Amounts are US dollars per hour.
type Bill struct {
	Title, Verdict string
	// Lines are sentences below the verdict.
	Lines []string
	// Fixed is part of all three others.
	Now, Reachable, Fixed float64
	// Bound is nil where none is named.
	Bound *float64
	// Groups and Namespaces, those that cost most first.
	Groups, Namespaces []BillPart
	// PartsTitle is the title of Groups; empty: they are node groups.
	PartsTitle  string
	Moves, Stay Grid
}

// BillPart is what a part of the cluster costs.
type BillPart struct {
	Name string
	USD  float64
}

const billWidth = 600.0

// Write writes a page.
func (b *Bill) Write(w io.Writer) error {
	p := page{Title: b.Title, Verdict: b.Verdict, Lines: b.Lines}
	if b.Now > 0 {
		totals := &cells{Class: "cards"}
		total := func(name string, usd float64) {
			fixed := min(b.Fixed, usd)
			totals.Rows = append(totals.Rows, billBar(name, usd, billWidth*fixed/b.Now, billWidth*max(0, usd-fixed)/b.Now))
		}
		total("paid now", b.Now)
		total("after all moves", b.Reachable)
		if b.Bound != nil {
			total("lower bound", *b.Bound)
		}
		p.Parts = append(p.Parts, part{Title: "USD per hour", Table: totals,
			Legend: []key{swatch("s6", "nodes that may not go"), swatch("s1", "others")}})
	}
	add := func(of part) {
		if of.Table != nil {
			p.Parts = append(p.Parts, of)
		}
	}
	add(part{Title: "Moves", Table: b.Moves.cells(),
		Lines: []string{"The first saves most per disturbed pod. Moves of one wave can be made at once."}})
	add(part{Title: cmp.Or(b.PartsTitle, "By node group"), Table: billBars(b.Groups)})
	add(part{Title: "By namespace", Table: billBars(b.Namespaces), Lines: []string{"What the pods of each namespace on " +
		"nodes that may go are worth at the shadow prices of the bound."}})
	add(part{Title: "What stays", Table: b.Stay.cells()})
	return p.write(w)
}

// billBars draws a bar for each part; nil: there are none.
func billBars(parts []BillPart) *cells {
	most := 0.0
	for _, part := range parts {
		most = max(most, part.USD)
	}
	if len(parts) == 0 {
		return nil
	}
	out := &cells{Class: "cards"}
	for _, part := range parts {
		length := 0.0
		if most > 0 {
			length = billWidth * part.USD / most
		}
		out.Rows = append(out.Rows, billBar(part.Name, part.USD, 0, length))
	}
	return out
}

// billBar is a row with a bar of which a part is dark: that is fixed.
func billBar(name string, usd, dark, light float64) []cell {
	text := fmt.Sprintf("%.3f", usd)
	d := &drawing{Width: billWidth, Height: 17, Pixels: billWidth, Label: name + ": " + text}
	d.rect("s6", 0, 2, dark, 13)
	d.rect("s1", dark, 2, light, 13)
	return []cell{{Class: "name", Text: name}, {Class: "number", Text: text}, {Class: "bar", Drawing: d}}
}

package report

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"loadline.dev/shim/report/texttable"
)

//go:embed bill.html.tmpl
var billText string

var billTemplate = template.Must(template.New("bill").Parse(billText))

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

type billPage struct {
	Title, Verdict string
	Style          template.CSS
	Lines          []string
	Totals         []billBar
	Groups         []billBar
	PartsTitle     string
	Namespaces     []billBar
	Moves, Stay    Grid
}

// billBar is a bar; Dark is the part of it that is fixed.
type billBar struct {
	Name, Text  string
	Dark, Light float64
}

// Write writes one HTML page that needs nothing else, in the manner of Page.
func (b *Bill) Write(w io.Writer) error {
	p := billPage{Title: texttable.Escape(b.Title), Verdict: texttable.Escape(b.Verdict),
		PartsTitle: cmp.Or(b.PartsTitle, "By node group"), Style: template.CSS(pageStyle),
		Lines: escaped(b.Lines), Moves: b.Moves.escaped(), Stay: b.Stay.escaped()}
	total := func(name string, usd float64) {
		if b.Now <= 0 {
			return
		}
		fixed := min(b.Fixed, usd)
		p.Totals = append(p.Totals, billBar{name, fmt.Sprintf("%.3f", usd), billWidth * fixed / b.Now,
			billWidth * max(0, usd-fixed) / b.Now})
	}
	total("paid now", b.Now)
	total("after all moves", b.Reachable)
	if b.Bound != nil {
		total("lower bound", *b.Bound)
	}
	p.Groups, p.Namespaces = billBars(b.Groups), billBars(b.Namespaces)
	return billTemplate.Execute(w, p)
}

func billBars(parts []BillPart) (bars []billBar) {
	most := 0.0
	for _, part := range parts {
		most = max(most, part.USD)
	}
	for _, part := range parts {
		bar := billBar{Name: texttable.Escape(part.Name), Text: fmt.Sprintf("%.3f", part.USD)}
		if most > 0 {
			bar.Light = billWidth * part.USD / most
		}
		bars = append(bars, bar)
	}
	return bars
}

func (g Grid) escaped() Grid {
	out := Grid{Header: g.Header}
	for _, row := range g.Rows {
		out.Rows = append(out.Rows, escaped(row))
	}
	return out
}

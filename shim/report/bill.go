package report

import (
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

type billPage struct {
	*Bill
	Totals, Groups, Namespaces []billBar
}

// billBar is a bar; Dark is the part of it that is fixed.
type billBar struct {
	Name, Text  string
	Dark, Light float64
}

// Write writes a page.
func (b *Bill) Write(w io.Writer) error {
	p := billPage{Bill: b, Groups: billBars(b.Groups), Namespaces: billBars(b.Namespaces)}
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
	return write(w, "bill", p)
}

func billBars(parts []BillPart) (bars []billBar) {
	most := 0.0
	for _, part := range parts {
		most = max(most, part.USD)
	}
	for _, part := range parts {
		bar := billBar{Name: part.Name, Text: fmt.Sprintf("%.3f", part.USD)}
		if most > 0 {
			bar.Light = billWidth * part.USD / most
		}
		bars = append(bars, bar)
	}
	return bars
}

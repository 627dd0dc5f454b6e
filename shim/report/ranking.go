package report

import (
	"io"
	"math"
	"strconv"
)

// RankBar is one option of a ranking: a bar made of the factors that its score is the product of.
type RankBar struct {
	Name, Amount, Reason string
	// Score is finite; nil: there is none, and Reason says why.
	Score *float64
	// Factors multiply up to the score. For all bars the same ones in the same order.
	Factors []Factor
}

// Factor is a term of a product.
type Factor struct {
	Name  string
	Value float64
}

// Size of a bar in units of its viewBox, and the margin on either side that holds half a label.
const (
	rankWidth  = 460.0
	rankMargin = 14.0
)

// factorClasses colour the factors in their order.
var factorClasses = [...]string{"s1", "s6", "s3"}

// Ranking writes a page: the verdict, lines of text, and a row per option, in the order given. A bar ends at the score.
// The scale is logarithmic: the first factor reaches to its value, and each further one lengthens the bar by as much in
// every row. Below it are gauges of node groups, if any.
func Ranking(w io.Writer, title, verdict string, lines []string, bars []RankBar, gauges ...GroupGauges) error {
	scale := newLogScale(bars)
	ticks := rankDrawing("scale")
	for _, t := range scale.ticks() {
		ticks.text("soft", "middle", t.Label, t.At, 13)
	}
	options := part{Lines: []string{"Each bar ends at a score; lower is better. It is made of the factors that multiply " +
		"up to it, on a logarithmic scale."}, Table: &cells{Class: "cards ranking",
		Header: []cell{{Text: "node group"}, {Class: "number", Text: "score"}, {Class: "bar", Drawing: ticks}}}}
	for _, bar := range bars {
		if options.Legend == nil {
			for i, f := range bar.Factors {
				options.Legend = append(options.Legend, swatch(factorClass(i), f.Name))
			}
		}
		options.Table.Rows = append(options.Table.Rows, scale.row(bar))
	}
	p := page{Title: title, Verdict: verdict, Lines: lines, Parts: []part{options}}
	if len(gauges) > 0 {
		p.Parts = append(p.Parts, gaugesPart("How full it is", gauges))
	}
	return p.write(w)
}

func factorClass(i int) string { return factorClasses[i%len(factorClasses)] }

func rankDrawing(label string) *drawing {
	return &drawing{X: -rankMargin, Width: rankWidth + 2*rankMargin, Height: 17, Label: label}
}

// drawn are the factors, if each has a place on a logarithmic scale: what costs nothing has none.
func (b RankBar) drawn() []Factor {
	for _, f := range b.Factors {
		if !(f.Value > 0 && f.Value <= math.MaxFloat64) {
			return nil
		}
	}
	return b.Factors
}

// logScale maps products to places. It begins at a power of ten below every product of leading factors.
type logScale struct{ from, to float64 } // natural logarithms

func newLogScale(bars []RankBar) logScale {
	lowest, highest := math.Inf(1), math.Inf(-1)
	for _, bar := range bars {
		at := 0.0
		for _, f := range bar.drawn() {
			at += math.Log(f.Value)
			lowest, highest = min(lowest, at), max(highest, at)
		}
	}
	if lowest > highest {
		lowest, highest = 0, 0 // there is no bar
	}
	from := math.Ln10 * (math.Ceil(lowest/math.Ln10-rounding) - 1)
	return logScale{from, max(highest, from+math.Ln10)}
}

// rounding is what the logarithm of a power of ten may be off.
const rounding = 1e-9

func (s logScale) x(log float64) float64 {
	return rankWidth * (log - s.from) / (s.to - s.from)
}

// ticks are at powers of ten.
func (s logScale) ticks() []tick {
	var out []tick
	for power := math.Ceil(s.from/math.Ln10 - rounding); power*math.Ln10 <= s.to+rounding; power++ {
		out = append(out, tick{max(s.x(power*math.Ln10), 0), strconv.FormatFloat(math.Pow(10, power), 'g', -1, 64)})
	}
	return out
}

func (s logScale) row(bar RankBar) []cell {
	d, score := rankDrawing(bar.Reason), "none"
	for _, t := range s.ticks() {
		d.limit("grid", t.At)
	}
	if bar.Score != nil {
		score = six(*bar.Score)
		start, at := s.from, 0.0
		for i, f := range bar.drawn() {
			at += math.Log(f.Value)
			if at != start {
				// A factor below 1 that is not the first is drawn over what it takes away.
				from, to := s.x(min(start, at)), s.x(max(start, at))
				d.add(shape{Kind: "rect", Class: factorClass(i), X: from, Y: 3, Width: to - from, Height: 11,
					Title: f.Name + " " + six(f.Value)})
			}
			start = at
		}
	}
	return []cell{{Class: "name", Text: bar.Name, Note: bar.Amount}, {Class: "number", Text: score},
		{Class: "bar", Drawing: d, Note: bar.Reason}}
}

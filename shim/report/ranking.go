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

type rankingPage struct {
	head
	Legend     []legendItem
	Rows       []rankingRow
	Left, Wide float64
	Ticks      []tick
	Gauges     gaugesPart
}

type legendItem struct{ Class, Label string }

type rankingRow struct {
	RankBar
	Score string
	Parts []rankingPart
}

type rankingPart struct {
	X, Width     float64
	Class, Title string
}

// Ranking writes a page: the verdict, lines of text, and a row per option, in the order given. A bar ends at the score.
// The scale is logarithmic: the first factor reaches to its value, and each further one lengthens the bar by as much in
// every row. Below it are gauges of node groups, if any.
func Ranking(w io.Writer, title, verdict string, lines []string, bars []RankBar, gauges ...GroupGauges) error {
	p := rankingPage{head: head{title, verdict, lines}, Left: -rankMargin, Wide: rankWidth + 2*rankMargin,
		Gauges: newGauges(gauges)}
	scale := newLogScale(bars)
	p.Ticks = scale.ticks()
	for _, bar := range bars {
		if p.Legend == nil {
			for i, f := range bar.Factors {
				p.Legend = append(p.Legend, legendItem{factorClasses[i%len(factorClasses)], f.Name})
			}
		}
		p.Rows = append(p.Rows, scale.row(bar))
	}
	return write(w, "ranking", p)
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

func (s logScale) row(bar RankBar) rankingRow {
	row := rankingRow{RankBar: bar, Score: "none"}
	if bar.Score == nil {
		return row
	}
	row.Score = strconv.FormatFloat(*bar.Score, 'g', 6, 64)
	start, at := s.from, 0.0
	for i, f := range bar.drawn() {
		at += math.Log(f.Value)
		if at != start {
			// A factor below 1 that is not the first is drawn over what it takes away.
			from, to := s.x(min(start, at)), s.x(max(start, at))
			row.Parts = append(row.Parts,
				rankingPart{X: from, Width: to - from, Class: factorClasses[i%len(factorClasses)],
					Title: f.Name + " " + strconv.FormatFloat(f.Value, 'g', 6, 64)})
		}
		start = at
	}
	return row
}

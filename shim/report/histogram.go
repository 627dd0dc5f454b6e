package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Size of a histogram in units of its viewBox: the plot and the margins that hold labels.
const (
	plotWidth, plotHeight     = 680.0, 120.0
	marginLeft, marginTop     = 56.0, 46.0
	marginRight, marginBottom = 28.0, 40.0
	labelRow                  = 14.0
)

// maxBars bounds the bars of a histogram; with fewer the shape is lost, with more they are too thin to point at.
const maxBars = 40

// axis is the horizontal axis that the histograms of one resource share.
type axis struct {
	step float64
	bars int
	// open: the last bar also holds everything beyond the axis.
	open bool
}

// mark is a vertical line with a label, each label in a row of its own.
type mark struct {
	X, LabelX, LabelY float64
	Anchor            string
	Class, Label      string
}

// newAxis fits an axis to all ratios. A few far outliers do not squeeze the rest: beyond three times the load
// line the axis ends a little after the 99th percentile, and its last bar is open.
func newAxis(ratios []float64) axis {
	sorted := slices.Sorted(slices.Values(ratios))
	highest, end := Percentile(sorted, 100), 1.5
	if highest > end {
		end = highest
	}
	if reach := 1.2 * Percentile(sorted, 99); end > 3 && reach < end {
		end = max(3, reach)
	}
	a := axis{step: niceStep(end / maxBars)}
	a.bars = int(math.Ceil(end/a.step - 1e-9))
	a.open = highest > a.end()
	return a
}

func (a axis) end() float64 {
	return float64(a.bars) * a.step
}

// niceStep returns the smallest of 1, 2 or 5 times a power of ten, from 0.05 on, that is not below `least`: all of
// them up to 1 have a bar that ends at the load line.
func niceStep(least float64) float64 {
	for power := 0.01; ; power *= 10 {
		for _, factor := range [...]float64{1, 2, 5} {
			if step := factor * power; step >= max(least, 0.05) {
				return step
			}
		}
	}
}

// bar returns the number of the bar that holds a ratio: bar k holds (k, k+1] steps, the first one also 0.
func (a axis) bar(ratio float64) int {
	// The subtraction keeps a ratio at the border, such as 1.1 with steps of 0.1, from slipping into the next bar.
	k := math.Ceil(ratio/a.step-1e-9) - 1
	return int(min(max(k, 0), float64(a.bars-1)))
}

func (a axis) count(ratios []float64) []int {
	counts := make([]int, a.bars)
	for _, ratio := range ratios {
		counts[a.bar(ratio)]++
	}
	return counts
}

func (a axis) x(ratio float64) float64 {
	return marginLeft + plotWidth*min(ratio/a.end(), 1)
}

// newHistogram draws one placement. `highest` is the largest count in any histogram on this axis.
func newHistogram(p Placement, resource string, a axis, highest int) figure {
	title := resource + " limits / allocatable"
	h := newPlot("Histogram of "+title+", "+p.Name, marginTop, plotHeight, 0)
	scale := niceCount(highest)
	y := func(count int) float64 { return h.bottom - plotHeight*float64(count)/float64(scale) }
	var counts []tick
	for _, count := range []int{0, scale / 2, scale} {
		if count == 0 || count != scale/2 || scale%2 == 0 {
			counts = append(counts, tick{y(count), strconv.Itoa(count)})
		}
	}
	h.axes(a.ticks(), counts)
	h.add(shape{Kind: "text", Class: "soft", Text: "number of nodes", X: 14, Y: h.bottom, Upwards: true})
	for k, count := range a.count(ratios(p, resource)) {
		if count > 0 {
			h.add(shape{Kind: "rect", Class: scaleClass((float64(k) + 0.5) * a.step), X: a.x(float64(k)*a.step) + 0.5,
				Y: y(count), Width: plotWidth/float64(a.bars) - 1, Height: h.bottom - y(count), Title: a.barTitle(k, count)})
		}
	}
	h.text("soft", "end", title, h.right, h.bottom+32)
	h.marked(marks(Summarize(p, resource), a))
	return figure{p.Name, &h.drawing}
}

func (a axis) barTitle(k, count int) string {
	from, to := formatTick(float64(k)*a.step), formatTick(float64(k+1)*a.step)
	nodes := Counted(count, "node")
	switch {
	case k == a.bars-1 && a.open:
		return fmt.Sprintf("%s above %s", nodes, from)
	case k == 0:
		return fmt.Sprintf("%s up to %s", nodes, to)
	}
	return fmt.Sprintf("%s above %s up to %s", nodes, from, to)
}

// ticks labels at most about ten places, the load line among them where the steps allow it.
func (a axis) ticks() []tick {
	step := niceStep(a.end() / 10)
	var ticks []tick
	for k := 0; float64(k)*step <= a.end()+1e-9; k++ {
		ticks = append(ticks, tick{a.x(float64(k) * step), formatTick(float64(k) * step)})
	}
	return ticks
}

func marks(s Summary, a axis) []mark {
	if s.Nodes == 0 {
		return nil
	}
	var all []mark
	for row, m := range []struct {
		class, name string
		ratio       float64
	}{{"load", "load line", 1}, {"p95", "p95", s.P95}, {"max", "max", s.Max}} {
		x := a.x(m.ratio)
		drawn := mark{X: x, LabelX: x + 4, LabelY: float64(row)*labelRow + 12, Anchor: "start",
			Class: m.class, Label: m.name + " " + FormatRatio(m.ratio)}
		if x > marginLeft+plotWidth-90 {
			drawn.LabelX, drawn.Anchor = x-4, "end"
		}
		all = append(all, drawn)
	}
	return all
}

// niceCount returns the top of the count axis: the next of 1, 2, 5 times a power of ten, or 4 or 8 times for less
// empty space.
func niceCount(highest int) int {
	for power := 1; ; power *= 10 {
		for _, factor := range [...]int{1, 2, 4, 5, 8} {
			if factor*power >= highest {
				return factor * power
			}
		}
	}
}

func formatTick(ratio float64) string {
	return strconv.FormatFloat(math.Round(ratio*100)/100, 'f', -1, 64)
}

// ratios returns the ratios of the nodes that offer the resource.
func ratios(p Placement, resource string) []float64 {
	var all []float64
	for _, node := range p.Nodes {
		if ratio, ok := node.Resources[resource].Ratio(); ok {
			all = append(all, ratio)
		}
	}
	return all
}

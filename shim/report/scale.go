package report

import "math"

// scaleStep is one colour of the scale that histograms and heat maps share.
type scaleStep struct {
	// Class is the CSS class of the colour.
	Class string
	// Label names the ratios of the step.
	Label string
	// upTo is the highest ratio of the step: exactly at the load line is not above it.
	upTo float64
}

// colourScale runs from blue (room) over pale colours at the load line to brown (above it). Blue and orange stay
// apart for all common kinds of colour blindness, and lightness falls off to both sides.
var colourScale = [...]scaleStep{
	{"s0", "up to 0.25", 0.25},
	{"s1", "0.5", 0.5},
	{"s2", "0.75", 0.75},
	{"s3", "1.0", 1},
	{"s4", "1.25", 1.25},
	{"s5", "1.5", 1.5},
	{"s6", "2.0", 2},
	{"s7", "3.0", 3},
	{"s8", "above 3.0", math.Inf(1)},
}

// Over tells whether the step lies above the load line. Cells of such steps carry a dot: colour is never alone.
func (s scaleStep) Over() bool {
	return s.upTo > 1
}

func scaleClass(ratio float64) string {
	for _, step := range colourScale {
		if ratio <= step.upTo {
			return step.Class
		}
	}
	return colourScale[len(colourScale)-1].Class
}

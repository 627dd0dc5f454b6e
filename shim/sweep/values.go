package sweep

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// mostLabels is the number of values of a setting that are reported apart.
const mostLabels = 12

// labels returns how values of a path are called: by themselves, or where there are many numbers, by the quarter of
// their range.
func (p *Plan) labels(path string) func(string) string {
	values := map[string]bool{}
	low, high := math.Inf(1), math.Inf(-1)
	for _, point := range p.Points {
		value := point.Get(path)
		if value == "" {
			continue
		}
		values[value] = true
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return strings.Clone
		}
		low, high = min(low, number), max(high, number)
	}
	if len(values) <= mostLabels {
		return strings.Clone
	}
	return func(value string) string {
		number, _ := strconv.ParseFloat(value, 64)
		quarter := min(3, math.Floor(4*(number-low)/(high-low)))
		width := (high - low) / 4
		return fmt.Sprintf("%.4g to %.4g", low+quarter*width, low+(quarter+1)*width)
	}
}

// compareValues orders numbers by size, and what is none as text.
func compareValues(x, y string) int {
	a, errA := strconv.ParseFloat(firstWord(x), 64)
	b, errB := strconv.ParseFloat(firstWord(y), 64)
	if errA == nil && errB == nil {
		return cmp.Compare(a, b)
	}
	return cmp.Compare(x, y)
}

func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

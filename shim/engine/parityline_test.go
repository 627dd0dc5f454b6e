package engine_test

import (
	"fmt"

	"loadline.dev/shim/api/loadlinev1"
)

// loadLine returns a load line; one of five is not valid.
func (g *requests) loadLine() *loadlinev1.LoadLine {
	line := &loadlinev1.LoadLine{NodeLabelPrefix: "lines.example.com"}
	for _, resource := range []string{"cpu", "memory"}[g.IntN(2):] {
		line.Resources = append(line.Resources, &loadlinev1.LineResource{Resource: resource,
			MaxLimitsOverAllocatable: fmt.Sprintf("%d.%d", g.IntN(3), g.IntN(1000))})
	}
	if g.IntN(5) == 0 {
		line.ExemptNamespaces = []string{"default"}
	}
	return line
}

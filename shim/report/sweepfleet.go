package report

import (
	"fmt"
	"slices"
)

// SweepFront is a line of the picture of all clusters: for each wait the least that a cluster costs, in percent of what
// it costs today.
type SweepFront struct {
	Name   string
	Points []SweepFrontPoint
}

// SweepFrontPoint is a set of settings that nothing cheaper undercuts.
type SweepFrontPoint struct{ Wait, Percent float64 }

// drawFleet draws a line for each cluster, if there are any.
func (s *Sweep) drawFleet() []figure {
	if len(s.Fronts) == 0 || len(s.Sections) == 0 {
		return nil
	}
	goal := s.Sections[0].GoalSeconds
	longest, low, high := goal, 100.0, 100.0
	for _, front := range s.Fronts {
		for _, p := range front.Points {
			longest, low, high = max(longest, p.Wait), min(low, p.Percent), max(high, p.Percent)
		}
	}
	step := niceStep(max(high-low, 4) / 6)
	c := newWaitChart("A line for each cluster: cost in percent of today", s.Sections[0].WaitName, goal, longest, step,
		low-0.1*step, high+0.1*step, " %")
	for i, front := range s.Fronts {
		if len(front.Points) == 0 {
			continue
		}
		points := slices.SortedFunc(slices.Values(front.Points), shorterWait)
		cheapest := points[len(points)-1]
		c.path(lineClass(i), c.stairs(points)+fmt.Sprintf("H%.1f", c.right), front.Name) // who may wait longer pays no more
		c.text("label", "", front.Name, c.x(cheapest.Wait)+6, c.y(cheapest.Percent)-7)
	}
	return []figure{{"The least that each cluster costs, in percent of today, for a waiting time", &c.drawing}}
}

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

type sweepFleet struct {
	waitChart
	Lines []sweepFleetLine
}

type sweepFleetLine struct {
	Class, Name, Path string
	X, Y              float64 // of its cheapest point, where its name is drawn
}

// drawFleet draws a line for each cluster; nil: there are none.
func (s *Sweep) drawFleet() *sweepFleet {
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
	c := &sweepFleet{waitChart: newWaitChart(s.Sections[0].WaitName, goal, longest, step, low-0.1*step, high+0.1*step,
		" %")}
	for i, front := range s.Fronts {
		if len(front.Points) == 0 {
			continue
		}
		points := slices.SortedFunc(slices.Values(front.Points), shorterWait)
		last := points[len(points)-1]
		c.Lines = append(c.Lines, sweepFleetLine{Class: lineClass(i), Name: front.Name,
			Path: c.stairs(points) + fmt.Sprintf("H%.1f", c.Right), // who may wait longer pays no more
			X:    c.x(last.Wait) + 6, Y: c.y(last.Percent) - 7})
	}
	return c
}

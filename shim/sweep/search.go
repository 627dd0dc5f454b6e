package sweep

import (
	"cmp"
	"slices"
)

// Next returns the rows that are to be simulated now, in order; none: the search has ended. With Grid and Random these
// are all that are not there yet. Halving simulates all points with few seeds, keeps those that are cheapest for the
// goal, and simulates these with more seeds, until they have all: the next round is known when one is complete. The
// result does not depend on the order in which rows were done.
func (p *Plan) Next(done map[int]*Row) []int {
	var missing []int
	for _, row := range p.Round(done) {
		if done[row] == nil {
			missing = append(missing, row)
		}
	}
	return missing
}

// Round returns all rows of the first round in which one is missing, done or not, but for those of rounds before; none:
// the search has ended. It does not depend on which rows of the round are done.
func (p *Plan) Round(done map[int]*Row) []int {
	if p.Spec.Search.Kind != Halving {
		return p.ifMissing(done, p.allPoints(), 0, p.Spec.Seeds.Count)
	}
	points, before, seeds := p.allPoints(), 0, p.Spec.Search.FirstSeeds
	for {
		if round := p.ifMissing(done, points, before, seeds); len(round) > 0 {
			return round
		}
		if seeds == p.Spec.Seeds.Count {
			return nil
		}
		keep := p.Spec.Search.KeepPercent
		points = p.best(done, points, seeds, max(1, (len(points)*keep+99)/100))
		before, seeds = seeds, min(p.Spec.Seeds.Count, max(seeds+1, seeds*100/keep))
	}
}

func (p *Plan) allPoints() []int {
	points := make([]int, len(p.Points))
	for i := range points {
		points[i] = i
	}
	return points
}

// ifMissing returns the rows of points with the seeds of a round, if one of them is not done.
func (p *Plan) ifMissing(done map[int]*Row, points []int, before, seeds int) []int {
	var rows []int
	missing := false
	for input := range p.Scenarios {
		for _, point := range points {
			for seed := before; seed < seeds; seed++ {
				row := p.row(place{input, point, seed})
				rows = append(rows, row)
				missing = missing || done[row] == nil
			}
		}
	}
	if !missing {
		return nil
	}
	return rows
}

// best returns the points that are best for the goal, in order of their numbers, and that of today.
func (p *Plan) best(done map[int]*Row, points []int, seeds, most int) []int {
	ranked := slices.Clone(points)
	scores := map[int]score{}
	for _, point := range points {
		scores[point] = p.score(done, point, seeds)
	}
	slices.SortStableFunc(ranked, func(x, y int) int { return scores[x].compare(scores[y]) })
	kept := ranked[:min(most, len(ranked))]
	if !slices.Contains(kept, 0) {
		kept = append(slices.Clone(kept), 0)
	}
	return slices.Sorted(slices.Values(kept))
}

// score is what a point costs in all inputs together, and by how many hours of nodes and seconds its worst input misses
// the goal.
type score struct{ overload, misses, usd float64 }

func (s score) compare(other score) int {
	return cmp.Or(cmp.Compare(s.overload, other.overload), cmp.Compare(s.misses, other.misses),
		cmp.Compare(s.usd, other.usd))
}

func (p *Plan) score(done map[int]*Row, point, seeds int) (s score) {
	_, wait, goal := p.Spec.Goal.Wait()
	bound, most := p.Spec.Goal.Overload()
	for input := range p.Scenarios {
		var usd, waited, overload mean
		for seed := range seeds {
			if row := done[p.row(place{input, point, seed})]; row != nil {
				usd.add(row.USD)
				waited.add(wait(row))
				overload.add(row.Overload())
			}
		}
		s.usd += usd.of()
		if goal > 0 {
			s.misses = max(s.misses, waited.of()-goal)
		}
		if bound {
			s.overload = max(s.overload, overload.of()-most)
		}
	}
	return s
}

// mean sums up numbers in their order.
type mean struct {
	sum   float64
	count int
}

func (m *mean) add(value float64) { m.sum += value; m.count++ }

func (m *mean) of() float64 {
	if m.count == 0 {
		return 0
	}
	return m.sum / float64(m.count)
}

package sweep

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Spread is a number over the seeds of a point.
type Spread struct {
	Mean float64 `json:"mean"`
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
}

func spread(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	var m mean
	s := Spread{Min: values[0], Max: values[0]}
	for _, value := range values {
		m.add(value)
		s.Min, s.Max = min(s.Min, value), max(s.Max, value)
	}
	s.Mean = m.of()
	return s
}

func (s Spread) plus(o Spread) Spread { return Spread{s.Mean + o.Mean, s.Min + o.Min, s.Max + o.Max} }

// Outcome is what became of a point in an input, or in all together: then it costs the sum, and Wait is that of the
// input that waits longest.
type Outcome struct {
	Point     int
	Seeds     int
	USD, Wait Spread
	Bound     float64
	Evictions float64
	CPUP99    float64
	MemoryP99 float64
	NodesMean float64
	// Overload is the hours of nodes with overload.
	Overload Spread
	// Meets: Wait.Mean and Overload.Mean are within the goal, if there is one. OnFront: no point of as many seeds costs
	// less and waits no longer, of those whose overload is within the goal.
	Meets, OnFront bool
}

// Summary are the outcomes of an input, in the order of points.
type Summary struct {
	Input    string
	Outcomes []Outcome
	// Today is how it is now; Best is the cheapest outcome that meets the goal, or without a goal the cheapest; nil: none.
	Today, Best *Outcome
}

// Of returns the outcome of a point; nil: there is none.
func (s *Summary) Of(point int) *Outcome {
	for i := range s.Outcomes {
		if s.Outcomes[i].Point == point {
			return &s.Outcomes[i]
		}
	}
	return nil
}

// Everything is the name of the summary of all inputs together.
const Everything = "all together"

// Summaries sum up rows: all inputs together first if there are several, then each input.
func (p *Plan) Summaries(rows []*Row) []Summary {
	byPlace := map[int]map[int][]*Row{} // by input and point, in order of seeds
	for _, row := range rows {
		at := p.place(row.Row)
		if byPlace[at.input] == nil {
			byPlace[at.input] = map[int][]*Row{}
		}
		byPlace[at.input][at.point] = append(byPlace[at.input][at.point], row)
	}
	var out []Summary
	for input, name := range p.Names {
		s := Summary{Input: name}
		for _, point := range slices.Sorted(maps.Keys(byPlace[input])) {
			s.Outcomes = append(s.Outcomes, p.outcome(point, byPlace[input][point]))
		}
		out = append(out, s)
	}
	if len(out) > 1 {
		out = append([]Summary{p.together(out)}, out...)
	}
	for i := range out {
		p.finish(&out[i])
	}
	return out
}

func (p *Plan) outcome(point int, rows []*Row) Outcome {
	_, wait, _ := p.Spec.Goal.Wait()
	of := func(value func(*Row) float64) Spread {
		var values []float64
		for _, row := range rows {
			values = append(values, value(row))
		}
		return spread(values)
	}
	return Outcome{Point: point, Seeds: len(rows), USD: of(func(r *Row) float64 { return r.USD }), Wait: of(wait),
		Bound:     of(func(r *Row) float64 { return r.BoundUSD }).Mean,
		Evictions: of(func(r *Row) float64 { return float64(r.Evictions) }).Mean,
		CPUP99:    of(func(r *Row) float64 { return r.CPUP99 }).Max,
		MemoryP99: of(func(r *Row) float64 { return r.MemoryP99 }).Max,
		NodesMean: of(func(r *Row) float64 { return r.NodesMean }).Mean, Overload: of((*Row).Overload)}
}

// together adds up the inputs of each point that has all of them.
func (p *Plan) together(inputs []Summary) Summary {
	all := Summary{Input: Everything}
	for point := range p.Points {
		sum := Outcome{Point: point, Seeds: math.MaxInt}
		complete := true
		for i := range inputs {
			o := inputs[i].Of(point)
			if o == nil {
				complete = false
				break
			}
			sum.Seeds = min(sum.Seeds, o.Seeds)
			sum.USD = sum.USD.plus(o.USD)
			sum.Overload = sum.Overload.plus(o.Overload)
			if o.Wait.Mean >= sum.Wait.Mean {
				sum.Wait = o.Wait
			}
			sum.Bound += o.Bound
			sum.Evictions += o.Evictions
			sum.NodesMean += o.NodesMean
			sum.CPUP99, sum.MemoryP99 = max(sum.CPUP99, o.CPUP99), max(sum.MemoryP99, o.MemoryP99)
		}
		if complete {
			all.Outcomes = append(all.Outcomes, sum)
		}
	}
	return all
}

// finish finds the front, today's point, and the best of those with most seeds.
func (p *Plan) finish(s *Summary) {
	_, _, goal := p.Spec.Goal.Wait()
	bound, hours := p.Spec.Goal.Overload()
	most := 0
	for _, o := range s.Outcomes {
		most = max(most, o.Seeds)
	}
	var ranked []*Outcome
	for i := range s.Outcomes {
		o := &s.Outcomes[i]
		loaded := bound && o.Overload.Mean > hours
		o.Meets = (goal == 0 || o.Wait.Mean <= goal) && !loaded
		if o.Point == 0 {
			s.Today = o
		}
		if o.Seeds == most && !loaded {
			ranked = append(ranked, o)
		}
	}
	slices.SortStableFunc(ranked, func(x, y *Outcome) int {
		return cmp.Or(cmp.Compare(x.USD.Mean, y.USD.Mean), cmp.Compare(x.Wait.Mean, y.Wait.Mean))
	})
	shortest := math.Inf(1)
	for _, o := range ranked {
		if o.Wait.Mean < shortest {
			shortest, o.OnFront = o.Wait.Mean, true
		}
		if s.Best == nil && o.Meets {
			s.Best = o
		}
	}
}

// Effect is what a value of a setting does: the mean over all points that have it, against the mean over all that set
// anything there.
type Effect struct {
	Path, Value string
	Points      int
	USD, Wait   float64
}

// Effects returns for each setting how far costs and waiting times differ between its values, in the order of settings
// and values. Values of ranges that are drawn are reported in four parts of the range.
func (p *Plan) Effects(s *Summary) (effects []Effect) {
	for _, path := range p.Paths() {
		values := map[string]*[2]mean{}
		var order []string
		label := p.labels(path)
		for _, o := range s.Outcomes {
			value := p.Points[o.Point].Get(path)
			if value == "" {
				continue
			}
			value = label(value)
			if values[value] == nil {
				values[value] = &[2]mean{}
				order = append(order, value)
			}
			values[value][0].add(o.USD.Mean)
			values[value][1].add(o.Wait.Mean)
		}
		slices.SortStableFunc(order, compareValues)
		for _, value := range order {
			means := values[value]
			effects = append(effects, Effect{path, value, means[0].count, means[0].of(), means[1].of()})
		}
	}
	return effects
}

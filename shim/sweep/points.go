package sweep

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"loadline.dev/shim/api/loadlinev1"
)

// Value is what a field is set to.
type Value struct {
	Path  string
	Value any
}

// Point is what is set, in the order of the sweep's settings; empty: as it is today.
type Point []Value

// AsItIs is what the point of today is called.
const AsItIs = "as it is"

func (p Point) String() string {
	if len(p) == 0 {
		return AsItIs
	}
	var parts []string
	for _, v := range p {
		parts = append(parts, strings.TrimPrefix(v.Path, "settings.")+"="+text(v.Value))
	}
	return strings.Join(parts, " ")
}

// Get returns the value of a path; "": none.
func (p Point) Get(path string) string {
	for _, v := range p {
		if v.Path == path {
			return text(v.Value)
		}
	}
	return ""
}

// points returns all of a sweep, each once: first the one of today, then those that the file names, then those of the
// search. Which fields are whole numbers is seen in a scenario.
func (s *Spec) points(scenario *loadlinev1.Scenario) ([]Point, error) {
	all := []Point{{}}
	for i, named := range s.Points {
		var p Point
		for _, path := range slices.Sorted(maps.Keys(named)) {
			p = append(p, Value{path, named[path]})
		}
		if len(p) == 0 {
			return nil, fmt.Errorf("points[%d]: sets nothing", i)
		}
		all = append(all, p)
	}
	if len(s.Settings) > 0 {
		whole := make([]bool, len(s.Settings))
		for i, setting := range s.Settings {
			at, err := find(scenario, setting.Path)
			if err != nil {
				return nil, fmt.Errorf("settings[%d]: %w", i, err)
			}
			whole[i] = at.whole()
		}
		var err error
		if s.Search.Points > 0 {
			all = append(all, s.draw(whole)...)
		} else if all, err = s.grid(all, whole); err != nil {
			return nil, err
		}
	}
	return unique(all), nil
}

func unique(all []Point) (out []Point) {
	seen := map[string]bool{}
	for _, p := range all {
		if key := p.String(); !seen[key] {
			seen[key] = true
			out = append(out, p)
		}
	}
	return out
}

// grid adds each combination of values: the last setting changes first.
func (s *Spec) grid(all []Point, whole []bool) ([]Point, error) {
	combined := []Point{{}}
	for i, setting := range s.Settings {
		values := setting.Values
		if setting.Range != nil {
			for step := range setting.Range.Steps {
				values = append(values, setting.Range.at(float64(step)/float64(setting.Range.Steps-1), whole[i]))
			}
		}
		if len(combined)*len(values) > maxPoints {
			return nil, fmt.Errorf("settings: the grid has more than %d points", maxPoints)
		}
		var next []Point
		for _, p := range combined {
			for _, value := range values {
				next = append(next, append(slices.Clone(p), Value{setting.Path, value}))
			}
		}
		combined = next
	}
	return append(all, combined...), nil
}

// draw draws points. What is drawn follows from the seed alone.
func (s *Spec) draw(whole []bool) (all []Point) {
	random := rand.NewPCG(s.Search.Seed, 0)
	for range s.Search.Points {
		var p Point
		for i, setting := range s.Settings {
			number := random.Uint64()
			if setting.Range == nil {
				p = append(p, Value{setting.Path, setting.Values[number%uint64(len(setting.Values))]})
				continue
			}
			p = append(p, Value{setting.Path, setting.Range.at(float64(number>>11)/(1<<53-1), whole[i])})
		}
		all = append(all, p)
	}
	return all
}

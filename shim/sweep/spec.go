package sweep

import (
	"encoding/json"
	"fmt"
	"regexp"

	"loadline.dev/shim/policy"
	"loadline.dev/shim/scenario"
)

// The version and the kind that a file states.
const (
	APIVersion = "loadline.dev/v1alpha1"
	Kind       = "Sweep"
)

// Bounds of a sweep.
const (
	maxInputs = 1_000
	maxPoints = 100_000
	maxSeeds  = 10_000
	maxDays   = 400
	maxRows   = 1_000_000
)

// File is a document of kind Sweep.
type File struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Metadata names the sweep.
	Metadata Metadata `json:"metadata"`
	// Spec says which months are simulated.
	Spec Spec `json:"spec"`
}

// Metadata names a sweep.
type Metadata struct {
	// Name has at most 32 of a-z, 0-9 and -. Required.
	Name string `json:"name"`
}

// Spec says which months are simulated.
type Spec struct {
	// Inputs are the clusters; 1 to 1000. Required.
	Inputs []Input `json:"inputs"`
	// Days is how long each month is; 1 to 400.
	Days int64 `json:"days,omitempty"`
	// Seeds are those that each point is simulated with.
	Seeds Seeds `json:"seeds,omitempty"`
	// Settings are what differs between points. Default: none.
	Settings []Setting `json:"settings,omitempty"`
	// Points are looked at beside those of the search: values by path. Default: none.
	Points []map[string]any `json:"points,omitempty"`
	// Search says which points there are.
	Search Search `json:"search,omitempty"`
	// Goal is what the cheapest point has to meet; Halving requires one. Default: none.
	Goal *Goal `json:"goal,omitempty"`
}

// Input is a cluster: a scenario, or a dump that a scenario is derived from. Files are named as seen from the sweep's.
type Input struct {
	// Name is what the results call the cluster. Default: that of the scenario, else the name of the file.
	Name string `json:"name,omitempty"`
	// Scenario is a file of kind Scenario. Required without dump.
	Scenario string `json:"scenario,omitempty"`
	// Dump is a dump of a cluster. Required without scenario.
	Dump string `json:"dump,omitempty"`
	// Prices are price lists, CSV files, for a dump. Default: the lists that are built in.
	Prices []string `json:"prices,omitempty"`
	// Load is what a dump does not tell of its Deployments. Default: as below.
	Load *scenario.Curve `json:"load,omitempty"`
}

// Seeds are count numbers, from first on.
type Seeds struct {
	// First is the first seed.
	First int64 `json:"first,omitempty"`
	// Count is how many seeds there are; 1 to 10000.
	Count int `json:"count,omitempty"`
}

// Setting is a field of scenarios and what it is set to: each of a list, or of a range.
type Setting struct {
	// Path names the field, such as settings.slackPercent; entries of lists by their names. Required.
	Path string `json:"path"`
	// Values are what the field is set to. Required without range.
	Values []any `json:"values,omitempty"`
	// Range is what the field is set to. Required without values.
	Range *Range `json:"range,omitempty"`
}

// Range is from one number to another: in so many steps for a grid, anywhere between for a random search.
type Range struct {
	// From is the lowest value; above 0 with log. Default: 0.
	From float64 `json:"from"`
	// To is the highest value. Default: 0.
	To float64 `json:"to"`
	// Steps is how many values of the range a grid has. Required for a grid, at least 2.
	Steps int `json:"steps,omitempty"`
	// Log spaces them evenly by ratio.
	Log bool `json:"log,omitempty"`
}

// Kinds of search.
const (
	Grid    = "Grid"
	Random  = "Random"
	Halving = "Halving"
)

// Search says which points there are, and how many of their seeds are simulated.
type Search struct {
	// Kind is Grid, Random or Halving.
	Kind string `json:"kind,omitempty"`
	// Points is how many are drawn, with Random and Halving; 0 with Halving: those of the grid. Required with Random.
	Points int `json:"points,omitempty"`
	// Seed makes the draw of points the same each time. Default: 0.
	Seed uint64 `json:"seed,omitempty"`
	// FirstSeeds is how many seeds of each point the first round of Halving has. Default: 1 with Halving.
	FirstSeeds int `json:"firstSeeds,omitempty"`
	// KeepPercent is the share of the points that each round of Halving keeps, to simulate more of their seeds in the
	// next one; 1 to 90. Default: 33 with Halving.
	KeepPercent int `json:"keepPercent,omitempty"`
}

// Goal is what the cheapest point is looked for under: the mean over seeds of one of the waits is at most so many
// seconds, that of overload so many hours of nodes, or both.
type Goal struct {
	// MeanWaitSeconds bounds the mean of the time that pods wait. Required without the others.
	MeanWaitSeconds float64 `json:"meanWaitSeconds,omitempty"`
	// P50WaitSeconds bounds the median. Required without the others.
	P50WaitSeconds float64 `json:"p50WaitSeconds,omitempty"`
	// P95WaitSeconds bounds the 95th percentile. Required without the others.
	P95WaitSeconds float64 `json:"p95WaitSeconds,omitempty"`
	// MaxWaitSeconds bounds the longest wait. Required without the others.
	MaxWaitSeconds float64 `json:"maxWaitSeconds,omitempty"`
	// OverloadNodeHours bounds the hours of nodes whose pods use more than there is: of CPU more than all, of memory
	// more than 97 %, the sum of both. It takes workloads that state their use. Required without the others.
	OverloadNodeHours *float64 `json:"overloadNodeHours,omitempty"`
}

var name = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$`)

// ParseFile reads one document. Errors name the field.
func ParseFile(document []byte) (*File, error) {
	var file File
	if err := policy.DecodeStrict(document, &file); err != nil {
		return nil, err
	}
	if file.APIVersion != APIVersion || file.Kind != Kind {
		return nil, fmt.Errorf("apiVersion %q, kind %q: must be %s and %s", file.APIVersion, file.Kind, APIVersion, Kind)
	}
	if !name.MatchString(file.Metadata.Name) {
		return nil, fmt.Errorf("metadata.name %q: must be at most 32 of a-z, 0-9 and -", file.Metadata.Name)
	}
	file.Spec.setDefaults()
	if err := file.Spec.check(); err != nil {
		return nil, fmt.Errorf("spec.%w", err)
	}
	return &file, nil
}

func (s *Spec) setDefaults() {
	orElse(&s.Days, 30)
	orElse(&s.Seeds.Count, 1)
	orElse(&s.Seeds.First, 1)
	orElse(&s.Search.Kind, Grid)
	if s.Search.Kind == Halving {
		orElse(&s.Search.FirstSeeds, 1)
		orElse(&s.Search.KeepPercent, 33)
	}
}

func orElse[T comparable](value *T, otherwise T) {
	var zero T
	if *value == zero {
		*value = otherwise
	}
}

func (s *Spec) check() error {
	if len(s.Inputs) == 0 || len(s.Inputs) > maxInputs {
		return fmt.Errorf("inputs: there are %d, must be 1 to %d", len(s.Inputs), maxInputs)
	}
	for i, in := range s.Inputs {
		switch {
		case (in.Scenario == "") == (in.Dump == ""):
			return fmt.Errorf("inputs[%d]: must have one of scenario and dump", i)
		case in.Scenario != "" && (len(in.Prices) > 0 || in.Load != nil):
			return fmt.Errorf("inputs[%d]: prices and load are for a dump", i)
		}
	}
	if s.Days < 1 || s.Days > maxDays {
		return fmt.Errorf("days %d: must be 1 to %d", s.Days, maxDays)
	}
	if s.Seeds.Count < 1 || s.Seeds.Count > maxSeeds {
		return fmt.Errorf("seeds.count %d: must be 1 to %d", s.Seeds.Count, maxSeeds)
	}
	if s.Seeds.First < 0 || s.Seeds.First > 1<<40 {
		return fmt.Errorf("seeds.first %d: must be 0 to %d", s.Seeds.First, int64(1)<<40)
	}
	for i, setting := range s.Settings {
		if err := setting.check(); err != nil {
			return fmt.Errorf("settings[%d].%w", i, err)
		}
	}
	return s.checkSearch()
}

func (s *Setting) check() error {
	switch {
	case s.Path == "":
		return fmt.Errorf("path: is missing")
	case (len(s.Values) == 0) == (s.Range == nil):
		return fmt.Errorf("path %q: must have one of values and range", s.Path)
	case s.Range == nil:
		return nil
	case s.Range.From > s.Range.To:
		return fmt.Errorf("range: from %v is above to %v", s.Range.From, s.Range.To)
	case s.Range.Log && s.Range.From <= 0:
		return fmt.Errorf("range.from %v: must be above 0 with log", s.Range.From)
	case s.Range.Steps < 0 || s.Range.Steps > maxPoints:
		return fmt.Errorf("range.steps %d: must be 0 to %d", s.Range.Steps, maxPoints)
	}
	return nil
}

func (s *Spec) checkSearch() error {
	search := s.Search
	switch search.Kind {
	case Grid:
		if search.Points != 0 {
			return fmt.Errorf("search.points: is for Random and Halving")
		}
	case Random:
		if search.Points < 1 {
			return fmt.Errorf("search.points %d: must be 1 to %d", search.Points, maxPoints)
		}
	case Halving:
		if s.Goal == nil {
			return fmt.Errorf("goal: is missing, Halving looks for the cheapest point that meets it")
		}
		if search.KeepPercent < 1 || search.KeepPercent > 90 {
			return fmt.Errorf("search.keepPercent %d: must be 1 to 90", search.KeepPercent)
		}
		if search.FirstSeeds < 1 || search.FirstSeeds > s.Seeds.Count {
			return fmt.Errorf("search.firstSeeds %d: must be 1 to %d, seeds.count", search.FirstSeeds, s.Seeds.Count)
		}
	default:
		return fmt.Errorf("search.kind %q: must be %s, %s or %s", search.Kind, Grid, Random, Halving)
	}
	if search.Kind != Halving && (search.FirstSeeds != 0 || search.KeepPercent != 0) {
		return fmt.Errorf("search: firstSeeds and keepPercent are for Halving")
	}
	if search.Points < 0 || search.Points > maxPoints {
		return fmt.Errorf("search.points %d: must be 0 to %d", search.Points, maxPoints)
	}
	for i, setting := range s.Settings {
		if search.Points == 0 && setting.Range != nil && setting.Range.Steps < 2 {
			return fmt.Errorf("settings[%d].range.steps %d: must be at least 2 for a grid", i, setting.Range.Steps)
		}
	}
	if s.Goal != nil {
		return s.Goal.check()
	}
	return nil
}

func (g *Goal) check() error {
	set := 0
	for _, seconds := range []float64{g.MeanWaitSeconds, g.P50WaitSeconds, g.P95WaitSeconds, g.MaxWaitSeconds} {
		if seconds < 0 {
			return fmt.Errorf("goal: %v seconds: must be above 0", seconds)
		}
		if seconds > 0 {
			set++
		}
	}
	bound, hours := g.Overload()
	if hours < 0 {
		return fmt.Errorf("goal.overloadNodeHours: %v is below 0", hours)
	}
	if set > 1 || (set == 0 && !bound) {
		return fmt.Errorf("goal: must have one of meanWaitSeconds, p50WaitSeconds, p95WaitSeconds and maxWaitSeconds, " +
			"or overloadNodeHours, or both")
	}
	return nil
}

// Overload returns whether overload is bounded, and by how many hours of nodes.
func (g *Goal) Overload() (bound bool, hours float64) {
	if g == nil || g.OverloadNodeHours == nil {
		return false, 0
	}
	return true, *g.OverloadNodeHours
}

// Wait returns what a goal is about, in words, of a row, and at most how many seconds.
func (g *Goal) Wait() (what string, of func(*Row) float64, seconds float64) {
	switch {
	case g == nil:
	case g.MeanWaitSeconds > 0:
		return "mean wait", func(r *Row) float64 { return r.WaitMean }, g.MeanWaitSeconds
	case g.P50WaitSeconds > 0:
		return "p50 wait", func(r *Row) float64 { return r.WaitP50 }, g.P50WaitSeconds
	case g.MaxWaitSeconds > 0:
		return "longest wait", func(r *Row) float64 { return r.WaitMax }, g.MaxWaitSeconds
	case g.P95WaitSeconds > 0:
		return "p95 wait", func(r *Row) float64 { return r.WaitP95 }, g.P95WaitSeconds
	}
	return "p95 wait", func(r *Row) float64 { return r.WaitP95 }, 0
}

// text writes a value as people do, and the same for equal values.
func text(value any) string {
	if s, ok := value.(string); ok {
		return s
	}
	out, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(out)
}

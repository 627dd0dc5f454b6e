package sweep

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"

	"loadline.dev/shim/api/loadlinev1"
)

// Plan is a sweep with its inputs read: all that its rows follow from.
type Plan struct {
	Name string
	Spec Spec
	// Names and Scenarios are those of the inputs.
	Names     []string
	Scenarios []*loadlinev1.Scenario
	Points    []Point
	// Digest is the same for the same name, spec and scenarios.
	Digest string
	bundle []byte
}

// document is a plan as bytes: the spec with its inputs in place of their files.
type document struct {
	Name   string          `json:"name"`
	Spec   Spec            `json:"spec"`
	Inputs []documentInput `json:"inputs"`
}

type documentInput struct {
	Name     string `json:"name"`
	Scenario []byte `json:"scenario"` // in protobuf's deterministic form
}

// NewPlan returns the plan of a file whose inputs have these names and scenarios.
func NewPlan(file *File, names []string, scenarios []*loadlinev1.Scenario) (*Plan, error) {
	d := document{Name: file.Metadata.Name, Spec: file.Spec}
	d.Spec.Inputs = nil // where files lay plays no part
	seen := map[string]bool{}
	for i, scenario := range scenarios {
		if seen[names[i]] {
			return nil, fmt.Errorf("spec.inputs[%d]: there are two of name %q", i, names[i])
		}
		seen[names[i]] = true
		content, err := proto.MarshalOptions{Deterministic: true}.Marshal(scenario)
		if err != nil {
			return nil, err
		}
		d.Inputs = append(d.Inputs, documentInput{names[i], content})
	}
	content, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	return parse(content)
}

func parse(content []byte) (*Plan, error) {
	var d document
	if err := json.Unmarshal(content, &d); err != nil {
		return nil, err
	}
	if len(d.Inputs) == 0 {
		return nil, fmt.Errorf("a sweep without inputs")
	}
	sum := sha256.Sum256(content)
	p := &Plan{Name: d.Name, Spec: d.Spec, Digest: hex.EncodeToString(sum[:]), bundle: content}
	for _, in := range d.Inputs {
		scenario := &loadlinev1.Scenario{}
		if err := proto.Unmarshal(in.Scenario, scenario); err != nil {
			return nil, fmt.Errorf("input %q: %w", in.Name, err)
		}
		p.Names, p.Scenarios = append(p.Names, in.Name), append(p.Scenarios, scenario)
	}
	var err error
	if p.Points, err = p.Spec.points(proto.CloneOf(p.Scenarios[0])); err != nil {
		return nil, fmt.Errorf("spec.%w", err)
	}
	if p.Rows() > maxRows {
		return nil, fmt.Errorf("spec: %d inputs, %d points and %d seeds make %d rows, more than %d", len(p.Scenarios),
			len(p.Points), p.Spec.Seeds.Count, p.Rows(), maxRows)
	}
	if bound, _ := p.Spec.Goal.Overload(); bound && !p.StatesUse() {
		return nil, fmt.Errorf("spec.goal.overloadNodeHours: no workload of an input states its use")
	}
	return p, p.check()
}

// check sees that each point can be set in each input.
func (p *Plan) check() error {
	for i, scenario := range p.Scenarios {
		probe := proto.CloneOf(scenario)
		for _, point := range p.Points {
			if err := point.apply(probe); err != nil {
				return fmt.Errorf("input %q: %w", p.Names[i], err)
			}
		}
	}
	return nil
}

// Bundle returns all of the plan, for ReadBundle: a document of Digest, packed.
func (p *Plan) Bundle() ([]byte, error) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(p.bundle); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// maxBundleBytes is the most that a bundle may unpack to.
const maxBundleBytes = 1 << 30

// ReadBundle reads what Bundle returned; it must be that of `digest`.
func ReadBundle(packed io.Reader, digest string) (*Plan, error) {
	r, err := gzip.NewReader(packed)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(r, maxBundleBytes))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	if got := hex.EncodeToString(sum[:]); got != digest {
		return nil, fmt.Errorf("the inputs have digest %s, not %s", got, digest)
	}
	return parse(content)
}

// Rows is how many rows there are at most: one for each input, point and seed. A search by halving leaves some out, but
// the numbers of the others stay.
func (p *Plan) Rows() int { return len(p.Scenarios) * len(p.Points) * p.Spec.Seeds.Count }

// place is what a row is about.
type place struct{ input, point, seed int }

func (p *Plan) place(row int) place {
	seeds := p.Spec.Seeds.Count
	return place{row / seeds / len(p.Points), row / seeds % len(p.Points), row % seeds}
}

func (p *Plan) row(at place) int {
	return (at.input*len(p.Points)+at.point)*p.Spec.Seeds.Count + at.seed
}

// Request returns the simulation of a row.
func (p *Plan) Request(row int) (*loadlinev1.SimulateRequest, error) {
	if row < 0 || row >= p.Rows() {
		return nil, fmt.Errorf("row %d: there are rows 0 to %d", row, p.Rows()-1)
	}
	at := p.place(row)
	scenario := proto.CloneOf(p.Scenarios[at.input])
	if err := p.Points[at.point].apply(scenario); err != nil {
		return nil, fmt.Errorf("row %d: %w", row, err)
	}
	return &loadlinev1.SimulateRequest{Scenario: scenario, Days: p.Spec.Days, Seed: p.Spec.Seeds.First + int64(at.seed)},
		nil
}

// Describe says what a row is about.
func (p *Plan) Describe(row int) string {
	at := p.place(row)
	return fmt.Sprintf("row %d: %s, %s, seed %d", row, p.Names[at.input], p.Points[at.point],
		p.Spec.Seeds.First+int64(at.seed))
}

// StatesUse says whether a workload of an input states what its pods use, so that overload is counted.
func (p *Plan) StatesUse() bool {
	for _, scenario := range p.Scenarios {
		for _, workload := range scenario.GetWorkloads() {
			if workload.GetUse() != nil {
				return true
			}
		}
	}
	return false
}

// Paths are what points set, in order.
func (p *Plan) Paths() (paths []string) {
	seen := map[string]bool{}
	for _, point := range p.Points {
		for _, v := range point {
			if !seen[v.Path] {
				seen[v.Path] = true
				paths = append(paths, v.Path)
			}
		}
	}
	return paths
}

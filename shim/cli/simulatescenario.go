package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/scenario"
)

// scenarioFlags are those of `simulate --scenario`.
type scenarioFlags struct {
	file, against string
	days, seed    int64
	row           int
}

func (f *scenarioFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.file, "scenario", "", "file of kind "+scenario.Kind+" to simulate in place of a cluster")
	flags.StringVar(&f.against, "against", "", "with --scenario: another one, to be shown beside it")
	flags.Int64Var(&f.days, "days", 1, "with --scenario: how many days")
	flags.Int64Var(&f.seed, "seed", 1, "with --scenario: what chance follows from")
	flags.IntVar(&f.row, "row", -1, "run this row of the sweep FILE again, alone")
}

// scenarioRun is a scenario and what became of it.
type scenarioRun struct {
	name   string
	days   int64
	result *loadlinev1.SimulateResponse
}

// scenarioData is a result as data.
type scenarioData struct {
	Digest         string        `json:"digest"`
	Days           int64         `json:"days"`
	Loops          int64         `json:"loops"`
	USD            float64       `json:"usd"`
	BoundUSD       float64       `json:"boundUsd"`
	PodWaitSeconds scenarioWaits `json:"podWaitSeconds"`
	Evictions      int64         `json:"evictions"`
	Growths        int64         `json:"growths"`
	Moves          scenarioMoves `json:"moves"`
	NodesAdded     int64         `json:"nodesAdded"`
	NodesRemoved   int64         `json:"nodesRemoved"`
	LeftWaiting    int64         `json:"leftWaiting"`
	Violations     []string      `json:"violations"`
	Nodes          scenarioNodes `json:"nodes"`
	// The 99th percentile over each node at each moment.
	LimitsOverAllocatableP99 map[string]float64 `json:"limitsOverAllocatableP99"`
	// Overload is left out where no workload states its use.
	Overload *scenarioOverload `json:"overload,omitempty"`
	Against  *scenarioData     `json:"against,omitempty"`
}

// scenarioOverload is how long pods used more than their nodes offer, in hours of nodes, and how much more, in hours of
// whole nodes.
type scenarioOverload struct {
	CPUNodeHours    float64 `json:"cpuNodeHours"`
	MemoryNodeHours float64 `json:"memoryNodeHours"`
	CPUVolume       float64 `json:"cpuVolume"`
	MemoryVolume    float64 `json:"memoryVolume"`
}

// scenarioMoves are moves that replace nodes by cheaper ones.
type scenarioMoves struct {
	Begun   int64 `json:"begun"`
	Done    int64 `json:"done"`
	GivenUp int64 `json:"givenUp"`
}

type scenarioNodes struct {
	Mean float64 `json:"mean"`
	Max  int64   `json:"max"`
}

type scenarioWaits struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	Max  float64 `json:"max"`
}

// longestScenario is how long the engine may simulate one scenario: without a deadline it gives up much sooner.
const longestScenario = 10 * time.Minute

func simulateScenario(ctx context.Context, conn engine.Conn,
	request *loadlinev1.SimulateRequest) (*loadlinev1.SimulateResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, longestScenario)
	defer cancel()
	return loadlinev1.NewAutoscalerClient(conn).Simulate(ctx, request)
}

// run simulates the scenario, and the one to hold against it.
func (f *scenarioFlags) run(ctx context.Context, from *engineFlags) ([]*scenarioRun, error) {
	conn, err := from.open()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	var runs []*scenarioRun
	for _, name := range []string{f.file, f.against} {
		if name == "" {
			continue
		}
		_, read, err := scenario.Load(name)
		if err != nil {
			return nil, err
		}
		result, err := simulateScenario(ctx, conn,
			&loadlinev1.SimulateRequest{Scenario: read, Days: f.days, Seed: f.seed})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, engineError(err))
		}
		runs = append(runs, &scenarioRun{name: name, days: f.days, result: result})
	}
	return runs, nil
}

// runRow simulates a row of a sweep.
func (f *scenarioFlags) runRow(ctx context.Context, file string, from *engineFlags) ([]*scenarioRun, error) {
	plan, err := readSweep(ctx, file, *from)
	if err != nil {
		return nil, err
	}
	request, err := plan.Request(f.row)
	if err != nil {
		return nil, usageError{err}
	}
	conn, err := from.open()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	result, err := simulateScenario(ctx, conn, request)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", plan.Describe(f.row), engineError(err))
	}
	return []*scenarioRun{{name: plan.Describe(f.row), days: request.GetDays(), result: result}}, nil
}

func (r *scenarioRun) data() *scenarioData {
	waits, load, moves := r.result.GetWaits(), r.result.GetLoad(), r.result.GetMoves()
	data := &scenarioData{Digest: fmt.Sprintf("%016x", r.result.GetDigest()), Days: r.days,
		Loops: r.result.GetLoops(), USD: r.result.GetUsd(), BoundUSD: r.result.GetBoundUsd(),
		Growths:        r.result.GetGrowths(),
		Moves:          scenarioMoves{moves.GetBegun(), moves.GetDone(), moves.GetGivenUp()},
		PodWaitSeconds: scenarioWaits{waits.GetMean(), waits.GetP50(), waits.GetP95(), waits.GetMax()},
		Evictions:      r.result.GetEvictions(), NodesAdded: r.result.GetNodesAdded(),
		NodesRemoved: r.result.GetNodesRemoved(), LeftWaiting: r.result.GetLeftWaiting(),
		Violations: append([]string{}, r.result.GetViolations()...),
		Nodes:      scenarioNodes{load.GetNodesMean(), load.GetNodesMax()},
		LimitsOverAllocatableP99: map[string]float64{"cpu": load.GetLimitsOverAllocatableCpuP99(),
			"memory": load.GetLimitsOverAllocatableMemoryP99()}}
	if over := r.result.GetOverload(); over != nil {
		data.Overload = &scenarioOverload{over.GetCpuNodeHours(), over.GetMemoryNodeHours(), over.GetCpuVolume(),
			over.GetMemoryVolume()}
	}
	return data
}

func scenarioForms(runs []*scenarioRun) answer {
	data := runs[0].data()
	if len(runs) > 1 {
		data.Against = runs[1].data()
	}
	return answer{data: data, tables: []table{{fixed: scenarioGrid(runs), texts: []string{""}}}, lines: violations(runs),
		page: func(w io.Writer) error { return scenarioPage(w, runs) }}
}

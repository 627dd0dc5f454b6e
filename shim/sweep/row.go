package sweep

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"loadline.dev/shim/api/loadlinev1"
)

// Row is what became of one month. What it is about follows from its number.
type Row struct {
	Row          int     `json:"row"`
	Digest       string  `json:"digest"`
	USD          float64 `json:"usd"`
	BoundUSD     float64 `json:"boundUsd"`
	Pods         int64   `json:"pods"`
	WaitMean     float64 `json:"waitMean"`
	WaitP50      float64 `json:"waitP50"`
	WaitP95      float64 `json:"waitP95"`
	WaitMax      float64 `json:"waitMax"`
	LeftWaiting  int64   `json:"leftWaiting"`
	Evictions    int64   `json:"evictions"`
	CPUP99       float64 `json:"limitsOverAllocatableCpuP99"`
	MemoryP99    float64 `json:"limitsOverAllocatableMemoryP99"`
	NodesMean    float64 `json:"nodesMean"`
	NodesMax     int64   `json:"nodesMax"`
	NodesAdded   int64   `json:"nodesAdded"`
	NodesRemoved int64   `json:"nodesRemoved"`
	Violations   int64   `json:"violations"`
	// Hours of nodes with overload; 0 also where no workload states its use.
	CPUOverload    float64 `json:"cpuOverloadNodeHours,omitempty"`
	MemoryOverload float64 `json:"memoryOverloadNodeHours,omitempty"`
}

// Overload is the hours of nodes with overload of either resource, in which those with both count twice.
func (r *Row) Overload() float64 { return r.CPUOverload + r.MemoryOverload }

// NewRow returns the row of an answer.
func NewRow(row int, answer *loadlinev1.SimulateResponse) *Row {
	waits, load := answer.GetWaits(), answer.GetLoad()
	return &Row{Row: row, Digest: fmt.Sprintf("%016x", answer.GetDigest()), USD: answer.GetUsd(),
		BoundUSD: answer.GetBoundUsd(), Pods: waits.GetPods(), WaitMean: waits.GetMean(), WaitP50: waits.GetP50(),
		WaitP95: waits.GetP95(), WaitMax: waits.GetMax(), LeftWaiting: answer.GetLeftWaiting(),
		Evictions: answer.GetEvictions(), CPUP99: load.GetLimitsOverAllocatableCpuP99(),
		MemoryP99: load.GetLimitsOverAllocatableMemoryP99(), NodesMean: load.GetNodesMean(), NodesMax: load.GetNodesMax(),
		NodesAdded: answer.GetNodesAdded(), NodesRemoved: answer.GetNodesRemoved(),
		Violations: int64(len(answer.GetViolations())), CPUOverload: answer.GetOverload().GetCpuNodeHours(),
		MemoryOverload: answer.GetOverload().GetMemoryNodeHours()}
}

// column is one of a table of rows.
type column struct {
	name string
	// value is a string, an int64 or a float64; nil: none.
	value func(p *Plan, r *Row) any
	kind  columnKind
}

type columnKind int

const (
	textColumn columnKind = iota
	wholeColumn
	numberColumn
)

// columns are those of all tables of a plan: what a row is about, what is set, and what became of it.
func (p *Plan) columns() []column {
	whole := func(name string, of func(*Row) int64) column {
		return column{name, func(_ *Plan, r *Row) any { return of(r) }, wholeColumn}
	}
	number := func(name string, of func(*Row) float64) column {
		return column{name, func(_ *Plan, r *Row) any { return of(r) }, numberColumn}
	}
	all := []column{
		whole("row", func(r *Row) int64 { return int64(r.Row) }),
		{"input", func(p *Plan, r *Row) any { return p.Names[p.place(r.Row).input] }, textColumn},
		{"point", func(p *Plan, r *Row) any { return int64(p.place(r.Row).point) }, wholeColumn},
	}
	for _, path := range p.Paths() {
		all = append(all, p.settingColumn(path))
	}
	all = append(all,
		column{"seed", func(p *Plan, r *Row) any { return p.Spec.Seeds.First + int64(p.place(r.Row).seed) }, wholeColumn},
		column{"days", func(p *Plan, _ *Row) any { return p.Spec.Days }, wholeColumn},
		column{"digest", func(_ *Plan, r *Row) any { return r.Digest }, textColumn},
		number("usd", func(r *Row) float64 { return r.USD }),
		number("bound_usd", func(r *Row) float64 { return r.BoundUSD }),
		whole("pods", func(r *Row) int64 { return r.Pods }),
		number("wait_mean", func(r *Row) float64 { return r.WaitMean }),
		number("wait_p50", func(r *Row) float64 { return r.WaitP50 }),
		number("wait_p95", func(r *Row) float64 { return r.WaitP95 }),
		number("wait_max", func(r *Row) float64 { return r.WaitMax }),
		whole("left_waiting", func(r *Row) int64 { return r.LeftWaiting }),
		whole("evictions", func(r *Row) int64 { return r.Evictions }),
		number("limits_over_allocatable_cpu_p99", func(r *Row) float64 { return r.CPUP99 }),
		number("limits_over_allocatable_memory_p99", func(r *Row) float64 { return r.MemoryP99 }),
		number("nodes_mean", func(r *Row) float64 { return r.NodesMean }),
		whole("nodes_max", func(r *Row) int64 { return r.NodesMax }),
		whole("nodes_added", func(r *Row) int64 { return r.NodesAdded }),
		whole("nodes_removed", func(r *Row) int64 { return r.NodesRemoved }),
		whole("violations", func(r *Row) int64 { return r.Violations }))
	if p.StatesUse() {
		all = append(all, number("cpu_overload_node_hours", func(r *Row) float64 { return r.CPUOverload }),
			number("memory_overload_node_hours", func(r *Row) float64 { return r.MemoryOverload }))
	}
	return all
}

// settingColumn has the values of a path: as numbers, if all are.
func (p *Plan) settingColumn(path string) column {
	kind := numberColumn
	for _, point := range p.Points {
		if value := point.Get(path); value != "" {
			if _, err := strconv.ParseFloat(value, 64); err != nil {
				kind = textColumn
			}
		}
	}
	return column{path, func(p *Plan, r *Row) any {
		value := p.Points[p.place(r.Row).point].Get(path)
		if value == "" {
			return nil
		}
		if kind == numberColumn {
			number, _ := strconv.ParseFloat(value, 64)
			return number
		}
		return value
	}, kind}
}

// Sorted returns rows in the order of their numbers.
func Sorted(rows map[int]*Row) []*Row {
	return slices.SortedFunc(maps.Values(rows), func(x, y *Row) int { return x.Row - y.Row })
}

// WriteCSV writes rows, which are in order. The same rows give the same bytes.
func (p *Plan) WriteCSV(w io.Writer, rows []*Row) error {
	columns := p.columns()
	out := csv.NewWriter(w)
	record := make([]string, len(columns))
	for i, c := range columns {
		record[i] = c.name
	}
	_ = out.Write(record) // an error stays, and Error returns it
	for _, row := range rows {
		for i, c := range columns {
			switch value := c.value(p, row).(type) {
			case nil:
				record[i] = ""
			case float64:
				record[i] = strconv.FormatFloat(value, 'g', -1, 64)
			default:
				record[i] = fmt.Sprint(value)
			}
		}
		_ = out.Write(record)
	}
	out.Flush()
	return out.Error()
}

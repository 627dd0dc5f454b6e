package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/report"
)

// fleetBill is the bill of several clusters.
type fleetBill struct {
	clusters []*clusterBill
	failed   []error
}

// clusterBill is the bill of one of them.
type clusterBill struct {
	name string
	*billPlan
}

// fleetAnswer is the answer as data. Amounts are US dollars per hour.
type fleetAnswer struct {
	Now       float64        `json:"now"`
	Bound     *float64       `json:"bound"` // null: that of some cluster is not named
	Reachable float64        `json:"reachable"`
	Clusters  []fleetCluster `json:"clusters"`
	Moves     []fleetMove    `json:"moves"`
	Failed    []string       `json:"failed,omitempty"`
}

type fleetCluster struct {
	Name       string   `json:"name"`
	Nodes      int64    `json:"nodes"`
	Now        float64  `json:"now"`
	Bound      *float64 `json:"bound"`
	Reachable  float64  `json:"reachable"`
	MovesTotal int64    `json:"movesTotal"`
	// Brake is what keeps moves from beginning now: none is proposed.
	Brake string   `json:"brake,omitempty"`
	Notes []string `json:"notes"`
}

type fleetMove struct {
	Cluster string `json:"cluster"`
	consolidateMove
}

// bestMoves is the number of moves of all clusters that are shown.
const bestMoves = 10

// askAll has each cluster planned. One that cannot be read is reported, and the others continue.
func (f *billFlags) askAll(ctx context.Context, dumps []string, stdin io.Reader) *fleetBill {
	fleet := &fleetBill{}
	var sources []sourceFlags
	for _, file := range dumps {
		sources = append(sources, sourceFlags{clusterFlags: f.clusterFlags, files: []string{file}})
	}
	for _, named := range f.contexts {
		source := sourceFlags{clusterFlags: f.clusterFlags}
		source.other = named
		sources = append(sources, source)
	}
	for i := range sources {
		plan, err := f.ask(ctx, &sources[i], f.engine, stdin)
		if err != nil {
			fleet.failed = append(fleet.failed, fmt.Errorf("%s: %w", sources[i].name(), err))
			continue
		}
		fleet.clusters = append(fleet.clusters, &clusterBill{sources[i].name(), plan})
	}
	return fleet
}

// best merges the moves of all clusters: those of a cluster keep their order, as each is complete once those before it
// are done, and of the first ones that is next which saves most per disturbed pod.
func (b *fleetBill) best(count int) []fleetMove {
	moves := []fleetMove{}
	next := make([]int, len(b.clusters))
	for len(moves) < count {
		best, most := -1, 0.0
		for i, c := range b.clusters {
			if next[i] == len(c.GetMoves()) {
				continue
			}
			saves := perPod(c.GetMoves()[next[i]])
			// Among equal ones the next is that of the cluster of which fewer were taken.
			if best < 0 || saves > most || saves == most && next[i] < next[best] {
				best, most = i, saves
			}
		}
		if best < 0 {
			break
		}
		c := b.clusters[best]
		moves = append(moves, fleetMove{c.name, newConsolidateMove(c.GetMoves()[next[best]])})
		next[best]++
	}
	return moves
}

// perPod is what a move saves per disturbed pod; one that disturbs none counts as if it disturbed half a pod.
func perPod(m *loadlinev1.ConsolidationMove) float64 {
	return m.GetSaves() / max(0.5, float64(m.GetDisrupted()))
}

func (b *fleetBill) data() *fleetAnswer {
	out := &fleetAnswer{Bound: new(float64), Clusters: []fleetCluster{}, Moves: b.best(bestMoves)}
	for _, c := range b.clusters {
		bill := c.GetBill()
		line := fleetCluster{Name: c.name, Now: bill.GetNow(), Bound: bill.Bound, Reachable: bill.GetReachable(),
			MovesTotal: c.GetMovesTotal(), Brake: c.brake,
			Notes: append(append([]string{}, c.notes...), leftOutLines(&c.leftOut)...)}
		for _, group := range c.GetGroups() {
			line.Nodes += group.GetNodes()
		}
		out.Now, out.Reachable = out.Now+line.Now, out.Reachable+line.Reachable
		out.Bound = sumOf(out.Bound, line.Bound)
		out.Clusters = append(out.Clusters, line)
	}
	for _, err := range b.failed {
		out.Failed = append(out.Failed, err.Error())
	}
	return out
}

func (a *fleetAnswer) verdict() string {
	least := noBound
	if a.Bound != nil {
		least = "no arrangement of their pods costs less than " + usd(*a.Bound)
	}
	reach := "no move pays"
	if len(a.Moves) > 0 {
		reach = fmt.Sprintf("moves reach %s and save %.0f USD a month", usd(a.Reachable), (a.Now-a.Reachable)*730)
	}
	for _, c := range a.Clusters {
		if c.Brake != "" {
			reach += fmt.Sprintf("; no move of %s begins now: %s", c.Name, c.Brake)
		}
	}
	return fmt.Sprintf("%s USD/h is paid for %s; %s; %s", usd(a.Now), plural(len(a.Clusters), "cluster"), least, reach)
}

// sumOf adds what is known; nil: one of both is not.
func sumOf(a, b *float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	sum := *a + *b
	return &sum
}

// boundText is a bound in a table.
func boundText(bound *float64) string {
	if bound == nil {
		return "?"
	}
	return usd(*bound)
}

func (b *fleetBill) forms() answer {
	data := b.data()
	return answer{data: data, verdict: data.verdict() + ".", lines: data.notes(), page: data.page,
		tables: fleetTables}
}

// fleetTables show the bill of each cluster and the best moves of all.
var fleetTables = []table{
	{rows: "clusters", foot: allClusters, columns: []column{{header: "CLUSTER", path: "name"},
		{header: "NODES", path: "nodes", right: true}, {header: "USD/H", text: usdOf("now"), right: true},
		{header: "BOUND", text: usdOf("bound"), right: true},
		{header: "AFTER MOVES", text: usdOf("reachable"), right: true},
		{header: "MOVES", path: "movesTotal", right: true}}},
	{rows: "moves", apart: true, columns: append([]column{{header: "CLUSTER", path: "cluster"}}, moveColumns[1:]...)},
}

// allClusters is the sum over the clusters.
func allClusters(d document) []row {
	nodes, moves := 0.0, 0.0
	for _, c := range d.list(table{rows: "clusters"}) {
		nodes, moves = nodes+c.num("nodes"), moves+c.num("movesTotal")
	}
	return []row{{"name": "all", "nodes": nodes, "now": d["now"], "bound": d["bound"], "reachable": d["reachable"],
		"movesTotal": moves}}
}

func (a *fleetAnswer) moves() report.Grid {
	grid := report.Grid{Header: []string{"CLUSTER", "GOES", "COMES", "USD/H", "PODS"}}
	for _, m := range a.Moves {
		goes, comes := moveTexts(m.consolidateMove)
		grid.Rows = append(grid.Rows, []string{m.Cluster, goes, comes, usd(m.Saves), fmt.Sprint(m.Disrupted)})
	}
	return grid
}

// notes tell what was assumed, once where it is the same for several clusters.
func (a *fleetAnswer) notes() (lines []string) {
	told := map[string]bool{}
	for _, c := range a.Clusters {
		for _, note := range c.Notes {
			if !told[note] {
				lines = append(lines, c.Name+": "+note)
			}
			told[note] = true
		}
	}
	return lines
}

func (a *fleetAnswer) page(w io.Writer) error {
	page := report.Bill{Title: "Bill of " + plural(len(a.Clusters), "cluster"), Verdict: a.verdict() + ".",
		PartsTitle: "By cluster", Now: a.Now, Bound: a.Bound, Reachable: a.Reachable}
	for _, c := range a.Clusters {
		page.Groups = append(page.Groups, report.BillPart{Name: fmt.Sprintf("%s (%s; bound %s, after moves %s)", c.Name,
			plural(int(c.Nodes), "node"), boundText(c.Bound), usd(c.Reachable)), USD: c.Now})
	}
	page.Moves = a.moves()
	page.Moves.Header = []string{"cluster", "goes", "comes", "USD/h saved", "pods"}
	page.Lines = a.Failed
	return page.Write(w)
}

func (b *fleetBill) err() error { return errors.Join(b.failed...) }

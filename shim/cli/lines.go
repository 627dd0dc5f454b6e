package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/arrivals"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/policy"
	"loadline.dev/shim/report"
	"loadline.dev/shim/report/texttable"
	"loadline.dev/shim/scaleup"
)

// linesFlags say which load lines are to be compared.
type linesFlags struct {
	ratios   []string
	resource string
	taints   scaleup.StartupTaints
}

func (f *linesFlags) addTo(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.ratios, "lines", nil,
		"load lines to compare, such as 1,1.25,1.5,2,3: what each would cost")
	f.taints.AddFlags(flags)
	flags.StringVar(&f.resource, "line-resource", "memory", "with --lines: the resource that they are for")
}

// podsShown is how many pods a table names per line; data names all.
const podsShown = 8

// lines returns a load line for each ratio, under which limits are counted by a policy.
func (f *linesFlags) lines(counting policy.Policy) (out []*loadlinev1.LoadLine, err error) {
	for _, ratio := range f.ratios {
		line, err := policy.ReadLine([]string{f.resource + "=" + ratio}, "", nil)
		if err == nil {
			err = line.CheckCounting(counting)
		}
		if err != nil {
			return nil, usageError{err}
		}
		out = append(out, line.Proto(counting.Proto()))
	}
	return out, nil
}

// compare says what the lines would mean for a cluster.
func (f *linesFlags) compare(ctx context.Context, source *sourceFlags, engine engineFlags, counting policy.Policy,
	stdin io.Reader) (*lineTable, error) {
	lines, err := f.lines(counting)
	if err != nil {
		return nil, err
	}
	if err := f.taints.Check(); err != nil {
		return nil, usageError{err}
	}
	arriving, err := source.arrivingPods(ctx, stdin)
	if err != nil {
		return nil, err
	}
	arriving.StartupTaints = f.taints.Proto()
	conn, err := engine.open()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	t := &lineTable{source: source.name(), resource: f.resource, nodes: len(arriving.Nodes),
		pods: len(arriving.Arrivals), waitingShown: podsShown}
	t.lines, err = underLines(ctx, conn, viewName(engine.address), arriving, lines, f.resource)
	return t, err
}

// lineData is what one load line would mean, as data.
type lineData struct {
	Resource string `json:"resource"`
	// Line is limits over allocatable; empty: without a line.
	Line string `json:"line"`
	// NodesAbove are above it now.
	NodesAbove int `json:"nodesAbove"`
	// Waiting are the pods for which the nodes that are there have no room, if all of them came anew.
	Waiting []string `json:"waiting"`
	// NodesMore, like those that are there, take them, but for those that are Unplaced.
	NodesMore int      `json:"nodesMore"`
	Unplaced  []string `json:"unplaced"`
	CutShort  bool     `json:"cutShort,omitempty"`
}

// lineTable compares lines.
type lineTable struct {
	source       string
	resource     string
	nodes, pods  int
	lines        []lineData
	waitingShown int
}

// underLines asks what each line would mean for a cluster whose pods all come anew.
func underLines(ctx context.Context, conn engine.Conn, viewName string, c *arrivals.Cluster,
	lines []*loadlinev1.LoadLine, resource string) ([]lineData, error) {
	var out []lineData
	for i, line := range append([]*loadlinev1.LoadLine{nil}, lines...) {
		outcome, err := arrivals.UnderLine(ctx, conn, fmt.Sprintf("%s-line-%d", viewName, i), c,
			&loadlinev1.FitOptions{LoadLine: line})
		if err != nil {
			return nil, engineError(err)
		}
		data := lineData{Resource: resource, Waiting: outcome.Waiting, NodesMore: outcome.NodesMore,
			Unplaced: outcome.Unplaced, CutShort: outcome.CutShort}
		if line != nil {
			if data.NodesAbove, err = arrivals.NodesAbove(ctx, conn, fmt.Sprintf("%s-now-%d", viewName, i), c,
				line); err != nil {
				return nil, engineError(err)
			}
			data.Line = line.GetResources()[0].GetMaxLimitsOverAllocatable()
		}
		out = append(out, data)
	}
	return out, nil
}

func (t *lineTable) write(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%s: what a load line for %s would mean, if all %s came anew on %s.\n\n",
		texttable.Escape(t.source), t.resource, plural(t.pods, "pod"), plural(t.nodes, "node")); err != nil {
		return err
	}
	table := texttable.New(texttable.Column{Header: "LINE"}, texttable.Column{Header: "NODES ABOVE NOW"},
		texttable.Column{Header: "PODS WAIT"}, texttable.Column{Header: "NODES MORE"},
		texttable.Column{Header: "WAIT FOR GOOD"})
	for _, line := range t.lines {
		name, above := line.Line, fmt.Sprint(line.NodesAbove)
		if name == "" {
			name, above = "none", "-"
		}
		table.Row(name, above, fmt.Sprint(len(line.Waiting)), fmt.Sprint(line.NodesMore),
			fmt.Sprint(len(line.Unplaced)))
	}
	if err := table.Write(w); err != nil {
		return err
	}
	for _, line := range t.lines {
		pods, what := line.Unplaced, "no node like those that are there takes"
		if len(pods) == 0 {
			pods, what = line.Waiting, "of those that wait for more nodes"
		}
		if line.Line == "" || len(pods) == 0 {
			continue
		}
		shown := pods[:min(len(pods), t.waitingShown)]
		more := ""
		if len(pods) > len(shown) {
			more = fmt.Sprintf(" and %d more", len(pods)-len(shown))
		}
		if _, err := fmt.Fprintf(w, "\n%s, %s: %s%s\n", line.Line, what, texttable.Escape(strings.Join(shown, ", ")),
			more); err != nil {
			return err
		}
	}
	return nil
}

func (t *lineTable) page(w io.Writer) error {
	grid := report.Grid{Header: []string{"line", "nodes above now", "pods wait", "nodes more", "wait for good"}}
	for _, line := range t.lines {
		name := line.Line
		if name == "" {
			name = "none"
		}
		grid.Rows = append(grid.Rows, []string{name, fmt.Sprint(line.NodesAbove), fmt.Sprint(len(line.Waiting)),
			fmt.Sprint(line.NodesMore), fmt.Sprint(len(line.Unplaced))})
	}
	return report.StepsPage(w, report.Steps{Title: "Load lines for " + t.resource + ": " + t.source, Grid: grid})
}

func (t *lineTable) forms() answer {
	return answer{data: struct {
		Lines []lineData `json:"lines"`
	}{t.lines}, table: t.write, page: t.page}
}

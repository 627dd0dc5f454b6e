package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/arrivals"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/policy"
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
	config.AddFlagsTo(flags, &f.taints)
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
			return nil, usageError{fmt.Errorf("--lines %s: %w", ratio, err)}
		}
		out = append(out, line.Proto(counting.Proto()))
	}
	return out, nil
}

// startupTaints returns the taints of nodes that are starting, which play no part when pods arrive.
func (f *linesFlags) startupTaints() (*loadlinev1.StartupTaints, error) {
	if err := f.taints.Check(); err != nil {
		return nil, usageError{config.AsFlag(&f.taints, err)}
	}
	return f.taints.Proto(scaleup.DefaultMaxNodeStartupTime), nil
}

// compare says what the lines would mean for a cluster.
func (f *linesFlags) compare(ctx context.Context, source *sourceFlags, engine engineFlags, counting policy.Policy,
	stdin io.Reader) (*lineTable, error) {
	lines, err := f.lines(counting)
	if err != nil {
		return nil, err
	}
	arriving, err := source.arrivingPods(ctx, stdin, selectorKinds)
	if err != nil {
		return nil, err
	}
	if arriving.StartupTaints, err = f.startupTaints(); err != nil {
		return nil, err
	}
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

func (t *lineTable) forms() answer {
	out := answer{title: "Load lines for " + t.resource + ": " + t.source, data: struct {
		Lines []lineData `json:"lines"`
	}{t.lines}, verdict: fmt.Sprintf("%s: what a load line for %s would mean, if all %s came anew on %s.", t.source,
		t.resource, plural(t.pods, "pod"), plural(t.nodes, "node")), tables: lineTables}
	for _, line := range t.lines {
		pods, what := line.Unplaced, "no node like those that are there takes"
		if len(pods) == 0 {
			pods, what = line.Waiting, "of those that wait for more nodes"
		}
		if line.Line == "" || len(pods) == 0 {
			continue
		}
		shown := pods[:min(len(pods), t.waitingShown)]
		text := fmt.Sprintf("%s, %s: %s", line.Line, what, strings.Join(shown, ", "))
		if len(pods) > len(shown) {
			text += fmt.Sprintf(" and %d more", len(pods)-len(shown))
		}
		out.lines = append(out.lines, text)
	}
	return out
}

// ifLine shows a number of a line; - where there is none.
func ifLine(key, without string) func(r row) string {
	return func(r row) string {
		if r.str("line") == "" {
			return without
		}
		return cellOf(r[key])
	}
}

func countOf(header, key string) column {
	return column{header: header, text: func(r row) string {
		pods, _ := r[key].([]any)
		return fmt.Sprint(len(pods))
	}}
}

var lineTables = []table{{rows: "lines", columns: []column{{header: "LINE", text: ifLine("line", "none")},
	{header: "NODES ABOVE NOW", text: ifLine("nodesAbove", "-")}, countOf("PODS WAIT", "waiting"),
	{header: "NODES MORE", path: "nodesMore"}, countOf("WAIT FOR GOOD", "unplaced")}}}

package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/leftout"
	"loadline.dev/shim/policy"
	"loadline.dev/shim/report"
)

// useAnswer is what the pods of each node are expected to use, as data. Amounts: cpu in millicores, memory in bytes.
type useAnswer struct {
	// Nodes has a row for each node and resource, those of the highest expected peak over allocatable first.
	Nodes []useNode `json:"nodes"`
	// Selector chose the nodes; all else counts all nodes of the cluster. Empty: all are there.
	Selector string `json:"selector,omitempty"`
	// Lines are lines of limits around the one that is safe.
	Lines []useLine `json:"lines"`
	// Safe has the line of limits of each resource under which no node exceeds its allocatable.
	Safe []safeLine `json:"safe"`
}

type useNode struct {
	Node        string `json:"node"`
	Resource    string `json:"resource"`
	Allocatable int64  `json:"allocatable"`
	Limits      int64  `json:"limits"`
	Requests    int64  `json:"requests"`
	// ExpectedPeak is the most of any hour of the day, and Hour the first such hour, UTC.
	ExpectedPeak int64 `json:"expectedPeak"`
	Hour         int32 `json:"hour"`
	// ExpectedHours has the 24 hours of the busiest 24 nodes of the resource; it is left out for the others.
	ExpectedHours []int64 `json:"expectedHours,omitempty"`
	// Ratios over allocatable; null where the resource is not offered.
	LimitsRatio   *float64 `json:"limitsRatio"`
	RequestsRatio *float64 `json:"requestsRatio"`
	ExpectedRatio *float64 `json:"expectedRatio"`
	// UnknownPods have no profile, and count by their limits.
	UnknownPods int32 `json:"unknownPods"`
}

type useLine struct {
	Resource string `json:"resource"`
	// Line is limits over allocatable.
	Line string `json:"line"`
	Safe bool   `json:"safe"`
	// NodesOver would be over their allocatable in some hour, if each was filled up to the line with pods like its own.
	NodesOver int32 `json:"nodesOver"`
	// Nodes, of the mean size of those there, hold all pods at least.
	Nodes int64 `json:"nodes"`
}

type safeLine struct {
	Resource string `json:"resource"`
	Line     string `json:"line"`
	// Node allows no more.
	Node string `json:"node"`
}

// usedResources are those of which profiles tell.
var usedResources = []string{"cpu", "memory"}

// checkUse refuses what other forms of `top` take and this one does not.
func (f *topFlags) checkUse() error {
	if len(f.lines.ratios) > 0 {
		return usagef("--lines: not with --usage, which shows lines of its own")
	}
	for _, resource := range f.resources {
		if !slices.Contains(usedResources, resource) {
			return usagef("--resources %s: profiles tell of cpu and memory", resource)
		}
	}
	if !slices.Contains(append([]string{sortByLoad, sortByName}, usedResources...), f.sortBy) {
		return usagef("--sort-by %s: with --usage load, name, cpu or memory", f.sortBy)
	}
	return nil
}

// expectedUse asks what the pods of each node are expected to use, and which lines are safe.
func (f *topFlags) expectedUse(ctx context.Context, stdin io.Reader) (answer, error) {
	if err := f.checkUse(); err != nil {
		return answer{}, err
	}
	profiles, err := f.use.profiles(ctx, &f.sourceFlags)
	if err != nil {
		return answer{}, err
	}
	how, err := f.filters.fit(ctx)
	if err != nil {
		return answer{}, err
	}
	c, err := load(ctx, &f.sourceFlags, f.engine, stdin,
		loadOptions{fit: how, nodes: true, whole: true, profiles: profiles})
	if err != nil {
		return answer{}, err
	}
	defer c.close()
	question := &loadlinev1.CheckLoadLineRequest{Line: f.lineOfUse(how), WithNodes: true, WithUse: true}
	var said *loadlinev1.CheckLoadLineResponse
	err = c.view.Ask(ctx, func(at *loadlinev1.Changes) (err error) {
		question.Changes = at
		said, err = loadlinev1.NewSchedulerExtenderClient(c.conn).CheckLoadLine(ctx, question)
		return err
	})
	if err != nil {
		return answer{}, engineError(err)
	}
	data := useDataOf(said)
	data.sortBy(f.sortBy)
	lines := append(data.lines(countsOf(c)), f.nodes.notes()...) // before rows go: they are about all nodes
	data.Nodes, data.Selector = listedRows(&f.nodes, data.Nodes, func(n useNode) string { return n.Node }), f.nodes.text
	var leftOut leftout.List
	c.leaveOut(&leftOut)
	out := answer{title: "top", data: data, tables: useTables(f.most), lines: lines, leftOut: &leftOut}
	out.page = func(w io.Writer) error { return usePage(w, f.name(), out, data.Nodes) }
	return out, nil
}

// lineOfUse returns a line of expected use, under which pods count by the rules of the scheduler's configuration where
// it has a line.
func (f *topFlags) lineOfUse(how *loadlinev1.FitOptions) *loadlinev1.LoadLine {
	counting := policy.Policy{}
	if by := how.GetLoadLine().GetCounting(); by != nil {
		counting = policy.FromProto(by)
	}
	counting.Default()
	counting.ExpectedUse = policy.FromProto(&loadlinev1.ScorePolicy{
		ExpectedUse: how.GetLoadLine().GetExpectedUse()}).ExpectedUse
	f.use.onto(&counting)
	line := &loadlinev1.LoadLine{Counting: counting.Proto(), ExpectedUse: counting.ExpectedUse.Proto()}
	for _, resource := range usedResources {
		if len(f.resources) > 0 && !slices.Contains(f.resources, resource) {
			continue
		}
		line.Resources = append(line.Resources,
			&loadlinev1.LineResource{Resource: resource, MaxExpectedOverAllocatable: "1"})
	}
	return line
}

func useDataOf(said *loadlinev1.CheckLoadLineResponse) useAnswer {
	out := useAnswer{Nodes: []useNode{}, Lines: []useLine{}, Safe: []safeLine{}}
	for _, node := range said.GetNodes() {
		for _, use := range node.GetUse() {
			row := useNode{Node: node.GetNode(), Resource: use.GetResource(), Allocatable: use.GetAllocatable(),
				Limits: use.GetLimits(), Requests: use.GetRequests(), ExpectedPeak: use.GetExpectedPeak(),
				Hour: use.GetHour(), ExpectedHours: use.GetExpectedHours(), UnknownPods: use.GetUnknownPods()}
			if offered := float64(use.GetAllocatable()); offered > 0 {
				row.LimitsRatio = new(float64(row.Limits) / offered)
				row.RequestsRatio = new(float64(row.Requests) / offered)
				row.ExpectedRatio = new(float64(row.ExpectedPeak) / offered)
			}
			out.Nodes = append(out.Nodes, row)
		}
	}
	for _, safe := range said.GetSafeLines() {
		line := safe.GetMaxLimitsOverAllocatable()
		out.Safe = append(out.Safe, safeLine{safe.GetResource(), line, safe.GetNode()})
		for _, risk := range safe.GetLines() {
			out.Lines = append(out.Lines, useLine{Resource: safe.GetResource(), Line: risk.GetMaxLimitsOverAllocatable(),
				Safe: risk.GetMaxLimitsOverAllocatable() == line, NodesOver: risk.GetNodesOver(), Nodes: risk.GetNodes()})
		}
	}
	return out
}

// sortBy puts nodes in the order of names, or those of the highest expected peak over allocatable first: of any
// resource, or of one, whose rows come before those of others then.
func (a *useAnswer) sortBy(order string) {
	slices.SortStableFunc(a.Nodes, func(x, y useNode) int {
		if order == sortByName {
			return cmp.Compare(x.Node, y.Node)
		}
		behind := func(n useNode) int {
			if order != sortByLoad && n.Resource != order {
				return 1
			}
			return 0
		}
		return cmp.Or(behind(x)-behind(y), cmp.Compare(valueOf(y.ExpectedRatio), valueOf(x.ExpectedRatio)))
	})
}

// valueOf returns a ratio; -1: there is none.
func valueOf(ratio *float64) float64 {
	if ratio == nil {
		return -1
	}
	return *ratio
}

func useTables(most int) []table {
	share := func(amount, ratio string) func(row) string {
		return func(r row) string {
			if r[ratio] == nil {
				return "none offered"
			}
			return fmt.Sprintf("%s = %s", withUnit(r.str("resource"), r.whole(amount)),
				report.FormatRatio(r.num(ratio)))
		}
	}
	return []table{
		{rows: "nodes", kind: "node", name: "node", most: most, columns: []column{
			{header: "NODE", path: "node"},
			{header: "RESOURCE", path: "resource"},
			{header: "ALLOCATABLE", right: true, text: func(r row) string {
				return evenAmount(r.str("resource"), r.whole("allocatable"))
			}},
			{header: "LIMITS", right: true, text: share("limits", "limitsRatio")},
			{header: "REQUESTS", right: true, text: share("requests", "requestsRatio")},
			{header: "EXPECTED PEAK", right: true, text: share("expectedPeak", "expectedRatio")},
			{header: "AT", text: func(r row) string { return fmt.Sprintf("%02d:00", int(r.num("hour"))) }},
			{header: "WITHOUT PROFILE", path: "unknownPods", right: true},
		}},
		{rows: "lines", columns: []column{
			{header: "RESOURCE", path: "resource"},
			{header: "LINE", path: "line", right: true},
			{header: "SAFE", text: func(r row) string {
				if safe, _ := r["safe"].(bool); safe {
					return "yes"
				}
				return ""
			}},
			{header: "NODES OVER", path: "nodesOver", right: true},
			{header: "NODES AT LEAST", path: "nodes", right: true},
		}},
	}
}

func (a *useAnswer) lines(counts string) (lines []string) {
	for _, safe := range a.Safe {
		if safe.Line == "" {
			lines = append(lines, fmt.Sprintf("%s: no line can be told, for no pod uses any.", safe.Resource))
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: with limits up to %s times allocatable no node is expected to need more than "+
			"it has; %s allows no more.", safe.Resource, safe.Line, safe.Node))
	}
	if len(a.Nodes) > 0 && !slices.ContainsFunc(a.Nodes, func(n useNode) bool { return n.ExpectedPeak < n.Limits }) {
		lines = append(lines,
			"No pod on these nodes counts by a profile that is below its limit: all of this is by limits.")
	}
	return append(lines, "CPU is the 90th percentile of each hour, unless the collector was given another one, and "+
		"memory the maximum. A pod without a profile counts by its limit. Hours are UTC.", counts)
}

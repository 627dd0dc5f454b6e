package cli

import (
	"fmt"
	"io"
	"strings"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/leftout"
	"loadline.dev/shim/report"
	"loadline.dev/shim/sizing"
)

// sizes is the answer of `size`.
type sizes struct {
	asked    []*loadlinev1.SizedGroup
	pods     *sizing.Gatherer // by their positions in the question
	response *loadlinev1.MeasureUtilizationResponse
	left     []string // groups that do not say how they are sized
	warnings []string
	leftOut  leftout.List
}

// sizeAnswer is the answer of `size` as data.
type sizeAnswer struct {
	Groups []sizeGroup  `json:"groups"`
	State  sizing.State `json:"state"`
}

// sizeGroup is one node group. Percentages are of capacity; null: there is no percentage, because there are pods and no
// node (see fromZero), or because nodes offer no cpu or no memory.
type sizeGroup struct {
	Name          string   `json:"name"`
	CPUPercent    *float64 `json:"cpuPercent"`
	MemoryPercent *float64 `json:"memoryPercent"`
	FromZero      bool     `json:"fromZero"`
	// Action is nothing, scale-up, remove-slowly or remove-fast.
	Action string `json:"action"`
	Delta  int64  `json:"delta"`
	Reason string `json:"reason"`
	// After the delta; null: what a new node offers is not known.
	CPUPercentAfter    *float64 `json:"cpuPercentAfter"`
	MemoryPercentAfter *float64 `json:"memoryPercentAfter"`

	// WantedDelta is the delta without a maximum and without nodes that are on their way; AskCloud how many nodes to
	// buy.
	WantedDelta int64        `json:"wantedDelta"`
	AskCloud    int64        `json:"askCloud"`
	Requests    sizeAmounts  `json:"requests"`
	Capacity    sizeAmounts  `json:"capacity"`
	Nodes       sizeNodes    `json:"nodes"`
	Pods        int64        `json:"pods"`
	PendingPods int64        `json:"pendingPods"`
	Thresholds  sizeBounds   `json:"thresholds"`
	Change      sizeToChange `json:"change"`
	Warnings    []string     `json:"warnings"`
}

type sizeAmounts struct {
	CPUMilli    int64 `json:"cpuMilli"`
	MemoryBytes int64 `json:"memoryBytes"`
}

type sizeNodes struct {
	Untainted    int64 `json:"untainted"`
	Tainted      int64 `json:"tainted"`
	ForceTainted int64 `json:"forceTainted"`
	Cordoned     int64 `json:"cordoned"`
}

type sizeBounds struct {
	TaintLowerPercent int32 `json:"taintLowerPercent"`
	TaintUpperPercent int32 `json:"taintUpperPercent"`
	ScaleUpPercent    int32 `json:"scaleUpPercent"`
}

// sizeToChange names nodes.
type sizeToChange struct {
	TaintUnhealthy []string `json:"taintUnhealthy"`
	Untaint        []string `json:"untaint"`
	Taint          []string `json:"taint"`
	Remove         []string `json:"remove"`
}

func nodeNames(nodes []*loadlinev1.SizedNode) []string {
	out := make([]string, 0, len(nodes))
	for _, node := range nodes {
		out = append(out, node.GetNode())
	}
	return out
}

// percentages returns those of a utilization, nil where it has none.
func percentages(u *loadlinev1.Utilization) (cpu, memory *float64) {
	if u.GetKind() != loadlinev1.Utilization_PERCENT {
		return nil, nil
	}
	return finite(u.GetCpuPercent()), finite(u.GetMemoryPercent())
}

func (s *sizes) group(i int) sizeGroup {
	g, options := s.response.GetGroups()[i], s.asked[i].GetOptions()
	out := sizeGroup{
		Name: g.GetNodeGroup(), FromZero: g.GetUtilization().GetKind() == loadlinev1.Utilization_FROM_ZERO,
		Action: sizing.Action(g), Delta: g.GetDelta(), Reason: g.GetReasonText(), WantedDelta: g.GetWantedDelta(),
		AskCloud: g.GetAskCloud(), Requests: sizeAmounts{g.GetRequestedMilliCpu(), g.GetRequestedMemoryBytes()},
		Capacity: sizeAmounts{g.GetCapacityMilliCpu(), g.GetCapacityMemoryBytes()},
		Nodes:    sizeNodes{g.GetUntaintedNodes(), g.GetTaintedNodes(), g.GetForceTaintedNodes(), g.GetCordonedNodes()},
		Pods:     g.GetPods(), PendingPods: g.GetPendingPods(),
		Thresholds: sizeBounds{options.GetTaintLowerPercent(), options.GetTaintUpperPercent(),
			options.GetScaleUpPercent()},
		Change: sizeToChange{nodeNames(g.GetTaintUnhealthy()), nodeNames(g.GetUntaint()), nodeNames(g.GetTaint()),
			nodeNames(g.GetRemove())},
		Warnings: append([]string{}, sizing.Warnings(g, s.pods)...),
	}
	out.CPUPercent, out.MemoryPercent = percentages(g.GetUtilization())
	out.CPUPercentAfter, out.MemoryPercentAfter = percentages(g.GetUtilizationAfter())
	return out
}

// only returns the answer about one group, nil where there is none.
func (s *sizes) only(group string) *sizes {
	if s == nil {
		return nil
	}
	for i, g := range s.response.GetGroups() {
		if g.GetNodeGroup() == group {
			return &sizes{asked: s.asked[i : i+1], pods: s.pods,
				response: &loadlinev1.MeasureUtilizationResponse{Groups: []*loadlinev1.GroupSize{g}}}
		}
	}
	return nil
}

func (s *sizes) data() sizeAnswer {
	out := sizeAnswer{Groups: []sizeGroup{}, State: sizing.NewState(s.response.GetState())}
	for i := range s.asked {
		out.Groups = append(out.Groups, s.group(i))
	}
	return out
}

// verdict is what happens to a group, in one line.
func (g *sizeGroup) verdict() string {
	text := g.Name + ": " + g.Reason
	if g.Delta == 0 {
		return text + "; nothing to do"
	}
	return fmt.Sprintf("%s; %s by %s", text, map[bool]string{true: "grow", false: "shrink"}[g.Delta > 0],
		plural(int(max(g.Delta, -g.Delta)), "node"))
}

// verdict is the outcome in one line.
func (s *sizes) verdict() string {
	var changing []string
	for _, g := range s.data().Groups {
		if g.Delta != 0 {
			changing = append(changing, fmt.Sprintf("%s %+d", g.Name, g.Delta))
		}
	}
	if len(changing) == 0 {
		return "no node group is to grow or shrink"
	}
	return strings.Join(changing, ", ")
}

// lines are what is to be done and what is to be known beside the numbers, each a sentence.
func (g *sizeGroup) lines() []string {
	var out []string
	for _, list := range []struct {
		verb  string
		nodes []string
	}{{"taint, not ready", g.Change.TaintUnhealthy}, {"untaint", g.Change.Untaint}, {"taint", g.Change.Taint},
		{"delete", g.Change.Remove}} {
		if len(list.nodes) > 0 {
			out = append(out, fmt.Sprintf("%s: %s: %s", g.Name, list.verb, someOf(list.nodes)))
		}
	}
	if g.AskCloud > 0 {
		out = append(out, fmt.Sprintf("%s: ask the cloud for %s", g.Name, plural(int(g.AskCloud), "node")))
	}
	for _, warning := range g.Warnings {
		out = append(out, fmt.Sprintf("%s: note: %s", g.Name, warning))
	}
	return out
}

// someOf lists names, but not hundreds of them.
func someOf(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func (s *sizes) lines() []string {
	var out []string
	for _, g := range s.data().Groups {
		out = append(out, g.lines()...)
	}
	if len(s.left) > 0 {
		out = append(out, "without spec.size, left alone: "+someOf(s.left))
	}
	return out
}

// sizeTable shows groups that are sized.
func sizeTable(rows string) table {
	share := func(header, key string) column {
		return column{header: header, right: true, text: func(r row) string {
			if r[key] == nil {
				return ""
			}
			return report.FormatPercent(r.num(key))
		}}
	}
	return table{rows: rows, kind: "nodegroup", name: "name", columns: []column{{header: "NODE GROUP", path: "name"},
		{header: "NODES", path: "nodes.untainted", right: true}, {header: "PODS", path: "pods", right: true},
		share("CPU", "cpuPercent"), share("MEMORY", "memoryPercent"),
		{header: "DELTA", right: true, text: func(r row) string {
			if r.num("delta") == 0 {
				return "0"
			}
			return fmt.Sprintf("%+.0f", r.num("delta"))
		}}, share("CPU AFTER", "cpuPercentAfter"), share("MEMORY AFTER", "memoryPercentAfter"),
		{header: "ACTION", path: "action"}, {header: "REASON", path: "reason"}}}
}

func (s *sizes) forms() answer {
	return answer{data: s.data(), verdict: s.verdict(), tables: []table{sizeTable("groups")}, lines: s.lines(),
		leftOut: &s.leftOut, page: func(w io.Writer) error {
			return report.Sizes(w, "How full node groups are", s.verdict(),
				append(s.lines(), leftOutLines(&s.leftOut)...), s.gauges())
		}}
}

// gauges are the groups as the page draws them.
func (s *sizes) gauges() []report.GroupGauges {
	if s == nil {
		return nil
	}
	var out []report.GroupGauges
	for _, g := range s.data().Groups {
		out = append(out, report.GroupGauges{
			Name: g.Name, Amount: plural(int(g.Nodes.Untainted), "node") + ", " + plural(int(g.Pods), "pod"),
			Verdict:    g.verdict(),
			TaintLower: float64(g.Thresholds.TaintLowerPercent), TaintUpper: float64(g.Thresholds.TaintUpperPercent),
			ScaleUp: float64(g.Thresholds.ScaleUpPercent),
			Gauges: []report.Gauge{{Resource: "cpu", Percent: g.CPUPercent, After: g.CPUPercentAfter},
				{Resource: "memory", Percent: g.MemoryPercent, After: g.MemoryPercentAfter}},
		})
	}
	return out
}

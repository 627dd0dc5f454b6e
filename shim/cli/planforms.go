package cli

import (
	"fmt"
	"slices"
	"strings"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/ranking"
)

// planAnswer is the answer of `plan` as data.
type planAnswer struct {
	Waiting []planPods   `json:"waiting"`
	Growth  []planGrowth `json:"growth"`
	// Refusals say why groups do not take the pods that find no place.
	Refusals []groupRefusal `json:"refusals,omitempty"`
	// Remarks are about pods that are not planned for as others are, and about groups that are derived from the nodes.
	Remarks []string `json:"remarks,omitempty"`
	// GrowthCutShortBy is what was used up before all was looked at: work, time or memory.
	GrowthCutShortBy string `json:"growthCutShortBy,omitempty"`
	// Prices are the parts of what the existing nodes cost, by the sources of the prices.
	Prices priceSources `json:"prices"`
	// Ranking holds the options to grow a group for pods, best first, where they were ranked.
	Ranking []planOption `json:"ranking,omitempty"`
	Slack   slackAnswer  `json:"slack"`
	// Size holds the groups that are sized by how full they are, and grow and shrink by nothing else.
	Size []sizeGroup `json:"size,omitempty"`
	// NoScaleDown is the reason for which no node is removed now: "decided elsewhere", then Drain is nil, or "groups
	// grow"; empty: nodes may be removed.
	NoScaleDown string       `json:"noScaleDown"`
	Drain       *drainAnswer `json:"drain"`
}

// planPods are equal pods that wait, and where they are expected. At most one of Node and NodeGroup is set; if neither
// is, they find no place.
type planPods struct {
	Pod   string `json:"pod"`
	Count int64  `json:"count"`
	Node  string `json:"node,omitempty"`
	// NodeGroup gets a node; OnItsWay: it was asked for before.
	NodeGroup string `json:"nodeGroup,omitempty"`
	OnItsWay  bool   `json:"onItsWay,omitempty"`
}

// planOption is to grow one group for all pods that it takes.
type planOption struct {
	NodeGroup string   `json:"nodeGroup"`
	Pods      int64    `json:"pods"`
	Score     *float64 `json:"score"`
	Reason    string   `json:"reason"`
}

type planGrowth struct {
	NodeGroup string `json:"nodeGroup"`
	ForPods   int64  `json:"forPods"`
	ForSlack  int64  `json:"forSlack"`
	// ForUtilization are nodes of a group that is sized by how full it is.
	ForUtilization int64    `json:"forUtilization,omitempty"`
	USDPerHour     *float64 `json:"usdPerHour"` // null: it is not known
}

func (l *loopPlan) name(position int32) string {
	if i := int(position); i < len(l.pods) {
		return l.pods[i]
	}
	drained := l.GetDrained()[int(position)-len(l.pods)]
	return podOf(drained.GetNamespace(), drained.GetOwnerName()) + " (drained)"
}

// oneOf names one of equal pods, from 0 on.
func (l *loopPlan) oneOf(position int32, at int64) string {
	if l.entry != nil {
		if pods := l.entry(position); at >= 0 && at < int64(len(pods)) {
			return podOf(pods[at].Namespace, pods[at].Name)
		}
	}
	return l.name(position)
}

// waiting lists where pods are expected, in the order of existing nodes, nodes on their way, new ones, and none. Of
// equal pods each place names another one.
func (l *loopPlan) waiting() []planPods {
	out, named := []planPods{}, map[int32]int64{}
	add := func(run *loadlinev1.PodRun, nodes int64, at planPods) {
		position := run.GetPod()
		at.Pod, at.Count = l.oneOf(position, named[position]), int64(run.GetCount())*nodes
		named[position] += at.Count
		out = append(out, at)
	}
	for _, place := range l.GetExisting() {
		add(place.GetPods(), 1, planPods{Node: place.GetNode()})
	}
	for _, place := range l.GetUpcoming() {
		add(place.GetPods(), 1, planPods{NodeGroup: place.GetNodeGroup(), OnItsWay: true})
	}
	for _, nodes := range l.GetScaleUp().GetNodes() {
		for _, run := range nodes.GetPods() {
			add(run, int64(nodes.GetNodes()), planPods{NodeGroup: l.groups[nodes.GetGroup()]})
		}
	}
	for _, run := range l.GetScaleUp().GetUnplaced() {
		add(run, 1, planPods{})
	}
	return out
}

func (l *loopPlan) ranking() []planOption {
	var out []planOption
	for _, option := range l.GetRanking().GetOptions() {
		group := l.groups[option.GetOption()]
		row := planOption{NodeGroup: group, Pods: option.GetPods(),
			Reason: ranking.Ranked{RankedOption: option, Asked: &loadlinev1.ExpansionOption{NodeGroup: group},
				Refused: l.refused[group]}.Reason()}
		if l.wasted && option.Waste != nil {
			row.Reason = "waste " + sixDecimals(option.GetWaste()) + "; " + row.Reason
		}
		if option.GetOutcome() == loadlinev1.RankedOption_SCORED {
			row.Score = finite(option.GetScore())
		}
		out = append(out, row)
	}
	return out
}

// unpriced says whether a group was ranked without a price.
func (l *loopPlan) unpriced(group string) bool {
	return slices.ContainsFunc(l.GetRanking().GetOptions(), func(o *loadlinev1.RankedOption) bool {
		return l.groups[o.GetOption()] == group && o.GetOutcome() == loadlinev1.RankedOption_NO_PRICE
	})
}

func (l *loopPlan) data() planAnswer {
	out := planAnswer{Waiting: l.waiting(), Growth: []planGrowth{}, Slack: l.slack.data(),
		NoScaleDown: l.GetNoScaleDown(), Prices: newPriceSources(l.GetPriceSources()),
		GrowthCutShortBy: l.GetScaleUp().GetCutShortBy(), Refusals: l.refusals, Remarks: l.remarks}
	for _, g := range l.GetGrowth() {
		growth := planGrowth{g.GetNodeGroup(), g.GetNodesForPods(), g.GetNodesForSlack(), g.GetNodesForUtilization(),
			finite(g.GetUsdPerHour())}
		if l.unpriced(g.GetNodeGroup()) {
			growth.USDPerHour = nil
		}
		out.Growth = append(out.Growth, growth)
	}
	out.Ranking = l.ranking()
	out.Size = l.sized()
	if l.GetScaleDown() != nil {
		drained := l.drain.data()
		out.Drain = &drained
	}
	return out
}

// sized returns the groups that are sized by how full they are.
func (l *loopPlan) sized() []sizeGroup {
	var out []sizeGroup
	if l.sizes == nil {
		return nil
	}
	for i := range l.sizes.response.GetGroups() {
		out = append(out, l.sizes.group(i))
	}
	return out
}

var planTables = []table{
	{rows: "waiting", apart: true, columns: []column{{header: "PODS", path: "count", right: true},
		{header: "SUCH AS", path: "pod"}, {header: "EXPECTED ON", text: expectedOn}}},
	apart(refusalTable),
	{rows: "ranking", apart: true, columns: []column{{header: "OPTION", path: "nodeGroup"},
		{header: "PODS", path: "pods", right: true}, {header: "WHY", path: "reason"}}},
	{rows: "growth", kind: "nodegroup", name: "nodeGroup", columns: []column{{header: "GROWS", path: "nodeGroup"},
		{header: "NODES FOR PODS", path: "forPods", right: true}, {header: "FOR SLACK", path: "forSlack", right: true},
		{header: "USD/H", right: true, text: func(r row) string {
			if r["usdPerHour"] == nil {
				return ""
			}
			return fmt.Sprintf("%.4f", r.num("usdPerHour"))
		}}}},
}

func (l *loopPlan) forms() answer {
	slack := l.slack.shown()
	if slack.at = "slack"; len(l.GetSlack().GetShapes()) == 0 {
		slack.tables = nil // no class keeps anything
	}
	rest := answer{lines: priceNotes(l.GetPriceSources())}
	if why := l.GetNoScaleDown(); why != "" {
		rest.lines = append(rest.lines, fmt.Sprintf("No node goes now: %s.", why))
	}
	parts := []answer{{tables: []table{sizeTable("size")}}, slack, rest}
	if l.GetScaleDown() != nil {
		parts = append(parts, answer{at: "drain", verdict: l.drain.verdict(), tables: drainTables,
			lines: []string{strings.Join(l.drain.basis(), " ")}})
	}
	return answer{title: "What one loop would decide", data: l.data(), verdict: l.verdict(), tables: planTables,
		lines: append(l.remarks, l.growthCutShort()...), parts: parts, leftOut: &l.leftOut}
}

// verdict is the outcome in one line.
func (l *loopPlan) verdict() string {
	var there, upcoming, fresh, nowhere, nodes int64
	for _, p := range l.waiting() {
		switch {
		case p.Node != "":
			there += p.Count
		case p.OnItsWay:
			upcoming += p.Count
		case p.NodeGroup != "":
			fresh += p.Count
		default:
			nowhere += p.Count
		}
	}
	for _, g := range l.GetGrowth() {
		nodes += growthOf(g)
	}
	parts := []string{"no pod waits"}
	if all := there + upcoming + fresh + nowhere; all > 0 {
		parts = []string{plural(int(all), "pod") + waits(int(all))}
		for _, part := range []struct {
			count int64
			where string
		}{{there, agree(there, "finds room", "find room")},
			{upcoming, agree(upcoming, "on a node on its way", "on nodes on their way")},
			{fresh, agree(fresh, "on a new node", "on new nodes")}, {nowhere, "nowhere"}} {
			if part.count > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", part.count, part.where))
			}
		}
	}
	text := strings.Join(parts, ", ")
	if nodes > 0 {
		text += fmt.Sprintf("; %s to ask for", plural(int(nodes), "node"))
	}
	return text
}

// growthOf returns how many nodes a group gets in all.
func growthOf(g *loadlinev1.LoopGrowth) int64 {
	return g.GetNodesForPods() + g.GetNodesForSlack() + g.GetNodesForUtilization() + g.GetNodesForMinimum() +
		g.GetNodesForReplacement()
}

func (l *loopPlan) growthCutShort() []string {
	return cutShortLines("More might grow, or at less cost", l.GetScaleUp().GetCutShortBy())
}

// expectedOn says where pods are expected.
func expectedOn(r row) string {
	group := r.str("nodeGroup")
	switch {
	case group == "":
		return r.str("node")
	case r["onItsWay"] == true:
		return "a node of " + group + " on its way"
	}
	return "a new node of " + group
}

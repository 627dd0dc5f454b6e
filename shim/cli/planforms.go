package cli

import (
	"fmt"
	"io"
	"strings"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/ranking"
	"loadline.dev/shim/report/texttable"
)

// planAnswer is the answer of `plan` as data.
type planAnswer struct {
	Waiting []planPods   `json:"waiting"`
	Growth  []planGrowth `json:"growth"`
	// GrowthCutShortBy is what was used up before all was looked at: work, time or memory.
	GrowthCutShortBy string `json:"growthCutShortBy,omitempty"`
	// Prices are the parts of what the existing nodes cost, by the sources of the prices.
	Prices priceSources `json:"prices"`
	// Ranking holds the options to grow a group for pods, best first, where they were ranked.
	Ranking []planOption `json:"ranking,omitempty"`
	Slack   slackAnswer  `json:"slack"`
	// Size holds the groups that are sized by how full they are, and grow and shrink by nothing else.
	Size []sizeGroup `json:"size,omitempty"`
	// NoScaleDown says why no node goes now: "decided elsewhere", then there is no Drain, or "groups grow"; empty:
	// nodes may.
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
	ForUtilization int64   `json:"forUtilization,omitempty"`
	USDPerHour     float64 `json:"usdPerHour"`
}

func (l *loopPlan) name(position int32) string {
	if i := int(position); i < len(l.pods) {
		return l.pods[i]
	}
	drained := l.GetDrained()[int(position)-len(l.pods)]
	return podOf(drained.GetNamespace(), drained.GetOwnerName()) + " (drained)"
}

// waiting lists where pods are expected, in the order of existing nodes, nodes on their way, new ones, and none.
func (l *loopPlan) waiting() []planPods {
	out := []planPods{}
	for _, place := range l.GetExisting() {
		out = append(out, planPods{Pod: l.name(place.GetPods().GetPod()), Count: int64(place.GetPods().GetCount()),
			Node: place.GetNode()})
	}
	for _, place := range l.GetUpcoming() {
		out = append(out, planPods{Pod: l.name(place.GetPods().GetPod()), Count: int64(place.GetPods().GetCount()),
			NodeGroup: place.GetNodeGroup(), OnItsWay: true})
	}
	for _, nodes := range l.GetScaleUp().GetNodes() {
		for _, run := range nodes.GetPods() {
			out = append(out, planPods{Pod: l.name(run.GetPod()),
				Count: int64(run.GetCount()) * int64(nodes.GetNodes()), NodeGroup: l.groups[nodes.GetGroup()]})
		}
	}
	for _, run := range l.GetScaleUp().GetUnplaced() {
		out = append(out, planPods{Pod: l.name(run.GetPod()), Count: int64(run.GetCount())})
	}
	return out
}

func (l *loopPlan) ranking() []planOption {
	var out []planOption
	for _, option := range l.GetRanking().GetOptions() {
		group := l.groups[option.GetOption()]
		row := planOption{NodeGroup: group, Pods: option.GetPods(),
			Reason: ranking.Ranked{RankedOption: option, Asked: &loadlinev1.ExpansionOption{NodeGroup: group}}.Reason()}
		if option.GetOutcome() == loadlinev1.RankedOption_SCORED {
			row.Score = finite(option.GetScore())
		}
		out = append(out, row)
	}
	return out
}

func (l *loopPlan) data() planAnswer {
	out := planAnswer{Waiting: l.waiting(), Growth: []planGrowth{}, Slack: l.slack.data(),
		NoScaleDown: l.GetNoScaleDown(), Prices: newPriceSources(l.GetPriceSources()),
		GrowthCutShortBy: l.GetScaleUp().GetCutShortBy()}
	for _, g := range l.GetGrowth() {
		out.Growth = append(out.Growth, planGrowth{g.GetNodeGroup(), g.GetNodesForPods(), g.GetNodesForSlack(),
			g.GetNodesForUtilization(), g.GetUsdPerHour()})
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

func (l *loopPlan) forms() answer {
	data := struct {
		planAnswer
		leftOutAnswer
	}{l.data(), leftOutOf(&l.leftOut)}
	return answer{data: data, table: l.table, tables: named("growth", "nodegroup", "nodeGroup"), leftOut: &l.leftOut}
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
		nodes += g.GetNodesForPods() + g.GetNodesForSlack() + g.GetNodesForUtilization() + g.GetNodesForMinimum() +
			g.GetNodesForReplacement()
	}
	parts := []string{"no pod waits"}
	if all := there + upcoming + fresh + nowhere; all > 0 {
		parts = []string{plural(int(all), "pod") + waits(int(all))}
		for _, part := range []struct {
			count int64
			where string
		}{{there, "find room"}, {upcoming, "on nodes on their way"}, {fresh, "on new nodes"}, {nowhere, "nowhere"}} {
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

func (l *loopPlan) table(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%s\n\n", texttable.Escape(l.verdict())); err != nil {
		return err
	}
	for _, table := range []*texttable.Table{l.waitingTable(), l.rankingTable(), l.growthTable()} {
		if table == nil {
			continue
		}
		if err := table.Write(w); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	for _, line := range l.growthCutShort() {
		fmt.Fprintf(w, "%s\n\n", line)
	}
	if groups := l.sized(); len(groups) > 0 {
		if err := writeSizes(w, groups, nil); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	if err := l.slack.table(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, note := range priceNotes(l.GetPriceSources()) {
		fmt.Fprintln(w, texttable.Escape(note))
	}
	if why := l.GetNoScaleDown(); why != "" {
		if _, err := fmt.Fprintf(w, "No node goes now: %s.\n", why); err != nil || l.GetScaleDown() == nil {
			return err
		}
	}
	return writeTables(w, l.drain.forms())
}

// waitingTable has a line for equal pods that wait; nil: no pod waits.
func (l *loopPlan) waitingTable() *texttable.Table {
	waiting := l.waiting()
	if len(waiting) == 0 {
		return nil
	}
	table := texttable.New(texttable.Column{Header: "PODS", Align: texttable.Right},
		texttable.Column{Header: "SUCH AS"}, texttable.Column{Header: "EXPECTED ON"})
	for _, p := range waiting {
		table.Row(fmt.Sprint(p.Count), p.Pod, p.place())
	}
	return table
}

// rankingTable has a line for each option, best first; nil: none was ranked.
func (l *loopPlan) rankingTable() *texttable.Table {
	options := l.ranking()
	if len(options) == 0 {
		return nil
	}
	table := texttable.New(texttable.Column{Header: "OPTION"},
		texttable.Column{Header: "PODS", Align: texttable.Right}, texttable.Column{Header: "WHY"})
	for _, option := range options {
		table.Row(option.NodeGroup, fmt.Sprint(option.Pods), option.Reason)
	}
	return table
}

// growthTable has a line for each group that grows; nil: none does.
func (l *loopPlan) growthTable() *texttable.Table {
	if len(l.GetGrowth()) == 0 {
		return nil
	}
	table := texttable.New(texttable.Column{Header: "GROWS"},
		texttable.Column{Header: "NODES FOR PODS", Align: texttable.Right},
		texttable.Column{Header: "FOR SLACK", Align: texttable.Right},
		texttable.Column{Header: "USD/H", Align: texttable.Right})
	for _, g := range l.GetGrowth() {
		table.Row(g.GetNodeGroup(), fmt.Sprint(g.GetNodesForPods()), fmt.Sprint(g.GetNodesForSlack()),
			fmt.Sprintf("%.4f", g.GetUsdPerHour()))
	}
	return table
}

func (l *loopPlan) growthCutShort() []string {
	return cutShortLines("More might grow, or at less cost", l.GetScaleUp().GetCutShortBy())
}

// place says where pods are expected.
func (p planPods) place() string {
	switch {
	case p.Node != "":
		return p.Node
	case p.OnItsWay:
		return "a node of " + p.NodeGroup + " on its way"
	case p.NodeGroup != "":
		return "a new node of " + p.NodeGroup
	}
	return "-"
}

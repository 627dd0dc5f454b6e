package cli

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/ranking"
	"loadline.dev/shim/report"
)

// rankAnswer is the answer of `rank` as data. Money is US dollars per hour; null: there is no such number.
type rankAnswer struct {
	// Best is the node group to grow; null when none would help a pod.
	Best    *string      `json:"best"`
	Options []rankOption `json:"options"`
	// ClusterNodes and PreferredNode are the inputs of unfitness; null: not known, and unfitness is 1.
	ClusterNodes  *int32         `json:"clusterNodes"`
	PreferredNode *preferredNode `json:"preferredNode"`
	// Prices are the parts of what the nodes of all options cost, by the sources of the prices.
	Prices priceSources `json:"prices"`
	// Refusals say why groups take no more of the pods that wait.
	Refusals []groupRefusal `json:"refusals,omitempty"`
	// CutShortBy is what was used up before all options were worked out: work, time or memory.
	CutShortBy string `json:"cutShortBy,omitempty"`
}

type preferredNode struct {
	CPUMilli    int64 `json:"cpuMilli"`
	MemoryBytes int64 `json:"memoryBytes,omitempty"`
}

// rankOption is an option, with the terms that its score is made of:
// score = suppressedUnfitness * costRatio * creationFactor, costRatio = (cost + damper) / (theoreticalCost + damper).
type rankOption struct {
	NodeGroup       string   `json:"nodeGroup"`
	NodeCount       int32    `json:"nodeCount"`
	Pods            int64    `json:"pods"`
	Score           *float64 `json:"score"`
	Cost            *float64 `json:"cost"`
	TheoreticalCost *float64 `json:"theoreticalCost"`
	Unfitness       *float64 `json:"unfitness"`
	Reason          string   `json:"reason"`

	SuppressedUnfitness *float64 `json:"suppressedUnfitness"`
	CostRatio           *float64 `json:"costRatio"`
	CreationFactor      *float64 `json:"creationFactor"`
	Damper              *float64 `json:"damper"`
	NodePrice           *float64 `json:"nodePrice"`
	Waste               *float64 `json:"waste"`
}

// finite returns a number that JSON can hold.
func finite(value float64) *float64 {
	if math.IsInf(value, 0) || math.IsNaN(value) {
		return nil
	}
	return &value
}

func (r *rank) data() rankAnswer {
	out := rankAnswer{Options: []rankOption{}, Prices: newPriceSources(r.response.GetPriceSources()),
		Refusals: r.refusals, CutShortBy: r.cutShortBy}
	if best, ok := r.best(); ok {
		name := best.NodeGroup()
		out.Best = &name
	}
	if count := r.response.GetClusterNodes(); count >= 0 {
		out.ClusterNodes = &count
	}
	if node := r.response.GetPreferredNode(); node != nil {
		out.PreferredNode = &preferredNode{node.GetMilliCpu(), node.GetMemoryBytes()}
	}
	for _, o := range r.options {
		out.Options = append(out.Options, newRankOption(o))
	}
	return out
}

func newRankOption(o ranking.Ranked) rankOption {
	out := rankOption{
		NodeGroup: o.NodeGroup(), NodeCount: o.Asked.GetNodeCount(), Pods: o.GetPods(), Reason: o.Reason(),
		TheoreticalCost: finite(o.GetTheoreticalCostUsdPerHour()), Damper: finite(o.GetDamperUsdPerHour()),
		Waste: o.Waste,
	}
	switch o.GetOutcome() {
	case loadlinev1.RankedOption_NO_PRICE, loadlinev1.RankedOption_NO_TEMPLATE, loadlinev1.RankedOption_HELPS_NO_POD:
		return out
	case loadlinev1.RankedOption_SCORED:
		out.Score = finite(o.GetScore())
	}
	out.Cost, out.Unfitness, out.SuppressedUnfitness = finite(o.GetCostUsdPerHour()), finite(o.GetUnfitness()),
		finite(o.GetSuppressedUnfitness())
	out.CostRatio, out.CreationFactor = finite(o.GetCostRatio()), finite(o.GetCreationFactor())
	out.NodePrice = finite(o.GetNodePrice().GetUsdPerHour())
	return out
}

// best returns the option to take; false if none helps a pod.
func (r *rank) best() (ranking.Ranked, bool) {
	if len(r.options) == 0 || r.options[0].GetOutcome() == loadlinev1.RankedOption_HELPS_NO_POD {
		return ranking.Ranked{}, false
	}
	return r.options[0], true
}

// verdict is the outcome in one line.
func (r *rank) verdict() string {
	best, ok := r.best()
	if !ok {
		return "no node group would help a pod"
	}
	text := fmt.Sprintf("%s: %s for %s", best.NodeGroup(), plural(int(best.Asked.GetNodeCount()), "node"),
		plural(int(best.GetPods()), "pod"))
	if len(r.options) > 1 {
		text += fmt.Sprintf(", over %s: %s", r.options[1].NodeGroup(),
			ranking.Over(r.response.GetPolicy(), best, r.options[1]))
	}
	return text
}

// basis says what holds for all options, and what became of the rest.
func (r *rank) basis() string {
	return strings.Join(slices.Concat([]string{r.scale()}, r.notes, priceNotes(r.response.GetPriceSources())), " ")
}

// scale says what scores are measured by.
func (r *rank) scale() string {
	x := 0.0
	if len(r.options) > 0 {
		x = r.options[0].GetDamperUsdPerHour()
	}
	text := "X = " + sixDecimals(x) + ". Amounts are US dollars per hour. "
	node := r.response.GetPreferredNode()
	if node == nil {
		return text + "The size of the cluster is not known: unfitness is 1."
	}
	text += "Preferred node: " + report.FormatAmount("cpu", node.GetMilliCpu()) + " cpu"
	if node.GetMemoryBytes() > 0 {
		text += ", " + report.FormatAmount("memory", node.GetMemoryBytes()) + " memory"
	}
	if count := r.response.GetClusterNodes(); count >= 0 {
		text += ", for a cluster of " + plural(int(count), "node")
	}
	return text + "."
}

// rankTables have a line for each option.
var rankTables = []table{{rows: "options", kind: "nodegroup", name: "nodeGroup", columns: []column{
	{header: "NODE GROUP", path: "nodeGroup"}, {header: "NODES", path: "nodeCount", right: true},
	{header: "PODS", path: "pods", right: true}, factor("UNFITNESS", "suppressedUnfitness"), factor("COST", "cost"),
	factor("THEORETICAL", "theoreticalCost"), factor("RATIO", "costRatio"),
	{header: "SCORE", right: true, text: func(r row) string {
		if r["score"] == nil && strings.HasPrefix(r.str("reason"), "score") {
			return "infinite"
		}
		return factorOf(r, "score")
	}}, {header: "PRICE OF A NODE", text: func(r row) string {
		if r["cost"] == nil {
			return r.str("reason")
		}
		_, price, _ := strings.Cut(r.str("reason"), ranking.BeforePrice)
		return price
	}}}}}

func factor(header, key string) column {
	return column{header: header, right: true, text: func(r row) string { return factorOf(r, key) }}
}

func factorOf(r row, key string) string {
	if r[key] == nil {
		return ""
	}
	return sixDecimals(r.num(key))
}

func (r *rank) forms() answer {
	return answer{data: r.data(), verdict: r.verdict(), tables: rankTables, lines: []string{r.basis()}, page: r.page,
		leftOut: &r.leftOut}
}

// sixDecimals writes a number with the decimals that tell scores apart, without zeros at the end.
func sixDecimals(value float64) string {
	text := strconv.FormatFloat(value, 'f', 6, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

func (r *rank) page(w io.Writer) error { return r.pageWith(w, nil) }

func (r *rank) pageWith(w io.Writer, gauges []report.GroupGauges) error {
	var bars []report.RankBar
	for _, o := range r.options {
		bar := report.RankBar{Name: o.NodeGroup(), Amount: plural(int(o.Asked.GetNodeCount()), "node") + ", " +
			plural(int(o.GetPods()), "pod"), Reason: o.Reason()}
		if d := newRankOption(o); d.Score != nil {
			bar.Score = d.Score
			bar.Factors = []report.Factor{{Name: "cost ratio", Value: o.GetCostRatio()},
				{Name: "unfitness", Value: o.GetSuppressedUnfitness()},
				{Name: "creation", Value: o.GetCreationFactor()}}
		}
		bars = append(bars, bar)
	}
	return report.Ranking(w, "Node groups that could grow",
		r.verdict(), append([]string{r.basis()}, leftOutLines(&r.leftOut)...), bars, gauges...)
}

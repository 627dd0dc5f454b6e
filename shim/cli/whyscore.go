package cli

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/policy"
	"loadline.dev/shim/report"
)

// scoreSection is the section "score" of `why` as data. Amounts: cpu in millicores, every other resource in its own
// unit.
type scoreSection struct {
	Verdict string `json:"verdict"`
	// TakenOff is the node that the pod is on, and was taken off to be scored.
	TakenOff string `json:"takenOff,omitempty"`
	// Policy with everything that the preset sets.
	Policy     policy.Policy    `json:"policy"`
	BestEffort bool             `json:"bestEffort"`
	Requests   map[string]int64 `json:"requests"`
	Limits     map[string]int64 `json:"limits"`
	// BlocksDrains: the pod does, so that a node where no pod does loses points; false where the policy does not ask.
	BlocksDrains bool `json:"blocksDrains,omitempty"`
	// Unlimited are the resources of the policy for which containers of the pod have no limit.
	Unlimited []unlimitedContainers `json:"unlimited,omitempty"`
	// Nodes are best first, ties by name, those without a raw score last among equals; Candidates counts those that are
	// not shown as well.
	Nodes      []scoreNode `json:"nodes"`
	Candidates int         `json:"candidates"`
}

// unlimitedContainers are the app containers and sidecars of a pod that have no limit for a resource: the first few,
// and how many there are.
type unlimitedContainers struct {
	Resource   string   `json:"resource"`
	Containers []string `json:"containers"`
	Total      int32    `json:"total"`
}

type scoreNode struct {
	Node   string  `json:"node"`
	Score  int32   `json:"score"`
	Raw    float64 `json:"raw"`
	Reason string  `json:"reason,omitempty"`
	// LostApart is what raw has lost because this pod blocks drains and no pod there does.
	LostApart float64 `json:"lostApart,omitempty"`
	// Hour of the day, UTC, that score and amounts are of: the one that is worst. Left out: they are by limits alone.
	Hour *int32 `json:"hour,omitempty"`
	// Resources of the policy, in its order.
	Resources []scoreResource `json:"resources"`
}

type scoreResource struct {
	Resource    string  `json:"resource"`
	Weight      int32   `json:"weight"`
	Allocatable int64   `json:"allocatable"`
	LimitsThere int64   `json:"limitsThere"`
	ThisPod     int64   `json:"thisPod"`
	Ratio       float64 `json:"ratio"`
	Raw         float64 `json:"raw"`
	// Rule stood in for a limit that a container of this pod does not have; empty: all have one.
	Rule string `json:"rule,omitempty"`
	// ByProfile: this pod counts as what its workload is expected to use in the hour, which is less than its limit.
	ByProfile bool `json:"byProfile,omitempty"`
	// ByShare: this pod has no profile, and counts as the share of its limit that other workloads are expected to use.
	ByShare        bool  `json:"byShare,omitempty"`
	ThisPodClamped bool  `json:"thisPodClamped"`
	PodsNoLimit    int32 `json:"podsThereWithoutLimit"`
	PodsClamped    int32 `json:"podsThereClamped"`
	Saturated      bool  `json:"saturated"`
}

func whyScore(ctx context.Context, q *podQuestion, top int) (answer, error) {
	all, err := q.explain(ctx)
	if err != nil {
		return answer{}, err
	}
	s := newScoreSection(q, all)
	if top > 0 && top < len(s.Nodes) {
		s.Nodes = s.Nodes[:top]
	}
	return answer{data: s, verdict: s.Verdict, lines: s.lines(), cards: s.cards(),
		parts: []answer{{tables: s.tables()}, {lines: s.notes()}}}, nil
}

// whyScoreTables have a line for each resource of a node.
var whyScoreTables = []table{{rows: "nodes", kind: "node", name: "node", columns: []column{
	{header: "NODE", path: "node"}, {header: "SCORE", path: "score", right: true},
	{header: "RAW", text: rawOf, right: true}, {header: "RESOURCE", path: "resources[*].resource"},
	{header: "ALLOCATABLE", path: "resources[*]", right: true, each: func(r row) string {
		if r.num("allocatable") == 0 {
			return "none"
		}
		return amountOf(r, "allocatable")
	}},
	eachResource("LIMITS THERE", func(r row) string { return amountOf(r, "limitsThere") }),
	eachResource("THIS POD", func(r row) string { return amountOf(r, "thisPod") }),
	eachResource("RATIO", func(r row) string { return report.FormatRatio(r.num("ratio")) }),
	{header: "THIS POD BY", path: "resources[*]", each: func(r row) string {
		if r.num("allocatable") == 0 {
			return ""
		}
		return origin(r.str("rule"), r["byProfile"] == true, r["byShare"] == true)
	}},
	{header: "CLAMPED", path: "resources[*]", each: func(r row) string {
		return clamps(r["thisPodClamped"] == true, int(r.num("podsThereClamped")), r["saturated"] == true)
	}},
	eachResource("NO LIMIT THERE", func(r row) string { return strconv.Itoa(int(r.num("podsThereWithoutLimit"))) }),
}}}

// tables are whyScoreTables, with the hour where profiles of expected use count, and with what nodes lose for a pod
// that blocks drains.
func (s *scoreSection) tables() []table {
	shown := whyScoreTables[0]
	shown.columns = slices.Clone(shown.columns)
	if slices.ContainsFunc(s.Nodes, func(n scoreNode) bool { return n.Hour != nil }) {
		for i := range shown.columns {
			if shown.columns[i].header == "LIMITS THERE" {
				shown.columns[i].header = "EXPECTED THERE"
			}
		}
		shown.columns = slices.Insert(shown.columns, 3, column{header: "HOUR", text: func(r row) string {
			return fmt.Sprintf("%02d:00", int(r.num("hour")))
		}})
	}
	if s.BlocksDrains {
		lost := func(r row) string { return formatRaw(r.num("lostApart")) }
		shown.columns = slices.Insert(shown.columns, 3, column{header: "LOST APART", right: true, text: lost})
	}
	return []table{shown}
}

// eachResource shows a number for each resource that a node offers.
func eachResource(header string, text func(r row) string) column {
	return column{header: header, path: "resources[*]", right: true, each: func(r row) string {
		if r.num("allocatable") == 0 {
			return ""
		}
		return text(r)
	}}
}

func amountOf(r row, key string) string {
	return report.FormatAmount(r.str("resource"), r.whole(key))
}

func rawOf(r row) string {
	if r.str("reason") != "" {
		return ""
	}
	return formatRaw(r.num("raw"))
}

func newScoreSection(q *podQuestion, all *loadlinev1.ExplainResponse) *scoreSection {
	s := &scoreSection{
		TakenOff: q.pod.Spec.NodeName, Policy: policy.FromProto(all.GetPolicy()), BestEffort: all.GetBestEffort(),
		Requests: amountsOf(all.GetPodRequests()), Limits: amountsOf(all.GetPodLimits()),
		Nodes: []scoreNode{}, Candidates: len(all.GetNodes()), BlocksDrains: all.GetPodBlocksDrains(),
	}
	for _, u := range all.GetUnlimitedContainers() {
		s.Unlimited = append(s.Unlimited, unlimitedContainers{u.GetResource(), u.GetContainers(), u.GetTotal()})
	}
	for _, node := range all.GetNodes() {
		s.Nodes = append(s.Nodes, newScoreNode(node))
	}
	// Nodes that lack what the pod limits are behind the others of the same score.
	slices.SortStableFunc(s.Nodes, func(a, b scoreNode) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(len(a.Reason), len(b.Reason)))
	})
	if len(s.Nodes) == 0 {
		s.Verdict = q.nowhere()
	} else {
		s.Verdict = verdict(q.name, s.Nodes)
	}
	return s
}

func amountsOf(list []*loadlinev1.ResourceAmount) map[string]int64 {
	out := make(map[string]int64, len(list))
	for _, a := range list {
		out[a.GetResource()] = a.GetAmount()
	}
	return out
}

func newScoreNode(in *loadlinev1.NodeExplanation) scoreNode {
	out := scoreNode{Node: in.GetNode(), Score: in.GetScore(), Raw: roundRaw(in.GetRawScore()),
		Reason: reasonOf(in.GetOutcome()), LostApart: roundRaw(in.GetLostApart()), Hour: in.Hour}
	for _, r := range in.GetResources() {
		out.Resources = append(out.Resources, scoreResource{
			Resource: r.GetResource(), Weight: r.GetWeight(), Allocatable: r.GetAllocatable(),
			LimitsThere: r.GetNodeLimits(), ThisPod: r.GetPodLimit(), Ratio: r.GetRatio(),
			Raw: roundRaw(r.GetRawScore()), Rule: ruleName(r.GetPodRule()), ThisPodClamped: r.GetPodClamped(),
			ByProfile:   r.GetPodByProfile(),
			ByShare:     r.GetPodByShare(),
			PodsNoLimit: r.GetNodeMissingLimits(), PodsClamped: r.GetNodeClamped(), Saturated: r.GetSaturated(),
		})
	}
	return out
}

// ruleName is the name of a rule as a policy has it; empty for a pod that has a limit.
func ruleName(rule loadlinev1.MissingLimitRule_Rule) string {
	written := policy.FromProto(&loadlinev1.ScorePolicy{MissingLimits: []*loadlinev1.MissingLimitRule{{Rule: rule}}})
	return written.MissingLimits[0].Rule
}

// verdict says in one line which of the nodes, best first, is preferred, and over which one.
func verdict(pod podName, nodes []scoreNode) string {
	best, level := nodes[0], 1
	for level < len(nodes) && nodes[level].Score == best.Score && nodes[level].Reason == best.Reason {
		level++
	}
	switch {
	case len(nodes) == 1:
		return fmt.Sprintf("%s: %s is the only node that it fits on", pod, best.inShort(best.decisive(best)))
	case level == len(nodes):
		return fmt.Sprintf("%s: none of %d nodes is preferred; by name the first is %s", pod, len(nodes),
			best.inShort(best.decisive(best)))
	}
	other, others := nodes[level], ""
	if level > 1 {
		others = fmt.Sprintf(", level with %s,", plural(level-1, "other node"))
	}
	resource := best.decisive(other)
	return fmt.Sprintf("%s: %s%s over %s", pod, best.inShort(resource), others, other.inShort(resource))
}

// decisive returns the place of the resource that sets two nodes apart most, by weight; of equals the first.
func (n scoreNode) decisive(other scoreNode) int {
	place, most := -1, -1.0
	for i, mine := range n.Resources {
		if i >= len(other.Resources) || mine.Allocatable == 0 || other.Resources[i].Allocatable == 0 {
			continue
		}
		apart := math.Abs(mine.Ratio-other.Resources[i].Ratio) * float64(mine.Weight)
		if apart > most {
			place, most = i, apart
		}
	}
	return place
}

// inShort describes a node by one resource; -1: by none.
func (n scoreNode) inShort(place int) string {
	switch {
	case n.Reason != "":
		return fmt.Sprintf("%s (score %d, %s)", n.Node, n.Score, n.Reason)
	case place < 0:
		return fmt.Sprintf("%s (score %d, raw %s)", n.Node, n.Score, formatRaw(n.Raw))
	}
	r := n.Resources[place]
	counted := "limits"
	if n.Hour != nil {
		counted = fmt.Sprintf("at %02d:00 expected", *n.Hour)
	}
	return fmt.Sprintf("%s (score %d, %s %s/%s %s = %s)", n.Node, n.Score, counted,
		report.FormatAmount(r.Resource, report.SaturatingAdd(r.LimitsThere, r.ThisPod)),
		report.FormatAmount(r.Resource, r.Allocatable), r.Resource, report.FormatRatio(r.Ratio))
}

// lines says what the scores rest on.
func (s *scoreSection) lines() []string {
	var weights []string
	for _, r := range s.Policy.Resources {
		weights = append(weights, fmt.Sprintf("%s %d", r.Resource, r.Weight))
	}
	kind := ""
	if s.BestEffort {
		kind = " (BestEffort)"
	}
	lines := []string{
		fmt.Sprintf("Policy %s: %s, %s, %s.", s.Policy.Preset, strings.Join(weights, ", "), s.Policy.Aggregate,
			s.Policy.Normalization),
		fmt.Sprintf("This pod%s: requests %s; limits %s.", kind, listAmounts(s.Requests), listAmounts(s.Limits)),
	}
	for _, u := range s.Unlimited {
		lines = append(lines, u.line())
	}
	if s.BlocksDrains {
		lines = append(lines, fmt.Sprintf("It blocks drains, and goes where such a pod is already: a node without one "+
			"loses %s of its raw score.", plural(int(s.Policy.BlockersTogether), "point")))
	}
	if s.TakenOff != "" {
		lines = append(lines, fmt.Sprintf("It is on %s now, and was taken off it to be scored as if it was to be "+
			"placed anew.", s.TakenOff))
	}
	return lines
}

// line names the containers without a limit, such as "No memory limit: container app".
func (u unlimitedContainers) line() string {
	names := strings.Join(u.Containers, ", ")
	if more := int(u.Total) - len(u.Containers); more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	noun := "container"
	if u.Total > 1 {
		noun = "containers"
	}
	return fmt.Sprintf("No %s limit: %s %s.", u.Resource, noun, names)
}

func listAmounts(amounts map[string]int64) string {
	if len(amounts) == 0 {
		return "none"
	}
	var out []string
	for _, name := range sortedResources(amounts) {
		out = append(out, report.FormatAmount(name, amounts[name])+" "+name)
	}
	return strings.Join(out, ", ")
}

// notes say what the table leaves open.
func (s *scoreSection) notes() (notes []string) {
	for _, node := range s.Nodes {
		if node.Reason != "" {
			notes = append(notes, fmt.Sprintf("%s %s.", node.Node, node.Reason))
		}
	}
	if hidden := s.Candidates - len(s.Nodes); hidden > 0 {
		notes = append(notes, fmt.Sprintf("%s more; --top 0 shows all.", plural(hidden, "node")))
	}
	return notes
}

// origin names the source of the pod's amount: its profile, the share of other workloads, its limit, or a rule.
func origin(rule string, byProfile, byShare bool) string {
	switch {
	case byProfile:
		return "its profile"
	case byShare:
		return "the share of other workloads"
	case rule == "":
		return "its limit"
	}
	return "rule " + rule
}

func clamps(pod bool, there int, saturated bool) string {
	var parts []string
	if pod {
		parts = append(parts, "this pod")
	}
	if there > 0 {
		parts = append(parts, fmt.Sprintf("%d there", there))
	}
	if saturated {
		parts = append(parts, "raw score")
	}
	return strings.Join(parts, ", ")
}

func (s *scoreSection) cards() []report.Card {
	var cards []report.Card
	for _, node := range s.Nodes {
		card := report.Card{Node: node.Node, Score: node.Score, Raw: node.Raw, Note: node.Reason}
		if node.Reason != "" {
			card.Raw = math.NaN()
		}
		for _, r := range node.Resources {
			bar := report.CardBar{Resource: r.Resource, Allocatable: r.Allocatable, There: r.LimitsThere,
				Pod: r.ThisPod}
			if r.Allocatable > 0 {
				bar.Note = r.note()
			}
			card.Bars = append(card.Bars, bar)
		}
		cards = append(cards, card)
	}
	return cards
}

// note says what is not plain about a bar.
func (r scoreResource) note() string {
	var parts []string
	if r.Rule != "" {
		parts = append(parts, "this pod by "+origin(r.Rule, r.ByProfile, r.ByShare))
	}
	if r.PodsNoLimit > 0 {
		parts = append(parts, plural(int(r.PodsNoLimit), "pod")+" there without a limit")
	}
	if clamped := clamps(r.ThisPodClamped, int(r.PodsClamped), r.Saturated); clamped != "" {
		parts = append(parts, "clamped: "+clamped)
	}
	return strings.Join(parts, "; ")
}

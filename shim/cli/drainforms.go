package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/report"
)

// drainAnswer is the answer of `drain` as data.
type drainAnswer struct {
	Remove []drainRemoval `json:"remove"`
	Keep   []drainKeep    `json:"keep"`
	// Status and Limit are those of the loop, Brake what keeps everything; empty: nothing does.
	Status string `json:"status"`
	Limit  string `json:"limit"`
	Brake  string `json:"brake"`
	// USDPerHourSaved counts nodes of groups that have a price.
	USDPerHourSaved float64  `json:"usdPerHourSaved"`
	Notes           []string `json:"notes"`
	// CutShortBy is what was used up before all nodes were looked at: work, time or memory.
	CutShortBy string `json:"cutShortBy,omitempty"`
}

// drainRemoval is a node that can go. Start is "now", or the reason that it waits for.
type drainRemoval struct {
	Node      string      `json:"node"`
	NodeGroup string      `json:"nodeGroup"`
	Empty     bool        `json:"empty"`
	Risky     bool        `json:"risky"`
	Moves     []drainMove `json:"moves"`
	// Rooms move too, but nothing is evicted for them.
	Rooms   []drainRoom `json:"rooms,omitempty"`
	Since   time.Time   `json:"since"`
	ReadyAt time.Time   `json:"readyAt"`
	Start   string      `json:"start"`
	// WaitsForPods counts the pods that run to completion before it is removed.
	WaitsForPods int `json:"waitsForPods,omitempty"`
}

type drainMove struct {
	Pod    string `json:"pod"`
	To     string `json:"to"`
	Budget string `json:"budget,omitempty"`
}

// drainRoom is room that is kept: a placeholder of slack, or the place of a pod that waits.
type drainRoom struct {
	For string `json:"for"`
	To  string `json:"to"`
}

// drainKeep is a node that stays. BlockingPod is null where no pod keeps it, and BlockingRoom is the room that does.
type drainKeep struct {
	Node          string  `json:"node"`
	NodeGroup     string  `json:"nodeGroup"`
	Reason        string  `json:"reason"`
	BlockingPod   *string `json:"blockingPod"`
	BlockingRoom  string  `json:"blockingRoom,omitempty"`
	PodReason     string  `json:"podReason,omitempty"`
	BudgetRefusal string  `json:"budgetRefusal,omitempty"`
	WhatWouldHelp string  `json:"whatWouldHelp"`
}

func podOf(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

func startOf(r *loadlinev1.NodeRemoval) string {
	if r.GetStart() {
		return "now"
	}
	return r.GetWaits()
}

func (d *drainPlan) data() drainAnswer {
	out := drainAnswer{Remove: []drainRemoval{}, Keep: []drainKeep{}, Status: d.GetStatus(), Limit: d.GetLimit(),
		Brake:           d.GetBrakeText(),
		USDPerHourSaved: d.GetUsdPerHourSaved(), Notes: append([]string{}, d.notes...), CutShortBy: d.GetCutShortBy()}
	for _, r := range listedRows(d.nodes, d.GetRemove(), (*loadlinev1.NodeRemoval).GetNode) {
		removal := drainRemoval{Node: r.GetNode(), NodeGroup: r.GetNodeGroup(), Empty: r.GetEmpty(),
			Risky: r.GetRisky(), Moves: []drainMove{},
			Since: time.Unix(r.GetSinceS(), 0).UTC(), ReadyAt: time.Unix(r.GetReadyAtS(), 0).UTC(), Start: startOf(r),
			WaitsForPods: len(r.GetWaitsFor())}
		for _, m := range r.GetMoves() {
			if m.GetPlaceholder() {
				removal.Rooms = append(removal.Rooms, drainRoom{m.GetName(), m.GetTo()})
				continue
			}
			removal.Moves = append(removal.Moves,
				drainMove{podOf(m.GetNamespace(), m.GetName()), m.GetTo(), m.GetBudget()})
		}
		out.Remove = append(out.Remove, removal)
	}
	for _, k := range listedRows(d.nodes, d.GetKeep(), (*loadlinev1.NodeKeep).GetNode) {
		out.Keep = append(out.Keep, newDrainKeep(k))
	}
	return out
}

func newDrainKeep(k *loadlinev1.NodeKeep) drainKeep {
	keep := drainKeep{Node: k.GetNode(), NodeGroup: k.GetNodeGroup(), Reason: k.GetReason(),
		PodReason: k.GetPodReason(), BudgetRefusal: k.GetBudgetRefusal(), WhatWouldHelp: k.GetAdvice()}
	switch pod := podOf(k.GetPodNamespace(), k.GetPodName()); {
	case k.Pod == nil:
	case k.GetPod() < 0:
		keep.BlockingRoom = pod
	default:
		keep.BlockingPod = &pod
	}
	return keep
}

// evictions returns how many pods move before a node can go.
func evictions(r *loadlinev1.NodeRemoval) (pods int) {
	for _, m := range r.GetMoves() {
		if !m.GetPlaceholder() {
			pods++
		}
	}
	return pods
}

// verdict is the outcome in one line.
func (d *drainPlan) verdict() string {
	if d.GetBrake() != "" {
		return fmt.Sprintf("nothing is removed: %s", d.GetBrakeText())
	}
	empty, moves, drained, later, running := 0, 0, 0, 0, 0
	for _, r := range d.GetRemove() {
		switch {
		case len(r.GetWaitsFor()) > 0:
			later++
			running += len(r.GetWaitsFor())
		case r.GetEmpty():
			empty++
		case evictions(r) > 0:
			drained++
			moves += evictions(r)
		}
	}
	count := len(d.GetRemove())
	if count == 0 {
		return "no node can go"
	}
	var ways []string
	if empty > 0 {
		ways = append(ways, fmt.Sprintf("%d empty", empty))
	}
	if drained > 0 {
		ways = append(ways, fmt.Sprintf("%d by moving %s", drained, plural(moves, "pod")))
	}
	if rooms := count - empty - drained - later; rooms > 0 {
		ways = append(ways, fmt.Sprintf("%d whose kept room moves", rooms))
	}
	if later > 0 {
		ways = append(ways, fmt.Sprintf("%d after %s run to completion", later,
			plural(running, "pod")+agree(int64(running), " has", " have")))
	}
	text := fmt.Sprintf("%s of %d can go%s: %s", plural(count, "node"), count+len(d.GetKeep()),
		agree(int64(count), "", " together"), strings.Join(ways, ", "))
	if saved := d.GetUsdPerHourSaved(); saved > 0 {
		text += fmt.Sprintf("; %.4f USD per hour are saved", saved)
	}
	return text
}

// basis says what became of the loop.
func (d *drainPlan) basis() []string {
	text := d.GetStatus()
	if d.GetLimit() != "" {
		text += ", held back by " + d.GetLimit()
	}
	lines := append([]string{text + "."}, cutShortLines("Not all nodes were looked at", d.GetCutShortBy())...)
	return append(lines, d.notes...)
}

// drainTables show the nodes to remove and those that stay.
var drainTables = []table{
	{rows: "remove", kind: "node", name: "node", columns: []column{{header: "GOES", path: "node"},
		{header: "GROUP", path: "nodeGroup", wide: true}, {header: "START", text: startText},
		{header: "READY AT", path: "readyAt"}, {header: "POD", path: "moves[*].pod"},
		{header: "MOVES TO", path: "moves[*].to"}}},
	{rows: "keep", apart: true, columns: []column{{header: "STAYS", path: "node"},
		{header: "GROUP", path: "nodeGroup", wide: true},
		{header: "REASON", text: keepReason}, {header: "POD", path: "blockingPod"},
		{header: "WHAT WOULD HELP", path: "whatWouldHelp"}}},
}

func (d *drainPlan) forms() answer {
	return answer{data: d.data(), verdict: d.verdict(), tables: drainTables,
		lines: []string{strings.Join(d.basis(), " ")}, page: d.page, leftOut: &d.leftOut}
}

// startText says when the removal of a node begins, and for how many pods it waits.
func startText(r row) string {
	text := r.str("start")
	if pods := int(r.num("waitsForPods")); pods > 0 {
		text += " (" + plural(pods, "pod") + agree(int64(pods), " runs", " run") + " to completion first)"
	}
	return text
}

// keepReason is the reason with its details: "BlockedByPod: NotEnoughPdb, Exhausted".
func keepReason(r row) string {
	return reasonText(r.str("reason"), r.str("podReason"), r.str("budgetRefusal"))
}

func reasonText(reason, ofPod, ofBudget string) string {
	if ofPod != "" {
		reason += ": " + ofPod
	}
	if ofBudget != "" {
		reason += ", " + ofBudget
	}
	return reason
}

// page draws the drain as it would run.
func (d *drainPlan) page(w io.Writer) error {
	p := report.Drain{Title: "Which nodes can go", Verdict: d.verdict(),
		Lines: append(d.basis(), leftOutLines(&d.leftOut)...), Parallel: int(d.options.GetMaxScaleDownParallelism()),
		Drains: int(d.options.GetMaxDrainParallelism()), Left: map[string]int64{},
		Listed: d.nodes.lists}
	for _, b := range d.GetBudgets() {
		p.Left[podOf(b.GetNamespace(), b.GetName())] = b.GetLeft()
	}
	for _, r := range d.GetRemove() {
		node := report.DrainNode{Name: r.GetNode(), Start: startOf(r)}
		if ready := time.Unix(r.GetReadyAtS(), 0).UTC(); !r.GetStart() && ready.After(d.now) {
			node.Until = ready.Format(time.RFC3339)
		}
		for _, m := range r.GetMoves() {
			move := report.DrainMove{Pod: podOf(m.GetNamespace(), m.GetName()), To: m.GetTo(),
				Placeholder: m.GetPlaceholder()}
			if m.GetBudget() != "" {
				move.Budget = podOf(m.GetNamespace(), m.GetBudget())
			}
			node.Moves = append(node.Moves, move)
		}
		p.Remove = append(p.Remove, node)
	}
	for _, k := range listedRows(d.nodes, d.GetKeep(), (*loadlinev1.NodeKeep).GetNode) {
		keep := newDrainKeep(k)
		row := []string{keep.Node, reasonText(keep.Reason, keep.PodReason, keep.BudgetRefusal), keep.BlockingRoom,
			keep.WhatWouldHelp}
		if keep.BlockingPod != nil {
			row[2] = *keep.BlockingPod
		}
		p.Keep = append(p.Keep, row)
	}
	return p.Write(w)
}

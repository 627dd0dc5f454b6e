package tell

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/report"
)

// ReplacementStatus tells of nodes that are replaced by cheaper ones.
type ReplacementStatus struct {
	// Status is InProgress or NoActivity.
	Status string `json:"status"`
	// Moves are carried out, Ended are those that ended in the last loop.
	Moves []string `json:"moves,omitempty"`
	Ended []string `json:"ended,omitempty"`
	// Bill is that of the last loop which looked for moves.
	Bill *BillStatus `json:"bill,omitempty"`
}

// BillStatus is what nodes cost, in US dollars per hour: Now, what nothing costs less than, and what moves reach.
type BillStatus struct {
	Now       float64 `json:"now"`
	Bound     float64 `json:"bound"`
	Reachable float64 `json:"reachable"`
	// Proven says whether there was work enough for the bound.
	Proven bool `json:"proven"`
}

// replacements tell of moves by metrics and events, and keep the bill of the last loop that looked for any.
type replacements struct {
	underWay *prometheus.GaugeVec
	ended    *prometheus.CounterVec
	bill     *prometheus.GaugeVec
	last     *BillStatus
}

// Phases of a move, as the engine names them, and results.
var movePhases = []string{"ordered", "draining", "giving back"}

const (
	moveBegun   = "begun"
	moveDone    = "done"
	moveGivenUp = "givenUp"
)

func newReplacements(m maker) *replacements {
	r := &replacements{
		underWay: m.gauges("replacement_moves",
			"Moves that are carried out, by phase: ordered, draining or giving back.", "phase"),
		ended: m.counter("replacement_moves_total", "Moves by what became of them: begun, done or givenUp.", "result"),
		bill: m.gauges("bill_usd_per_hour", "What nodes cost when moves were looked for last: now, what nothing costs "+
			"less than (bound), and what moves reach (reachable).", "kind"),
	}
	for _, result := range []string{moveBegun, moveDone, moveGivenUp} {
		r.ended.WithLabelValues(result) // so that a rate can be taken before the first one
	}
	return r
}

// count brings the metrics up to date with what a plan tells.
func (r *replacements) count(plan *loadlinev1.LoopReplacement) {
	phases := map[string]int{}
	for _, move := range plan.GetMoves() {
		phases[move.GetPhase()]++
	}
	for _, phase := range movePhases {
		r.underWay.WithLabelValues(phase).Set(float64(phases[phase]))
	}
	r.ended.WithLabelValues(moveBegun).Add(float64(plan.GetBegun()))
	for _, move := range plan.GetEnded() {
		result := moveDone
		if move.GetWhy() != "" {
			result = moveGivenUp
		}
		r.ended.WithLabelValues(result).Inc()
	}
	if bill := plan.GetBill(); bill != nil {
		r.last = &BillStatus{Now: bill.GetNow(), Bound: bill.GetBound(), Reachable: bill.GetReachable(),
			Proven: bill.GetProven()}
		setEach(r.bill, map[string]float64{"now": r.last.Now, "bound": r.last.Bound, "reachable": r.last.Reachable})
	}
}

// status tells of the moves of a plan.
func (r *replacements) status(plan *loadlinev1.LoopReplacement) *ReplacementStatus {
	s := &ReplacementStatus{Status: noActivity, Bill: r.last}
	for _, move := range plan.GetMoves() {
		s.Status = inProgress
		s.Moves = append(s.Moves, moveText(move))
	}
	for _, move := range plan.GetEnded() {
		s.Ended = append(s.Ended, endedText(move))
	}
	return s
}

// moveText tells of a move that is carried out.
func moveText(move *loadlinev1.MoveUnderWay) string {
	return fmt.Sprintf("%s since %v: %s", move.GetPhase(), secondsOf(move), moveNodes(move))
}

func secondsOf(move *loadlinev1.MoveUnderWay) time.Duration {
	return time.Duration(move.GetSeconds()) * time.Second
}

// moveNodes tells which nodes a move takes and brings.
func moveNodes(move *loadlinev1.MoveUnderWay) string {
	comes := move.GetAdd()
	if toCome := move.GetToCome(); toCome > 0 {
		comes = append(comes[:len(comes):len(comes)], fmt.Sprintf("%d to come", toCome))
	}
	if len(comes) == 0 {
		comes = []string{"room that is there"}
	}
	return fmt.Sprintf("%s by %s", namesOr(move.GetRemove(), "nodes that are gone"), strings.Join(comes, ", "))
}

func namesOr(names []string, none string) string {
	if len(names) == 0 {
		return none
	}
	return strings.Join(names, ", ")
}

// endedText tells what became of a move.
func endedText(move *loadlinev1.EndedMove) string {
	if move.GetWhy() == "" {
		return "done: " + counted(int(move.GetNodes()), "node") + " replaced"
	}
	return fmt.Sprintf("given up: %s; nodes that stay: %s", move.GetWhy(), namesOr(move.GetRemove(), "none"))
}

// movesTable shows the moves of a plan.
func movesTable(plan *loadlinev1.LoopReplacement) report.TitledGrid {
	table := report.TitledGrid{Title: "Nodes that are replaced", None: "None is replaced.",
		Grid: report.Grid{Header: []string{"GO", "COME", "YET TO COME", "PHASE", "FOR"}}}
	for _, move := range plan.GetMoves()[:min(len(plan.GetMoves()), mostShownRows)] {
		table.Rows = append(table.Rows, []string{strings.Join(move.GetRemove(), ", "),
			strings.Join(move.GetAdd(), ", "), fmt.Sprint(move.GetToCome()), move.GetPhase(),
			secondsOf(move).String()})
	}
	table.Note = others(len(plan.GetMoves()), "move")
	return table
}

// addReplacement tells what nodes cost, and what ended.
func (s *snapshot) addReplacement(r *ReplacementStatus) {
	for _, ended := range r.Ended {
		s.Page.Lines = append(s.Page.Lines, "A move ended, "+ended+".")
	}
	if bill := r.Bill; bill != nil {
		least := fmt.Sprintf("nothing costs less than %.4f", bill.Bound)
		if !bill.Proven {
			least = "what costs least is not known"
		}
		s.Page.Lines = append(s.Page.Lines, fmt.Sprintf("When moves were looked for last, nodes cost %.4f USD per hour; "+
			"moves reach %.4f, %s.", bill.Now, bill.Reachable, least))
	}
}

// TellMoves tells the nodes of moves by events: those that are to go when a move begins, and those that stay when it is
// given up.
func (t *Teller) TellMoves(plan *loadlinev1.LoopReplacement) {
	if t.config.Mode != config.Act {
		return
	}
	moves := plan.GetMoves()
	for _, move := range moves[max(0, len(moves)-int(plan.GetBegun())):] {
		t.tellNodes(move.GetRemove(), v1.EventTypeNormal, "Replacement", "to be replaced, for less: "+moveNodes(move))
	}
	for _, move := range plan.GetEnded() {
		if move.GetWhy() != "" {
			t.tellNodes(move.GetRemove(), v1.EventTypeWarning, "ReplacementGivenUp", "stays for now: "+move.GetWhy())
		}
	}
}

func (t *Teller) tellNodes(names []string, kind, reason, message string) {
	for _, name := range names {
		if node := t.cluster.Nodes[name]; node != nil {
			t.Events.Event(node, kind, reason, message)
		}
	}
}

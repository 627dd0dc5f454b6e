package report

import (
	"fmt"
	"io"
	"strconv"

	"loadline.dev/shim/report/texttable"
)

// Drain is a plan of nodes that go together.
type Drain struct {
	Title, Verdict string
	// Lines are sentences below the verdict.
	Lines []string
	// Nodes that go, in the order of their drains.
	Remove []DrainNode
	// Nodes that stay: node, reason, pod, what would help.
	Keep [][]string
	// How many nodes go at once, and how many of them with pods to move.
	Parallel, Drains int
	// Left is what each budget allows at once.
	Left map[string]int64
	// Listed says which nodes that go have a row; nil: all do. The others take part in the timeline.
	Listed func(node string) bool
}

// DrainNode is a node to be removed. Start is "now", or the reason that it waits for, and Until when that ends if that
// is known.
type DrainNode struct {
	Name, Start, Until string
	Moves              []DrainMove
}

// DrainMove is a pod, its target, and the budget that its eviction takes from, if any.
type DrainMove struct {
	Pod, To, Budget string
	// Placeholder: it is not evicted.
	Placeholder bool
}

// drainStep is what happens to one node in one step.
type drainStep struct {
	Kind   string // taint, evict, wait, delete
	Moves  []DrainMove
	Reason string // of wait
}

// mostSteps bounds a timeline: a budget of one may stretch over thousands of pods.
const mostSteps = 200

// timeline plays the drains through. A step is as long as the replacements of evicted pods take to become ready: until
// then a budget allows no more evictions than it has left. Row i has the steps of node i, from step 0 on; cut: the end
// is not shown.
func (d *Drain) timeline() (rows [][]drainStep, steps int, cut bool) {
	rows = make([][]drainStep, len(d.Remove))
	pending := make([][]DrainMove, len(d.Remove))
	state := make([]int, len(d.Remove)) // 0: not begun, 1: under way, 2: gone
	for i, node := range d.Remove {
		for _, move := range node.Moves {
			if !move.Placeholder {
				pending[i] = append(pending[i], move)
			}
		}
	}
	for gone := 0; gone < len(d.Remove); steps++ {
		if steps == mostSteps {
			return rows, steps, true
		}
		active, draining := d.underWay(state)
		used := map[string]int64{}
		for i := range d.Remove {
			drains := len(d.Remove[i].Moves) > 0
			switch {
			case state[i] == 2:
			case state[i] == 0 && (active >= max(1, d.Parallel) || drains && draining >= max(1, d.Drains)):
				rows[i] = append(rows[i], drainStep{Kind: "idle"})
			case state[i] == 0:
				state[i] = 1
				active++
				if drains {
					draining++
				}
				rows[i] = append(rows[i], drainStep{Kind: "taint"})
			case len(pending[i]) == 0:
				rows[i] = append(rows[i], drainStep{Kind: "delete"})
				state[i] = 2
				gone++
			default:
				var step drainStep
				step, pending[i] = d.evict(pending[i], used)
				rows[i] = append(rows[i], step)
			}
		}
	}
	return rows, steps, false
}

// underWay counts the nodes that are on their way out, and those of them whose pods move.
func (d *Drain) underWay(state []int) (active, draining int) {
	for i := range state {
		if state[i] == 1 {
			active++
			if len(d.Remove[i].Moves) > 0 {
				draining++
			}
		}
	}
	return active, draining
}

// evict takes those pods that budgets allow in this step.
func (d *Drain) evict(pods []DrainMove, used map[string]int64) (step drainStep, left []DrainMove) {
	step.Kind = "evict"
	for _, pod := range pods {
		if pod.Budget == "" || used[pod.Budget] < max(1, d.Left[pod.Budget]) {
			used[pod.Budget]++
			step.Moves = append(step.Moves, pod)
			continue
		}
		left = append(left, pod)
		step.Reason = pod.Budget
	}
	if len(step.Moves) == 0 {
		step.Kind = "wait"
	}
	return step, left
}

// Size of a step in units of the viewBox.
const (
	drainStepWide = 44.0
	drainRoom     = 13 // steps that a row shows without becoming narrower
)

// drainClasses colour the kinds of steps.
var drainClasses = map[string]string{"taint": "s4", "evict": "s6", "wait": "none", "delete": "s1"}

// Write writes a page: the drains as a timeline, the target of each pod, and what keeps every other node.
func (d *Drain) Write(w io.Writer) error {
	p := page{Title: d.Title, Verdict: d.Verdict, Lines: d.Lines}
	if goes := d.drains(); len(goes.Table.Rows) > 0 {
		p.Parts = append(p.Parts, goes)
	}
	if len(d.Keep) > 0 {
		stays := &cells{Class: "cards", Header: texts("", "node", "reason", "pod", "what would help")}
		for _, row := range d.Keep {
			stays.Rows = append(stays.Rows, append(texts("name", row[0]), texts("", row[1:]...)...))
		}
		p.Parts = append(p.Parts, part{Title: "What stays", Table: stays})
	}
	return p.write(w)
}

func (d *Drain) drains() part {
	rows, steps, cut := d.timeline()
	wide := drainStepWide * float64(max(steps, drainRoom))
	ticks := &drawing{Width: wide, Height: 17, Pixels: wide, Label: "steps"}
	for step := range steps {
		ticks.text("soft", "middle", strconv.Itoa(step+1), drainStepWide*(float64(step)+0.5), 13)
	}
	table := &cells{Class: "cards drains", Header: append(texts("", "node", "start"), cell{Class: "bar", Drawing: ticks})}
	for i, node := range d.Remove {
		if d.Listed == nil || d.Listed(node.Name) {
			table.Rows = append(table.Rows, node.row(wide, rows[i]))
		}
	}
	text := "The drains as they run once each node's timer has ended. A step is as long as the replacements of evicted " +
		"pods take to become ready: until then a budget allows no more evictions than it has left."
	if cut {
		text += " The end is not shown."
	}
	return part{Title: "What goes", Lines: []string{text}, Table: table, Legend: []key{swatch("s4", "taint"),
		swatch("s6", "evict so many pods"), swatch("none", "wait for a budget"), swatch("s1", "delete")}}
}

func (n *DrainNode) row(wide float64, steps []drainStep) []cell {
	pods := "empty"
	if len(n.Moves) > 0 {
		pods = Counted(len(n.Moves), "pod")
	}
	start := cell{Text: n.Start}
	if n.Until != "" {
		start.Note = "until " + n.Until
	}
	bar := cell{Class: "bar", Summary: "where its pods go",
		Drawing: &drawing{Width: wide, Height: 17, Pixels: wide, Label: "drain of " + n.Name}}
	for i, s := range steps {
		s.draw(bar.Drawing, drainStepWide*float64(i))
	}
	for _, move := range n.Moves {
		text := move.Pod + " to " + move.To
		if move.Budget != "" {
			text += ", within " + move.Budget
		}
		bar.Details = append(bar.Details, text)
	}
	return []cell{{Class: "name", Text: n.Name, Note: pods}, start, bar}
}

// draw draws a step from this place on.
func (s *drainStep) draw(d *drawing, x float64) {
	if s.Kind == "idle" {
		return
	}
	title := verbatim(s.Kind)
	switch s.Kind {
	case "evict":
		for _, move := range s.Moves {
			title += verbatim("\n" + texttable.Escape(move.Pod))
		}
	case "wait":
		title = verbatim("wait for budget " + texttable.Escape(s.Reason))
	}
	d.add(shape{Kind: "rect", Class: drainClasses[s.Kind], X: x + 1, Y: 1, Width: drainStepWide - 2, Height: 15,
		Title: title})
	if s.Kind == "evict" {
		d.text("on", "middle", strconv.Itoa(len(s.Moves)), x+drainStepWide/2, 13)
	}
}

// Counted writes a number with what it counts: "1 node", "2 nodes".
func Counted(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

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
		active, draining := 0, 0
		for i := range state {
			if state[i] == 1 {
				active++
				if len(d.Remove[i].Moves) > 0 {
					draining++
				}
			}
		}
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

type drainPage struct {
	*Drain
	Wide  float64
	Ticks []tick
	Rows  []drainRow
	Cut   bool
}

type drainRow struct {
	DrainNode
	Pods  string
	Parts []drainPart
}

type drainPart struct {
	X, Width float64
	Class    string
	Title    verbatim
	Text     string
	Middle   float64
}

// Write writes a page: the drains as a timeline, the target of each pod, and what keeps every other node.
func (d *Drain) Write(w io.Writer) error {
	rows, steps, cut := d.timeline()
	p := drainPage{Drain: d, Cut: cut, Wide: drainStepWide * float64(max(steps, drainRoom))}
	for step := range steps {
		p.Ticks = append(p.Ticks, tick{drainStepWide * (float64(step) + 0.5), strconv.Itoa(step + 1)})
	}
	for i, node := range d.Remove {
		if d.Listed != nil && !d.Listed(node.Name) {
			continue
		}
		row := drainRow{DrainNode: node, Pods: "empty"}
		if len(node.Moves) > 0 {
			row.Pods = Counted(len(node.Moves), "pod")
		}
		for step, s := range rows[i] {
			if s.Kind != "idle" {
				row.Parts = append(row.Parts, newDrainPart(step, s))
			}
		}
		p.Rows = append(p.Rows, row)
	}
	return write(w, "drain", p)
}

func newDrainPart(step int, s drainStep) drainPart {
	part := drainPart{X: drainStepWide*float64(step) + 1, Width: drainStepWide - 2,
		Middle: drainStepWide * (float64(step) + 0.5), Class: drainClasses[s.Kind], Title: verbatim(s.Kind)}
	switch s.Kind {
	case "evict":
		part.Text = strconv.Itoa(len(s.Moves))
		for _, move := range s.Moves {
			part.Title += verbatim("\n" + texttable.Escape(move.Pod))
		}
	case "wait":
		part.Title = verbatim("wait for budget " + texttable.Escape(s.Reason))
	}
	return part
}

// Counted writes a number with what it counts: "1 node", "2 nodes".
func Counted(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

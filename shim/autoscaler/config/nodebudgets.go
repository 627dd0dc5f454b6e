package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"loadline.dev/shim/timewindow"
)

const mostBudgets = 64 // as the engine takes

// Reasons for which nodes go, as budgets name them.
const (
	Empty         = "empty"         // no pod has to move
	Underutilized = "underutilized" // its pods fit elsewhere
	Replaced      = "replaced"      // a move makes the cluster cheaper
)

// NodeBudget bounds how many nodes of a node group go at once.
type NodeBudget struct {
	// Nodes of the group, or percent of those that are there, rounded up.
	Nodes   int32
	Percent bool
	// Groups that it holds for, each for itself, and reasons; none: all.
	Groups, Reasons []string
	// Window is when it holds; nil: at any time.
	Window *timewindow.Window
}

// parseNodeBudget reads "10% of=spot for=replaced in=0 9 * * 1-5 8h Europe/Berlin": a number of nodes or a percentage,
// and what it holds for; of= and for= may be there more than once, and in= takes what follows.
func parseNodeBudget(text string) (b NodeBudget, err error) {
	rest, window, hasWindow := strings.Cut(text, " in=")
	if hasWindow {
		parsed, err := timewindow.Parse(window)
		if err != nil {
			return b, fmt.Errorf("%q: %w", text, err)
		}
		b.Window = &parsed
	}
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return b, fmt.Errorf("%q must begin with a number of nodes or a percentage", text)
	}
	number, percent := strings.CutSuffix(fields[0], "%")
	nodes, err := strconv.ParseInt(number, 10, 32)
	if err != nil || nodes < 0 || (percent && nodes > 100) {
		return b, fmt.Errorf("%q must begin with a number of nodes, such as 2, or a percentage, such as 10%%", text)
	}
	b.Nodes, b.Percent = int32(nodes), percent
	for _, field := range fields[1:] {
		group, ofGroup := strings.CutPrefix(field, "of=")
		reason, forReason := strings.CutPrefix(field, "for=")
		switch {
		case ofGroup && group != "":
			b.Groups = append(b.Groups, group)
		case forReason && slices.Contains([]string{Empty, Underutilized, Replaced}, reason):
			b.Reasons = append(b.Reasons, reason)
		case forReason:
			return b, fmt.Errorf("%q: reason %q must be %s, %s or %s", text, reason, Empty, Underutilized, Replaced)
		default:
			return b, fmt.Errorf("%q: %q must be of=GROUP, for=REASON or in=WINDOW", text, field)
		}
	}
	return b, nil
}

// Budgets returns how many nodes of single groups go at once.
func (s *RemovalLimits) Budgets() (budgets []NodeBudget, err error) {
	if len(s.NodeBudgets) > mostBudgets {
		return nil, fmt.Errorf("scaleDown.nodeBudgets: %d are more than %d", len(s.NodeBudgets), mostBudgets)
	}
	for _, text := range s.NodeBudgets {
		budget, err := parseNodeBudget(text)
		if err != nil {
			return nil, fmt.Errorf("scaleDown.nodeBudgets: %w", err)
		}
		budgets = append(budgets, budget)
	}
	return budgets, nil
}

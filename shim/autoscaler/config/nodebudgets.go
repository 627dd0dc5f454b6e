package config

import (
	"fmt"
	"strconv"
	"strings"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/timewindow"
)

// budgetReasons are the reasons for which nodes go, as budgets name them.
var budgetReasons = map[string]loadlinev1.NodeBudget_Reason{"empty": loadlinev1.NodeBudget_EMPTY,
	"underutilized": loadlinev1.NodeBudget_UNDERUTILIZED, "replaced": loadlinev1.NodeBudget_REPLACED}

// parseNodeBudget reads "10% of=spot for=replaced in=0 9 * * 1-5 8h Europe/Berlin": a number of nodes or a percentage,
// and what it holds for, each group by itself or all together; of= and for= may be there more than once, and in= takes
// what follows.
func parseNodeBudget(text string) (b cloud.NodeBudget, err error) {
	b.NodeBudget = &loadlinev1.NodeBudget{}
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
	b.Limit = &loadlinev1.NodeBudget_Nodes{Nodes: int32(nodes)}
	if percent {
		b.Limit = &loadlinev1.NodeBudget_Percent{Percent: int32(nodes)}
	}
	for _, field := range fields[1:] {
		group, ofGroup := strings.CutPrefix(field, "of=")
		name, forReason := strings.CutPrefix(field, "for=")
		reason, known := budgetReasons[name]
		switch {
		case field == "together":
			b.Together = true
		case ofGroup && group != "":
			b.NodeGroups = append(b.NodeGroups, group)
		case forReason && known:
			b.Reasons = append(b.Reasons, reason)
		case forReason:
			return b, fmt.Errorf("%q: reason %q must be empty, underutilized or replaced", text, name)
		default:
			return b, fmt.Errorf("%q: %q must be of=GROUP, together, for=REASON or in=WINDOW", text, field)
		}
	}
	return b, nil
}

// Budgets returns how many nodes of single groups go at once.
func (s *RemovalLimits) Budgets() ([]cloud.NodeBudget, error) {
	return readEach("scaleDown.nodeBudgets", s.NodeBudgets, parseNodeBudget)
}

package karpenter

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/timewindow"
)

// mostBudgets is how many a NodePool may have, as at Karpenter; mostBudgetsOfAll is how many all may have, because the
// engine takes 1,000 with those of the configuration.
const (
	mostBudgets      = 50
	mostBudgetsOfAll = 900
)

// drifted is the reason of Karpenter for which Loadline removes no node.
const drifted = "Drifted"

// reasonsOf are the reasons of the engine that each of Karpenter's covers.
var reasonsOf = map[string][]loadlinev1.NodeBudget_Reason{
	"Empty":         {loadlinev1.NodeBudget_EMPTY},
	"Underutilized": {loadlinev1.NodeBudget_UNDERUTILIZED, loadlinev1.NodeBudget_REPLACED},
	drifted:         nil,
}

// readBudgets reads a list of Karpenter's disruption budgets, as YAML or JSON. One for drift alone bounds nothing here.
func readBudgets(text string) (budgets []*cloud.NodeBudget, err error) {
	var listed []budget
	if err := yaml.UnmarshalStrict([]byte(text), &listed); err != nil {
		return nil, fmt.Errorf("must be a list as in spec.disruption.budgets, such as [{nodes: 10%%}]: %w", err)
	}
	if len(listed) > mostBudgets {
		return nil, fmt.Errorf("has %d budgets, at most %d may be", len(listed), mostBudgets)
	}
	for i := range listed {
		read, err := listed[i].read()
		if err != nil {
			return nil, fmt.Errorf("budget %d: %w", i, err)
		}
		if len(listed[i].Reasons) == 0 || len(read.Reasons) > 0 {
			budgets = append(budgets, read)
		}
	}
	return budgets, nil
}

// read returns the budget as the engine has it. Schedules are in UTC.
func (b *budget) read() (*cloud.NodeBudget, error) {
	out := &cloud.NodeBudget{NodeBudget: &loadlinev1.NodeBudget{}}
	number, percent := strings.CutSuffix(cmp.Or(b.Nodes, "10%"), "%")
	nodes, err := strconv.ParseInt(number, 10, 32)
	if err != nil || nodes < 0 || percent && nodes > 100 {
		return nil, fmt.Errorf("nodes: %q must be a number, or a percentage up to 100%%", b.Nodes)
	}
	out.Limit = &loadlinev1.NodeBudget_Nodes{Nodes: int32(nodes)}
	if percent {
		out.Limit = &loadlinev1.NodeBudget_Percent{Percent: int32(nodes)}
	}
	for _, reason := range b.Reasons {
		reasons, known := reasonsOf[reason]
		if !known {
			return nil, fmt.Errorf("reasons: %q must be Empty, Underutilized or %s", reason, drifted)
		}
		out.Reasons = append(out.Reasons, reasons...)
	}
	if (b.Schedule == "") != (b.Duration == "") {
		return nil, errors.New("schedule and duration must be given together")
	}
	if b.Schedule != "" {
		window, err := timewindow.New(b.Schedule, b.Duration, "UTC")
		if err != nil {
			return nil, fmt.Errorf("schedule and duration: %w", err)
		}
		out.Window = &window
	}
	return out, nil
}

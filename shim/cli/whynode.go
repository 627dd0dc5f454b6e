package cli

import (
	"context"
	"fmt"
	"strings"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/leftout"
)

// nodePrefix marks a node where a pod could be meant as well.
const nodePrefix = "node/"

// noPodError says that the pod asked about is not there.
type noPodError struct {
	pod, source string
	isNode      bool // there is a node of this name
}

func (e *noPodError) Error() string {
	return fmt.Sprintf("pod %s is not in %s; a pod that is not there yet is given with -p FILE", e.pod, e.source)
}

// missing says why the pod asked about is not there: it is, and cannot be read, or it is not.
func (c *cluster) missing(pod podName, source string) error {
	if err := pod.unreadable(c.broken); err != nil {
		return err
	}
	_, isNode := c.view.Slot(pod.name)
	return &noPodError{pod.String(), source, isNode}
}

// unreadable is an error if the pod is among the objects that were left out.
func (p podName) unreadable(leftOut []leftout.Object) error {
	for _, o := range leftOut {
		if o.Kind == "Pod" && (podName{o.Namespace, o.Name}) == p {
			return fmt.Errorf("pod %s cannot be read: %s", p, o.Reason)
		}
	}
	return nil
}

// drainNodeAnswer is the answer of `why NODE`: one of both is set.
type drainNodeAnswer struct {
	Node    string        `json:"node"`
	Verdict string        `json:"verdict"`
	Remove  *drainRemoval `json:"remove,omitempty"`
	Keep    *drainKeep    `json:"keep,omitempty"`
	Notes   []string      `json:"notes"`
	// Consolidation is its part in what `loadline consolidate` would do, as a sentence.
	Consolidation string `json:"consolidation,omitempty"`
}

// whyNode explains whether a node can go, by what is given. False: there is no such node.
func (a *app) whyNode(ctx context.Context, flags *podFlags, given drainSource, node string) (bool, error) {
	if err := flags.output.check(); err != nil {
		return false, err
	}
	d, err := given.ask(ctx, &flags.sourceFlags, flags.engine, a.streams.In)
	if err != nil {
		return false, err
	}
	d.consolidation = a.consolidationOf(ctx, flags, given, node)
	out, ok := d.whyNode(node)
	if !ok {
		return false, nil
	}
	return true, flags.output.write(a.streams.Out, out)
}

// consolidationOf says what consolidation makes of a node. What it cannot say is no error of the question.
func (a *app) consolidationOf(ctx context.Context, flags *podFlags, given drainSource, node string) string {
	source := billSource{groups: given.groups, now: given.now, mode: "replace", noPods: given.noPods,
		settings: given.settings}
	b, err := source.ask(ctx, &flags.sourceFlags, flags.engine, a.streams.In)
	if err != nil {
		return "What consolidation makes of it is not known: " + err.Error() + "."
	}
	return b.partOf(node)
}

// whyNamedNode is whyNode for what can be nothing else.
func (a *app) whyNamedNode(ctx context.Context, flags *podFlags, given drainSource, node string) error {
	found, err := a.whyNode(ctx, flags, given, node)
	if err == nil && !found {
		err = fmt.Errorf("node %s is not in %s", node, flags.sourceFlags.name())
	}
	return err
}

// whyNode returns what the plan says of a node.
func (d *drainPlan) whyNode(node string) (answer, bool) {
	data := d.data()
	for i, r := range d.GetRemove() {
		if r.GetNode() == node {
			removal := data.Remove[i]
			return d.nodeForms(drainNodeAnswer{Node: node, Verdict: removalVerdict(r), Remove: &removal,
				Notes: data.Notes}), true
		}
	}
	for i, k := range d.GetKeep() {
		if k.GetNode() == node {
			keep := data.Keep[i]
			return d.nodeForms(drainNodeAnswer{Node: node, Verdict: d.keepVerdict(keep), Keep: &keep,
				Notes: data.Notes}), true
		}
	}
	return answer{}, false
}

func removalVerdict(r *loadlinev1.NodeRemoval) string {
	how := "it is empty"
	if pods := evictions(r); pods > 0 {
		how = "by moving " + plural(pods, "pod")
	} else if !r.GetEmpty() {
		how = "and the room that it keeps moves"
	}
	if pods := len(r.GetWaitsFor()); pods > 0 {
		how = "after " + plural(pods, "pod") + agree(int64(pods), " has", " have") + " run to completion"
	}
	when := "now"
	if !r.GetStart() {
		when = "it waits: " + r.GetWaits()
	}
	return fmt.Sprintf("%s can go, %s; %s", r.GetNode(), how, when)
}

func (d *drainPlan) keepVerdict(k drainKeep) string {
	if d.GetBrake() != "" {
		return fmt.Sprintf("%s stays: %s", k.Node, d.GetBrakeText())
	}
	text := fmt.Sprintf("%s stays: %s", k.Node, reasonText(k.Reason, k.PodReason, k.BudgetRefusal))
	if k.BlockingPod != nil {
		text += ", pod " + *k.BlockingPod
	} else if k.BlockingRoom != "" {
		text += ", " + k.BlockingRoom
	}
	return text
}

func (d *drainPlan) nodeForms(n drainNodeAnswer) answer {
	lines := d.basis()
	n.Consolidation = d.consolidation
	if n.Consolidation != "" {
		lines = append(lines, n.Consolidation)
	}
	if n.Keep != nil && n.Keep.WhatWouldHelp != "" {
		lines = append([]string{"What would help: " + n.Keep.WhatWouldHelp + "."}, lines...)
	}
	return answer{data: n, title: "Why this node stays or goes", verdict: n.Verdict, leftOut: &d.leftOut,
		lines: []string{strings.Join(lines, " ")}, tables: []table{subject("node", "node"), {rows: "remove.moves",
			columns: []column{{header: "POD", path: "pod"}, {header: "MOVES TO", path: "to"},
				{header: "BUDGET", path: "budget"}}}}}
}

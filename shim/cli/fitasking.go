package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/filterconfig"
	"loadline.dev/shim/leftout"
	"loadline.dev/shim/scaleup"
	"loadline.dev/shim/view"
)

// fitAnswer says where kube-scheduler's filters would let a pod go.
type fitAnswer struct {
	Pod string `json:"pod"`
	// Verdict is the outcome in one line; of a pod that fits nowhere, what the scheduler's FailedScheduling event says.
	Verdict string `json:"verdict"`
	// All lists are by node name.
	Fits        []string  `json:"fits"`
	DoesNotFit  []refusal `json:"doesNotFit"`
	CannotJudge []refusal `json:"cannotJudge,omitempty"`
	// Remarks say what is special about the pod, beside where it fits, and which nodes are listed.
	Remarks []string `json:"remarks,omitempty"`
	// taken is the node that the pod is on, and was taken off.
	taken   string
	leftOut leftout.List
}

// refusal says why a pod does not fit on a node, or why that is not known.
type refusal struct {
	Node   string `json:"node"`
	Filter string `json:"filter"`
	// Status is Unschedulable, or UnschedulableAndUnresolvable if no preemption can help; empty if not judged.
	Status  string   `json:"status,omitempty"`
	Reasons []string `json:"reasons"`
	// beforeNodes: the pod was refused before any node was looked at.
	beforeNodes bool
}

func (r refusal) node() string { return r.Node }

// listed is the answer with the nodes that are to be listed.
func (f *fitAnswer) listed(nodes *nodeSelector) *fitAnswer {
	out := *f
	out.Fits = listedRows(nodes, f.Fits, func(node string) string { return node })
	out.DoesNotFit = listedRows(nodes, f.DoesNotFit, refusal.node)
	out.CannotJudge = listedRows(nodes, f.CannotJudge, refusal.node)
	out.Remarks = append(nodes.notes(), f.Remarks...)
	return &out
}

// fit asks which nodes the pod fits on, as if it had none yet.
func (q *podQuestion) fit(ctx context.Context) (*fitAnswer, error) {
	if q.fitted != nil {
		return q.fitted, nil
	}
	pod := *q.pod
	pod.Spec.NodeName = ""
	out := &fitAnswer{Pod: q.name.String(), Fits: []string{}, DoesNotFit: []refusal{}, taken: q.pod.Spec.NodeName}
	out.leftOut.Add(q.broken...) // the engine has only a mark of what is wrong with them
	client := loadlinev1.NewSchedulerExtenderClient(q.conn)
	err := q.view.Ask(ctx, func(at *loadlinev1.Changes) error {
		response, err := client.Fit(ctx, &loadlinev1.FitRequest{
			Changes: at, Options: q.how, Pods: []*loadlinev1.IncomingPod{{
				Pod: view.TrimIncomingPodForFilters(&pod), DefaultSpreadSelector: q.selectors.Of(&pod)}}})
		if err != nil {
			return err
		}
		out.leftOut.AddAnswer(response)
		if len(response.GetPods()) != 1 {
			return fmt.Errorf("asked about 1 pod, answered about %d: %s", len(response.GetPods()),
				out.leftOut.Line(mostNamed))
		}
		for _, group := range response.GetPods()[0].GetGroups() {
			if err := out.add(q.view, group); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, engineError(err)
	}
	q.leaveOut(&out.leftOut)
	slices.Sort(out.Fits)
	byNode := func(a, b refusal) int { return strings.Compare(a.Node, b.Node) }
	slices.SortFunc(out.DoesNotFit, byNode)
	slices.SortFunc(out.CannotJudge, byNode)
	out.Verdict = out.verdict()
	if q.pod.Spec.NodeName == "" {
		remarks := scaleup.Remarks{Rules: scaleup.DefaultRules(q.now)}
		remarks.Add(q.pod)
		out.Remarks = remarks.Lines()
	}
	q.fitted = out
	return out, nil
}

// candidates are the nodes that a score is for: those that the pod fits on or may fit on; none: it fits nowhere.
func (f *fitAnswer) candidates() []string {
	names := slices.Clone(f.Fits)
	for _, r := range f.CannotJudge {
		names = append(names, r.Node)
	}
	return names
}

func (f *fitAnswer) add(v *view.View, group *loadlinev1.VerdictGroup) error {
	for _, slot := range group.GetSlots() {
		node, ok := v.Node(slot)
		if !ok {
			return fmt.Errorf("the engine answers about slot %d, which holds no node", slot)
		}
		r := refusal{Node: node, Filter: filterconfig.FilterName(group.GetFilter()), Reasons: group.GetReasons(),
			beforeNodes: group.GetBeforeNodes()}
		switch group.GetVerdict() {
		case loadlinev1.VerdictGroup_FITS:
			f.Fits = append(f.Fits, node)
		case loadlinev1.VerdictGroup_DOES_NOT_FIT:
			r.Status = "Unschedulable"
			if group.GetStatusClass() == loadlinev1.VerdictGroup_UNSCHEDULABLE_AND_UNRESOLVABLE {
				r.Status = "UnschedulableAndUnresolvable"
			}
			f.DoesNotFit = append(f.DoesNotFit, r)
		case loadlinev1.VerdictGroup_CANNOT_JUDGE:
			f.CannotJudge = append(f.CannotJudge, r)
		}
	}
	return nil
}

// verdict is the answer in one line.
func (f *fitAnswer) verdict() string {
	all := len(f.Fits) + len(f.DoesNotFit) + len(f.CannotJudge)
	switch {
	case len(f.Fits) > 0:
		return fmt.Sprintf("%s fits on %d of %s", f.Pod, len(f.Fits), plural(all, "node"))
	case len(f.CannotJudge) > 0:
		if all == 1 {
			return f.Pod + ": not known to fit on the only node, which cannot be judged"
		}
		return fmt.Sprintf("%s: not known to fit on any of %d nodes; %d of them cannot be judged", f.Pod, all,
			len(f.CannotJudge))
	}
	return fmt.Sprintf("0/%d nodes are available: %s.", all, strings.Join(counted(f.DoesNotFit), ", "))
}

// counted returns the reasons of refusals, each with its number of nodes, in the form of the scheduler's message. A
// reason that refused the pod before any node was tried is returned without a number and alone.
func counted(refusals []refusal) []string {
	counts := map[string]int{}
	for _, r := range refusals {
		if r.beforeNodes {
			return r.Reasons
		}
		for _, reason := range r.Reasons {
			counts[reason]++
		}
	}
	out := make([]string, 0, len(counts))
	for reason, count := range counts {
		out = append(out, fmt.Sprintf("%d %s", count, reason))
	}
	slices.Sort(out) // as text: so the scheduler does
	return out
}

// refusalGroup are the nodes that one filter refuses for the same reasons.
type refusalGroup struct {
	Filter  string   `json:"filter"`
	Status  string   `json:"status,omitempty"`
	Reasons []string `json:"reasons"`
	Nodes   []string `json:"nodes"`
}

// grouped returns refusals by what they have in common, the most frequent first, ties by their first node.
func grouped(refusals []refusal) []refusalGroup {
	out := []refusalGroup{}
	for _, r := range refusals {
		i := slices.IndexFunc(out, func(g refusalGroup) bool {
			return g.Filter == r.Filter && g.Status == r.Status && slices.Equal(g.Reasons, r.Reasons)
		})
		if i < 0 {
			i = len(out)
			out = append(out, refusalGroup{Filter: r.Filter, Status: r.Status, Reasons: r.Reasons})
		}
		out[i].Nodes = append(out[i].Nodes, r.Node)
	}
	slices.SortStableFunc(out, func(a, b refusalGroup) int { return len(b.Nodes) - len(a.Nodes) })
	return out
}

package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// fitHelp is part of the help of each command that asks where a pod fits.
const fitHelp = `POD is [NAMESPACE/]NAME of a pod that waits for a node or of one that has one. A pod that has a node is
taken off it first. With -p the pod is read from a file instead, as from a manifest.

The rules are those of kube-scheduler's filters in their default order; the first filter that refuses
decides. What a filter looks up beside nodes and pods must be in a dump too:
'kubectl get nodes,pods,namespaces,pv,pvc,storageclasses,csinodes,csidrivers,deviceclasses -A
-o json'. Where it is not, there is
no judgement.`

func (a *app) newFit() *cobra.Command {
	flags := podFlags{filters: true}
	command := &cobra.Command{
		Use:   "fit POD | -p FILE",
		Short: "Show on which nodes a pod fits",
		Long:  "Show on which nodes a pod fits: where the scheduler could put it.\n\n" + fitHelp,
		Example: `  loadline fit shop/web-0
  loadline fit -p pod.yaml -f cluster.json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := a.askFit(cmd.Context(), &flags, args)
			if err != nil {
				return err
			}
			return flags.output.write(a.streams.Out, f.forms())
		},
	}
	command.ValidArgsFunction = completeArgs([]namesOf{flags.podNames})
	addFitFlags(command, &flags)
	return command
}

func addFitFlags(command *cobra.Command, flags *podFlags) {
	addPodFlagsWithoutPolicy(command, flags, formTable, formJSON, formYAML, formHTML)
	flags.how.addTo(command.Flags())
	flags.nodes.addTo(command.Flags())
}

func (a *app) askFit(ctx context.Context, flags *podFlags, args []string) (*fitAnswer, error) {
	q, err := flags.question(ctx, a.streams.In, args)
	if err != nil {
		return nil, err
	}
	defer q.close()
	f, err := q.fit(ctx)
	if err != nil {
		return nil, err
	}
	return f.listed(&flags.nodes), nil
}

// reasonsOf are the reasons of a refusal, in a line.
func reasonsOf(r row) string {
	reasons, _ := r["reasons"].([]any)
	texts := make([]string, len(reasons))
	for i, reason := range reasons {
		texts[i] = cellOf(reason)
	}
	return strings.Join(texts, "; ")
}

// forms lists the nodes on which the pod fits, then those that cannot be judged.
func (f *fitAnswer) forms() answer {
	yes := func(row) string { return "yes" }
	where := func(r row) string {
		if r.str("node") == f.taken {
			return "where it is"
		}
		return ""
	}
	out := answer{title: "Where the pod fits", data: f, verdict: f.Verdict, lines: f.Remarks, leftOut: &f.leftOut}
	out.tables = []table{
		{rows: "fits", element: "node", kind: "node", name: "node", columns: []column{{header: "NODE", path: "node"},
			{header: "FITS", text: yes}, {text: where}}},
		{rows: "cannotJudge", apart: true, columns: []column{{header: "NODE", path: "node"},
			{header: "FITS", text: func(row) string { return "not known" }},
			{text: func(r row) string {
				return strings.TrimPrefix(r.str("filter")+": "+reasonsOf(r), ": ") // of an unknown field no filter tells
			}}}}}
	return out
}

// whyNot tells why a pod does not fit on a node; without a node, on all of them.
func (f *fitAnswer) whyNot(node string, byNode bool) (answer, error) {
	refusals := slices.Concat(f.DoesNotFit, f.CannotJudge)
	out := answer{title: "Why the pod does not fit", verdict: f.Verdict, lines: f.Remarks, leftOut: &f.leftOut}
	if node == "" {
		out.data, out.tables = newFitSection(f), named("node", "nodes[*]", refusalGroupTables)
		if byNode {
			out.data, out.tables = f, named("node", "node", refusalTables)
		}
		return out, nil
	}
	i := slices.IndexFunc(refusals, func(r refusal) bool { return r.Node == node })
	if i < 0 && !slices.Contains(f.Fits, node) {
		return answer{}, &noNodeError{node}
	}
	one, verdict := nodeAnswer{Pod: f.Pod, Node: node, Fits: i < 0}, "fits on"
	out.tables = []table{subject("node", "node")}
	if i >= 0 {
		one.Filter, one.Status, one.Reasons = refusals[i].Filter, refusals[i].Status, refusals[i].Reasons
		out.tables = append(out.tables, table{apart: true, columns: []column{{header: "FILTER", path: "filter"},
			preemptionColumn, {header: "REASON", path: "reasons[*]"}}})
		if verdict = "does not fit on"; one.Status == "" {
			verdict = "cannot be judged on"
		}
	}
	out.data, out.verdict = one, fmt.Sprintf("%s %s %s", f.Pod, verdict, node)
	return out, nil
}

// noNodeError says that the node asked about is not there.
type noNodeError struct{ node string }

func (e *noNodeError) Error() string { return fmt.Sprintf("node %q is not in the cluster", e.node) }

// nodeAnswer is the answer of `why-not POD NODE`.
type nodeAnswer struct {
	Pod     string   `json:"pod"`
	Node    string   `json:"node"`
	Fits    bool     `json:"fits"`
	Filter  string   `json:"filter,omitempty"`
	Status  string   `json:"status,omitempty"`
	Reasons []string `json:"reasons,omitempty"`
}

// preemption says in a word what a status class means.
func preemption(r row) string {
	switch r.str("status") {
	case "Unschedulable":
		return "may help"
	case "UnschedulableAndUnresolvable":
		return "cannot help"
	}
	return "not known"
}

var preemptionColumn = column{header: "PREEMPTION", text: preemption}

// refusalTables have a line for each node that does not take the pod, groupTables one for nodes alike.
var refusalTables, refusalGroupTables = ofRefusals([]column{{header: "NODE", path: "node"},
	{header: "FILTER", path: "filter"}, preemptionColumn, {header: "REASONS", text: reasonsOf}}),
	ofRefusals([]column{{header: "NODES", right: true, text: func(r row) string { return strconv.Itoa(len(nodesOf(r))) }},
		{header: "FILTER", path: "filter"}, preemptionColumn, {header: "REASONS", text: reasonsOf},
		{header: "SUCH AS", path: "nodes[0]"}})

func ofRefusals(columns []column) []table {
	return []table{{rows: "doesNotFit", columns: columns}, {rows: "cannotJudge", columns: columns}}
}

func nodesOf(r row) []any {
	nodes, _ := r["nodes"].([]any)
	return nodes
}

// fitSection is the section "fit" of `why` as data, and the answer of `why-not` without a node.
type fitSection struct {
	Verdict string   `json:"verdict"`
	Fits    []string `json:"fits"`
	// DoesNotFit and CannotJudge are grouped by filter and reasons, the most frequent first.
	DoesNotFit  []refusalGroup `json:"doesNotFit"`
	CannotJudge []refusalGroup `json:"cannotJudge,omitempty"`
}

func newFitSection(f *fitAnswer) fitSection {
	return fitSection{Verdict: f.Verdict, Fits: f.Fits, DoesNotFit: grouped(f.DoesNotFit),
		CannotJudge: grouped(f.CannotJudge)}
}

// whyFit is the section "fit" of `why`.
func whyFit(ctx context.Context, q *podQuestion, _ int) (answer, error) {
	f, err := q.fit(ctx)
	if err != nil {
		return answer{}, err
	}
	s := newFitSection(f)
	return answer{verdict: s.Verdict, lines: f.Remarks, data: s, tables: refusalGroupTables}, nil
}

package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"loadline.dev/shim/report"
	"loadline.dev/shim/report/texttable"
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
			data := struct {
				*fitAnswer
				leftOutAnswer
			}{f, leftOutOf(&f.leftOut)}
			return flags.output.write(a.streams.Out, answer{data: data, table: f.table, tables: named("fits", "node", "name"),
				leftOut: &f.leftOut})
		},
	}
	command.ValidArgsFunction = completeArgs([]namesOf{flags.podNames})
	addFitFlags(command, &flags)
	return command
}

func addFitFlags(command *cobra.Command, flags *podFlags) {
	addPodFlagsWithoutPolicy(command, flags, formTable, formJSON, formYAML)
	flags.how.addTo(command.Flags())
}

func (a *app) askFit(ctx context.Context, flags *podFlags, args []string) (*fitAnswer, error) {
	q, err := flags.question(ctx, a.streams.In, args)
	if err != nil {
		return nil, err
	}
	defer q.close()
	return q.fit(ctx)
}

// table lists the nodes on which the pod fits, then those that cannot be judged.
func (f *fitAnswer) table(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%s\n", texttable.Escape(f.Verdict)); err != nil {
		return err
	}
	if len(f.Fits)+len(f.CannotJudge) == 0 {
		return nil
	}
	table := texttable.New(texttable.Column{Header: "NODE"}, texttable.Column{Header: "FITS"}, texttable.Column{})
	for _, node := range f.Fits {
		note := ""
		if node == f.taken {
			note = "where it is"
		}
		table.Row(node, "yes", note)
	}
	for _, r := range f.CannotJudge {
		table.Row(r.Node, "not known", r.Filter+": "+strings.Join(r.Reasons, "; "))
	}
	fmt.Fprintln(w)
	return table.Write(w)
}

func (a *app) newWhyNot() *cobra.Command {
	flags := podFlags{filters: true}
	byNode := false
	command := &cobra.Command{
		Use:   "why-not POD [NODE] | -p FILE [NODE]",
		Short: "Tell why a pod does not fit on a node, or on any",
		Long: "Tell why a pod does not fit on a node: which filter refuses it, whether preemption could help,\n" +
			"and all reasons in the words of kube-scheduler. Without NODE: why on all nodes, grouped by\n" +
			"reason.\n\n" + fitHelp,
		Example: `  loadline why-not shop/web-0 node-7
  loadline why-not -p pod.yaml -f cluster.json --by-node`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			pod, node := splitPodAndNode(args, flags.podFile != "")
			f, err := a.askFit(cmd.Context(), &flags, pod)
			if err != nil {
				return err
			}
			out, err := f.whyNot(node, byNode)
			if err != nil {
				return err
			}
			return flags.output.write(a.streams.Out, out)
		},
	}
	command.ValidArgsFunction = completeArgs([]namesOf{flags.podNames}, []namesOf{flags.nodeNames})
	addFitFlags(command, &flags)
	command.Flags().BoolVar(&byNode, "by-node", false, "a line per node instead of one per reason")
	return command
}

// splitPodAndNode tells which arguments name the pod and which the node.
func splitPodAndNode(args []string, podFromFile bool) (pod []string, node string) {
	if !podFromFile && len(args) > 0 {
		pod, args = args[:1], args[1:]
	}
	if len(args) > 0 {
		node = args[0]
		pod = append(pod, args[1:]...) // one too many: question refuses it
	}
	return pod, node
}

// whyNot tells why a pod does not fit on a node; without a node, on all of them.
func (f *fitAnswer) whyNot(node string, byNode bool) (answer, error) {
	refusals := slices.Concat(f.DoesNotFit, f.CannotJudge)
	if node == "" {
		if byNode {
			return answer{data: f, table: func(w io.Writer) error { return f.refusalTable(w, refusals) }}, nil
		}
		return answer{data: newFitSection(f),
			table: func(w io.Writer) error { return f.groupTable(w, grouped(refusals)) }}, nil
	}
	i := slices.IndexFunc(refusals, func(r refusal) bool { return r.Node == node })
	if i < 0 && !slices.Contains(f.Fits, node) {
		return answer{}, fmt.Errorf("node %q is not in the cluster", node)
	}
	one := nodeAnswer{Pod: f.Pod, Node: node, Fits: i < 0}
	if i >= 0 {
		one.Filter, one.Status, one.Reasons = refusals[i].Filter, refusals[i].Status, refusals[i].Reasons
	}
	return answer{data: one, table: one.table}, nil
}

// nodeAnswer is the answer of `why-not POD NODE`.
type nodeAnswer struct {
	Pod     string   `json:"pod"`
	Node    string   `json:"node"`
	Fits    bool     `json:"fits"`
	Filter  string   `json:"filter,omitempty"`
	Status  string   `json:"status,omitempty"`
	Reasons []string `json:"reasons,omitempty"`
}

func (n nodeAnswer) table(w io.Writer) error {
	if n.Fits {
		_, err := fmt.Fprintf(w, "%s fits on %s\n", texttable.Escape(n.Pod), texttable.Escape(n.Node))
		return err
	}
	verdict := "does not fit on"
	if n.Status == "" {
		verdict = "cannot be judged on"
	}
	_, err := fmt.Fprintf(w, "%s %s %s\n\n", texttable.Escape(n.Pod), verdict, texttable.Escape(n.Node))
	if err != nil {
		return err
	}
	table := texttable.New(texttable.Column{Header: "FILTER"}, texttable.Column{Header: "PREEMPTION"},
		texttable.Column{Header: "REASON"})
	for _, reason := range n.Reasons {
		table.Row(n.Filter, preemption(n.Status), reason)
	}
	return table.Write(w)
}

// preemption says in a word what a status class means.
func preemption(status string) string {
	switch status {
	case "Unschedulable":
		return "may help"
	case "UnschedulableAndUnresolvable":
		return "cannot help"
	}
	return "not known"
}

func (f *fitAnswer) refusalTable(w io.Writer, refusals []refusal) error {
	if _, err := fmt.Fprintf(w, "%s\n\n", texttable.Escape(f.Verdict)); err != nil {
		return err
	}
	table := texttable.New(texttable.Column{Header: "NODE"}, texttable.Column{Header: "FILTER"},
		texttable.Column{Header: "PREEMPTION"}, texttable.Column{Header: "REASONS"})
	for _, r := range refusals {
		table.Row(r.Node, r.Filter, preemption(r.Status), strings.Join(r.Reasons, "; "))
	}
	return table.Write(w)
}

func (f *fitAnswer) groupTable(w io.Writer, groups []refusalGroup) error {
	if _, err := fmt.Fprintf(w, "%s\n", texttable.Escape(f.Verdict)); err != nil {
		return err
	}
	if len(groups) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	return writeGroups(w, groups)
}

var groupHeader = []string{"NODES", "FILTER", "PREEMPTION", "REASONS", "SUCH AS"}

func (g refusalGroup) cells() []string {
	return []string{strconv.Itoa(len(g.Nodes)), g.Filter, preemption(g.Status),
		strings.Join(g.Reasons, "; "), g.Nodes[0]}
}

func writeGroups(w io.Writer, groups []refusalGroup) error {
	columns := make([]texttable.Column, len(groupHeader))
	for i, header := range groupHeader {
		columns[i].Header = header
	}
	columns[0].Align = texttable.Right
	table := texttable.New(columns...)
	for _, g := range groups {
		table.Row(g.cells()...)
	}
	return table.Write(w)
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
func whyFit(ctx context.Context, q *podQuestion, _ int) (*sectionAnswer, error) {
	f, err := q.fit(ctx)
	if err != nil {
		return nil, err
	}
	s := newFitSection(f)
	groups := slices.Concat(s.DoesNotFit, s.CannotJudge)
	page := report.Section{Verdict: s.Verdict, Grid: report.Grid{Header: groupHeader}}
	for _, g := range groups {
		page.Grid.Rows = append(page.Grid.Rows, g.cells())
	}
	table := func(w io.Writer) error {
		if len(groups) == 0 {
			return nil
		}
		return writeGroups(w, groups)
	}
	return &sectionAnswer{verdict: s.Verdict, data: s, table: table, page: page}, nil
}

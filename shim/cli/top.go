package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/leftout"
	"loadline.dev/shim/policy"
	"loadline.dev/shim/report"
)

// Orders of `top` beside the name of a resource.
const (
	sortByLoad = "load"
	sortByName = "name"
)

// topFlags are the flags of `top`.
type topFlags struct {
	inquiry
	resources []string
	sortBy    string
	most      int
	filters   filterFlags
	lines     linesFlags
	use       useFlags
}

const topHelp = `Show per node and resource the limits and the requests of its pods over what the node offers to pods.

At a limits ratio of 1.0, the load line, the node can give every pod all that it may use; above it, it cannot. A pod
without a limit adds nothing to the limits here, whatever a score policy would count it as.

With --max-limits-over-allocatable, or --scheduler-config where our plugin has a load line, it also shows
what limits count as under the line, and what is left to it. Nodes above it take no more pods.

With --lines load lines are compared instead: which nodes are above each now, and if all pods came anew, how
many would find no room on the nodes that are there, how many more nodes like those would take them, and which
pods none takes.

With --usage, or --usage-namespace, it shows what the pods of each node are expected to use at the peak of the
day and at which hour, and for CPU and memory the highest line of limits under which no node would have gone
over what it has, when filled with pods like its own; with tighter and looser lines: how many nodes would have
gone over under each, and how many nodes hold all pods at least.

Amounts in json and yaml: cpu in millicores, every other resource in its own unit, such as bytes.`

func (a *app) newTop() *cobra.Command {
	var flags topFlags
	command := &cobra.Command{
		Use:   "top",
		Short: "Show how loaded each node is: limits and requests over allocatable",
		Long:  topHelp,
		Example: `  loadline top --sort-by memory
  loadline top --max-limits-over-allocatable memory=1.5
  loadline top --lines 1,1.25,1.5,2,3
  loadline top --usage-namespace kube-system
  kubectl get nodes,pods -A -o json | loadline top -f - -o html > load.html`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out, err := flags.ask(cmd.Context(), a.streams.In)
			if err != nil {
				return err
			}
			return flags.output.write(a.streams.Out, out)
		},
	}
	command.Flags().StringSliceVar(&flags.resources, "resources", nil,
		"resources to show (default: those that a pod requests or limits, cpu and memory)")
	command.Flags().StringVar(&flags.sortBy, "sort-by", sortByLoad,
		"load: the highest limits ratio of any resource first; name; or a resource: its limits ratio")
	command.Flags().Lookup("sort-by").Annotations = map[string][]string{
		formsAnnotation: append([]string{sortByLoad, sortByName}, usedResources...)}
	command.Flags().IntVar(&flags.most, "top", 0,
		"show only this many nodes; 0: all; totals are always those of all nodes")
	flags.filters.addTo(command.Flags())
	flags.lines.addTo(command.Flags())
	flags.use.addTo(command.Flags())
	flags.nodes.addTo(command.Flags())
	flags.inquiry.addTo(command.Flags(), formTable, formJSON, formYAML, formHTML)
	return command
}

// ask asks for the load of the nodes or, with load lines, for what those would mean.
func (f *topFlags) ask(ctx context.Context, stdin io.Reader) (answer, error) {
	if f.most < 0 {
		return answer{}, usagef("--top %d: must not be negative", f.most)
	}
	for _, name := range f.resources {
		if len(validation.IsQualifiedName(name)) > 0 {
			return answer{}, usagef("--resources %q: must be names of resources, such as cpu,nvidia.com/gpu", name)
		}
	}
	f.output.nameless = len(f.lines.ratios) > 0
	if err := f.output.check(); err != nil {
		return answer{}, err
	}
	if f.use.given() {
		return f.expectedUse(ctx, stdin)
	}
	if len(f.lines.ratios) > 0 {
		if f.nodes.given() {
			return answer{}, usagef("--selector: not with --lines, which lists no nodes")
		}
		if f.sortBy != sortByLoad {
			return answer{}, usagef("--sort-by %s: not with --lines, whose rows are lines", f.sortBy)
		}
		lines, err := f.compareLines(ctx, stdin)
		if err != nil {
			return answer{}, err
		}
		return lines.forms(), nil
	}
	t, err := f.load(ctx, stdin)
	if err != nil {
		return answer{}, err
	}
	return t.forms(), nil
}

// compareLines says what load lines would mean. Limits count as under the line of the scheduler's configuration, if it
// has one.
func (f *topFlags) compareLines(ctx context.Context, stdin io.Reader) (*lineTable, error) {
	how, err := f.filters.fit(ctx)
	if err != nil {
		return nil, err
	}
	var counting policy.Policy
	if by := how.GetLoadLine().GetCounting(); by != nil {
		counting = policy.FromProto(by)
	}
	counting.Default()
	return f.lines.compare(ctx, &f.sourceFlags, f.engine, counting, stdin)
}

// top is the load of a cluster.
type top struct {
	placement report.Placement // nodes in the order to show
	// counted is without virtual nodes: what they say that they offer is nobody's machine.
	counted   report.Placement
	kinds     map[string]loadlinev1.NodeKind // of nodes that are no machines, by name
	resources []string
	counts    string
	most      int
	nodes     *nodeSelector
	line      *topLine // nil: there is no load line
	leftOut   leftout.List
}

func (f *topFlags) load(ctx context.Context, stdin io.Reader) (*top, error) {
	how, err := f.filters.fit(ctx)
	if err != nil {
		return nil, err
	}
	c, err := load(ctx, &f.sourceFlags, f.engine, stdin, loadOptions{fit: how, nodes: true, whole: true})
	if err != nil {
		return nil, err
	}
	defer c.close()
	states, err := c.describe(ctx)
	if err != nil {
		return nil, err
	}
	t := &top{placement: report.FromNodeStates(f.name(), states, c.pending), resources: f.resources, most: f.most,
		nodes: &f.nodes}
	c.leaveOut(&t.leftOut)
	t.kinds, t.counted = kindsOf(states), t.placement
	t.counted.Listed = f.nodes.lists
	t.counted.Nodes = slices.DeleteFunc(slices.Clone(t.placement.Nodes),
		func(node report.Node) bool { return t.kinds[node.Name] == loadlinev1.NodeKind_VIRTUAL })
	if len(t.resources) == 0 {
		t.resources = report.Resources([]report.Placement{t.placement})
	}
	if err := t.sort(f.sortBy); err != nil {
		return nil, err
	}
	t.counts = countsOf(c)
	if virtual := len(t.placement.Nodes) - len(t.counted.Nodes); virtual > 0 {
		t.counts += fmt.Sprintf(" TOTAL and MAX are without %s.", plural(virtual, "virtual node"))
	}
	if how.GetLoadLine() != nil {
		if t.line, err = c.loadLine(ctx, how.GetLoadLine()); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// kindsOf returns the kinds of nodes that are no machines, by name.
func kindsOf(states []*loadlinev1.NodeState) map[string]loadlinev1.NodeKind {
	kinds := map[string]loadlinev1.NodeKind{}
	for _, state := range states {
		if kindName(state.GetKind()) != "" {
			kinds[state.GetName()] = state.GetKind()
		}
	}
	return kinds
}

// sort orders the nodes, ties by name. A node without the resource is last.
func (t *top) sort(by string) error {
	var loads []string
	switch {
	case by == sortByName:
		return nil // as they are
	case by == sortByLoad:
		loads = t.resources
	case slices.Contains(t.resources, by):
		loads = []string{by}
	default:
		return usagef("--sort-by %q: must be load, name or one of the resources shown: %s",
			by, strings.Join(t.resources, ", "))
	}
	load := func(node report.Node) float64 {
		highest := -1.0
		for _, resource := range loads {
			if ratio, ok := node.Resources[resource].Ratio(); ok {
				highest = max(highest, ratio)
			}
		}
		return highest
	}
	slices.SortStableFunc(t.placement.Nodes, func(a, b report.Node) int { return cmp.Compare(load(b), load(a)) })
	return nil
}

// countsOf returns the numbers of nodes and pods of a cluster, and of the objects that did not count, in words.
func countsOf(c *cluster) string {
	text := fmt.Sprintf("%s, %s, %d %spending.", plural(c.counts.Nodes, "node"), plural(c.counts.Pods, "pod"), c.pending,
		agree(int64(c.counts.Pods), "", "of them "))
	if note := c.strayNote(); note != "" {
		text += " " + note
	}
	if len(c.counts.Ignored) > 0 {
		var kinds []string
		for kind, count := range c.counts.Ignored {
			kinds = append(kinds, fmt.Sprintf("%d %s", count, kind))
		}
		slices.Sort(kinds)
		text += " Not looked at: " + strings.Join(kinds, ", ") + "."
	}
	return text
}

func plural(count int, noun string) string {
	if count == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", count, noun)
}

// shown returns the nodes to show.
func (t *top) shown() []report.Node {
	nodes := listedRows(t.nodes, t.placement.Nodes, func(node report.Node) string { return node.Name })
	if t.most > 0 && t.most < len(nodes) {
		return nodes[:t.most]
	}
	return nodes
}

func (t *top) forms() answer {
	notes := t.nodes.notes()
	out := answer{data: t.data(), tables: t.tables(), lines: append(notes, t.counts), page: func(w io.Writer) error {
		return report.Page(w, "Load of "+t.placement.Name, []report.Placement{t.counted},
			append(notes, leftOutLines(&t.leftOut)...)...)
	}, leftOut: &t.leftOut}
	if t.line != nil {
		out.parts = []answer{t.line.part()}
	}
	return out
}

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/ranking"
	"loadline.dev/shim/scaleup"
)

// whyNotFlags are the flags of `why-not`.
type whyNotFlags struct {
	podFlags
	groups rankSource
	byNode bool
}

func (a *app) newWhyNot() *cobra.Command {
	f := whyNotFlags{podFlags: podFlags{filters: true}}
	command := &cobra.Command{
		Use:   "why-not POD [NODE | GROUP] | -p FILE [NODE | GROUP]",
		Short: "Tell why a pod does not fit on a node, or on any, or why no node group grows for it",
		Long: "Tell why a pod does not fit on a node: which filter refuses it, whether preemption could help,\n" +
			"and all reasons in the words of kube-scheduler. Without NODE: why on all nodes, grouped by\n" +
			"reason.\n\n" +
			"With GROUP or --groups: why a node group does not grow for the pod alone, or none does: the first\n" +
			"filter that refuses it on a new node, pods of DaemonSets that leave it no room there, the maximum of\n" +
			"the group or of the cluster, or that nobody knows the price or the template; or why no group grows\n" +
			"for such pods. Without --groups, GROUP is one of those that are derived from the nodes.\n\n" + fitHelp,
		Example: `  loadline why-not shop/web-0 node-7
  loadline why-not shop/web-0 spot-large --groups groups.yaml
  loadline why-not -p pod.yaml -f cluster.json --by-node`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			out, err := a.whyNot(cmd.Context(), &f, args)
			if err != nil {
				return err
			}
			return f.output.write(a.streams.Out, out)
		},
	}
	command.ValidArgsFunction = completeArgs([]namesOf{f.podNames}, []namesOf{f.nodeNames, groupNames(&f.groups.groups)})
	f.groups.addTo(command.Flags(), "why-not")
	addNowFlag(command.Flags(), &f.groups.now)
	addPodFlagsWithoutPolicy(command, &f.podFlags, formTable, formJSON, formYAML, formHTML)
	_ = command.Flags().MarkHidden("question")
	f.nodes.addTo(command.Flags())
	command.Flags().BoolVar(&f.byNode, "by-node", false, "a line per node instead of one per reason")
	return command
}

func (a *app) whyNot(ctx context.Context, f *whyNotFlags, args []string) (answer, error) {
	pod, other := splitPodAndNode(args, f.podFile != "")
	if err := f.groups.settings.read(&f.engine); err != nil {
		return answer{}, err
	}
	if f.nodes.given() && (other != "" || f.groups.given()) {
		return answer{}, usagef("--selector: not with NODE or --groups, which list no nodes")
	}
	f.how.Filters = f.groups.settings.Filters // the same flags, whatever is asked about
	if f.groups.given() {
		return a.whyNotGroups(ctx, f, pod, other)
	}
	if other != "" {
		f.kept = newKeptCluster() // it is asked about as a node, then as a group
	}
	fit, err := a.askFit(ctx, &f.podFlags, pod)
	if err != nil {
		return answer{}, err
	}
	out, err := fit.whyNot(other, f.byNode)
	if noNode := (*noNodeError)(nil); errors.As(err, &noNode) {
		if out, err = a.whyNotGroups(ctx, f, pod, other); err != nil {
			err = fmt.Errorf("%w; %w", noNode, err)
		}
	}
	return out, err
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

// groupsAnswer is the answer of `why-not POD` about groups.
type groupsAnswer struct {
	Pod     string         `json:"pod"`
	Verdict string         `json:"verdict"`
	Groups  []groupVerdict `json:"groups"`
	Remarks []string       `json:"remarks,omitempty"`
}

// groupVerdict says whether a new node of a group takes the pod. Reason says why not, or what the node costs.
type groupVerdict struct {
	NodeGroup string `json:"nodeGroup"`
	Takes     bool   `json:"takes"`
	Filter    string `json:"filter,omitempty"`
	Reason    string `json:"reason"`
}

// whyNotGroups asks of a pod alone which groups would grow for it.
func (a *app) whyNotGroups(ctx context.Context, f *whyNotFlags, args []string, group string) (answer, error) {
	if err := f.output.check(); err != nil {
		return answer{}, err
	}
	if f.groups.question != "" {
		return answer{}, usagef("why-not asks about a cluster: no --question")
	}
	name, pod, err := f.pod(ctx, a.streams.In, args)
	if err != nil {
		return answer{}, err
	}
	only := &onlyPod{name: name, pod: pod}
	f.groups.only = only
	r, err := f.groups.ask(ctx, &f.sourceFlags, f.engine, a.streams.In, nil)
	if err != nil {
		return answer{}, err
	}
	if err := name.unreadable(r.leftOut.Objects()); err != nil {
		return answer{}, err
	}
	_, ranks, err := f.groups.settings.ScaleUp.Ranking()
	if err != nil {
		return answer{}, err
	}
	out := groupsAnswer{Pod: name.String(), Groups: []groupVerdict{}, Remarks: r.remarks}
	taken := 0
	for _, option := range r.options {
		if group != "" && option.NodeGroup() != group {
			continue
		}
		verdict := r.groupVerdict(option, ranks)
		verdict.hold(only.held)
		if verdict.Takes {
			taken++
		}
		out.Groups = append(out.Groups, verdict)
	}
	if len(out.Groups) == 0 && group != "" {
		of := "of " + f.groups.groups
		if f.groups.groups == "" {
			of = "that are derived from the nodes"
		}
		return answer{}, fmt.Errorf("node group %s is not among the %d %s", group, len(r.options), of)
	}
	a.warn(r.warnings)
	out.Verdict = out.verdict(group, only.held, r.fits, taken)
	lines := only.linesBeside(out.Remarks)
	return answer{title: "Which node groups grow", data: out, verdict: out.Verdict, lines: lines, leftOut: &r.leftOut,
		tables: groupsTables}, nil
}

// verdict says how many of the groups could grow for the pod, or whether the one that is asked about could.
func (out *groupsAnswer) verdict(group, held, fits string, taken int) string {
	switch {
	case held != "" && group != "":
		return fmt.Sprintf("%s does not grow for %s: %s", group, out.Pod, held)
	case held != "":
		return fmt.Sprintf("%s: no node group grows for it: %s", out.Pod, held)
	case fits != "":
		return fmt.Sprintf("%s finds room on %s, so no group grows for it", out.Pod, fits)
	case group != "" && taken == 1:
		return fmt.Sprintf("%s could grow for %s", group, out.Pod)
	case group != "":
		return fmt.Sprintf("%s does not grow for %s: %s", group, out.Pod, out.Groups[0].Reason)
	}
	return fmt.Sprintf("%s: %d of %s could grow for it", out.Pod, taken, plural(len(out.Groups), "node group"))
}

var groupsTables = []table{
	{rows: "groups", kind: "nodegroup", name: "nodeGroup", columns: []column{{header: "NODE GROUP", path: "nodeGroup"},
		{header: "TAKES IT", text: func(r row) string {
			return map[bool]string{true: "yes", false: "no"}[r["takes"] == true]
		}}, {header: "FILTER", path: "filter"}, {header: "WHY", path: "reason"}}}}

// groupVerdict says whether a new node of a group takes the pod; `ranks` says that groups without a price grow too.
func (r *rank) groupVerdict(option ranking.Ranked, ranks bool) groupVerdict {
	verdict := groupVerdict{NodeGroup: option.NodeGroup(), Reason: option.Reason()}
	if i := slices.IndexFunc(r.refusals, func(r groupRefusal) bool { return r.NodeGroup == verdict.NodeGroup }); i >= 0 {
		verdict.Filter, verdict.Reason = r.refusals[i].Filter, r.refusals[i].Reason
	}
	switch option.GetOutcome() {
	case loadlinev1.RankedOption_SCORED, loadlinev1.RankedOption_UNDEFINED_SCORE:
		verdict.Takes, verdict.Reason = true, option.Price()+" USD/h"
	case loadlinev1.RankedOption_NO_PRICE:
		verdict.Takes = ranks
	}
	if verdict.Takes && r.sized[verdict.NodeGroup] {
		verdict.Takes, verdict.Reason = false, bySizeOnly
	}
	return verdict
}

// hold has a group not grow for a reason that holds for all groups, if it is not empty; it is said first.
func (v *groupVerdict) hold(reason string) {
	switch {
	case reason == "":
	case v.Takes || v.Reason == noNeed:
		v.Takes, v.Reason = false, reason
	default:
		v.Reason = reason + "; besides: " + v.Reason
	}
}

// onlyPod is the one pod that groups are asked about, as if no other waited.
type onlyPod struct {
	name podName
	pod  *v1.Pod // nil: that of the cluster
	// held says why no group grows for it, whatever its nodes take; empty: one may.
	held string
	line string // of the remarks that says the same; empty: none does
}

// take has the pod wait in a cluster, and says that no other one does.
func (o *onlyPod) take(c *cluster, source string, remarks *scaleup.Remarks) (waits func(*v1.Pod) bool, err error) {
	if o.pod != nil {
		o.pod = offNode(o.pod)
	} else if o.pod = c.pod; o.pod == nil {
		return nil, c.missing(o.name, source)
	} else if o.pod.Spec.NodeName != "" {
		o.pod = offNode(o.pod)
	}
	if o.held = noWait(o.pod); o.held == "" && !remarks.Add(o.pod) {
		o.line = remarks.Lines()[0] // those for which no group grows are first
		_, why, _ := strings.Cut(o.line, " is ")
		o.held = "it is " + strings.TrimSuffix(why, ".")
	}
	waits = func(pod *v1.Pod) bool { return podName{pod.Namespace, pod.Name} == o.name }
	return waits, cmp.Or(c.set(o.waiting()), c.watched.Apply())
}

// noWait says why a pod waits for no node that a group may add, whatever the settings; empty: it may.
func noWait(pod *v1.Pod) string {
	set, ofDaemonSet := scaleup.DaemonSetOf(pod)
	switch {
	case pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed:
		return "it has ended"
	case pod.DeletionTimestamp != nil:
		return "it is being deleted"
	case !ofDaemonSet:
		return ""
	case set.Name == "":
		return "it is of a DaemonSet and belongs to one node: no new one helps"
	}
	return fmt.Sprintf("it is of DaemonSet %s and belongs to one node: no new one helps", set.Name)
}

// linesBeside returns the remarks but for that which is said elsewhere.
func (o *onlyPod) linesBeside(remarks []string) (lines []string) {
	for _, line := range remarks {
		if line != o.line {
			lines = append(lines, line)
		}
	}
	return lines
}

// offNode returns a pod as if it had no node, and a scheduler had tried it and found none.
func offNode(pod *v1.Pod) *v1.Pod {
	pod = new(*pod)
	pod.Spec.NodeName = ""
	pod.Status.Conditions = slices.DeleteFunc(slices.Clone(pod.Status.Conditions),
		func(c v1.PodCondition) bool { return c.Type == v1.PodScheduled })
	return asTried(pod)
}

// waiting returns the pod as if it had no node and no gates, and a scheduler had found no node for it.
func (o *onlyPod) waiting() *v1.Pod {
	pod := *o.pod
	pod.Spec.NodeName, pod.Spec.SchedulingGates, pod.DeletionTimestamp = "", nil, nil
	pod.Status = v1.PodStatus{NominatedNodeName: pod.Status.NominatedNodeName}
	return asTried(&pod)
}

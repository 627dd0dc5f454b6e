package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/drain"
	"loadline.dev/shim/leftout"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/scaleup"
	"loadline.dev/shim/view"
)

// drainSource says which nodes are asked about, and by which rules they may go.
type drainSource struct {
	groups, now                                            string
	threshold                                              float64
	unneeded                                               time.Duration
	parallelism, drains                                    int32
	systemPods, localStorage, customControllers, daemonSet bool
	noPods                                                 bool
	filters                                                filterFlags
	taints                                                 scaleup.StartupTaints
}

// addTo adds flags of Cluster Autoscaler under their names.
func (s *drainSource) addTo(flags *pflag.FlagSet) {
	s.filters.addTo(flags)
	s.taints.AddFlags(flags)
	flags.StringVar(&s.groups, "groups", "",
		"file with node groups, kind "+nodegroup.Kind+"; without it they are derived from the nodes, and may become empty")
	flags.StringVar(&s.now, "now", "", "plan as of this time, such as 2026-02-17T09:00:00Z (default: now)")
	flags.Float64Var(&s.threshold, "scale-down-utilization-threshold", 0.5, "nodes of which more is requested stay")
	flags.DurationVar(&s.unneeded, "scale-down-unneeded-time", 10*time.Minute,
		"the time for which a node is unneeded before it is removed")
	flags.Int32Var(&s.parallelism, "max-scale-down-parallelism", 10, "nodes that are removed at the same time")
	flags.Int32Var(&s.drains, "max-drain-parallelism", 5, "and how many of them with pods to move")
	flags.BoolVar(&s.noPods, "no-pods", false, noPodsHelp)
	flags.BoolVar(&s.systemPods, "skip-nodes-with-system-pods", true, "nodes with pods of kube-system stay")
	flags.BoolVar(&s.localStorage, "skip-nodes-with-local-storage",
		true, "nodes with pods that store data on the node stay")
	flags.BoolVar(&s.customControllers, "skip-nodes-with-custom-controller-pods",
		true, "nodes with pods of controllers that are not built in stay")
	flags.BoolVar(&s.daemonSet, "ignore-daemonsets-utilization",
		false, "pods of DaemonSets do not count as utilization")
}

// time returns the time of the plan.
func (s *drainSource) time() (time.Time, error) {
	if s.now == "" {
		return time.Now(), nil
	}
	now, err := time.Parse(time.RFC3339, s.now)
	if err != nil {
		return now, usagef("--now %q: must be a time such as 2026-02-17T09:00:00Z", s.now)
	}
	return now, nil
}

func (s *drainSource) options() *loadlinev1.DrainOptions {
	wait := int32(s.unneeded.Seconds())
	return &loadlinev1.DrainOptions{
		SkipNodesWithSystemPods:           &s.systemPods,
		SkipNodesWithLocalStorage:         &s.localStorage,
		SkipNodesWithCustomControllerPods: &s.customControllers,
		ScaleDownUtilizationThreshold:     &s.threshold,
		ScaleDownUnneededTimeS:            &wait,
		MaxScaleDownParallelism:           &s.parallelism,
		MaxDrainParallelism:               &s.drains,
		IgnoreDaemonsetsUtilization:       &s.daemonSet,
	}
}

// drainFlags are the flags of `drain`.
type drainFlags struct {
	sourceFlags
	drainSource
	engine engineFlags
	output outputFlag
}

func (a *app) newDrain() *cobra.Command {
	var f drainFlags
	command := &cobra.Command{
		Use:   "drain",
		Short: "Show which nodes could go, together, and what keeps each other node",
		Long: `Show which nodes could go, together: all their pods fit on nodes that stay, no disruption budget is
exceeded, and groups keep their minimum. For each node that goes, where its pods would move; for each
that stays, why, and what would have to change.

Nothing is changed, on a live cluster neither. Rules, reasons and flags are those of Cluster Autoscaler.

A dump should hold what decides:
'kubectl get nodes,pods,pdb,rs,sts,ds,jobs,rc,namespaces,pv,pvc,storageclasses,csinodes,csidrivers,deviceclasses -A
-o json'.
A kind of which it holds nothing counts as one of which there is nothing.`,
		Example: `  loadline drain -f cluster.json
  loadline drain --groups groups.yaml -o html > drain.html`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.output.check(); err != nil {
				return err
			}
			d, err := f.ask(cmd.Context(), &f.sourceFlags, f.engine, a.streams.In)
			if err != nil {
				return err
			}
			return f.output.write(a.streams.Out, d.forms())
		},
	}
	flags := command.Flags()
	addSourceFlags(flags, &f.sourceFlags)
	f.drainSource.addTo(flags)
	addEngineFlag(flags, &f.engine)
	addOutputFlag(flags, &f.output, formTable, formJSON, formYAML, formHTML)
	return command
}

// drainPlan is a plan, and what it was asked with.
type drainPlan struct {
	*loadlinev1.PlanDrainResponse
	now     time.Time
	options *loadlinev1.DrainOptions
	// notes say what holds for the plan beside itself, each in a sentence.
	notes   []string
	leftOut leftout.List
	// consolidation is what consolidation makes of the node asked about; empty: that was not asked.
	consolidation string
}

// ask has a plan made.
func (s *drainSource) ask(ctx context.Context, source *sourceFlags, engine engineFlags,
	stdin io.Reader) (*drainPlan, error) {
	now, err := s.time()
	if err != nil {
		return nil, err
	}
	fit, err := s.filters.fit()
	if err != nil {
		return nil, err
	}
	if err := s.taints.Check(); err != nil {
		return nil, usageError{err}
	}
	file, err := loadGroups(s.groups)
	if err != nil {
		return nil, err
	}
	groups := drain.NewGroups(file.Groups)
	c, err := load(ctx, source, engine, stdin, loadOptions{planning: true, fit: fit, node: groups.AddNode})
	if err != nil {
		return nil, err
	}
	defer c.close()
	if err := c.withoutPods(source, s.noPods); err != nil {
		return nil, err
	}
	d := &drainPlan{now: now, options: s.options()}
	if s.groups == "" {
		d.notes = append(d.notes, "Without --groups, node groups are derived from the nodes, and may become empty.")
	}
	if source.fromFile() {
		d.assume(c)
	}
	client := loadlinev1.NewAutoscalerClient(c.conn)
	err = c.view.Ask(ctx, func(at *loadlinev1.Changes) error {
		request := &loadlinev1.PlanDrainRequest{Cluster: &loadlinev1.PlanDrainRequest_Changes{Changes: at},
			NowS: now.Unix(), Options: d.options, Fit: fit, DeriveGroups: s.groups == "",
			StartupTaints: s.taints.Proto()}
		var err error
		if request.Groups, err = groups.Proto(c.view.Slot); err != nil {
			return err
		}
		d.PlanDrainResponse, err = client.PlanDrain(ctx, request)
		return err
	})
	if err != nil {
		return nil, engineError(err)
	}
	c.leaveOut(&d.leftOut)
	d.leftOut.AddAnswer(d.PlanDrainResponse)
	return d, nil
}

// drainKinds are the kinds without which nothing is removed, as kubectl names them.
var drainKinds = map[string]string{"PodDisruptionBudget": "pdb", "ReplicaSet": "rs", "StatefulSet": "sts",
	"DaemonSet": "ds", "Job": "jobs"}

// assume takes a dump for all there is.
func (d *drainPlan) assume(c *cluster) {
	var lacking []string
	for _, kind := range slices.Sorted(maps.Keys(drainKinds)) {
		if c.counts.Objects[kind] == 0 {
			lacking = append(lacking, drainKinds[kind])
			d.options.MayBeIncomplete = append(d.options.MayBeIncomplete, view.Kinds[kind])
		}
	}
	if len(lacking) > 0 {
		d.notes = append(d.notes, fmt.Sprintf("The dump holds no %s: there may be some.", orList(lacking)))
	}
}

// orList joins words: "a, b or c".
func orList(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	out := words[0]
	for _, word := range words[1:last] {
		out += ", " + word
	}
	return out + " or " + words[last]
}

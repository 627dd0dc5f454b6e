package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/leftout"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/view"
)

// drainSource says which nodes are asked about, and by which rules they may go.
type drainSource struct {
	groups, now string
	noPods      bool
	settings    settings
}

// addTo adds the flags of a command; those of Cluster Autoscaler have their names.
func (s *drainSource) addTo(flags *pflag.FlagSet, command string) {
	s.settings.addTo(flags, command, config.Default())
	flags.StringVar(&s.groups, "groups", "",
		"file with node groups, kind "+nodegroup.Kind+"; without it they are derived from the nodes, and may become empty")
	addNowFlag(flags, &s.now)
	flags.BoolVar(&s.noPods, "no-pods", false, noPodsHelp)
}

// defaultTime is the time of an answer without --now.
const defaultTime = "that of the loop of a recording, else now"

func addNowFlag(flags *pflag.FlagSet, now *string) {
	flags.StringVar(now, "now", "", "plan as of this time, such as 2026-02-17T09:00:00Z (default: "+defaultTime+")")
}

// lastYear is one from which on times that are later by some settings may have no form in JSON.
const lastYear = 9000

// timeOf returns the time of a plan, which --now says; zero: it is not given.
func timeOf(now string) (time.Time, error) {
	if now == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, now)
	if err != nil {
		return at, usagef("--now %q: must be a time such as 2026-02-17T09:00:00Z", now)
	}
	if at.Year() >= lastYear {
		return at, usagef("--now %q: must be before the year %d", now, lastYear)
	}
	return at, nil
}

// drainFlags are the flags of `drain`.
type drainFlags struct {
	inquiry
	drainSource
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
			if err := cmp.Or(f.output.check(), f.settings.read(&f.engine)); err != nil {
				return err
			}
			d, err := f.ask(cmd.Context(), &f.sourceFlags, f.engine, a.streams.In)
			if err != nil {
				return err
			}
			a.warn(d.warnings)
			return f.output.write(a.streams.Out, d.forms())
		},
	}
	flags := command.Flags()
	f.drainSource.addTo(flags, "drain")
	f.nodes.addTo(flags)
	f.inquiry.addTo(flags, formTable, formJSON, formYAML, formHTML)
	f.output.ordered = true
	return command
}

// drainPlan is a plan, and what it was asked with.
type drainPlan struct {
	*loadlinev1.PlanDrainResponse
	now     time.Time
	options *loadlinev1.DrainOptions
	// notes say what holds for the plan beside itself, each in a sentence.
	notes    []string
	leftOut  leftout.List
	warnings []string
	// consolidation is what consolidation makes of the node asked about; empty: that was not asked.
	consolidation string
	// nodes are those that are listed; nil: all are.
	nodes *nodeSelector
}

// ask has a plan made.
func (s *drainSource) ask(ctx context.Context, source *sourceFlags, engine engineFlags,
	stdin io.Reader) (*drainPlan, error) {
	now, err := timeOf(s.now)
	if err != nil {
		return nil, err
	}
	loaded, err := s.settings.filters(ctx)
	if err != nil {
		return nil, err
	}
	question := asking{source: source, engine: engine, settings: s.settings.deciding(config.ScaleDownDecision),
		loaded: loaded, groups: s.groups, mayLackPods: s.noPods, load: loadOptions{now: now}}
	c, err := question.gather(ctx, stdin)
	if err != nil {
		return nil, err
	}
	defer c.close()
	p := c.planner
	d := &drainPlan{now: c.now, options: p.Settings.Drain, nodes: &source.nodes,
		notes: append(source.nodes.notes(), c.podNotes(source)...)}
	if s.groups == "" {
		d.notes = append(d.notes, derivedNote)
	}
	if source.fromFile() {
		d.assume(c.cluster)
	}
	_, err = p.Put(ctx, c.loop, func(asked *plan.Plan) (err error) {
		q := asked.Question
		d.options = q.GetDrain()
		d.PlanDrainResponse, err = p.Client.PlanDrain(ctx, &loadlinev1.PlanDrainRequest{
			Cluster: &loadlinev1.PlanDrainRequest_Changes{Changes: q.GetChanges()}, NowS: q.GetNowS(), SeenS: q.GetSeenS(),
			Groups: asked.DrainGroups(), Options: d.options, Fit: q.GetFit(), DeriveGroups: s.groups == "",
			StartupTaints: q.GetStartupTaints(), Pods: q.GetPods(), Waiting: q.GetWaiting()})
		return err
	})
	if err != nil {
		return nil, engineError(err)
	}
	c.correctAdvice(d.PlanDrainResponse)
	d.notes = append(d.notes, noteNodesAsMachines(d.GetOtherNodes())...)
	d.warnings = c.loop.Warnings
	if movesPods(d.PlanDrainResponse) {
		d.notes = append(d.notes, noteMachines(c.cluster)...)
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
		if _, known := c.counts.Objects[kind]; !known {
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

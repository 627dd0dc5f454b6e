package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/leftout"
	"loadline.dev/shim/scaleup"
	"loadline.dev/shim/sizing"
)

// planFlags are the flags of `plan`.
type planFlags struct {
	inquiry
	drainSource
	usage  string
	record string
}

func (a *app) newPlan() *cobra.Command {
	var f planFlags
	command := &cobra.Command{
		Use:   "plan",
		Short: "Show what one loop of an autoscaler would decide",
		Long: `Show what one loop of an autoscaler would decide: which pods that wait find room on nodes that are there
or on their way, which node groups grow for the others and for slack, and which nodes could go; while
groups grow none starts. Nothing is changed.

Groups grow together, by the cheapest mix, and those without a price, by themselves or by a price list,
do not. With a rank policy, --rank-preset or --strategies one group grows, the one that ranks best, as
with Cluster Autoscaler. Groups that are derived from the nodes may grow without limit. With --record all
that the engine is told and asked is written to a file, from which 'loadline replay' asks it again.`,
		Example: `  loadline plan -f cluster.json
  loadline plan --groups groups.yaml --prices aws-us-east-1.csv
  loadline plan --groups groups.yaml --strategies priority,least-waste
  loadline plan -f cluster.json --groups groups.yaml --record loop.rec
  loadline replay loop.rec`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmp.Or(f.output.check(), f.settings.read(&f.engine)); err != nil {
				return err
			}
			l, err := f.ask(cmd.Context(), a.streams.In)
			if err != nil {
				return err
			}
			a.warn(l.warnings)
			return f.output.write(a.streams.Out, l.forms())
		},
	}
	flags := command.Flags()
	f.drainSource.addTo(flags, "plan")
	flags.StringVar(&f.record, "record", "", "file to write down what the engine is told and asked")
	flags.StringVar(&f.usage, "usage", "", "profiles of what pods use by the hour, as `FILE` of 'loadline usage "+
		"--output', in place of those of a live cluster: for plans that count expected use")
	f.inquiry.addTo(flags, formTable, formJSON, formYAML, formHTML)
	return command
}

// loopPlan is what one loop decides, and what it was asked with.
type loopPlan struct {
	*loadlinev1.PlanLoopResponse
	pods     []string                       // names, or of several equal pods that of one; by position in the question
	entry    func(position int32) []*v1.Pod // all equal pods
	refused  map[string]string              // why a group takes no pod at all, where groups were ranked
	wasted   bool                           // groups were ranked by what they waste
	groups   []string                       // names, by position in the question
	slack    *slackPlan
	drain    *drainPlan
	sizes    *sizes         // nil: no group is sized by how full it is
	refusals []groupRefusal // why groups do not take the pods that are left over
	remarks  []string       // about pods that are not planned for as others are, and about derived groups
	warnings []string
	leftOut  leftout.List
}

func (f *planFlags) ask(ctx context.Context, stdin io.Reader) (l *loopPlan, err error) {
	now, err := timeOf(f.now)
	if err != nil {
		return nil, err
	}
	profiles, err := (&useFlags{file: f.usage}).profiles(ctx, &f.sourceFlags)
	if err != nil {
		return nil, err
	}
	record, finish, err := f.recording()
	if err != nil {
		return nil, err
	}
	defer func() { err = finish(err) }()
	remarks := f.settings.remarks()
	loaded, err := f.settings.ReadFiles()
	if err != nil {
		return nil, usageError{err}
	}
	warnBeside(ctx, loaded.Warnings...)
	question := asking{source: &f.sourceFlags, engine: f.engine, settings: f.settings.once(f.settings.Decisions...),
		loaded: loaded, groups: f.groups, mayLackPods: f.noPods,
		load: loadOptions{now: now, at: remarks.SetTime, empty: true, wrap: record, profiles: profiles,
			pod: func(pod *v1.Pod) { remarks.AddWaiting(pod) }}}
	c, err := question.gather(ctx, stdin)
	if err != nil {
		return nil, err
	}
	defer c.close()
	return f.plan(ctx, c, remarks)
}

// plan has the engine plan a loop.
func (f *planFlags) plan(ctx context.Context, c *question, remarks *scaleup.Remarks) (l *loopPlan, err error) {
	p, o := c.planner, c.loop
	l = &loopPlan{drain: &drainPlan{now: c.now}}
	if f.groups == "" {
		if o, err = c.derived(ctx, p, nil); err != nil {
			return nil, err
		}
	}
	if f.fromFile() {
		l.drain.options = p.Settings.Drain
		l.drain.assume(c.cluster)
	}
	if err := p.Plan(ctx, o); err != nil {
		return nil, engineError(err)
	}
	l.PlanLoopResponse, l.drain.options = o.Answer(), o.Plan.Question.GetDrain()
	if err := l.keepNames(o); err != nil {
		return nil, err
	}
	err = c.view.Ask(ctx, func(at *loadlinev1.Changes) error {
		return l.askRefusals(ctx, c.cluster, p.Client, at, o.Plan)
	})
	if err != nil {
		return nil, engineError(err)
	}
	c.leaveOut(&l.leftOut)
	l.remarks = slices.Concat(remarks.Lines(), c.podNotes(&f.sourceFlags), l.noteMachines(c.cluster, o))
	l.remarks = append(l.remarks, noteNodesAsMachines(l.GetScaleDown().GetOtherNodes())...)
	if f.groups == "" {
		l.remarks = append(l.remarks, derivedNotes...)
	}
	l.warnings = append(o.Warnings, f.settings.growthLines(l.PlanLoopResponse)...)
	f.split(l, o)
	c.correctAdvice(l.drain.PlanDrainResponse)
	return l, l.slack.countPresent(ctx, c.cluster)
}

// growthLines says what a loop that grows does not read, and why no group of the cluster grows, whatever waits.
func (s *settings) growthLines(loop *loadlinev1.PlanLoopResponse) (lines []string) {
	if s.ScaleUp.FollowsPriorities() {
		lines = append(lines, noPriorities)
	}
	return append(lines, heldLines(loop)...)
}

// heldLines says why no group of the cluster grows, whatever waits.
func heldLines(loop *loadlinev1.PlanLoopResponse) []string {
	if held := loop.GetFleet().GetHeld(); held != "" {
		return []string{"no node group grows: " + held}
	}
	return nil
}

// noPriorities is what is said where the autoscaler would read priorities of node groups from the API server.
const noPriorities = "the ConfigMap cluster-autoscaler-priority-expander, which the autoscaler follows, is not read: " +
	"all node groups are equal for the strategy priority. Copy its priorities into a file of kind RankPolicy, and name " +
	"that by --rank-policy"

// askRefusals asks, where pods are left over, why groups do not take them.
func (l *loopPlan) askRefusals(ctx context.Context, c *cluster, client loadlinev1.AutoscalerClient,
	at *loadlinev1.Changes, asked *plan.Plan) error {
	left := map[int32]int64{}
	for _, run := range l.GetScaleUp().GetUnplaced() {
		if int(run.GetPod()) < len(l.pods) { // others are of nodes that are being deleted
			left[run.GetPod()] += int64(run.GetCount())
		}
	}
	l.refusals, l.refused = nil, map[string]string{}
	helpsNone := func(o *loadlinev1.RankedOption) bool {
		return o.GetOutcome() == loadlinev1.RankedOption_HELPS_NO_POD
	}
	if len(left) == 0 && !slices.ContainsFunc(l.GetRanking().GetOptions(), helpsNone) {
		return nil
	}
	problem := asked.Problem()
	problem.Cluster = &loadlinev1.ScaleUpProblem_Changes{Changes: at}
	answer, err := client.EstimateScaleUp(ctx, &loadlinev1.EstimateScaleUpRequest{Problem: problem, WithRefusals: true})
	if err != nil {
		return err
	}
	estimate := estimated{problem: problem, answer: answer, pods: slices.Clone(l.pods)}
	for position, count := range left {
		all := int64(asked.Question.GetPods()[position].GetCount())
		estimate.pods[position] = l.oneOf(position, all-count) // the first ones have a place
	}
	models, err := estimate.models()
	if err != nil {
		return err
	}
	maxima, err := c.maxima(ctx, asked, l.PlanLoopResponse, &estimate, models)
	if err != nil {
		return err
	}
	more := map[string]int64{}
	for _, growth := range l.GetGrowth() {
		more[growth.GetNodeGroup()] = growthOf(growth)
	}
	for i, group := range problem.GetGroups() {
		held := l.heldAt(i, group, more[group.GetNodeGroup()], maxima, models[group.GetNodeGroup()])
		l.refusals = append(l.refusals, estimate.refusals(i, left, held)...)
		if all := estimate.refusals(i, estimate.leftBy(i), held); len(all) > 0 {
			l.refused[group.GetNodeGroup()] = all[0].String()
		}
	}
	return nil
}

// keepNames keeps the names of the pods and groups of a question.
func (l *loopPlan) keepNames(o *plan.Loop) (err error) {
	for _, group := range o.Groups {
		l.groups = append(l.groups, group.ID)
	}
	l.entry = o.Entry
	l.wasted = slices.Contains(o.Plan.Question.GetRanking().GetStrategies(), loadlinev1.RankPolicy_LEAST_WASTE)
	l.pods, err = podNames(o.Plan.Question.GetPods())
	return err
}

// split gives each part of the answer to what shows it.
func (f *planFlags) split(l *loopPlan, o *plan.Loop) {
	l.leftOut.Add(o.Pods.LeftOut()...)
	o.SizePods.NameLeftOut(sizing.FieldOfLoop, l.PlanLoopResponse.GetLeftOut())
	l.leftOut.AddAnswer(l.PlanLoopResponse)
	l.slack = &slackPlan{PlanSlackResponse: l.GetSlack(), rate: string(f.settings.Slack.ExtraCapacityMinRate),
		basis: f.settings.Slack.Basis, pending: o.Plan.Waiting()}
	l.warnings = append(l.warnings, l.slack.wrong()...)
	l.drain.PlanDrainResponse = l.GetScaleDown()
	if sized := o.Plan.Question.GetSized(); len(sized) > 0 {
		l.sizes = &sizes{asked: sized, pods: o.SizePods, response: l.GetSize()}
	}
}

func podNames(pods []*loadlinev1.PendingPods) ([]string, error) {
	names := make([]string, len(pods))
	for i, entry := range pods {
		var pod v1.Pod
		if err := pod.Unmarshal(entry.GetPod().GetPod()); err != nil {
			return nil, err
		}
		names[i] = podOf(pod.Namespace, pod.Name)
	}
	return names, nil
}

// recording returns what to wrap the engine in, and what ends the file, with what came of the plan. A recording takes
// the place of an older one only when there is a plan.
func (f *planFlags) recording() (wrap func(engine.Conn) engine.Conn, finish func(error) error, err error) {
	if f.record == "" {
		return nil, func(err error) error { return err }, nil
	}
	file, err := os.CreateTemp(filepath.Dir(f.record), filepath.Base(f.record)+".*")
	if err != nil {
		return nil, nil, err
	}
	finish = func(err error) error {
		err = errors.Join(err, file.Chmod(0o644), file.Close())
		if err == nil {
			err = os.Rename(file.Name(), f.record)
		}
		if err != nil {
			os.Remove(file.Name())
		}
		return err
	}
	return func(conn engine.Conn) engine.Conn { return engine.Record(conn, file) }, finish, nil
}

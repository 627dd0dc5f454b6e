package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/leftout"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/slack"
)

// Forms of output of `slack` beside those that all commands have.
const (
	formBuffers     = "capacitybuffer"
	formDeployments = "deployments"
)

// slackFlags are the flags of `slack`.
type slackFlags struct {
	inquiry
	settings settings
	groups   string
	now      string
	literal  bool
	state    string
	noPods   bool
}

// slackHelp is the help of `slack`.
const slackHelp = `Tell how much room to keep free for pods to come, so that they need not wait for a node: how many
placeholders of which size, which of them fit now, and which nodes are missing for the rest. Nothing is
changed.

Nodes that take the same pods and are of one size are a class. Each class keeps a share of what its pods
request, or of what its nodes offer, in pieces that are no larger than a part of a node. Versions 2a, 2b
and pareto also keep room for the biggest pods by themselves: for the one with the most cpu and the one
with the most memory, for one as large as both together, or for each that no other one exceeds. Pods and
workloads with the annotation loadline.dev/slack-copies: "N" have N copies kept free, in namespaces with
the label loadline.dev/slack-copies=allowed, within --slack-max-copies and its like; loadline.dev/slack:
"false" leaves a pod out of the biggest ones. --slack-class and --slack-group switch slack off, or bound
it, for some nodes. Nodes with GPUs come for pods that need one, and not for room, unless
--slack-buy-extended-resources says so.

With --state FILE placeholders stay from run to run, as the autoscaler keeps them; where each run plans anew, a
pod that asks for a little more can change the size of all of them.

-o capacitybuffer and -o deployments print objects to apply, and apply nothing: CapacityBuffers of
Cluster Autoscaler or Karpenter, or Deployments of pods that give way to all others.`

func (a *app) newSlack() *cobra.Command {
	var f slackFlags
	command := &cobra.Command{
		Use:   "slack",
		Short: "Tell how much room to keep free for pods to come, where it is, and which nodes are missing for it",
		Long:  slackHelp,
		Example: `  loadline slack --extra-capacity-min-rate 10%
  loadline slack -f cluster.json --slack-version pareto -o html > slack.html
  loadline slack -o deployments | kubectl apply --server-side -f -`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out, err := f.ask(cmd.Context(), a.streams.In)
			if err != nil {
				return err
			}
			a.warn(out.warnings)
			if err := f.print(a.streams.Out, out); err != nil || f.state == "" {
				return err
			}
			return slack.SaveState(f.state, out.GetState())
		},
	}
	flags := command.Flags()
	f.settings.addTo(flags, "slack", config.Default())
	flags.StringVar(&f.groups, "groups", "",
		"file with the node groups that may grow, kind "+nodegroup.Kind+
			"; without it they are derived from the nodes, and may grow without limit")
	flags.BoolVar(&f.literal, "literal", false, "also show what the formulas of the proposal come to as they stand")
	flags.StringVar(&f.state, "state", "", "file with what the plan before left, kind "+slack.StateKind+
		": placeholders stay from run to run; made and written again by each run (default: each run plans anew)")
	addNowFlag(flags, &f.now)
	flags.BoolVar(&f.noPods, "no-pods", false, noPodsHelp)
	f.inquiry.addTo(flags, formTable, formJSON, formYAML, formHTML, formBuffers, formDeployments)
	f.output.nameless = true
	return command
}

func (f *slackFlags) print(w io.Writer, plan *slackPlan) error {
	switch f.output.form {
	case formBuffers:
		return plan.manifests(w, slack.CapacityBuffers)
	case formDeployments:
		return plan.manifests(w, slack.Deployments)
	}
	return f.output.write(w, plan.forms())
}

// former returns what the plan before left. One that nobody has kept starts anew: the engine's own state supposes that
// the last plan was carried out.
func (f *slackFlags) former() (*loadlinev1.SlackState, error) {
	if f.state == "" {
		return &loadlinev1.SlackState{NextId: 1}, nil
	}
	return slack.LoadState(f.state)
}

// slackPlan is a plan of slack, and what is known of the pods that it is for.
type slackPlan struct {
	*loadlinev1.PlanSlackResponse
	rate      string
	basis     string
	namespace string
	pending   int
	forPods   int64    // new nodes that come for pods that wait; 0 where `plan` tells them
	remarks   []string // about pods that are not planned for as others are; nil where `plan` tells them
	known     *slack.Gatherer
	warnings  []string
	leftOut   leftout.List
}

func (f *slackFlags) ask(ctx context.Context, stdin io.Reader) (*slackPlan, error) {
	if err := cmp.Or(f.output.check(), f.settings.read(&f.engine)); err != nil {
		return nil, err
	}
	former, err := f.former()
	if err != nil {
		return nil, err
	}
	now, err := timeOf(f.now)
	if err != nil {
		return nil, err
	}
	loaded, err := f.settings.ReadFiles()
	if err != nil {
		return nil, usageError{err}
	}
	warnBeside(ctx, loaded.Warnings...)
	known, remarks := slack.NewGatherer(), f.settings.remarks()
	question := asking{source: &f.sourceFlags, engine: f.engine,
		settings: f.settings.once(config.ScaleUpDecision, config.SlackDecision),
		loaded:   loaded, groups: f.groups, mayLackPods: f.noPods,
		load: loadOptions{now: now, at: remarks.SetTime, empty: true, whole: true, object: known.AddObject,
			pod: func(pod *v1.Pod) {
				known.AddPod(pod)
				remarks.AddWaiting(pod)
			}}}
	c, err := question.gather(ctx, stdin)
	if err != nil {
		return nil, err
	}
	defer c.close()
	o := c.loop
	if f.groups == "" && len(c.watched.Nodes) == 0 {
		return nil, errors.New("the cluster has no nodes, and no node groups are named")
	}
	if f.groups == "" {
		if o, err = c.derived(ctx, c.planner, nil); err != nil {
			return nil, err
		}
	}
	out := &slackPlan{rate: string(f.settings.Slack.ExtraCapacityMinRate), basis: f.settings.Slack.Basis,
		namespace: f.engine.slackNamespace, known: known,
		remarks: append(remarks.Lines(), c.podNotes(&f.sourceFlags)...)}
	loop, err := c.planner.Put(ctx, o, func(asked *plan.Plan) error { return f.put(ctx, c.planner, asked, former, out) })
	if err != nil {
		return nil, engineError(err)
	}
	out.pending = loop.Waiting()
	c.leaveOut(&out.leftOut)
	out.leftOut.Add(o.Pods.LeftOut()...)
	out.leftOut.AddAnswer(loop.Answer)
	out.warnings = slices.Concat(o.Warnings, f.settings.growthLines(loop.Answer), out.wrong())
	return out, out.countPresent(ctx, c.cluster)
}

// countPresent takes the nodes back whose pods request more than there is only with those that a plan puts there.
func (p *slackPlan) countPresent(ctx context.Context, c *cluster) (err error) {
	if after := p.GetOvercommittedNodes(); len(after) > 0 {
		p.OvercommittedNodes, err = c.overcommitted(ctx, after)
	}
	return err
}

// put asks for a loop that grows for pods and slack, and takes what it says of slack.
func (f *slackFlags) put(ctx context.Context, p *plan.Planner, asked *plan.Plan, former *loadlinev1.SlackState,
	out *slackPlan) (err error) {
	q := asked.Question
	q.State = &loadlinev1.LoopState{Slack: former}
	if asked.Answer, err = p.Client.PlanLoop(ctx, q); err != nil {
		return err
	}
	if out.PlanSlackResponse = asked.Answer.GetSlack(); out.PlanSlackResponse == nil {
		return errors.New("the plan does not tell of slack: the engine is of an older version than this command")
	}
	out.State = asked.Answer.GetState().GetSlack()
	for _, growth := range asked.Answer.GetGrowth() {
		out.forPods += growth.GetNodesForPods()
	}
	if f.literal { // of which loops know nothing
		answer, err := p.Client.PlanSlack(ctx, &loadlinev1.PlanSlackRequest{Changes: q.GetChanges(), Policy: q.GetSlack(),
			State: former, GroupsKnown: true, Fit: q.GetFit(), NowSeconds: q.GetNowS(), StartupTaints: q.GetStartupTaints(),
			Literal: true})
		if err != nil {
			return err
		}
		out.Literal = answer.GetLiteral()
	}
	return nil
}

// manifests prints objects that keep the slack.
func (p *slackPlan) manifests(w io.Writer, objects func([]slack.Shape) []any) error {
	shapes, warnings := p.known.Shapes(p.PlanSlackResponse, p.namespace)
	if len(warnings) > 0 {
		return fmt.Errorf("%s", strings.Join(warnings, "\n"))
	}
	data, err := slack.YAML(objects(shapes))
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

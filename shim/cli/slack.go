package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/scaleup"
	"loadline.dev/shim/slack"
)

// Forms of output of `slack` beside those that all commands have.
const (
	formBuffers     = "capacitybuffer"
	formDeployments = "deployments"
)

// slackFlags are the flags of `slack`.
type slackFlags struct {
	sourceFlags
	slackPolicyFlags
	groups, engine       string
	placeholderNamespace string
	literal              bool
	output               outputFlag
}

// slackPolicyFlags say how much room is kept free.
type slackPolicyFlags struct {
	rate, basis, version string
	granularity, most    int32
}

func (f *slackPolicyFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.rate, "extra-capacity-min-rate", "10%", "room to keep free at least, such as 10% or 0.1")
	flags.StringVar(&f.basis, "slack-basis", "requested", "what that is a share of: requested, capacity")
	flags.StringVar(&f.version, "slack-version", "1", "what is kept free beside equal pieces: 1 (nothing), 2a, 2b, pareto")
	flags.Int32Var(&f.granularity, "slack-granularity", 5, "a piece is at most one part in so many of a node, 1 to 1000")
	flags.Int32Var(&f.most, "max-placeholders", 10000, "pieces of a class, and copies of a pod, at most")
}

func (a *app) newSlack() *cobra.Command {
	var f slackFlags
	command := &cobra.Command{
		Use:   "slack",
		Short: "Tell how much room to keep free for pods to come, where it is, and which nodes are missing for it",
		Long: `Tell how much room to keep free for pods to come, so that they need not wait for a node: how many placeholders of which
size, which of them fit now, and which nodes are missing for the rest. Nothing is changed.

Nodes that take the same pods and are of one size are a class. Each class keeps a share of what its pods request, or of what its
nodes offer, in pieces that are no larger than a part of a node. Versions 2a, 2b and pareto also keep room for the biggest pods
by themselves: for the one with the most cpu and the one with the most memory, for one as large as both together, or for each
that no other one exceeds. Pods and workloads with the annotation loadline.dev/slack-copies: "N" have N copies kept free;
loadline.dev/slack: "false" leaves a pod out of the biggest ones.

-o capacitybuffer and -o deployments print objects to apply, and apply nothing: CapacityBuffers of Cluster Autoscaler or
Karpenter, or Deployments of pods that give way to all others.`,
		Example: `  loadline slack --extra-capacity-min-rate 10%
  loadline slack -f cluster.json --slack-version pareto -o html > slack.html
  loadline slack -o deployments | kubectl apply --server-side -f -`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			plan, err := f.ask(cmd.Context(), a.streams.In)
			if err != nil {
				return err
			}
			for _, warning := range plan.warnings {
				fmt.Fprintf(a.streams.Err, "warning: %s\n", escapeLines(warning))
			}
			switch f.output.form {
			case formBuffers:
				return plan.manifests(a.streams.Out, slack.CapacityBuffers)
			case formDeployments:
				return plan.manifests(a.streams.Out, slack.Deployments)
			}
			return f.output.write(a.streams.Out, plan.forms())
		},
	}
	flags := command.Flags()
	addSourceFlags(flags, &f.sourceFlags)
	f.slackPolicyFlags.addTo(flags)
	flags.StringVar(&f.groups, "groups", "", "file with the node groups that may grow, kind "+nodegroup.Kind+" (default: every class with nodes may)")
	flags.StringVar(&f.placeholderNamespace, "slack-namespace", slack.DefaultNamespace, "namespace of the objects that are printed")
	flags.BoolVar(&f.literal, "literal", false, "also show what the formulas of the proposal come to as they stand")
	addEngineFlag(flags, &f.engine)
	addOutputFlag(flags, &f.output, formTable, formJSON, formYAML, formHTML, formBuffers, formDeployments)
	return command
}

// policy reads the flags.
func (f *slackPolicyFlags) policy() (*loadlinev1.SlackPolicy, error) {
	rate, err := parseShare(f.rate)
	if err != nil {
		return nil, usagef("--extra-capacity-min-rate %q: must be a number such as 0.1, or a percentage such as 10%%", f.rate)
	}
	policy := &loadlinev1.SlackPolicy{ExtraCapacityMinRate: proto.Float64(rate), Granularity: f.granularity, MaxPlaceholders: f.most}
	var known bool
	if policy.Basis, known = map[string]loadlinev1.SlackPolicy_Basis{
		"requested": loadlinev1.SlackPolicy_REQUESTED, "capacity": loadlinev1.SlackPolicy_CAPACITY}[f.basis]; !known {
		return nil, usagef("--slack-basis %q: must be requested or capacity", f.basis)
	}
	if policy.Reserve, known = map[string]loadlinev1.SlackPolicy_Reserve{"1": loadlinev1.SlackPolicy_NONE, "2a": loadlinev1.SlackPolicy_BIGGEST,
		"2b": loadlinev1.SlackPolicy_HULL, "pareto": loadlinev1.SlackPolicy_PARETO}[f.version]; !known {
		return nil, usagef("--slack-version %q: must be 1, 2a, 2b or pareto", f.version)
	}
	if f.granularity < 1 || f.most < 1 {
		return nil, usagef("--slack-granularity %d, --max-placeholders %d: must be at least 1", f.granularity, f.most)
	}
	return policy, nil
}

// parseShare reads 0.1 or 10%.
func parseShare(text string) (float64, error) {
	percent, isPercent := strings.CutSuffix(text, "%")
	value, err := strconv.ParseFloat(percent, 64)
	if isPercent {
		value /= 100
	}
	return value, err
}

// slackPlan is a plan of slack, and what is known of the pods that it is for.
type slackPlan struct {
	*loadlinev1.PlanSlackResponse
	rate      string
	basis     string
	namespace string
	pending   int
	known     *slack.Gatherer
	warnings  []string
}

func (f *slackFlags) ask(ctx context.Context, stdin io.Reader) (*slackPlan, error) {
	if err := f.output.check(); err != nil {
		return nil, err
	}
	policy, err := f.policy()
	if err != nil {
		return nil, err
	}
	var file nodegroup.File
	if f.groups != "" {
		if file, err = nodegroup.Load(f.groups); err != nil {
			return nil, err
		}
	}
	waiting, known := scaleup.New(file.Groups), slack.NewGatherer()
	c, err := load(ctx, &f.sourceFlags, f.engine, stdin, loadOptions{planning: true, empty: true, node: waiting.AddNode, object: known.AddObject,
		pod: func(pod *v1.Pod) {
			if pod.Labels[slack.PlaceholderLabel] == "" {
				waiting.AddPod(pod)
			}
			known.AddPod(pod)
		}})
	if err != nil {
		return nil, err
	}
	defer c.close()
	problem, err := waiting.Problem()
	if err != nil {
		return nil, err
	}
	// A plan that is not carried out starts anew: the engine's own state supposes that the last one was.
	request := &loadlinev1.PlanSlackRequest{Policy: policy, State: &loadlinev1.SlackState{NextId: 1}, Pods: problem.GetPods(),
		GroupsKnown: f.groups != "", Groups: problem.GetGroups(), DaemonPods: problem.GetDaemonPods(), NowSeconds: time.Now().Unix(), Literal: f.literal}
	plan := &slackPlan{rate: f.rate, basis: f.basis, namespace: f.placeholderNamespace, pending: waiting.Waiting(), known: known, warnings: file.Warnings}
	err = c.view.Ask(ctx, func(at *loadlinev1.Changes) error {
		request.Changes = at
		var err error
		plan.PlanSlackResponse, err = loadlinev1.NewAutoscalerClient(c.conn).PlanSlack(ctx, request)
		return err
	})
	if err != nil {
		return nil, engineError(err)
	}
	for _, wrong := range plan.GetErrors() {
		plan.warnings = append(plan.warnings, fmt.Sprintf("%s: %s", wrong.GetSource(), wrong.GetText()))
	}
	return plan, nil
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

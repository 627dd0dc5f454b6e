package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/drain"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/leftout"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/ranking"
	"loadline.dev/shim/scaleup"
	"loadline.dev/shim/sizing"
)

// planFlags are the flags of `plan`.
type planFlags struct {
	inquiry
	drainSource
	record string
}

func (a *app) newPlan() *cobra.Command {
	var f planFlags
	command := &cobra.Command{
		Use:   "plan --groups FILE",
		Short: "Show what one loop of an autoscaler would decide",
		Long: `Show what one loop of an autoscaler would decide: which pods that wait find room on nodes that are there
or on their way, which node groups grow for the others and for slack, and which nodes could go; while
groups grow none starts. Nothing is changed.

Groups grow together, by the cheapest mix, and those without a price, by themselves or by a price list,
do not. With a rank policy, --rank-preset or --strategies one group grows, the one that ranks best, as
with Cluster Autoscaler. With --record all that the engine is told and asked is written to a file, from
which 'loadline replay' asks it again.`,
		Example: `  loadline plan --groups groups.yaml --prices aws-us-east-1.csv
  loadline plan --groups groups.yaml --strategies priority,least-waste
  loadline plan -f cluster.json --groups groups.yaml --record loop.rec
  loadline replay loop.rec`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmp.Or(f.output.check(), f.settings.read(&f.engine)); err != nil {
				return err
			}
			if f.groups == "" {
				return usagef("--groups: missing")
			}
			l, err := f.ask(cmd.Context(), a.streams.In)
			if err != nil {
				return err
			}
			for _, warning := range l.warnings {
				fmt.Fprintf(a.streams.Err, "warning: %s\n", escapeLines(warning))
			}
			return f.output.write(a.streams.Out, l.forms())
		},
	}
	flags := command.Flags()
	f.drainSource.addTo(flags, "plan")
	flags.StringVar(&f.record, "record", "", "file to write down what the engine is told and asked")
	f.inquiry.addTo(flags, formTable, formJSON, formYAML)
	return command
}

// loopPlan is what one loop decides, and what it was asked with.
type loopPlan struct {
	*loadlinev1.PlanLoopResponse
	pods     []string // names, or of several equal pods that of one; by position in the question
	groups   []string // names, by position in the question
	slack    *slackPlan
	drain    *drainPlan
	sizes    *sizes         // nil: no group is sized by how full it is
	refusals []groupRefusal // why groups do not take the pods that are left over
	remarks  []string       // about pods that are not planned for as others are
	warnings []string
	leftOut  leftout.List
}

func (f *planFlags) ask(ctx context.Context, stdin io.Reader) (l *loopPlan, err error) {
	now, err := timeOf(f.now)
	if err != nil {
		return nil, err
	}
	request, policy, err := f.request(now)
	if err != nil {
		return nil, err
	}
	file, err := nodegroup.Load(f.groups)
	if err != nil {
		return nil, err
	}
	record, finish, err := f.recording()
	if err != nil {
		return nil, err
	}
	defer func() { err = finish(err) }()
	g := gatheredLoop{growing: f.settings.gatherer(file.Groups), shrinking: drain.NewGroups(file.Groups),
		sized: sizing.New()}
	g.growing.Pods = *scaleup.NewPodsForPlanning()
	g.growing.Selectors, g.growing.Remarks.Now = selectors(request.Fit), now
	c, err := load(ctx, &f.sourceFlags, f.engine, stdin, g.options(request.Fit, record))
	if err != nil {
		return nil, err
	}
	defer c.close()
	l = &loopPlan{warnings: append(file.Warnings, file.Ignored()...),
		drain: &drainPlan{now: now, options: request.Drain}}
	if f.fromFile() {
		l.drain.assume(c)
	}
	problem, err := l.complete(request, &g, file.Groups)
	if err != nil {
		return nil, err
	}
	err = c.view.Ask(ctx, func(at *loadlinev1.Changes) error {
		request.Cluster = &loadlinev1.PlanLoopRequest_Changes{Changes: at}
		for i, entry := range request.Pods {
			scaleup.TellNominated(g.growing.Entry(i), c.view.Slot, entry)
		}
		var err error
		if request.Groups, err = g.groups(problem, c.view.Slot, policy.Matcher()); err != nil {
			return err
		}
		client := loadlinev1.NewAutoscalerClient(c.conn)
		if l.PlanLoopResponse, err = client.PlanLoop(ctx, request); err != nil {
			return err
		}
		return l.askRefusals(ctx, client, at, request, g.growing.At(problem, c.view.Slot))
	})
	if err != nil {
		return nil, engineError(err)
	}
	c.leaveOut(&l.leftOut)
	l.remarks = g.growing.Remarks.Lines()
	if held := l.GetFleet().GetHeld(); held != "" {
		l.warnings = append(l.warnings, "no node group grows: "+held)
	}
	f.split(l, &g, request.Sized)
	return l, nil
}

// askRefusals asks, where pods are left over, why groups do not take them.
func (l *loopPlan) askRefusals(ctx context.Context, client loadlinev1.AutoscalerClient, at *loadlinev1.Changes,
	request *loadlinev1.PlanLoopRequest, problem *loadlinev1.ScaleUpProblem) error {
	left := map[int32]int64{}
	for _, run := range l.GetScaleUp().GetUnplaced() {
		if int(run.GetPod()) < len(l.pods) { // others are of nodes that are being deleted
			left[run.GetPod()] += int64(run.GetCount())
		}
	}
	l.refusals = nil
	if len(left) == 0 {
		return nil
	}
	problem.Cluster = &loadlinev1.ScaleUpProblem_Changes{Changes: at}
	problem.Fit, problem.StartupTaints = request.GetFit(), request.GetStartupTaints()
	answer, err := client.EstimateScaleUp(ctx, &loadlinev1.EstimateScaleUpRequest{Problem: problem, WithRefusals: true})
	if err != nil {
		return err
	}
	asked := estimated{problem, answer, l.pods}
	more := map[string]int64{}
	for _, growth := range l.GetGrowth() {
		more[growth.GetNodeGroup()] = growthOf(growth)
	}
	for i, group := range problem.GetGroups() {
		held := ""
		if sights := l.GetFleet().GetGroups(); i < len(sights) {
			held = heldBy(sights[i], group, more[group.GetNodeGroup()])
		}
		l.refusals = append(l.refusals, asked.refusals(i, left, held)...)
	}
	return nil
}

// request returns what the settings ask for, without the cluster; and the policy, by which groups have priorities.
func (f *planFlags) request(now time.Time) (*loadlinev1.PlanLoopRequest, *ranking.Policy, error) {
	fit, err := f.settings.fit()
	if err != nil {
		return nil, nil, err
	}
	up := &f.settings.ScaleUp
	policy, ranks, err := up.Ranking()
	if err != nil {
		return nil, nil, usageError{err}
	}
	loaded := &config.Loaded{Prices: up.PriceModel(policy), Fit: fit}
	if ranks {
		loaded.Ranking = policy.Proto()
	}
	once := f.settings.Configuration // what is asked at one moment waits for no further pods, and for no machine
	once.ScaleUp.BatchIdle.Duration, once.ScaleUp.BatchMax.Duration, once.ScaleUp.SwapNotBegun = 0, 0, false
	once.ScaleDown.ScaleDownSimulationTimeout.Duration = 0
	rules := plan.RulesOf(&once, loaded)
	request := rules.Settings
	request.Waiting = nil // the gatherer has left out the pods that do not wait
	request.NowS, request.Drain = now.Unix(), proto.CloneOf(rules.Drain(now))
	request.Consolidation = rules.Consolidation(now)
	request.Fleet.NowMilliseconds, request.Fleet.First = now.UnixMilli(), true
	return request, policy, nil
}

// gatheredLoop is what one loop asks about, as it is gathered from a cluster.
type gatheredLoop struct {
	growing   *scaleup.Gatherer
	shrinking *drain.Groups
	sized     *sizing.Gatherer
}

func (g *gatheredLoop) options(fit *loadlinev1.FitOptions, record func(engine.Conn) engine.Conn) loadOptions {
	return loadOptions{planning: true, fit: fit, empty: true, wrap: record, object: g.growing.AddObject,
		pod: func(pod *v1.Pod) {
			g.growing.AddPod(pod)
			g.sized.AddPod(pod)
		},
		node: func(node *v1.Node) {
			g.growing.AddNode(node)
			g.shrinking.AddNode(node)
		},
	}
}

// complete puts the pods that were gathered into the request, and the groups that are sized. It keeps names of pods and
// groups, and returns how groups may grow.
func (l *loopPlan) complete(request *loadlinev1.PlanLoopRequest, g *gatheredLoop,
	groups []nodegroup.NodeGroup) (*loadlinev1.ScaleUpProblem, error) {
	problem, err := g.growing.Problem()
	if err != nil {
		return nil, err
	}
	request.Pods, request.DaemonPods = problem.GetPods(), problem.GetDaemonPods()
	for _, group := range problem.GetGroups() {
		l.groups = append(l.groups, group.GetNodeGroup())
	}
	if l.pods, err = podNames(request.Pods); err != nil {
		return nil, err
	}
	if request.Sized, err = sizedGroups(groups); err != nil {
		return nil, err
	}
	if len(request.Sized) > 0 {
		request.SizePods = g.sized.Pods()
	}
	return problem, nil
}

// split gives each part of the answer to what shows it.
func (f *planFlags) split(l *loopPlan, g *gatheredLoop, sized []*loadlinev1.SizedGroup) {
	l.leftOut.Add(g.growing.LeftOut()...)
	g.sized.NameLeftOut(sizing.FieldOfLoop, l.PlanLoopResponse.GetLeftOut())
	l.leftOut.AddAnswer(l.PlanLoopResponse)
	l.slack = &slackPlan{PlanSlackResponse: l.GetSlack(), rate: string(f.settings.Slack.ExtraCapacityMinRate),
		basis: f.settings.Slack.Basis, pending: g.growing.Waiting()}
	l.warnings = append(l.warnings, l.slack.wrong()...)
	l.drain.PlanDrainResponse = l.GetScaleDown()
	if len(sized) > 0 {
		l.sizes = &sizes{asked: sized, pods: g.sized, response: l.GetSize()}
	}
}

// sizedGroups returns the groups that are sized by how full they are: they grow and shrink by nothing else.
func sizedGroups(groups []nodegroup.NodeGroup) (out []*loadlinev1.SizedGroup, err error) {
	for i := range groups {
		spec := &groups[i].Spec
		if spec.Size == nil {
			continue
		}
		group, err := sizing.ForLoop(&groups[i], sizing.Cloud{ID: groups[i].Name(), Min: spec.Min, Max: spec.Max})
		if err != nil {
			return nil, fmt.Errorf("node group %q: %w", groups[i].Name(), err)
		}
		out = append(out, group)
	}
	return out, nil
}

// groups returns the groups with their nodes as machines that run.
func (g *gatheredLoop) groups(problem *loadlinev1.ScaleUpProblem, slot func(string) (int32, bool),
	priorities ranking.Priorities) ([]*loadlinev1.LoopGroup, error) {
	groups, err := loopGroups(problem, g.shrinking, slot, priorities)
	for _, group := range groups {
		group.Cloud = &loadlinev1.CloudGroup{Target: group.GetGrowth().GetCurrentNodes(),
			CloudTemplate: len(group.GetGrowth().GetTemplateNode()) > 0}
		for _, slot := range group.GetScaleDown().GetSlots() {
			group.Cloud.Machines = append(group.Cloud.Machines, &loadlinev1.CloudMachine{Id: fmt.Sprint("slot-", slot),
				State: loadlinev1.CloudMachine_RUNNING, Slot: &slot})
		}
		group.Growth = proto.CloneOf(group.Growth) // the question may be put again
		group.Growth.CurrentNodes, group.ScaleDown.Slots = 0, nil
	}
	return groups, err
}

// loopGroups joins how groups grow and how they shrink. What both would say, growing says.
func loopGroups(problem *loadlinev1.ScaleUpProblem, shrinking *drain.Groups, slot func(string) (int32, bool),
	priorities ranking.Priorities) ([]*loadlinev1.LoopGroup, error) {
	scaleDown, err := shrinking.Proto(slot)
	if err != nil {
		return nil, err
	}
	groups := make([]*loadlinev1.LoopGroup, len(problem.GetGroups()))
	for i, growth := range problem.GetGroups() {
		group := scaleDown[i]
		group.NodeGroup, group.Target, group.MaxNodes, group.NodeUsdPerHour = "", nil, nil, nil
		groups[i] = &loadlinev1.LoopGroup{Growth: growth, ScaleDown: group,
			Priority: priorities.Of(growth.GetNodeGroup())}
	}
	return groups, nil
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

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/leftout"
	"loadline.dev/shim/nodegroup"
)

// billSource says what is asked of the bill: groups, and which moves are wanted.
type billSource struct {
	groups, now, mode string
	noPods            bool
	settings          settings
	// tellPod and tellObject, if set, are called with each pod, and with each object that planners look up.
	tellPod    func(*v1.Pod)
	tellObject func(any)
}

// billSettings are the settings of a bill without file and flags: who asks once need not fear that the load changes as
// soon as the autoscaler must.
func billSettings() config.Configuration {
	c := config.Default()
	c.Consolidation.PaybackHours = 168
	return c
}

func (s *billSource) addTo(flags *pflag.FlagSet) {
	s.settings.addTo(flags, "bill", billSettings())
	flags.Lookup("payback-hours").Usage += "; by default the autoscaler has 1.5"
	flags.StringVar(&s.groups, "groups", "", "file with node groups, kind "+nodegroup.Kind+
		"; without it they are derived from the nodes")
	addNowFlag(flags, &s.now)
	flags.StringVar(&s.mode, "mode", "replace", "off: the bill only; remove: nodes go, none come; replace")
	flags.Lookup("mode").Annotations = map[string][]string{formsAnnotation: {"off", "remove", "replace"}}
	flags.BoolVar(&s.noPods, "no-pods", false, noPodsHelp)
}

func (s *billSource) modeOf() (loadlinev1.ConsolidationPolicy_Mode, error) {
	mode, ok := loadlinev1.ConsolidationPolicy_Mode_value[strings.ToUpper(s.mode)]
	if !ok || mode == 0 || s.mode != strings.ToLower(s.mode) {
		return 0, usagef("--mode %q: must be one of off, remove, replace", s.mode)
	}
	return loadlinev1.ConsolidationPolicy_Mode(mode), nil
}

// billPlan is an answer, and what it was asked with.
type billPlan struct {
	*loadlinev1.PlanConsolidationResponse
	notes []string
	// brake is what keeps moves from beginning now; empty: nothing does.
	brake string
	// groupOf is the derived group of each node, by names; empty: it is in none.
	groupOf  map[string]string
	leftOut  leftout.List
	warnings []string
}

// billFlags are the flags of `bill` and `consolidate`.
type billFlags struct {
	inquiry
	contexts []string // of several clusters
	billSource
}

func (a *app) newBill() *cobra.Command {
	return a.billCommand(&cobra.Command{
		Use:   "bill [DUMP...]",
		Short: "Show what a cluster costs, what it must cost at least, and the first moves between",
		Long: `Show what the nodes of a cluster cost per hour, a bound that no arrangement of the same pods on these node
groups undercuts, what is paid for nothing between both, and by which moves it can be saved; and what the
pods of each namespace cost.

Nothing is changed and nothing needs to be installed: it reads a live cluster with any kubeconfig that may
list objects, or a dump. What was assumed is said below the answer.

Of several dumps, or with --contexts, it is one table of all clusters with their total, and the ten best
moves of all.`,
		Example: `  loadline bill
  loadline bill --contexts east,west
  loadline bill east.json west.json -o html > fleet.html
  kubectl get nodes,pods,pdb,rs,sts,ds,jobs,rc,namespaces,pv,pvc,storageclasses,csinodes -A -o json | loadline bill -f -
  loadline bill -f cluster.json --prices aws-us-east-1.csv -o html > bill.html`,
	}, (*billPlan).billForms, formTable, formJSON, formYAML, formHTML)
}

func (a *app) newConsolidate() *cobra.Command {
	return a.billCommand(&cobra.Command{
		Use:   "consolidate",
		Short: "Show by which moves nodes can go, or be replaced by cheaper ones",
		Long: `Show moves that each save money: nodes that go, nodes that come in their place, and where every pod goes.
The first saves most per disturbed pod; moves of the same wave can be made at once. For every node that
stays it says why. Nothing is changed.

A pod goes to a node, or to GROUP#N: the Nth new node of that group.`,
		Example: `  loadline consolidate -f cluster.json -o json
  loadline consolidate --mode remove --groups groups.yaml`,
	}, (*billPlan).consolidateForms, formTable, formJSON, formYAML, formHTML)
}

func (a *app) billCommand(command *cobra.Command, forms func(*billPlan) answer, names ...string) *cobra.Command {
	var f billFlags
	isBill := command.Name() == "bill"
	command.Args = cobra.NoArgs
	if isBill {
		command.Args = cobra.ArbitraryArgs
	}
	command.RunE = func(cmd *cobra.Command, args []string) error {
		several := len(args) > 0 || len(f.contexts) > 0
		f.output.nameless, f.output.ordered = several, isBill
		if err := cmp.Or(f.output.check(), f.settings.read(&f.engine)); err != nil {
			return err
		}
		if several {
			if f.fromFile() || f.contextName() != "" || f.groups != "" {
				return usagef("several clusters: -f, --context and --groups are for one")
			}
			fleet := f.askAll(cmd.Context(), args, a.streams.In)
			if len(fleet.clusters) == 0 {
				return fleet.err()
			}
			return errors.Join(f.output.write(a.streams.Out, fleet.forms()), fleet.err())
		}
		b, err := f.ask(cmd.Context(), &f.sourceFlags, f.engine, a.streams.In)
		if err != nil {
			return err
		}
		a.warn(b.warnings)
		return f.output.write(a.streams.Out, forms(b))
	}
	flags := command.Flags()
	if isBill {
		flags.StringSliceVar(&f.contexts, "contexts", nil, "names of kubeconfig contexts: one bill of all these clusters")
	}
	f.billSource.addTo(flags)
	f.inquiry.addTo(flags, names...)
	return command
}

// ask has the cluster planned.
func (s *billSource) ask(ctx context.Context, source *sourceFlags, engine engineFlags,
	stdin io.Reader) (*billPlan, error) {
	now, err := timeOf(s.now)
	if err != nil {
		return nil, err
	}
	mode, err := s.modeOf()
	if err != nil {
		return nil, err
	}
	loaded, err := s.loaded(ctx)
	if err != nil {
		return nil, err
	}
	question := asking{source: source, engine: engine, loaded: loaded, groups: s.groups, mayLackPods: s.noPods,
		settings: s.settings.deciding(config.ScaleUpDecision, config.ScaleDownDecision, config.ReplaceDecision),
		load:     loadOptions{now: now, pod: s.tellPod, object: s.tellObject}}
	c, err := question.gather(ctx, stdin)
	if err != nil {
		return nil, err
	}
	defer c.close()
	p := c.planner
	assumed := &drainPlan{options: proto.CloneOf(p.Settings.Drain)}
	if source.fromFile() {
		assumed.assume(c.cluster)
	}
	b := &billPlan{notes: c.podNotes(source)}
	_, err = p.Put(ctx, c.loop, func(asked *plan.Plan) (err error) {
		q := asked.Question
		brakes := &loadlinev1.PlanDrainRequest{NowS: q.GetNowS(), Options: assumed.options, Fit: q.GetFit(), Compact: true,
			Cluster: &loadlinev1.PlanDrainRequest_Changes{Changes: q.GetChanges()}}
		drained, err := p.Client.PlanDrain(ctx, brakes) // of no group: it tells what holds all nodes
		if err != nil {
			return err
		}
		allowed := mode
		if b.brake = drained.GetBrakeText(); b.brake != "" {
			allowed = loadlinev1.ConsolidationPolicy_OFF
		}
		b.PlanConsolidationResponse, err = p.Client.PlanConsolidation(ctx, s.request(asked, allowed))
		return err
	})
	if err != nil {
		return nil, engineError(err)
	}
	b.tell(c.cluster, c.loop, s.groups == "", assumed.notes)
	return b, nil
}

// loaded reads the files that the settings name.
func (s *billSource) loaded(ctx context.Context) (*config.Loaded, error) {
	fit, err := s.settings.fit(ctx)
	if err != nil {
		return nil, err
	}
	policy, err := s.settings.rank()
	if err != nil {
		return nil, err
	}
	return &config.Loaded{Fit: fit, Prices: s.settings.ScaleUp.PriceModel(policy)}, nil
}

// request is the part of a loop's question that a bill asks.
func (s *billSource) request(asked *plan.Plan,
	mode loadlinev1.ConsolidationPolicy_Mode) *loadlinev1.PlanConsolidationRequest {
	q := asked.Question
	policy := proto.CloneOf(q.GetConsolidation())
	policy.Mode = mode
	return &loadlinev1.PlanConsolidationRequest{NowS: q.GetNowS(), MaxNodesTotal: q.GetMaxNodesTotal(),
		Cluster: &loadlinev1.PlanConsolidationRequest_Changes{Changes: q.GetChanges()}, Groups: asked.Groups(),
		DaemonPods: q.GetDaemonPods(), DeriveGroups: s.groups == "", StartupTaints: q.GetStartupTaints(),
		Drain: q.GetDrain(), Fit: q.GetFit(), Prices: q.GetPrices(), Policy: policy, Pods: q.GetPods(),
		Waiting: q.GetWaiting()}
}

// tell says what was asked with, and what the answer leaves open.
func (b *billPlan) tell(c *cluster, o *plan.Loop, derived bool, assumed []string) {
	b.warnings = o.Warnings
	b.groupOf = map[string]string{}
	for _, node := range c.watched.SortedNodes() {
		if _, held := c.view.Slot(node.Name); held {
			b.groupOf[node.Name] = ""
		}
	}
	for _, group := range b.GetDerivedGroups() {
		for _, slot := range group.GetSlots() {
			if node, ok := c.view.Node(slot); ok {
				b.groupOf[node] = group.GetNodeGroup()
			}
		}
	}
	b.assume(derived, assumed)
	c.leaveOut(&b.leftOut)
	b.leftOut.Add(o.Pods.LeftOut()...)
	b.leftOut.AddAnswer(b.PlanConsolidationResponse)
	b.noteAnswer()
	if b.GetMovesTotal() > 0 {
		var fresh []*v1.Node
		for _, move := range b.GetMoves() {
			for _, add := range move.GetAdd() {
				fresh = append(fresh, templateOf(o, add.GetNodeGroup()))
			}
		}
		b.notes = append(b.notes, noteMachines(c, fresh...)...)
	}
}

// assume says what is taken for granted beside the question.
func (b *billPlan) assume(derived bool, notes []string) {
	if derived {
		if count := len(b.GetDerivedGroups()); count == 0 {
			b.notes = append(b.notes, "Without --groups, node groups are derived from the nodes, and no node makes one.")
		} else {
			b.notes = append(b.notes, fmt.Sprintf("Without --groups, %s derived from pool, instance type, zone, capacity "+
				"type, system, roles and taints of the nodes, and from labels that pods select by: %s may become empty and "+
				"may grow without limit, and no other instance type is considered.",
				plural(count, "node group")+agree(int64(count), " is", " are"), agree(int64(count), "it", "each")))
		}
	}
	b.notes = append(b.notes, notes...)
}

// noteAnswer says what the answer itself leaves open.
func (b *billPlan) noteAnswer() {
	b.notes = append(b.notes, noteOtherNodes(b.GetOtherNodes(), [2]string{"is not counted, and stays",
		"are not counted, and stay"})...)
	bill := b.GetBill()
	b.notes = append(priceNotes(b.GetPriceSources()), b.notes...)
	b.notes = append(b.notes, b.noteUnpriced()...)
	if count := int(b.GetWaitingPods()); count > 0 {
		b.notes = append(b.notes, fmt.Sprintf("%s for a node: the room that %s on nodes is kept.",
			plural(count, "pod")+waits(count), agree(int64(count), "it finds", "they find")))
	}
	if bill.Bound != nil && !bill.GetProven() {
		b.notes = append(b.notes, "The bound is not worked out: work or time was used up.")
	}
	if what := b.GetCutShortBy(); what != "" {
		b.notes = append(b.notes, "The plan was cut short by "+what+": there may be more to save.")
	}
	if told := int64(len(b.GetMoves())); told < b.GetMovesTotal() {
		b.notes = append(b.notes, fmt.Sprintf("Only the first %d of %d moves are told.", told, b.GetMovesTotal()))
	}
}

// noteUnpriced says which machines are not counted, since nobody knows what they cost: that of a node follows from its
// group.
func (b *billPlan) noteUnpriced() (notes []string) {
	inGroups := int64(0)
	for _, group := range b.GetGroups() {
		if group.UsdPerHour == nil {
			inGroups += group.GetNodes()
		}
	}
	all := b.GetBill().GetUnpricedNodes()
	inGroups = min(inGroups, all)
	if count := all - inGroups; count > 0 {
		notes = append(notes, fmt.Sprintf("%s in no node group: %s.", plural(int(count), "node")+agree(count, " is", " are"),
			agree(count, "it is not counted, and stays", "they are not counted, and stay")))
	}
	if count := inGroups; count > 0 {
		notes = append(notes, fmt.Sprintf("%s no known price: %s.", plural(int(count), "node")+agree(count, " has", " have"),
			agree(count, "it is not counted, and stays", "they are not counted, and stay")))
	}
	return notes
}

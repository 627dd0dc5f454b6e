package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/drain"
	"loadline.dev/shim/leftout"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/ranking"
	"loadline.dev/shim/scaleup"
)

// billSource says what is asked of the bill: groups, prices, and which moves are wanted.
type billSource struct {
	groups, now, mode                           string
	leastUSD, leastPercent, podUSD, payback     float64
	nodesPerMove, nodesAtOnce, podsAtOnce       int32
	spotGroups                                  int32
	maxNodesTotal                               int32
	systemPods, localStorage, customControllers bool
	prices                                      []string
	spotFactor                                  float64
	filters                                     filterFlags
	taints                                      scaleup.StartupTaints
	noPods                                      bool
	// tellPod and tellObject, if set, are called with each pod, and with each object that planners look up.
	tellPod    func(*v1.Pod)
	tellObject func(any)
}

func (s *billSource) addTo(flags *pflag.FlagSet) {
	s.filters.addTo(flags)
	s.taints.AddFlags(flags)
	flags.StringVar(&s.groups, "groups", "", "file with node groups, kind "+nodegroup.Kind+
		"; without it they are derived from the nodes")
	flags.StringArrayVar(&s.prices, "prices", nil, "price list, CSV or CSV.gz; may be repeated (default: those that are "+
		"built in, "+strings.Join(ranking.DefaultCatalogues, ", ")+")")
	addSpotFactorFlag(flags, &s.spotFactor)
	flags.StringVar(&s.now, "now", "", "plan as of this time, such as 2026-02-17T09:00:00Z (default: now)")
	flags.StringVar(&s.mode, "mode", "replace", "off: the bill only; remove: nodes go, none come; replace")
	flags.Lookup("mode").Annotations = map[string][]string{formsAnnotation: {"off", "remove", "replace"}}
	flags.Float64Var(&s.leastUSD, "least-saving", 0.001, "a move saves at least this many USD per hour")
	flags.Float64Var(&s.leastPercent, "least-saving-percent", 2,
		"and at least this percentage of the price of the removed nodes")
	flags.Float64Var(&s.podUSD, "pod-disruption-cost", 0.1,
		"what it costs to disturb a pod once, in USD: a move saves that of its pods within --payback-hours")
	flags.Float64Var(&s.payback, "payback-hours", 168,
		"hours within which a move saves what it costs to disturb its pods; the autoscaler has 1.5, since its load "+
			"changes sooner")
	flags.Int32Var(&s.nodesPerMove, "max-nodes-per-move", 24, "the most nodes that one move removes")
	flags.Int32Var(&s.spotGroups, "least-spot-groups", 15,
		"spot nodes replace spot nodes only if this many spot groups cost less than the removed nodes")
	flags.Int32Var(&s.nodesAtOnce, "max-nodes-at-once", 10, "the most nodes that the moves of one wave remove")
	flags.Int32Var(&s.podsAtOnce, "max-pods-at-once", 200, "pods that moves of one wave disturb at most")
	flags.Int32Var(&s.maxNodesTotal, "max-nodes-total", 0, "nodes that the cluster may have in all; 0: any number")
	flags.BoolVar(&s.noPods, "no-pods", false, noPodsHelp)
	flags.BoolVar(&s.systemPods, "skip-nodes-with-system-pods", true, "nodes with pods of kube-system stay")
	flags.BoolVar(&s.localStorage, "skip-nodes-with-local-storage",
		true, "nodes with pods that store data on the node stay")
	flags.BoolVar(&s.customControllers, "skip-nodes-with-custom-controller-pods",
		true, "nodes with pods of controllers that are not built in stay")
}

func (s *billSource) policy() (*loadlinev1.ConsolidationPolicy, error) {
	mode, ok := loadlinev1.ConsolidationPolicy_Mode_value[strings.ToUpper(s.mode)]
	if !ok || mode == 0 || s.mode != strings.ToLower(s.mode) {
		return nil, usagef("--mode %q: must be one of off, remove, replace", s.mode)
	}
	return &loadlinev1.ConsolidationPolicy{
		Mode:                  loadlinev1.ConsolidationPolicy_Mode(mode),
		LeastSavingUsdPerHour: &s.leastUSD, LeastSavingPercent: &s.leastPercent,
		UsdPerDisturbedPod: &s.podUSD, PaybackHours: &s.payback,
		MaxNodesPerMove: &s.nodesPerMove, MaxNodesAtOnce: &s.nodesAtOnce, MaxPodsAtOnce: &s.podsAtOnce,
		LeastSpotGroups: &s.spotGroups,
	}, nil
}

// priceModel returns the lists that are asked: those that are named, else those that are built in.
func (s *billSource) priceModel() (*loadlinev1.PriceModel, error) {
	p := ranking.Default()
	if err := setSpotFactor(p, s.spotFactor); err != nil {
		return nil, err
	}
	for _, name := range s.prices {
		if err := p.AddCatalogue(name); err != nil {
			return nil, err
		}
	}
	if len(s.prices) == 0 {
		if err := p.AddDefaultCatalogues(); err != nil {
			return nil, err
		}
	}
	return p.PriceModel(), nil
}

// billPlan is an answer, and what it was asked with.
type billPlan struct {
	*loadlinev1.PlanConsolidationResponse
	notes []string
	// groupOf is the derived group of each node, by names; empty: it is in none.
	groupOf map[string]string
	leftOut leftout.List
}

// billFlags are the flags of `bill` and `consolidate`.
type billFlags struct {
	sourceFlags
	contexts []string // of several clusters
	billSource
	engine engineFlags
	output outputFlag
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
		if err := f.output.check(); err != nil {
			return err
		}
		if len(args) > 0 || len(f.contexts) > 0 {
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
		return f.output.write(a.streams.Out, forms(b))
	}
	flags := command.Flags()
	addSourceFlags(flags, &f.sourceFlags)
	if isBill {
		flags.StringSliceVar(&f.contexts, "contexts", nil, "names of kubeconfig contexts: one bill of all these clusters")
	}
	f.billSource.addTo(flags)
	addEngineFlag(flags, &f.engine)
	addOutputFlag(flags, &f.output, names...)
	return command
}

// ask has the cluster planned.
func (s *billSource) ask(ctx context.Context, source *sourceFlags, engine engineFlags,
	stdin io.Reader) (*billPlan, error) {
	request, err := s.request()
	if err != nil {
		return nil, err
	}
	b := &billPlan{}
	file, err := loadGroups(s.groups)
	if err != nil {
		return nil, err
	}
	g := gatheredBill{growing: scaleup.New(file.Groups), shrinking: drain.NewGroups(file.Groups),
		architectures: map[string]bool{}}
	c, err := load(ctx, source, engine, stdin, g.options(request.Fit, s.tellPod, s.tellObject))
	if err != nil {
		return nil, err
	}
	defer c.close()
	if err := c.withoutPods(source, s.noPods); err != nil {
		return nil, err
	}
	problem, err := g.growing.Problem()
	if err != nil {
		return nil, err
	}
	request.DaemonPods = problem.GetDaemonPods()
	request.DeriveGroups = s.groups == ""
	err = c.view.Ask(ctx, func(at *loadlinev1.Changes) error {
		request.Cluster = &loadlinev1.PlanConsolidationRequest_Changes{Changes: at}
		var err error
		if request.Groups, err = loopGroups(problem, g.shrinking, c.view.Slot, nil); err != nil {
			return err
		}
		b.PlanConsolidationResponse, err = loadlinev1.NewAutoscalerClient(c.conn).PlanConsolidation(ctx, request)
		return err
	})
	if err != nil {
		return nil, engineError(err)
	}
	b.groupOf = g.groupOf(b.GetDerivedGroups(), c)
	b.assume(source, c, request.GetDeriveGroups())
	c.leaveOut(&b.leftOut)
	b.leftOut.Add(g.growing.LeftOut()...)
	b.leftOut.AddAnswer(b.PlanConsolidationResponse)
	b.noteAnswer()
	if len(g.architectures) > 1 && b.GetMovesTotal() > 0 {
		b.notes = append(b.notes, fmt.Sprintf("Nodes are of %s, and images are not looked at: a pod that selects no "+
			"architecture may be moved to any.", strings.Join(slices.Sorted(maps.Keys(g.architectures)), " and ")))
	}
	return b, nil
}

// request returns what the flags ask for, without the cluster.
func (s *billSource) request() (*loadlinev1.PlanConsolidationRequest, error) {
	now, err := (&drainSource{now: s.now}).time()
	if err != nil {
		return nil, err
	}
	if err := s.taints.Check(); err != nil {
		return nil, usageError{err}
	}
	request := &loadlinev1.PlanConsolidationRequest{NowS: now.Unix(), MaxNodesTotal: s.maxNodesTotal,
		StartupTaints: s.taints.Proto(),
		Drain: &loadlinev1.DrainOptions{SkipNodesWithSystemPods: &s.systemPods,
			SkipNodesWithLocalStorage: &s.localStorage, SkipNodesWithCustomControllerPods: &s.customControllers}}
	if request.Policy, err = s.policy(); err != nil {
		return nil, err
	}
	if request.Fit, err = s.filters.fit(); err != nil {
		return nil, err
	}
	request.Prices, err = s.priceModel()
	return request, err
}

// gatheredBill is what a bill asks about, as it is gathered from a cluster.
type gatheredBill struct {
	growing   *scaleup.Gatherer
	shrinking *drain.Groups
	nodes     []string // names
	// architectures are those of the nodes.
	architectures map[string]bool
}

// groupOf returns the derived group of each node by names; empty: it is in none.
func (g *gatheredBill) groupOf(derived []*loadlinev1.DerivedGroup, c *cluster) map[string]string {
	bySlot := map[int32]string{}
	for _, group := range derived {
		for _, slot := range group.GetSlots() {
			bySlot[slot] = group.GetNodeGroup()
		}
	}
	out := map[string]string{}
	for _, node := range g.nodes {
		if slot, ok := c.view.Slot(node); ok {
			out[node] = bySlot[slot]
		}
	}
	return out
}

// options returns the options that gather a bill. A function that is set is called with the same pods or objects.
func (g *gatheredBill) options(fit *loadlinev1.FitOptions, tellPod func(*v1.Pod), tellObject func(any)) loadOptions {
	return loadOptions{planning: true, fit: fit,
		object: func(object any) {
			g.growing.AddObject(object)
			if tellObject != nil {
				tellObject(object)
			}
		},
		pod: func(pod *v1.Pod) {
			g.growing.AddPod(pod)
			if tellPod != nil {
				tellPod(pod)
			}
		},
		node: func(node *v1.Node) {
			g.growing.AddNode(node)
			g.shrinking.AddNode(node)
			g.nodes = append(g.nodes, node.Name)
			if arch := node.Labels[v1.LabelArchStable]; arch != "" {
				g.architectures[arch] = true
			}
		},
	}
}

// assume says what is taken for granted beside the question.
func (b *billPlan) assume(source *sourceFlags, c *cluster, derived bool) {
	if derived {
		count := len(b.GetDerivedGroups())
		b.notes = append(b.notes, fmt.Sprintf("Without --groups, %s derived from pool, instance type, zone, capacity "+
			"type, system, roles and taints of the nodes, and from labels that pods select by: each may become empty and "+
			"may grow without limit, and no other instance type is considered.",
			plural(count, "node group")+agree(int64(count), " is", " are")))
	}
	if source.fromFile() {
		assumed := &drainPlan{options: &loadlinev1.DrainOptions{}}
		assumed.assume(c)
		b.notes = append(b.notes, assumed.notes...)
	}
}

// noteAnswer says what the answer itself leaves open.
func (b *billPlan) noteAnswer() {
	b.notes = append(b.notes, noteOtherNodes(b.GetOtherNodes(), [2]string{"is not counted, and stays",
		"are not counted, and stay"})...)
	bill := b.GetBill()
	b.notes = append(priceNotes(b.GetPriceSources()), b.notes...)
	if count := bill.GetUnpricedNodes(); count > 0 {
		b.notes = append(b.notes, fmt.Sprintf("%s no known price: not counted, and stay.",
			plural(int(count), "node")+agree(int64(count), " has", " have")))
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

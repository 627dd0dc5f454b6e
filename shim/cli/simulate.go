package cli

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/arrivals"
	"loadline.dev/shim/dump"
	"loadline.dev/shim/report"
)

// simulateFlags are the flags of `simulate`.
type simulateFlags struct {
	inquiry
	scenario scenarioFlags
	lines    linesFlags
	policy   *policyFlags
	filters  filterFlags
	strategy string
	weight   int64
}

// maxWeight is the highest weight that kube-scheduler's extenders and plugins are given in practice; totals stay far
// from where they would wrap.
const maxWeight = 1000

// simulateHelp is the help of `simulate`.
const simulateHelp = `Replay the arrival of all pods of a cluster twice: placed by the default scheduler, ` +
	`and by the default
scheduler with Loadline's scores added. Then compare how loaded the nodes are.

Pods arrive in the order of their creation, on nodes that hold nothing but pods of DaemonSets, static
pods and pods that are being deleted. Ready nodes that are starting count as started: their startup taints
keep no pod off. Both sides let a pod onto the nodes on which kube-scheduler's filters would. The default
scheduler is its scores NodeResourcesFit and NodeResourcesBalancedAllocation as kube-scheduler 1.36 works
them out, over all feasible nodes, with ties going to the first node by name. Their strategy, resources and
weights are those of --scheduler-config-file, by the profile that a pod names; without it LeastAllocated of
cpu and memory. Scores of other plugins play no part.

What filters look up beside nodes and pods must be in a dump too: 'kubectl get
nodes,pods,namespaces,pv,pvc,storageclasses,csinodes,csidrivers,deviceclasses -A
-o json'.

With --lines load lines are compared instead: if all pods came anew, how many would find no room on the
nodes that are there, how many more nodes like those would take them, and which pods none takes.

With --scenario the autoscaler's loop acts for days on a cluster that is simulated in virtual time, with
its load, its cloud and what goes wrong there; --against simulates a second one beside it. The same seed
gives the same digest. With --row a row of a sweep is run again, alone.`

func (a *app) newSimulate() *cobra.Command {
	var flags simulateFlags
	command := &cobra.Command{
		Use:   "simulate [--row N FILE]",
		Short: "Replay the arrival of all pods, as the default scheduler and with Loadline",
		Long:  simulateHelp,
		Example: `  loadline simulate -f cluster.json
  loadline simulate -f cluster.json --weight 5 -o html > simulation.html
  loadline simulate -f cluster.json --lines 1,1.25,1.5,2,3
  loadline simulate --scenario docs/scenario.yaml --days 30 --seed 1 -o html > month.html
  loadline simulate --row 17 sweep.yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			out, err := flags.ask(cmd.Context(), a.streams.In, args, cmd.Flags().Changed("row"))
			if err != nil {
				return err
			}
			return flags.output.write(a.streams.Out, out)
		},
	}
	flags.scenario.addTo(command.Flags())
	flags.lines.addTo(command.Flags())
	flags.policy = addPolicyFlags(command.Flags())
	command.Flags().Int64Var(&flags.weight, "weight", 2,
		"weight of Loadline's score; the default scheduler's have 1 each")
	flags.filters.addTo(command.Flags())
	command.Flags().StringVar(&flags.strategy, "strategy", "", "strategy of NodeResourcesFit, instead of that of the "+
		"scheduler's configuration: LeastAllocated (default), MostAllocated or RequestedToCapacityRatio")
	flags.inquiry.addTo(command.Flags(), formTable, formJSON, formYAML, formHTML)
	return command
}

// ask simulates what the command line names: with `again` a row of a sweep, else a scenario, load lines or the arrival
// of a cluster's pods.
func (f *simulateFlags) ask(ctx context.Context, stdin io.Reader, args []string, again bool) (answer, error) {
	if again != (len(args) > 0) {
		return answer{}, usagef("--row N and FILE, a sweep, go together")
	}
	f.output.nameless, f.output.ordered = true, len(f.lines.ratios) == 0
	if err := f.output.check(); err != nil {
		return answer{}, err
	}
	switch {
	case again:
		runs, err := f.scenario.runRow(ctx, args[0], &f.engine)
		if err != nil {
			return answer{}, err
		}
		return scenarioForms(runs), nil
	case f.scenario.file != "":
		runs, err := f.scenario.run(ctx, &f.engine)
		if err != nil {
			return answer{}, err
		}
		return scenarioForms(runs), nil
	case len(f.lines.ratios) > 0:
		lines, err := f.compareLines(ctx, stdin)
		if err != nil {
			return answer{}, err
		}
		return lines.forms(), nil
	}
	s, err := f.run(ctx, stdin)
	if err != nil {
		return answer{}, err
	}
	return s.forms(), nil
}

// simulation is the outcome of `simulate`.
type simulation struct {
	source   string
	cluster  *arrivals.Cluster
	outcomes []*arrivals.Outcome
}

func (f *simulateFlags) run(ctx context.Context, stdin io.Reader) (*simulation, error) {
	if f.weight < 1 || f.weight > maxWeight {
		return nil, usagef("--weight %d: must be 1 to %d", f.weight, maxWeight)
	}
	how, err := f.policy.policy()
	if err != nil {
		return nil, err
	}
	s := &simulation{source: f.name()}
	config, err := f.filters.scheduler(ctx)
	if err != nil {
		return nil, err
	}
	if f.strategy != "" {
		if err := config.SetStrategy(f.strategy); err != nil {
			return nil, usagef("--%w", err)
		}
	}
	kinds := selectorKinds
	if how.BlockersTogether > 0 {
		kinds = append(slices.Clone(kinds), "PodDisruptionBudget")
	}
	if s.cluster, err = f.arrivingPods(ctx, stdin, kinds); err != nil {
		return nil, err
	}
	if s.cluster.StartupTaints, err = f.lines.startupTaints(); err != nil {
		return nil, err
	}
	conn, err := f.engine.open()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	for i, scheduler := range []arrivals.Scheduler{
		{Name: "default scheduler", Config: config},
		{Name: "with Loadline", Config: config, Weight: f.weight, Policy: how.Proto()},
	} {
		outcome, err := arrivals.Run(ctx, conn, fmt.Sprintf("%s-%d", viewName(f.engine.address), i),
			s.cluster, scheduler)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", scheduler.Name, engineError(err))
		}
		s.outcomes = append(s.outcomes, outcome)
	}
	return s, nil
}

// compareLines says what load lines would mean.
func (f *simulateFlags) compareLines(ctx context.Context, stdin io.Reader) (*lineTable, error) {
	how, err := f.policy.policy()
	if err != nil {
		return nil, err
	}
	return f.lines.compare(ctx, &f.sourceFlags, f.engine, how, stdin)
}

// arrivingPods reads what pods arrive in.
func (f *sourceFlags) arrivingPods(ctx context.Context, stdin io.Reader, kinds []string) (*arrivals.Cluster, error) {
	c := &arrivals.Cluster{}
	var pods []*v1.Pod
	counts, err := f.read(ctx, stdin, dump.Handler{
		Node:          func(node *v1.Node) error { c.Nodes = append(c.Nodes, node); return nil },
		Pod:           func(pod *v1.Pod) error { pods = append(pods, pod); return nil },
		Object:        func(object any) error { c.Objects = append(c.Objects, object); return nil },
		PlannerObject: func(object any) error { c.Selecting = append(c.Selecting, object); return nil },
	}, kinds)
	if err != nil {
		return nil, err
	}
	if len(c.Nodes) == 0 {
		return nil, fmt.Errorf("%s holds no node", f.name())
	}
	c.Complete = completeKinds(counts, false)
	c.Fixed, c.Arrivals = arrivals.Split(pods)
	return c, nil
}

// simulationData is the answer of `simulate` as data.
type simulationData struct {
	Arrivals   int             `json:"arrivals"`
	Placements []placementData `json:"placements"`
}

type placementData struct {
	Name    string `json:"name"`
	Pending int    `json:"pending"`
	// NotJudged counts the pending pods that some node might have taken that could not be judged.
	NotJudged int `json:"notJudged"`
	// Resources have the ratios limits/allocatable over the nodes.
	Resources map[string]ratioData `json:"resources"`
	// Pods has the node of each arrival, empty: pending.
	Pods map[string]string `json:"pods"`
}

type ratioData struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func (s *simulation) placements() (out []report.Placement) {
	for _, o := range s.outcomes {
		out = append(out, o.Placement)
	}
	return out
}

func (s *simulation) forms() answer {
	data := simulationData{Arrivals: len(s.cluster.Arrivals)}
	for _, o := range s.outcomes {
		p := placementData{Name: o.Placement.Name, Pending: o.Placement.PendingPods, NotJudged: o.NotJudged,
			Pods: o.Nodes, Resources: map[string]ratioData{}}
		for _, resource := range report.Resources(s.placements()) {
			sum := report.Summarize(o.Placement, resource)
			p.Resources[resource] = ratioData{P50: sum.P50, P95: sum.P95, P99: sum.P99, Max: sum.Max}
		}
		data.Placements = append(data.Placements, p)
	}
	return answer{data: data, verdict: fmt.Sprintf("%s: arrival of %s on %s with %s.", s.source,
		plural(len(s.cluster.Arrivals), "pod"), plural(len(s.cluster.Nodes), "node"), plural(len(s.cluster.Fixed), "pod")),
		tables: []table{{fixed: report.SummaryGrid(s.placements()), texts: report.SummaryTexts},
			{rows: "placements", unseen: true}}, lines: s.lines(),
		page: func(w io.Writer) error { return report.Page(w, "Simulation: "+s.source, s.placements()) }}
}

func (s *simulation) lines() []string {
	elsewhere := 0
	for pod, node := range s.outcomes[0].Nodes {
		if s.outcomes[1].Nodes[pod] != node {
			elsewhere++
		}
	}
	lines := []string{fmt.Sprintf("Placed elsewhere with Loadline: %s.", plural(elsewhere, "pod"))}
	if s.outcomes[0].NotJudged+s.outcomes[1].NotJudged > 0 {
		lines = append(lines, fmt.Sprintf("Pending only because what a filter looks up is missing: %d and %d.",
			s.outcomes[0].NotJudged, s.outcomes[1].NotJudged))
	}
	return lines
}

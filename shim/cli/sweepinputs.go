package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/internal/unwrap"
	"loadline.dev/shim/scenario"
	"loadline.dev/shim/sweep"
	"loadline.dev/shim/view"
)

// readSweep reads a file of kind Sweep and its inputs.
func readSweep(ctx context.Context, name string, engine engineFlags) (*sweep.Plan, error) {
	content, err := unwrap.File(name, unwrap.MostBytes)
	if err != nil {
		return nil, err
	}
	file, err := sweep.ParseFile(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	beside := func(path string) string {
		if filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(filepath.Dir(name), path)
	}
	var names []string
	var scenarios []*loadlinev1.Scenario
	for i, in := range file.Spec.Inputs {
		called, read, err := readInput(ctx, in, beside, engine)
		if err != nil {
			return nil, fmt.Errorf("%s: spec.inputs[%d]: %w", name, i, err)
		}
		names, scenarios = append(names, called), append(scenarios, read)
	}
	plan, err := sweep.NewPlan(file, names, scenarios)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return plan, nil
}

func readInput(ctx context.Context, in sweep.Input, beside func(string) string,
	engine engineFlags) (string, *loadlinev1.Scenario, error) {
	if in.Scenario != "" {
		file := beside(in.Scenario)
		name, read, err := scenario.Load(file)
		if err != nil {
			return "", nil, err
		}
		return cmp.Or(in.Name, name, baseName(file)), read, nil
	}
	source := scenarioSource{sourceFlags: sourceFlags{files: []string{beside(in.Dump)}}, engine: engine,
		settings: settings{Configuration: billSettings()}}
	for _, list := range in.Prices {
		source.settings.ScaleUp.Prices = append(source.settings.ScaleUp.Prices, beside(list))
	}
	if in.Load != nil {
		source.load = *in.Load
	}
	read, _, err := source.derive(ctx, nil)
	return cmp.Or(in.Name, baseName(in.Dump)), read, err
}

func baseName(file string) string {
	return strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
}

// scenarioSource is a cluster to derive a scenario from.
type scenarioSource struct {
	sourceFlags
	settings settings
	load     scenario.Curve
	engine   engineFlags
}

// readsScenario are the settings that concern a scenario, in the form of readBy.
var readsScenario = []string{"scaleUp.prices", "scaleUp.pricing.spotFactor", "scaleUp.startupTaints",
	"scaleUp.ignoreTaints", "scaleUp.startupTaintPrefixes", "scaleUp.statusTaints"}

// derive makes a scenario of the cluster. The engine says what its nodes cost.
func (s *scenarioSource) derive(ctx context.Context, stdin io.Reader) (*loadlinev1.Scenario, []string, error) {
	cluster := scenario.Cluster{USDPerHour: map[string]float64{}, Load: s.load}
	bill, err := s.bill(ctx, stdin, &cluster)
	if err != nil {
		return nil, nil, err
	}
	cluster.Groups, cluster.GroupOf = bill.GetDerivedGroups(), bill.groupOf
	if cluster.GPUResources, err = s.gpuResources(); err != nil {
		return nil, nil, err
	}
	for _, group := range bill.GetGroups() {
		if group.UsdPerHour != nil && group.GetNodes() > 0 {
			cluster.USDPerHour[group.GetNodeGroup()] = group.GetUsdPerHour() / float64(group.GetNodes())
		}
	}
	if cluster.Protected, err = s.protected(ctx, cluster.Pods); err != nil {
		return nil, nil, err
	}
	read, notes, err := scenario.Derive(&cluster)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", s.name(), err)
	}
	others := noteOtherNodes(bill.GetOtherNodes(), [2]string{"takes no part, nor do its pods",
		"take no part, nor do their pods"})
	return read, slices.Concat(priceNotes(bill.GetPriceSources()), others, notes), nil
}

func (s *scenarioSource) gpuResources() ([]string, error) {
	conn, err := s.engine.open()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	names, err := engine.GPUResources(conn)()
	return names, engineError(err)
}

// protectedAtOnce bounds one question about pods: each has its annotations and a time.
const protectedAtOnce = 1000

// protected returns the pods that annotations protected when the newest of all pods was created: a dump does not tell
// when it was made.
func (s *scenarioSource) protected(ctx context.Context, pods []*v1.Pod) (map[*v1.Pod]bool, error) {
	conn, err := s.engine.open()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	var now int64
	var asked []*v1.Pod
	for _, pod := range pods {
		now = max(now, pod.CreationTimestamp.Unix())
		if len(view.PlanningAnnotations(pod.Annotations)) > 0 {
			asked = append(asked, pod)
		}
	}
	protected := map[*v1.Pod]bool{}
	for some := range slices.Chunk(asked, protectedAtOnce) {
		request := &loadlinev1.DescribeRequest{NowS: now}
		for _, pod := range some {
			bytes, err := (&v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: view.PlanningAnnotations(pod.Annotations)},
				Status: v1.PodStatus{StartTime: pod.Status.StartTime}}).Marshal()
			if err != nil {
				return nil, err
			}
			request.Pods = append(request.Pods, bytes)
		}
		answer, err := loadlinev1.NewClusterStateClient(conn).Describe(ctx, request)
		if err != nil {
			return nil, engineError(err)
		}
		for i, is := range answer.GetProtectedPods() {
			protected[some[i]] = is
		}
	}
	return protected, nil
}

// bill has the cluster billed, and keeps its pods and disruption budgets.
func (s *scenarioSource) bill(ctx context.Context, stdin io.Reader, cluster *scenario.Cluster) (*billPlan, error) {
	asked := billSource{mode: "off", settings: s.settings}
	asked.tellPod = func(pod *v1.Pod) { cluster.Pods = append(cluster.Pods, pod) }
	asked.tellObject = func(object any) {
		if budget, ok := object.(*policyv1.PodDisruptionBudget); ok {
			cluster.Budgets = append(cluster.Budgets, budget)
		}
	}
	return asked.ask(ctx, &s.sourceFlags, s.engine, stdin)
}

func (a *app) newScenario() *cobra.Command {
	var s scenarioSource
	var name string
	var peak int64
	command := &cobra.Command{
		Use:   "scenario",
		Short: "Derive a file of kind Scenario, for simulate and sweep, from a cluster or a dump",
		Long: `Write a file of kind Scenario that is like a cluster: its node groups as its nodes tell, with their prices,
and its pods by who owns them. A dump shows one moment: how the load of its Deployments changes over the day
is said by flags, or in the file. What is not as in the cluster is said in comments.`,
		Example: `  loadline scenario -f cluster.json --daily-percent 50 > scenario.yaml
  loadline simulate --scenario scenario.yaml --days 30`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("peak-hour") {
				s.load.PeakHour = &peak
			}
			var err error
			if s.settings.Configuration, err = s.settings.flags.Question(""); err != nil {
				return usageError{err}
			}
			read, notes, err := s.derive(cmd.Context(), a.streams.In)
			if err != nil {
				return err
			}
			content, err := scenario.Document(name, read)
			if err != nil {
				return err
			}
			for _, note := range notes {
				fmt.Fprintf(a.streams.Out, "# %s\n", note)
			}
			_, err = a.streams.Out.Write(content)
			return err
		},
	}
	flags := command.Flags()
	addSourceFlags(flags, &s.sourceFlags)
	flags.StringVar(&name, "name", "cluster", "name of the scenario")
	s.settings.addFlags(flags, billSettings(), readsScenario)
	flags.Int64Var(&s.load.DailyPercent, "daily-percent", 0, "pods of Deployments that are missing at the quietest hour")
	flags.Int64Var(&s.load.WeekendPercent, "weekend-percent", 0, "and at weekends")
	flags.Int64Var(&peak, "peak-hour", 14, "the hour of the peak, UTC")
	addEngineFlag(flags, &s.engine)
	return command
}

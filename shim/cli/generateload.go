package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/generateload"
	"loadline.dev/shim/report/texttable"
)

const generateLoadHelp = `Make load on a cluster: Deployments of pods that request what is given, may use what is given,
and do nothing. Amounts are drawn from a range once for each Deployment, the same ones for the same
--seed.

All of it carries the label loadline.dev/generated-load=NAME, and --remove takes away what carries it in
the namespace, and nothing else. Made again under the same name with other numbers, the load changes to
these; Deployments, their budgets and bare pods that are too many then stay, until --remove, and bare
pods stay as they are.`

// generateLoadFlags are the flags of `generate-load`.
type generateLoadFlags struct {
	cluster             clusterFlags
	options             generateload.Options
	cpu, memory, factor string
	remove, dryRun      bool
	wait                bool
	timeout             time.Duration
}

func (a *app) newGenerateLoad() *cobra.Command {
	var f generateLoadFlags
	command := &cobra.Command{
		Use:   "generate-load [--pods N] [--remove]",
		Short: "Make load on a cluster, and take it away again",
		Long:  generateLoadHelp,
		Example: `  loadline generate-load --name burst --pods 200 --deployments 10 --cpu 100m-1 --memory 128Mi-1Gi \
    --limit-factor 1-4 --over 1m
  loadline generate-load --name burst --remove`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return usageError{err}
			}
			return f.run(cmd.Context(), a.streams)
		},
	}
	flags, o := command.Flags(), &f.options
	flags.StringVar(&o.Name, "name", "load", "name of the load: those of its objects begin with it")
	flags.IntVar(&o.Pods, "pods", 10, "pods in all")
	flags.IntVar(&o.Deployments, "deployments", 1, "Deployments that share them")
	flags.BoolVar(&o.Bare, "bare", false, "no Deployments, but bare pods that no controller creates again")
	flags.StringVar(&f.cpu, "cpu", "100m", "what a pod requests: an amount, or LOW-HIGH")
	flags.StringVar(&f.memory, "memory", "128Mi", "the same of memory")
	flags.StringVar(&f.factor, "limit-factor", "1", "limits over requests: a number, or LOW-HIGH; 0: no limits")
	flags.Uint64Var(&o.Seed, "seed", 1, "settles what is drawn")
	flags.DurationVar(&o.Over, "over", 0, "time over which the pods come, evenly")
	flags.StringVar(&o.MaxUnavailable, "max-unavailable", "",
		"also make a disruption budget for each Deployment: a number, or a percentage")
	flags.StringVar(&o.Image, "image", "registry.k8s.io/pause:3.10", "image of the pods")
	flags.StringToStringVar(&o.Annotations, "annotation", nil, "KEY=VALUE of the Deployments, or bare pods")
	flags.StringToStringVar(&o.NodeSelector, "node-selector", nil, "LABEL=VALUE of the nodes that the pods go to")
	flags.BoolVar(&f.wait, "wait", true, "wait until all pods run")
	flags.DurationVar(&f.timeout, "timeout", 30*time.Minute, "after which it is given up")
	flags.BoolVar(&f.remove, "remove", false, "take the load away, and wait until it is gone")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print what would be made, and make nothing")
	addClusterFlags(flags, &f.cluster)
	flags.Lookup("namespace").Usage = "namespace of the load; without it that of the kubeconfig context"
	return command
}

// check reads what the flags say in words.
func (f *generateLoadFlags) check() (err error) {
	if f.options.CPU, err = generateload.ParseRange(f.cpu); err != nil {
		return fmt.Errorf("--cpu %w", err)
	}
	if f.options.Memory, err = generateload.ParseRange(f.memory); err != nil {
		return fmt.Errorf("--memory %w", err)
	}
	low, high, two := strings.Cut(f.factor, "-")
	if !two {
		high = low
	}
	if f.options.LowFactor, err = strconv.ParseFloat(low, 64); err == nil {
		f.options.HighFactor, err = strconv.ParseFloat(high, 64)
	}
	if err != nil {
		return fmt.Errorf("--limit-factor %q: must be a number, or LOW-HIGH", f.factor)
	}
	if f.remove && f.dryRun {
		return fmt.Errorf("--remove and --dry-run: must not be given both")
	}
	return f.options.Check()
}

func (f *generateLoadFlags) run(ctx context.Context, streams Streams) error {
	var err error
	if f.options.Namespace = f.cluster.givenNamespace(); f.options.Namespace == "" && !f.dryRun {
		if f.options.Namespace, _, err = f.cluster.config().Namespace(); err != nil {
			return err
		}
	}
	if f.dryRun {
		return f.print(streams)
	}
	rest, err := f.cluster.restConfig()
	if err != nil {
		return err
	}
	rest.QPS, rest.Burst = 100, 200 // a request or three for each Deployment
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	began := time.Now()
	g := generateload.Generator{Client: client, Options: f.options, Report: func(line string) {
		fmt.Fprintf(streams.Out, "%6.1f s  %s\n", time.Since(began).Seconds(), texttable.Escape(line))
	}}
	if f.remove {
		return g.Remove(ctx)
	}
	if err := g.Make(ctx); err != nil || !f.wait {
		return err
	}
	return g.Wait(ctx)
}

func (f *generateLoadFlags) print(streams Streams) error {
	for _, object := range f.options.Objects() {
		text, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		fmt.Fprintf(streams.Out, "---\n%s", text)
	}
	return nil
}

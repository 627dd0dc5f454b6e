package cli

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"

	"loadline.dev/shim/usage"
	"loadline.dev/shim/usage/profile"
	"loadline.dev/shim/usage/source"
)

const usageHelp = `Collect what pods use and make profiles of workloads of it: for each hour of the day, UTC, the 90th
percentile of the CPU and the maximum of the memory of one pod, over the last seven days.

One of three tells what pods use:

  --prometheus URL   cAdvisor's metrics, an hour at a time, with the past; kube-state-metrics tells which
                     workload a pod is of, or with --owners=api the API server, which knows no pods that are gone
  --metrics-api      metrics.k8s.io, once a minute, from now on
  --from FILE        samples in CSV or Parquet, with the columns time, namespace, kind, name, cpu_milli and
                     memory_bytes; - for standard input

The profiles are written to ConfigMaps loadline-usage-0 to -7 of --namespace, of 4 MiB in all at most, each
hour. With --output FILE they are written to a file in place of that, as CSV, - for standard output. With
--once it asks, writes and ends.

/livez, /readyz, /healthz and /metrics are served at --bind-address.`

// Whom the owners of pods are asked of.
const (
	ownersStateMetrics = "kube-state-metrics"
	ownersAPI          = "api"
)

// usageFlags are the flags of `loadline usage`.
type usageFlags struct {
	cluster     clusterFlags
	prometheus  source.PrometheusOptions
	metricsAPI  bool
	file        string
	owners      string
	options     usage.Options
	once        bool
	output      string
	bindAddress string
	logs        logFlags
}

func (a *app) newUsage() *cobra.Command {
	f := usageFlags{options: usage.DefaultOptions(), prometheus: source.DefaultPrometheus()}
	command := &cobra.Command{
		Use:   "usage --prometheus URL | --metrics-api | --from FILE",
		Short: "Collect what pods use by the hour of the day, for scores and load lines by expected use",
		Long:  usageHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if err := f.logs.apply(); err != nil {
				return err
			}
			return f.run(cmd.Context(), a.streams.In, a.streams.Out)
		},
	}
	f.addTo(command.Flags())
	return command
}

func (f *usageFlags) addTo(flags *pflag.FlagSet) {
	p := &f.prometheus
	flags.StringVar(&p.Address, "prometheus", "", "URL of a Prometheus, such as http://prometheus-k8s.monitoring.svc:9090")
	flags.StringVar(&p.TokenFile, "prometheus-token-file", "", "file with a bearer token for it, read for each question")
	flags.StringVar(&p.CAFile, "prometheus-ca-file", "", "authorities of its certificate, PEM; empty: those of the system")
	flags.StringVar(&p.Selector, "prometheus-selector", "", `further label matchers of all metrics that are asked for, `+
		`those of cAdvisor and of kube-state-metrics, such as cluster="a"`)
	flags.DurationVar(&p.Step, "step", p.Step, "time between two samples of Prometheus")
	flags.DurationVar(&p.RateWindow, "rate-window", p.RateWindow,
		"time over which Prometheus averages CPU; at least two scrapes long")
	flags.DurationVar(&p.Timeout, "timeout", p.Timeout, "how long an answer of Prometheus is waited for")
	flags.IntVar(&p.MostSeries, "max-series", p.MostSeries, "most series in an answer of Prometheus")
	flags.Int64Var(&p.MostBytes, "max-answer-bytes", p.MostBytes,
		"most bytes of an answer of Prometheus; where there are more, it is asked for half of the time at once")
	flags.BoolVar(&f.metricsAPI, "metrics-api", false, "ask metrics.k8s.io")
	flags.StringVar(&f.file, "from", "", "file with samples, CSV or Parquet; - for standard input")
	flags.StringVar(&f.owners, "owners", ownersStateMetrics, "who tells Prometheus' pods' workloads: "+ownersStateMetrics+
		", of the same Prometheus, or "+ownersAPI)
	o := &f.options
	flags.IntVar(&o.Profiles.Days, "days", o.Profiles.Days, "days that count, 1 to 31")
	flags.IntVar(&o.Profiles.Percent, "percentile", o.Profiles.Percent, "percentile of CPU, 1 to 100")
	flags.IntVar(&o.Profiles.MostWorkloads, "max-workloads", o.Profiles.MostWorkloads,
		"most workloads that are kept, 1 to 10000; namespaces share them")
	flags.DurationVar(&o.Poll, "poll-interval", o.Poll, "time between two questions to metrics.k8s.io, and until the "+
		"next try where Prometheus fails")
	flags.DurationVar(&o.Publish, "write-interval", o.Publish, "time between two writes of the profiles")
	flags.StringVarP(&o.Namespace, "namespace", "n", "kube-system", "namespace of the ConfigMaps")
	flags.BoolVar(&f.once, "once", false, "ask, write and end")
	flags.StringVar(&f.output, "output", "", "write the profiles to this file as CSV and end; - for standard output")
	flags.StringVar(&f.bindAddress, "bind-address", "", "HOST:PORT for health and metrics as plain HTTP; empty: none")
	addKubeconfigFlags(flags, &f.cluster)
	f.logs = addLogFlags(flags, 0)
}

func (f *usageFlags) check() error {
	sources := 0
	for _, given := range []bool{f.prometheus.Address != "", f.metricsAPI, f.file != ""} {
		if given {
			sources++
		}
	}
	switch {
	case sources != 1:
		return usagef("one of --prometheus URL, --metrics-api and --from FILE is required")
	case f.metricsAPI && f.once && f.output == "":
		return usagef("--once with --metrics-api knows one minute alone, which would take the place of all profiles " +
			"that are there: leave --once out, or write to a file with --output")
	case f.owners != ownersStateMetrics && f.owners != ownersAPI:
		return usagef("--owners %q: must be %s or %s", f.owners, ownersStateMetrics, ownersAPI)
	}
	return f.checkBounds()
}

// checkBounds checks numbers and times.
func (f *usageFlags) checkBounds() error {
	p, o := &f.prometheus, &f.options
	switch {
	case o.Profiles.Days < 1 || o.Profiles.Days > 31:
		return usagef("--days %d: must be 1 to 31", o.Profiles.Days)
	case o.Profiles.Percent < 1 || o.Profiles.Percent > 100:
		return usagef("--percentile %d: must be 1 to 100", o.Profiles.Percent)
	case o.Profiles.MostWorkloads < 1 || o.Profiles.MostWorkloads > profile.Default().MostWorkloads:
		return usagef("--max-workloads %d: must be 1 to %d", o.Profiles.MostWorkloads, profile.Default().MostWorkloads)
	case p.Step < 15*time.Second || p.Step > time.Hour || p.Step%time.Second != 0 || time.Hour%p.Step != 0:
		return usagef("--step %v: must be 15s to 1h, and divide an hour into whole seconds", p.Step)
	case p.RateWindow < 15*time.Second || p.RateWindow > time.Hour || p.RateWindow%time.Second != 0:
		return usagef("--rate-window %v: must be 15s to 1h, in whole seconds", p.RateWindow)
	case p.Timeout < time.Second || p.Timeout > 5*time.Minute:
		return usagef("--timeout %v: must be 1s to 5m", p.Timeout)
	case p.MostSeries < 1 || p.MostSeries > 1_000_000:
		return usagef("--max-series %d: must be 1 to 1000000", p.MostSeries)
	case p.MostBytes < 1<<20 || p.MostBytes > 256<<20:
		return usagef("--max-answer-bytes %d: must be %d to %d", p.MostBytes, 1<<20, 256<<20)
	case o.Poll < 10*time.Second || o.Poll > time.Hour:
		return usagef("--poll-interval %v: must be 10s to 1h", o.Poll)
	case o.Publish < time.Minute || o.Publish > 24*time.Hour:
		return usagef("--write-interval %v: must be 1m to 24h", o.Publish)
	}
	return nil
}

// run collects until the context ends, or once.
func (f *usageFlags) run(ctx context.Context, in io.Reader, out io.Writer) error {
	var client kubernetes.Interface
	asksAPI := f.metricsAPI || f.prometheus.Address != "" && f.owners == ownersAPI
	if asksAPI || f.output == "" {
		rest, err := f.cluster.restConfig()
		if err != nil {
			return err
		}
		if client, err = kubernetes.NewForConfig(rest); err != nil {
			return err
		}
	}
	from, err := f.source(ctx, in, client, asksAPI)
	if err != nil {
		return err
	}
	if f.output != "" {
		client = nil
	}
	collector := usage.New(f.options, from, client, usage.NewMetrics(Version))
	if f.bindAddress != "" {
		closeServer, err := collector.Serve(f.bindAddress)
		if err != nil {
			return err
		}
		defer closeServer()
	}
	if f.once || f.output != "" || f.file != "" {
		return f.runOnce(ctx, collector, out)
	}
	return collector.Run(ctx)
}

// source returns what tells what pods use.
func (f *usageFlags) source(ctx context.Context, in io.Reader, client kubernetes.Interface,
	asksAPI bool) (source.Source, error) {
	if f.file != "" {
		return source.OpenFile(f.file, in, time.Now())
	}
	var owners source.Owners
	if asksAPI {
		var err error
		if owners, err = source.FollowOwners(ctx, client); err != nil {
			return nil, err
		}
	}
	if f.metricsAPI {
		return source.NewMetricsAPI(client.CoreV1().RESTClient(), owners), nil
	}
	f.prometheus.Owners = owners
	return source.NewPrometheus(f.prometheus)
}

// runOnce asks once for all that there is, and writes the profiles.
func (f *usageFlags) runOnce(ctx context.Context, collector *usage.Collector, out io.Writer) error {
	now, err := collector.Once(ctx, time.Now())
	if err != nil {
		return err
	}
	if f.output == "" {
		return collector.Publish(ctx, now)
	}
	profiles := collector.Profiles(now)
	if f.output == "-" {
		return profile.WriteTable(out, profiles)
	}
	file, err := os.Create(f.output)
	if err != nil {
		return err
	}
	if err := profile.WriteTable(file, profiles); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}

package cli

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	restclient "k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/providers"
)

const autoscalerHelp = `Decide in each loop which nodes a cluster needs, and act on it: node groups grow for pods
that wait, room is kept free for further pods, and nodes that are not needed are drained in parallel, by
evictions that disruption budgets allow.

One call of the engine plans all of it, or a part: --decisions=scale-down beside an autoscaler that decides
the rest, such as Cluster Autoscaler with --scale-down-enabled=false. Karpenter's NodeClaims
(--cloud=karpenter), Cluster API (--cloud=cluster-api) or a server of the externalgrpc protocol
(--cloud-address) make the machines. All flags of Cluster Autoscaler are accepted. Under the name
cluster-autoscaler they also have its defaults, except --expander, --kube-client-qps and --kube-client-burst.

In mode observe, the default, it plans, and writes its status, a ConfigMap, and its lease. In mode act it
also makes and deletes machines, taints nodes and evicts pods. A configuration file has the settings of all
flags; --write-config-to prints one. Flags override it.

The autoscaler serves a page that shows the last loop, /statusz, /livez, /readyz, /healthz and /metrics at
--bind-address.`

// autoscalerFlags are the flags of the autoscaler.
type autoscalerFlags struct {
	cluster       clusterFlags
	file, writeTo string
	kubernetes    string
	record        string
	settings      *config.Flags
	logs          logFlags
}

// newAutoscaler returns the command under a name. Under that of Cluster Autoscaler it has its
// defaults.
func (a *app) newAutoscaler(name string) *cobra.Command {
	var f autoscalerFlags
	command := &cobra.Command{
		Use:   name + " (--cloud KIND | --cloud-address ADDRESS) [--mode act]",
		Short: "Make the nodes that a cluster needs, and remove those that it does not need",
		Long:  autoscalerHelp,
		Args:  argsOf(name),
		RunE: func(cmd *cobra.Command, rest []string) error {
			settings, warning, err := f.settings.Configuration(f.file)
			if err != nil {
				return usageError{err}
			}
			if len(rest) > 0 {
				warning = fmt.Sprintf("arguments without a flag have no effect: %q\n%s", rest, warning)
			}
			if f.writeTo != "" {
				warn(warning)
				return settings.Write(f.writeTo, a.streams.Out)
			}
			if err := settings.CloudProvider.Check(); err != nil {
				return usageError{err}
			}
			if err := f.logs.apply(); err != nil {
				return err
			}
			warn(warning)
			return f.run(cmd.Context(), &settings)
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.file, "config", "",
		"configuration file, kind AutoscalerConfiguration of loadline.dev/v1alpha1; flags override what it says")
	flags.StringVar(&f.writeTo, "write-config-to", "",
		"write the configuration that would be used to this file, - for standard output, and end")
	addKubeconfigFlags(flags, &f.cluster)
	flags.StringVar(&f.kubernetes, "kubernetes", "", "URL of the API server, in place of that of the default kubeconfig "+
		"or of the pod, whose credentials stay; with --kubeconfig it has no effect, as in Cluster Autoscaler")
	flags.SetNormalizeFunc(cliflag.WordSepNormalizeFunc) // --skip_headers is --skip-headers, as in Kubernetes
	flags.StringVar(&f.record, "record", "", fmt.Sprintf("file to write down what the engine is given and asked, up to "+
		"%d MiB: 'loadline replay' and -f of other commands read it", mostRecorded>>20))
	f.settings = config.AddFlags(flags, name == dropInName)
	f.logs = addLogFlags(flags, 2) // a line per decision
	return command
}

// argsOf says which arguments a program of a name takes beside flags: Cluster Autoscaler takes no notice of any.
func argsOf(program string) cobra.PositionalArgs {
	if program == dropInName {
		return cobra.ArbitraryArgs
	}
	return cobra.NoArgs
}

func warn(text string) {
	for line := range strings.Lines(text) {
		klog.InfoS("Warning: " + strings.TrimSpace(line))
	}
}

// A lease is renewed each 2 s by default, with two requests.
const (
	leaseQPS   = 5
	leaseBurst = 10
)

// gcPercent is the garbage that piles up before it is collected, in percent of what is kept. Nearly all of the memory
// are objects of the cluster, which stay: to look through them more often costs little, and saves a third of the
// memory.
const gcPercent = 40

// limitGarbage has the garbage of this process collected early, unless the user says when.
func limitGarbage() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// mostRecorded bounds the file of --record. Chosen: nine days at the default --scan-interval of a quiet cluster of 200
// nodes, of which a loop takes 13 KB.
const mostRecorded = 1 << 30

func (f *autoscalerFlags) run(ctx context.Context, settings *config.Configuration) error {
	limitGarbage()
	warning, err := f.cluster.follow(f.kubernetes)
	if err != nil {
		return usageError{err}
	}
	warn(warning)
	cluster, files, err := f.cluster.forProviders(settings)
	if err != nil {
		return err
	}
	sized, warnings, err := settings.Sizing.Load()
	if err != nil {
		return err
	}
	for _, warning := range warnings {
		warn(warning)
	}
	conn, err := f.open(settings)
	if err != nil {
		return err
	}
	defer conn.Close()
	cloud, closeCloud, err := providers.Open(&settings.CloudProvider, cluster)
	if err != nil {
		return err
	}
	defer closeCloud()
	a := autoscaler.New(settings, files, conn, cluster.Client, cluster.Objects, cloud, Version)
	// The lease has a client, and so requests per second, of its own: nothing else may hold up its renewal.
	leases := restclient.CopyConfig(cluster.Config)
	leases.QPS, leases.Burst = leaseQPS, leaseBurst
	if a.Leases, err = coordination.NewForConfig(leases); err != nil {
		return err
	}
	a.Size(sized)
	rights, known := context.WithCancel(ctx)
	defer known()
	go a.FollowRights(rights)
	return a.Run(ctx)
}

// createBeside creates a file that nobody else reads, since it names pods of all namespaces. A file of that name, which
// a former process has written, gets the suffix .1.
func createBeside(name string) (*os.File, error) {
	if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() {
		if err := os.Rename(name, name+".1"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
}

// open connects to the engine, and has its calls written down if that is wanted, until this process ends.
func (f *autoscalerFlags) open(settings *config.Configuration) (engine.Conn, error) {
	conn, err := openEngine(settings.Engine,
		&loadlinev1.EngineConfig{MaxQuestionBytes: int64(settings.MaxQuestionBytes),
			SlackNamespace: settings.Slack.Namespace})
	if err != nil || f.record == "" {
		return conn, err
	}
	file, err := createBeside(f.record)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return engine.Record(conn, &engine.Bounded{W: file, Left: mostRecorded, Ended: func(reason error) {
		klog.ErrorS(reason, "The recording ends", "file", f.record)
	}}), nil
}

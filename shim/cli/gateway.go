package cli

import (
	"context"
	"net"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/expander"
	"loadline.dev/shim/extender"
	"loadline.dev/shim/policy"
	"loadline.dev/shim/usage/store"
)

const gatewayHelp = `Answer programs that do not have the engine in them. The gateway watches the cluster itself.

--extender-address: the prioritize verb of the HTTP extender protocol, for a kube-scheduler without our
plugin. In its configuration:

  extenders:
  - urlPrefix: http://127.0.0.1:8888    # --extender-address
    prioritizeVerb: prioritize
    weight: 1
    nodeCacheCapable: true              # names only: whole nodes are too slow
    ignorable: true
    httpTimeout: 200ms

Without an answer of the engine within --engine-timeout, every node gets 0: the scheduler goes on by its
own scores. With --max-limits-over-allocatable it answers the filter verb too, so that no pod lifts a
node above the load line: add filterVerb: filter and ignorable: false.

--expander-address: the gRPC expander of Cluster Autoscaler, for the choice of the node group that grows.
Its flags:

  --expander=grpc,least-waste
  --grpc-expander-url=127.0.0.1:8889    # --expander-address
  --grpc-expander-cert=tls.crt          # what signed --tls-cert-file, or that file itself

The autoscaler speaks TLS only: 'loadline gateway certificate' makes a pair to start with. Without an
answer of the engine within --expander-timeout, the group with the least waste is chosen.

/livez, /readyz, /healthz and /metrics are served at --health-address, and at --extender-address.

An address that other machines can reach needs TLS. Certificate files are read again when they change.`

// The treatments of a pod under a load line when the engine does not answer.
const (
	refuseOnFailure = "Refuse"
	allowOnFailure  = "Allow"
)

// readsByGateway are the settings of the autoscaler that the gateway has too.
var readsByGateway = slices.Concat(readsPrices, readsRanking, []string{"filters.maxLimitsOverAllocatable",
	"filters.lineNodeLabelPrefix", "filters.lineExemptNamespaces"})

// gatewayFlags are the flags of the gateway.
type gatewayFlags struct {
	cluster  clusterFlags
	extender extender.Options
	expander expander.Options
	// expanderAddress is where the expander answers; empty: there is none.
	expanderAddress string
	engine          engineFlags
	score           *policyFlags
	settings        settings
	onFailure       string
	logs            logFlags
}

func (a *app) newGateway() *cobra.Command {
	var f gatewayFlags
	command := &cobra.Command{
		Use:   "gateway --extender-address HOST:PORT | --expander-address HOST:PORT",
		Short: "Answer a stock kube-scheduler as an HTTP extender, Cluster Autoscaler as a gRPC expander, or both",
		Long:  gatewayHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if err := f.logs.apply(); err != nil {
				return err
			}
			return f.run(cmd.Context())
		},
	}
	f.addTo(command.Flags())
	command.AddCommand(a.newCertificate())
	return command
}

func (f *gatewayFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.extender.Address, "extender-address", "",
		"HOST:PORT of the extender; a loopback address, or TLS")
	flags.StringVar(&f.expanderAddress, "expander-address", "", "HOST:PORT of the expander; needs TLS")
	flags.StringVar(&f.extender.HealthAddress, "health-address", "",
		"HOST:PORT for health and metrics as plain HTTP, for the kubelet and Prometheus")
	flags.StringVar(&f.extender.Certificates.Cert, "tls-cert-file", "", "certificate of the server, PEM")
	flags.StringVar(&f.extender.Certificates.Key, "tls-private-key-file", "", "its private key, PEM")
	flags.StringVar(&f.extender.Certificates.ClientCA, "client-ca-file", "", "authorities of which a scheduler needs "+
		"a certificate, PEM; probes need none, and an autoscaler cannot have one")
	flags.StringSliceVar(&f.extender.Certificates.ClientNames, "client-allowed-names", nil,
		"common or alternative names that such a certificate may have, such as system:kube-scheduler; none given: "+
			"whomever these authorities know, which of a cluster's own authority are all its users")
	flags.DurationVar(&f.extender.Timeout, "engine-timeout", extender.DefaultTimeout,
		"how long an extender request waits for the engine; less than the scheduler's httpTimeout")
	flags.DurationVar(&f.expander.Timeout, "expander-timeout", expander.DefaultTimeout,
		"how long an expander request waits for the engine; at most 3.5s")
	flags.IntVar(&f.expander.MaxRequestBytes, "max-request-bytes", expander.DefaultMaxRequestBytes,
		"how large an expander request may be; each node group repeats its pods, of 1.7 kB each as a rule")
	flags.StringVar(&f.extender.View, "view", extender.DefaultView,
		"name of the extender's view in the engine; gateways that share a loadlined need different ones")
	addClusterFlags(flags, &f.cluster)
	_ = flags.MarkHidden("namespace")
	addEngineFlag(flags, &f.engine)
	f.score = addPolicyFlags(flags)
	f.settings.addFlags(flags, config.Default(), readsByGateway)
	flags.StringVar(&f.onFailure, "on-engine-failure", refuseOnFailure, "with a load line, where the engine does not "+
		"answer: Refuse places no pod; Allow places it, whatever the line")
	flags.StringVar(&f.extender.UsageNamespace, "usage-namespace", store.DefaultNamespace, "namespace of the "+
		"ConfigMaps of 'loadline usage', which are read where the policy counts expected use")
	f.logs = addLogFlags(flags, 0)
}

func (f *gatewayFlags) check() error {
	if f.extender.Address == "" && f.expanderAddress == "" {
		return usagef("--extender-address HOST:PORT or --expander-address HOST:PORT is required")
	}
	if err := f.extender.Check(); err != nil {
		return usageError{err}
	}
	if f.expanderAddress == "" {
		return nil
	}
	if _, _, err := net.SplitHostPort(f.expanderAddress); err != nil {
		return usagef("--expander-address %q: must be HOST:PORT: %v", f.expanderAddress, err)
	}
	if f.extender.Certificates.Cert == "" {
		return usagef("--expander-address needs --tls-cert-file and --tls-private-key-file: Cluster Autoscaler " +
			"speaks TLS only; 'loadline gateway certificate' makes a pair")
	}
	if err := f.expander.Check(); err != nil {
		return usageError{err}
	}
	return nil
}

// loadLine returns the load line of the filter verb; nil: there is none.
func (f *gatewayFlags) loadLine(counting policy.Policy) (*loadlinev1.LoadLine, bool, error) {
	filters := &f.settings.Filters
	line, err := policy.ReadLine(filters.MaxLimitsOverAllocatable, filters.LineNodeLabelPrefix,
		filters.LineExemptNamespaces)
	if err != nil {
		return nil, false, usageError{config.AsFlag(filters, err)}
	}
	if err := line.CheckCounting(counting); err != nil {
		return nil, false, usageError{err}
	}
	if f.onFailure != refuseOnFailure && f.onFailure != allowOnFailure {
		return nil, false, usagef("--on-engine-failure %q: must be %s or %s", f.onFailure, refuseOnFailure,
			allowOnFailure)
	}
	return line.Proto(counting.Proto()), f.onFailure == allowOnFailure, nil
}

// run serves until the context ends.
func (f *gatewayFlags) run(ctx context.Context) error {
	p, err := f.score.policy()
	if err != nil {
		return err
	}
	if err := f.settings.read(&f.engine); err != nil {
		return err
	}
	f.extender.Policy, f.extender.Version = p.Proto(), Version
	if f.extender.Line, f.extender.AllowOnFailure, err = f.loadLine(p); err != nil {
		return err
	}
	if f.expander.Policy, err = f.settings.rank(); err != nil {
		return err
	}
	f.expander.Line = f.extender.Line
	client, err := f.cluster.client()
	if err != nil {
		return err
	}
	conn, err := f.engine.open()
	if err != nil {
		return err
	}
	defer conn.Close()
	learns := f.expanderAddress != "" && f.expander.Policy.ReadsPods()
	f.extender.KeepsCluster = learns
	gateway, err := extender.New(f.extender, conn, client)
	if err != nil {
		return err
	}
	if f.expanderAddress != "" {
		f.expander.Nodes = gateway.Nodes
		if learns {
			f.expander.Cluster = gateway.Ask
		}
		server, err := expander.New(f.expander, conn, gateway.TLS())
		if err != nil {
			return err
		}
		gateway.Add(extender.Door{Name: "expander", Address: f.expanderAddress, Serve: server.Serve,
			Collectors: server.Collectors()})
	}
	return gateway.Run(ctx)
}

package cli

import (
	"flag"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"loadline.dev/shim/engine"
	"loadline.dev/shim/extender"
)

func (a *app) newGateway() *cobra.Command {
	var cluster clusterFlags
	var options extender.Options
	address := ""
	var how *policyFlags
	command := &cobra.Command{
		Use:   "gateway --extender-address HOST:PORT",
		Short: "Answer a stock kube-scheduler as an HTTP extender",
		Long: `Answer the prioritize verb of the HTTP extender protocol, for a kube-scheduler without our plugin. The gateway watches
nodes and pods itself. In the scheduler's configuration:

  extenders:
  - urlPrefix: http://127.0.0.1:8888    # --extender-address
    prioritizeVerb: prioritize
    weight: 1
    nodeCacheCapable: true              # names only: whole nodes are too slow
    ignorable: true
    httpTimeout: 200ms

Without an answer of the engine within --engine-timeout, every node gets 0: the scheduler goes on by its own scores.
/livez, /readyz, /healthz and /metrics are served at the same address.

An address that other machines can reach needs TLS. Certificate files are read again when they change.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if options.Address == "" {
				return usagef("--extender-address HOST:PORT is required")
			}
			if err := options.Check(); err != nil {
				return usageError{err}
			}
			p, err := how.policy()
			if err != nil {
				return err
			}
			options.Policy, options.Version = p.Proto(), Version
			client, err := cluster.client()
			if err != nil {
				return err
			}
			conn, err := engine.Open(address)
			if err != nil {
				return err
			}
			defer conn.Close()
			gateway, err := extender.New(options, conn, client)
			if err != nil {
				return err
			}
			return gateway.Run(cmd.Context())
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.Address, "extender-address", "", "HOST:PORT to answer at; a loopback address, or TLS")
	flags.StringVar(&options.HealthAddress, "health-address", "", "HOST:PORT for health and metrics as plain HTTP as well, for the kubelet and Prometheus")
	flags.StringVar(&options.Certificates.Cert, "tls-cert-file", "", "certificate of the server, PEM")
	flags.StringVar(&options.Certificates.Key, "tls-private-key-file", "", "its private key, PEM")
	flags.StringVar(&options.Certificates.ClientCA, "client-ca-file", "", "authorities of which a client needs a certificate, PEM; probes need none")
	flags.DurationVar(&options.Timeout, "engine-timeout", extender.DefaultTimeout, "how long a request waits for the engine; less than the scheduler's httpTimeout")
	flags.StringVar(&options.View, "view", extender.DefaultView, "name of the view in the engine; gateways that share a loadlined need different ones")
	addClusterFlags(flags, &cluster)
	_ = flags.MarkHidden("namespace")
	addEngineFlag(flags, &address)
	how = addPolicyFlags(flags)
	addLogFlags(flags)
	return command
}

// addLogFlags adds the flags of Kubernetes components that say how much is logged.
func addLogFlags(flags *pflag.FlagSet) {
	all := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(all)
	for _, name := range []string{"v", "vmodule"} {
		flags.AddGoFlag(all.Lookup(name))
	}
}

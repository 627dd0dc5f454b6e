package cli

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/certificates"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/providers"
	"loadline.dev/shim/providers/serve"
	"loadline.dev/shim/unknownfields"
)

const providerHelp = `Offer a provider of nodes as a server of Cluster Autoscaler's externalgrpc protocol, so that
Cluster Autoscaler itself, or an autoscaler of ours on another machine, can use it:

  cluster-autoscaler --cloud-provider=externalgrpc --cloud-config=FILE   # address: HOST:PORT of --listen

Groups, nodes and rights are those of 'loadline autoscaler --cloud=KIND', which needs no such server. Prices for
Cluster Autoscaler's --expander=price are those of the price lists, by instance type.

An address that other machines can reach needs TLS. Certificate files are read again when they change.`

// providerFlags are the flags of the server of a provider.
type providerFlags struct {
	cluster  clusterFlags
	listen   string
	files    certificates.Files
	settings *config.Flags
	logs     logFlags
}

// served are the flags of the autoscaler that say what a provider is like, and what its nodes cost.
var served = []string{
	"karpenter-", "cloud-config", "clusterapi-", "node-group-auto-discovery", "prices", "spot-factor", "engine",
	"kube-client-",
}

func (a *app) newProvider() *cobra.Command {
	var f providerFlags
	kinds := slices.DeleteFunc(slices.Clone(providers.Kinds), func(kind string) bool {
		return kind == providers.ExternalGRPC || kind == providers.None
	})
	command := &cobra.Command{
		Use:       "provider " + strings.Join(kinds, "|") + " --listen HOST:PORT",
		Short:     "Offer a provider of nodes to Cluster Autoscaler, as a server of its externalgrpc protocol",
		Long:      providerHelp,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: kinds,
		RunE: func(cmd *cobra.Command, args []string) error {
			settings, _, err := f.settings.Configuration("")
			if err != nil {
				return usageError{err}
			}
			settings.CloudProvider.Kind = args[0]
			if err := f.check(); err != nil {
				return usageError{err}
			}
			if err := f.logs.apply(); err != nil {
				return err
			}
			return f.run(cmd.Context(), &settings)
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.listen, "listen", "", "HOST:PORT or unix:///path/to/socket; a loopback address, or TLS")
	flags.StringVar(&f.files.Cert, "tls-cert-file", "", "certificate of the server, PEM")
	flags.StringVar(&f.files.Key, "tls-private-key-file", "", "its private key, PEM")
	flags.StringVar(&f.files.ClientCA, "client-ca-file", "", "authorities of which a client needs a certificate, PEM")
	addKubeconfigFlags(flags, &f.cluster)
	f.settings = config.AddSomeFlags(flags, served...)
	f.logs = addLogFlags(flags, 0)
	return command
}

func (f *providerFlags) check() error {
	if f.listen == "" {
		return fmt.Errorf("--listen is required: HOST:PORT or unix:///path/to/socket")
	}
	if err := f.files.Check(); err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(f.listen)
	local := strings.HasPrefix(f.listen, "unix://")
	if !local && err != nil {
		return fmt.Errorf("--listen %q: must be HOST:PORT or unix:///path/to/socket", f.listen)
	}
	if ip := net.ParseIP(host); !local && !f.files.Given() && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("--listen %s can be reached from other machines, which could have nodes deleted: give "+
			"--tls-cert-file, --tls-private-key-file and --client-ca-file", f.listen)
	}
	return nil
}

// forProviders returns what providers need of the cluster, and the files that the configuration names.
func (c *clusterFlags) forProviders(settings *config.Configuration) (providers.Cluster, *config.Loaded, error) {
	rest, err := c.restConfig()
	if err != nil {
		return providers.Cluster{}, nil, err
	}
	rest.QPS, rest.Burst = float32(settings.KubeClientQPS), settings.KubeClientBurst
	client, err := unknownfields.NewClient(rest)
	if err != nil {
		return providers.Cluster{}, nil, err
	}
	objects, err := dynamic.NewForConfig(rest)
	if err != nil {
		return providers.Cluster{}, nil, err
	}
	files, err := settings.ReadFiles()
	if err != nil {
		return providers.Cluster{}, nil, err
	}
	for _, warning := range files.Warnings {
		warn(warning)
	}
	return providers.Cluster{
		Config: rest, Objects: objects, Client: client, Catalogues: files.Prices.GetCatalogues(),
	}, files, nil
}

func (f *providerFlags) run(ctx context.Context, settings *config.Configuration) error {
	cluster, files, err := f.cluster.forProviders(settings)
	if err != nil {
		return err
	}
	var prices *serve.Prices
	if conn, err := engine.Open(settings.Engine); err != nil {
		klog.ErrorS(err, "What nodes cost is not known: no engine reads the price lists. Groups grow all the same")
	} else {
		defer conn.Close()
		prices = serve.NewPrices(loadlinev1.NewAutoscalerClient(conn), files.Prices)
	}
	provider, closeProvider, err := providers.Open(&settings.CloudProvider, cluster)
	if err != nil {
		return err
	}
	defer closeProvider()
	options := []grpc.ServerOption{grpc.UnaryInterceptor(serve.Bound)}
	if f.files.Given() {
		certificate, err := certificates.Load(f.files, time.Now, func(bool) {})
		if err != nil {
			return err
		}
		options = append(options, grpc.Creds(credentials.NewTLS(certificate.ServerConfig())))
	}
	listener, err := f.listenAt()
	if err != nil {
		return err
	}
	server := grpc.NewServer(options...)
	serve.New(provider, prices).Register(server)
	defer context.AfterFunc(ctx, server.Stop)()
	klog.InfoS("Provider answers", "kind", settings.CloudProvider.Kind, "address", f.listen)
	if err := server.Serve(listener); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

func (f *providerFlags) listenAt() (net.Listener, error) {
	path, local := strings.CutPrefix(f.listen, "unix://")
	if !local {
		return net.Listen("tcp", f.listen)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == os.ModeSocket {
		_ = os.Remove(path) // of a process that has ended
	}
	return net.Listen("unix", path)
}

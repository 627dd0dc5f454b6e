package cli

import (
	"fmt"
	"net/url"
	goruntime "runtime"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // what a kubeconfig may name
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"loadline.dev/shim/unknownfields"
)

// clusterFlags name a cluster as kubectl does, by the same flags.
type clusterFlags struct {
	flags *genericclioptions.ConfigFlags // nil: no flag was added
	// other, if set, is the kubeconfig context in place of that of --context: one of several clusters.
	other string
	// server, if set, is the URL of the API server in place of the one that the kubeconfig or the pod states.
	server string
}

// newClusterFlags returns the flags of kubectl, but for its cache of kinds, which nothing here reads.
func newClusterFlags() *genericclioptions.ConfigFlags {
	flags := genericclioptions.NewConfigFlags(false)
	flags.CacheDir = nil
	return flags
}

func addClusterFlags(flags *pflag.FlagSet, c *clusterFlags) {
	c.flags = newClusterFlags()
	c.flags.AddFlags(flags)
	flags.Lookup("namespace").Usage = "namespace of a pod that is named without one"
}

// addKubeconfigFlags adds --kubeconfig and --context alone.
func addKubeconfigFlags(flags *pflag.FlagSet, c *clusterFlags) {
	c.flags = newClusterFlags()
	flags.StringVar(c.flags.KubeConfig, "kubeconfig", "", "path of the kubeconfig file")
	flags.StringVar(c.flags.Context, "context", "", "name of the kubeconfig context")
}

// follow takes over Cluster Autoscaler's --kubernetes, and returns a line if some of it has no effect.
func (c *clusterFlags) follow(kubernetes string) (warning string, err error) {
	if kubernetes == "" {
		return "", nil
	}
	given, err := url.Parse(kubernetes)
	if err != nil {
		return "", fmt.Errorf("--kubernetes: %w", err)
	}
	switch {
	case *c.flags.KubeConfig != "": // as in Cluster Autoscaler
		return "--kubernetes has no effect: the API server is that of --kubeconfig", nil
	case given.Scheme == "" || given.Host == "":
		return fmt.Sprintf("--kubernetes=%s has no effect: it has no scheme, such as https://, or no host",
			given.Redacted()), nil
	case given.RawQuery != "" || given.User != nil:
		warning = "--kubernetes: all but scheme, host and path has no effect: credentials are those of the kubeconfig " +
			"or of the pod"
	}
	c.server = (&url.URL{Scheme: given.Scheme, Host: given.Host, Path: given.Path}).String()
	return warning, nil
}

// contextName is the kubeconfig context that is named; empty: none is.
func (c *clusterFlags) contextName() string {
	if c.other != "" || c.flags == nil {
		return c.other
	}
	return *c.flags.Context
}

// givenNamespace is the namespace of -n; empty: none is given.
func (c *clusterFlags) givenNamespace() string {
	if c.flags == nil {
		return ""
	}
	return *c.flags.Namespace
}

func (c *clusterFlags) config() clientcmd.ClientConfig {
	if c.flags == nil {
		c.flags = newClusterFlags()
	}
	if c.other != "" {
		given := *c.flags.Context
		*c.flags.Context = c.other // the loader copies it
		defer func() { *c.flags.Context = given }()
	}
	return c.flags.ToRawKubeConfigLoader()
}

// client returns a client of the cluster.
func (c *clusterFlags) client() (kubernetes.Interface, error) {
	config, err := c.restConfig()
	if err != nil {
		return nil, err
	}
	return unknownfields.NewClient(config)
}

// restConfig says how to reach the cluster. Requests are not limited here: flow control of the API server protects it.
func (c *clusterFlags) restConfig() (*rest.Config, error) {
	config, err := c.config().ClientConfig()
	if err != nil && c.server != "" && clientcmd.IsEmptyConfig(err) {
		config, err = &rest.Config{}, nil
	}
	if err != nil {
		return nil, err
	}
	if c.server != "" { // as an override of the loader it would keep the account of the pod out
		config.Host = c.server
	}
	config.QPS = -1
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.UserAgent = fmt.Sprintf("loadline/%s (%s/%s)", Version, goruntime.GOOS, goruntime.GOARCH)
	return config, nil
}

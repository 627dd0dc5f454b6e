package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // what a kubeconfig may name
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/pager"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/dump"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/internal/kuberelease"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/slack"
	"loadline.dev/shim/unknownfields"
)

// engineFlags say which engine is asked, and how one in this process is set up.
type engineFlags struct {
	address string
	// maxQuestionBytes and slackNamespace are as the flags of loadlined; 0 and empty: its default.
	maxQuestionBytes int64
	slackNamespace   string
}

func addEngineFlag(flags *pflag.FlagSet, e *engineFlags) {
	flags.StringVar(&e.address,
		"engine", "inprocess", "engine: inprocess, inprocess:///path/to/libloadline.so or unix:///path/to/socket")
	flags.Int64Var(&e.maxQuestionBytes, "max-question-bytes", 256<<20,
		"memory that one question may take in an engine in this process; what would take more is cut short and says so")
	if flags.Lookup("slack-namespace") == nil {
		flags.StringVar(&e.slackNamespace, "slack-namespace", slack.DefaultNamespace,
			"namespace of our own placeholders, for an engine in this process")
	}
}

func (e engineFlags) open() (engine.Conn, error) {
	return engine.OpenWith(e.address,
		&loadlinev1.EngineConfig{MaxQuestionBytes: e.maxQuestionBytes, SlackNamespace: e.slackNamespace})
}

// clusterFlags name a cluster as kubectl does.
type clusterFlags struct {
	kubeconfig, context, namespace string
}

func addClusterFlags(flags *pflag.FlagSet, c *clusterFlags) {
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "path of the kubeconfig file")
	flags.StringVar(&c.context, "context", "", "name of the kubeconfig context")
	flags.StringVarP(&c.namespace, "namespace", "n", "", "namespace of a pod that is named without one")
}

func (c *clusterFlags) config() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: c.context}
	overrides.Context.Namespace = c.namespace
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
}

// client returns a client of the cluster.
func (c *clusterFlags) client() (kubernetes.Interface, error) {
	config, err := c.restConfig()
	if err != nil {
		return nil, err
	}
	return unknownfields.NewClient(config)
}

// restConfig says how to reach the cluster.
func (c *clusterFlags) restConfig() (*rest.Config, error) {
	config, err := c.config().ClientConfig()
	if err != nil {
		return nil, err
	}
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.UserAgent = "loadline/" + Version + " " + rest.DefaultKubernetesUserAgent()
	return config, nil
}

// sourceFlags say where a command finds the cluster: on an API server, or in a dump.
type sourceFlags struct {
	clusterFlags
	file string
}

func addSourceFlags(flags *pflag.FlagSet, s *sourceFlags) {
	addClusterFlags(flags, &s.clusterFlags)
	flags.StringVarP(&s.file, "filename", "f", "", "dump of a cluster, as 'kubectl get nodes,pods -A -o json' prints "+
		"it, instead of a live one; - is standard input")
}

// name says what the cluster is called.
func (s *sourceFlags) name() string {
	switch {
	case s.file == "-":
		return "standard input"
	case s.file != "":
		return s.file
	case s.context != "":
		return s.context
	}
	if raw, err := s.config().RawConfig(); err == nil && raw.CurrentContext != "" {
		return raw.CurrentContext
	}
	return "cluster"
}

// minor returns the release of Kubernetes by which pods count that are being resized: the one that is meant, or that of
// the API server; 0: the default.
func (s *sourceFlags) minor(fit *loadlinev1.FitOptions) int32 {
	if s.file != "" {
		return fit.GetKubernetesMinor()
	}
	client, err := s.client()
	if err != nil { // reading the cluster says so
		return fit.GetKubernetesMinor()
	}
	return kuberelease.Meant(fit.GetKubernetesMinor(), client.Discovery())
}

// loadGroups reads a file with node groups; the empty name stands for none.
func loadGroups(name string) (nodegroup.File, error) {
	if name == "" {
		return nodegroup.File{}, nil
	}
	return nodegroup.Load(name)
}

// podName is a pod as named on the command line.
type podName struct{ namespace, name string }

func (p podName) String() string { return p.namespace + "/" + p.name }

// parsePod reads [NAMESPACE/]NAME.
func (s *sourceFlags) parsePod(text string) (podName, error) {
	namespace, name, given := strings.Cut(text, "/")
	if !given {
		name = text
		namespace = s.defaultNamespace()
	}
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return podName{}, usagef("pod %q: must be NAME or NAMESPACE/NAME", text)
	}
	return podName{namespace, name}, nil
}

// defaultNamespace is that of -n, else on a live cluster that of the context.
func (s *sourceFlags) defaultNamespace() string {
	if s.namespace != "" {
		return s.namespace
	}
	if s.file == "" {
		if namespace, _, err := s.config().Namespace(); err == nil && namespace != "" {
			return namespace
		}
	}
	return metav1.NamespaceDefault
}

// read hands all nodes and pods to the handler and returns how many kinds of other objects were there. `kinds` are the
// kinds that a live cluster is asked for, of those that planners look up; nil: all.
func (s *sourceFlags) read(ctx context.Context, stdin io.Reader, handler dump.Handler,
	kinds []string) (dump.Counts, error) {
	if s.file != "" {
		return dump.ReadFile(s.file, stdin, handler)
	}
	client, err := s.client()
	if err != nil {
		return dump.Counts{}, err
	}
	counts, err := list(ctx, client, handler)
	if err != nil {
		return counts, err
	}
	counts.Objects = map[string]int{}
	if handler.Object != nil {
		err = listObjects(ctx, filterObjects(client), handler.Object, counts.Objects)
	}
	if err == nil && handler.PlannerObject != nil {
		planned := plannerObjects(client)
		maps.DeleteFunc(planned,
			func(kind string, _ pager.ListPageFunc) bool { return kinds != nil && !slices.Contains(kinds, kind) })
		err = listObjects(ctx, planned, handler.PlannerObject, counts.Objects)
	}
	return counts, err
}

// list reads nodes and pods from an API server, some hundred at a time.
func list(ctx context.Context, client kubernetes.Interface, handler dump.Handler) (dump.Counts, error) {
	var counts dump.Counts
	nodes := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return client.CoreV1().Nodes().List(ctx, o)
	})
	err := nodes.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		counts.Nodes++
		return handler.Node(object.(*v1.Node))
	})
	if err != nil {
		return counts, fmt.Errorf("nodes: %w", err)
	}
	pods := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, o)
	})
	err = pods.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		counts.Pods++
		return handler.Pod(object.(*v1.Pod))
	})
	if err != nil {
		return counts, fmt.Errorf("pods: %w", err)
	}
	return counts, nil
}

// filterObjects lists what filters look up, by kind.
func filterObjects(client kubernetes.Interface) map[string]pager.ListPageFunc {
	core, storage := client.CoreV1(), client.StorageV1()
	return map[string]pager.ListPageFunc{
		"Namespace": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return core.Namespaces().List(ctx, o)
		},
		"PersistentVolume": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return core.PersistentVolumes().List(ctx, o)
		},
		"PersistentVolumeClaim": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return core.PersistentVolumeClaims(metav1.NamespaceAll).List(ctx, o)
		},
		"StorageClass": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return storage.StorageClasses().List(ctx, o)
		},
		"CSINode": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return storage.CSINodes().List(ctx, o)
		},
		"CSIDriver": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return storage.CSIDrivers().List(ctx, o)
		},
		"DeviceClass": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.ResourceV1().DeviceClasses().List(ctx, o)
		},
	}
}

// plannerObjects lists what planners look up, by kind.
func plannerObjects(client kubernetes.Interface) map[string]pager.ListPageFunc {
	apps := client.AppsV1()
	return map[string]pager.ListPageFunc{
		"PodDisruptionBudget": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll).List(ctx, o)
		},
		"Service": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.CoreV1().Services(metav1.NamespaceAll).List(ctx, o)
		},
		"ReplicationController": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.CoreV1().ReplicationControllers(metav1.NamespaceAll).List(ctx, o)
		},
		"ReplicaSet": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return apps.ReplicaSets(metav1.NamespaceAll).List(ctx, o)
		},
		"StatefulSet": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return apps.StatefulSets(metav1.NamespaceAll).List(ctx, o)
		},
		"DaemonSet": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return apps.DaemonSets(metav1.NamespaceAll).List(ctx, o)
		},
		"Deployment": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return apps.Deployments(metav1.NamespaceAll).List(ctx, o)
		},
		"Job": func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.BatchV1().Jobs(metav1.NamespaceAll).List(ctx, o)
		},
	}
}

// listObjects hands all objects of these kinds to handle and counts them by kind. A kind that may not be listed is
// left out: what hangs on it is not judged.
func listObjects(ctx context.Context, kinds map[string]pager.ListPageFunc, handle func(any) error,
	counts map[string]int) error {
	for kind, list := range kinds {
		count := 0
		err := pager.New(list).EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
			count++
			return handle(object)
		})
		switch {
		case apierrors.IsForbidden(err):
			continue
		case apierrors.IsNotFound(err): // this API server has no such kind
		case err != nil:
			return fmt.Errorf("%s: %w", kind, err)
		}
		counts[kind] = count
	}
	return nil
}

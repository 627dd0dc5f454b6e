package clusterapi

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Options say where the management cluster is, and which of its objects are node groups. The flags are those of Cluster
// Autoscaler.
type Options struct {
	CloudConfig            string   `json:"cloudConfig" flag:"cloud-config" help:"cluster-api: kubeconfig file of the management cluster; empty: it is the cluster itself"`
	Authoritative          bool     `json:"cloudConfigAuthoritative" flag:"clusterapi-cloud-config-authoritative" help:"cluster-api: without --cloud-config the management cluster is that of this pod, and not that of --kubeconfig"`
	NodeGroupAutoDiscovery []string `json:"nodeGroupAutoDiscovery" flag:"node-group-auto-discovery" entries:"whole" help:"cluster-api: clusterapi:namespace=NAMESPACE,clusterName=NAME,LABEL=VALUE, each part if wanted: node groups are those that match one of them; none: all that have the annotations; may be given more than once"`
}

// group is the API group of Cluster API, which CAPI_GROUP replaces, as in Cluster Autoscaler.
func group() string { return cmp.Or(os.Getenv("CAPI_GROUP"), "cluster.x-k8s.io") }

// discoverer begins an entry of NodeGroupAutoDiscovery.
const discoverer = "clusterapi"

// scope is what one entry of NodeGroupAutoDiscovery selects.
type scope struct {
	namespace, cluster string
	labels             labels.Selector
}

// Check returns an error for entries that select nothing that can be.
func (o *Options) Check() error {
	_, err := o.scopes()
	return err
}

func (o *Options) scopes() (all []scope, err error) {
	for _, entry := range o.NodeGroupAutoDiscovery {
		one, err := scopeOf(entry)
		if err != nil {
			return nil, fmt.Errorf("--node-group-auto-discovery %q: %w", entry, err)
		}
		all = append(all, one)
	}
	return all, nil
}

func scopeOf(entry string) (scope, error) {
	s := scope{labels: labels.NewSelector()}
	kind, parts, ok := strings.Cut(entry, ":")
	if !ok || kind != discoverer {
		return s, fmt.Errorf("must be %s: and KEY=VALUE, separated by commas", discoverer)
	}
	for part := range strings.SplitSeq(parts, ",") {
		if part == "" {
			continue
		}
		key, value, ok := strings.Cut(part, "=")
		switch {
		case !ok || strings.Contains(value, "="):
			return s, fmt.Errorf("%q must be KEY=VALUE", part)
		case key == "namespace":
			s.namespace = value
		case key == "clusterName":
			s.cluster = value
		default:
			requirement, err := labels.NewRequirement(key, selection.Equals, []string{value})
			if err != nil {
				return s, err
			}
			s.labels = s.labels.Add(*requirement)
		}
	}
	return s, nil
}

// namespaceOf returns the namespace that all scopes have in common; empty: there is none.
func namespaceOf(scopes []scope) string {
	if len(scopes) == 0 {
		return ""
	}
	for _, s := range scopes[1:] {
		if s.namespace != scopes[0].namespace {
			return ""
		}
	}
	return scopes[0].namespace
}

// inScope says whether an object is of one of the scopes.
func (p *Provider) inScope(o object) bool {
	if len(p.scopes) == 0 {
		return true
	}
	for _, s := range p.scopes {
		if (s.namespace == "" || s.namespace == o.GetNamespace()) && (s.cluster == "" || s.cluster == o.cluster()) &&
			s.labels.Matches(labels.Set(o.GetLabels())) {
			return true
		}
	}
	return false
}

// callTime bounds one call, a page of a list included: an API server that hangs must not hold up a loop for ever.
const callTime = 30 * time.Second

// podConfig returns how a pod reaches the API server of its cluster. A test replaces it.
var podConfig = rest.InClusterConfig

// management returns how the management cluster is reached. `workload` is how the cluster is whose nodes are planned.
func (o *Options) management(workload *rest.Config) (*rest.Config, error) {
	config, err := rest.CopyConfig(workload), error(nil)
	switch {
	case o.CloudConfig != "":
		if config, err = clientcmd.BuildConfigFromFlags("", o.CloudConfig); err != nil {
			return nil, fmt.Errorf("--cloud-config %q: %w", o.CloudConfig, err)
		}
	case o.Authoritative:
		if config, err = podConfig(); err != nil {
			return nil, fmt.Errorf("--clusterapi-cloud-config-authoritative: %w", err)
		}
	}
	config.QPS, config.Burst, config.Timeout = workload.QPS, workload.Burst, callTime
	return config, nil
}

// Package clusterapi makes and deletes machines by Cluster API: MachineDeployments, MachineSets and MachinePools with
// the annotations of Cluster Autoscaler are the node groups. It needs nothing but the API server of the management
// cluster. Objects are read as they are in whichever version the API server prefers.
package clusterapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"
	"k8s.io/klog/v2"

	"loadline.dev/shim/autoscaler/cloud"
)

// Provider fulfils cloud.Provider for Cluster API. Safe for concurrent use.
type Provider struct {
	objects  dynamic.Interface    // of the management cluster
	nodes    kubernetes.Interface // of the cluster whose nodes are planned
	served   discovery.DiscoveryInterface
	scopes   []scope
	changing chan struct{} // holds an element while machines are asked for or deleted: one change at a time

	mu      sync.Mutex
	version string            // of the API group; empty: not known yet; guarded by mu
	kinds   map[string]bool   // that the API server has; guarded by mu
	state   map[string]*found // the last look, by id of the group; guarded by mu
	warned  map[string]bool   // what has been logged; guarded by mu
	refused map[string]error  // why machine templates may not be read, by id of the group; guarded by mu
}

var _ cloud.Provider = (*Provider)(nil)

// Open returns a provider. `workload` and `nodes` reach the cluster whose nodes are planned.
func Open(o *Options, workload *rest.Config, nodes kubernetes.Interface) (*Provider, error) {
	config, err := o.management(workload)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return New(o, objects, served, nodes)
}

// New returns a provider with clients for the management cluster and for the one whose nodes are planned.
func New(o *Options, objects dynamic.Interface, served discovery.DiscoveryInterface, nodes kubernetes.Interface) (
	*Provider, error) {
	scopes, err := o.scopes()
	if err != nil {
		return nil, err
	}
	return &Provider{objects: objects, served: served, nodes: nodes, scopes: scopes, changing: make(chan struct{}, 1),
		warned: map[string]bool{}, refused: map[string]error{}}, nil
}

// Close does nothing: clients hold no connection that has to be given up.
func (p *Provider) Close() error { return nil }

// Refresh looks at all node groups and machines.
func (p *Provider) Refresh(ctx context.Context) error {
	if err := p.discover(); err != nil {
		return fmt.Errorf("objects of Cluster API: %w", err)
	}
	state, err := p.look(ctx)
	if err != nil {
		p.mu.Lock()
		p.version = "" // it may have gone with an upgrade
		p.mu.Unlock()
		return fmt.Errorf("objects of Cluster API: %w", err)
	}
	p.mu.Lock()
	p.state = state
	maps.DeleteFunc(p.refused, func(id string, _ error) bool { return state[id] == nil })
	p.mu.Unlock()
	return nil
}

// discover finds out which version of the API group to speak, and which kinds there are. CAPI_VERSION names another
// version, as in Cluster Autoscaler.
func (p *Provider) discover() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.version != "" {
		return nil
	}
	version := os.Getenv("CAPI_VERSION")
	if version == "" {
		groups, err := p.served.ServerGroups()
		if err != nil {
			return err
		}
		for _, g := range groups.Groups {
			if g.Name == group() {
				version = g.PreferredVersion.Version
			}
		}
	}
	if version == "" {
		return fmt.Errorf("the management cluster has no API group %s: is Cluster API installed there?", group())
	}
	list, err := p.served.ServerResourcesForGroupVersion(schema.GroupVersion{Group: group(), Version: version}.String())
	if err != nil {
		return err
	}
	kinds := map[string]bool{}
	for _, r := range list.APIResources {
		kinds[r.Name] = true
	}
	if !kinds[resourceOf(machineKind)] {
		return fmt.Errorf("%s/%s has no machines: is Cluster API installed?", group(), version)
	}
	p.version, p.kinds = version, kinds
	klog.InfoS("Node groups come from Cluster API", "group", group(), "version", version)
	return nil
}

// of returns what reads and writes objects of a kind.
func (p *Provider) of(kind, namespace string) dynamic.ResourceInterface {
	p.mu.Lock()
	version := p.version
	p.mu.Unlock()
	resource := p.objects.Resource(schema.GroupVersionResource{Group: group(), Version: version,
		Resource: resourceOf(kind)})
	if namespace == "" {
		return resource
	}
	return resource.Namespace(namespace)
}

// list returns all objects of a kind; none where the API server does not have it.
func (p *Provider) list(ctx context.Context, kind, namespace string, options metav1.ListOptions) ([]object, error) {
	p.mu.Lock()
	there := p.kinds[resourceOf(kind)]
	p.mu.Unlock()
	if !there {
		return nil, nil
	}
	var all []object
	from := p.of(kind, namespace)
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (list runtime.Object, err error) {
		return from.List(ctx, o)
	})
	err := pages.EachListItem(ctx, options, func(item runtime.Object) error {
		one, ok := item.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("a list of %s holds a %T", kind, item)
		}
		all = append(all, object{*one})
		return nil
	})
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("no right to list %s: %w", resourceOf(kind), err)
	}
	return all, err
}

// errUnknownGroup says that a group is not among those that were last seen.
var errUnknownGroup = errors.New("is not among the node groups of Cluster API")

// group returns a group as it was last seen.
func (p *Provider) group(id string) (*found, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.state[id]; f != nil {
		return f, nil
	}
	return nil, fmt.Errorf("%s %w", id, errUnknownGroup)
}

// Package providers chooses who makes machines: a server of Cluster Autoscaler's externalgrpc protocol, or something
// that the API server alone reaches. The loop knows none of them: it has a cloud.Provider.
package providers

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/providers/clusterapi"
	"loadline.dev/shim/providers/karpenter"
)

// Kinds of providers.
const (
	// ExternalGRPC is a server of Cluster Autoscaler's externalgrpc protocol.
	ExternalGRPC = "externalgrpc"
	// Karpenter makes nodes by NodeClaims.
	Karpenter = "karpenter"
	// ClusterAPI is Cluster API.
	ClusterAPI = "cluster-api"
	// None is no provider: there are no node groups. Nothing can be done but keep slack on the nodes that are there.
	None = "none"
)

// Making are the kinds of providers that make machines.
var Making = []string{ExternalGRPC, Karpenter, ClusterAPI}

// Kinds are the kinds of providers.
var Kinds = append(slices.Clone(Making), None)

// Options say which provider is meant, and where it is.
type Options struct {
	Kind          string `json:"kind" flag:"cloud" help:"who makes machines: externalgrpc, a server of Cluster Autoscaler's protocol at --cloud-address; karpenter, by NodeClaims; cluster-api; or none, in mode observe, or in mode act if slack is the only decision"`
	cloud.Options `json:",inline"`
	Karpenter     karpenter.Options  `json:"karpenter"`
	ClusterAPI    clusterapi.Options `json:"clusterAPI"`
}

// DefaultOptions are those without file and flags.
func DefaultOptions() Options {
	return Options{Kind: ExternalGRPC, Options: cloud.DefaultOptions(), Karpenter: karpenter.DefaultOptions()}
}

// CheckKind returns an error for a kind that there is not.
func (o *Options) CheckKind() error {
	if !slices.Contains(Kinds, o.Kind) {
		return fmt.Errorf("cloudProvider.kind %q: must be one of %s", o.Kind, strings.Join(Kinds, ", "))
	}
	return nil
}

// Check returns an error for options with which no provider can be opened.
func (o *Options) Check() error {
	if err := o.CheckKind(); err != nil {
		return err
	}
	switch o.Kind {
	case ExternalGRPC:
		if o.Address == "" {
			return errors.New("cloudProvider.address (--cloud-address) is required: the address of a server of the " +
				"externalgrpc protocol; or name another provider by cloudProvider.kind (--cloud)")
		}
		return o.Options.Check()
	case ClusterAPI:
		return o.ClusterAPI.Check()
	}
	return nil
}

// Cluster is what providers that work through the API server need. Kinds that do not need it take no notice of it.
type Cluster struct {
	// Config, Objects and Client reach the cluster whose nodes are planned.
	Config  *rest.Config
	Objects dynamic.Interface
	Client  kubernetes.Interface
	// Catalogues are the price lists, which name instance types.
	Catalogues []*loadlinev1.PriceCatalogue
}

// Open returns the provider that is meant, and a function that ends it.
func Open(o *Options, cluster Cluster) (cloud.Provider, func(), error) {
	if err := o.Check(); err != nil {
		return nil, nil, err
	}
	switch o.Kind {
	case Karpenter:
		provider, err := karpenter.New(o.Karpenter, cluster.Objects, cluster.Catalogues)
		return provider, func() {}, err
	case ClusterAPI:
		provider, err := clusterapi.Open(&o.ClusterAPI, cluster.Config, cluster.Client)
		return provider, func() {}, err
	case None:
		return none{}, func() {}, nil
	}
	client, err := cloud.Open(o.Options)
	if err != nil {
		return nil, nil, err
	}
	return client, func() { _ = client.Close() }, nil
}

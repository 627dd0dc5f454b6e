// Package providers chooses who makes machines: a server of Cluster Autoscaler's externalgrpc protocol, or something
// that the API server alone reaches. The loop knows none of them: it has a cloud.Provider.
package providers

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/providers/karpenter"
)

// ExternalGRPC is the kind of a server of Cluster Autoscaler's externalgrpc protocol. Karpenter makes nodes by
// NodeClaims.
const (
	ExternalGRPC = "externalgrpc"
	Karpenter    = "karpenter"
)

// Kinds are the kinds of providers.
var Kinds = []string{ExternalGRPC, Karpenter}

// Options say which provider is meant, and where it is.
type Options struct {
	Kind          string `json:"kind" flag:"cloud" help:"who makes machines: externalgrpc, a server of Cluster Autoscaler's protocol at --cloud-address; or karpenter, by NodeClaims"`
	cloud.Options `json:",inline"`
	Karpenter     karpenter.Options `json:"karpenter"`
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
			return fmt.Errorf("--cloud-address is required: a cloud provider of the externalgrpc protocol; or name another " +
				"one by --cloud")
		}
		return o.Options.Check()
	}
	return nil
}

// Cluster is what providers that work through the API server need. Kinds that do not need it take no notice of it.
type Cluster struct {
	// Objects and Client reach the cluster whose nodes are planned.
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
	if o.Kind == Karpenter {
		provider, err := karpenter.New(o.Karpenter, cluster.Objects, cluster.Catalogues)
		return provider, func() {}, err
	}
	client, err := cloud.Open(o.Options)
	if err != nil {
		return nil, nil, err
	}
	return client, func() { _ = client.Close() }, nil
}

package config

import (
	"fmt"

	"loadline.dev/shim/internal/unwrap"
	"loadline.dev/shim/policy"
	"loadline.dev/shim/providers"
)

// noProvider is what is said where Cluster Autoscaler's command line names no provider that there is here.
const noProvider = "there is no cloud provider: plans are made without node groups, in mode observe, or in mode " +
	"act if slack is the only decision. Add --cloud=karpenter, --cloud=cluster-api, or --cloud=externalgrpc with the " +
	"--cloud-address of a provider's server"

// lacksProvider says whether nothing tells which provider is meant.
func (c *Configuration) lacksProvider() bool {
	return c.CloudProvider.Kind == providers.ExternalGRPC && c.CloudProvider.Address == ""
}

// statesProvider says whether a file, which can be read, names the kind of its provider.
func statesProvider(file string) bool {
	var stated Configuration
	return file != "" && stated.Load(file) == nil && stated.CloudProvider.Kind != ""
}

// grpcFile is Cluster Autoscaler's --cloud-config file of the provider externalgrpc.
type grpcFile struct {
	Address string   `json:"address"`
	Key     string   `json:"key"`
	Cert    string   `json:"cert"`
	CACert  string   `json:"cacert"`
	Timeout Duration `json:"grpc_timeout"`
}

// followProvider chooses the provider that Cluster Autoscaler's --cloud-provider names, unless another flag has.
func (c *Configuration) followProvider(names []string) error {
	name := last(names)
	if !c.lacksProvider() {
		return nil
	}
	switch name {
	case "clusterapi":
		c.CloudProvider.Kind = providers.ClusterAPI
	case providers.ExternalGRPC:
		return c.readGRPCFile()
	}
	return nil
}

func (c *Configuration) readGRPCFile() error {
	name := c.CloudProvider.ClusterAPI.CloudConfig
	if name == "" {
		return nil // --cloud-address is asked for
	}
	content, err := unwrap.File(name, unwrap.MostBytes)
	if err != nil {
		return err
	}
	var file grpcFile
	if err := policy.DecodeStrict(content, &file); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	o := &c.CloudProvider.Options
	o.Address, o.Key, o.Cert, o.CA = file.Address, file.Key, file.Cert, file.CACert
	if file.Timeout.Duration > 0 {
		o.GRPCTimeout = file.Timeout
	}
	return nil
}

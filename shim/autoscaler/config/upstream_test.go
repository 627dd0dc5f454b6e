package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"loadline.dev/shim/providers"
)

// dropIn returns the configuration of a command line of Cluster Autoscaler.
func dropIn(t *testing.T, args ...string) (Configuration, string, error) {
	t.Helper()
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags := AddFlags(set, true)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return flags.Configuration("")
}

// upstreamDefaults are the defaults of the flags of Cluster Autoscaler that have a meaning here, as its flags.go has them.
var upstreamDefaults = map[string]string{
	"balance-similar-node-groups": "false", "balancing-ignore-label": "[]", "balancing-label": "[]",
	"blocking-system-pod-distruption-timeout": "1h0m0s", "bypassed-scheduler-names": "[]",
	"capacity-buffer-controller-enabled": "false", "capacity-quotas-enabled": "false",
	"clusterapi-cloud-config-authoritative": "false", "cordon-node-before-terminating": "true",
	"cores-total": "0:320000", "daemonset-eviction-for-empty-nodes": "false",
	"daemonset-eviction-for-occupied-nodes": "true", "drain-priority-config": "", "emit-per-nodegroup-metrics": "false",
	"enforce-node-group-min-size": "false", "expendable-pods-priority-cutoff": "-10", "force-ds": "false",
	"gpu-total": "[]", "ignore-daemonsets-utilization": "false", "ignore-mirror-pods-utilization": "false",
	"ignore-taint": "[]", "initial-node-group-backoff-duration": "5m0s", "leader-elect": "true",
	"leader-elect-lease-duration": "15s", "leader-elect-renew-deadline": "10s",
	"leader-elect-resource-name": "cluster-autoscaler", "leader-elect-retry-period": "2s",
	"max-allocatable-difference-ratio": "0.05", "max-bulk-soft-taint-count": "10", "max-bulk-soft-taint-time": "3s",
	"max-drain-parallelism": "1", "max-graceful-termination-sec": "600", "max-node-group-backoff-duration": "30m0s",
	"max-node-provision-time": "15m0s", "max-nodes-per-scaleup": "1000", "max-nodes-total": "0",
	"max-inactivity": "10m0s", "max-pod-eviction-time": "2m0s", "max-scale-down-parallelism": "10",
	"max-total-unready-percentage": "45", "write-status-configmap": "true",
	"memory-difference-ratio": "0.015", "memory-total": "0:6400000", "min-replica-count": "0", "namespace": "kube-system",
	"new-pod-scale-up-delay": "0s", "node-delete-delay-after-taint": "5s", "node-deletion-batcher-interval": "0s",
	"node-deletion-candidate-ttl": "0s", "node-deletion-delay-timeout": "2m0s",
	"node-group-backoff-reset-timeout": "3h0m0s", "ok-total-unready-count": "3", "profiling": "false",
	"scale-down-delay-after-add": "10m0s", "scale-down-delay-after-delete": "0s", "scale-down-delay-after-failure": "3m0s",
	"scale-down-delay-type-local": "false", "scale-down-gpu-utilization-threshold": "0.5",
	"scale-down-simulation-timeout": "30s", "scale-down-unneeded-time": "10m0s", "scale-down-unready-enabled": "true",
	"scale-down-unready-time": "20m0s", "scale-down-utilization-threshold": "0.5", "scan-interval": "10s",
	"scheduler-config-file": "", "skip-nodes-with-custom-controller-pods": "true",
	"skip-nodes-with-local-storage": "true", "skip-nodes-with-system-pods": "true", "startup-taint": "[]",
	"status-config-map-name": "cluster-autoscaler-status", "status-taint": "[]",
	// Flags that only Loadline has, with the values by which it does as Cluster Autoscaler does.
	"bind-address": ":8085", "cluster-autoscaler-metrics": "true", "extra-capacity-min-rate": "0%",
}

// A program under the name of Cluster Autoscaler has its defaults. It keeps no room free unless CapacityBuffers ask for
// it, which needs slack among the decisions.
func TestADropInHasTheDefaultsOfClusterAutoscaler(t *testing.T) {
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(set, true)
	for name, want := range upstreamDefaults {
		if flag := set.Lookup(name); flag == nil || flag.DefValue != want {
			t.Errorf("--%s: %+v, want the default %q", name, flag, want)
		}
	}
	c, _, err := dropIn(t)
	if err != nil || !c.Decides(SlackDecision) {
		t.Errorf("decisions %v, error %v", c.Decisions, err)
	}
	policy, err := c.Slack.Proto()
	if err != nil || policy.GetExtraCapacityMinRate() != 0 {
		t.Errorf("slack %v, error %v", policy, err)
	}
}

// The meaning of a flag of Cluster Autoscaler arrives in the configuration, and one without effect is reported in a
// line of its own. A switch that is off asks for nothing.
func TestUpstreamFlags(t *testing.T) {
	c, warning, err := dropIn(t, "--cloud-provider=clusterapi", "--address=:1", "--scale-down-enabled=false",
		"--expander=random,price", "--max-inactivity=5m", "--enable-provisioning-requests", "--force-ds=false",
		"--node-group-auto-discovery=clusterapi:namespace=a,clusterName=b", "--write-status-configmap=false",
		"--node-group-auto-discovery=clusterapi:color=blue", "--allowed-scheduler-names=x,y", "--scale-up-from-zero=true")
	if err != nil {
		t.Fatal(err)
	}
	if c.BindAddress != ":1" || !slices.Equal(c.Decisions, []string{ScaleUpDecision, SlackDecision}) ||
		!slices.Equal(c.ScaleUp.Strategies, []string{"price"}) || c.CloudProvider.Kind != providers.ClusterAPI ||
		!slices.Equal(c.CloudProvider.ClusterAPI.NodeGroupAutoDiscovery, []string{"clusterapi:namespace=a,clusterName=b",
			"clusterapi:color=blue"}) || !c.ScaleUp.Allows("x") || c.ScaleUp.Allows("z") || c.WriteStatus ||
		c.MaxInactivity.Duration != 5*time.Minute {
		t.Errorf("%+v", c)
	}
	var said []string
	for line := range strings.Lines(warning) {
		flag, _, ok := strings.Cut(strings.TrimSpace(line), " has no effect: ")
		if !ok {
			t.Errorf("line %q", line)
		}
		said = append(said, flag)
	}
	want := []string{"--expander random", "--enable-provisioning-requests=true"}
	if !slices.Equal(said, want) {
		t.Errorf("lines %q, want %q", said, want)
	}
}

// A switch that takes a decision away takes what needs it too, and another provider than the named one is no matter of
// --cloud-provider.
func TestUpstreamFlagsKeepTheRest(t *testing.T) {
	c, _, err := dropIn(t, "--decisions=scale-up,scale-down,replace,downscale-order", "--scale-down-enabled=false",
		"--cloud-provider=aws", "--cloud=cluster-api")
	if err != nil || !slices.Equal(c.Decisions, []string{ScaleUpDecision}) ||
		c.CloudProvider.Kind != providers.ClusterAPI {
		t.Errorf("%v, %s, %v", c.Decisions, c.CloudProvider.Kind, err)
	}
	c, warning, err := dropIn(t)
	if err != nil || c.CloudProvider.Kind != providers.None || !strings.Contains(warning, "Add --cloud=") {
		t.Errorf("%s, %q, %v", c.CloudProvider.Kind, warning, err)
	}
}

// Cluster Autoscaler's file for its provider externalgrpc says where the server is.
func TestCloudConfigOfExternalGRPC(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cloud.yaml")
	content := "address: cloud:8086\nkey: /k\ncert: /c\ncacert: /ca\ngrpc_timeout: 9s\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _, err := dropIn(t, "--cloud-provider=externalgrpc", "--cloud-config="+file)
	o := &c.CloudProvider
	if err != nil || o.Kind != providers.ExternalGRPC || o.Address != "cloud:8086" || o.Key != "/k" || o.Cert != "/c" ||
		o.CA != "/ca" || o.GRPCTimeout.Duration != 9*time.Second {
		t.Errorf("%+v, %v", o, err)
	}
	if err := os.WriteFile(file, []byte("adress: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err = dropIn(t, "--cloud-provider=externalgrpc", "--cloud-config="+file); err == nil ||
		!strings.Contains(err.Error(), `unknown field "adress"`) {
		t.Errorf("error %v", err)
	}
}

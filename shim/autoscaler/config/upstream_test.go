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
			"clusterapi:color=blue"}) || !c.ScaleUp.Allows("x") || c.ScaleUp.Allows("z") {
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
	want := []string{"--expander random", "--write-status-configmap=false", "--enable-provisioning-requests=true",
		"--max-inactivity=5m"}
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

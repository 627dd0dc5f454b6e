package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/providers"
)

// upstreamNames returns the flags of Cluster Autoscaler, each with a value that it takes; "bool": it is a switch.
func upstreamNames(t *testing.T) (names []string, values map[string]string) {
	t.Helper()
	content, err := os.ReadFile("testdata/cluster-autoscaler-flags.txt")
	if err != nil {
		t.Fatal(err)
	}
	values = map[string]string{}
	for line := range strings.Lines(string(content)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			names, values[name] = append(names, name), value
		}
	}
	return names, values
}

// autoscalerCommand returns the command as the program of a name has it.
func autoscalerCommand(t *testing.T, program string) *cobra.Command {
	t.Helper()
	root := (&app{}).newRoot(program)
	if program == dropInName {
		return root
	}
	command, _, err := root.Find([]string{"autoscaler"})
	if err != nil {
		t.Fatal(err)
	}
	return command
}

// Every flag of Cluster Autoscaler is taken, in each form in which pflag takes flags there.
func TestEveryFlagOfClusterAutoscaler(t *testing.T) {
	names, values := upstreamNames(t)
	if len(names) != 139+15 { // those of flags.go; and those of the lease and the log, and one that is gone there
		t.Fatalf("%d flags", len(names))
	}
	for _, program := range []string{"loadline", dropInName} {
		for _, name := range names {
			flag, value := "--"+name, values[name]
			forms := [][]string{{flag + "=" + value}, {flag, value}, {flag + "=" + value, flag + "=" + value}}
			if value == "bool" {
				forms = [][]string{{flag}, {flag + "=true"}, {flag + "=false"}, {flag + "=true", flag + "=false"}}
			}
			forms = append(forms, []string{strings.ReplaceAll(forms[0][0], name, strings.ReplaceAll(name, "-", "_"))})
			for _, form := range forms {
				command := autoscalerCommand(t, program)
				if err := command.ParseFlags(form); err != nil || len(command.Flags().Args()) > 0 {
					t.Errorf("%s %q: %v, arguments %q", program, form, err, command.Flags().Args())
				}
			}
		}
	}
}

// The table names no flag of Cluster Autoscaler twice, says of each what becomes of it, and knows all of them but those
// that every program of Kubernetes has.
func TestTableOfUpstreamFlags(t *testing.T) {
	seen := map[string]config.UpstreamFlag{}
	for _, flag := range config.UpstreamFlags() {
		if flag.Text == "" || seen[flag.Name].Name != "" {
			t.Errorf("%+v, before %+v", flag, seen[flag.Name])
		}
		seen[flag.Name] = flag
	}
	common := map[string]bool{"kubeconfig": true, "v": true, "vmodule": true, "logging-format": true, "expander": true,
		"kubernetes": true, "max-empty-bulk-delete": true}
	names, _ := upstreamNames(t)
	for _, name := range names {
		if seen[name].Name == "" && !common[name] {
			t.Errorf("--%s is not in the table", name)
		}
	}
}

// stockCommands are the command lines of Cluster Autoscaler's own examples.
var stockCommands = map[string]string{
	"aws": "./cluster-autoscaler --v=4 --stderrthreshold=info --cloud-provider=aws " +
		"--skip-nodes-with-local-storage=false --expander=least-waste --node-group-auto-discovery=" +
		"asg:tag=k8s.io/cluster-autoscaler/enabled,k8s.io/cluster-autoscaler/prod",
	"azure": "./cluster-autoscaler --v=3 --logtostderr=true --cloud-provider=azure " +
		"--skip-nodes-with-local-storage=false --node-group-auto-discovery=label:cluster-autoscaler-enabled=true,cluster-autoscaler-name=prod",
	"gce": "/cluster-autoscaler --v=4 --stderrthreshold=info --cloud-provider=gce --skip-nodes-with-local-storage=false " +
		"--expander=random --node-group-auto-discovery=mig:namePrefix=nodes,min=1,max=10",
	"hetzner":    "./cluster-autoscaler --cloud-provider=hetzner --stderrthreshold=info --nodes=1:10:CPX11:FSN1:pool1",
	"clusterapi": "/cluster-autoscaler --cloud-provider=clusterapi",
}

// Under the name of Cluster Autoscaler the command lines of its examples are taken as they are, and mean what they say.
// Where there is no such provider here, nothing is done, and a line says which flag is missing.
func TestStockCommandLines(t *testing.T) {
	for provider, line := range stockCommands {
		kind := "none"
		if provider == "clusterapi" {
			kind = "cluster-api"
		}
		code, out, errs := runAs(t, append(strings.Fields(line), "--write-config-to=-")...)
		for _, want := range []string{"mode: observe", "bindAddress: :8085", "resourceName: cluster-autoscaler",
			"statusConfigMapName: cluster-autoscaler-status", "kind: " + kind + "\n"} {
			if code != exitOK || !strings.Contains(out, want) {
				t.Errorf("%s: exit code %d, %s, want %q in %s", provider, code, errs, want, out)
			}
		}
		if skips := strings.Contains(out, "skipNodesWithLocalStorage: true"); skips == strings.Contains(line, "=false") {
			t.Errorf("%s: %s", provider, out)
		}
		code, _, errs = runAs(t, append(strings.Fields(line), "--mode=act", "--write-config-to=-")...)
		const refusal = "mode act: needs a cloud provider, which --cloud names"
		if kind == "none" && (code != exitUsage || !strings.Contains(errs, refusal)) {
			t.Errorf("%s: in mode act exit code %d, %s", provider, code, errs)
		}
	}
}

// mattering are the flags of Cluster Autoscaler by which clusters behave otherwise, each with the line of the
// configuration that it changes here, or the reason why it has no effect.
var mattering = []struct{ flag, config, why string }{
	{"--startup-taint=a", "- a\n", ""},
	{"--startup-taint-prefix=a/", "- a/\n", ""},
	{"--ignore-taint=a", "- a\n", ""},
	{"--status-taint=a", "- a\n", ""},
	{"--allowed-scheduler-names=a", "allowedSchedulerNames:\n  - a\n", ""},
	{"--bypassed-scheduler-names=a", "bypassedSchedulerNames:\n  - a\n", ""},
	{"--capacity-buffer-controller-enabled", "capacityBuffers: true\n", ""},
	{"--emit-per-nodegroup-metrics", "emitPerNodegroupMetrics: true\n", ""},
	{"--scale-down-enabled=false", "decisions:\n- scale-up\n- slack\n", ""},
	{"--scale-from-unschedulable=false", "", "a cordon of one node never counts for the next one"},
	{"--enable-dynamic-resource-allocation=false", "", "device classes are always watched"},
	{"--capacity-buffer-pod-injection-enabled=false", "", "--capacity-buffer-controller-enabled"},
	{"--capacity-buffer-pod-dry-run-enabled", "", "count as they are"},
	{"--capacity-quotas-enabled", "capacityQuotas: true\n", ""},
	{"--scale-down-delay-type-local", "scaleDownDelayTypeLocal: true\n", ""},
	{"--force-ds", "forceDaemonSets: true\n", ""},
	{"--force-delete-failed-nodes", "", "never gets smaller than its minimum"},
	{"--force-delete-unregistered-nodes", "", "never gets smaller than its minimum"},
	{"--enable-provisioning-requests", "", "such as an admission check of Kueue, waits forever"},
	{"--check-capacity-batch-processing", "", "ProvisioningRequests are not read"},
	{"--check-capacity-processor-instance=a", "", "ProvisioningRequests are not read"},
	{"--check-capacity-provisioning-request-batch-timebox=1s", "", "ProvisioningRequests are not read"},
	{"--check-capacity-provisioning-request-max-batch-size=1", "", "ProvisioningRequests are not read"},
	{"--provisioning-request-initial-backoff-time=1s", "", "ProvisioningRequests are not read"},
	{"--provisioning-request-max-backoff-cache-size=1", "", "ProvisioningRequests are not read"},
	{"--provisioning-request-max-backoff-time=1s", "", "ProvisioningRequests are not read"},
	{"--async-node-groups", "", "no node groups are made or deleted"},
	{"--enable-proactive-scaleup", "", "--extra-capacity-min-rate"},
	{"--write-status-configmap=false", "writeStatusConfigMap: false\n", ""},
	{"--max-inactivity=5m", "maxInactivity: 5m0s\n", ""},
	{"--pod-injection-limit=1", "", "no pods are made up but those of slack"},
}

// Each flag that matters changes the configuration, which is another one without it, or one line says why it does not.
func TestFlagsThatMatter(t *testing.T) {
	_, plain, _ := runAs(t, "cluster-autoscaler", "--write-config-to=-")
	for _, m := range mattering {
		code, out, errs := runAs(t, "cluster-autoscaler", m.flag, "--write-config-to=-")
		if code != exitOK {
			t.Errorf("%s: exit code %d, %s", m.flag, code, errs)
			continue
		}
		name, _, _ := strings.Cut(m.flag, "=")
		set := pflag.NewFlagSet("test", pflag.ContinueOnError)
		flags := config.AddFlags(set, true)
		if err := set.Parse([]string{m.flag}); err != nil {
			t.Fatal(err)
		}
		_, warnings, err := flags.Configuration("")
		if err != nil {
			t.Errorf("%s: %v", m.flag, err)
		}
		said := ""
		for line := range strings.Lines(warnings) {
			if strings.Contains(line, name+"=") && strings.Contains(line, " has no effect: ") {
				said = line
			}
		}
		switch {
		case m.config != "" && (said != "" || out == plain || !strings.Contains(out, m.config)):
			t.Errorf("%s: no %q in the configuration, or the same as without it; said: %s", m.flag, m.config, said)
		case m.config == "" && (out != plain || !strings.Contains(said, m.why)):
			t.Errorf("%s: said %q, want %q; the configuration is another one: %v", m.flag, said, m.why, out != plain)
		}
	}
}

// Arguments that belong to no flag are no error under the name of Cluster Autoscaler, which takes no notice of any, and
// are one elsewhere.
func TestArgumentsWithoutAFlag(t *testing.T) {
	code, out, errs := runAs(t, "cluster-autoscaler", "rest", "--scan-interval=20s", "more", "--write-config-to=-")
	if code != exitOK || !strings.Contains(out, "scanInterval: 20s") {
		t.Errorf("exit code %d, %s, %s", code, out, errs)
	}
	if code, _, errs = runAs(t, "loadline", "autoscaler", "rest", "--write-config-to=-"); code != exitUsage ||
		!strings.Contains(errs, "rest") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	if code, _, errs = runAs(t, "cluster-autoscaler", "--expander=foo", "--write-config-to=-"); code != exitUsage ||
		!strings.Contains(errs, "foo") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

// The help of the autoscaler names every provider that makes machines, and the defaults that differ from those of
// Cluster Autoscaler.
func TestHelpOfTheAutoscaler(t *testing.T) {
	for _, kind := range providers.Making {
		want := "--cloud=" + kind
		if kind == providers.ExternalGRPC {
			want = "--cloud-address"
		}
		if !strings.Contains(autoscalerHelp, want) {
			t.Errorf("the help does not name %s", want)
		}
	}
	for _, want := range []string{"--expander", "--kube-client-qps"} {
		if !strings.Contains(autoscalerHelp, want) {
			t.Errorf("the help does not name %s", want)
		}
	}
}

package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/providers"
)

// parse returns the configuration of a command line and a file.
func parse(t *testing.T, args, file string) (Configuration, string, error) {
	t.Helper()
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags := AddFlags(set, false)
	if err := set.Parse(append(strings.Fields(args), "--cloud-address=unix:///s")); err != nil {
		t.Fatal(err)
	}
	if file == "" {
		return flags.Configuration("")
	}
	name := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	return flags.Configuration(name)
}

const head = "apiVersion: loadline.dev/v1alpha1\nkind: AutoscalerConfiguration\n"

func TestFlagsOverrideTheFile(t *testing.T) {
	c, warning, err := parse(t, "--max-drain-parallelism=2 --mode=act",
		head+"scaleDown: {maxDrainParallelism: 3, maxScaleDownParallelism: 7, scaleDownUnneededTime: 90s}")
	if err != nil || warning != "" {
		t.Fatal(err, warning)
	}
	want := Default()
	want.Mode, want.CloudProvider.Address = Act, "unix:///s"
	want.ScaleDown.MaxDrainParallelism, want.ScaleDown.MaxScaleDownParallelism = 2, 7
	want.ScaleDown.ScaleDownUnneededTime.Duration = 90 * time.Second
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v, want %+v", c, want)
	}
}

// Errors about the file have its name and the keys in it, and those about a flag the name of the flag.
func TestErrorsOfTheFileNameIt(t *testing.T) {
	const ofFlag = "--scale-down-utilization-threshold: 1.5 must be between 0 and 1"
	const tooMuch = "scaleDown.scaleDownUtilizationThreshold: 1.5 must be between 0 and 1"
	for _, c := range []struct{ args, file, want string }{
		{"", head + "scaleDown: {scaleDownUnneededTime: 600}",
			".yaml: scaleDown.scaleDownUnneededTime: has to be a duration such as 1m30s, and is 600"},
		{"", head + "scaleDown: {scaleDownUnneededTime: 10 minutes}",
			`.yaml: scaleDown.scaleDownUnneededTime: has to be a duration such as 1m30s, and is "10 minutes"`},
		{"", head + "leaderElection: {retryPeriod: 1d}",
			`.yaml: leaderElection.retryPeriod: has to be a duration such as 1m30s, and is "1d"`},
		{"", head + "scaleDown: [a]", ".yaml: scaleDown: has to be an object, and is a list"},
		{"", head + "scaleDown: {scaleDownUtilizationThreshold: \"0.5\"}",
			".yaml: scaleDown.scaleDownUtilizationThreshold: has to be a number, and is \"0.5\""},
		{"", head + "scaleDown: {scaleDownUtilizationThreshold: 1.5}", ".yaml: " + tooMuch},
		{"--mode=act", head + "scaleDown: {scaleDownUtilizationThreshold: 1.5}", ".yaml: " + tooMuch},
		{"--scale-down-utilization-threshold=1.5", head, ofFlag},
		{"--scale-down-utilization-threshold=1.5", head + "scaleDown: {scaleDownUtilizationThreshold: 0.4}", ofFlag},
		{"--scale-down-utilization-threshold=1.5", "", ofFlag},
		{"", head + "---\n" + head + "nonsense: 5\n", ".yaml: line 4: a second YAML document begins here"},
	} {
		_, _, err := parse(t, c.args, c.file)
		named := strings.HasPrefix(c.want, ".yaml")
		if err == nil || named && !strings.Contains(err.Error(), c.want) || !named && err.Error() != c.want {
			t.Errorf("%s %q: got %v, want %q", c.args, c.file, err, c.want)
		}
	}
}

// --max-empty-bulk-delete is the default of the flag that took its place, with a warning.
func TestOlderName(t *testing.T) {
	for args, want := range map[string]int{"--max-empty-bulk-delete=4": 4,
		"--max-empty-bulk-delete=4 --max-scale-down-parallelism=6": 6} {
		c, warning, err := parse(t, args, "")
		if err != nil || c.ScaleDown.MaxScaleDownParallelism != want ||
			!strings.Contains(warning, "--max-scale-down-parallelism") {
			t.Errorf("%s: %d, warning %q, error %v", args, c.ScaleDown.MaxScaleDownParallelism, warning, err)
		}
	}
}

// The output of --write-config-to is read as the same configuration.
func TestWriteAndLoad(t *testing.T) {
	c, _, err := parse(t, "--scan-interval=3s --drain-priority-config=10:20,0:5", "")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "written.yaml")
	if err := c.Write(file, nil); err != nil {
		t.Fatal(err)
	}
	read := Default()
	if err := read.Load(file); err != nil || !reflect.DeepEqual(read, c) {
		t.Errorf("read %+v, written %+v, error %v", read, c, err)
	}
	groups, err := c.ScaleDown.PriorityGroups()
	want := []*loadlinev1.RemovalPriorityGroup{{Priority: 0, GraceSeconds: 5}, {Priority: 10, GraceSeconds: 20}}
	if err != nil || !reflect.DeepEqual(groups, want) {
		t.Errorf("groups %v, error %v", groups, err)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct{ args, file, want string }{
		{"", "kind: Other\n", "must be loadline.dev/v1alpha1, AutoscalerConfiguration"},
		{"", head + "scaleDown: {unknown: 1}\n", `unknown field "scaleDown.unknown"`},
		{"", head + "mode: act\nmode: act\n", "already set"},
		{"--mode=maybe", "", `--mode "maybe"`},
		{"--mode=act --cloud=none", "", "mode act: needs a cloud provider, which --cloud names: externalgrpc, "},
		{"--mode=act --cloud=none --decisions=slack,scale-down", "", "only --decisions=slack needs none"},
		{"--mode=act --cloud=none --decisions=slack --sized-node-groups=groups.yaml", "",
			"groups that are sized need a cloud provider"},
		{"--decisions=scale-sideways", "", "--decisions: \"scale-sideways\" must be"},
		{"--decisions=scale-up,downscale-order", "", "--decisions: downscale-order needs scale-down"},
		{"--decisions=slack,slack", "", "--decisions: slack occurs twice"},
		{"", head + "decisions: []\n", "decisions: number of entries 0 must be at least 1"},
		{"", head + "scaleUp: {maxNodes: 1}\n", `unknown field "scaleUp.maxNodes"`},
		{"--cluster-autoscaler-namespace=infra,Not_One", "", `--cluster-autoscaler-namespace: "Not_One" is no name`},
		{"", head + "clusterAutoscalerNamespaces: ['']\n", `.yaml: clusterAutoscalerNamespaces: "" is no name`},
		{"", head + "slack: {rate: 1}\n", `unknown field "slack.rate"`},
		{"--max-nodes-total=-1", "", "--max-nodes-total: -1 must"},
		{"--max-node-provision-time=0", "", "--max-node-provision-time: 0s"},
		{"--max-node-group-backoff-duration=1s", "", "--max-node-group-backoff-duration: "},
		{"--expendable-pods-priority-cutoff=-11", "", "--expendable-pods-priority-cutoff: -11"},
		{"--bypassed-scheduler-names=a,,b", "", `--bypassed-scheduler-names: "" is not a name`},
		{"", head + "scaleUp: {bypassedSchedulerNames: [a b]}\n", `scaleUp.bypassedSchedulerNames: "a b" is not a name`},
		{"", head + "scaleUp: {bypassedSchedulerNames: [" + strings.Repeat("a, ", 1000) + "a]}\n",
			"scaleUp.bypassedSchedulerNames: number of entries 1001 must be at most 1000"},
		{"--usd-per-further-type=-1", "", "--usd-per-further-type: -1"},
		{"--extra-capacity-min-rate=ten", "", `--extra-capacity-min-rate: "ten" must be a number`},
		{"", head + "slack: {extraCapacityMinRate: ten}\n", `.yaml: slack.extraCapacityMinRate: "ten" must be a number`},
		{"--slack-basis=all", "", `--slack-basis: "all" must be requested or capacity`},
		{"--slack-max-extra-cpu=many", "", `--slack-max-extra-cpu: "many" must be an amount such as 64`},
		{"--startup-taint=a/b/c", "", `--startup-taint: "a/b/c" is not the key of a taint: `},
		{"", head + "scaleUp: {statusTaints: [a b]}\n", `.yaml: scaleUp.statusTaints: "a b" is not the key of a taint: `},
		{"--extra-capacity-min-rate=-1%", "", "--extra-capacity-min-rate: -0.01"},
		{"--extra-capacity-min-rate=100% --slack-basis=capacity", "", "below 1"},
		{"--slack-granularity=1001", "", "--slack-granularity: 1001"},
		{"--slack-keep=pods", "", "--slack-keep \"pods\""},
		{"--slack-namespace=A", "", "--slack-namespace \"A\""},
		{"--scan-interval=1ms", "", "--scan-interval: 1ms"},
		{"--max-drain-parallelism=-1", "", "--max-drain-parallelism: -1"},
		{"--scale-down-utilization-threshold=1.5", "", "--scale-down-utilization-threshold: 1.5"},
		{"--scale-down-utilization-threshold=NaN", "", "--scale-down-utilization-threshold: NaN"},
		{"--scale-down-unneeded-time=-1s", "", "--scale-down-unneeded-time: -1s"},
		{"--drain-priority-config=5", "", `--drain-priority-config: "5" must be PRIORITY:SECONDS`},
		{"--drain-priority-config=5:1,5:2", "", "--drain-priority-config: 5 occurs twice"},
		{"--cores-total=7", "", `--cores-total: "7": must be MIN:MAX, at most 2147483647`},
		{"--cores-total=10:5", "", `--cores-total: "10:5": MIN exceeds MAX`},
		{"--max-view-age=10s", "", "--max-view-age: 10s is below"},
		{"--leader-elect-retry-period=30s --leader-elect-renew-deadline=60s --leader-elect-lease-duration=90s", "",
			"scaleDown.maxViewAge: 1m0s is below"},
		{"--cores-total=2147483648:2147483649", "", "--cores-total: "},
		{"--memory-total=7:6", "", `--memory-total (gigabytes): "7:6": MIN exceeds MAX`},
		{"--memory-total=4294967297:4294967298", "", "--memory-total (gigabytes): "},
		{"--gpu-total=t4", "", "--gpu-total: \"t4\": must be TYPE:MIN:MAX"},
		{"--gpu-total=:1:2", "", `--gpu-total: ":1:2": must be TYPE:MIN:MAX`},
		{"--gpu-total=t4:3:2", "", `--gpu-total: "t4:3:2": MIN exceeds MAX`},
		{"--gpu-total=t4:1:2 --gpu-total=t4:1:3", "", "--gpu-total: t4 occurs twice"},
		{"--balancing-label=a --balancing-ignore-label=b", "", "--balancing-label: decide alone"},
		{"--balancing-label=a,,b", "", "--balancing-label: no label may be empty"},
		{"--memory-difference-ratio=1.1", "", "--memory-difference-ratio: 1.1"},
		{"--max-allocatable-difference-ratio=NaN", "", "--max-allocatable-difference-ratio: NaN"},
		{"--spot-factor=2", "", "--spot-factor: 2"},
		{"--interruption-risk=1", "", "--interruption-risk: 1 must"},
		{"--node-surcharge=-1", "", "--node-surcharge: -1"},
		{"--commitment=m5", "", "--commitment: \"m5\": must be INSTANCE=CPUS"},
		{"--preferred-node=0:1Gi", "", `--preferred-node: "0:1Gi"`},
		{"--expander=random", "", "no decision is left to chance"},
		{"--expander=grpc", "", "no other process is asked"},
		{"--expander=price --strategies=price", "", "another name of --strategies"},
		{"--poll-interval=0", "", "--poll-interval: 0s must be between 1ns and 1000h"},
		{"--leader-elect-retry-period=1h", "", "leaseDuration > renewDeadline"},
		{"--bind-address=here", "", "--bind-address \"here\": must be HOST:PORT"},
		{"--max-limits-over-allocatable=cpu=0", "", `--max-limits-over-allocatable[cpu]: Invalid value: "0"`},
		{"--max-limits-over-allocatable=cpu", "", `--max-limits-over-allocatable: "cpu" must be RESOURCE=RATIO`},
		{"", head + "filters: {maxLimitsOverAllocatable: [cpu]}", `.yaml: filters.maxLimitsOverAllocatable: "cpu" must`},
		{"--kubernetes-version=1.2", "", `--kubernetes-version: "1.2" must be one of 1.36, 1.37`},
		{"--kubernetes-version=new", "", `--kubernetes-version: "new" must be such as 1.37`},
		{"--upstream-defects=all", "", `--upstream-defects: "all" must be one of namespace-selector-sees-no-labels, none`},
		{"--rank-preset=foo", "", `--rank-preset: "foo" must be one of cluster-autoscaler, proposal`},
		{"--strategies=price,foo", "", `--strategies: "foo" must be one of price, `},
		{"--expander=foo", "", `--expander: "foo" must be one of price, `},
		{"--preferred-table=foo", "", `--preferred-table: "foo" must be one of cluster-autoscaler, proposal, learned`},
	} {
		if _, _, err := parse(t, c.args, c.file); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: error %v, want %q in it", c.args, c.file, err, c.want)
		}
	}
}

// Totals are cores, and gigabytes as Cluster Autoscaler counts them.
func TestTotals(t *testing.T) {
	c, _, err := parse(t, "--cores-total=4:10 --memory-total=2:9", "")
	if err != nil {
		t.Fatal(err)
	}
	want := Totals{MinCores: 4, MaxCores: 10, MinBytes: 2 << 30, MaxBytes: 9 << 30}
	if got, err := c.ScaleDown.Totals(); got != want || err != nil {
		t.Errorf("totals %+v, error %v", got, err)
	}
}

// The flags have the names of the proposals and of Cluster Autoscaler.
func TestFlagNames(t *testing.T) {
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(set, false)
	for _, name := range []string{"max-scale-down-parallelism", "max-drain-parallelism", "scale-down-unneeded-time",
		"max-graceful-termination-sec",
		"max-pod-eviction-time", "node-delete-delay-after-taint", "max-bulk-soft-taint-count",
		"node-deletion-delay-timeout", "leader-elect",
		"daemonset-eviction-for-occupied-nodes", "skip-nodes-with-local-storage", "ignore-daemonsets-utilization",
		"kube-client-qps", "max-nodes-total", "max-nodes-per-scaleup",
		"max-node-provision-time", "initial-node-group-backoff-duration", "max-node-group-backoff-duration",
		"node-group-backoff-reset-timeout",
		"new-pod-scale-up-delay", "expendable-pods-priority-cutoff", "bypassed-scheduler-names",
		"extra-capacity-min-rate"} {
		if flag := set.Lookup(name); flag == nil || flag.Usage == "" {
			t.Errorf("no flag --%s with words on it", name)
		}
	}
}

// Each way to write a share is read, and each set of decisions is one.
func TestSharesAndDecisions(t *testing.T) {
	for file, want := range map[string]float64{"slack: {extraCapacityMinRate: 0.2}": 0.2,
		"slack: {extraCapacityMinRate: \"20%\"}": 0.2,
		"slack: {extraCapacityMinRate: 20%}":     0.2, "decisions: [slack]": 0.1} {
		c, _, err := parse(t, "", head+file)
		if err != nil {
			t.Fatal(file, err)
		}
		if p, err := c.Slack.Proto(); err != nil || p.GetExtraCapacityMinRate() != want {
			t.Errorf("%s: rate %v, error %v, want %v", file, p.GetExtraCapacityMinRate(), err, want)
		}
	}
	if _, _, err := parse(t, "--mode=act --cloud=none --decisions=slack", ""); err != nil {
		t.Errorf("slack without a cloud provider: %v", err)
	}
	c, _, err := parse(t, "--decisions=scale-down,scale-up", "")
	if err != nil || !c.Decides(ScaleUpDecision) || !c.Decides(ScaleDownDecision) || c.Decides(SlackDecision) {
		t.Errorf("decisions %v, error %v", c.Decisions, err)
	}
	c, _, err = parse(t, "--decisions=scale-down,downscale-order", "")
	if byDefault := Default(); err != nil || !c.Decides(DownscaleOrderDecision) ||
		byDefault.Decides(DownscaleOrderDecision) {
		t.Errorf("decisions %v, error %v; by default %v", c.Decisions, err, byDefault.Decisions)
	}
}

func TestSizingReadsItsFile(t *testing.T) {
	const group = `apiVersion: loadline.dev/v1alpha1
kind: NodeGroup
metadata: {name: %s}
spec:
  nodeSelector: {pool: a}
  max: 5
`
	const size = `  size: {cloudGroup: pool-a, scaleUpThresholdPercent: 70, taintUpperCapacityThresholdPercent: 60, taintLowerCapacityThresholdPercent: 40,
    softDeleteGracePeriod: 1m, hardDeleteGracePeriod: 10m, scaleUpCoolDownPeriod: 2m}
`
	for name, c := range map[string]struct{ text, want string }{
		"Group":       {fmt.Sprintf(group, "a") + size + "---\n" + fmt.Sprintf(group, "b"), ""},
		"NoneIsSized": {fmt.Sprintf(group, "a"), "no node group says how it is sized"},
		"DeletesPodsDespiteBudgets": {fmt.Sprintf(group, "a") + strings.Replace(size, "{", "{taintEffect: NoExecute, ", 1),
			"taint effect NoExecute has Kubernetes delete the pods of a node at once"},
		"TheSameGroupAtTheCloud": {fmt.Sprintf(group, "a") + size + "---\n" + fmt.Sprintf(group, "b") + size,
			`node groups "a" and "b" are both group "pool-a" at the cloud`},
		"NoFile": {"", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "groups.yaml")
			if c.text != "" {
				if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			groups, warnings, err := (&Sizing{NodeGroups: file}).Load()
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
				return
			}
			if err != nil || len(groups) != 1 || groups[0].Name() != "a" || len(warnings) != 1 ||
				!strings.Contains(warnings[0], `"b": has no spec.size`) {
				t.Errorf("groups %v, warnings %q, error %v", groups, warnings, err)
			}
		})
	}
	if groups, _, err := (&Sizing{}).Load(); groups != nil || err != nil {
		t.Errorf("without a file: %v, %v", groups, err)
	}
}

// Slack as the only decision has no provider, unless something says which one is meant, or groups are sized.
func TestSlackAloneNeedsNoProvider(t *testing.T) {
	for _, test := range []struct{ args, file, want string }{
		{"--decisions=slack", "", providers.None},
		{"--decisions=slack --mode=act", "", providers.None},
		{"--decisions=slack --cloud=externalgrpc", "", providers.ExternalGRPC},
		{"--decisions=slack --cloud-address=unix:///s", "", providers.ExternalGRPC},
		{"--decisions=slack --sized-node-groups=groups.yaml", "", providers.ExternalGRPC},
		{"--decisions=slack --cloud=karpenter", "", providers.Karpenter},
		{"--decisions=slack,scale-up", "", providers.ExternalGRPC},
		{"", "decisions: [slack]", providers.None},
		{"--decisions=slack", "cloudProvider: {kind: externalgrpc}", providers.ExternalGRPC},
		{"--cloud-provider=aws --decisions=slack", "cloudProvider: {kind: externalgrpc}", providers.ExternalGRPC},
	} {
		set := pflag.NewFlagSet("test", pflag.ContinueOnError)
		flags := AddFlags(set, false)
		if err := set.Parse(strings.Fields(test.args)); err != nil {
			t.Fatal(err)
		}
		file := ""
		if test.file != "" {
			file = filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(file, []byte(head+test.file), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c, warning, err := flags.Configuration(file)
		if err != nil || strings.Contains(warning, "no cloud provider") || c.CloudProvider.Kind != test.want {
			t.Errorf("%+v: %s, %q, error %v", test, c.CloudProvider.Kind, warning, err)
		}
	}
}

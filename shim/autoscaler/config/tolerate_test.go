package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// A command line that Cluster Autoscaler takes is taken in its place: a value that is none here becomes one, and a line
// says which.
func TestCommandLinesOfClusterAutoscaler(t *testing.T) {
	for _, c := range []struct {
		args         string
		config, said []string // lines of the configuration, and of what is said
	}{
		{"--expendable-pods-priority-cutoff=-2147483648", []string{"expendablePodsPriorityCutoff: -10"},
			[]string{"--expendable-pods-priority-cutoff=-2147483648 counts as -10"}},
		{"--scale-down-utilization-threshold=1.5", []string{"scaleDownUtilizationThreshold: 1"},
			[]string{"--scale-down-utilization-threshold=1.5 counts as 1"}},
		{"--scale-down-utilization-threshold=NaN", []string{"scaleDownUtilizationThreshold: 0.5"},
			[]string{"--scale-down-utilization-threshold=NaN counts as 0.5"}},
		{"--kube-client-qps=0 --kube-client-burst=0", []string{"kubeClientQps: 200", "kubeClientBurst: 300"},
			[]string{"--kube-client-burst=0 counts as 300", "--kube-client-qps=0 counts as 200"}},
		{"--max-node-provision-time=0", []string{"maxNodeProvisionTime: 15m0s"},
			[]string{"--max-node-provision-time=0s counts as 15m0s"}},
		{"--scan-interval=1ms", []string{"scanInterval: 100ms"}, []string{"--scan-interval=1ms counts as 100ms"}},
		{"--scale-down-unneeded-time=-1m", []string{"scaleDownUnneededTime: 0s"},
			[]string{"--scale-down-unneeded-time=-1m0s counts as 0s"}},
		{"--max-drain-parallelism=-1", []string{"maxDrainParallelism: 0"},
			[]string{"--max-drain-parallelism=-1 counts as 0"}},
		{"--initial-node-group-backoff-duration=40m", []string{"initialNodeGroupBackoffDuration: 40m0s",
			"maxNodeGroupBackoffDuration: 40m0s"}, []string{"--max-node-group-backoff-duration=30m0s is below"}},
		{"--bypassed-scheduler-names=a,b --allowed-scheduler-names=a", []string{"bypassedSchedulerNames:\n  - a\n  c"},
			[]string{"--bypassed-scheduler-names: b has no effect"}},
		{"--bypassed-scheduler-names=a,,b", []string{"bypassedSchedulerNames:\n  - a\n  - b\n"}, nil},
		{"--startup-taint=a=b:NoSchedule --startup-taint=c --ignore-taint=d:NoExecute",
			[]string{"startupTaints:\n  - a\n  - c\n", "ignoreTaints:\n  - d\n"},
			[]string{"--ignore-taint=d:NoExecute counts as the key d", "--startup-taint=a=b:NoSchedule counts as the key a"}},
		{"--gpu-total=t4:1:2 --gpu-total=a:0:1 --gpu-total=t4:1:3", []string{"gpuTotal:\n  - a:0:1\n  - t4:1:3\n"},
			[]string{"--gpu-total=t4:1:2 has no effect"}},
		{"--gpu-total=:0:4 --gpu-total=a:0:1", []string{"gpuTotal:\n  - a:0:1\n"},
			[]string{"--gpu-total=:0:4 has no effect: it names no type of GPU"}},
		{"--max-total-unready-percentage=45.5", []string{"maxTotalUnreadyPercentage: 45.5"}, nil},
		{"--max-total-unready-percentage=145.5", []string{"maxTotalUnreadyPercentage: 100"},
			[]string{"--max-total-unready-percentage=145.5 counts as 100"}},
		{"--balancing-label=a --balancing-ignore-label=b --balancing-ignore-label=c",
			[]string{"balancingIgnoreLabels: null", "balancingLabels:\n  - a\n"},
			[]string{"--balancing-ignore-label=b --balancing-ignore-label=c has no effect: the labels of"}},
		{"--startup-taint=a/b/c --startup-taint=d --ignore-taint=/ --status-taint=x/ --startup-taint-prefix=y/,z/z/",
			[]string{"startupTaints:\n  - d\n", "ignoreTaints: []", "statusTaints: []", "startupTaintPrefixes:\n  - y/\n  s"},
			[]string{"--ignore-taint=/ has no effect: it is not the key of a taint", "--startup-taint-prefix=z/z/ has",
				"--startup-taint=a/b/c has no effect", "--status-taint=x/ has no effect"}},
		{"--drain-priority-config=100:20,7:1,+100:30", []string{"drainPriorityConfig: 100:20,7:1\n"},
			[]string{"--drain-priority-config: +100:30 has no effect: an earlier entry is of the same priority"}},
		{"--max-empty-bulk-delete=-3", []string{"maxScaleDownParallelism: 0"},
			[]string{"--max-empty-bulk-delete is the older name", "--max-empty-bulk-delete=-3 counts as 0"}},
		{"--max-empty-bulk-delete=-3 --max-scale-down-parallelism=-2", []string{"maxScaleDownParallelism: 0"},
			[]string{"--max-empty-bulk-delete is the older name", "--max-scale-down-parallelism=-2 counts as 0"}},
		{"--node-group-auto-discovery=asg:tag=a,b --node-group-auto-discovery=asg:tag=c --cloud-config=/c", nil,
			[]string{"--node-group-auto-discovery=asg:tag=a,b --node-group-auto-discovery=asg:tag=c has no effect",
				"--cloud-config=/c has no effect"}},
		{"--nodes=1:2:A --nodes=1:2:B", nil, []string{"--nodes=1:2:A --nodes=1:2:B has no effect"}},
		{"--expander=random,grpc", nil, []string{"--expander random has no effect", "--expander grpc has no effect"}},
		{"--expander=priority,least-waste", []string{"strategies:\n  - priority\n  - least-waste\n"}, nil},
		{"--expander=priority --rank-policy=/r", []string{"strategies:\n  - priority\n"}, nil},
		{"--gce-expander-ephemeral-storage-support --cloud-provider-gce-lb-src-cidrs=a --concurrent-gce-refreshes=1 " +
			"--cloud-provider-gce-l7lb-src-cidrs=b --proactive-scaleup-enabled --verify-unschedulable-pods " +
			"--scale-down-trial-interval=1m --configmap=a", nil, []string{"--gce-expander-ephemeral-storage-support=true has",
			"--cloud-provider-gce-lb-src-cidrs=a has", "--concurrent-gce-refreshes=1 has",
			"--cloud-provider-gce-l7lb-src-cidrs=b has", "--proactive-scaleup-enabled=true has",
			"--verify-unschedulable-pods=true has", "--scale-down-trial-interval=1m has", "--configmap=a has"}},
	} {
		got, warning, err := dropIn(t, append(strings.Fields(c.args), "--cloud=karpenter")...)
		if err != nil {
			t.Errorf("%s: %v", c.args, err)
			continue
		}
		text, err := yaml.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range c.config {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: no %q in %s", c.args, want, text)
			}
		}
		lines := slices.DeleteFunc(strings.Split(warning, "\n"), func(line string) bool { return line == "" })
		for _, want := range c.said {
			if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, want) }) &&
				!strings.Contains(warning, want) {
				t.Errorf("%s: no %q among %q", c.args, want, lines)
			}
		}
		if len(lines) != len(c.said) {
			t.Errorf("%s: lines %q, want %d", c.args, lines, len(c.said))
		}
	}
}

// A strategy that there is not is refused before any file is read, with and without the name of Cluster Autoscaler; a
// mode that needs a provider names those that make machines.
func TestRefusalsOfADropIn(t *testing.T) {
	for args, want := range map[string]string{"--expander=foo": "foo", "--strategies=foo": "foo",
		"--expander=price,foo --cloud=karpenter": "foo"} {
		if _, _, err := dropIn(t, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", args, err)
		}
	}
	for args, want := range map[string]string{"--balancing-label=a --balancing-ignore-label=b": "decide alone",
		"--startup-taint=a/b/c": "is not the key", "--drain-priority-config=1:2,1:3": "occurs twice",
		"--gpu-total=:0:4": "must be TYPE:MIN:MAX", "--max-empty-bulk-delete=-3": "must be between"} {
		if _, _, err := parse(t, args, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("under our own name, %s: error %v, want %q", args, err, want)
		}
	}
	_, _, err := dropIn(t, "--mode=act")
	if err == nil || !strings.Contains(err.Error(), "which --cloud names: externalgrpc, karpenter, cluster-api;") {
		t.Errorf("error %v", err)
	}
	c, lines, err := dropIn(t, "--mode=act", "--decisions=slack")
	if err != nil || c.CloudProvider.Kind != "none" || !strings.Contains(fmt.Sprint(lines), "in mode act") {
		t.Errorf("slack without a provider: %+v, %q, error %v", c.CloudProvider, lines, err)
	}
	_, _, err = parse(t, "--expander=random", "")
	if err == nil || !strings.Contains(err.Error(), "Leave it out") {
		t.Errorf("error %v", err)
	}
}

// A command line with none of such values has no lines of that.
func TestTolerateChangesNothingElse(t *testing.T) {
	c, warning, err := dropIn(t, "--cloud=karpenter", "--scale-down-utilization-threshold=0.7", "--startup-taint=a",
		"--bypassed-scheduler-names=x", "--gpu-total=t4:0:1")
	if err != nil || warning != "" || c.ScaleDown.ScaleDownUtilizationThreshold != 0.7 ||
		!slices.Equal(c.ScaleDown.GPUTotal, []string{"t4:0:1"}) {
		t.Errorf("%v, %q, %v", c.ScaleDown, warning, err)
	}
}

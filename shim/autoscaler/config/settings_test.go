package config

import (
	"math"
	"testing"
	"time"
)

// A value outside of its range is refused, with its key as people write it; the ends themselves are in it.
func TestRanges(t *testing.T) {
	seconds := func(n int) Duration { return duration(time.Duration(n) * time.Second) }
	for _, c := range []struct {
		set  func(c *Configuration)
		want string // empty: it is right
	}{
		{func(c *Configuration) { c.MaxWork = 0 }, "maxWork: 0 must be at least 1"},
		{func(c *Configuration) { c.MaxWork = math.MaxInt }, ""},
		{func(c *Configuration) { c.ScanInterval.Duration = 99 * time.Millisecond },
			"scanInterval: 99ms must be at least 100ms"},
		{func(c *Configuration) { c.ScanInterval = seconds(3600 * 2000) }, ""},
		{func(c *Configuration) { c.KubeClientQPS = 0 }, "kubeClientQps: 0 must be at least 1e-9"},
		{func(c *Configuration) { c.KubeClientQPS = math.NaN() }, "kubeClientQps: NaN must be at least 1e-9"},
		{func(c *Configuration) { c.KubeClientBurst = 0 }, "kubeClientBurst: 0 must be at least 1"},
		{func(c *Configuration) { c.LeaderElection.RetryPeriod = seconds(-1) },
			"leaderElection.retryPeriod: -1s must be at least 0s"},
		{func(c *Configuration) { c.CloudProvider.GRPCTimeout = seconds(-1) },
			"cloudProvider.grpcTimeout: -1s must be at least 0s"},

		{func(c *Configuration) { c.ScaleUp.MaxNodesTotal = 1<<30 + 1 },
			"scaleUp.maxNodesTotal: 1073741825 must be between 0 and 1073741824"},
		{func(c *Configuration) { c.ScaleUp.MaxNodesTotal = 1 << 30 }, ""},
		{func(c *Configuration) { c.ScaleUp.MaxNodeProvisionTime = seconds(0) },
			"scaleUp.maxNodeProvisionTime: 0s must be between 1ns and 1000h"},
		{func(c *Configuration) { c.ScaleUp.BatchMax = seconds(3601) },
			"scaleUp.batchMax: 1h0m1s must be between 0s and 1h"},
		{func(c *Configuration) { c.ScaleUp.ExpendablePodsPriorityCutoff = -11 },
			"scaleUp.expendablePodsPriorityCutoff: -11 must be between -10 and 2147483647"},
		{func(c *Configuration) { c.ScaleUp.USDPerFurtherType = math.Inf(1) },
			"scaleUp.usdPerFurtherType: +Inf must be at least 0"},
		{func(c *Configuration) { c.ScaleUp.BalancingLabels = make([]string, 101) },
			"scaleUp.balancingLabels: number of entries 101 must be at most 100"},
		{func(c *Configuration) { c.ScaleUp.Pricing.SpotFactor = 1.5 },
			"scaleUp.pricing.spotFactor: 1.5 must be between 0 and 1"},
		{func(c *Configuration) { c.ScaleUp.Pricing.SpotFactor = 1 }, ""},
		{func(c *Configuration) { c.ScaleUp.Pricing.InterruptionRisk = 1 },
			"scaleUp.pricing.interruptionRisk: 1 must be between 0 and below 1"},
		{func(c *Configuration) { c.ScaleUp.Pricing.InterruptionRisk = math.Nextafter(1, 0) }, ""},

		{func(c *Configuration) { c.Slack.Granularity = 1001 }, "slack.granularity: 1001 must be between 1 and 1000"},
		{func(c *Configuration) { c.Slack.Groups = make([]string, 1001) },
			"slack.groups: number of entries 1001 must be at most 1000"},
		{func(c *Configuration) { c.Slack.RemovalDelay = seconds(-1) },
			"slack.removalDelay: -1s must be between 0s and 1000h"},
		{func(c *Configuration) { c.Slack.ExtraCapacityMinRate = "NaN" },
			"slack.extraCapacityMinRate: NaN must be between 0 and 1000"},

		{func(c *Configuration) { c.Consolidation.LeastSavingPercent = math.NaN() },
			"consolidation.leastSavingPercent: NaN must be between 0 and 100"},
		{func(c *Configuration) { c.Consolidation.PaybackHours = 0 },
			"consolidation.paybackHours: 0 must be between 0.000001 and 8760"},
		{func(c *Configuration) { c.Consolidation.MaxNodesPerMove = 10_001 },
			"consolidation.maxNodesPerMove: 10001 must be between 1 and 10000"},

		{func(c *Configuration) { c.ScaleDown.MaxDrainParallelism = -1 },
			"scaleDown.maxDrainParallelism: -1 must be between 0 and 1073741824"},
		{func(c *Configuration) { c.ScaleDown.MaxDrainParallelism = 0 }, ""},
		{func(c *Configuration) { c.ScaleDown.ScaleDownGPUThreshold = math.NaN() },
			"scaleDown.scaleDownGpuUtilizationThreshold: NaN must be between 0 and 1"},
		{func(c *Configuration) { c.ScaleDown.MostVanishedPercent = 101 },
			"scaleDown.mostVanishedPercent: 101 must be between 0 and 100"},
		{func(c *Configuration) { c.ScaleDown.ScaleDownUnneededTime = seconds(3600*1000 + 1) },
			"scaleDown.scaleDownUnneededTime: 1000h0m1s must be between 0s and 1000h"},
		{func(c *Configuration) { c.ScaleDown.ScaleDownUnneededTime = seconds(3600 * 1000) }, ""},
		{func(c *Configuration) { c.ScaleDown.NodeBudgets = make([]string, 65) },
			"scaleDown.nodeBudgets: number of entries 65 must be at most 64"},
	} {
		configuration, got := Default(), ""
		c.set(&configuration)
		if err := configuration.Check(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

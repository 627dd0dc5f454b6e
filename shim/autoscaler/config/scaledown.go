package config

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"loadline.dev/shim/api/loadlinev1"
)

// ScaleDown says which nodes go, when and how.
type ScaleDown struct {
	RemovalLimits `json:",inline"`
	Unneeded      `json:",inline"`
	RemovalSearch `json:",inline"`
	BlockingPods  `json:",inline"`
	Brakes        `json:",inline"`
	Evictions     `json:",inline"`
	Deletion      `json:",inline"`
	SoftTaints    `json:",inline"`
}

// RemovalLimits say how many nodes go at once, and what the cluster keeps.
type RemovalLimits struct {
	MaxScaleDownParallelism int      `json:"maxScaleDownParallelism" range:"0:1073741824" help:"nodes that are removed at the same time"`
	MaxDrainParallelism     int      `json:"maxDrainParallelism" range:"0:1073741824" help:"of these, nodes with pods to move (Cluster Autoscaler: 1)"`
	ExclusiveDrains         bool     `json:"exclusiveDrains" help:"no drain starts while one is under way"`
	NodeBudgets             []string `json:"nodeBudgets" range:":64" help:"nodes of each node group that go at once: a number or a percentage, then of=GROUP and for=empty, underutilized or replaced, each as often as wanted, together where these groups share it, and in=WINDOW as in replacementWindows; such as '10%' or '0 for=replaced in=0 9 * * 1-5 8h Europe/Berlin'"`
	CoresTotal              string   `json:"coresTotal" help:"MIN:MAX cores that all nodes together offer to pods: no node goes below the minimum, no group grows beyond the maximum"`
	MemoryTotal             string   `json:"memoryTotal" help:"MIN:MAX gigabytes of memory, in the same way"`
	GPUTotal                []string `json:"gpuTotal" flag:"gpu-total" help:"TYPE:MIN:MAX GPUs of one type, in the same way; the type is the value of the node's GPU label; may be given more than once"`
	GPULabels               []string `json:"gpuLabels" flag:"gpu-labels" help:"labels that tell a node with GPUs; empty: those of Google, Amazon, Azure and Cluster API"`
	MinNodesTotal           int      `json:"minNodesTotal" range:"0:1073741824" help:"nodes that the cluster keeps in all"`
}

// Unneeded says when a node is unneeded, and how long it stays all the same.
type Unneeded struct {
	ScaleDownUnneededTime         Duration `json:"scaleDownUnneededTime" help:"the time for which a node is unneeded before it is removed"`
	ScaleDownUnreadyTime          Duration `json:"scaleDownUnreadyTime" help:"the same for one that is not ready"`
	ScaleDownUnreadyEnabled       bool     `json:"scaleDownUnreadyEnabled" help:"nodes that are not ready may be removed"`
	ScaleDownUtilizationThreshold float64  `json:"scaleDownUtilizationThreshold" range:"0:1" help:"a node with more requests over allocatable stays"`
	ScaleDownGPUThreshold         float64  `json:"scaleDownGpuUtilizationThreshold" flag:"scale-down-gpu-utilization-threshold" range:"0:1" help:"the same for GPUs"`
	IgnoreDaemonSets              bool     `json:"ignoreDaemonsetsUtilization" flag:"ignore-daemonsets-utilization" help:"DaemonSet pods do not count as utilization"`
	IgnoreMirrorPods              bool     `json:"ignoreMirrorPodsUtilization" flag:"ignore-mirror-pods-utilization" help:"mirror pods do not count as utilization"`
	ScaleDownDelayAfterAdd        Duration `json:"scaleDownDelayAfterAdd" help:"for how long no node is removed after a node group has grown"`
	ScaleDownDelayAfterDelete     Duration `json:"scaleDownDelayAfterDelete" help:"after a node has gone"`
	ScaleDownDelayAfterFailure    Duration `json:"scaleDownDelayAfterFailure" help:"after nodes could not be tainted"`
	ScaleDownDelayTypeLocal       bool     `json:"scaleDownDelayTypeLocal" help:"the delays after growth and after a node has gone keep only the nodes of that group; that after nodes could not be tainted keeps all"`
}

// RemovalSearch says how nodes that can go are looked for.
type RemovalSearch struct {
	ScaleDownSimulationTimeout Duration `json:"scaleDownSimulationTimeout" help:"how long one plan may take; nodes that it had no time for are left for the next loop"`
	RecentEvictionTime         Duration `json:"recentEvictionTime" help:"how long the replacement of an evicted pod is waited for"`
	MinEvaluatedNodes          int      `json:"minEvaluatedNodes" range:"0:1073741824" help:"nodes that are looked at in each loop, whatever the limits of work"`
	PlainGreedy                bool     `json:"plainGreedy" help:"nodes are tried in one order only: no better set of nodes is looked for"`
}

// BlockingPods are pods that keep their nodes.
type BlockingPods struct {
	SkipNodesWithSystemPods           bool     `json:"skipNodesWithSystemPods" help:"a kube-system pod without a budget keeps its node"`
	SkipNodesWithLocalStorage         bool     `json:"skipNodesWithLocalStorage" help:"a pod with local storage keeps its node"`
	SkipNodesWithCustomControllerPods bool     `json:"skipNodesWithCustomControllerPods" help:"a pod of an unknown controller keeps its node"`
	MinReplicaCount                   int      `json:"minReplicaCount" range:"0:1073741824" help:"a pod of a smaller ReplicaSet keeps its node"`
	BlockingSystemPodTimeout          Duration `json:"blockingSystemPodDistruptionTimeout" flag:"blocking-system-pod-distruption-timeout" help:"for how long a system pod keeps its node"`
}

// Brakes hold all nodes back.
type Brakes struct {
	OKTotalUnreadyCount       int      `json:"okTotalUnreadyCount" range:"0:1073741824" help:"this many nodes may be not ready in any case"`
	MaxTotalUnreadyPercentage float64  `json:"maxTotalUnreadyPercentage" range:"0:100" help:"no node is removed while a larger percentage of the nodes is not ready; fractions are cut off"`
	MaxViewAge                Duration `json:"maxViewAge" help:"no node is removed if the view of the cluster is older"`
	MostVanishedPercent       int      `json:"mostVanishedPercent" range:"0:100" help:"when more percent of pods or nodes vanish from one loop to the next without a reason, none goes; a reason is that we removed the node, or that the pod finished or its owner is gone or wants fewer"`
}

// UnreadyPercent returns maxTotalUnreadyPercentage as the engine takes it, which knows whole percents.
func (b *Brakes) UnreadyPercent() int { return int(b.MaxTotalUnreadyPercentage) }

// Evictions say how pods leave a node.
type Evictions struct {
	MaxGracefulTerminationSec                int      `json:"maxGracefulTerminationSec" range:"0:1073741824" help:"seconds that an evicted pod may take to end, whatever it states"`
	DrainPriorityConfig                      string   `json:"drainPriorityConfig" help:"PRIORITY:SECONDS,...: pods are evicted group by group, from the lowest priority; in place of max-graceful-termination-sec"`
	MaxPodEvictionTime                       Duration `json:"maxPodEvictionTime" help:"how long the eviction of a pod is tried"`
	EvictionRetryInterval                    Duration `json:"evictionRetryInterval" range:"1ns:1000h" help:"between two attempts, give or take a fifth"`
	UnsafeDeletePodsDespiteDisruptionBudgets bool     `json:"unsafeDeletePodsDespiteDisruptionBudgets" help:"pods whose eviction their disruption budgets refuse until max-pod-eviction-time has passed are deleted all the same, which violates the budgets"`
	TerminationHeadroom                      Duration `json:"terminationHeadroom" help:"what pods may take beyond their grace period"`
	PollInterval                             Duration `json:"pollInterval" range:"1ns:1000h" help:"how often it is seen whether pods have ended"`
	DaemonSetEvictionForEmptyNodes           bool     `json:"daemonsetEvictionForEmptyNodes" flag:"daemonset-eviction-for-empty-nodes" help:"DaemonSet pods are evicted from empty nodes"`
	DaemonSetEvictionForOccupiedNodes        bool     `json:"daemonsetEvictionForOccupiedNodes" flag:"daemonset-eviction-for-occupied-nodes" help:"and from others"`
}

// Deletion says how a node is taken out of service before its pods leave, and deleted after that.
type Deletion struct {
	NodeDeleteDelayAfterTaint   Duration `json:"nodeDeleteDelayAfterTaint" help:"from taint to drain"`
	CordonNodeBeforeTerminating bool     `json:"cordonNodeBeforeTerminating" help:"nodes that are removed are also made unschedulable"`
	NodeDeletionDelayTimeout    Duration `json:"nodeDeletionDelayTimeout" help:"how long annotations may delay the deletion of a node"`
	NodeDeletionBatcherInterval Duration `json:"nodeDeletionBatcherInterval" help:"how long nodes of a group are gathered for one deletion"`
}

// SoftTaints mark nodes that are unneeded.
type SoftTaints struct {
	MaxBulkSoftTaintCount    int      `json:"maxBulkSoftTaintCount" range:"0:1073741824" help:"soft taints written in one loop; 0: none"`
	MaxBulkSoftTaintTime     Duration `json:"maxBulkSoftTaintTime" help:"after which no soft taint is written in a loop"`
	NodeDeletionCandidateTTL Duration `json:"nodeDeletionCandidateTtl" flag:"node-deletion-candidate-ttl" help:"how old a soft taint may be that tells a new process since when its node is unneeded; 0: none does (Cluster Autoscaler: 0)"`
}

func defaultScaleDown() ScaleDown {
	return ScaleDown{
		RemovalLimits: RemovalLimits{MaxScaleDownParallelism: 10, MaxDrainParallelism: 5, CoresTotal: "0:320000",
			MemoryTotal: "0:6400000"},
		Unneeded: Unneeded{ScaleDownUnneededTime: duration(10 * time.Minute),
			ScaleDownUnreadyTime: duration(20 * time.Minute), ScaleDownUnreadyEnabled: true,
			ScaleDownUtilizationThreshold: 0.5, ScaleDownGPUThreshold: 0.5,
			ScaleDownDelayAfterAdd: duration(10 * time.Minute), ScaleDownDelayAfterFailure: duration(3 * time.Minute)},
		RemovalSearch: RemovalSearch{ScaleDownSimulationTimeout: duration(30 * time.Second),
			RecentEvictionTime: duration(time.Minute), MinEvaluatedNodes: 50},
		BlockingPods: BlockingPods{SkipNodesWithSystemPods: true, SkipNodesWithLocalStorage: true,
			SkipNodesWithCustomControllerPods: true, BlockingSystemPodTimeout: duration(time.Hour)},
		Brakes: Brakes{OKTotalUnreadyCount: 3, MaxTotalUnreadyPercentage: 45, MaxViewAge: duration(time.Minute),
			MostVanishedPercent: 20},
		Evictions: Evictions{MaxGracefulTerminationSec: 600, MaxPodEvictionTime: duration(2 * time.Minute),
			EvictionRetryInterval: duration(10 * time.Second), TerminationHeadroom: duration(30 * time.Second),
			PollInterval: duration(5 * time.Second), DaemonSetEvictionForOccupiedNodes: true},
		Deletion: Deletion{NodeDeleteDelayAfterTaint: duration(5 * time.Second), CordonNodeBeforeTerminating: true,
			NodeDeletionDelayTimeout: duration(2 * time.Minute)},
		SoftTaints: SoftTaints{MaxBulkSoftTaintCount: 10, MaxBulkSoftTaintTime: duration(3 * time.Second),
			NodeDeletionCandidateTTL: duration(time.Hour)},
	}
}

func (s *ScaleDown) check() error {
	_, err1 := s.PriorityGroups()
	_, _, err2 := s.GPUTotals()
	_, err3 := s.Budgets()
	_, err4 := s.Totals()
	return cmp.Or(err1, err2, err3, err4)
}

// PriorityGroups returns the groups of drainPriorityConfig, lowest priority first.
func (s *Evictions) PriorityGroups() ([]*loadlinev1.RemovalPriorityGroup, error) {
	const path = "scaleDown.drainPriorityConfig"
	entries := strings.FieldsFunc(s.DrainPriorityConfig, func(c rune) bool { return c == ',' })
	groups, err := readEach(path, entries, func(entry string) (*loadlinev1.RemovalPriorityGroup, error) {
		left, right, _ := strings.Cut(entry, ":")
		priority, err1 := strconv.ParseInt(strings.TrimSpace(left), 10, 32)
		grace, err2 := strconv.ParseInt(strings.TrimSpace(right), 10, 32)
		if err1 != nil || err2 != nil || grace < 0 {
			return nil, fmt.Errorf("%q must be PRIORITY:SECONDS", entry)
		}
		return &loadlinev1.RemovalPriorityGroup{Priority: int32(priority), GraceSeconds: grace}, nil
	})
	slices.SortFunc(groups, func(a, b *loadlinev1.RemovalPriorityGroup) int {
		return cmp.Compare(a.Priority, b.Priority)
	})
	return groups, cmp.Or(err, inRange(path, entries, ":1000"), // as the engine takes
		once(path, groups, (*loadlinev1.RemovalPriorityGroup).GetPriority))
}

// Totals bound what all nodes together offer.
type Totals struct{ MinCores, MaxCores, MinBytes, MaxBytes int64 }

// The engine takes no more cores or GPUs, and no more than 2^62 bytes.
const (
	mostCores     = math.MaxInt32
	mostGigabytes = 1 << 32
)

// Totals returns coresTotal and memoryTotal.
func (s *RemovalLimits) Totals() (t Totals, err error) {
	const form = "MIN:MAX"
	if t.MinCores, t.MaxCores, err = bounds(s.CoresTotal, s.CoresTotal, form, mostCores); err != nil {
		return Totals{}, fmt.Errorf("scaleDown.coresTotal: %w", err)
	}
	if t.MinBytes, t.MaxBytes, err = bounds(s.MemoryTotal, s.MemoryTotal, form, mostGigabytes); err != nil {
		return Totals{}, fmt.Errorf("scaleDown.memoryTotal (gigabytes): %w", err)
	}
	t.MinBytes, t.MaxBytes = t.MinBytes<<30, t.MaxBytes<<30
	return t, nil
}

// bounds reads the MIN:MAX of an entry of this form. A maximum above `most` means none.
func bounds(entry, text, form string, most int64) (low, high int64, err error) {
	left, right, ok := strings.Cut(text, ":")
	low, err1 := strconv.ParseInt(left, 10, 64)
	high, err2 := strconv.ParseInt(right, 10, 64)
	switch {
	case !ok || err1 != nil || err2 != nil || low < 0 || low > most:
		return 0, 0, fmt.Errorf("%q: must be %s, at most %d", entry, form, most)
	case high < low:
		return 0, 0, fmt.Errorf("%q: MIN exceeds MAX", entry)
	}
	return low, min(high, most), nil
}

// GPUTotals returns how many GPUs of each type all nodes together offer at least and at most, in the order of gpuTotal.
func (s *RemovalLimits) GPUTotals() (least, most []*loadlinev1.GpuCount, err error) {
	for _, entry := range s.GPUTotal {
		kind, rest, _ := strings.Cut(entry, ":")
		if kind == "" {
			rest = ""
		}
		low, high, err := bounds(entry, rest, "TYPE:MIN:MAX", mostCores)
		if err != nil {
			return nil, nil, fmt.Errorf("scaleDown.gpuTotal: %w", err)
		}
		if low > 0 {
			least = append(least, &loadlinev1.GpuCount{GpuType: kind, Gpus: low})
		}
		most = append(most, &loadlinev1.GpuCount{GpuType: kind, Gpus: high})
	}
	return least, most, once("scaleDown.gpuTotal", most, (*loadlinev1.GpuCount).GetGpuType)
}

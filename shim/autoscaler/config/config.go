// Package config holds the configuration of the autoscaler as people write it: a versioned file, and flags that
// override it. A setting that Cluster Autoscaler has a flag for has that name here, as flag and in camelCase as key,
// and the same default unless stated otherwise.
package config

import (
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/filterconfig"
	"loadline.dev/shim/policy"
	"loadline.dev/shim/view"
)

// What a file says it is.
const (
	APIVersion = "loadline.dev/v1alpha1"
	Kind       = "AutoscalerConfiguration"
)

// Modes.
const (
	Observe = "observe"
	Act     = "act"
)

// Decisions.
const (
	ScaleUpDecision   = "scale-up"
	SlackDecision     = "slack"
	ScaleDownDecision = "scale-down"
	ReplaceDecision   = "replace" // only if it is named
)

// Configuration of the autoscaler. The tag `flag` is the name of a flag where it is not that of the key.
type Configuration struct {
	metav1.TypeMeta  `json:",inline"`
	Mode             string         `json:"mode" help:"observe: plan, and write nothing but the status and the lease; or act"`
	Decisions        []string       `json:"decisions" help:"what to decide: scale-up, slack, scale-down, and, only if it is named, replace; another autoscaler does the rest"`
	Engine           string         `json:"engine" help:"engine: inprocess, inprocess:///path/to/libloadline.so or unix:///path/to/socket"`
	MaxQuestionBytes int            `json:"maxQuestionBytes" help:"memory that one question may take in an engine in this process; 0: its default, 256 MiB. loadlined has a flag of that name"`
	View             string         `json:"view" help:"name of the view in the engine; clients that share a loadlined need different ones"`
	BindAddress      string         `json:"bindAddress" help:"HOST:PORT of the page, health and metrics as plain HTTP; empty: none"`
	ExposePage       bool           `json:"exposePage" help:"the page and /statusz, which name nodes and pods of all namespaces, are served to other machines too; without it to this one only, which kubectl port-forward counts as"`
	Profiling        bool           `json:"profiling" help:"serve Go profiles at /debug/pprof/, to whom the page is served"`
	Namespace        string         `json:"namespace" help:"namespace of status and lease"`
	StatusConfigMap  string         `json:"statusConfigMapName" flag:"status-config-map-name" help:"ConfigMap that tells the state"`
	ScanInterval     Duration       `json:"scanInterval" help:"from the begin of one loop to that of the next"`
	KubeClientQPS    float64        `json:"kubeClientQps" flag:"kube-client-qps" help:"requests per second to the API server"`
	KubeClientBurst  int            `json:"kubeClientBurst" flag:"kube-client-burst" help:"requests to the API server at once"`
	LeaderElection   LeaderElection `json:"leaderElection"`
	MaxWork          int            `json:"maxWork" help:"units of work, about 100 ns each, after which the best plan so far is taken: the same on each machine"`
	CloudProvider    CloudProvider  `json:"cloudProvider"`
	Filters          Filters        `json:"filters"`
	ScaleUp          ScaleUp        `json:"scaleUp"`
	Sizing           Sizing         `json:"sizing"`
	Slack            Slack          `json:"slack"`
	ScaleDown        ScaleDown      `json:"scaleDown"`
	Consolidation    Consolidation  `json:"consolidation"`
}

// Decides says whether a decision is taken here.
func (c *Configuration) Decides(decision string) bool { return slices.Contains(c.Decisions, decision) }

// Duration reads as "1m30s".
type Duration = metav1.Duration

// CloudProvider is a server of Cluster Autoscaler's externalgrpc protocol.
type CloudProvider struct {
	Address     string   `json:"address" flag:"cloud-address" help:"cloud provider of the externalgrpc protocol: HOST:PORT or unix:///path/to/socket"`
	Cert        string   `json:"cert" flag:"cloud-cert" help:"our certificate for it, PEM; empty: it asks for none"`
	Key         string   `json:"key" flag:"cloud-key" help:"its private key, PEM"`
	CA          string   `json:"cacert" flag:"cloud-cacert" help:"authority of the provider's certificate, PEM; needed, or a certificate, where the provider is on another machine"`
	Insecure    bool     `json:"insecure" flag:"cloud-insecure" help:"the connection to a provider on another machine is not encrypted, as Cluster Autoscaler has it: whoever is on the way can have nodes deleted"`
	GRPCTimeout Duration `json:"grpcTimeout" flag:"cloud-grpc-timeout" help:"how long one call may take"`
}

// Filters says how the filters of the cluster's scheduler are configured.
type Filters struct {
	SchedulerConfig   string   `json:"schedulerConfig" flag:"scheduler-config-file" help:"file with the scheduler's KubeSchedulerConfiguration: its profiles, each for the pods that name it, hold for plans too"`
	UpstreamDefects   []string `json:"upstreamDefects" help:"known defects of kube-scheduler that plans reproduce: namespace-selector-sees-no-labels, or none; by default those that its release has"`
	KubernetesVersion string   `json:"kubernetesVersion" help:"release whose kube-scheduler is meant: 1.36, the default, or 1.37; left out, pods that are being resized count as in the release of the API server when the autoscaler starts"`

	MaxLimitsOverAllocatable []string `json:"maxLimitsOverAllocatable" help:"load line, such as cpu=3,memory=1.5: no plan lifts the limits of the pods of a node above it; empty: that of our plugin in schedulerConfig, else none"`
	LineNodeLabelPrefix      string   `json:"lineNodeLabelPrefix" help:"with maxLimitsOverAllocatable: a node with the label PREFIX/memory has that line for memory"`
	LineExemptNamespaces     []string `json:"lineExemptNamespaces" help:"with maxLimitsOverAllocatable: namespaces whose pods go where they want, and count for others"`
}

// Options returns them as the engine has them; nil: as kube-scheduler's defaults.
func (f *Filters) Options() (*loadlinev1.FitOptions, error) {
	scheduler, err := filterconfig.Read(filterconfig.Request{File: f.SchedulerConfig, Defects: f.UpstreamDefects,
		Version: f.KubernetesVersion})
	if err != nil {
		return nil, fmt.Errorf("filters: %w", err)
	}
	for _, warning := range scheduler.Warnings {
		klog.InfoS("The scheduler's configuration has what plans do not see", "file", f.SchedulerConfig, "what", warning)
	}
	options, err := filterconfig.WithLine(scheduler.Fit, f.MaxLimitsOverAllocatable, f.LineNodeLabelPrefix,
		f.LineExemptNamespaces)
	if err != nil {
		return nil, fmt.Errorf("filters: %w", err)
	}
	return options, nil
}

// ScaleDown says which nodes go, when and how.
type ScaleDown struct {
	MaxScaleDownParallelism int `json:"maxScaleDownParallelism" help:"nodes that go at once"`
	MaxDrainParallelism     int `json:"maxDrainParallelism" help:"of these, nodes with pods to move (Cluster Autoscaler: 1)"`

	ScaleDownUnneededTime         Duration `json:"scaleDownUnneededTime" help:"how long a node is unneeded before it goes"`
	ScaleDownUnreadyTime          Duration `json:"scaleDownUnreadyTime" help:"the same for one that is not ready"`
	ScaleDownUnreadyEnabled       bool     `json:"scaleDownUnreadyEnabled" help:"nodes that are not ready may go"`
	ScaleDownUtilizationThreshold float64  `json:"scaleDownUtilizationThreshold" help:"a node with more requests over allocatable stays"`
	ScaleDownGPUThreshold         float64  `json:"scaleDownGpuUtilizationThreshold" flag:"scale-down-gpu-utilization-threshold" help:"the same for GPUs"`
	IgnoreDaemonSets              bool     `json:"ignoreDaemonsetsUtilization" flag:"ignore-daemonsets-utilization" help:"DaemonSet pods do not count as utilization"`
	IgnoreMirrorPods              bool     `json:"ignoreMirrorPodsUtilization" flag:"ignore-mirror-pods-utilization" help:"mirror pods do not count as utilization"`
	ScaleDownDelayAfterAdd        Duration `json:"scaleDownDelayAfterAdd" help:"after a node group has grown"`
	ScaleDownDelayAfterDelete     Duration `json:"scaleDownDelayAfterDelete" help:"after a node has gone"`
	ScaleDownDelayAfterFailure    Duration `json:"scaleDownDelayAfterFailure" help:"after nodes could not be tainted"`
	ScaleDownSimulationTimeout    Duration `json:"scaleDownSimulationTimeout" help:"how long one plan may take; nodes that it had no time for are left for the next loop"`
	NodeDeletionCandidateTTL      Duration `json:"nodeDeletionCandidateTtl" flag:"node-deletion-candidate-ttl" help:"how old a soft taint may be that tells a new process since when its node is unneeded; 0: none does (Cluster Autoscaler: 0)"`
	CoresTotal                    string   `json:"coresTotal" help:"MIN:MAX cores that all nodes together offer to pods: no node goes below the minimum, no group grows beyond the maximum"`
	MemoryTotal                   string   `json:"memoryTotal" help:"MIN:MAX gigabytes of memory, in the same way"`
	GPUTotal                      []string `json:"gpuTotal" flag:"gpu-total" help:"TYPE:MIN:MAX GPUs of one type, in the same way; the type is the value of the node's GPU label; may be given more than once"`

	MinNodesTotal      int      `json:"minNodesTotal" help:"nodes that the cluster keeps in all"`
	GPULabels          []string `json:"gpuLabels" flag:"gpu-labels" help:"labels that tell a node with GPUs; empty: those of Google, Amazon and Azure"`
	ExclusiveDrains    bool     `json:"exclusiveDrains" help:"no drain starts while one is under way"`
	RecentEvictionTime Duration `json:"recentEvictionTime" help:"how long the replacement of an evicted pod is waited for"`
	MinEvaluatedNodes  int      `json:"minEvaluatedNodes" help:"nodes that are looked at in each loop, whatever the limits of work"`
	PlainGreedy        bool     `json:"plainGreedy" help:"nodes are tried in one order only: no better set of nodes is looked for"`

	SkipNodesWithSystemPods           bool     `json:"skipNodesWithSystemPods" help:"a kube-system pod without a budget keeps its node"`
	SkipNodesWithLocalStorage         bool     `json:"skipNodesWithLocalStorage" help:"a pod with local storage keeps its node"`
	SkipNodesWithCustomControllerPods bool     `json:"skipNodesWithCustomControllerPods" help:"a pod of an unknown controller keeps its node"`
	MinReplicaCount                   int      `json:"minReplicaCount" help:"a pod of a smaller ReplicaSet keeps its node"`
	BlockingSystemPodTimeout          Duration `json:"blockingSystemPodDistruptionTimeout" flag:"blocking-system-pod-distruption-timeout" help:"for how long a system pod keeps its node"`

	OKTotalUnreadyCount       int      `json:"okTotalUnreadyCount" help:"so many nodes may always be not ready"`
	MaxTotalUnreadyPercentage int      `json:"maxTotalUnreadyPercentage" help:"while more percent of the nodes are not ready, none goes"`
	MaxViewAge                Duration `json:"maxViewAge" help:"when the cluster was last seen longer ago, none goes"`
	MostVanishedPercent       int      `json:"mostVanishedPercent" help:"when more percent of pods or nodes vanish from one loop to the next without a reason, none goes; a reason is that we removed the node, or that the pod finished or its owner is gone or wants fewer"`

	NodeDeleteDelayAfterTaint                Duration `json:"nodeDeleteDelayAfterTaint" help:"from taint to drain"`
	CordonNodeBeforeTerminating              bool     `json:"cordonNodeBeforeTerminating" help:"nodes that go are made unschedulable too"`
	MaxGracefulTerminationSec                int      `json:"maxGracefulTerminationSec" help:"seconds that an evicted pod may take to end, whatever it states"`
	DrainPriorityConfig                      string   `json:"drainPriorityConfig" help:"PRIORITY:SECONDS,...: pods are evicted group by group, from the lowest priority; in place of max-graceful-termination-sec"`
	MaxPodEvictionTime                       Duration `json:"maxPodEvictionTime" help:"how long the eviction of a pod is tried"`
	EvictionRetryInterval                    Duration `json:"evictionRetryInterval" help:"between two attempts, give or take a fifth"`
	UnsafeDeletePodsDespiteDisruptionBudgets bool     `json:"unsafeDeletePodsDespiteDisruptionBudgets" help:"pods whose eviction their disruption budgets refuse until max-pod-eviction-time has passed are deleted all the same, which violates the budgets"`
	TerminationHeadroom                      Duration `json:"terminationHeadroom" help:"what pods may take beyond their grace period"`
	PollInterval                             Duration `json:"pollInterval" help:"how often it is seen whether pods have ended"`
	DaemonSetEvictionForEmptyNodes           bool     `json:"daemonsetEvictionForEmptyNodes" flag:"daemonset-eviction-for-empty-nodes" help:"DaemonSet pods are evicted from empty nodes"`
	DaemonSetEvictionForOccupiedNodes        bool     `json:"daemonsetEvictionForOccupiedNodes" flag:"daemonset-eviction-for-occupied-nodes" help:"and from others"`
	NodeDeletionDelayTimeout                 Duration `json:"nodeDeletionDelayTimeout" help:"how long annotations may delay the deletion of a node"`
	NodeDeletionBatcherInterval              Duration `json:"nodeDeletionBatcherInterval" help:"how long nodes of a group are gathered for one deletion"`
	MaxBulkSoftTaintCount                    int      `json:"maxBulkSoftTaintCount" help:"soft taints written in one loop; 0: none"`
	MaxBulkSoftTaintTime                     Duration `json:"maxBulkSoftTaintTime" help:"after which no soft taint is written in a loop"`
}

func duration(d time.Duration) Duration { return Duration{Duration: d} }

// Default returns the configuration without file and flags.
func Default() Configuration {
	return Configuration{
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind},
		Mode:     Observe, Decisions: []string{ScaleUpDecision, SlackDecision, ScaleDownDecision}, Engine: "inprocess",
		View:        "autoscaler",
		BindAddress: "127.0.0.1:8085", Namespace: "kube-system", StatusConfigMap: "loadline-autoscaler-status",
		ScanInterval: duration(10 * time.Second), KubeClientQPS: 200, KubeClientBurst: 300, MaxWork: 200_000_000,
		LeaderElection: LeaderElection{LeaderElect: true, LeaseDuration: duration(15 * time.Second),
			RenewDeadline: duration(10 * time.Second),
			RetryPeriod:   duration(2 * time.Second), ResourceName: "loadline-autoscaler"},
		CloudProvider: CloudProvider{GRPCTimeout: duration(5 * time.Second)},
		ScaleUp:       defaultScaleUp(),
		Slack:         defaultSlack(),
		Consolidation: defaultConsolidation(),
		ScaleDown: ScaleDown{
			MaxScaleDownParallelism: 10, MaxDrainParallelism: 5,
			ScaleDownUnneededTime: duration(10 * time.Minute), ScaleDownUnreadyTime: duration(20 * time.Minute),
			ScaleDownUnreadyEnabled: true, ScaleDownUtilizationThreshold: 0.5, ScaleDownGPUThreshold: 0.5,
			ScaleDownDelayAfterAdd: duration(10 * time.Minute), ScaleDownDelayAfterFailure: duration(3 * time.Minute),
			ScaleDownSimulationTimeout: duration(30 * time.Second), NodeDeletionCandidateTTL: duration(time.Hour),
			CoresTotal: "0:320000", MemoryTotal: "0:6400000",
			SkipNodesWithSystemPods: true, SkipNodesWithLocalStorage: true, SkipNodesWithCustomControllerPods: true,
			BlockingSystemPodTimeout: duration(time.Hour),
			OKTotalUnreadyCount:      3, MaxTotalUnreadyPercentage: 45, MostVanishedPercent: 20,
			MaxViewAge: duration(time.Minute), RecentEvictionTime: duration(time.Minute), MinEvaluatedNodes: 50,
			NodeDeleteDelayAfterTaint: duration(5 * time.Second), CordonNodeBeforeTerminating: true,
			MaxGracefulTerminationSec: 600,
			MaxPodEvictionTime:        duration(2 * time.Minute), EvictionRetryInterval: duration(10 * time.Second),
			TerminationHeadroom: duration(30 * time.Second), PollInterval: duration(5 * time.Second),
			DaemonSetEvictionForOccupiedNodes: true, NodeDeletionDelayTimeout: duration(2 * time.Minute),
			MaxBulkSoftTaintCount: 10, MaxBulkSoftTaintTime: duration(3 * time.Second),
		},
	}
}

// Load reads a file into a configuration, whose values stay where the file says nothing. An unknown field is an error.
func (c *Configuration) Load(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var head metav1.TypeMeta
	if err := yaml.Unmarshal(data, &head); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if head.APIVersion != APIVersion || head.Kind != Kind {
		return fmt.Errorf("%s: apiVersion %q, kind %q: must be %s, %s", file, head.APIVersion, head.Kind,
			APIVersion, Kind)
	}
	if err := policy.DecodeStrict(data, c); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// Write writes the configuration to a file; "-" is what `stdout` writes to.
func (c *Configuration) Write(file string, stdout interface{ Write([]byte) (int, error) }) error {
	data, err := yaml.Marshal(c)
	if err != nil {
		return err
	}
	if file == "-" {
		_, err = stdout.Write(data)
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

// Check returns the first thing that is wrong, with its key.
func (c *Configuration) Check() error {
	if c.Mode != Observe && c.Mode != Act {
		return fmt.Errorf("mode %q: must be %s or %s", c.Mode, Observe, Act)
	}
	if err := c.checkDecisions(); err != nil {
		return err
	}
	if err := view.CheckName(c.View); err != nil {
		return fmt.Errorf("view %q: %w", c.View, err)
	}
	if c.BindAddress != "" {
		if _, _, err := net.SplitHostPort(c.BindAddress); err != nil {
			return fmt.Errorf("bindAddress %q: must be HOST:PORT: %w", c.BindAddress, err)
		}
	}
	if c.Namespace == "" || c.StatusConfigMap == "" {
		return errors.New("namespace and statusConfigMapName: must not be empty")
	}
	if c.ScanInterval.Duration < 100*time.Millisecond {
		return fmt.Errorf("scanInterval %v: must be at least 100ms", c.ScanInterval.Duration)
	}
	if c.KubeClientQPS <= 0 || c.KubeClientBurst < 1 {
		return errors.New("kubeClientQps and kubeClientBurst: must be positive")
	}
	if c.MaxWork < 1 {
		return fmt.Errorf("maxWork %d: must be at least 1", c.MaxWork)
	}
	if _, err := filterconfig.Read(filterconfig.Request{Defects: c.Filters.UpstreamDefects,
		Version: c.Filters.KubernetesVersion}); err != nil {
		return fmt.Errorf("filters: %w", err)
	}
	if _, err := filterconfig.WithLine(nil, c.Filters.MaxLimitsOverAllocatable, c.Filters.LineNodeLabelPrefix,
		c.Filters.LineExemptNamespaces); err != nil {
		return fmt.Errorf("filters: %w", err)
	}
	if err := c.LeaderElection.check(); err != nil {
		return err
	}
	if err := c.checkViewAge(); err != nil {
		return err
	}
	if err := c.ScaleUp.check(); err != nil {
		return err
	}
	if err := c.Slack.check(); err != nil {
		return err
	}
	if err := c.Consolidation.check(); err != nil {
		return err
	}
	return c.ScaleDown.check()
}

func (c *Configuration) checkDecisions() error {
	for i, decision := range c.Decisions {
		if !slices.Contains([]string{ScaleUpDecision, SlackDecision, ScaleDownDecision, ReplaceDecision}, decision) {
			return fmt.Errorf("decisions: %q must be %s, %s, %s or %s", decision, ScaleUpDecision, SlackDecision,
				ScaleDownDecision, ReplaceDecision)
		}
		if slices.Contains(c.Decisions[:i], decision) {
			return fmt.Errorf("decisions: %q is there twice", decision)
		}
	}
	if len(c.Decisions) == 0 {
		return errors.New("decisions: must name at least one")
	}
	return c.checkReplacement()
}

func (s *ScaleDown) check() error {
	for key, value := range map[string]int{"maxScaleDownParallelism": s.MaxScaleDownParallelism,
		"maxDrainParallelism": s.MaxDrainParallelism,
		"minReplicaCount":     s.MinReplicaCount, "okTotalUnreadyCount": s.OKTotalUnreadyCount,
		"maxBulkSoftTaintCount":     s.MaxBulkSoftTaintCount,
		"maxGracefulTerminationSec": s.MaxGracefulTerminationSec, "minNodesTotal": s.MinNodesTotal,
		"minEvaluatedNodes": s.MinEvaluatedNodes} {
		if value < 0 || value > 1<<30 {
			return fmt.Errorf("scaleDown.%s: %d is out of range", key, value)
		}
	}
	for key, value := range map[string]float64{"scaleDownUtilizationThreshold": s.ScaleDownUtilizationThreshold,
		"scaleDownGpuUtilizationThreshold": s.ScaleDownGPUThreshold,
		"maxTotalUnreadyPercentage":        float64(s.MaxTotalUnreadyPercentage) / 100,
		"mostVanishedPercent":              float64(s.MostVanishedPercent) / 100} {
		if !(value >= 0 && value <= 1) {
			return fmt.Errorf("scaleDown.%s: is out of range", key)
		}
	}
	if err := checkDurations("scaleDown", s); err != nil {
		return err
	}
	if s.EvictionRetryInterval.Duration == 0 || s.PollInterval.Duration == 0 {
		return errors.New("scaleDown.evictionRetryInterval and pollInterval: must not be 0")
	}
	if _, err := s.PriorityGroups(); err != nil {
		return err
	}
	if _, err := s.GPUTotals(); err != nil {
		return err
	}
	_, err := s.Totals()
	return err
}

func checkDurations(section string, of any) error {
	return eachDuration(of, func(key string, d time.Duration) error {
		if d < 0 || d > 1000*time.Hour {
			return fmt.Errorf("%s.%s: %v is out of range", section, key, d)
		}
		return nil
	})
}

// PriorityGroup is one entry of drainPriorityConfig.
type PriorityGroup struct {
	Priority int32
	Grace    time.Duration
}

// PriorityGroups returns the groups of drainPriorityConfig, lowest priority first.
func (s *ScaleDown) PriorityGroups() ([]PriorityGroup, error) {
	var groups []PriorityGroup
	for entry := range strings.SplitSeq(s.DrainPriorityConfig, ",") {
		if entry == "" {
			continue
		}
		left, right, ok := strings.Cut(entry, ":")
		priority, err1 := strconv.ParseInt(strings.TrimSpace(left), 10, 32)
		grace, err2 := strconv.ParseInt(strings.TrimSpace(right), 10, 32)
		if !ok || err1 != nil || err2 != nil || grace < 0 {
			return nil, fmt.Errorf("scaleDown.drainPriorityConfig: %q must be PRIORITY:SECONDS", entry)
		}
		groups = append(groups, PriorityGroup{int32(priority), time.Duration(grace) * time.Second})
	}
	slices.SortStableFunc(groups, func(a, b PriorityGroup) int { return int(int64(a.Priority) - int64(b.Priority)) })
	for i := 1; i < len(groups); i++ {
		if groups[i].Priority == groups[i-1].Priority {
			return nil, fmt.Errorf("scaleDown.drainPriorityConfig: priority %d is there twice", groups[i].Priority)
		}
	}
	return groups, nil
}

// Totals bound what all nodes together offer.
type Totals struct{ MinCores, MaxCores, MinBytes, MaxBytes int64 }

// The engine takes no more cores, and no more than 2^62 bytes.
const (
	mostCores     = math.MaxInt32
	mostGigabytes = 1 << 32
)

// Totals returns coresTotal and memoryTotal.
func (s *ScaleDown) Totals() (t Totals, err error) {
	if t.MinCores, t.MaxCores, err = bounds(s.CoresTotal, mostCores); err != nil {
		return Totals{}, fmt.Errorf("scaleDown.coresTotal: %w", err)
	}
	if t.MinBytes, t.MaxBytes, err = bounds(s.MemoryTotal, mostGigabytes); err != nil {
		return Totals{}, fmt.Errorf("scaleDown.memoryTotal, in gigabytes: %w", err)
	}
	t.MinBytes, t.MaxBytes = t.MinBytes<<30, t.MaxBytes<<30
	return t, nil
}

// bounds reads MIN:MAX. A maximum above `most` stands for none.
func bounds(text string, most int64) (low, high int64, err error) {
	left, right, ok := strings.Cut(text, ":")
	low, err1 := strconv.ParseInt(left, 10, 64)
	high, err2 := strconv.ParseInt(right, 10, 64)
	if !ok || err1 != nil || err2 != nil || low < 0 || high < low || low > most {
		return 0, 0, fmt.Errorf("%q: must be MIN:MAX, at most %d", text, most)
	}
	return low, min(high, most), nil
}

// Package config holds the configuration of the autoscaler as people write it: a versioned file, and flags that
// override it. A setting that Cluster Autoscaler has a flag for has that name here, as flag and in camelCase as key,
// and the same default unless stated otherwise.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/filterconfig"
	"loadline.dev/shim/internal/unwrap"
	"loadline.dev/shim/policy"
	"loadline.dev/shim/providers"
	"loadline.dev/shim/usage/store"
	"loadline.dev/shim/view"
)

// The version and the kind that a file states.
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
	// Only if they are named.
	ReplaceDecision        = "replace"
	DownscaleOrderDecision = "downscale-order"
)

// AllDecisions are those above.
var AllDecisions = []string{ScaleUpDecision, SlackDecision, ScaleDownDecision, ReplaceDecision, DownscaleOrderDecision}

// Configuration of the autoscaler. The tag `flag` is the name of a flag where it is not that of the key; `range` is
// what a number, a duration or the length of a list may be, see inRange. Large numbers are limits of the engine.
type Configuration struct {
	metav1.TypeMeta `json:",inline"`
	Loops           `json:",inline"`
	Process         `json:",inline"`
	CloudProvider   providers.Options `json:"cloudProvider"`
	Filters         Filters           `json:"filters"`
	ScaleUp         ScaleUp           `json:"scaleUp"`
	Sizing          Sizing            `json:"sizing"`
	Slack           Slack             `json:"slack"`
	ScaleDown       ScaleDown         `json:"scaleDown"`
	Consolidation   Consolidation     `json:"consolidation"`
}

// Loops says what is decided, how often, and with how much work.
type Loops struct {
	Mode         string   `json:"mode" help:"observe: plan, and write nothing but the status and the lease; or act"`
	Decisions    []string `json:"decisions" range:"1:" help:"what to decide: scale-up, slack, scale-down, and, only if they are named, replace and downscale-order; another autoscaler does the rest"`
	ScanInterval Duration `json:"scanInterval" range:"100ms:" help:"from the begin of one loop to that of the next"`
	MaxWork      int      `json:"maxWork" range:"1:" help:"units of work, about 100 ns each, after which the best plan so far is taken: the same on each machine"`
}

// Process says where the engine and the API server are, and what is served and written.
type Process struct {
	Engine             string         `json:"engine" help:"engine: inprocess, inprocess:///path/to/libloadline.so or unix:///path/to/socket"`
	MaxQuestionBytes   int            `json:"maxQuestionBytes" help:"memory that one question may take in an engine in this process; 0: its default, 256 MiB. loadlined has a flag of that name"`
	View               string         `json:"view" help:"name of the view in the engine; clients that share a loadlined need different ones"`
	BindAddress        string         `json:"bindAddress" help:"HOST:PORT of the page, health and metrics as plain HTTP; empty: none"`
	ExposePage         bool           `json:"exposePage" help:"the page and /statusz, which name nodes and pods of all namespaces, are served to other machines too; without it to this one only, which kubectl port-forward counts as"`
	Profiling          bool           `json:"profiling" help:"serve Go profiles at /debug/pprof/, to whom the page is served"`
	Namespace          string         `json:"namespace" help:"namespace of status and lease"`
	StatusConfigMap    string         `json:"statusConfigMapName" flag:"status-config-map-name" help:"ConfigMap with the status"`
	WriteStatus        bool           `json:"writeStatusConfigMap" flag:"write-status-configmap" help:"write the status to that ConfigMap in each loop; without it metrics, events and the page alone tell of loops"`
	MaxInactivity      Duration       `json:"maxInactivity" range:"1s:1000h" help:"how long a loop may take before /livez fails, so that Kubernetes starts the process again"`
	UpstreamMetrics    bool           `json:"clusterAutoscalerMetrics" flag:"cluster-autoscaler-metrics" help:"serve Cluster Autoscaler's metrics too, under its names"`
	GroupMetrics       bool           `json:"emitPerNodegroupMetrics" flag:"emit-per-nodegroup-metrics" help:"with clusterAutoscalerMetrics: those of each node group too"`
	UsageNamespace     string         `json:"usageNamespace" help:"namespace of the ConfigMaps of loadline usage, which are read where the load line counts expected use"`
	KubeClientQPS      float64        `json:"kubeClientQps" flag:"kube-client-qps" range:"1e-9:" help:"requests per second to the API server"`
	KubeClientBurst    int            `json:"kubeClientBurst" flag:"kube-client-burst" range:"1:" help:"requests to the API server at once"`
	UpstreamNamespaces []string       `json:"clusterAutoscalerNamespaces" flag:"cluster-autoscaler-namespace" range:":64" help:"namespaces, beside kube-system and that of the status, in which a Cluster Autoscaler may run: in mode act, groups on which it acts are left alone"`
	LeaderElection     LeaderElection `json:"leaderElection"`
}

// Decides says whether a decision is taken here.
func (c *Configuration) Decides(decision string) bool { return slices.Contains(c.Decisions, decision) }

// Duration reads as "1m30s".
type Duration = metav1.Duration

// Filters says how the filters of the cluster's scheduler are configured.
type Filters struct {
	SchedulerConfig   string   `json:"schedulerConfig" flag:"scheduler-config-file" help:"file with the scheduler's KubeSchedulerConfiguration: its profiles, each for the pods that name it, hold for plans too"`
	UpstreamDefects   []string `json:"upstreamDefects" help:"known defects of kube-scheduler that plans reproduce: namespace-selector-sees-no-labels, or none; by default those that its release has"`
	KubernetesVersion string   `json:"kubernetesVersion" help:"release whose kube-scheduler is meant: 1.36, the default, or 1.37; left out, pods that are being resized count as in the release of the API server when the autoscaler starts"`

	MaxLimitsOverAllocatable []string `json:"maxLimitsOverAllocatable" help:"load line, such as cpu=3,memory=1.5: no plan lifts the limits of the pods of a node above it; empty: that of our plugin in schedulerConfig, else none"`
	LineNodeLabelPrefix      string   `json:"lineNodeLabelPrefix" help:"with maxLimitsOverAllocatable: a node with the label PREFIX/memory has that line for memory"`
	LineExemptNamespaces     []string `json:"lineExemptNamespaces" help:"with maxLimitsOverAllocatable: namespaces whose pods go where they want, and count for others"`
}

// check finds what is wrong without the scheduler's file.
func (f *Filters) check() error {
	without := *f
	without.SchedulerConfig = ""
	if _, err := without.Scheduler(); err != nil {
		return fmt.Errorf("filters.%w", err)
	}
	return nil
}

// Scheduler returns how the cluster's scheduler is configured. Warnings name the file.
func (f *Filters) Scheduler() (*filterconfig.Scheduler, error) {
	scheduler, err := filterconfig.Read(filterconfig.Request{File: f.SchedulerConfig, Defects: f.UpstreamDefects,
		Version: f.KubernetesVersion})
	if err != nil {
		return nil, err
	}
	for i, warning := range scheduler.Warnings {
		scheduler.Warnings[i] = f.SchedulerConfig + ": " + warning
	}
	scheduler.Fit, err = filterconfig.WithLine(scheduler.Fit, f.MaxLimitsOverAllocatable, f.LineNodeLabelPrefix,
		f.LineExemptNamespaces)
	return scheduler, err
}

func duration(d time.Duration) Duration { return Duration{Duration: d} }

// Default returns the configuration without file and flags.
func Default() Configuration {
	return Configuration{
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind},
		Loops: Loops{Mode: Observe, Decisions: []string{ScaleUpDecision, SlackDecision, ScaleDownDecision},
			ScanInterval: duration(10 * time.Second), MaxWork: 200_000_000},
		Process: Process{Engine: "inprocess", View: "autoscaler", BindAddress: "127.0.0.1:8085",
			Namespace: "kube-system", StatusConfigMap: "loadline-autoscaler-status", WriteStatus: true,
			MaxInactivity:  duration(10 * time.Minute),
			UsageNamespace: store.DefaultNamespace, KubeClientQPS: 200,
			KubeClientBurst: 300, LeaderElection: LeaderElection{LeaderElect: true,
				LeaseDuration: duration(15 * time.Second), RenewDeadline: duration(10 * time.Second),
				RetryPeriod: duration(2 * time.Second), ResourceName: "loadline-autoscaler"}},
		CloudProvider: providers.DefaultOptions(),
		ScaleUp:       defaultScaleUp(),
		Slack:         defaultSlack(),
		Consolidation: defaultConsolidation(),
		ScaleDown:     defaultScaleDown(),
	}
}

// Names of Cluster Autoscaler's lease and ConfigMap.
const (
	UpstreamLease  = "cluster-autoscaler"
	UpstreamStatus = "cluster-autoscaler-status"
)

// DropIn returns the configuration without file and flags where the program replaces Cluster Autoscaler, under
// its name: it is served where Cluster Autoscaler is, and its lease and status are those of Cluster Autoscaler. A
// process of either then waits while one of the other leads, and rights that name these objects hold for both. Settings
// that Cluster Autoscaler has too have its defaults, except the requests per second to the API server, which parallel
// evictions use up, and the expander: groups grow by the cheapest plan. Cluster Autoscaler keeps no room free, so that
// the share of slack is 0. Slack stays among the decisions for CapacityBuffers.
func DropIn() Configuration {
	c := Default()
	c.BindAddress, c.LeaderElection.ResourceName = ":8085", UpstreamLease
	c.StatusConfigMap, c.UpstreamMetrics = UpstreamStatus, true
	c.ScaleDown.MaxDrainParallelism, c.ScaleDown.NodeDeletionCandidateTTL = 1, duration(0)
	c.Slack.ExtraCapacityMinRate = "0%"
	return c
}

// Load reads a file into a configuration, whose values stay where the file says nothing. An unknown field is an error.
func (c *Configuration) Load(file string) error {
	data, err := unwrap.File(file, unwrap.MostBytes)
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
	if err := checkRanges(c); err != nil {
		return err
	}
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
	return cmp.Or(c.checkUpstreamNamespaces(), c.checkProviderToAct(), c.CloudProvider.CheckKind(), c.Filters.check(),
		c.LeaderElection.check(), c.checkViewAge(), c.ScaleUp.check(), c.Slack.check(), c.Consolidation.check(),
		c.ScaleDown.check())
}

func (c *Configuration) checkUpstreamNamespaces() error {
	for _, namespace := range c.UpstreamNamespaces {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			return fmt.Errorf("clusterAutoscalerNamespaces: %q is no name of a namespace: %s", namespace, problems[0])
		}
	}
	return nil
}

// checkProviderToAct returns an error where plans are to be carried out that need a cloud provider, and there is none.
// Slack alone needs none: placeholder pods keep room on the nodes that are there.
func (c *Configuration) checkProviderToAct() error {
	if c.Mode != Act || c.CloudProvider.Kind != providers.None {
		return nil
	}
	kinds := strings.Join(providers.Making, ", ")
	if c.Sizing.NodeGroups != "" {
		return fmt.Errorf("mode act: groups that are sized need a cloud provider, which --cloud names: %s", kinds)
	}
	if !c.onlySlack() {
		return fmt.Errorf("mode act: needs a cloud provider, which --cloud names: %s; only --decisions=%s needs none",
			kinds, SlackDecision)
	}
	return nil
}

// onlySlack says whether nothing but slack is decided.
func (c *Configuration) onlySlack() bool { return slices.Equal(c.Decisions, []string{SlackDecision}) }

func (c *Configuration) checkDecisions() error {
	for _, decision := range c.Decisions {
		if err := oneOf("decisions", decision, AllDecisions); err != nil {
			return err
		}
	}
	if c.Decides(DownscaleOrderDecision) && !c.Decides(ScaleDownDecision) {
		return errors.New("decisions: downscale-order needs scale-down, which has the nodes go that it empties")
	}
	if c.Decides(ReplaceDecision) && !(c.Decides(ScaleUpDecision) && c.Decides(ScaleDownDecision)) {
		return errors.New("decisions: replace needs scale-up and scale-down, which carry it out")
	}
	return once("decisions", c.Decisions, func(decision string) string { return decision })
}

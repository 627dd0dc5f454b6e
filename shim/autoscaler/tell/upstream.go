package tell

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/plan"
)

// upstreamPrefix is that of Cluster Autoscaler's metrics.
const upstreamPrefix = "cluster_autoscaler_"

// upstreamGauges are Cluster Autoscaler's metrics of August 2026 that are gauges, under their names and with their
// labels. A metric without a counterpart here is 0, or has no labels to report.
var upstreamGauges = []family{
	{"cluster_safe_to_autoscale", "Whether enough nodes are ready for groups to grow.", nil},
	{"nodes_count", "Nodes by state.", []string{"state"}},
	{"node_groups_count", "Node groups; none is made here.", []string{"node_group_type"}},
	{"unschedulable_pods_count", "Pods that wait for a node.", []string{"type"}},
	{"max_nodes_count", "Nodes that all groups may have together.", nil},
	{"cluster_cpu_current_cores", "Cores of all nodes that are not being removed.", nil},
	{"cpu_limits_cores", "Cores that the cluster keeps and may have.", []string{"direction"}},
	{"cluster_memory_current_bytes", "Memory of all nodes that are not being removed.", nil},
	{"memory_limits_bytes", "Memory that the cluster keeps and may have.", []string{"direction"}},
	{"last_activity", "When a part of a loop was last begun.", []string{"activity"}},
	{"pending_node_deletions", "Nodes whose removal is under way.", nil},
	{"unneeded_nodes_count", "Nodes that can go.", nil},
	{"unremovable_nodes_count", "Nodes that stay, by reason.", []string{"reason"}},
	{"scale_down_in_cooldown", "Whether a delay keeps nodes from going.", nil},
	{"overflowing_controllers_count", "Always 0: pods of one controller are told apart by what they are.", nil},
	{"node_taints_count", "Taints of nodes by type.", []string{"type"}},
	{"inconsistent_instances_migs_count", "Always 0: nothing here asks GCE.", nil},
	{skipDuration, "How long a node has not been looked at, at most.", nil},
	{"skipped_pods_count", "Pods that a loop left for the next one.", nil},
	{"dra_node_template_resources_mismatch", "Never told: templates are held against nodes in the engine.",
		[]string{"driver", "mismatch_type"}},
}

// upstreamGroupGauges are those that are served with --emit-per-nodegroup-metrics alone.
var upstreamGroupGauges = []family{
	{"node_group_min_count", "Nodes that a group has at least.", []string{"node_group"}},
	{"node_group_max_count", "Nodes that a group may have.", []string{"node_group"}},
	{"node_group_target_count", "Nodes that a group is to have.", []string{"node_group"}},
	{"node_group_healthiness", "Whether the nodes of a group come as they should.", []string{"node_group"}},
	{"node_group_backoff_status", "Whether a group does not grow after a failure.", []string{"node_group", "reason"}},
}

var (
	gpuLabels    = []string{"gpu_resource_name", "gpu_name"}
	deviceLabels = append(slices.Clone(gpuLabels), "dra_drivers")
	withReason   = func(labels []string) []string { return append([]string{"reason"}, labels...) }
)

var upstreamCounters = []family{
	{"errors_total", "What could not be done in loops, by type.", []string{"type"}},
	{"scaled_up_nodes_total", "Nodes that the cloud was asked for.", deviceLabels},
	{"scaled_up_gpu_nodes_total", "The same of nodes with GPUs.", gpuLabels},
	{"failed_scale_ups_total", "Failures to grow.", withReason(deviceLabels)},
	{"failed_node_creations_total", "Machines that the cloud could not create.", []string{"reason"}},
	{"failed_gpu_scale_ups_total", "Never told: failures are not told apart by GPUs.", withReason(gpuLabels)},
	{"scaled_down_nodes_total", "Nodes that were removed.", withReason(deviceLabels)},
	{"scaled_down_gpu_nodes_total", "The same of nodes with GPUs.", withReason(gpuLabels)},
	{"evicted_pods_total", "Evictions by whether they were accepted.", []string{"eviction_result"}},
	{"old_unregistered_nodes_removed_count", "Machines that did not become nodes in time.", nil},
	{"skipped_scale_events_count", "Groups, and nodes, that a limit of the cluster held back, in all loops.",
		[]string{"direction", "reason"}},
	{"created_node_groups_total", "Never told: no node groups are made.", []string{"group_type"}},
	{"deleted_node_groups_total", "Never told: no node groups are deleted.", []string{"group_type"}},
}

// upstream are Cluster Autoscaler's metrics, which follow ours. A nil one takes no notice.
type upstream struct {
	gauges   map[string]*prometheus.GaugeVec
	counters map[string]*prometheus.CounterVec
	duration *prometheus.HistogramVec
	quantile *prometheus.SummaryVec
	latency  *prometheus.HistogramVec
	groups   bool
}

// ServeUpstream serves Cluster Autoscaler's metrics too; `groups`: those of each node group as well. It is called
// before anything is counted.
func (m *Metrics) ServeUpstream(groups bool) {
	u := &upstream{gauges: map[string]*prometheus.GaugeVec{}, counters: map[string]*prometheus.CounterVec{},
		groups: groups}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: upstreamPrefix + name, Help: help,
			Buckets: buckets}, labels)
		m.Registry.MustRegister(h)
		return h
	}
	all := slices.Clone(upstreamGauges)
	if groups {
		all = append(all, upstreamGroupGauges...)
	}
	for _, f := range all {
		u.gauges[f.name] = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: upstreamPrefix + f.name, Help: f.help},
			f.labels)
		m.Registry.MustRegister(u.gauges[f.name])
	}
	for _, f := range upstreamCounters {
		u.counters[f.name] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: upstreamPrefix + f.name, Help: f.help},
			f.labels)
		m.Registry.MustRegister(u.counters[f.name])
	}
	u.duration = histogram("function_duration_seconds", "Time that parts of a loop take.",
		prometheus.ExponentialBuckets(0.01, 1.5, 30), "function")
	u.latency = histogram("node_removal_latency_seconds", "Time from the taint of a node to the end of its removal.",
		prometheus.ExponentialBuckets(1, 1.5, 19), "deleted", "delay_reason")
	histogram("binpacking_heterogeneity", "Never told: all groups are planned together.",
		prometheus.ExponentialBuckets(1, 2, 6), "instance_type", "cpu_count", "namespace_count")
	u.quantile = prometheus.NewSummaryVec(prometheus.SummaryOpts{Name: upstreamPrefix +
		"function_duration_quantile_seconds", Help: "The same as a summary of an hour.", MaxAge: time.Hour},
		[]string{"function"})
	m.Registry.MustRegister(u.quantile)
	m.upstream = u
	u.begin()
}

// begin tells what has a value before anything happens.
func (u *upstream) begin() {
	for _, name := range []string{"overflowing_controllers_count", "inconsistent_instances_migs_count",
		"skipped_pods_count", skipDuration, "pending_node_deletions"} {
		u.set(name, 0)
	}
	for _, kind := range []string{cloudError, apiError, internalError} {
		u.count("errors_total", 0, kind)
	}
	for _, reason := range []string{cloudError, apiError, "timeout"} {
		u.count("failed_scale_ups_total", 0, reason, "", "", "")
		u.count("failed_node_creations_total", 0, reason)
	}
	for _, result := range []string{"succeeded", "failed"} {
		u.count("evicted_pods_total", 0, result)
	}
	for _, direction := range []string{"up", "down"} {
		for _, reason := range []string{"CpuResourceLimit", "MemoryResourceLimit"} {
			u.count("skipped_scale_events_count", 0, direction, reason)
		}
	}
	u.count("old_unregistered_nodes_removed_count", 0)
}

func (u *upstream) set(name string, value float64, labels ...string) {
	u.gauges[name].WithLabelValues(labels...).Set(value)
}

func (u *upstream) count(name string, more float64, labels ...string) {
	u.counters[name].WithLabelValues(labels...).Add(more)
}

// Types of errors, and reasons of failures, under Cluster Autoscaler's names.
const (
	cloudError    = "cloudProviderError"
	apiError      = "apiCallError"
	internalError = "internalError"
)

// upstreamNames are names of Cluster Autoscaler for what we name otherwise.
var upstreamNames = map[string]string{"cloudProvider": cloudError, "plan": internalError, "apiError": cloudError,
	"outOfResources": cloudError, "creationFailed": cloudError, "accepted": "succeeded",
	"deleted_despite_budget": "succeeded", "timeout": "timeout"}

func upstreamName(ours, otherwise string) string {
	if name, known := upstreamNames[ours]; known {
		return name
	}
	return otherwise
}

// counted follows one of our counters.
func (u *upstream) counted(name string, more float64, labels []string) {
	if u == nil {
		return
	}
	devices := func(kind string, gpu string, labels ...string) {
		u.count(kind+"_nodes_total", more, append(slices.Clone(labels), gpu, "", "")...)
		if gpu != "" {
			u.count(kind+"_gpu_nodes_total", more, append(slices.Clone(labels), gpu, "")...)
		}
	}
	switch name {
	case errorsTotal:
		u.count(name, more, upstreamName(labels[0], apiError))
	case "scaled_up_nodes_total":
		devices("scaled_up", labels[0])
	case "scaled_down_nodes_total":
		devices("scaled_down", labels[1], labels[0])
	case "failed_scale_ups_total":
		u.count(name, more, upstreamName(labels[0], cloudError), "", "", "")
	case "failed_node_creations_total":
		u.count(name, more, upstreamName(labels[0], cloudError))
	case "evicted_pods_total":
		u.count(name, more, upstreamName(labels[0], "failed"))
	case GivenUpNodes:
		if labels[0] == "late" {
			u.count("old_unregistered_nodes_removed_count", more)
		}
	}
}

// upstreamFunctions are Cluster Autoscaler's names of the functions that are measured here. The others have no
// counterpart there: the requests to the cloud after a plan, which would count as a second scaleUp, are among them.
var upstreamFunctions = map[string]string{FunctionMain: "main", FunctionRefresh: "cloudProviderRefresh",
	FunctionUpdate: "updateClusterState", FunctionPlan: "scaleUp", FunctionStart: "scaleDown",
	FunctionSoftTaints: "scaleDown:softTaintUnneeded"}

// activities are parts of a loop by the function that is measured.
var activities = map[string]string{FunctionMain: "main", FunctionUpdate: "autoscaling", FunctionPlan: "scaleUp",
	FunctionStart: "scaleDown"}

// took follows the time that a part of a loop has taken, which has just ended.
func (u *upstream) took(function string, took time.Duration) {
	if u == nil {
		return
	}
	if name := upstreamFunctions[function]; name != "" {
		u.duration.WithLabelValues(name).Observe(took.Seconds())
		u.quantile.WithLabelValues(name).Observe(took.Seconds())
	}
	if activity := activities[function]; activity != "" {
		u.set("last_activity", float64(time.Now().Add(-took).Unix()), activity)
	}
}

// removed follows the end of a removal.
func (u *upstream) removed(took time.Duration) {
	if u != nil {
		u.latency.WithLabelValues("true", "none").Observe(took.Seconds())
	}
}

// told follows what the engine tells of a plan.
func (u *upstream) told(values []*loadlinev1.MetricValue) {
	if u == nil {
		return
	}
	u.gauges["unremovable_nodes_count"].Reset()
	for _, v := range values {
		switch v.Name {
		case "cluster_safe_to_autoscale", "scale_down_in_cooldown":
			u.set(v.Name, v.Value, v.Labels...)
		case "nodes", "unneeded_nodes", "unremovable_nodes":
			u.set(v.Name+"_count", v.Value, v.Labels...)
		case "unschedulable_pods":
			u.set(v.Name+"_count", v.Value, "unschedulable")
			u.set(v.Name+"_count", 0, "scheduler_unprocessed")
		}
	}
}

// upstreamOf tells of a loop what only this process knows.
func (t *Teller) upstreamOf(o *plan.Loop, status *loadlinev1.AutoscalerStatus) {
	u := t.Metrics.upstream
	if u == nil {
		return
	}
	u.set("node_groups_count", float64(len(o.Groups)), "autoscaled")
	u.set("node_groups_count", 0, "autoprovisioned")
	u.set("pending_node_deletions", float64(len(o.UnderWay)))
	u.set("skipped_pods_count", float64(status.GetClusterWide().GetScaleUp().GetDeferred()))
	most := 0
	for _, g := range o.Groups {
		most += g.Max
	}
	if limit := t.config.ScaleUp.MaxNodesTotal; limit > 0 {
		most = min(most, limit)
	}
	u.set("max_nodes_count", float64(most))
	u.ofNodes(t.cluster.Nodes, func(name string) bool { _, goes := o.UnderWay[name]; return goes })
	if totals, err := t.config.ScaleDown.Totals(); err == nil {
		for direction, amounts := range map[string][2]int64{"minimum": {totals.MinCores, totals.MinBytes},
			"maximum": {totals.MaxCores, totals.MaxBytes}} {
			u.set("cpu_limits_cores", float64(amounts[0]), direction)
			u.set("memory_limits_bytes", float64(amounts[1]), direction)
		}
	}
	if o.Plan != nil {
		u.ofSkips(o.Plan.Answer, t.config.ScaleDown.CoresTotal, t.config.ScaleDown.MemoryTotal)
	}
	if u.groups {
		u.ofGroups(status.GetNodeGroups())
	}
}

// skipReasons are Cluster Autoscaler's names of limits of the cluster, by resource.
var skipReasons = map[string]string{"cpu": "CpuResourceLimit", "memory": "MemoryResourceLimit"}

// ofSkips counts the groups that a maximum of the cluster keeps from growing, by the resources that bind them, and the
// nodes that a minimum keeps, by the minima that there are.
func (u *upstream) ofSkips(answer *loadlinev1.PlanLoopResponse, cores, memory string) {
	for _, group := range answer.GetAtMaximum() {
		for _, resource := range group.GetResources() {
			name, _, _ := strings.Cut(resource, " of ") // a quota
			if reason := skipReasons[name]; reason != "" {
				u.count("skipped_scale_events_count", 1, "up", reason)
			}
		}
	}
	for _, value := range answer.GetReport().GetMetrics() {
		if value.GetName() != "unremovable_nodes" || !slices.Contains(value.GetLabels(), "MinimalResourceLimitExceeded") {
			continue
		}
		for resource, limits := range map[string]string{"cpu": cores, "memory": memory} {
			if !strings.HasPrefix(limits, "0:") {
				u.count("skipped_scale_events_count", value.GetValue(), "down", skipReasons[resource])
			}
		}
	}
}

// ofNodes tells what the nodes have, and their taints.
func (u *upstream) ofNodes(nodes map[string]*v1.Node, goes func(name string) bool) {
	cores, bytes, taints := int64(0), int64(0), map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		node := nodes[name]
		for _, taint := range node.Spec.Taints {
			taints[taintType(taint.Key)]++
		}
		if !goes(name) {
			cores += node.Status.Capacity.Cpu().Value()
			bytes += node.Status.Capacity.Memory().Value()
		}
	}
	u.set("cluster_cpu_current_cores", float64(cores))
	u.set("cluster_memory_current_bytes", float64(bytes))
	u.gauges["node_taints_count"].Reset()
	for kind, count := range taints {
		u.set("node_taints_count", float64(count), kind)
	}
}

// taintType is the type of a taint in a metric: the keys of Kubernetes and of Cluster Autoscaler are few.
func taintType(key string) string {
	switch {
	case strings.HasPrefix(key, "startup-taint."), strings.HasPrefix(key, "ignore-taint."):
		return "startup-taint"
	case strings.HasPrefix(key, "status-taint."):
		return "status-taint"
	case strings.HasPrefix(key, "node.kubernetes.io/"), strings.HasSuffix(key, "ByClusterAutoscaler"),
		key == "DeletionCandidateOfClusterAutoscaler":
		return key
	}
	return "other"
}

// ofGroups tells of each group; of one that is gone it tells no more.
func (u *upstream) ofGroups(groups []*loadlinev1.NodeGroupStatus) {
	for _, f := range upstreamGroupGauges {
		u.gauges[f.name].Reset()
	}
	for _, g := range groups {
		health, healthy, backOff := g.GetHealth(), 0.0, g.GetScaleUp().GetBackoffInfo()
		if health.GetStatus() == "Healthy" {
			healthy = 1
		}
		u.set("node_group_min_count", float64(health.GetMinSize()), g.Name)
		u.set("node_group_max_count", float64(health.GetMaxSize()), g.Name)
		u.set("node_group_target_count", float64(health.GetCloudProviderTarget()), g.Name)
		u.set("node_group_healthiness", healthy, g.Name)
		if backOff == nil {
			u.set("node_group_backoff_status", 0, g.Name, "")
		} else {
			u.set("node_group_backoff_status", 1, g.Name, upstreamName(backOff.GetErrorCode(), cloudError))
		}
	}
}

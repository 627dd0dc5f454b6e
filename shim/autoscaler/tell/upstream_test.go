package tell

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/act/drain"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/autoscaler/watch"
)

// upstreamNamesAndLabels are Cluster Autoscaler's metrics of August 2026, with their labels: of its metrics.go and of
// proposals/metrics.md in its repository.
const upstreamNamesAndLabels = `
binpacking_heterogeneity cpu_count instance_type namespace_count
cluster_cpu_current_cores
cluster_memory_current_bytes
cluster_safe_to_autoscale
cpu_limits_cores direction
created_node_groups_total group_type
deleted_node_groups_total group_type
dra_node_template_resources_mismatch driver mismatch_type
errors_total type
evicted_pods_total eviction_result
failed_gpu_scale_ups_total gpu_name gpu_resource_name reason
failed_node_creations_total reason
failed_scale_ups_total dra_drivers gpu_name gpu_resource_name reason
function_duration_quantile_seconds function
function_duration_seconds function
inconsistent_instances_migs_count
last_activity activity
max_node_skip_eval_duration_seconds
max_nodes_count
memory_limits_bytes direction
node_group_backoff_status node_group reason
node_group_healthiness node_group
node_group_max_count node_group
node_group_min_count node_group
node_group_target_count node_group
node_groups_count node_group_type
node_removal_latency_seconds delay_reason deleted
node_taints_count type
nodes_count state
old_unregistered_nodes_removed_count
overflowing_controllers_count
pending_node_deletions
scale_down_in_cooldown
scaled_down_gpu_nodes_total gpu_name gpu_resource_name reason
scaled_down_nodes_total dra_drivers gpu_name gpu_resource_name reason
scaled_up_gpu_nodes_total gpu_name gpu_resource_name
scaled_up_nodes_total dra_drivers gpu_name gpu_resource_name
skipped_pods_count
skipped_scale_events_count direction reason
unneeded_nodes_count
unremovable_nodes_count reason
unschedulable_pods_count type
`

var upstreamDescribed = regexp.MustCompile(`fqName: "` + upstreamPrefix + `(\w+)".* variableLabels: \{([\w,]*)\}`)

// upstreamMetricsOf returns what a registry has under Cluster Autoscaler's names, as the list above.
func upstreamMetricsOf(r *prometheus.Registry) string {
	to := make(chan *prometheus.Desc, 1000)
	r.Describe(to)
	close(to)
	var lines []string
	for description := range to {
		if parts := upstreamDescribed.FindStringSubmatch(description.String()); parts != nil {
			labels := strings.Split(parts[2], ",")
			slices.Sort(labels)
			lines = append(lines, strings.TrimSpace(parts[1]+" "+strings.Join(labels, " ")))
		}
	}
	slices.Sort(lines)
	return "\n" + strings.Join(lines, "\n") + "\n"
}

// All of Cluster Autoscaler's metrics are served under their names when they are asked for, those of groups only with
// --emit-per-nodegroup-metrics, and none without a flag.
func TestUpstreamMetrics(t *testing.T) {
	m := NewMetrics("test")
	if got := upstreamMetricsOf(m.Registry); got != "\n\n" {
		t.Errorf("without the flag: %s", got)
	}
	m.ServeUpstream(true)
	if got := upstreamMetricsOf(m.Registry); got != upstreamNamesAndLabels || strings.Count(got, "\n") != 43 {
		t.Errorf("%s\nwant%s", got, upstreamNamesAndLabels)
	}
	m = NewMetrics("test")
	m.ServeUpstream(false)
	if got := upstreamMetricsOf(m.Registry); strings.Count(got, "\n") != 38 || strings.Contains(got, "node_group_min") {
		t.Errorf("without those of groups: %s", got)
	}
}

// expectUpstream compares values of series, "name{labels} value" each.
func expectUpstream(t *testing.T, m *Metrics, want map[string]float64) {
	t.Helper()
	all, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range all {
		for _, series := range family.GetMetric() {
			var labels []string
			for _, label := range series.GetLabel() {
				if label.GetValue() != "" {
					labels = append(labels, label.GetValue())
				}
			}
			name := strings.TrimPrefix(family.GetName(), upstreamPrefix) + "{" + strings.Join(labels, ",") + "}"
			got[name] = series.GetGauge().GetValue() + series.GetCounter().GetValue() +
				float64(series.GetHistogram().GetSampleCount())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if value, there := got[name]; !there || value != want[name] {
			t.Errorf("%s is %v (there: %v), want %v", name, value, there, want[name])
		}
	}
}

// The counters here are also served under Cluster Autoscaler's names and reasons.
func TestUpstreamCounters(t *testing.T) {
	m := NewMetrics("test")
	m.ServeUpstream(false)
	m.Failed("cloudProvider")
	m.Failed("plan")
	m.Failed("status")
	m.Count("scaled_up_nodes_total", 3, "nvidia.com/gpu")
	m.Count("scaled_up_nodes_total", 2, "")
	m.Count(GivenUpNodes, 4, "late")
	m.Count(GivenUpNodes, 5, "failed")
	m.Set(skipDuration, 7)
	hooks := m.Hooks()
	hooks.Evicted("accepted")
	hooks.Evicted("refused")
	hooks.Removed(&drain.Removal{Reason: "underutilized"}, drain.NodeDeleteOK, 3*time.Second)
	m.Took(FunctionMain, time.Second)
	m.told(&loadlinev1.LoopReport{Metrics: []*loadlinev1.MetricValue{
		{Name: "failed_scale_ups_total", Labels: []string{"timeout"}, Value: 2},
		{Name: "failed_node_creations_total", Labels: []string{"outOfResources"}, Value: 6},
		{Name: "nodes", Labels: []string{"ready"}, Value: 8}, {Name: "unneeded_nodes", Value: 1},
		{Name: "unremovable_nodes", Labels: []string{"BlockedByPod"}, Value: 9},
		{Name: "unschedulable_pods", Value: 11}}})
	expectUpstream(t, m, map[string]float64{"errors_total{cloudProviderError}": 1, "errors_total{internalError}": 1,
		"errors_total{apiCallError}": 1, "scaled_up_nodes_total{nvidia.com/gpu}": 3, "scaled_up_nodes_total{}": 2,
		"scaled_up_gpu_nodes_total{nvidia.com/gpu}": 3, "old_unregistered_nodes_removed_count{}": 4,
		"evicted_pods_total{succeeded}": 1, "evicted_pods_total{failed}": 1, "scaled_down_nodes_total{underutilized}": 1,
		"node_removal_latency_seconds{none,true}": 1, "function_duration_seconds{main}": 1,
		"failed_scale_ups_total{timeout}": 2, "failed_scale_ups_total{apiCallError}": 0,
		"failed_node_creations_total{cloudProviderError}": 6, "nodes_count{ready}": 8, "unneeded_nodes_count{}": 1,
		"unremovable_nodes_count{BlockedByPod}": 9, "unschedulable_pods_count{unschedulable}": 11,
		"max_node_skip_eval_duration_seconds{}": 7, "skipped_scale_events_count{up,CpuResourceLimit}": 0})
	if activity := testutil.ToFloat64(m.upstream.gauges["last_activity"].WithLabelValues("main")); activity <
		float64(time.Now().Add(-time.Minute).Unix()) {
		t.Errorf("the last activity was at %v", activity)
	}
	m.told(&loadlinev1.LoopReport{})
	if left := testutil.CollectAndCount(m.upstream.gauges["unremovable_nodes_count"]); left != 0 {
		t.Errorf("%d reasons are told that hold no more", left)
	}
}

// Under Cluster Autoscaler's names of metrics functions have its names too, and those that it does not have are left
// out. Our own metric has all of them under ours.
func TestUpstreamFunctions(t *testing.T) {
	m := NewMetrics("test")
	m.ServeUpstream(false)
	for _, function := range []string{FunctionMain, FunctionRefresh, FunctionUpdate, FunctionPlan, FunctionScaleUp,
		FunctionSlack, FunctionStart, FunctionSoftTaints, FunctionDeletionCosts} {
		m.Took(function, time.Second)
	}
	theirs := []string{"cloudProviderRefresh", "main", "scaleDown", "scaleDown:softTaintUnneeded", "scaleUp",
		"updateClusterState"}
	ours := []string{"cloudProviderRefresh", "main", "plan", "scaleDown", "scaleDown:deletionCosts",
		"scaleDown:softTaintUnneeded", "scaleUp", "slack", "updateClusterState"}
	for name, want := range map[string][]string{upstreamPrefix + "function_duration_seconds": theirs,
		upstreamPrefix + "function_duration_quantile_seconds": theirs, prefix + "function_duration_seconds": ours} {
		if got := functionsOf(t, m, name); !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
	}
}

// functionsOf returns the functions of which a metric has exactly one duration.
func functionsOf(t *testing.T, m *Metrics, name string) (functions []string) {
	t.Helper()
	all, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range all {
		for _, series := range family.GetMetric() {
			if family.GetName() == name && series.GetHistogram().GetSampleCount()+series.GetSummary().GetSampleCount() == 1 {
				functions = append(functions, series.GetLabel()[0].GetValue())
			}
		}
	}
	return functions
}

// Groups, nodes, limits and taints are reported as they are.
func TestUpstreamGauges(t *testing.T) {
	m, options := NewMetrics("test"), config.Default()
	m.ServeUpstream(true)
	options.ScaleUp.MaxNodesTotal, options.ScaleDown.CoresTotal, options.ScaleDown.MemoryTotal = 12, "4:100", "1:2"
	node := func(taints ...string) *v1.Node {
		n := &v1.Node{Status: v1.NodeStatus{Capacity: v1.ResourceList{"cpu": resource.MustParse("4"),
			"memory": resource.MustParse("8Gi")}}}
		for _, key := range taints {
			n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: key})
		}
		return n
	}
	cluster := &watch.Cluster{}
	cluster.Nodes = map[string]*v1.Node{"a": node("node.kubernetes.io/not-ready", "dedicated"), "b": node("dedicated"),
		"goes": node("ToBeDeletedByClusterAutoscaler")}
	teller := &Teller{config: &options, cluster: cluster, Metrics: m}
	o := plan.NewLoop(time.Unix(0, 0))
	o.Groups = []*plan.Group{{Group: &cloud.Group{ID: "g", Max: 10}}, {Group: &cloud.Group{ID: "h", Max: 5}}}
	o.UnderWay = map[string]drain.UnderWay{"goes": {}}
	teller.upstreamOf(o, &loadlinev1.AutoscalerStatus{ClusterWide: &loadlinev1.ClusterWideStatus{
		ScaleUp: &loadlinev1.ScaleUpStatus{Deferred: 6}}, NodeGroups: []*loadlinev1.NodeGroupStatus{
		{Name: "g", Health: &loadlinev1.NodeGroupHealth{Status: "Healthy", MinSize: 1, MaxSize: 10, CloudProviderTarget: 3}},
		{Name: "h", Health: &loadlinev1.NodeGroupHealth{Status: "Unhealthy", MaxSize: 5},
			ScaleUp: &loadlinev1.NodeGroupScaleUpStatus{BackoffInfo: &loadlinev1.BackoffStatus{ErrorCode: "timeout"}}}}})
	expectUpstream(t, m, map[string]float64{"node_groups_count{autoscaled}": 2, "node_groups_count{autoprovisioned}": 0,
		"max_nodes_count{}": 12, "pending_node_deletions{}": 1, "skipped_pods_count{}": 6,
		"cluster_cpu_current_cores{}": 8, "cluster_memory_current_bytes{}": 16 << 30, "cpu_limits_cores{minimum}": 4,
		"cpu_limits_cores{maximum}": 100, "memory_limits_bytes{minimum}": 1 << 30, "memory_limits_bytes{maximum}": 2 << 30,
		"node_taints_count{node.kubernetes.io/not-ready}": 1, "node_taints_count{other}": 2,
		"node_taints_count{ToBeDeletedByClusterAutoscaler}": 1, "node_group_min_count{g}": 1, "node_group_max_count{g}": 10,
		"node_group_target_count{g}": 3, "node_group_healthiness{g}": 1, "node_group_healthiness{h}": 0,
		"node_group_backoff_status{g}": 0, "node_group_backoff_status{h,timeout}": 1})
}

// Groups and nodes that a limit of the cluster keeps are counted by the resources that bind them.
func TestUpstreamSkips(t *testing.T) {
	m, options := NewMetrics("test"), config.Default()
	m.ServeUpstream(false)
	options.ScaleDown.MemoryTotal = "64:6400000"
	teller := &Teller{config: &options, cluster: &watch.Cluster{}, Metrics: m}
	o := plan.NewLoop(time.Unix(0, 0))
	o.Plan = &plan.Plan{Answer: &loadlinev1.PlanLoopResponse{
		AtMaximum: []*loadlinev1.GroupAtMaximum{{NodeGroup: "g", Resources: []string{"cpu", "memory"}},
			{NodeGroup: "h", Resources: []string{"cpu of CapacityQuota/q", "nvidia.com/gpu"}}},
		Report: &loadlinev1.LoopReport{Metrics: []*loadlinev1.MetricValue{
			{Name: "unremovable_nodes", Labels: []string{"MinimalResourceLimitExceeded"}, Value: 3},
			{Name: "unremovable_nodes", Labels: []string{"BlockedByPod"}, Value: 5}}}}}
	for range 2 {
		teller.upstreamOf(o, &loadlinev1.AutoscalerStatus{})
	}
	expectUpstream(t, m, map[string]float64{"skipped_scale_events_count{up,CpuResourceLimit}": 4,
		"skipped_scale_events_count{up,MemoryResourceLimit}": 2, "skipped_scale_events_count{down,MemoryResourceLimit}": 6,
		"skipped_scale_events_count{down,CpuResourceLimit}": 0})
}

// Under the name of Cluster Autoscaler's ConfigMap the status has its form: conditions say since when they hold, and
// nodes that are not ready are a sum with a part. A group that is listed again begins anew.
func TestUpstreamStatus(t *testing.T) {
	client, options := fake.NewClientset(), config.DropIn()
	teller := New(&watch.Cluster{}, &options, client, record.NewFakeRecorder(10), NewMetrics("test"), 1)
	write := func(time, health string, groups ...*loadlinev1.NodeGroupStatus) (read upstreamRead) {
		t.Helper()
		if err := teller.write(t.Context(), &loadlinev1.AutoscalerStatus{Time: time,
			ClusterWide: &loadlinev1.ClusterWideStatus{Health: &loadlinev1.ClusterHealth{Status: health,
				NodeCounts: &loadlinev1.NodeCounts{Registered: &loadlinev1.RegisteredNodeCounts{Total: 5, Ready: 3,
					Unready: 2}}}}, NodeGroups: groups}); err != nil {
			t.Fatal(err)
		}
		written, err := client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "cluster-autoscaler-status",
			metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal([]byte(written.Data["status"]), &read); err != nil {
			t.Fatal(err)
		}
		return read
	}
	group := &loadlinev1.NodeGroupStatus{Name: "g", ScaleUp: &loadlinev1.NodeGroupScaleUpStatus{Status: "Backoff"}}
	write("1", "Healthy", group)
	read := write("2", "Healthy", group)
	if h := read.ClusterWide.Health; h.LastTransitionTime != "1" || h.LastProbeTime != "2" ||
		h.NodeCounts.Registered.Unready.Total != 2 || h.NodeCounts.Registered.Ready != 3 {
		t.Errorf("%+v", h)
	}
	if up := read.NodeGroups[0].ScaleUp; up.Status != "Backoff" || up.LastTransitionTime != "1" {
		t.Errorf("%+v", up)
	}
	read = write("3", "Unhealthy")
	if h := read.ClusterWide.Health; h.Status != "Unhealthy" || h.LastTransitionTime != "3" {
		t.Errorf("%+v", h)
	}
	if up := write("4", "Unhealthy", group).NodeGroups[0].ScaleUp; up.LastTransitionTime != "4" {
		t.Errorf("%+v", up)
	}
}

// Under the name of Cluster Autoscaler's ConfigMap its times have the layout of Cluster Autoscaler, which those parse
// who look whether it is kept up to date; under another name they have that of the API.
func TestTimesOfTheStatus(t *testing.T) {
	for want, options := range map[string]config.Configuration{"2026-01-02 03:04:05 +0000 UTC": config.DropIn(),
		"2026-01-02T03:04:05Z": config.Default()} {
		client := fake.NewClientset()
		teller := New(&watch.Cluster{}, &options, client, record.NewFakeRecorder(10), NewMetrics("test"), 1)
		if err := teller.write(t.Context(), &loadlinev1.AutoscalerStatus{Time: "2026-01-02T03:04:05Z"}); err != nil {
			t.Fatal(err)
		}
		written, err := client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), options.StatusConfigMap,
			metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var read struct {
			Time string `json:"time"`
		}
		if err := yaml.Unmarshal([]byte(written.Data["status"]), &read); err != nil {
			t.Fatal(err)
		}
		if at := written.Annotations[LastUpdated]; at != want || read.Time != want {
			t.Errorf("%s: %q, in the status %q, want %q", options.StatusConfigMap, at, read.Time, want)
		}
	}
	if _, err := time.Parse(LastUpdatedLayout, upstreamTime("2026-01-02T03:04:05Z")); err != nil {
		t.Error(err)
	}
}

// upstreamRead is what Cluster Autoscaler's status is to those who read it.
type upstreamRead struct {
	ClusterWide struct {
		Health upstreamCondition `json:"health"`
	} `json:"clusterWide"`
	NodeGroups []struct {
		ScaleUp upstreamCondition `json:"scaleUp"`
	} `json:"nodeGroups"`
}

type upstreamCondition struct {
	Status             string `json:"status"`
	LastProbeTime      string `json:"lastProbeTime"`
	LastTransitionTime string `json:"lastTransitionTime"`
	NodeCounts         struct {
		Registered struct {
			Ready   int `json:"ready"`
			Unready struct {
				Total           int `json:"total"`
				ResourceUnready int `json:"resourceUnready"`
			} `json:"unready"`
		} `json:"registered"`
	} `json:"nodeCounts"`
}

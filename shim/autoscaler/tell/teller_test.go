package tell

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/autoscaler/watch"
	"loadline.dev/shim/internal/testing/vectortest"
	"loadline.dev/shim/view"
)

// The status is written without what is empty, and numbers stay as they are.
func TestStatusAsYAML(t *testing.T) {
	got, err := yamlOf(&loadlinev1.AutoscalerStatus{Mode: "act", Warnings: []string{"w"},
		ClusterWide: &loadlinev1.ClusterWideStatus{Health: &loadlinev1.ClusterHealth{Pods: 2_000_000},
			ScaleUp: &loadlinev1.ScaleUpStatus{Status: "NoActivity"}},
		NodeGroups: []*loadlinev1.NodeGroupStatus{{Name: "g",
			Health: &loadlinev1.NodeGroupHealth{CloudProviderTarget: 3}}}})
	const want = `clusterWide:
  health:
    pods: 2000000
  scaleUp:
    deferred: 0
    pendingPods: 0
    placed: 0
    status: NoActivity
    unplaced: 0
mode: act
nodeGroups:
- health:
    cloudProviderTarget: 3
    maxSize: 0
    minSize: 0
  name: g
warnings:
- w
`
	if err != nil || string(got) != want {
		t.Errorf("got %s, error %v, want %s", got, err, want)
	}
}

// The status keeps labels and annotations that others add. Without the right to read it, it is written all the same.
func TestStatusKeepsWhatOthersAdd(t *testing.T) {
	client, options := fake.NewClientset(), config.Default()
	teller := New(&watch.Cluster{}, &options, client, record.NewFakeRecorder(10), NewMetrics("test"), 1)
	maps := client.CoreV1().ConfigMaps("kube-system")
	write := func(time string) *v1.ConfigMap {
		t.Helper()
		if err := teller.write(t.Context(), &loadlinev1.AutoscalerStatus{Time: time}); err != nil {
			t.Fatal(err)
		}
		written, err := client.Tracker().Get(v1.SchemeGroupVersion.WithResource("configmaps"), "kube-system",
			teller.About.Name)
		if err != nil {
			t.Fatal(err)
		}
		return written.(*v1.ConfigMap)
	}
	object := write("1").DeepCopy()
	object.Labels = map[string]string{"team": "a"}
	object.Annotations["theirs"], object.Data["status"] = "b", "overwritten"
	if _, err := maps.Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if m := write("2"); m.Labels["team"] != "a" || m.Annotations["theirs"] != "b" || m.Annotations[LastUpdated] != "2" ||
		!strings.Contains(m.Data["status"], `time: "2"`) ||
		!strings.Contains(m.Data["status"], "cloudProvider: externalgrpc\n") {
		t.Errorf("%+v", m)
	}
	client.PrependReactor("get", "configmaps", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "status", nil)
	})
	if m := write("3"); m.Labels["team"] != "" || m.Annotations[LastUpdated] != "3" {
		t.Errorf("without the right to read it: %+v", m)
	}
}

// The engine's report of a plan is served until the next plan, counters add up, and the bill stays. Odd or repeated
// values of a later engine harm nothing.
func TestToldMetrics(t *testing.T) {
	m := NewMetrics("test")
	value := func(name string, value float64, labels ...string) *loadlinev1.MetricValue {
		return &loadlinev1.MetricValue{Name: name, Labels: labels, Value: value}
	}
	m.told(&loadlinev1.LoopReport{Metrics: []*loadlinev1.MetricValue{
		value("unremovable_nodes", 3, "NotUnderutilized"), value("replacement_moves_total", 1, "begun"),
		value("bill_usd_per_hour", 2.5, "now")}})
	m.told(&loadlinev1.LoopReport{Metrics: []*loadlinev1.MetricValue{
		value("unremovable_nodes", 1, "Unready"), value("unremovable_nodes", 2, "Unready"),
		value("replacement_moves_total", 2, "begun"), value("sized_group_locked", 1, "g"),
		value("of_a_later_engine", 1), value("bill_usd_per_hour", 1), value("errors_total", 1, "a", "b"),
		value("unneeded_nodes", 1, "a"), value("plans_cut_short_total", -1, "drain")}})
	expect := func(want string) {
		t.Helper()
		if err := testutil.GatherAndCompare(m.Registry, strings.NewReader(want), prefix+"unremovable_nodes",
			prefix+"replacement_moves_total", prefix+"bill_usd_per_hour", prefix+"unneeded_nodes",
			prefix+"scale_down_brake", prefix+"errors_total", prefix+"sized_group_locked"); err != nil {
			t.Error(err)
		}
	}
	const plan = `
# HELP loadline_autoscaler_bill_usd_per_hour What nodes cost when moves were looked for last: now, what nothing costs less than (bound), and what moves reach (reachable).
# TYPE loadline_autoscaler_bill_usd_per_hour gauge
loadline_autoscaler_bill_usd_per_hour{kind="now"} 2.5
# HELP loadline_autoscaler_replacement_moves_total Moves by what became of them: begun, done or givenUp.
# TYPE loadline_autoscaler_replacement_moves_total counter
loadline_autoscaler_replacement_moves_total{result="begun"} 3
loadline_autoscaler_replacement_moves_total{result="done"} 0
loadline_autoscaler_replacement_moves_total{result="givenUp"} 0
# HELP loadline_autoscaler_unremovable_nodes Nodes that stay, by reason.
# TYPE loadline_autoscaler_unremovable_nodes gauge
loadline_autoscaler_unremovable_nodes{reason="Unready"} 2
`
	expect(plan + `# HELP loadline_autoscaler_sized_group_locked Whether a sized group does nothing because it grew a short time ago.
# TYPE loadline_autoscaler_sized_group_locked gauge
loadline_autoscaler_sized_group_locked{node_group="g"} 1
`)
	m.withoutPlan()
	m.withoutPlan()
	expect(plan + `# HELP loadline_autoscaler_scale_down_brake 1 for what holds all removals back.
# TYPE loadline_autoscaler_scale_down_brake gauge
loadline_autoscaler_scale_down_brake{brake="NoPlan"} 1
`)
}

// Events are recorded on the nodes that are there.
func TestEventsOnNodes(t *testing.T) {
	options, recorder := config.Default(), record.NewFakeRecorder(10)
	c := watch.New(view.NewForPlanning(nil, "test"), &options, nil)
	c.Nodes["n1"] = &v1.Node{}
	New(c, &options, nil, recorder, NewMetrics(""), 1).tellNodes([]*loadlinev1.NodeEvent{
		{Nodes: []string{"n1", "gone"}, Reason: "Replacement", Message: "to be replaced at lower cost: n1 by n2"},
		{Nodes: []string{"n1"}, Warning: true, Reason: "ReplacementGivenUp", Message: "stays for now: too dear"}})
	close(recorder.Events)
	var got []string
	for event := range recorder.Events {
		got = append(got, event)
	}
	want := []string{"Normal Replacement to be replaced at lower cost: n1 by n2",
		"Warning ReplacementGivenUp stays for now: too dear"}
	if !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

// Events are those of Cluster Autoscaler where the status is, and ours elsewhere.
func TestEventSource(t *testing.T) {
	ours, theirs := config.Default(), config.DropIn()
	if got := EventSource(&ours).Component; got != "loadline-autoscaler" {
		t.Errorf("the source is %q", got)
	}
	if got := EventSource(&theirs).Component; got != "cluster-autoscaler" {
		t.Errorf("in the place of Cluster Autoscaler the source is %q", got)
	}
}

// TestVectors has a subtest per row that this package answers, named by its id.
func TestVectors(t *testing.T) {
	vectortest.Run(t, "drain_actuation", map[string]vectortest.Answer{"max_skip_time": maxSkipTimeRow}, nil)
}

func maxSkipTimeRow(t *testing.T, in json.RawMessage) map[string]any {
	var q struct {
		Interval int        `json:"loop_interval_s"`
		Skipped  [][]string `json:"skipped_per_loop"`
	}
	vectortest.Decode(t, in, &q)
	var tracker skipTracker
	longest := []int{}
	now := time.Unix(1000, 0)
	for _, skipped := range q.Skipped {
		longest = append(longest, int(tracker.update(skipped, now)/time.Second))
		now = now.Add(time.Duration(q.Interval) * time.Second)
	}
	return map[string]any{"max_skip_s": longest}
}

// A node that is skipped in the very first loop has not waited yet.
func TestFirstLoop(t *testing.T) {
	var tracker skipTracker
	if got := tracker.update([]string{"n"}, time.Unix(1000, 0)); got != 0 {
		t.Errorf("waited %v", got)
	}
	if got := tracker.update([]string{"n"}, time.Unix(1010, 0)); got != 10*time.Second {
		t.Errorf("waited %v, want 10s", got)
	}
}

// The line on the size of a group is forgotten with the group, and not while the group has no size.
func TestSizesOfGoneGroupsAreForgotten(t *testing.T) {
	teller := Teller{said: said{lines: map[string]string{}}}
	sized := func(name string) *loadlinev1.NodeGroupStatus {
		return &loadlinev1.NodeGroupStatus{Name: name, Size: &loadlinev1.NodeGroupSizeStatus{Action: "hold"}}
	}
	for i, groups := range [][]*loadlinev1.NodeGroupStatus{
		{sized("a"), sized("b")}, {sized("c"), {Name: "a"}}, {sized("a")},
	} {
		teller.log(&plan.Loop{Plan: &plan.Plan{}}, &loadlinev1.AutoscalerStatus{NodeGroups: groups,
			ClusterWide: &loadlinev1.ClusterWideStatus{ScaleUp: &loadlinev1.ScaleUpStatus{}}})
		if len(teller.said.sizes) != len(groups) || teller.said.sizes["a"] == "" {
			t.Errorf("after loop %d: %q", i, teller.said.sizes)
		}
	}
}

package sizing

import (
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/slack"
)

// full has every option of a group of our own form, each with a number of its own.
const full = `apiVersion: loadline.dev/v1alpha1
kind: NodeGroup
metadata: {name: general}
spec:
  min: 1
  max: 20
  target: 5
  nodeSelector: {pool: general, zone: a}
  template: {metadata: {labels: {pool: general}}, status: {allocatable: {cpu: 8, memory: 28Gi}}}
  size:
    mode: compat
    daemonSets: ignore
    catchAll: true
    scaleUpThresholdPercent: 71
    taintUpperCapacityThresholdPercent: 61
    taintLowerCapacityThresholdPercent: 41
    slowNodeRemovalRate: 2
    fastNodeRemovalRate: 4
    softDeleteGracePeriod: 1m
    hardDeleteGracePeriod: 10m
    scaleUpCoolDownPeriod: 5m
    scaleOnStarve: true
    maxNodeAge: 24h
    unhealthyNodeGracePeriod: 7m
    healthCheckNewestNodesPercent: 30
    maxUnhealthyNodesPercent: 40
    cloudMin: 3
    cloudMax: 30
`

// escalator has every option of Escalator's file that bears on the decision.
const escalator = `node_groups:
- name: default
  label_key: pool
  label_value: general
  cloud_provider_group_name: asg
  min_nodes: 1
  max_nodes: 20
  scale_up_threshold_percent: 71
  taint_upper_capacity_threshold_percent: 61
  taint_lower_capacity_threshold_percent: 41
  slow_node_removal_rate: 2
  fast_node_removal_rate: 4
  soft_delete_grace_period: 1m
  hard_delete_grace_period: 10m
  scale_up_cool_down_period: 5m
  scale_on_starve: true
  max_node_age: 24h
  unhealthy_node_grace_period: 7m
  health_check_newest_nodes_percent: 30
  max_unhealthy_nodes_percent: 40
`

func askedOf(t *testing.T, text string) *loadlinev1.SizedGroup {
	t.Helper()
	file, err := nodegroup.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	request, err := New().Request(file.Groups, time.UnixMilli(1234), nil)
	if err != nil {
		t.Fatal(err)
	}
	if request.GetNowMilliseconds() != 1234 || len(request.GetGroups()) != 1 {
		t.Fatalf("request %v", request)
	}
	return request.GetGroups()[0]
}

func TestEveryOptionReachesTheEngine(t *testing.T) {
	common := func() *loadlinev1.SizeOptions {
		return &loadlinev1.SizeOptions{
			Mode: loadlinev1.SizeOptions_DEFAULT, MinNodes: 1, MaxNodes: 20, ScaleUpPercent: 71, TaintUpperPercent: 61,
			TaintLowerPercent: 41,
			SlowRate:          2, FastRate: 4, SoftGraceMilliseconds: 60_000, HardGraceMilliseconds: 600_000,
			CoolDownMilliseconds: 300_000,
			ScaleOnStarve:        true, MaxNodeAgeMilliseconds: 86_400_000, UnhealthyGraceMilliseconds: 420_000,
			NewestPercent: 30, MaxUnhealthyPercent: 40,
		}
	}
	got := askedOf(t, full)
	if len(got.GetTemplateNode()) == 0 {
		t.Error("there is no template")
	}
	got.TemplateNode = nil
	options := common()
	options.Mode, options.IgnoreDaemonSets = loadlinev1.SizeOptions_COMPAT, true
	options.CloudMin, options.CloudMax = proto.Int32(3), proto.Int32(30)
	want := &loadlinev1.SizedGroup{NodeGroup: "general", CatchAll: true, CloudTarget: proto.Int32(5), Options: options,
		Labels: []*loadlinev1.GroupLabel{{Key: "pool", Value: "general"}, {Key: "zone", Value: "a"}}}
	if !proto.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	want = &loadlinev1.SizedGroup{NodeGroup: "default", CatchAll: true, Options: common(),
		Labels: []*loadlinev1.GroupLabel{{Key: "pool", Value: "general"}}}
	if got := askedOf(t, escalator); !proto.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// Each option of either file, changed by itself, changes the question.
func TestNoOptionIsLost(t *testing.T) {
	for _, text := range []string{full, escalator} {
		before := askedOf(t, text)
		for _, change := range []string{"min: 1>min: 2", "max: 20>max: 21", "target: 5>target: 6", "zone: a>zone: b",
			"mode: compat>mode: default",
			"daemonSets: ignore>daemonSets: subtract", "catchAll: true>catchAll: false", "Percent: 71>Percent: 72",
			"Percent: 61>Percent: 62",
			"Percent: 41>Percent: 42", "Rate: 2>Rate: 3", "Rate: 4>Rate: 5", "Period: 1m>Period: 2m",
			"Period: 10m>Period: 11m", "Period: 5m>Period: 6m",
			"Starve: true>Starve: false", "24h>25h", "7m>8m", "NodesPercent: 30>NodesPercent: 31",
			"NodesPercent: 40>NodesPercent: 41",
			"cloudMin: 3>cloudMin: 4", "cloudMax: 30>cloudMax: 31", "cpu: 8>cpu: 9",
			"min_nodes: 1>min_nodes: 2", "max_nodes: 20>max_nodes: 21", "name: default>name: other",
			"label_value: general>label_value: x",
			"percent: 71>percent: 72", "percent: 61>percent: 62", "percent: 41>percent: 42", "rate: 2>rate: 3",
			"rate: 4>rate: 5", "period: 1m>period: 2m",
			"period: 10m>period: 11m", "period: 5m>period: 6m", "starve: true>starve: false",
			"nodes_percent: 30>nodes_percent: 31",
			"nodes_percent: 40>nodes_percent: 41"} {
			from, to, _ := strings.Cut(change, ">")
			if !strings.Contains(text, from) {
				if strings.Contains(full+escalator, from) {
					continue
				}
				t.Fatalf("no file says %q", from)
			}
			if proto.Equal(before, askedOf(t, strings.Replace(text, from, to, 1))) {
				t.Errorf("%s: changes nothing", change)
			}
		}
	}
}

func TestLabelsOfATemplate(t *testing.T) {
	text := strings.Replace(full, "  nodeSelector: {pool: general, zone: a}\n", "", 1)
	got := askedOf(t, strings.Replace(text, "{pool: general}",
		"{pool: general, kubernetes.io/os: linux, kubernetes.io/hostname: t}", 1))
	if len(got.GetLabels()) != 1 || got.GetLabels()[0].GetKey() != "pool" {
		t.Errorf("labels %v", got.GetLabels())
	}
	file, err := nodegroup.Parse([]byte(strings.Replace(text, "{pool: general}", "{kubernetes.io/os: linux}", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New().Request(file.Groups, time.Now(), nil); err == nil ||
		!strings.Contains(err.Error(), `"general": spec.nodeSelector: missing`) {
		t.Errorf("got %v", err)
	}
	file.Groups[0].Spec.Size = nil
	if _, err := New().Request(file.Groups, time.Now(), nil); err == nil ||
		!strings.Contains(err.Error(), "spec.size is missing") {
		t.Errorf("got %v", err)
	}
}

func TestPodsThatWaitAreGathered(t *testing.T) {
	pod := func(name string, change func(*v1.Pod)) *v1.Pod {
		out := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pod": name},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: name, Controller: new(true)}}}}
		out.Spec.Containers = []v1.Container{{Name: name, Image: name, Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{"cpu": resource.MustParse("1")}}}}
		if change != nil {
			change(out)
		}
		return out
	}
	g := New()
	for _, p := range []*v1.Pod{
		pod("a", nil), pod("b", nil),
		pod("larger", func(p *v1.Pod) { p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("2") }),
		pod("selects", func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"pool": "a"} }),
		pod("daemon", func(p *v1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" }),
		pod("prefers", func(p *v1.Pod) { p.Spec.Affinity = &v1.Affinity{} }),
		pod("gated", func(p *v1.Pod) { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "gate"}} }),
		pod("starting", func(p *v1.Pod) { p.Spec.NodeName, p.Status.Phase = "n", v1.PodPending }),
		pod("running", func(p *v1.Pod) { p.Spec.NodeName, p.Status.Phase = "n", v1.PodRunning }),
		pod("done", func(p *v1.Pod) { p.Status.Phase = v1.PodSucceeded }),
		pod("failed", func(p *v1.Pod) { p.Status.Phase = v1.PodFailed }),
	} {
		g.AddPod(p)
	}
	file, err := nodegroup.Parse([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	request, err := g.Request(file.Groups, time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	type entry struct {
		count    int32
		waitsFor loadlinev1.WaitingPods_For
	}
	var got []entry
	for _, p := range request.GetPods() {
		got = append(got, entry{p.GetCount(), p.GetWaitsFor()})
	}
	want := []entry{{2, loadlinev1.WaitingPods_NODE}, {1, loadlinev1.WaitingPods_NODE},
		{1, loadlinev1.WaitingPods_NODE}, {1, loadlinev1.WaitingPods_NODE},
		{1, loadlinev1.WaitingPods_NODE}, {1, loadlinev1.WaitingPods_GATE}, {1, loadlinev1.WaitingPods_START}}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("entry %d: %v, want %v", i, got[i], want[i])
		}
	}
}

// The engine gets no names of pods, and names one that it leaves out by its place in the question.
func TestPodsLeftOutAreNamed(t *testing.T) {
	g := New()
	for _, name := range []string{"a", "b", "c"} {
		g.AddPod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}})
	}
	g.AddPod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "d"}})
	for _, c := range []struct {
		name string
		want *loadlinev1.LeftOut
	}{
		{"pods[0]", &loadlinev1.LeftOut{Kind: "Pod", Namespace: "shop", Name: "a",
			Reason: "bad (pods like it: 2)"}},
		{"pods[1]", &loadlinev1.LeftOut{Kind: "Pod", Namespace: "other", Name: "d", Reason: "bad"}},
		{"pods[2]", &loadlinev1.LeftOut{Kind: "Pod", Name: "pods[2]", Reason: "bad"}},
		{"pods[x]", &loadlinev1.LeftOut{Kind: "Pod", Name: "pods[x]", Reason: "bad"}},
		{"size_pods[0]", &loadlinev1.LeftOut{Kind: "Pod", Name: "size_pods[0]", Reason: "bad"}},
	} {
		got := &loadlinev1.LeftOut{Kind: "Pod", Name: c.name, Reason: "bad"}
		g.NameLeftOut(FieldOfRequest, []*loadlinev1.LeftOut{got})
		if !proto.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	var none *Gatherer
	none.NameLeftOut(FieldOfLoop, []*loadlinev1.LeftOut{{Kind: "Pod", Name: "size_pods[0]"}})
}

// Pods are reported by name, and what decides where they fit stays with them.
func TestPodsThatWaitKeepWhatFiltersRead(t *testing.T) {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", Labels: map[string]string{
		"app": "web", "apps.kubernetes.io/pod-index": "0", "statefulset.kubernetes.io/pod-name": "web-0",
		slack.PlaceholderLabel: "x"}}}
	pod.Spec.Containers = []v1.Container{{Name: "c", Image: "i", Ports: []v1.ContainerPort{{HostPort: 80}}}}
	pod.Spec.Tolerations = []v1.Toleration{{Key: "k"}}
	if got := sized(pod); len(got.Labels) != 1 || got.Labels[slack.PlaceholderLabel] != "x" {
		t.Errorf("labels %v of a pod without terms", got.Labels)
	}
	pod.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{TopologyKey: "zone"}}
	got := sized(pod)
	if len(got.Labels) != 2 || got.Labels["app"] != "web" || got.Namespace != "shop" || got.Name != "" {
		t.Errorf("got %v", got.ObjectMeta)
	}
	if len(got.Spec.Tolerations) != 1 || len(got.Spec.TopologySpreadConstraints) != 1 ||
		got.Spec.Containers[0].Ports[0].HostPort != 80 {
		t.Errorf("got %v", got.Spec)
	}
	g := New()
	g.AddPod(pod)
	second := pod.DeepCopy()
	second.Name, second.Labels["apps.kubernetes.io/pod-index"] = "web-1", "1"
	g.AddPod(second)
	if len(g.Pods()) != 1 || g.Pods()[0].GetCount() != 2 || g.Name(0) != "shop/web-0" || g.Name(1) != "" {
		t.Errorf("got %v, %q", g.Pods(), g.Name(0))
	}
	warnings := Warnings(&loadlinev1.GroupSize{Warnings: []*loadlinev1.SizeWarning{
		{Kind: loadlinev1.SizeWarning_PODS_TOO_LARGE, Count: 2, FirstPod: proto.Int32(0)}}}, g)
	if len(warnings) != 1 || !strings.HasSuffix(warnings[0], ", such as shop/web-0") {
		t.Errorf("got %q", warnings)
	}
}

func TestWarningsAgreeWithTheirNumbers(t *testing.T) {
	for kind, want := range map[loadlinev1.SizeWarning_Kind][2]string{
		loadlinev1.SizeWarning_PODS_WITHOUT_REQUESTS: {
			"1 of its pods has a container that requests no cpu or no memory",
			"2 of its pods have a container that requests no cpu or no memory"},
		loadlinev1.SizeWarning_SHARED_NODES: {"1 of its nodes is also of b", "2 of its nodes are also of b"},
		loadlinev1.SizeWarning_UNCOUNTED_PODS: {"1 pod on its nodes asks for no group and is no demand",
			"2 pods on its nodes ask for no group and are no demand"},
		loadlinev1.SizeWarning_PODS_TOO_LARGE: {
			"1 of its pods that wait requests more than any of its nodes offers, and is no demand",
			"2 of its pods that wait request more than any of its nodes offers, and are no demand"},
	} {
		for i, text := range want {
			got := Warnings(&loadlinev1.GroupSize{Warnings: []*loadlinev1.SizeWarning{
				{Kind: kind, Count: int64(i + 1), NodeGroup: "b"}}}, nil)
			if len(got) != 1 || got[0] != text {
				t.Errorf("got %q, want %q", got, text)
			}
		}
	}
}

func TestStateIsReadBack(t *testing.T) {
	text := `apiVersion: loadline.dev/v1alpha1
kind: SizeState
groups:
- name: shared
  cachedNode: {cpu: "1", memory: 4G}
  lockedAt: "2026-02-01T10:00:00.500000Z"
  requested: 3
  expected: 5
  askedAt: "2026-02-01T10:00:01.000000Z"
  askedTarget: 2
- name: empty
`
	state, err := ParseState([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := &loadlinev1.SizeState{Groups: []*loadlinev1.GroupSizeState{
		{NodeGroup: "shared", CachedNode: &loadlinev1.NodeSize{MilliCpu: 1000, MemoryBytes: 4_000_000_000},
			LockedMilliseconds: proto.Int64(1769940000500), Requested: 3, Expected: proto.Int64(5),
			AskedMilliseconds: proto.Int64(1769940001000), AskedTarget: proto.Int64(2)}, {NodeGroup: "empty"}}}
	if !proto.Equal(state, want) {
		t.Errorf("got %v, want %v", state, want)
	}
	written, err := yaml.Marshal(NewState(state))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ParseState(written); err != nil || !proto.Equal(again, want) {
		t.Errorf("got %v, %v of\n%s", again, err, written)
	}
	for bad, says := range map[string]string{
		strings.Replace(text, "SizeState", "State",
			1): `kind "State": must be loadline.dev/v1alpha1, SizeState`,
		strings.Replace(text, "requested", "asked", 1):          `unknown field "groups[0].asked"`,
		strings.Replace(text, "name: empty", "requested: 1", 1): "groups[1].name: missing",
		strings.Replace(text, `cpu: "1"`, `cpu: "-1"`, 1):       "groups[0].cachedNode: an amount is negative",
	} {
		if _, err := ParseState([]byte(bad)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %s", err, says)
		}
	}
}

// Within a loop the cloud says what it holds, and the bounds where the group has none.
func TestForLoop(t *testing.T) {
	size := &nodegroup.Size{CloudMin: new(int32(1)), CloudMax: new(int32(2)), DryMode: true}
	for _, c := range []struct {
		name                       string
		min, max, wantMin, wantMax int32
	}{
		{"Own", 2, 5, 2, 5},
		{"NoneInEscalatorsFile", 0, math.MaxInt32, 3, 9},
		{"NoneInOurs", 0, 0, 3, 9},
		{"OwnMaximum", 0, 5, 0, 5},
	} {
		group := nodegroup.NodeGroup{Metadata: nodegroup.Metadata{Name: "g"},
			Spec: nodegroup.Spec{NodeSelector: map[string]string{"pool": "a"}, Min: c.min, Max: c.max,
				Target: new(int32(7)), Template: &v1.Node{}, Size: size}}
		got, err := ForLoop(&group, Cloud{ID: "at-the-cloud", Min: 3, Max: 9})
		if err != nil {
			t.Fatal(err)
		}
		o := got.GetOptions()
		if o.GetMinNodes() != c.wantMin || o.GetMaxNodes() != c.wantMax || o.CloudMin != nil || o.CloudMax != nil ||
			got.CloudTarget != nil || got.TemplateNode != nil {
			t.Errorf("%s: %v", c.name, got)
		}
		if got.GetNodeGroup() != "at-the-cloud" || !got.GetDryRun() || got.GetLabels()[0].GetValue() != "a" {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

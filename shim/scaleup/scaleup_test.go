package scaleup

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/usage/profile"
	"loadline.dev/shim/workload"
)

func pod(name, cpu string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
		Labels: map[string]string{"app": "web"}},
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{"cpu": resource.MustParse(cpu)}}}}}}
}

// names returns the first pod of each kind that waits, and how many there are.
func names(t *testing.T, g *Pods) string {
	t.Helper()
	var out []string
	for _, pods := range g.Pending() {
		var pod v1.Pod
		if err := pod.Unmarshal(pods.GetPod().GetPod()); err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s*%d", pod.Name, pods.GetCount()))
	}
	return strings.Join(out, " ")
}

func TestPodsThatWait(t *testing.T) {
	g := NewPods()
	bound, done, gated, ending, daemon := pod("bound", "1"), pod("done", "1"), pod("gated", "1"), pod("ending", "1"),
		pod("daemon", "1")
	bound.Spec.NodeName = "n"
	done.Status.Phase = v1.PodFailed
	gated.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "quota"}}
	ending.DeletionTimestamp = &metav1.Time{}
	yes := true
	daemon.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "logs", UID: "u", Controller: &yes}}
	same, other, spread := pod("same", "1"), pod("other", "1"), pod("spread", "1")
	same.UID, same.Annotations = "another", map[string]string{"x": "y"}
	other.Labels = map[string]string{"app": "db"}
	spread.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{
		{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: v1.DoNotSchedule}}
	scratch := func(name string) *v1.Pod {
		p := pod(name, "1")
		p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}}}
		return p
	}
	for _, p := range []*v1.Pod{bound, done, gated, ending, daemon, pod("first", "1"), same, other, pod("large", "2"),
		spread, scratch("scratch-0"), scratch("scratch-1"), pod("last", "1")} {
		g.AddPod(p)
	}
	// Equal pods are one, but for those whose claims are named after them.
	if got, want := names(t, g), "first*3 other*1 large*1 spread*1 scratch-0*1 scratch-1*1"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := g.Waiting(); got != 8 {
		t.Errorf("%d pods wait, want 8", got)
	}
}

// deployed makes a pod one of a Deployment.
func deployed(p *v1.Pod, deployment string) *v1.Pod {
	p.Labels = map[string]string{"pod-template-hash": "5d8f"}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: deployment + "-5d8f",
		UID: "u", Controller: new(true)}}
	return p
}

// Pods of workloads with a profile say so, and only pods of the same workload are equal to them. Without a profile,
// pods of many workloads are still one kind.
func TestPodsTellWorkloadsThatHaveAProfile(t *testing.T) {
	gathered := NewPods()
	gathered.TellWorkloads(map[profile.Workload]bool{
		{Namespace: "shop", Kind: "Deployment", Name: "web"}: true, {Namespace: "shop", Kind: "Deployment", Name: "db"}: true,
		{Namespace: "else", Kind: "Deployment", Name: "mail"}: true})
	for i, of := range []string{"web", "mail", "db", "web", "cache"} {
		gathered.AddPod(deployed(pod(fmt.Sprint("pod-", i), "1"), of))
	}
	var got []string
	for _, entry := range gathered.Pending() {
		var sent v1.Pod
		if err := sent.Unmarshal(entry.GetPod().GetPod()); err != nil {
			t.Fatal(err)
		}
		stated, _, _ := strings.Cut(sent.Annotations[workload.Annotation], "@")
		got = append(got, fmt.Sprintf("%d %s", entry.GetCount(), stated))
	}
	if want := []string{"2 Deployment/web", "2 ", "1 Deployment/db"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

// daemonSet is one that exists.
func daemonSet(name string, uid types.UID) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: uid}}
}

// daemonsOf returns the pods on every new node, as NAME CPU.
func daemonsOf(t *testing.T, g *Pods) []string {
	t.Helper()
	var got []string
	for _, data := range g.DaemonPods() {
		var pod v1.Pod
		if err := pod.Unmarshal(data); err != nil {
			t.Fatal(err)
		}
		got = append(got, pod.Name+" "+pod.Spec.Containers[0].Resources.Requests.Cpu().String())
	}
	return got
}

// A pod says nothing about new nodes, whatever DaemonSet it names: what the set makes is in its template. A pod of the
// set on a node shows that the scheduler which it names runs.
func TestTheTemplateOfADaemonSetSaysWhatIsOnNewNodes(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(*appsv1.DaemonSet)
		pods func() []*v1.Pod
		want []string
	}{
		"WithoutAPod":  {want: []string{"logs 100m"}},
		"BesideOthers": {pods: func() []*v1.Pod { return []*v1.Pod{daemonPod("u", "n")} }, want: []string{"logs 100m"}},
		"OfAnotherUID": {pods: func() []*v1.Pod { return []*v1.Pod{daemonPod("v", "n")} }, want: []string{"logs 100m"}},
		"BeingDeleted": {set: func(s *appsv1.DaemonSet) { s.DeletionTimestamp = &metav1.Time{} }},
		"Gated": {set: func(s *appsv1.DaemonSet) {
			s.Spec.Template.Spec.SchedulingGates = make([]v1.PodSchedulingGate, 1)
		}},
		"OnOneNode":      {set: func(s *appsv1.DaemonSet) { s.Spec.Template.Spec.NodeName = "n" }},
		"OfAnUnknownOne": {set: func(s *appsv1.DaemonSet) { s.Spec.Template.Spec.SchedulerName = "own" }},
		"OfOneThatPlacesIt": {set: func(s *appsv1.DaemonSet) { s.Spec.Template.Spec.SchedulerName = "own" },
			pods: func() []*v1.Pod { return []*v1.Pod{daemonPod("u", ""), daemonPod("u", "n")} }, want: []string{"logs 100m"}},
		"OfOneThatDoesNot": {set: func(s *appsv1.DaemonSet) { s.Spec.Template.Spec.SchedulerName = "own" },
			pods: func() []*v1.Pod { return []*v1.Pod{daemonPod("u", ""), daemonPod("v", "n")} }},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewPods()
			if c.pods != nil {
				for _, pod := range c.pods() {
					g.AddPod(pod)
				}
			}
			set := daemonSet("logs", "u")
			set.Spec.Template.Spec = pod("any", "100m").Spec
			if c.set != nil {
				c.set(set)
			}
			g.AddObject(set)
			if got := daemonsOf(t, g); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// daemonPod returns a pod of 3 cpu that names the DaemonSet logs with this UID.
func daemonPod(uid types.UID, node string) *v1.Pod {
	p := pod("logs-"+node, "3")
	p.Spec.NodeName = node
	p.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "logs", UID: uid, Controller: new(true)}}
	return p
}

// A DaemonSet without a pod, as on a group that has no node yet, is on new nodes by the pod that it would make.
func TestADaemonSetWithoutAPodIsOnNewNodes(t *testing.T) {
	g := NewPods()
	set := daemonSet("logs", "u")
	set.Spec.Template.Spec = pod("any", "500m").Spec
	set.Spec.Template.Spec.NodeSelector = map[string]string{"pool": "a"}
	g.AddObject(set)
	pods := g.DaemonPods()
	if len(pods) != 1 {
		t.Fatalf("%d pods are on every new node, want 1", len(pods))
	}
	var got v1.Pod
	if err := got.Unmarshal(pods[0]); err != nil {
		t.Fatal(err)
	}
	if cpu := got.Spec.Containers[0].Resources.Requests.Cpu(); cpu.String() != "500m" ||
		got.Spec.NodeSelector["pool"] != "a" {
		t.Errorf("got %v", got.Spec)
	}
}

// A scheduler places the pods of a new node by their priority.
func TestDaemonSetsOfAHighPriorityComeFirst(t *testing.T) {
	g := NewPods()
	for name, priority := range map[string]int32{"a": -5, "b": 2_000_001_000, "c": 0, "d": 0} {
		set := daemonSet(name, types.UID(name))
		set.Spec.Template.Spec = pod("any", "500m").Spec
		set.Spec.Template.Spec.Priority = &priority
		g.AddObject(set)
	}
	var got []string
	for _, data := range g.DaemonPods() {
		var pod v1.Pod
		if err := pod.Unmarshal(data); err != nil {
			t.Fatal(err)
		}
		got = append(got, pod.Name)
	}
	if want := []string{"b", "c", "d", "a"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Many small DaemonSets of a namespace leave room for a larger one of another namespace, and for one of a higher
// priority in their own.
func TestDaemonSetsOfANamespaceLeaveRoomForOthers(t *testing.T) {
	g := NewPods()
	add := func(namespace, name string, priority int32, containers int) {
		set := daemonSet(name, types.UID(name))
		set.Namespace = namespace
		for range containers {
			set.Spec.Template.Spec.Containers = append(set.Spec.Template.Spec.Containers,
				pod("any", "500m").Spec.Containers...)
		}
		set.Spec.Template.Spec.Priority = &priority
		g.AddObject(set)
	}
	for i := range 20_000 {
		add("shop", fmt.Sprintf("small-%05d", i), 0, 1)
	}
	add("shop", "high", 1, 100)
	add("kube-system", "cni", 0, 100)
	taken := map[string]bool{}
	for _, data := range g.DaemonPods() {
		var pod v1.Pod
		if err := pod.Unmarshal(data); err != nil {
			t.Fatal(err)
		}
		taken[pod.Name] = true
	}
	if !taken["high"] || !taken["cni"] {
		t.Errorf("high: %t, cni: %t, of %d that are taken", taken["high"], taken["cni"], len(taken))
	}
	if left := g.LeftOut(); len(left) != 20_002-len(taken) {
		t.Errorf("%d are left out, and %d are taken", len(left), len(taken))
	}
}

// New namespaces, however many there are and whatever their names, keep out neither kube-system nor those who were
// there before.
func TestDaemonSetsOfManyNewNamespacesKeepOutNobody(t *testing.T) {
	g := NewPods()
	made := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	add := func(namespace, name string, age time.Duration) {
		set := daemonSet(name, types.UID(namespace+name))
		set.Namespace, set.CreationTimestamp = namespace, metav1.NewTime(made.Add(-age))
		set.Spec.Template.Spec.Containers = pod("any", "500m").Spec.Containers
		g.AddObject(set)
	}
	for i := range 1_500 {
		add(fmt.Sprintf("a-%04d", i), "new", 0)
	}
	add("kube-system", "cni", 0)
	add("kube-system", "proxy", 0)
	add("monitoring", "agent", time.Hour)
	taken := map[string]bool{}
	daemons := g.DaemonPods()
	for _, data := range daemons {
		var pod v1.Pod
		if err := pod.Unmarshal(data); err != nil {
			t.Fatal(err)
		}
		taken[pod.Name] = true
	}
	if len(daemons) != 1_000 || !taken["cni"] || !taken["proxy"] || !taken["agent"] {
		t.Errorf("%d are taken; cni: %t, proxy: %t, agent: %t", len(daemons), taken["cni"], taken["proxy"], taken["agent"])
	}
	if left := len(g.LeftOut()); left != 503 {
		t.Errorf("%d are left out, want 503", left)
	}
}

// Only pods for which the scheduler makes room on a node that is there are nominated.
func TestTellNominated(t *testing.T) {
	slots := map[string]int32{"n1": 1, "n2": 2}
	var pods []*v1.Pod
	for _, node := range []string{"n2", "", "n1", "n2", "gone"} {
		waits := pod("p", "1")
		waits.Status.NominatedNodeName = node
		pods = append(pods, waits)
	}
	var entry loadlinev1.PendingPods
	for range 2 { // the question may be put again
		TellNominated(pods, func(node string) (int32, bool) { slot, ok := slots[node]; return slot, ok }, &entry)
	}
	var got []string
	for _, n := range entry.GetNominated() {
		got = append(got, fmt.Sprintf("%d*%d", n.GetSlot(), n.GetCount()))
	}
	if want := []string{"1*1", "2*2"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTheNoteOfPodsThatWaitAgreesWithTheirNumber(t *testing.T) {
	for _, c := range []struct {
		all, there int64
		want       string
	}{{0, 0, "No pod waits."}, {1, 0, "1 pod waits; it fits on no node that is there."},
		{1, 1, "1 pod waits; it fits on a node that is there."},
		{2, 0, "2 pods wait; 0 of them fit on nodes that are there."},
		{2, 1, "2 pods wait; 1 of them fits on nodes that are there."},
		{2, 2, "2 pods wait; 2 of them fit on nodes that are there."}} {
		if got := WaitNote(c.all, c.there); got != c.want {
			t.Errorf("%d of %d: got %q, want %q", c.there, c.all, got, c.want)
		}
	}
}

// A new node of a group is stated by its file, or found out by the engine: no node is its example here.
func TestTemplatesOfGroupsWithAnyNameHaveAName(t *testing.T) {
	for group, want := range map[string]string{"general": "template-node-for-general",
		"my größe": "template-node-for-my-gr--e"} {
		if got := Named(&v1.Node{}, group).Name; got != want {
			t.Errorf("the template of %s is named %s, want %s", group, got, want)
		}
	}
}

func TestOptionsOfEstimates(t *testing.T) {
	problem := &loadlinev1.ScaleUpProblem{Groups: []*loadlinev1.ScalableGroup{
		{NodeGroup: "a", TemplateNode: []byte("t"), NodeUsdPerHour: proto.Float64(0.5), InstanceType: "i",
			Spot: proto.Bool(true)}, {NodeGroup: "b"}}}
	estimates := []*loadlinev1.GroupEstimate{
		{NodeGroup: "a", NodeCount: 3, Pods: []*loadlinev1.PodRun{{Pod: 1, Count: 7}}}, {NodeGroup: "b", ModelNode: []byte("m")}}
	got, err := Options(problem, estimates)
	if err != nil {
		t.Fatal(err)
	}
	want := []*loadlinev1.ExpansionOption{
		{NodeGroup: "a", NodeCount: 3, TemplateNode: []byte("t"), NodeUsdPerHour: proto.Float64(0.5),
			InstanceType: "i", Spot: proto.Bool(true), Pods: []*loadlinev1.PodRun{{Pod: 1, Count: 7}}},
		{NodeGroup: "b", TemplateNode: []byte("m")}}
	for i := range want {
		if !proto.Equal(got[i], want[i]) {
			t.Errorf("option %v, want %v", got[i], want[i])
		}
	}
	if _, err := Options(problem, estimates[:1]); err == nil {
		t.Error("one estimate of two groups is taken for an answer")
	}
}

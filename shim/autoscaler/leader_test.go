package autoscaler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/act/drain"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/autoscaler/tell"
	"loadline.dev/shim/autoscaler/watch"
	"loadline.dev/shim/internal/testing/enginetest"
	"loadline.dev/shim/view"
)

var podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// bench is a cluster of one node group with its cloud, the real engine, and a leader whose loops the test runs.
type bench struct {
	*leader
	t        *testing.T
	client   *fake.Clientset
	ctx      context.Context // of the process
	stop     func()
	recorder *record.FakeRecorder

	mu      sync.Mutex
	min     int
	fails   error // of the cloud
	deleted []string
	running map[string]bool // by provider id
	refuses bool            // evictions
	deaf    bool            // the cloud says yes and deletes nothing
	mute    bool            // the cloud does not tell that machines run
	sky     *sky            // the cloud; nil: one group that does not grow
}

// newBench has a cluster of nodes n1, n2, ... of 4 cpu each, that decides scale-down.
func newBench(t *testing.T, nodes int, change func(*config.Configuration)) *bench {
	return newBenchWith(t, nil, nodes, change)
}

// newBenchWith has a cloud of its own.
func newBenchWith(t *testing.T, s *sky, nodes int, change func(*config.Configuration)) *bench {
	b := &bench{t: t, client: fake.NewClientset(), running: map[string]bool{}, sky: s}
	if s != nil {
		s.b = b
	}
	b.client.PrependReactor("create", "pods", b.evict)
	b.client.PrependReactor("list", "pods", b.listPods)
	for i := range nodes {
		b.addNode(fmt.Sprintf("n%d", i+1))
	}
	options := config.Default()
	options.Mode, options.Decisions = config.Act, []string{config.ScaleDownDecision}
	options.ScaleDown.ScaleDownUnneededTime.Duration = time.Minute
	if change != nil {
		change(&options)
	}
	b.start(&options, 1)
	t.Cleanup(func() { b.stop() })
	return b
}

// start is what a new process does.
func (b *bench) start(options *config.Configuration, term int64) {
	if b.stop != nil {
		b.stop()
	}
	conn := enginetest.Open(b.t)
	c := watch.New(view.NewForPlanning(conn, "test"), options, nil)
	b.ctx, b.stop = context.WithCancel(context.Background())
	if err := c.Watch(b.ctx, b.client); err != nil {
		b.t.Fatal(err)
	}
	files, err := options.ReadFiles()
	if err != nil {
		b.t.Fatal(err)
	}
	p := plan.NewPlanner(loadlinev1.NewAutoscalerClient(conn), c, options, files, b.client)
	var asked cloud.Provider = b
	if b.sky != nil {
		if asked = b.sky; b.sky.client != nil {
			asked = b.sky.client
		}
	}
	b.recorder = record.NewFakeRecorder(1000)
	t := tell.New(c, options, b.client, b.recorder, tell.NewMetrics("test"), term)
	t.Line.Client = loadlinev1.NewSchedulerExtenderClient(conn)
	b.leader = newLeader(p, t, b.client, asked, systemClock())
	p.Recall(b.ctx)
	synctest.Wait() // for the first lists
}

func (b *bench) addNode(name string) {
	size := v1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"),
		"pods": resource.MustParse("110")}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name),
		Labels: map[string]string{v1.LabelHostname: name, v1.LabelOSStable: "linux", v1.LabelArchStable: "amd64"}},
		Spec: v1.NodeSpec{ProviderID: "sim://" + name},
		Status: v1.NodeStatus{Capacity: size, Allocatable: size,
			Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}}}
	if _, err := b.client.CoreV1().Nodes().Create(b.t.Context(), node, metav1.CreateOptions{}); err != nil {
		b.t.Fatal(err)
	}
	b.running["sim://"+name] = true
}

// addPod adds a pod of a ReplicaSet that may be moved, unless the annotation forbids it.
func (b *bench) addPod(name, node, cpu string, annotations map[string]string) {
	rs := metav1.OwnerReference{APIVersion: "v1", Kind: "ReplicationController", Name: "rc", UID: "rc",
		Controller: new(true)}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name),
		Annotations: annotations, OwnerReferences: []metav1.OwnerReference{rs}},
		Spec: v1.PodSpec{NodeName: node, Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{"cpu": resource.MustParse(cpu)}}}}},
		Status: v1.PodStatus{Phase: v1.PodRunning}}
	if _, err := b.client.CoreV1().Pods("default").Create(b.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) addController() {
	rc := &v1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "rc", UID: "rc"},
		Spec:   v1.ReplicationControllerSpec{Replicas: new(int32(9))},
		Status: v1.ReplicationControllerStatus{Replicas: 9}}
	if _, err := b.client.CoreV1().ReplicationControllers("default").Create(b.t.Context(), rc,
		metav1.CreateOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

// evict has controller and scheduler put another pod on n3 at once.
func (b *bench) evict(action clienttesting.Action) (bool, runtime.Object, error) {
	if action.GetSubresource() != "eviction" {
		return false, nil, nil
	}
	eviction := action.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuses {
		return true, nil, errors.New("told to refuse")
	}
	object, err := b.client.Tracker().Get(podResource, action.GetNamespace(), eviction.Name)
	if err != nil {
		return true, nil, err
	}
	if err := b.client.Tracker().Delete(podResource, action.GetNamespace(), eviction.Name); err != nil {
		return true, nil, err
	}
	again := object.(*v1.Pod).DeepCopy()
	again.Name, again.UID, again.Spec.NodeName = again.Name+"-again", again.UID+"-again", "n3"
	return true, eviction, b.client.Tracker().Create(podResource, again, action.GetNamespace())
}

// listPods honours the selection by node, which the fake does not.
func (b *bench) listPods(action clienttesting.Action) (bool, runtime.Object, error) {
	node, one := strings.CutPrefix(action.(clienttesting.ListAction).GetListRestrictions().Fields.String(),
		"spec.nodeName=")
	if !one {
		return false, nil, nil
	}
	object, err := b.client.Tracker().List(podResource, schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, "")
	if err != nil {
		return true, nil, err
	}
	list := object.(*v1.PodList).DeepCopy()
	list.Items = slices.DeleteFunc(list.Items, func(p v1.Pod) bool { return p.Spec.NodeName != node })
	return true, list, nil
}

func (b *bench) Refresh(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fails
}

func (b *bench) Groups(context.Context, *externalgrpc.NodeGroupAutoscalingOptions) ([]cloud.Group, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := cloud.Group{ID: "g", Min: b.min, Max: 100}
	for id, running := range b.running {
		state := externalgrpc.InstanceState_INSTANCE_DELETING
		if running {
			g.Target++
			state = externalgrpc.InstanceState_INSTANCE_RUNNING
			if b.mute {
				state = externalgrpc.InstanceState_INSTANCE_STATE_UNSPECIFIED
			}
		}
		g.Instances = append(g.Instances, machineIn(state, id, nil))
	}
	return []cloud.Group{g}, nil
}

func (b *bench) IncreaseSize(context.Context, string, int, int) error {
	return errors.New("the group does not grow")
}

func (b *bench) DecreaseTargetSize(context.Context, string, int, int) error {
	return errors.New("no node is on its way")
}

func (b *bench) TemplateNode(context.Context, string) (*v1.Node, error) { return nil, nil }

func (b *bench) NodePrice(context.Context, *v1.Node) (*float64, error) { return nil, nil }

func (b *bench) Deleting(context.Context, string) (map[string]bool, error) { return nil, nil }

func (b *bench) DeleteNodes(ctx context.Context, _ string, nodes []*v1.Node) error {
	b.mu.Lock()
	if b.deaf {
		b.mu.Unlock()
		return nil
	}
	for _, node := range nodes {
		b.deleted = append(b.deleted, node.Name)
		b.running[node.Spec.ProviderID] = false
	}
	b.mu.Unlock()
	go func() {
		time.Sleep(20 * time.Second)
		for _, node := range nodes {
			if err := b.client.CoreV1().Nodes().Delete(context.Background(), node.Name,
				metav1.DeleteOptions{}); err != nil {
				b.t.Error(err)
			}
		}
	}()
	return nil
}

// run makes loops for a time, one each 10 s.
func (b *bench) run(d time.Duration) {
	b.t.Helper()
	for until := time.Now().Add(d); time.Now().Before(until); time.Sleep(10 * time.Second) {
		if err := b.once(b.ctx); err != nil {
			b.t.Error(err)
		}
	}
	synctest.Wait()
}

// end waits until nothing is under way any more.
func (b *bench) end() {
	b.actor.Actuator.Wait()
	time.Sleep(time.Minute)
	b.stop()
	synctest.Wait()
}

func (b *bench) readStatus() *loadlinev1.AutoscalerStatus {
	b.t.Helper()
	object, err := b.client.CoreV1().ConfigMaps("kube-system").Get(b.t.Context(), "loadline-autoscaler-status",
		metav1.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	// The provider is no field of the message: the engine does not know it.
	start, end, named := strings.Cut(object.Data["status"], "cloudProvider: "+b.config.CloudProvider.Kind+"\n")
	if !named {
		b.t.Fatalf("the status names no provider: %s", object.Data["status"])
	}
	data, err := yaml.YAMLToJSON([]byte(start + end))
	if err != nil {
		b.t.Fatal(err)
	}
	s := &loadlinev1.AutoscalerStatus{}
	if err := protojson.Unmarshal(data, s); err != nil {
		b.t.Fatal(err)
	}
	return s
}

// writes are the requests that change something, but for the status.
func (b *bench) writes() (writes []string) {
	for _, action := range b.client.Actions() {
		if verb := action.GetVerb(); verb != "get" && verb != "list" && verb != "watch" &&
			action.GetResource().Resource != "configmaps" {
			writes = append(writes,
				fmt.Sprintf("%s %s %s", verb, action.GetResource().Resource, action.GetSubresource()))
		}
	}
	return writes
}

func (b *bench) node(name string) *v1.Node {
	b.t.Helper()
	node, err := b.client.CoreV1().Nodes().Get(b.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	return node
}

// three nodes: n1 and n2 use a quarter each, n3 three quarters. One of the first two can take the other's pod.
func threeNodes(t *testing.T, change func(*config.Configuration)) *bench {
	b := newBench(t, 3, change)
	b.addController()
	b.addPod("p1", "n1", "1", nil)
	b.addPod("p2", "n2", "1", nil)
	b.addPod("p3", "n3", "3", nil)
	synctest.Wait()
	return b
}

// The removed node is the first of the two that are alike. Its pod is placed on the fullest node, so that the other
// one's has no place.
func TestDrainsOneNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := threeNodes(t, nil)
		b.run(50 * time.Second)
		s := b.readStatus().ClusterWide.ScaleDown
		if len(b.deleted) != 0 || s.Candidates != 1 || s.Result != "ScaleDownNoNodeDeleted" ||
			!strings.HasPrefix(s.Next[0], "n1: NotUnneededLongEnough, timer ends ") {
			t.Fatalf("before its timer ends: deleted %v, status %+v", b.deleted, s)
		}
		for _, name := range []string{"n1", "n2", "n3"} {
			if ok := drain.HasTaint(b.node(name), drain.SoftTaint); ok != (name == "n1") {
				t.Errorf("%s has a soft taint: %v", name, ok)
			}
		}
		want := []*loadlinev1.Blocker{{Reason: "NoPlaceToMovePods", Nodes: 1}, {Reason: "NotUnderutilized", Nodes: 1}}
		if !slices.EqualFunc(s.TopBlockers, want, func(a, b *loadlinev1.Blocker) bool { return proto.Equal(a, b) }) {
			t.Errorf("blockers %v, want %v", s.TopBlockers, want)
		}
		b.run(40 * time.Second)
		if !slices.Equal(b.deleted, []string{"n1"}) {
			t.Errorf("deleted %v", b.deleted)
		}
		b.end()
	})
}

// While the watches report old times no node is removed.
func TestOldViewHoldsNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := threeNodes(t, nil)
		leases := b.client.CoordinationV1().Leases("kube-system")
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "loadline"},
			Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: time.Now().Add(-time.Hour)}}}
		if _, err := leases.Create(b.ctx, lease, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := b.cluster.WatchLease(b.ctx, b.client, "kube-system", "loadline"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		b.run(3 * time.Minute)
		brake := b.readStatus().ClusterWide.ScaleDown.Brake
		if len(b.deleted) != 0 || !strings.HasPrefix(brake, "ClusterNotKnown") {
			t.Errorf("deleted %v, brake %q", b.deleted, brake)
		}
		for range 9 {
			lease.Spec.RenewTime.Time = time.Now()
			if _, err := leases.Update(b.ctx, lease, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			b.run(10 * time.Second)
		}
		if !slices.Equal(b.deleted, []string{"n1"}) {
			t.Errorf("deleted %v once the view is fresh", b.deleted)
		}
		b.end()
	})
}

// No label of a metric grows with the cluster. Invariant I2.
func TestMetricLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := threeNodes(t, nil)
		b.run(90 * time.Second)
		families, err := b.teller.Metrics.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				for _, label := range metric.GetLabel() {
					seen++
					for _, name := range []string{"n1", "n2", "n3", "p1", "p2", "p3", "g"} {
						if label.GetValue() == name {
							t.Errorf("%s has the label %s=%s", family.GetName(), label.GetName(), name)
						}
					}
				}
			}
		}
		if seen == 0 {
			t.Error("no metric has a label")
		}
		b.end()
	})
}

// 50 loops of constant load: once the spare node is gone, nothing is written any more. Invariant E3.
func TestNoOscillation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 3, nil)
		b.addController()
		b.addPod("p1", "n1", "2500m", nil)
		b.addPod("p2", "n2", "2500m", nil)
		synctest.Wait()
		b.run(3 * time.Minute)
		if !slices.Equal(b.deleted, []string{"n3"}) {
			t.Fatalf("deleted %v, want the empty node", b.deleted)
		}
		before := len(b.writes())
		b.run(500 * time.Second) // 50 loops
		if after := b.writes(); len(after) != before {
			t.Errorf("written under constant load: %v", after[before:])
		}
		b.end()
	})
}

// Invariant H6.
func TestObserveWritesNothingButItsStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := threeNodes(t, func(c *config.Configuration) { c.Mode = config.Observe })
		before := len(b.writes())
		b.run(5 * time.Minute)
		if writes := b.writes(); len(writes) != before {
			t.Errorf("written: %v", writes[before:])
		}
		if s := b.readStatus(); s.Mode != config.Observe ||
			s.ClusterWide.ScaleDown.Result != "ScaleDownNodeDeleteStarted" ||
			!strings.HasSuffix(s.ClusterWide.ScaleDown.Next[0], "n1: now") {
			t.Errorf("status %+v", s.ClusterWide.ScaleDown)
		}
		b.end()
	})
}

// Invariants D2, D3, D8.
func TestNothingGoes(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(b *bench)
		// after a minute and a half in which nothing may go yet
		then   func(b *bench)
		errors bool   // loops end with one
		want   string // part of the status
	}{
		{name: "PodsThatMustNotMove", before: func(b *bench) {
			b.addPod("stays1", "n1", "100m",
				map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"})
			b.addPod("stays2", "n2", "100m",
				map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"})
		}, want: "BlockedByPod"},
		{name: "MinimumSize", before: func(b *bench) { b.min = 3 }, want: "NodeGroupMinSizeReached"},
		{name: "CloudFails", before: func(b *bench) { b.fails = errors.New("the cloud is away") }, errors: true,
			want: "the cloud is away"},
		{name: "EmptyListOfPods", then: func(b *bench) {
			for _, name := range []string{"p1", "p2", "p3"} {
				b.removePod(name)
			}
		}, errors: true, want: "not one pod was listed"},
		{name: "HalfOfThePodsVanish", then: func(b *bench) { b.removePod("p1"); b.removePod("p2") },
			want: "PodsVanished"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := threeNodes(t, nil)
				if c.before != nil {
					c.before(b)
					synctest.Wait()
				}
				if c.then != nil {
					b.run(50 * time.Second) // its timer has not ended
					c.then(b)
					time.Sleep(30 * time.Second) // it has
					synctest.Wait()
				}
				for range 2 {
					if err := b.once(b.ctx); (err != nil) != c.errors {
						t.Errorf("loop: error %v", err)
					}
					if c.name == "HalfOfThePodsVanish" {
						break // the next loop has nothing to compare with but this one
					}
					time.Sleep(2 * time.Minute)
				}
				text := fmt.Sprintf("%+v", b.readStatus())
				if len(b.deleted) != 0 || len(b.actor.Actuator.UnderWay()) != 0 || !strings.Contains(text, c.want) {
					t.Errorf("deleted %v, under way %v, status %s, want %q in it", b.deleted, b.actor.Actuator.UnderWay(),
						text, c.want)
				}
				b.end()
			})
		})
	}
}

func (b *bench) removePod(name string) {
	if err := b.client.CoreV1().Pods("default").Delete(b.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

// Ended at any moment of a removal, the next process finishes it: the node is deleted once, and no other one keeps a
// taint. Invariant G3.
func TestRestart(t *testing.T) {
	for _, after := range []time.Duration{0, 3 * time.Second, 6 * time.Second, 15 * time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := threeNodes(t, nil)
				b.run(70 * time.Second)
				if err := b.once(b.ctx); err != nil || len(b.actor.Actuator.UnderWay()) != 1 {
					t.Fatalf("under way %v, error %v", b.actor.Actuator.UnderWay(), err)
				}
				time.Sleep(after)
				b.stop()
				b.actor.Actuator.Wait()
				b.start(b.config, 2)
				b.run(2 * time.Minute)
				if !slices.Equal(b.deleted, []string{"n1"}) {
					t.Errorf("deleted %v, want n1 once", b.deleted)
				}
				for _, name := range []string{"n2", "n3"} {
					if _, ours := drain.MarkOf(b.node(name)); ours || b.node(name).Spec.Unschedulable {
						t.Errorf("%s keeps a mark: %v", name, b.node(name).Spec)
					}
				}
				b.end()
			})
		})
	}
}

// A removal that was begun is taken back when the plan keeps the node.
func TestRestartWithAnotherPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := threeNodes(t, nil)
		b.run(70 * time.Second)
		if err := b.once(b.ctx); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the node is tainted in the background
		b.stop()
		b.actor.Actuator.Wait()
		if _, ours := drain.MarkOf(b.node("n1")); !ours {
			t.Fatal("n1 has no mark")
		}
		b.addPod("stays", "n1", "100m", map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"})
		b.start(b.config, 2)
		if err := b.once(b.ctx); err != nil {
			t.Fatal(err)
		}
		if node := b.node("n1"); len(node.Spec.Taints) != 0 || node.Spec.Unschedulable || len(node.Annotations) != 0 ||
			len(b.deleted) != 0 {
			t.Errorf("n1 is %v with annotations %v, deleted %v", node.Spec, node.Annotations, b.deleted)
		}
		b.end()
	})
}

// When nobody knows whether the cloud has heard, it is asked how the machine is, and again to delete it only after a
// time.
func TestDeletionOfUnknownOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		heard, mute bool
	}{"Heard": {heard: true}, "NotHeard": {}, "NotHeardByOneThatTellsNoStates": {mute: true}} {
		synctest.Test(t, func(t *testing.T) {
			b := threeNodes(t, nil)
			b.mute = c.mute
			node := b.node("n1")
			b.stop()
			b.removePod("p1")
			node.Annotations = map[string]string{drain.MarkAnnotation: fmt.Sprintf(
				`{"term":1,"since":%d,"deleting":%d}`, time.Now().Unix()-600, time.Now().Unix())}
			node.Spec.Taints = []v1.Taint{
				{Key: drain.HardTaint, Value: fmt.Sprint(time.Now().Unix()), Effect: v1.TaintEffectNoSchedule}}
			if _, err := b.client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			if c.heard {
				b.running["sim://n1"] = false
			}
			b.start(b.config, 2)
			b.run(4 * time.Minute)
			if slices.Contains(b.deleted, "n1") {
				t.Errorf("%s: deleted %v after 4 minutes", name, b.deleted)
			}
			b.run(3 * time.Minute)
			if again := slices.Contains(b.deleted, "n1"); again == c.heard {
				t.Errorf("%s: deleted %v", name, b.deleted)
			}
			b.end()
		})
	}
}

// A node that the cloud has said it deletes is neither given back nor deleted a second time, however long it is listed;
// the status says so.
func TestAcknowledgedDeletionGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := threeNodes(t, nil)
		b.deaf = true
		b.run(5 * time.Minute)
		if mark, ours := drain.MarkOf(b.node("n1")); !ours || !mark.Acknowledged {
			t.Fatalf("n1 has the mark %+v, %v", mark, ours)
		}
		b.deaf = false
		b.stop()
		b.start(b.config, 2) // the next leader reads it from the node
		b.run(6 * time.Minute)
		mark, ours := drain.MarkOf(b.node("n1"))
		if len(b.deleted) != 0 || !ours || !mark.Acknowledged {
			t.Errorf("deleted %v, mark %+v", b.deleted, mark)
		}
		if warnings := strings.Join(b.readStatus().Warnings, " "); !strings.Contains(warnings, "node n1: the cloud said") {
			t.Errorf("warnings %q", warnings)
		}
		b.end()
	})
}

// A deletion that the cloud has acknowledged and does not carry out holds the only place for some minutes, and not for
// ever.
func TestStuckDeletionHoldsNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := threeNodes(t, func(c *config.Configuration) {
			c.ScaleDown.MaxDrainParallelism, c.ScaleDown.MaxScaleDownParallelism = 1, 1
			c.ScaleDown.NodeDeleteDelayAfterTaint.Duration = 25 * time.Second // the engine hears that it is being deleted
		})
		b.deaf = true
		b.run(3 * time.Minute)
		if mark, _ := drain.MarkOf(b.node("n1")); !mark.Acknowledged {
			t.Fatalf("n1 has the mark %+v", mark)
		}
		b.deaf = false
		b.addNode("n4")
		b.addPod("p4", "n4", "100m", nil)
		b.run(2 * time.Minute)
		if len(b.deleted) != 0 {
			t.Fatalf("deleted %v beside the one", b.deleted)
		}
		b.run(12 * time.Minute)
		if !slices.Contains(b.deleted, "n4") {
			t.Errorf("deleted %v, status %+v", b.deleted, b.readStatus().ClusterWide.ScaleDown)
		}
		b.end()
	})
}

// A node that could not be drained is given back, and its timer starts anew.
func TestFailedDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := threeNodes(t, func(c *config.Configuration) { c.ScaleDown.MaxPodEvictionTime.Duration = 20 * time.Second })
		b.refuses = true
		b.run(100 * time.Second)
		b.actor.Actuator.Wait()
		node := b.node("n1")
		if _, ours := drain.MarkOf(node); ours || node.Spec.Unschedulable || len(b.deleted) != 0 {
			t.Fatalf("n1 is %v, deleted %v", node.Spec, b.deleted)
		}
		b.refuses = false
		b.run(30 * time.Second)
		if len(b.deleted) != 0 {
			t.Errorf("deleted %v right after a failure", b.deleted)
		}
		b.run(2 * time.Minute)
		if len(b.deleted) != 1 {
			t.Errorf("deleted %v, want one", b.deleted)
		}
		b.end()
	})
}

// After a group has grown, no removal begins for a time.
func TestCooldown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := threeNodes(t,
			func(c *config.Configuration) { c.ScaleDown.ScaleDownDelayAfterAdd.Duration = 5 * time.Minute })
		b.run(30 * time.Second)
		b.addNode("n4")
		synctest.Wait()
		b.run(4 * time.Minute)
		if s := b.readStatus().ClusterWide.ScaleDown; len(b.deleted) != 0 || s.Result != "ScaleDownInCooldown" {
			t.Errorf("deleted %v, status %+v", b.deleted, s)
		}
		b.run(3 * time.Minute)
		if len(b.deleted) == 0 {
			t.Error("nothing goes after the cooldown")
		}
		b.end()
	})
}

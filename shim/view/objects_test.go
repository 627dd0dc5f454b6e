package view

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
)

// objectEngine keeps the objects of one view by the rules of cluster_state.proto, and none of its nodes.
type objectEngine struct {
	grpc.ClientConnInterface
	t        *testing.T
	epoch    int64
	revision int64
	held     map[objectKey]string
	complete map[loadlinev1.ObjectKind]bool
	staged   *objectEngine
	chunk    int32
	largest  int    // objects in one message
	during   func() // what happens while a message is on its way
}

func (e *objectEngine) Invoke(_ context.Context, method string, args, _ any, _ ...grpc.CallOption) error {
	if method == loadlinev1.ClusterState_Drop_FullMethodName {
		*e = objectEngine{t: e.t, largest: e.largest, during: e.during}
		return nil
	}
	e.during()
	c := args.(*loadlinev1.SyncRequest).GetChanges()
	e.largest = max(e.largest, len(c.GetObjects()))
	if full := c.GetFullList(); full != nil {
		if c.GetEpoch() <= e.epoch && full.GetIndex() == 0 ||
			full.GetIndex() > 0 && (e.staged == nil || e.staged.epoch != c.GetEpoch() || full.GetIndex() != e.chunk) {
			return status.Error(codes.FailedPrecondition, "not the next chunk")
		}
		if full.GetIndex() == 0 {
			e.staged, e.chunk = &objectEngine{t: e.t, epoch: c.GetEpoch()}, 0
		}
		e.chunk++
		e.staged.apply(c)
		if full.GetLast() {
			staged := e.staged
			staged.largest, staged.during = e.largest, e.during
			*e = *staged
		}
		return nil
	}
	if c.GetEpoch() != e.epoch || c.GetBaseRevision() > e.revision || e.revision > c.GetRevision() {
		return status.Error(codes.FailedPrecondition, "does not build on the view's revision")
	}
	if e.revision < c.GetRevision() {
		e.apply(c)
	}
	return nil
}

func (e *objectEngine) apply(c *loadlinev1.Changes) {
	if e.held == nil {
		e.held, e.complete = map[objectKey]string{}, map[loadlinev1.ObjectKind]bool{}
	}
	e.revision = c.GetRevision()
	for _, k := range c.GetRemovedObjects() {
		delete(e.held, objectKey{k.GetKind(), k.GetNamespace(), k.GetName()})
	}
	for _, o := range c.GetObjects() {
		var claim v1.PersistentVolumeClaim
		var namespace v1.Namespace
		switch o.GetKind() {
		case loadlinev1.ObjectKind_PERSISTENT_VOLUME_CLAIM:
			if err := claim.Unmarshal(o.GetObject()); err != nil {
				e.t.Fatal(err)
			}
			e.held[objectKey{o.GetKind(), claim.Namespace, claim.Name}] = claim.Spec.VolumeName
		case loadlinev1.ObjectKind_NAMESPACE:
			if err := namespace.Unmarshal(o.GetObject()); err != nil {
				e.t.Fatal(err)
			}
			e.held[objectKey{o.GetKind(), "", namespace.Name}] = namespace.Labels["l"]
		default:
			e.t.Fatalf("an object of kind %v was never set", o.GetKind())
		}
	}
	for _, kind := range c.GetCompleteKinds() {
		e.complete[kind] = true
	}
}

// Lost, doubled and late messages, and engines that start anew, lead to the same objects as a full list does.
func TestObjectsArriveWhateverHappensToMessages(t *testing.T) {
	counts := map[string]int{}
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 5))
		engine := &objectEngine{t: t}
		f := &faulty{ClientConnInterface: engine, r: r, view: "objects", counts: counts}
		v := NewForFilters(f, "objects")
		v.chunk = 120 // a few objects
		want := map[objectKey]string{}
		complete := map[loadlinev1.ObjectKind]bool{}
		engine.during = func() {
			if f.on {
				changeObject(t, r, v, want)
			}
		}
		for step := range 150 {
			changeObject(t, r, v, want)
			if kind := loadlinev1.ObjectKind(1 + r.IntN(5)); r.IntN(20) == 0 {
				v.Complete(kind)
				complete[kind] = true
			}
			f.on = true
			if r.IntN(3) == 0 && v.Sync(t.Context()) == nil {
				counts["synced in spite of it"]++
			}
			if step%15 != 14 {
				continue
			}
			f.heal(t.Context())
			v.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("node-", r.IntN(5))}})
			if err := v.Ask(t.Context(), func(at *loadlinev1.Changes) error {
				_, err := v.client.Sync(t.Context(), &loadlinev1.SyncRequest{Changes: at})
				return err
			}); err != nil {
				t.Fatalf("seed %d step %d: %v", seed, step, err)
			}
			if !maps.Equal(engine.held, want) || !maps.Equal(engine.complete, complete) {
				t.Fatalf("seed %d step %d:\ngot  %v %v\nwant %v %v", seed, step, engine.held, engine.complete,
					want, complete)
			}
		}
		if engine.largest > 6 {
			t.Fatalf("seed %d: %d objects in one message, in spite of the bound", seed, engine.largest)
		}
	}
	expectAll(t, counts, "synced in spite of it")
}

func changeObject(t *testing.T, r *rand.Rand, v *View, want map[objectKey]string) {
	name, value := fmt.Sprint("o-", r.IntN(8)), fmt.Sprint("value-", r.IntN(4))
	var object any
	var key objectKey
	if r.IntN(2) == 0 {
		key = objectKey{loadlinev1.ObjectKind_PERSISTENT_VOLUME_CLAIM, "ns", name}
		object = &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
			Spec: v1.PersistentVolumeClaimSpec{VolumeName: value}}
	} else {
		key = objectKey{loadlinev1.ObjectKind_NAMESPACE, "", name}
		object = &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"l": value}}}
	}
	act := v.SetObject
	if want[key] = value; r.IntN(3) == 0 {
		act = v.DeleteObject
		delete(want, key)
	}
	if err := act(object); err != nil {
		t.Fatal(err)
	}
}

func TestSetObjectRefusesOtherKinds(t *testing.T) {
	if err := NewForFilters(nil, "v").SetObject(&v1.Service{}); err == nil ||
		err.Error() != "an engine has no use for a *v1.Service" {
		t.Error(err)
	}
}

// A field that a filter reads is still there after trimming; one that it does not read must not split shapes.
func TestTrimForFiltersKeepsWhatFiltersRead(t *testing.T) {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u",
			Labels:      map[string]string{"b": "2", "a": "1"},
			Annotations: map[string]string{"x": "y"}, GenerateName: "p-", DeletionTimestamp: &metav1.Time{}},
		Spec: v1.PodSpec{
			NodeName: "n", NodeSelector: map[string]string{"disk": "ssd"}, ServiceAccountName: "sa",
			Containers: []v1.Container{{Name: "c", Image: "i", Ports: []v1.ContainerPort{
				{Name: "x", ContainerPort: 1}, {HostPort: 80, HostIP: "127.0.0.1", Protocol: v1.ProtocolUDP}}}},
			Tolerations: []v1.Toleration{{Key: "k", Operator: v1.TolerationOpExists, TolerationSeconds: new(int64)}},
			Affinity: &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
					{TopologyKey: "zone", MatchLabelKeys: []string{"a"}}},
				PreferredDuringSchedulingIgnoredDuringExecution: []v1.WeightedPodAffinityTerm{{Weight: 1}}}},
			TopologySpreadConstraints: []v1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone"}},
			ResourceClaims:            []v1.PodResourceClaim{{Name: "gpu"}},
			Volumes: []v1.Volume{
				{Name: "token-x7f", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{}}},
				{Name: "data",
					VolumeSource: v1.VolumeSource{
						PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data-0"}}},
				{Name: "scratch",
					VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{
						VolumeClaimTemplate: &v1.PersistentVolumeClaimTemplate{}}}},
			},
		},
	}
	want := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Labels: pod.Labels, DeletionTimestamp: &metav1.Time{}},
		Spec: v1.PodSpec{
			NodeSelector: pod.Spec.NodeSelector,
			Containers: []v1.Container{
				{Name: "c", Ports: []v1.ContainerPort{{HostPort: 80, HostIP: "127.0.0.1", Protocol: v1.ProtocolUDP}}}},
			Tolerations: []v1.Toleration{{Key: "k", Operator: v1.TolerationOpExists}},
			Affinity: &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution}},
			TopologySpreadConstraints: pod.Spec.TopologySpreadConstraints,
			ResourceClaims:            pod.Spec.ResourceClaims,
			Volumes: []v1.Volume{
				{VolumeSource: v1.VolumeSource{
					PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data-0"}}},
				{Name: "scratch", VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}},
			},
		},
	}
	expectTrimmed(t, TrimPodForFilters(pod), want)
	want.Name, want.UID, want.Spec.NodeName = "p", "u", "n"
	expectTrimmed(t, TrimIncomingPodForFilters(pod), want)
}

func expectTrimmed(t *testing.T, trimmed []byte, want *v1.Pod) {
	t.Helper()
	var got v1.Pod
	if err := got.Unmarshal(trimmed); err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(&got, want) {
		t.Errorf("\ngot  %v\nwant %v", &got, want)
	}
}

func TestTrimNodeForFiltersKeepsLabelsAndTaints(t *testing.T) {
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", Labels: map[string]string{"zone": "a"},
			Annotations: map[string]string{"x": "y"}},
		Spec: v1.NodeSpec{Unschedulable: true, ProviderID: "p",
			Taints: []v1.Taint{{Key: "k", Value: "v", Effect: v1.TaintEffectNoExecute, TimeAdded: &metav1.Time{}}}},
	}
	var got v1.Node
	if err := got.Unmarshal(TrimNodeForFilters(node)); err != nil {
		t.Fatal(err)
	}
	want := node.DeepCopy()
	want.Annotations, want.Spec.ProviderID, want.Spec.Taints[0].TimeAdded = nil, "", nil
	if !equality.Semantic.DeepEqual(&got, want) {
		t.Errorf("\ngot  %v\nwant %v", &got, want)
	}
}

func TestTrimObjectKeepsHowAClaimIsBound(t *testing.T) {
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	for _, object := range []any{
		&v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "u",
			DeletionTimestamp: &metav1.Time{},
			Annotations:       map[string]string{annotationBindCompleted: "yes", annotationSelectedNode: "n"},
			OwnerReferences:   []metav1.OwnerReference{{UID: "o"}}},
			Spec: v1.PersistentVolumeClaimSpec{VolumeName: "pv",
				AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOncePod}},
			Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound}},
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Provisioner: "p", VolumeBindingMode: &mode},
		&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n",
			Annotations: map[string]string{v1.MigratedPluginsAnnotationKey: "p"}},
			Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
				{Name: "d", Allocatable: &storagev1.VolumeNodeResources{Count: new(int32)}}}}},
		&v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv",
			Labels: map[string]string{v1.LabelTopologyZone: "a"}},
			Spec: v1.PersistentVolumeSpec{StorageClassName: "s", PersistentVolumeSource: v1.PersistentVolumeSource{
				CSI: &v1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "h"}}},
			Status: v1.PersistentVolumeStatus{Phase: v1.VolumeBound}},
	} {
		key, trimmed, err := trimObject(object)
		whole, wholeErr := object.(marshaler).Marshal()
		if err != nil || wholeErr != nil || !slices.Equal(trimmed, whole) {
			t.Errorf("%v: something was lost, or %v %v", key, err, wholeErr)
		}
	}
}

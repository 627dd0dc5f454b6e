package view

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/text"
)

// Kinds are the kinds of objects beside nodes and pods that a view takes, by their names in manifests.
var Kinds = map[string]loadlinev1.ObjectKind{
	"Namespace":             loadlinev1.ObjectKind_NAMESPACE,
	"PersistentVolume":      loadlinev1.ObjectKind_PERSISTENT_VOLUME,
	"PersistentVolumeClaim": loadlinev1.ObjectKind_PERSISTENT_VOLUME_CLAIM,
	"StorageClass":          loadlinev1.ObjectKind_STORAGE_CLASS,
	"CSINode":               loadlinev1.ObjectKind_CSI_NODE,
	"PodDisruptionBudget":   loadlinev1.ObjectKind_POD_DISRUPTION_BUDGET,
	"ReplicationController": loadlinev1.ObjectKind_REPLICATION_CONTROLLER,
	"ReplicaSet":            loadlinev1.ObjectKind_REPLICA_SET,
	"StatefulSet":           loadlinev1.ObjectKind_STATEFUL_SET,
	"DaemonSet":             loadlinev1.ObjectKind_DAEMON_SET,
	"Job":                   loadlinev1.ObjectKind_JOB,
	"Deployment":            loadlinev1.ObjectKind_DEPLOYMENT,
	"CSIDriver":             loadlinev1.ObjectKind_CSI_DRIVER,
	"DeviceClass":           loadlinev1.ObjectKind_DEVICE_CLASS,
}

// ForPlanners says whether planners alone look up a kind.
func ForPlanners(kind loadlinev1.ObjectKind) bool {
	return kind >= loadlinev1.ObjectKind_POD_DISRUPTION_BUDGET && kind <= loadlinev1.ObjectKind_DEPLOYMENT
}

// objectKey names an object beside nodes and pods.
type objectKey struct {
	kind            loadlinev1.ObjectKind
	namespace, name string
}

func (k objectKey) proto() *loadlinev1.ObjectKey {
	return &loadlinev1.ObjectKey{Kind: k.kind, Namespace: k.namespace, Name: k.name}
}

// objectEntry is one such object: its content, and how much of it has reached the engine.
type objectEntry struct {
	key     objectKey
	bytes   []byte // nil: the object is gone
	version uint64 // counts the changes
	sent    uint64 // the version that the last batch carried
	queued  bool
}

// objects keeps the books of a view's objects beside nodes and pods. An object is sent whole; one that is gone is
// remembered until the engine is known to have heard of it.
type objects struct {
	byKey map[objectKey]*objectEntry
	queue []*objectEntry
	// complete are the kinds of which all objects are set; the second list has those of them that the engine knows of.
	complete, told []loadlinev1.ObjectKind
}

// set has the engine hold an object, or not any more; it says whether that is another one than before.
func (o *objects) set(key objectKey, bytes []byte) bool {
	e, ok := o.byKey[key]
	switch {
	case !ok && bytes == nil:
		return false
	case !ok:
		e = &objectEntry{key: key}
		if o.byKey == nil {
			o.byKey = map[objectKey]*objectEntry{}
		}
		o.byKey[key] = e
	case bytes != nil && slices.Equal(e.bytes, bytes):
		return false
	}
	e.bytes = bytes
	e.version++
	if !e.queued {
		e.queued = true
		o.queue = append(o.queue, e)
	}
	return true
}

func (o *objects) pending() bool {
	return len(o.queue) > 0 || len(o.told) < len(o.complete)
}

// restart queues all that there is: the engine holds nothing.
func (o *objects) restart() {
	o.told = nil
	o.queue = o.queue[:0]
	for key, e := range o.byKey {
		if e.bytes == nil {
			delete(o.byKey, key)
			continue
		}
		e.queued = true
		o.queue = append(o.queue, e)
	}
	slices.SortFunc(o.queue, func(a, b *objectEntry) int { return compareKeys(a.key, b.key) })
}

// put adds queued objects from `from` on to a batch that has `size` bytes, and returns up to where it got. A single
// large object may exceed the limit.
func (o *objects) put(changes *loadlinev1.Changes, from, size, limit int) (to int) {
	for to = from; to < len(o.queue); to++ {
		e := o.queue[to]
		if size+e.size() > limit && size > 0 {
			break
		}
		size += e.size()
		e.sent = e.version
		if e.bytes == nil {
			changes.RemovedObjects = append(changes.RemovedObjects, e.key.proto())
		} else {
			changes.Objects = append(changes.Objects, &loadlinev1.ClusterObject{Kind: e.key.kind, Object: e.bytes})
		}
	}
	if to == len(o.queue) {
		changes.CompleteKinds = o.complete
	}
	return to
}

// arrived notes that the engine holds the first `to` queued objects as they were sent.
func (o *objects) arrived(to int, complete []loadlinev1.ObjectKind) {
	for _, e := range o.queue[:to] {
		if e.sent != e.version {
			continue
		}
		e.queued = false
		if e.bytes == nil {
			delete(o.byKey, e.key)
		}
	}
	o.queue = slices.DeleteFunc(o.queue, func(e *objectEntry) bool { return !e.queued })
	if complete != nil {
		o.told = complete
	}
}

func compareKeys(a, b objectKey) int {
	switch {
	case a.kind != b.kind:
		return int(a.kind) - int(b.kind)
	case a.namespace != b.namespace && a.namespace < b.namespace, a.namespace == b.namespace && a.name < b.name:
		return -1
	case a.namespace == b.namespace && a.name == b.name:
		return 0
	}
	return 1
}

// SetObject adds an object of a kind that filters look up, or replaces it: *v1.Namespace, *v1.PersistentVolume,
// *v1.PersistentVolumeClaim, *storagev1.StorageClass, CSINode or CSIDriver, or *resourcev1.DeviceClass; or of one
// that planners look up: *policyv1.PodDisruptionBudget, *v1.ReplicationController, *batchv1.Job, or
// *appsv1.ReplicaSet, StatefulSet, DaemonSet or Deployment.
func (v *View) SetObject(object any) error {
	key, trimmed, reason, err := sizedObject(object)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.partial.note(key.kindName(), key.namespace, key.name, reason)
	v.ledger.objects.set(key, trimmed)
	return nil
}

// DeleteObject removes an object that SetObject has set. Of what it is given only the name is read.
func (v *View) DeleteObject(object any) error {
	key, _, err := trimObject(object)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.partial.note(key.kindName(), key.namespace, key.name, "")
	v.ledger.objects.set(key, nil)
	return nil
}

// Complete says that all objects of these kinds have been set. What is missing from another kind is not known to
// be missing: the engine does not judge what turns on it.
func (v *View) Complete(kinds ...loadlinev1.ObjectKind) {
	v.mu.Lock()
	defer v.mu.Unlock()
	o := &v.ledger.objects
	all := slices.Clone(o.complete) // a batch may hold the former list
	for _, kind := range kinds {
		if !slices.Contains(all, kind) {
			all = append(all, kind)
		}
	}
	slices.Sort(all)
	o.complete = all
}

// trimObject returns an object as plain protobuf that holds what the engine reads of it.
func trimObject(object any) (objectKey, []byte, error) {
	kind, meta, trimmed, err := trimmedObject(object)
	if err != nil {
		return objectKey{}, nil, err
	}
	bytes, err := trimmed.Marshal()
	return objectKey{kind, text.Valid(meta.Namespace), text.Valid(meta.Name)}, bytes, err
}

// trimmedObject returns an object with what the engine reads of it.
func trimmedObject(object any) (loadlinev1.ObjectKind, *metav1.ObjectMeta, marshaler, error) {
	switch o := object.(type) {
	case *v1.Namespace:
		return loadlinev1.ObjectKind_NAMESPACE, &o.ObjectMeta,
			&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Name, Labels: o.Labels}}, nil
	case *v1.PersistentVolume:
		return loadlinev1.ObjectKind_PERSISTENT_VOLUME, &o.ObjectMeta, trimVolumeObject(o), nil
	case *v1.PersistentVolumeClaim:
		return loadlinev1.ObjectKind_PERSISTENT_VOLUME_CLAIM, &o.ObjectMeta, trimClaim(o), nil
	case *storagev1.StorageClass:
		return loadlinev1.ObjectKind_STORAGE_CLASS, &o.ObjectMeta,
			&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: o.Name}, Provisioner: o.Provisioner,
				VolumeBindingMode: o.VolumeBindingMode, AllowedTopologies: o.AllowedTopologies}, nil
	case *storagev1.CSINode:
		return loadlinev1.ObjectKind_CSI_NODE, &o.ObjectMeta, trimCSINode(o), nil
	case *storagev1.CSIDriver:
		return loadlinev1.ObjectKind_CSI_DRIVER, &o.ObjectMeta,
			&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: o.Name},
				Spec: storagev1.CSIDriverSpec{PreventPodSchedulingIfMissing: o.Spec.PreventPodSchedulingIfMissing}}, nil
	case *resourcev1.DeviceClass:
		return loadlinev1.ObjectKind_DEVICE_CLASS, &o.ObjectMeta,
			&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: o.Name},
				Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: o.Spec.ExtendedResourceName}}, nil
	}
	if kind, meta, trimmed, ok := trimPlannerObject(object); ok {
		return kind, meta, trimmed, nil
	}
	return 0, nil, nil, fmt.Errorf("an engine has no use for a %T", object)
}

func trimVolumeObject(volume *v1.PersistentVolume) *v1.PersistentVolume {
	out := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: volume.Name, Labels: volume.Labels,
			Annotations: keepAnnotations(volume.Annotations, v1.BetaStorageClassAnnotation)},
		Spec:   volume.Spec,
		Status: v1.PersistentVolumeStatus{Phase: volume.Status.Phase},
	}
	out.DeletionTimestamp = deleted(volume.DeletionTimestamp)
	out.Spec.MountOptions = nil
	if csi := volume.Spec.CSI; csi != nil {
		out.Spec.PersistentVolumeSource.CSI = &v1.CSIPersistentVolumeSource{Driver: csi.Driver,
			VolumeHandle: csi.VolumeHandle}
	}
	return out
}

// The annotations of a claim that state its binding.
const (
	annotationBindCompleted = "pv.kubernetes.io/bind-completed"
	annotationSelectedNode  = "volume.kubernetes.io/selected-node"
)

func trimClaim(claim *v1.PersistentVolumeClaim) *v1.PersistentVolumeClaim {
	out := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			OwnerReferences: claim.OwnerReferences,
			Annotations: keepAnnotations(claim.Annotations, annotationBindCompleted, annotationSelectedNode,
				v1.BetaStorageClassAnnotation)},
		Spec:   claim.Spec,
		Status: v1.PersistentVolumeClaimStatus{Phase: claim.Status.Phase},
	}
	out.DeletionTimestamp = deleted(claim.DeletionTimestamp)
	return out
}

func trimCSINode(node *storagev1.CSINode) *storagev1.CSINode {
	out := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node.Name,
		Annotations: keepAnnotations(node.Annotations, v1.MigratedPluginsAnnotationKey)}}
	for i := range node.Spec.Drivers {
		d := &node.Spec.Drivers[i]
		out.Spec.Drivers = append(out.Spec.Drivers, storagev1.CSINodeDriver{Name: d.Name, Allocatable: d.Allocatable})
	}
	return out
}

// deleted keeps that an object is being deleted, and forgets since when.
func deleted(at *metav1.Time) *metav1.Time {
	if at == nil {
		return nil
	}
	return &metav1.Time{}
}

package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	helpers "k8s.io/component-helpers/resource"

	"loadline.dev/shim/leftout"
)

const (
	// MaxObjectBytes is how much of a message one object may take: a larger object would leave no room for others. API
	// servers accept objects of some 1.5 MiB.
	MaxObjectBytes = 1 << 20
	// maxSlimLabels and maxSlimAmounts bound what is kept of a pod that is larger.
	maxSlimLabels  = 256
	maxSlimAmounts = 64
)

// TooLarge says that an object takes more than it may; empty: it does not.
func TooLarge(bytes int) string {
	if bytes <= MaxObjectBytes {
		return ""
	}
	return fmt.Sprintf("takes %.1f MiB, an object may take %d MiB", float64(bytes)/(1<<20), MaxObjectBytes>>20)
}

// SlimPod returns what the engine gets of a pod that is too large: what it takes of its node, and that it must not
// move, since nobody has checked where it could go.
func SlimPod(pod *v1.Pod) *v1.Pod {
	out := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		DeletionTimestamp: pod.DeletionTimestamp,
		Annotations:       map[string]string{autoscalerAnnotations + "safe-to-evict": "false"}}}
	if len(pod.Labels) <= maxSlimLabels {
		out.Labels = pod.Labels
	}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		out.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	out.Spec.NodeName, out.Spec.Priority = pod.Spec.NodeName, pod.Spec.Priority
	// A copy: adding up changes large amounts in place.
	requests := helpers.PodRequests(pod.DeepCopy(), helpers.PodResourcesOptions{UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true})
	amounts := v1.ResourceList{}
	names := slices.SortedFunc(maps.Keys(requests), func(a, b v1.ResourceName) int {
		// A common field of all nodes is first: it has no "/" in its name.
		return cmp.Or(strings.Count(string(a), "/")-strings.Count(string(b), "/"), cmp.Compare(a, b))
	})
	for _, name := range names[:min(len(names), maxSlimAmounts)] {
		amounts[name] = requests[name]
	}
	out.Spec.Containers = []v1.Container{{Name: "all", Resources: v1.ResourceRequirements{Requests: amounts}}}
	out.Status.Phase = pod.Status.Phase
	return out
}

// UnreadableBudget returns what the engine gets of a disruption budget that nobody has read: one whose selector cannot
// be read either, so that it covers all pods of its namespace, allows no eviction, and has advice that says so.
func UnreadableBudget(meta metav1.ObjectMeta) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: meta,
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "unreadable", Operator: "Unreadable"}}}}}
}

// bareObject returns what the engine gets of an object that is too large and neither a node nor a pod; nil: nothing. Of
// a workload the engine gets only its numbers.
func bareObject(object any) any {
	switch o := object.(type) {
	case *policyv1.PodDisruptionBudget:
		return UnreadableBudget(bareMeta(&o.ObjectMeta))
	case *v1.ReplicationController:
		return &v1.ReplicationController{ObjectMeta: bareMeta(&o.ObjectMeta),
			Spec: v1.ReplicationControllerSpec{Replicas: o.Spec.Replicas}, Status: o.Status}
	case *appsv1.ReplicaSet:
		return &appsv1.ReplicaSet{ObjectMeta: bareMeta(&o.ObjectMeta),
			Spec: appsv1.ReplicaSetSpec{Replicas: o.Spec.Replicas}, Status: o.Status}
	case *appsv1.StatefulSet:
		return &appsv1.StatefulSet{ObjectMeta: bareMeta(&o.ObjectMeta),
			Spec: appsv1.StatefulSetSpec{Replicas: o.Spec.Replicas}, Status: o.Status}
	case *appsv1.DaemonSet:
		return &appsv1.DaemonSet{ObjectMeta: bareMeta(&o.ObjectMeta), Status: o.Status}
	case *appsv1.Deployment:
		return &appsv1.Deployment{ObjectMeta: bareMeta(&o.ObjectMeta),
			Spec: appsv1.DeploymentSpec{Replicas: o.Spec.Replicas}, Status: o.Status}
	case *batchv1.Job:
		return &batchv1.Job{ObjectMeta: bareMeta(&o.ObjectMeta),
			Spec: batchv1.JobSpec{Parallelism: o.Spec.Parallelism, Completions: o.Spec.Completions}, Status: o.Status}
	}
	return nil
}

func bareMeta(of *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name, UID: of.UID, Generation: of.Generation}
}

// partial holds the objects of which the engine gets only a part or nothing, with the reason. Of nodes it holds those
// for which that was so; the ledger knows whether it still is.
type partial struct {
	objects map[partialKey]string
	nodes   map[string]string
}

type partialKey struct{ kind, namespace, name string }

// note notes why the engine does not get an object as it is; an empty reason: it does.
func (p *partial) note(kind, namespace, name, reason string) {
	key := partialKey{kind, namespace, name}
	switch {
	case reason == "":
		delete(p.objects, key)
	case p.objects == nil:
		p.objects = map[partialKey]string{key: reason}
	default:
		p.objects[key] = reason
	}
}

// LeftOut returns the objects that the engine does not have as they are now: those that are too large for one message,
// and nodes that it found invalid, if LeaveOutInvalid lets them be left out.
func (v *View) LeftOut() []leftout.Object {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []leftout.Object
	for key, reason := range v.partial.objects {
		out = append(out, leftout.New(key.kind, key.namespace, key.name, reason))
	}
	for name, reason := range v.partial.nodes {
		if e, ok := v.ledger.entries[name]; ok && e.present() && e.leftOut() {
			out = append(out, leftout.New("Node", "", name, reason))
		} else {
			delete(v.partial.nodes, name)
		}
	}
	return out
}

// kindName returns the kind of an object that SetObject takes.
func (k objectKey) kindName() string {
	for name, kind := range Kinds {
		if kind == k.kind {
			return name
		}
	}
	return k.kind.String()
}

// sizedObject returns an object as it is sent, and why not as it is.
func sizedObject(object any) (key objectKey, trimmed []byte, reason string, err error) {
	key, trimmed, err = trimObject(object)
	if reason = TooLarge(len(trimmed)); err != nil || reason == "" {
		return key, trimmed, "", err
	}
	bare := bareObject(object)
	if bare == nil {
		return key, nil, reason, nil
	}
	_, trimmed, err = trimObject(bare)
	return key, trimmed, reason, err
}

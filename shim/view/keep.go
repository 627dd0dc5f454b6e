package view

import (
	"reflect"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/workload"
)

// Keeper reduces the objects of an informer to what is read of them: what the engine gets of a view for planning, and
// what Go code reads to ask, to act and to report. This file says what that is; all the rest is dropped. The parts that
// many pods have in common, such as those of their template, are kept once.
//
// Nobody may change an object that a Keeper has reduced. Safe for concurrent use.
type Keeper struct {
	mu     sync.Mutex
	common map[contentKey]any // guarded by mu
	bytes  int                // of the keys of common; guarded by mu
}

// contentKey is the type of an object and its content as protobuf.
type contentKey struct {
	of      reflect.Type
	content string
}

// mostCommonBytes bounds the keys of what is kept once. When they are more, a Keeper begins anew.
const mostCommonBytes = 4 << 20

// NewKeeper returns a Keeper that holds nothing yet.
func NewKeeper() *Keeper { return &Keeper{common: map[contentKey]any{}} }

// Reduce returns an object with only what is read of it. It is a transform of an informer, which hands it objects that
// nobody else has. A pod is reduced in its place: a copy beside each would leave holes in memory as large as all that
// is kept. What it has reduced it leaves as it is.
func (k *Keeper) Reduce(object any) (any, error) {
	switch o := object.(type) {
	case *v1.Pod:
		return k.pod(o), nil
	case *v1.Node:
		return keptNode(o), nil
	case *v1.Service:
		return &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID,
			ResourceVersion: o.ResourceVersion}, Spec: v1.ServiceSpec{Selector: o.Spec.Selector}}, nil
	}
	_, meta, trimmed, err := trimmedObject(object)
	if err != nil {
		return object, nil // of a kind that is not ours, or a note that an object is gone
	}
	keepSelector(object, trimmed)
	if set, ok := trimmed.(*appsv1.DaemonSet); ok { // a pod of it is made up for new nodes
		set.Spec.Template = keptTemplate(&object.(*appsv1.DaemonSet).Spec.Template)
		set.DeletionTimestamp = meta.DeletionTimestamp // no pod is made any more
	}
	if kept, ok := trimmed.(metav1.Object); ok {
		kept.SetNamespace(meta.Namespace)
		kept.SetUID(meta.UID)
		kept.SetResourceVersion(meta.ResourceVersion)
	}
	return trimmed, nil
}

// keepSelector keeps the selector by which default spread constraints count the pods of an owner.
func keepSelector(object, kept any) {
	switch o := object.(type) {
	case *v1.ReplicationController:
		kept.(*v1.ReplicationController).Spec.Selector = o.Spec.Selector
	case *appsv1.ReplicaSet:
		kept.(*appsv1.ReplicaSet).Spec.Selector = o.Spec.Selector
	case *appsv1.StatefulSet:
		kept.(*appsv1.StatefulSet).Spec.Selector = o.Spec.Selector
	}
}

func (k *Keeper) pod(pod *v1.Pod) *v1.Pod {
	meta := once(k, &metav1.ObjectMeta{Labels: pod.Labels, OwnerReferences: pod.OwnerReferences})
	spec, status := keptSpec(&pod.Spec), keptStatus(&pod.Status)
	spec.NodeName, status.NominatedNodeName = "", ""
	kept := v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		ResourceVersion: pod.ResourceVersion, CreationTimestamp: pod.CreationTimestamp,
		DeletionTimestamp: pod.DeletionTimestamp, Annotations: PodAnnotations(pod.Annotations),
		Labels: meta.Labels, OwnerReferences: meta.OwnerReferences}, Spec: *once(k, &spec), Status: *once(k, &status)}
	kept.Spec.NodeName, kept.Status.NominatedNodeName = pod.Spec.NodeName, pod.Status.NominatedNodeName
	kept.Status.StartTime = protectedSince(pod)
	*pod = kept
	return pod
}

// PodAnnotations returns those of a pod's annotations that are read: by planners, and to tell deletion costs of ours
// from others.
func PodAnnotations(annotations map[string]string) map[string]string {
	out := PlanningAnnotations(annotations)
	if mark, marked := annotations[DeletionCostMark]; marked {
		if out == nil {
			out = map[string]string{}
		}
		out[DeletionCostMark] = mark
		if cost, stated := annotations[v1.PodDeletionCost]; stated {
			out[v1.PodDeletionCost] = cost
		}
	}
	return out
}

// once returns an object of the same content that was seen before, or this one if there is none.
func once[T marshaler](k *Keeper, object T) T {
	content, err := object.Marshal()
	if err != nil {
		return object
	}
	key := contentKey{reflect.TypeFor[T](), string(content)}
	k.mu.Lock()
	defer k.mu.Unlock()
	if known, ok := k.common[key].(T); ok {
		return known
	}
	if k.bytes += len(key.content); k.bytes > mostCommonBytes {
		k.common, k.bytes = map[contentKey]any{}, len(key.content)
	}
	k.common[key] = object
	return object
}

// keptSpec keeps what decides where a pod may run, what it takes there, and how it ends. Affinity is kept whole: copies
// of a pod, which keep slack, prefer what the pod prefers.
func keptSpec(spec *v1.PodSpec) v1.PodSpec {
	out := v1.PodSpec{NodeName: spec.NodeName, SchedulerName: spec.SchedulerName, SchedulingGates: spec.SchedulingGates,
		Priority: spec.Priority, TerminationGracePeriodSeconds: spec.TerminationGracePeriodSeconds,
		NodeSelector: spec.NodeSelector, Affinity: spec.Affinity, Tolerations: spec.Tolerations,
		TopologySpreadConstraints: spec.TopologySpreadConstraints, ResourceClaims: spec.ResourceClaims,
		Overhead: spec.Overhead, Resources: spec.Resources, HostNetwork: spec.HostNetwork, HostUsers: spec.HostUsers,
		Containers: keptContainers(spec.Containers), InitContainers: keptContainers(spec.InitContainers)}
	for i := range spec.Volumes {
		if volume, ok := keptVolume(&spec.Volumes[i]); ok {
			out.Volumes = append(out.Volumes, *volume)
		}
	}
	return out
}

func keptContainers(containers []v1.Container) []v1.Container {
	var out []v1.Container
	for i := range containers {
		c := &containers[i]
		kept := v1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy,
			RestartPolicyRules: keptRules(c.RestartPolicyRules)}
		if mounts := keptMounts(c.VolumeMounts); len(mounts) > 0 {
			kept.VolumeMounts = mounts
		}
		for _, port := range c.Ports {
			if port.HostPort > 0 {
				kept.Ports = append(kept.Ports, port)
			}
		}
		out = append(out, kept)
	}
	return out
}

// keptRules keeps the rules that a node has to know of.
func keptRules(rules []v1.ContainerRestartRule) []v1.ContainerRestartRule {
	for i := range rules {
		if rules[i].Action == v1.ContainerRestartRuleActionRestartAllContainers {
			return []v1.ContainerRestartRule{{Action: rules[i].Action}}
		}
	}
	return nil
}

func keptVolume(volume *v1.Volume) (*v1.Volume, bool) {
	if out, ok := planningVolume(volume); ok {
		return out, true
	}
	out, ok := trimVolume(volume)
	if ok {
		out.Name = volume.Name
	}
	return out, ok
}

// keptStatus keeps what containers have been given, and the conditions by which pods wait, count as ready, and are
// resized.
func keptStatus(status *v1.PodStatus) v1.PodStatus {
	out := v1.PodStatus{Phase: status.Phase, NominatedNodeName: status.NominatedNodeName,
		AllocatedResources: status.AllocatedResources, Resources: status.Resources}
	for _, c := range status.Conditions {
		switch c.Type {
		case v1.PodScheduled, v1.PodReady, v1.PodResizePending:
			kept := v1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason}
			if c.Type == v1.PodScheduled {
				kept.LastTransitionTime = c.LastTransitionTime
			}
			out.Conditions = append(out.Conditions, kept)
		}
	}
	if reportsResources(status.ContainerStatuses) || reportsResources(status.InitContainerStatuses) {
		out.ContainerStatuses = keptContainerStatuses(status.ContainerStatuses)
		out.InitContainerStatuses = keptContainerStatuses(status.InitContainerStatuses)
	}
	return out
}

func keptContainerStatuses(statuses []v1.ContainerStatus) []v1.ContainerStatus {
	var out []v1.ContainerStatus
	for _, s := range statuses {
		out = append(out,
			v1.ContainerStatus{Name: s.Name, AllocatedResources: s.AllocatedResources, Resources: s.Resources})
	}
	return out
}

// keptTemplate keeps a template as its pods will be.
func keptTemplate(template *v1.PodTemplateSpec) v1.PodTemplateSpec {
	spec := template.Spec.DeepCopy()
	workload.Submitted(spec)
	return v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: template.Labels,
		Annotations: PodAnnotations(template.Annotations)}, Spec: keptSpec(spec)}
}

// keptNode keeps all labels and annotations: cloud providers are asked what a node with these costs.
func keptNode(node *v1.Node) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion,
		CreationTimestamp: node.CreationTimestamp, DeletionTimestamp: node.DeletionTimestamp,
		Labels: node.Labels, Annotations: node.Annotations},
		Spec: v1.NodeSpec{ProviderID: node.Spec.ProviderID, Unschedulable: node.Spec.Unschedulable,
			Taints: node.Spec.Taints},
		Status: v1.NodeStatus{Capacity: node.Status.Capacity, Allocatable: node.Status.Allocatable,
			DeclaredFeatures: node.Status.DeclaredFeatures, Conditions: keptNodeConditions(node.Status.Conditions)}}
}

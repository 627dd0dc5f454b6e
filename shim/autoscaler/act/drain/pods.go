package drain

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/view"
)

// Annotations of pods, under the names of Cluster Autoscaler.
const (
	annotationDaemonSetPod      = "cluster-autoscaler.kubernetes.io/daemonset-pod"
	annotationDaemonSetEviction = "cluster-autoscaler.kubernetes.io/enable-ds-eviction"
)

// seePods lists the pods of a node as they are now, by name, with what matters of each to its removal.
func (a *Actuator) seePods(ctx context.Context, d *deletion) *loadlinev1.SeenPods {
	list, err := a.nodes.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx,
		metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", d.Node.Name).String()})
	if err != nil {
		return &loadlinev1.SeenPods{Error: textOf(fmt.Errorf("pods of the node: %w", err))}
	}
	planned := map[types.UID]*v1.Pod{}
	for _, pod := range d.Pods {
		planned[pod.UID] = pod
	}
	seen := &loadlinev1.SeenPods{}
	d.seen = map[string]*v1.Pod{}
	for i := range list.Items {
		pod := &list.Items[i]
		told := a.tell(pod)
		moves := d.Moves[pod.UID]
		if told.Mirror || told.Finished && !moves && told.DeletedS == nil {
			continue // there may be any number of them, and they go with the node
		}
		d.seen[told.Uid] = pod
		told.Planned = plannedAs(planned[pod.UID], pod, moves)
		seen.Pods = append(seen.Pods, told)
	}
	slices.SortFunc(seen.Pods, func(a, b *loadlinev1.RemovalPod) int { return strings.Compare(a.Name, b.Name) })
	return seen
}

func (a *Actuator) tell(pod *v1.Pod) *loadlinev1.RemovalPod {
	_, mirror := pod.Annotations[v1.MirrorPodAnnotationKey]
	told := &loadlinev1.RemovalPod{Uid: string(pod.UID), Name: pod.Namespace + "/" + pod.Name,
		Priority: corev1helpers.PodPriority(pod), GraceSeconds: pod.Spec.TerminationGracePeriodSeconds, Mirror: mirror,
		Finished:    pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed,
		Placeholder: a.options.IsPlaceholder(pod),
		// Anybody can write an owner into a pod. If the DaemonSet that it names does not exist, it is a pod like any
		// other, for the plan too.
		DaemonSet: pod.Annotations[annotationDaemonSetPod] == "true" || a.options.IsOfDaemonSet(pod)}
	if pod.DeletionTimestamp != nil {
		told.DeletedS = new(pod.DeletionTimestamp.Unix())
	}
	if text := pod.Annotations[annotationDaemonSetEviction]; text == "true" || text == "false" {
		told.EvictDaemonSet = new(text == "true")
	}
	return told
}

// plannedAs says what the plan is about a pod, which it knew as `before`; nil: not at all. Of annotations only those
// count that plans read: the others are not kept of pods in a plan. Labels do not count: some write them every few
// seconds, and the API server holds each eviction against the budgets that select the pod as it is.
func plannedAs(before, now *v1.Pod, moves bool) loadlinev1.RemovalPod_Planned {
	switch {
	case before == nil:
		return loadlinev1.RemovalPod_NEW
	case !maps.Equal(view.PlanningAnnotations(before.Annotations), view.PlanningAnnotations(now.Annotations)),
		!reflect.DeepEqual(metav1.GetControllerOf(before), metav1.GetControllerOf(now)):
		return loadlinev1.RemovalPod_CHANGED
	case !moves:
		return loadlinev1.RemovalPod_STAYS
	}
	return loadlinev1.RemovalPod_MOVES
}

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
	"k8s.io/client-go/kubernetes"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/view"
)

// Annotations of pods, under the names of Cluster Autoscaler.
const (
	annotationDaemonSetPod      = "cluster-autoscaler.kubernetes.io/daemonset-pod"
	annotationDaemonSetEviction = "cluster-autoscaler.kubernetes.io/enable-ds-eviction"
)

// podsOn lists the pods of a node as they are now.
func podsOn(ctx context.Context, client kubernetes.Interface, node string) ([]*v1.Pod, error) {
	list, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx,
		metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()})
	if err != nil {
		return nil, fmt.Errorf("pods of the node: %w", err)
	}
	pods := make([]*v1.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = &list.Items[i]
	}
	slices.SortFunc(pods, func(a, b *v1.Pod) int { return strings.Compare(nameOf(a), nameOf(b)) })
	return pods, nil
}

func nameOf(pod *v1.Pod) string { return pod.Namespace + "/" + pod.Name }

// seePods lists the pods of a node as they are now, with what matters of each to its removal.
func (a *Actuator) seePods(ctx context.Context, d *deletion) *loadlinev1.SeenPods {
	pods, err := podsOn(ctx, a.nodes.client, d.Node.Name)
	if err != nil {
		return &loadlinev1.SeenPods{Error: textOf(err)}
	}
	planned := map[types.UID]*v1.Pod{}
	for _, pod := range d.Pods {
		planned[pod.UID] = pod
	}
	seen := &loadlinev1.SeenPods{}
	d.seen = map[string]*v1.Pod{}
	for _, pod := range pods {
		told := a.tell(pod)
		moves := d.Moves[pod.UID]
		if told.Mirror || told.Finished && !moves && told.DeletedS == nil {
			continue // there may be any number of them, and they go with the node
		}
		d.seen[told.Uid] = pod
		told.Planned = plannedAs(planned[pod.UID], pod, moves)
		seen.Pods = append(seen.Pods, told)
	}
	return seen
}

func (a *Actuator) tell(pod *v1.Pod) *loadlinev1.RemovalPod {
	_, mirror := pod.Annotations[v1.MirrorPodAnnotationKey]
	told := &loadlinev1.RemovalPod{Uid: string(pod.UID), Name: nameOf(pod), Priority: corev1helpers.PodPriority(pod),
		GraceSeconds: pod.Spec.TerminationGracePeriodSeconds, Mirror: mirror,
		Finished:    pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed,
		Placeholder: a.options.IsPlaceholder(pod), DaemonSet: a.isDaemonSetPod(pod)}
	if pod.DeletionTimestamp != nil {
		told.DeletedS = new(pod.DeletionTimestamp.Unix())
	}
	if text := pod.Annotations[annotationDaemonSetEviction]; text == "true" || text == "false" {
		told.EvictDaemonSet = new(text == "true")
	}
	return told
}

// isDaemonSetPod says whether a pod ends with its node. Anybody can write an owner into a pod. If the DaemonSet that it
// names does not exist, it is a pod like any other, for the plan too.
func (a *Actuator) isDaemonSetPod(pod *v1.Pod) bool {
	return pod.Annotations[annotationDaemonSetPod] == "true" || a.options.IsOfDaemonSet(pod)
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

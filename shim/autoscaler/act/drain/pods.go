package drain

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"loadline.dev/shim/view"
)

// Annotations of pods, under the names of Cluster Autoscaler.
const (
	annotationDaemonSetPod      = "cluster-autoscaler.kubernetes.io/daemonset-pod"
	annotationDaemonSetEviction = "cluster-autoscaler.kubernetes.io/enable-ds-eviction"
)

// defaultGrace is what the API server sets where a pod states no grace period.
const defaultGrace = 30 * time.Second

// longTerminating is by how much a pod may outlive its grace period before it no longer counts.
const longTerminating = 30 * time.Second

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

func isMirror(pod *v1.Pod) bool {
	_, ok := pod.Annotations[v1.MirrorPodAnnotationKey]
	return ok
}

func isFinished(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

// isLongTerminating says whether a pod should have ended some time ago. Its kubelet is most likely gone.
func isLongTerminating(pod *v1.Pod, now time.Time) bool {
	if pod.DeletionTimestamp == nil {
		return false
	}
	return pod.DeletionTimestamp.Add(graceOf(pod) + longTerminating).Before(now)
}

func graceOf(pod *v1.Pod) time.Duration {
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		return defaultGrace
	}
	return time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
}

// podKinds tells the pods of a node apart at one time.
type podKinds struct {
	options *Options
	now     time.Time
}

func (a *Actuator) podKinds() podKinds { return podKinds{&a.options, a.options.Now()} }

// isDaemonSetPod says whether a pod ends with its node. Anybody can write an owner into a pod. If the DaemonSet that it
// names does not exist, it is a pod like any other, for the plan too.
func (k podKinds) isDaemonSetPod(pod *v1.Pod) bool {
	return pod.Annotations[annotationDaemonSetPod] == "true" || k.options.IsOfDaemonSet(pod)
}

// leavesByItself says whether a node may be deleted with a pod on it.
func (k podKinds) leavesByItself(pod *v1.Pod) bool {
	return isMirror(pod) || k.isDaemonSetPod(pod) || isFinished(pod) || isLongTerminating(pod, k.now)
}

// evictsDaemonSetPod says whether a DaemonSet pod is to be evicted, which it may say itself.
func evictsDaemonSetPod(pod *v1.Pod, byDefault bool) bool {
	switch pod.Annotations[annotationDaemonSetEviction] {
	case "true":
		return true
	case "false":
		return false
	}
	return byDefault
}

// toEvict returns the pods of a node that must go before it does, those that end already included, and the DaemonSet
// pods that are to be evicted.
func (k podKinds) toEvict(pods []*v1.Pod, moves map[types.UID]bool, daemonSets bool) (full, daemonSet []*v1.Pod) {
	for _, pod := range pods {
		ends := pod.DeletionTimestamp != nil
		switch {
		case isMirror(pod) || isLongTerminating(pod, k.now):
		case k.isDaemonSetPod(pod):
			if !ends && evictsDaemonSetPod(pod, daemonSets) {
				daemonSet = append(daemonSet, pod)
			}
		case moves[pod.UID] || ends || k.options.IsPlaceholder(pod) && !isFinished(pod):
			full = append(full, pod)
		}
	}
	return full, daemonSet
}

// unexpected returns why the pods of a node are not those that the plan was made for; nil when they are. A pod that is
// gone meanwhile only makes the plan easier. Of annotations only those count that plans read: the others are not kept
// of pods in a plan. Labels do not count: some write them every few seconds, and the API server holds each eviction
// against the budgets that select the pod as it is.
func (r *Removal) unexpected(pods []*v1.Pod, kinds podKinds) error {
	planned := map[types.UID]*v1.Pod{}
	for _, pod := range r.Pods {
		planned[pod.UID] = pod
	}
	for _, pod := range pods {
		before, known := planned[pod.UID]
		switch {
		case kinds.leavesByItself(pod), kinds.options.IsPlaceholder(pod):
		case !known:
			return fmt.Errorf("pod %s has come to the node since the plan was made", nameOf(pod))
		case !maps.Equal(view.PlanningAnnotations(before.Annotations), view.PlanningAnnotations(pod.Annotations)),
			!reflect.DeepEqual(metav1.GetControllerOf(before), metav1.GetControllerOf(pod)):
			return fmt.Errorf("pod %s has changed since the plan was made", nameOf(pod))
		case !r.Moves[pod.UID]:
			return fmt.Errorf("pod %s is on the node, and the plan does not move it", nameOf(pod))
		}
	}
	return nil
}

// remaining returns a pod with which a node must not be deleted; nil when there is none.
func (k podKinds) remaining(pods []*v1.Pod) *v1.Pod {
	for _, pod := range pods {
		if !k.leavesByItself(pod) {
			return pod
		}
	}
	return nil
}

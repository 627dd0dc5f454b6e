package scaleup

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/workload"
)

// PodOf returns a pod as a DaemonSet would make it on a new node.
func PodOf(set *appsv1.DaemonSet) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name,
		Labels:      set.Spec.Template.Labels,
		Annotations: set.Spec.Template.Annotations,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet",
			Name: set.Name, UID: set.UID, Controller: new(true)}}}, Spec: *set.Spec.Template.Spec.DeepCopy()}
	workload.Submitted(&pod.Spec)
	for key, effect := range map[string]v1.TaintEffect{v1.TaintNodeNotReady: v1.TaintEffectNoExecute,
		v1.TaintNodeUnreachable:  v1.TaintEffectNoExecute,
		v1.TaintNodeDiskPressure: v1.TaintEffectNoSchedule, v1.TaintNodeMemoryPressure: v1.TaintEffectNoSchedule,
		v1.TaintNodePIDPressure: v1.TaintEffectNoSchedule, v1.TaintNodeUnschedulable: v1.TaintEffectNoSchedule} {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations,
			v1.Toleration{Key: key, Operator: v1.TolerationOpExists, Effect: effect})
	}
	slices.SortFunc(pod.Spec.Tolerations, func(a, b v1.Toleration) int { return strings.Compare(a.Key, b.Key) })
	return pod
}

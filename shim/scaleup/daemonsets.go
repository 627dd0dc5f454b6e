package scaleup

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/workload"
)

// daemonTolerations are those that a DaemonSet adds to its pods.
var daemonTolerations = []v1.Toleration{
	{Key: v1.TaintNodeNotReady, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute},
	{Key: v1.TaintNodeUnreachable, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute},
	{Key: v1.TaintNodeDiskPressure, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoSchedule},
	{Key: v1.TaintNodeMemoryPressure, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoSchedule},
	{Key: v1.TaintNodePIDPressure, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoSchedule},
	{Key: v1.TaintNodeUnschedulable, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoSchedule}}

// PodOf returns a pod as a DaemonSet would make it on a new node.
func PodOf(set *appsv1.DaemonSet) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name,
		Labels:      set.Spec.Template.Labels,
		Annotations: set.Spec.Template.Annotations,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet",
			Name: set.Name, UID: set.UID, Controller: new(true)}}}, Spec: *set.Spec.Template.Spec.DeepCopy()}
	workload.Submitted(&pod.Spec)
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, daemonTolerations...)
	slices.SortFunc(pod.Spec.Tolerations, func(a, b v1.Toleration) int { return strings.Compare(a.Key, b.Key) })
	return pod
}

// TemplateOf returns a template of which PodOf makes this pod.
func TemplateOf(pod *v1.Pod) v1.PodTemplateSpec {
	template := v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels, Annotations: pod.Annotations},
		Spec: *pod.Spec.DeepCopy()}
	template.Spec.Tolerations = slices.DeleteFunc(template.Spec.Tolerations, func(t v1.Toleration) bool {
		return slices.Contains(daemonTolerations, t)
	})
	return template
}

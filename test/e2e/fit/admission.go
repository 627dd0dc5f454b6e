package fit

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Admitted returns a pod as an API server stores it, as far as filters read it: with matchLabelKeys and
// mismatchLabelKeys of its affinity terms merged into their selectors. kube-scheduler reads the selectors only.
func Admitted(pod *v1.Pod) *v1.Pod {
	if a := pod.Spec.Affinity; a == nil || a.PodAffinity == nil && a.PodAntiAffinity == nil {
		return pod
	}
	pod = pod.DeepCopy()
	if a := pod.Spec.Affinity.PodAffinity; a != nil {
		mergeKeys(a.RequiredDuringSchedulingIgnoredDuringExecution, pod.Labels)
	}
	if a := pod.Spec.Affinity.PodAntiAffinity; a != nil {
		mergeKeys(a.RequiredDuringSchedulingIgnoredDuringExecution, pod.Labels)
	}
	return pod
}

func mergeKeys(terms []v1.PodAffinityTerm, labels map[string]string) {
	for i := range terms {
		if terms[i].LabelSelector == nil {
			continue
		}
		merge := func(keys []string, operator metav1.LabelSelectorOperator) {
			for _, key := range keys {
				if value, ok := labels[key]; ok {
					terms[i].LabelSelector.MatchExpressions = append(terms[i].LabelSelector.MatchExpressions,
						metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: []string{value}})
				}
			}
		}
		merge(terms[i].MatchLabelKeys, metav1.LabelSelectorOpIn)
		merge(terms[i].MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
	}
}

package view

import (
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/text"
)

// ScoredPod is TrimIncomingPod for a question by this policy: with its workload, and with what says whether it blocks
// drains, where the policy reads that.
func ScoredPod(pod *v1.Pod, policy *loadlinev1.ScorePolicy) []byte {
	trimmed := IncomingPod(pod, policy.GetExpectedUse())
	if policy.GetBlockersTogether() > 0 {
		return WithProtection(trimmed, pod)
	}
	return trimmed
}

// WithProtection adds to a pod that was trimmed for scores what says whether it blocks drains: its labels, by which
// budgets select it, the annotations that protect it, the kind of its controller, and that it is being deleted.
func WithProtection(trimmed []byte, pod *v1.Pod) []byte {
	// A message that occurs twice is merged: these are more metadata of the same pod.
	return appendMessage(trimmed, objectMetadata, func(b []byte) []byte {
		b = appendDeletion(b, pod)
		b = appendLabels(b, metaLabels, pod.Labels)
		b = appendLabels(b, metaAnnotations, Protection(pod.Annotations))
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
			// Pods of one kind of controller stay alike: who it is plays no part.
			b = appendObject(b, metaOwnerReferences, &metav1.OwnerReference{Kind: text.Bound(owner.Kind, maxOwnerText),
				APIVersion: text.Bound(owner.APIVersion, maxOwnerText), Controller: owner.Controller})
		}
		return b
	})
}

// protecting are the annotations of a pod by which it blocks drains, or does not.
var protecting = []string{autoscalerAnnotations + "safe-to-evict", autoscalerAnnotations + "daemonset-pod",
	annotationDoNotDisrupt, annotationDoNotEvict, v1.MirrorPodAnnotationKey}

// Protection returns those of a pod's annotations by which it blocks drains, or does not.
func Protection(annotations map[string]string) map[string]string {
	var out map[string]string
	for _, key := range protecting {
		if value, stated := annotations[key]; stated {
			if out == nil {
				out = map[string]string{}
			}
			out[key] = text.Valid(value)
		}
	}
	return out
}

// TellBlockers has each pod sent to the engine with what says whether it blocks drains. To be called before the first
// pod.
func (v *View) TellBlockers() {
	trim := v.trimPod
	v.trimPod = func(pod *v1.Pod) []byte { return WithProtection(trim(pod), pod) }
}

// TellBlockers has each pod sent to the engine with what says whether it blocks drains. To be called before the first
// cycle.
func (c *Cycles[N, R]) TellBlockers() { c.blockers = true }

// LastingBudget drops of a budget, in place, what changes with each of its pods. What is left tells whether it ever
// allows an eviction.
func LastingBudget(budget *policyv1.PodDisruptionBudget) {
	budget.ManagedFields, budget.Annotations, budget.Labels = nil, nil, nil
	budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: budget.Status.ObservedGeneration,
		DesiredHealthy: budget.Status.DesiredHealthy, ExpectedPods: budget.Status.ExpectedPods}
}

// SetObject is View.SetObject. Raw scores that are remembered no longer hold if it is another object than before.
func (c *Cycles[N, R]) SetObject(object any) error {
	key, trimmed, _, err := sizedObject(object)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ledger.objects.set(key, trimmed) {
		c.ledger.rules++
	}
	return nil
}

// DeleteObject is View.DeleteObject, and has remembered raw scores forgotten as well.
func (c *Cycles[N, R]) DeleteObject(object any) error {
	key, _, err := trimObject(object)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ledger.objects.set(key, nil) {
		c.ledger.rules++
	}
	return nil
}

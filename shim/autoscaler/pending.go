package autoscaler

import (
	"cmp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/scaleup"
)

// scaleUpDelay is the annotation by which a pod overrides newPodScaleUpDelay.
const scaleUpDelay = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay"

// mostPending is how many pods that wait are planned for in one loop: the engine takes no more kinds of them.
const mostPending = 100_000

// sharePods is how many pods of a namespace are taken before those of the next one, while there are more.
const sharePods = 100

// waiting gathers the pods that wait for a node, those of higher priority first, and what each new node carries.
func (c *cluster) waiting(s *config.ScaleUp, now time.Time) *scaleup.Pods {
	var pods []*v1.Pod
	for _, pod := range c.unbound {
		if !c.isPlaceholder(pod) && waits(pod, s) &&
			corev1helpers.PodPriority(pod) >= int32(s.ExpendablePodsPriorityCutoff) && !tooYoung(pod, s, now) {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *v1.Pod) int {
		return cmp.Or(cmp.Compare(corev1helpers.PodPriority(b), corev1helpers.PodPriority(a)),
			strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	items := make([]item, len(pods))
	for i, pod := range pods {
		items[i] = item{corev1helpers.PodPriority(pod), pod.Namespace, 1}
	}
	var taken []int
	taken, c.turns = c.turns.take(items, mostPending, sharePods)
	gathered := scaleup.NewPodsForPlanning()
	gathered.Selectors = c.selectors
	for _, i := range taken {
		gathered.AddPod(pods[i])
	}
	for _, set := range c.sets {
		gathered.AddObject(set)
		pods := c.daemons[scaleup.IdentityOf(set)]
		if len(pods) == 0 {
			gathered.AddPod(podOf(set))
		}
		for _, pod := range pods {
			gathered.AddPod(pod)
		}
	}
	return gathered
}

// waits says whether a scheduler has found no node for a pod, or is not waited for.
func waits(pod *v1.Pod, s *config.ScaleUp) bool {
	if _, claims := scaleup.DaemonSetOf(pod); claims {
		return false
	}
	refused := slices.ContainsFunc(pod.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse && c.Reason == v1.PodReasonUnschedulable
	})
	return refused || slices.Contains(s.BypassedSchedulerNames, pod.Spec.SchedulerName)
}

// tooYoung says whether a pod is still given time. Without a delay clocks that differ must not matter.
func tooYoung(pod *v1.Pod, s *config.ScaleUp, now time.Time) bool {
	delay := delayOf(pod, s)
	return delay > 0 && now.Sub(pod.CreationTimestamp.Time) < delay
}

func delayOf(pod *v1.Pod, s *config.ScaleUp) time.Duration {
	if text, ok := pod.Annotations[scaleUpDelay]; ok {
		if delay, err := time.ParseDuration(text); err == nil {
			return delay
		}
	}
	return s.NewPodScaleUpDelay.Duration
}

// podOf returns a pod as a DaemonSet would make it, of which there is none to look at.
func podOf(set *appsv1.DaemonSet) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name,
		Labels:      set.Spec.Template.Labels,
		Annotations: set.Spec.Template.Annotations,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet",
			Name: set.Name, UID: set.UID, Controller: new(true)}}}, Spec: *set.Spec.Template.Spec.DeepCopy()}
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

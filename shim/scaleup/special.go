package scaleup

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
)

// special is a property of pods for which they are not planned for as others are.
type special struct {
	// of names what gives a pod the property at a time; empty: it has it not.
	of func(pod *v1.Pod, now time.Time) string
	// text says it of several pods, with the name.
	text string
	// passed says that no group grows for such pods.
	passed bool
}

// expendablePriority is that below which pods make no group grow, as Cluster Autoscaler has it by default.
const expendablePriority = -10

var specials = [...]special{
	{gates, "gated and wait for no node: %s has to be taken off first", true},
	{expendable, "of a priority below -10 (%s): no group grows for such pods", true},
	{delayed, "younger than the delay that they state (%s): no group grows for such pods", true},
	{provisioningRequest, "of a ProvisioningRequest (%s), which is not read: they count as any other pods", false},
	{gang, "of a gang (%s): it is not planned as a whole, so nodes may come on which none of its pods is bound", false},
}

// DelayAnnotation is the annotation by which a pod says how old it is before groups grow for it.
const DelayAnnotation = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay"

// StatedDelay returns how old a pod is to be before groups grow for it; false: it does not say.
func StatedDelay(pod *v1.Pod) (time.Duration, bool) {
	stated, ok := pod.Annotations[DelayAnnotation]
	if !ok {
		return 0, false
	}
	delay, err := time.ParseDuration(stated)
	return delay, err == nil
}

func delayed(pod *v1.Pod, now time.Time) string {
	if delay, ok := StatedDelay(pod); ok && !now.IsZero() && now.Sub(pod.CreationTimestamp.Time) < delay {
		return delay.String()
	}
	return ""
}

func gates(pod *v1.Pod, _ time.Time) string {
	var names []string
	for _, gate := range pod.Spec.SchedulingGates {
		names = append(names, gate.Name)
	}
	return strings.Join(names, ", ")
}

func expendable(pod *v1.Pod, _ time.Time) string {
	if priority := corev1helpers.PodPriority(pod); priority < expendablePriority {
		return fmt.Sprint(priority)
	}
	return ""
}

func provisioningRequest(pod *v1.Pod, _ time.Time) string {
	for _, prefix := range []string{"autoscaling.x-k8s.io/", "cluster-autoscaler.kubernetes.io/"} {
		if name := pod.Annotations[prefix+"consume-provisioning-request"]; name != "" {
			return name
		}
	}
	return ""
}

// gang returns the name that Kubernetes' own pod groups, the co-scheduling plugin, Kueue or Volcano know a gang by.
func gang(pod *v1.Pod, _ time.Time) string {
	if group := pod.Spec.SchedulingGroup; group != nil && group.PodGroupName != nil {
		return *group.PodGroupName
	}
	for _, label := range []string{"scheduling.x-k8s.io/pod-group", "kueue.x-k8s.io/pod-group-name"} {
		if name := pod.Labels[label]; name != "" {
			return name
		}
	}
	return pod.Annotations["scheduling.k8s.io/group-name"]
}

// Remarks gathers pods without a node that are not planned for as others are. Each pod is added once.
type Remarks struct {
	// Now is the time of the question; zero: the age of pods says nothing.
	Now time.Time

	of [len(specials)]struct {
		pods        int
		first, name string // the first such pod, and what gives it the property
	}
}

// Add takes note of a pod, and says whether groups may grow for it.
func (r *Remarks) Add(pod *v1.Pod) (waits bool) {
	waits = true
	for i, s := range specials {
		name := s.of(pod, r.Now)
		if name == "" {
			continue
		}
		waits = waits && !s.passed
		if r.of[i].pods++; r.of[i].pods == 1 {
			r.of[i].first, r.of[i].name = pod.Namespace+"/"+pod.Name, name
		}
	}
	return waits
}

// Lines says it in a sentence for each property.
func (r *Remarks) Lines() (lines []string) {
	for i, s := range specials {
		noted := r.of[i]
		switch text := fmt.Sprintf(s.text, noted.name); noted.pods {
		case 0:
		case 1:
			lines = append(lines, fmt.Sprintf("Pod %s is %s.", noted.first, singular.Replace(text)))
		default:
			lines = append(lines, fmt.Sprintf("%d pods, such as %s, are %s.", noted.pods, noted.first, text))
		}
	}
	return lines
}

// singular makes of a text about several pods one about a single pod.
var singular = strings.NewReplacer("and wait for", "and waits for", "they count as any other pods",
	"it counts as any other pod", "that they state", "that it states")

package scaleup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
)

// Rules say which pods make groups grow.
type Rules struct {
	// Now is the time of the question; zero: the age of pods says nothing.
	Now time.Time
	// Cutoff is the priority below which no group grows for a pod, and Delay how old a pod has to be that does not say.
	Cutoff int32
	Delay  time.Duration
	// Bypassed says of which schedulers pods need not have been tried; nil: of all.
	Bypassed func(scheduler string) bool
	// Allows says for the pods of which schedulers groups grow; nil: of all.
	Allows func(scheduler string) bool
}

// special is a property of pods for which they are not planned for as others are.
type special struct {
	// of names what gives a pod the property; empty: it has it not.
	of func(pod *v1.Pod, r *Rules) string
	// text says it of several pods, with the name.
	text string
	// passed says that no group grows for such pods.
	passed bool
}

// DefaultRules returns the rules of Cluster Autoscaler's defaults for a question of this time.
func DefaultRules(now time.Time) Rules { return Rules{Now: now, Cutoff: -10} }

// cutoff is the place in a text of the priority below which pods are expendable.
const cutoff = "CUTOFF"

var specials = [...]special{
	{gates, "gated and wait for no node: %s has to be taken off first", true},
	{expendable, "of a priority below " + cutoff + " (%s): no group grows for such pods", true},
	{delayed, "younger than the delay that they state (%s): no group grows for such pods", true},
	{young, "younger than a pod has to be (%s): no group grows for such pods", true},
	{untried, "not tried yet by their scheduler (%s): no group grows for them before", true},
	{ofOtherScheduler, "of a scheduler for whose pods no group grows (%s)", true},
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

func delayed(pod *v1.Pod, r *Rules) string {
	if delay, ok := StatedDelay(pod); ok && r.younger(pod, delay) {
		return delay.String()
	}
	return ""
}

func young(pod *v1.Pod, r *Rules) string {
	if _, states := StatedDelay(pod); !states && r.younger(pod, r.Delay) {
		return r.Delay.String()
	}
	return ""
}

// FoundNoNode says whether a scheduler has tried a pod and found no node for it.
func FoundNoNode(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse && c.Reason == v1.PodReasonUnschedulable
	})
}

func untried(pod *v1.Pod, r *Rules) string {
	if r.Bypassed == nil || FoundNoNode(pod) || len(pod.Spec.SchedulingGates) > 0 || r.Bypassed(pod.Spec.SchedulerName) {
		return ""
	}
	return cmp.Or(pod.Spec.SchedulerName, v1.DefaultSchedulerName)
}

func ofOtherScheduler(pod *v1.Pod, r *Rules) string {
	if r.Allows != nil && !r.Allows(pod.Spec.SchedulerName) {
		return pod.Spec.SchedulerName
	}
	return ""
}

func gates(pod *v1.Pod, _ *Rules) string {
	var names []string
	for _, gate := range pod.Spec.SchedulingGates {
		names = append(names, gate.Name)
	}
	return strings.Join(names, ", ")
}

func expendable(pod *v1.Pod, r *Rules) string {
	if priority := corev1helpers.PodPriority(pod); priority < r.Cutoff {
		return fmt.Sprint(priority)
	}
	return ""
}

func provisioningRequest(pod *v1.Pod, _ *Rules) string {
	for _, prefix := range []string{"autoscaling.x-k8s.io/", "cluster-autoscaler.kubernetes.io/"} {
		if name := pod.Annotations[prefix+"consume-provisioning-request"]; name != "" {
			return name
		}
	}
	return ""
}

// gangKeys are the labels and annotations with the name of a gang: of the co-scheduling plugin and its older form,
// Kueue, Volcano, KAI, YuniKorn and LeaderWorkerSet.
var gangKeys = []string{"scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io/name",
	"kueue.x-k8s.io/pod-group-name", "scheduling.k8s.io/group-name", "pod-group-name",
	"yunikorn.apache.org/task-group-name", "leaderworkerset.sigs.k8s.io/name"}

// gang returns the name that Kubernetes' own pod groups or a scheduler of gangs know a gang by.
func gang(pod *v1.Pod, _ *Rules) string {
	if group := pod.Spec.SchedulingGroup; group != nil && group.PodGroupName != nil {
		return *group.PodGroupName
	}
	for _, key := range gangKeys {
		if name := cmp.Or(pod.Labels[key], pod.Annotations[key]); name != "" {
			return name
		}
	}
	return ""
}

// Remarks gathers pods without a node that are not planned for as others are. Each pod is added once.
type Remarks struct {
	Rules
	of [len(specials)]struct {
		pods        int
		first, name string          // the first such pod, and what gives it the property
		names       map[string]bool // what gives pods the property
	}
}

func (r *Rules) younger(pod *v1.Pod, age time.Duration) bool {
	return !r.Now.IsZero() && r.Now.Sub(pod.CreationTimestamp.Time) < age
}

// Waits says whether groups may grow for a pod.
func (r *Rules) Waits(pod *v1.Pod) bool {
	return !slices.ContainsFunc(specials[:], func(s special) bool { return s.passed && s.of(pod, r) != "" })
}

// SetTime sets the time of the question.
func (r *Remarks) SetTime(now time.Time) { r.Now = now }

// Add takes note of a pod, and says whether groups may grow for it. How they grow matters only where they may.
func (r *Remarks) Add(pod *v1.Pod) (waits bool) {
	waits = r.Waits(pod)
	for i, s := range specials {
		name := s.of(pod, &r.Rules)
		if name == "" || (!s.passed && !waits) {
			continue
		}
		if r.of[i].pods++; r.of[i].pods == 1 {
			r.of[i].first, r.of[i].name, r.of[i].names = pod.Namespace+"/"+pod.Name, name, map[string]bool{}
		}
		r.of[i].names[name] = true
	}
	return waits
}

// AddWaiting takes note of a pod if it may wait for a node, and says whether groups may grow for it. Pods of
// DaemonSets, which wait for one node of their own, and pods that have one, or end, pass.
func (r *Remarks) AddWaiting(pod *v1.Pod) (waits bool) {
	_, daemon := DaemonSetOf(pod)
	return daemon || pod.Spec.NodeName != "" || ended(pod) || r.Add(pod)
}

// Lines says it in a sentence for each property.
func (r *Remarks) Lines() (lines []string) {
	for i, s := range specials {
		noted := r.of[i]
		form, name := strings.ReplaceAll(s.text, cutoff, fmt.Sprint(r.Cutoff)), noted.name
		switch others := len(noted.names) - 1; {
		case others > 1:
			name += fmt.Sprintf(" and %d others", others)
		case others == 1:
			name += " and 1 other"
		}
		if len(noted.names) > 1 || strings.Contains(name, ", ") { // the gates of one pod
			form = several.Replace(form)
		}
		switch noted.pods {
		case 0:
		case 1:
			lines = append(lines, fmt.Sprintf("Pod %s is "+singular.Replace(form)+".", noted.first, name))
		default:
			lines = append(lines, fmt.Sprintf("%d pods, such as %s, are "+form+".", noted.pods, noted.first, name))
		}
	}
	return lines
}

// several makes of a text with one name one with several.
var several = strings.NewReplacer("has to be", "have to be", "their scheduler", "their schedulers",
	"of a scheduler", "of schedulers", "of a ProvisioningRequest", "of ProvisioningRequests",
	"which is not", "which are not", "of a gang", "of gangs", "it is not planned", "none is planned",
	"none of its pods", "none of their pods")

// singular makes of a text about several pods one about a single pod.
var singular = strings.NewReplacer("and wait for", "and waits for", "they count as any other pods",
	"it counts as any other pod", "that they state", "that it states",
	"their scheduler", "its scheduler", "for them before", "for it before")

package scaleup

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/filterconfig"
	"loadline.dev/shim/leftout"
	"loadline.dev/shim/usage/profile"
	"loadline.dev/shim/view"
	"loadline.dev/shim/workload"
)

// Pods gathers the pods that wait for a node, equal ones together, and those that every new node carries. Each pod is
// added once.
type Pods struct {
	// Selectors deduces what default spread constraints count pods by; nil: there are no such constraints. It gets
	// objects by AddObject, or from whoever sets it.
	Selectors *filterconfig.Selectors
	// Apart tells pods apart that are equal where they are placed; nil: nothing does. No result is the beginning of
	// another one.
	Apart func(*v1.Pod) string

	trim func(*v1.Pod) []byte
	sign func(*v1.Pod) string // equal for pods that are equal

	waiting []waiting
	bySign  map[string]int // position in waiting
	// daemons are what pods tell of the DaemonSet that they name; sets are those that exist.
	daemons map[DaemonSet]daemonFacts
	sets    map[DaemonSet]*appsv1.DaemonSet
	pods    int
	leftOut []leftout.Object
}

// DaemonSet identifies a DaemonSet.
type DaemonSet struct {
	Namespace, Name string
	UID             types.UID
}

// DaemonSetOf says whether a pod claims that a DaemonSet made it, and which. Anybody can write that into a pod, so it
// counts only if a DaemonSet with all of these properties exists. The result is empty for kinds of that name that are
// not Kubernetes' own.
func DaemonSetOf(pod *v1.Pod) (set DaemonSet, claims bool) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind != "DaemonSet" {
		return DaemonSet{}, false
	}
	if owner.APIVersion != appsv1.SchemeGroupVersion.String() {
		return DaemonSet{}, true
	}
	return DaemonSet{pod.Namespace, owner.Name, owner.UID}, true
}

// IdentityOf returns what pods of a DaemonSet say of it.
func IdentityOf(set *appsv1.DaemonSet) DaemonSet {
	return DaemonSet{set.Namespace, set.Name, set.UID}
}

// waiting are equal pods that wait for a node, in the order in which they were added.
type waiting []*v1.Pod

// NewPods returns a gatherer that has no pod yet.
func NewPods() *Pods {
	return &Pods{trim: view.TrimIncomingPodForPlanning, sign: func(pod *v1.Pod) string {
		priority := int32(0)
		if pod.Spec.Priority != nil {
			priority = *pod.Spec.Priority
		}
		return string(binary.AppendVarint(view.SignPodForFilters(pod), int64(priority)))
	}}
}

// TellWorkloads has the pods of workloads that have a profile say which workload that is: by it the engine finds what
// they are expected to use. Pods of two such workloads are no longer equal. To be called before the first pod.
func (p *Pods) TellWorkloads(profiles map[profile.Workload]bool) {
	trim, sign := p.trim, p.sign
	has := func(pod *v1.Pod) bool {
		w, found := workload.Of(pod)
		return found && profiles[profile.Workload{Namespace: pod.Namespace, Kind: w.Kind, Name: w.Name}]
	}
	p.trim = func(pod *v1.Pod) []byte {
		if !has(pod) {
			return trim(pod)
		}
		return view.WithWorkload(trim(pod), pod)
	}
	p.sign = func(pod *v1.Pod) string {
		if !has(pod) {
			return "\x00" + sign(pod)
		}
		return workload.AnnotationOf(pod) + "\x00" + sign(pod) // no annotation has a NUL
	}
}

// AddPod takes note of a pod. Those that wait are gathered, but for pods of DaemonSets, which wait for one node of
// their own, pods that are not to be scheduled yet, and pods that end.
func (p *Pods) AddPod(pod *v1.Pod) {
	if ended(pod) {
		return
	}
	if set, claims := DaemonSetOf(pod); claims {
		p.addDaemon(set, pod)
		return
	}
	if pod.Spec.NodeName != "" || len(pod.Spec.SchedulingGates) > 0 {
		return
	}
	p.pods++
	if p.bySign == nil {
		p.bySign = map[string]int{}
	}
	key := p.sign(pod)
	if p.Apart != nil {
		key = p.Apart(pod) + key
	}
	if at, known := p.bySign[key]; known && !namesClaims(pod) {
		p.waiting[at] = append(p.waiting[at], pod)
		return
	}
	p.bySign[key] = len(p.waiting)
	p.waiting = append(p.waiting, waiting{pod})
}

// ended says whether a pod has finished, or is being deleted.
func ended(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed || pod.DeletionTimestamp != nil
}

// namesClaims says whether a pod has claims of its own name, so that no other pod is equal to it.
func namesClaims(pod *v1.Pod) bool {
	return len(pod.Spec.ResourceClaims) > 0 ||
		slices.ContainsFunc(pod.Spec.Volumes, func(volume v1.Volume) bool { return volume.Ephemeral != nil })
}

// daemonFacts are the facts of a DaemonSet that its pods tell, and its template does not.
type daemonFacts struct {
	placed   bool   // some pod has a node, so that its scheduler runs
	priority *int32 // by the priority class that the template names; the highest
}

func (p *Pods) addDaemon(set DaemonSet, pod *v1.Pod) {
	if p.daemons == nil {
		p.daemons = map[DaemonSet]daemonFacts{}
	}
	facts := p.daemons[set]
	facts.placed = facts.placed || pod.Spec.NodeName != ""
	if priority := pod.Spec.Priority; priority != nil && (facts.priority == nil || *priority > *facts.priority) {
		facts.priority = priority
	}
	p.daemons[set] = facts
}

// AddObject takes note of DaemonSets, which exist then, and of what Selectors reads.
func (p *Pods) AddObject(object any) {
	p.Selectors.Set(object)
	set, ok := object.(*appsv1.DaemonSet)
	if !ok {
		return
	}
	if p.sets == nil {
		p.sets = map[DaemonSet]*appsv1.DaemonSet{}
	}
	p.sets[IdentityOf(set)] = set
}

// Waiting returns how many pods were gathered that wait, or may do so.
func (p *Pods) Waiting() int { return p.pods }

// Entry returns the pods that stand at a position of Pending; none behind its end.
func (p *Pods) Entry(i int) []*v1.Pod {
	if i < 0 || i >= len(p.waiting) {
		return nil
	}
	return p.waiting[i]
}

// Pending returns the pods that wait, in the order in which the first of each kind was added. It is called when all
// pods are added, and leaves out those that are too large for a question; see LeftOut.
func (p *Pods) Pending() []*loadlinev1.PendingPods {
	var out []*loadlinev1.PendingPods
	p.waiting = slices.DeleteFunc(p.waiting, func(pods waiting) bool {
		trimmed := p.trim(pods[0])
		if reason := view.TooLarge(len(trimmed)); reason != "" {
			for _, pod := range pods {
				p.leave("Pod", pod.Namespace, pod.Name, reason)
			}
			return true
		}
		out = append(out, &loadlinev1.PendingPods{Count: int32(len(pods)), Pod: &loadlinev1.IncomingPod{Pod: trimmed,
			DefaultSpreadSelector: p.Selectors.Of(pods[0])}})
		return false
	})
	return out
}

// TellNominated says of equal pods for how many of them the scheduler makes room on which nodes.
func TellNominated(pods []*v1.Pod, slot func(node string) (int32, bool), entry *loadlinev1.PendingPods) {
	counts := map[int32]int32{}
	for _, pod := range pods {
		if pod.Status.NominatedNodeName == "" {
			continue
		}
		if slot, ok := slot(pod.Status.NominatedNodeName); ok {
			counts[slot]++
		}
	}
	entry.Nominated = nil
	for _, slot := range slices.Sorted(maps.Keys(counts)) {
		entry.Nominated = append(entry.Nominated, &loadlinev1.NominatedPods{Slot: slot, Count: counts[slot]})
	}
}

func (p *Pods) leave(kind, namespace, name, reason string) {
	p.leftOut = append(p.leftOut, leftout.New(kind, namespace, name, reason))
}

// LeftOut returns what Pending and DaemonPods have left out.
func (p *Pods) LeftOut() []leftout.Object { return p.leftOut }

// LeftOutPods returns how many pods that wait were left out.
func (p *Pods) LeftOutPods() (pods int) {
	for _, o := range p.leftOut {
		if o.Kind == "Pod" {
			pods++
		}
	}
	return pods
}

const (
	// mostDaemonBytes is what the pods of all DaemonSets may take in a question, beside all the rest.
	mostDaemonBytes = 1 << 20
	// mostDaemonPods is how many of them the engine takes: `daemon_pods` of its messages.
	mostDaemonPods = 1_000
)

// DaemonPods returns the pod that each DaemonSet would make on a new node, by its template, whatever the pods that name
// the set look like. Those of a higher priority come first, as a scheduler places them on a new node, then those with
// lower names. A set that makes no pod that could run there is left out, and so is one that only a pod names.
func (p *Pods) DaemonPods() [][]byte {
	keys := slices.Collect(maps.Keys(p.sets))
	keys = slices.DeleteFunc(keys, func(key DaemonSet) bool { return !runsOnNewNodes(p.sets[key], p.daemons[key]) })
	slices.SortFunc(keys, func(a, b DaemonSet) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	trimmed, priorities := make(map[DaemonSet][]byte, len(keys)), make(map[DaemonSet]int32, len(keys))
	for _, key := range keys {
		pod := PodOf(p.sets[key])
		if pod.Spec.Priority == nil {
			pod.Spec.Priority = p.daemons[key].priority
		}
		trimmed[key], priorities[key] = p.trim(pod), corev1helpers.PodPriority(pod)
	}
	left := mostDaemonBytes
	for i, key := range p.inTurns(keys, trimmed, priorities) {
		if left -= len(trimmed[key]) + 8; left < 0 || i >= mostDaemonPods { // tag and length
			p.leave("DaemonSet", key.Namespace, key.Name,
				fmt.Sprintf("the pods of all DaemonSets are more than %d or take more than %d MiB, and this one is among "+
					"the largest of its namespace and priority, or the newest", mostDaemonPods, mostDaemonBytes>>20))
			delete(trimmed, key)
		}
	}
	slices.SortStableFunc(keys, func(a, b DaemonSet) int { return cmp.Compare(priorities[b], priorities[a]) })
	var out [][]byte
	for _, key := range keys {
		if pod, taken := trimmed[key]; taken {
			out = append(out, pod)
		}
	}
	return out
}

// inTurns returns DaemonSets in the order in which they get room: those of the highest priority first; of one priority
// those of kube-system, which belong to the cluster; of all others the namespaces take turns, each with its smallest
// first, so that nobody's keep out those of others. In one turn the oldest are first: new namespaces keep out nobody.
func (p *Pods) inTurns(keys []DaemonSet, pods map[DaemonSet][]byte, priorities map[DaemonSet]int32) []DaemonSet {
	type queue struct {
		namespace string
		priority  int32
	}
	order := slices.Clone(keys)
	slices.SortStableFunc(order, func(a, b DaemonSet) int { return len(pods[a]) - len(pods[b]) })
	turns, waiting := make(map[DaemonSet]int, len(keys)), map[queue]int{}
	for _, key := range order {
		if key.Namespace == metav1.NamespaceSystem {
			continue // none of them waits for another turn
		}
		q := queue{key.Namespace, priorities[key]}
		waiting[q]++
		turns[key] = waiting[q]
	}
	slices.SortStableFunc(order, func(a, b DaemonSet) int {
		return cmp.Or(cmp.Compare(priorities[b], priorities[a]), turns[a]-turns[b],
			p.sets[a].CreationTimestamp.Compare(p.sets[b].CreationTimestamp.Time))
	})
	return order
}

// runsOnNewNodes says whether a DaemonSet makes pods that are scheduled to new nodes: it is not being deleted, its pods
// have no gate and name no node, and their scheduler is Kubernetes' own or has placed a pod of the set.
func runsOnNewNodes(set *appsv1.DaemonSet, facts daemonFacts) bool {
	spec := &set.Spec.Template.Spec
	known := spec.SchedulerName == "" || spec.SchedulerName == v1.DefaultSchedulerName || facts.placed
	return set.DeletionTimestamp == nil && len(spec.SchedulingGates) == 0 && spec.NodeName == "" && known
}

package recording

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"loadline.dev/shim/api/loadlinev1"
)

// Time returns the time of the question.
func (l *Loop) Time() time.Time { return time.Unix(l.Question.GetNowS(), 0).UTC() }

// Nodes returns the nodes, by slot.
func (l *Loop) Nodes() (nodes []*v1.Node, err error) {
	for _, slot := range slices.Sorted(maps.Keys(l.nodes)) {
		node := &v1.Node{}
		if err := node.Unmarshal(l.nodes[slot].GetNode()); err != nil {
			return nil, fmt.Errorf("node in slot %d: %w", slot, err)
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// Pod is a pod of a loop.
type Pod struct {
	*v1.Pod
	// SpreadSelector is what default spread constraints count it by, a plain protobuf meta.v1.LabelSelector; empty: they
	// do not hold for it, or it is on a node.
	SpreadSelector []byte
}

// Pods returns the pods on nodes and those that the question has without one.
func (l *Loop) Pods() ([]Pod, error) {
	nodes, err := l.Nodes()
	if err != nil {
		return nil, err
	}
	var pods []Pod
	names := map[int32]string{}
	for i, slot := range slices.Sorted(maps.Keys(l.nodes)) {
		names[slot] = nodes[i].Name
		for _, record := range l.nodes[slot].GetPods() {
			pod := &v1.Pod{}
			if err := pod.Unmarshal(l.shapes[record.GetShape()]); err != nil {
				return nil, fmt.Errorf("pod %s on node %s: %w", record.GetName(), names[slot], err)
			}
			pod.Name, pod.UID, pod.Spec.NodeName = record.GetName(), types.UID(record.GetUid()), names[slot]
			if pod.Status.Phase == "" { // the engine is not given that a pod runs
				pod.Status.Phase = v1.PodRunning
			}
			pods = append(pods, Pod{Pod: pod})
		}
	}
	for i, entry := range l.Question.GetPods() {
		first := &v1.Pod{}
		if err := first.Unmarshal(entry.GetPod().GetPod()); err != nil {
			return nil, fmt.Errorf("pods[%d]: %w", i, err)
		}
		pods = slices.AppendSeq(pods, l.waiting(first, entry, names))
	}
	return pods, nil
}

// waiting returns the equal pods of an entry. The engine is given one name for all: the others get it with a number.
func (l *Loop) waiting(first *v1.Pod, entry *loadlinev1.PendingPods, nodes map[int32]string) iter.Seq[Pod] {
	first.Status.Phase = v1.PodPending
	condition := v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionUnknown}
	if entry.GetUnschedulable() || l.Question.GetWaiting() == nil {
		condition.Status, condition.Reason = v1.ConditionFalse, v1.PodReasonUnschedulable
	}
	first.Status.Conditions = append(first.Status.Conditions, condition)
	if entry.YoungestAgeMilliseconds != nil {
		first.CreationTimestamp = metav1.NewTime(
			l.Time().Add(-time.Duration(entry.GetYoungestAgeMilliseconds()) * time.Millisecond))
	}
	var nominated []string
	for _, some := range entry.GetNominated() {
		count := min(some.GetCount(), entry.GetCount())
		nominated = append(nominated, slices.Repeat([]string{nodes[some.GetSlot()]}, int(max(0, count)))...)
	}
	return func(yield func(Pod) bool) {
		for i := range int(entry.GetCount()) {
			pod := first.DeepCopy()
			if i > 0 {
				pod.Name, pod.UID = fmt.Sprintf("%s+%d", pod.Name, i), types.UID(fmt.Sprintf("%s+%d", pod.UID, i))
			}
			if i < len(nominated) {
				pod.Status.NominatedNodeName = nominated[i]
			}
			if !yield(Pod{pod, entry.GetPod().GetDefaultSpreadSelector()}) {
				return
			}
		}
	}
}

// Objects returns the other objects, by kind, namespace and name, as they were given to the engine.
func (l *Loop) Objects() []*loadlinev1.ClusterObject {
	var out []*loadlinev1.ClusterObject
	for _, key := range slices.Sorted(maps.Keys(l.objects)) {
		out = append(out, l.objects[key])
	}
	return out
}

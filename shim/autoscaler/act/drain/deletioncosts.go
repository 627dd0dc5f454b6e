package drain

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"loadline.dev/shim/internal/share"
	"loadline.dev/shim/view"
)

const (
	// mostCostWrites is how many pods are written in one loop: a plan that changes much is followed over some loops.
	mostCostWrites = 20
	// mostCostTime is after which no pod is written in a loop.
	mostCostTime = 3 * time.Second
)

// The outcomes of a write of a pod's deletion cost.
const (
	CostSet     = "set"
	CostRemoved = "removed"
	CostStale   = "stale" // the pod has changed since it was seen, or is gone: the next loop looks again
	CostFailed  = "failed"
)

// DeletionCosts has pods of ReplicaSets and ReplicationControllers state what their deletion costs, so much at a time.
// What it writes is ours as long as DeletionCostMark holds the same; what others state is left alone.
type DeletionCosts struct {
	client kubernetes.Interface
	wrote  func(result string)
	turns  share.Turns // of namespaces, where there is more to write
	background
}

// NewDeletionCosts returns what tells `wrote` what became of each write.
func NewDeletionCosts(client kubernetes.Interface, wrote func(result string)) *DeletionCosts {
	return &DeletionCosts{client: client, wrote: wrote, background: background{duration: mostCostTime}}
}

// Begin brings pods into line with the costs of their nodes, as far as the bounds of one loop allow, and in the
// background; `done` hears how it ended. Where that is too much for a loop namespaces take turns: pods that fail, or
// that somebody changes again and again, keep no others waiting. Of a namespace those come first that are to lose what
// is ours, then those that are to get some, the lowest cost first. While the writes of a loop before go on, nothing
// begins. Only one loop may call it at a time.
func (d *DeletionCosts) Begin(ctx context.Context, pods iter.Seq[*v1.Pod], costs map[string]int32,
	done func(took time.Duration, err error)) {
	if d.busy.Load() {
		return
	}
	due := costWrites(pods, costs)
	if len(due) == 0 {
		return
	}
	items := make([]share.Item, len(due))
	for i := range due {
		items[i] = share.Item{Namespace: due[i].pod.Namespace, Cost: 1}
	}
	var taken []int
	taken, d.turns = d.turns.Take(items, mostCostWrites, 1)
	var writes []costWrite
	for _, at := range taken {
		writes = append(writes, due[at])
	}
	writeLater(&d.background, writes, func(w costWrite) error { return d.write(ctx, w) }, done)
}

// costWrite is what a pod is to state; nil: nothing that is ours.
type costWrite struct {
	pod  *v1.Pod
	cost *int32
}

// costWrites returns what is to be written, by namespace and in its order.
func costWrites(pods iter.Seq[*v1.Pod], costs map[string]int32) (writes []costWrite) {
	for pod := range pods {
		cost, goes := costs[pod.Spec.NodeName]
		_, marked := pod.Annotations[view.DeletionCostMark]
		if !goes && !marked || pod.DeletionTimestamp != nil || !isReplica(pod) {
			continue // most pods have nothing to do with it
		}
		write := costWrite{pod: pod}
		if goes {
			write.cost = &cost
		}
		if write.isDue() {
			writes = append(writes, write)
		}
	}
	slices.SortFunc(writes, func(a, b costWrite) int {
		return cmp.Or(strings.Compare(a.pod.Namespace, b.pod.Namespace), cmp.Compare(a.rank(), b.rank()),
			strings.Compare(a.pod.Name, b.pod.Name))
	})
	return writes
}

// rank is below that of any cost where the pod is to lose what is ours.
func (w *costWrite) rank() int64 {
	if w.cost == nil {
		return math.MinInt64
	}
	return int64(*w.cost)
}

// isDue says whether the pod does not state it yet. Where somebody else states a cost, only a mark of ours is removed.
func (w *costWrite) isDue() bool {
	stated, states := w.pod.Annotations[v1.PodDeletionCost]
	_, marked := w.pod.Annotations[view.DeletionCostMark]
	if states && !view.HasOurDeletionCost(w.pod.Annotations) {
		w.cost = nil
	}
	if w.cost == nil {
		return marked
	}
	return stated != strconv.Itoa(int(*w.cost))
}

// isReplica says whether a controller made the pod that gives up pods by their deletion cost.
func isReplica(pod *v1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && (owner.Kind == "ReplicaSet" && strings.HasPrefix(owner.APIVersion, "apps/") ||
		owner.Kind == "ReplicationController" && owner.APIVersion == "v1")
}

// write is a merge patch that fails when the pod has changed since it was seen: somebody else may have stated a cost.
// The next loop looks again.
func (d *DeletionCosts) write(ctx context.Context, w costWrite) error {
	result, annotations := CostRemoved, map[string]any{view.DeletionCostMark: nil}
	if w.cost != nil {
		text := strconv.Itoa(int(*w.cost))
		result, annotations = CostSet, map[string]any{view.DeletionCostMark: text, v1.PodDeletionCost: text}
	} else if view.HasOurDeletionCost(w.pod.Annotations) {
		annotations[v1.PodDeletionCost] = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": w.pod.UID,
		"resourceVersion": w.pod.ResourceVersion, "annotations": annotations}})
	if err != nil {
		return err
	}
	_, err = d.client.CoreV1().Pods(w.pod.Namespace).Patch(ctx, w.pod.Name, types.MergePatchType, patch,
		metav1.PatchOptions{})
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		result, err = CostStale, nil
	case err != nil:
		result = CostFailed
	}
	d.wrote(result)
	return err
}

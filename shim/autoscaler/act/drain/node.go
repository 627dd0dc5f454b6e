package drain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Taints, under the names of Cluster Autoscaler: it, its tools and the scheduler plugins of others know them. They are
// named here since this package writes them and takes them off, and in core/cluster/startup_taints.h for what they mean
// to a plan; nowhere else.
const (
	// HardTaint keeps new pods off a node that is being removed. Its value is the time in seconds since 1970.
	HardTaint = "ToBeDeletedByClusterAutoscaler"
	// SoftTaint asks the scheduler to spare a node that may go. Its value is the time since when, in seconds since
	// 1970.
	SoftTaint = "DeletionCandidateOfClusterAutoscaler"
)

// MarkAnnotation holds a Mark: it tells the taints of this program from those of others.
const MarkAnnotation = "loadline.dev/scale-down"

// delayDeletionPrefix begins the annotations by which others ask to wait before a node is deleted.
const delayDeletionPrefix = "delay-deletion.cluster-autoscaler.kubernetes.io/"

const (
	conflictRetry   = 750 * time.Millisecond
	conflictTimeout = 5 * time.Second
)

// Mark is written together with the hard taint, and with it taken away. All that must survive a restart is in it.
type Mark struct {
	// Term is that of the leader that wrote it. A leader of a lower term leaves the node alone.
	Term int64 `json:"term"`
	// Since is since when the node was not needed, in seconds since 1970.
	Since int64 `json:"since"`
	// Drain says that the node had pods to move.
	Drain bool `json:"drain,omitempty"`
	// Cordoned says that we have cordoned it: only then do we uncordon it.
	Cordoned bool `json:"cordoned,omitempty"`
	// Deleting is when the cloud was first asked to delete it, in seconds since 1970; 0: not yet.
	Deleting int64 `json:"deleting,omitempty"`
	// Acknowledged says that the cloud has said that it deletes it: it is not given back, nor deleted a second time,
	// which could cost the group another node.
	Acknowledged bool `json:"acknowledged,omitempty"`
}

// MostTerm is the term after which none is counted further. Leaders share it then: that they are not the same the lease
// alone keeps apart.
const MostTerm = 1 << 62

// mostMarkTime is the largest time that the engine takes of a mark.
const mostMarkTime = 1 << 40

// MarkOf returns the mark of a node. One that cannot be read, or of a term that cannot be, is not ours. A time that
// cannot be counts as not stated: whoever may annotate one node must not stop the loop.
func MarkOf(node *v1.Node) (Mark, bool) {
	mark, ok, _ := readMark(node)
	return mark, ok
}

// DoubtOf returns what is wrong with the mark of a node; empty: nothing.
func DoubtOf(node *v1.Node) string {
	_, _, doubt := readMark(node)
	return doubt
}

func readMark(node *v1.Node) (mark Mark, ours bool, doubt string) {
	stated, ok := node.Annotations[MarkAnnotation]
	if !ok {
		return Mark{}, false, ""
	}
	if err := json.Unmarshal([]byte(stated), &mark); err != nil {
		return Mark{}, false, "cannot be read, and counts for nothing"
	}
	if mark.Term < 0 || mark.Term > MostTerm {
		return Mark{}, false, fmt.Sprintf("states the term %d, which no leader has, and counts for nothing", mark.Term)
	}
	for _, at := range []*int64{&mark.Since, &mark.Deleting} {
		if *at < 0 || *at > mostMarkTime {
			doubt = fmt.Sprintf("states the time %d, which counts as not stated", *at)
			*at = 0
		}
	}
	return mark, true, doubt
}

// HasTaint says whether a node carries a taint of this key.
func HasTaint(node *v1.Node, key string) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t v1.Taint) bool { return t.Key == key })
}

// putTaint puts a taint on a node that states a time, in seconds since 1970. One of its key that is there stays as it
// is.
func putTaint(node *v1.Node, key string, at int64, effect v1.TaintEffect) {
	if !HasTaint(node, key) {
		taint := v1.Taint{Key: key, Value: strconv.FormatInt(at, 10), Effect: effect}
		node.Spec.Taints = append(node.Spec.Taints, taint)
	}
}

func dropTaint(node *v1.Node, key string) {
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t v1.Taint) bool { return t.Key == key })
}

func setMark(node *v1.Node, mark Mark) error {
	text, err := json.Marshal(mark)
	if err != nil {
		return err
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[MarkAnnotation] = string(text)
	return nil
}

var (
	// errNodeGone says that there is no such node any more: also when there is another one of the same name.
	errNodeGone = errors.New("the node is gone")
	// errNodeReplaced is an errNodeGone: there is another one of the same name.
	errNodeReplaced = fmt.Errorf("%w: another one has its name", errNodeGone)
	// errAcknowledged says that the cloud deletes the node: it cannot be given back.
	errAcknowledged = errors.New("the cloud has said that it deletes the node")
	// errNotOurs says that somebody else has taken the node over.
	errNotOurs = errors.New("the node is not ours any more")
)

// nodeClient reads and changes nodes. Each is given as it was once: its UID and provider id tell it from another one of
// the same name.
type nodeClient struct {
	client kubernetes.Interface
	// term is that of this leader.
	term int64
}

// read returns a node as it is now.
func (c *nodeClient) read(ctx context.Context, of *v1.Node) (*v1.Node, error) {
	node, err := c.client.CoreV1().Nodes().Get(ctx, of.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, errNodeGone
	case err != nil:
		return nil, err
	case node.UID != of.UID:
		return nil, fmt.Errorf("%w: it has UID %s and not %s", errNodeReplaced, node.UID, of.UID)
	case node.Spec.ProviderID != of.Spec.ProviderID:
		return nil, fmt.Errorf("%w: its provider id is %q and not %q", errNodeReplaced, node.Spec.ProviderID,
			of.Spec.ProviderID)
	}
	if mark, ok := MarkOf(node); ok && mark.Term > c.term {
		return nil, fmt.Errorf("%w: the leader of term %d has it, this one is of term %d",
			errNotOurs, mark.Term, c.term)
	}
	return node, nil
}

// change reads a node and writes what edit makes of it, provided that nobody else writes in between: then it begins
// again, for a few seconds.
func (c *nodeClient) change(ctx context.Context, of *v1.Node, edit func(*v1.Node) error) error {
	give := time.Now().Add(conflictTimeout)
	for {
		err := c.changeOnce(ctx, of, edit)
		if !apierrors.IsConflict(err) || time.Now().Add(conflictRetry).After(give) {
			return err
		}
		if !sleep(ctx, conflictRetry, nil) {
			return ctx.Err()
		}
	}
}

// changeIfThere is change, but a node that is gone, or was replaced by one of the same name, needs nothing.
func (c *nodeClient) changeIfThere(ctx context.Context, of *v1.Node, edit func(*v1.Node) error) error {
	if err := c.change(ctx, of, edit); !errors.Is(err, errNodeGone) {
		return err
	}
	return nil
}

func (c *nodeClient) changeOnce(ctx context.Context, of *v1.Node, edit func(*v1.Node) error) error {
	before, err := c.read(ctx, of)
	if err != nil {
		return err
	}
	after := before.DeepCopy()
	if err := edit(after); err != nil {
		return err
	}
	patch, err := patchOf(before, after)
	if err != nil || patch == nil {
		return err
	}
	_, err = c.client.CoreV1().Nodes().Patch(ctx, of.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// patchOf returns what a change of mark, taints and cordon is as a merge patch that fails when the node has changed
// meanwhile, or is another one; nil when nothing changes.
func patchOf(before, after *v1.Node) ([]byte, error) {
	meta, spec := map[string]any{}, map[string]any{}
	if text := after.Annotations[MarkAnnotation]; text != before.Annotations[MarkAnnotation] {
		mark := map[string]any{MarkAnnotation: nil} // it is taken away
		if text != "" {
			mark[MarkAnnotation] = text
		}
		meta["annotations"] = mark
	}
	if !slices.Equal(before.Spec.Taints, after.Spec.Taints) {
		spec["taints"] = after.Spec.Taints // nil: there are none any more
	}
	if before.Spec.Unschedulable != after.Spec.Unschedulable {
		spec["unschedulable"] = after.Spec.Unschedulable
	}
	if len(meta) == 0 && len(spec) == 0 {
		return nil, nil
	}
	meta["uid"], meta["resourceVersion"] = before.UID, before.ResourceVersion
	return json.Marshal(map[string]any{"metadata": meta, "spec": spec})
}

// mark puts hard taint, cordon and mark on a node. On one that has them from an earlier leader, it renews the mark.
func (c *nodeClient) mark(ctx context.Context, of *v1.Node, mark Mark, cordon bool, now time.Time) error {
	mark.Term = c.term
	return c.change(ctx, of, func(node *v1.Node) error {
		old, adopted := MarkOf(node)
		if !adopted && HasTaint(node, HardTaint) {
			return fmt.Errorf("%w: it carries the taint %s of somebody else", errNotOurs, HardTaint)
		}
		dropTaint(node, SoftTaint)
		putTaint(node, HardTaint, now.Unix(), v1.TaintEffectNoSchedule)
		mark.Cordoned = old.Cordoned || cordon && !node.Spec.Unschedulable
		mark.Deleting, mark.Acknowledged = old.Deleting, old.Acknowledged
		node.Spec.Unschedulable = node.Spec.Unschedulable || cordon
		return setMark(node, mark)
	})
}

// confirm checks that a node still carries our mark and taint, and returns it.
func (c *nodeClient) confirm(ctx context.Context, of *v1.Node) (*v1.Node, error) {
	node, err := c.read(ctx, of)
	if err != nil {
		return nil, err
	}
	return node, c.confirmed(node)
}

func (c *nodeClient) confirmed(node *v1.Node) error {
	mark, ok := MarkOf(node)
	if !ok || mark.Term != c.term || !HasTaint(node, HardTaint) {
		return fmt.Errorf("%w: somebody has taken mark or taint away", errNotOurs)
	}
	return nil
}

// markDeleting notes on the node that the cloud is about to be asked. It fails when the node has changed hands.
func (c *nodeClient) markDeleting(ctx context.Context, of *v1.Node, now time.Time) error {
	return c.change(ctx, of, func(node *v1.Node) error {
		if err := c.confirmed(node); err != nil {
			return err
		}
		mark, _ := MarkOf(node)
		mark.Deleting = now.Unix()
		return setMark(node, mark)
	})
}

// markAcknowledged notes on a node that the cloud deletes it.
func (c *nodeClient) markAcknowledged(ctx context.Context, of *v1.Node) error {
	return c.changeIfThere(ctx, of, func(node *v1.Node) error {
		mark, ours := MarkOf(node)
		if !ours {
			return errNotOurs
		}
		mark.Acknowledged = true
		return setMark(node, mark)
	})
}

// release takes mark, hard taint and cordon off a node, as far as they are ours.
func (c *nodeClient) release(ctx context.Context, of *v1.Node) error {
	return c.changeIfThere(ctx, of, func(node *v1.Node) error {
		mark, ours := MarkOf(node)
		switch {
		case !ours:
			return nil
		case mark.Acknowledged:
			return errAcknowledged
		}
		dropTaint(node, HardTaint)
		if mark.Cordoned {
			node.Spec.Unschedulable = false
			dropTaint(node, v1.TaintNodeUnschedulable) // the node controller would take it off later
		}
		delete(node.Annotations, MarkAnnotation)
		return nil
	})
}

// delays returns the annotations by which others ask to wait before the node is deleted.
func delays(node *v1.Node) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(node.Annotations)), func(name string) bool {
		return !strings.HasPrefix(name, delayDeletionPrefix) || name == delayDeletionPrefix
	})
}

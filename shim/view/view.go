// Package view keeps an engine's view of a cluster up to date: it trims objects to what the engine reads,
// numbers nodes and pod shapes, and sends what changed since the engine is known to have been up to date.
// After a refusal, or when the engine has been restarted, it sends everything again.
//
// View is fed with objects, from informers or a dump; Cycles with the NodeInfos of a kube-scheduler.
package view

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/text"
)

// View is one client's cluster, fed with objects. Safe for concurrent use. Setting and deleting only take notes;
// Sync and Ask talk to the engine.
type View struct {
	feed
	nodeOf  map[podName]*entry // guarded by feed.mu: where each pod is
	partial partial            // guarded by feed.mu

	trimNode func(*v1.Node) []byte
	trimPod  func(*v1.Pod) []byte
}

type podName struct{ namespace, name string }

// maxName is how long the name of a view may be.
const maxName = 63

// CheckName returns an error for what an engine does not take as the name of a view.
func CheckName(name string) error {
	if len(name) > maxName || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789/-") != "" || name == "" {
		return fmt.Errorf("must be 1 to %d characters of a-z, 0-9, / and -", maxName)
	}
	return nil
}

// New returns an empty view. The name is the engine's key for it: each client needs its own, that CheckName passes.
func New(conn grpc.ClientConnInterface, name string) *View {
	return &View{feed: newFeed(conn, newLedger(name, true, false)), nodeOf: map[podName]*entry{}, trimNode: TrimNode,
		trimPod: TrimPod}
}

// NewForFilters is New for a view that is also to answer Fit: more of each object is sent, and pods that only
// filters can tell apart no longer travel as one.
func NewForFilters(conn grpc.ClientConnInterface, name string) *View {
	v := New(conn, name)
	v.trimNode, v.trimPod = TrimNodeForFilters, TrimPodForFilters
	return v
}

// TellKinds has nodes sent with what shows their kind, static pods included. To be called before the first node.
func (v *View) TellKinds() {
	trim := v.trimPod
	v.trimNode, v.trimPod = TrimNodeForPlanning, func(pod *v1.Pod) []byte {
		if _, static := pod.Annotations[v1.MirrorPodAnnotationKey]; static {
			return TrimPodForPlanning(pod)
		}
		return trim(pod)
	}
}

// CountAs has pods that are being resized count as the scheduler of Kubernetes 1.<minor> counts them; 0: the engine's
// default, 1.36. To be called before the first Sync.
func (v *View) CountAs(minor int32) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ledger.minor = minor
}

// LeaveOutInvalid makes Sync leave a node out that the engine finds invalid or has no room for, until the node
// changes, instead of failing for all of them. To be called before the first Sync. leftOut hears of each; it must not
// call back.
func (v *View) LeaveOutInvalid(leftOut func(node string, err error)) {
	v.partial.nodes = map[string]string{}
	v.ledger.leaveOut = func(node string, err error) {
		v.partial.nodes[node] = status.Convert(err).Message()
		leftOut(node, err)
	}
}

// SetNode adds a node or replaces its object.
func (v *View) SetNode(node *v1.Node) {
	trimmed := v.trimNode(node)
	v.mu.Lock()
	defer v.mu.Unlock()
	e := v.ledger.entry(node.Name)
	if !e.present() || !slices.Equal(e.node, trimmed) {
		v.ledger.setNode(e, trimmed)
	}
}

// DeleteNode removes a node. Its pods are kept until they are deleted, in case that the node returns.
func (v *View) DeleteNode(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e, ok := v.ledger.entries[name]; ok {
		v.ledger.removeNode(e)
	}
}

// SetPod adds a pod or replaces its object, whatever UID it had. A pod that is not bound to a node does not count.
// One whose node is not known yet counts as soon as the node is.
func (v *View) SetPod(pod *v1.Pod) {
	name := podName{pod.Namespace, pod.Name}
	if pod.Spec.NodeName == "" {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.removePod(name)
		return
	}
	trimmed := v.trimPod(pod)
	reason := TooLarge(len(trimmed))
	if reason != "" {
		trimmed = v.trimPod(SlimPod(pod))
		reason += ": it counts with its requests, and keeps its node"
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if at, ok := v.nodeOf[name]; ok && at.name != pod.Spec.NodeName {
		v.removePod(name)
	}
	v.partial.note("Pod", pod.Namespace, pod.Name, reason)
	e := v.ledger.entry(pod.Spec.NodeName)
	v.nodeOf[name] = e
	i, found := e.find(name)
	if found && e.pods[i].shape.bytes == string(trimmed) && e.pods[i].uid == string(pod.UID) {
		return
	}
	entry := podEntry{shape: v.ledger.shapes.acquire(trimmed), namespace: pod.Namespace, name: text.Name(pod.Name),
		uid: text.Name(string(pod.UID))}
	if found {
		v.ledger.shapes.release(e.pods[i].shape, v.ledger.batches)
		e.pods[i] = entry
	} else {
		e.pods = slices.Insert(e.pods, i, entry)
	}
	v.ledger.touch(e)
}

// DeletePod removes a pod. Another pod of the same name, with another UID, stays.
func (v *View) DeletePod(pod *v1.Pod) {
	v.mu.Lock()
	defer v.mu.Unlock()
	name := podName{pod.Namespace, pod.Name}
	if e, ok := v.nodeOf[name]; ok {
		if i, _ := e.find(name); pod.UID == "" || e.pods[i].uid == string(pod.UID) {
			v.removePod(name)
		}
	}
}

// removePod forgets a pod, if there is one of that name. The caller holds mu.
func (v *View) removePod(name podName) {
	e, ok := v.nodeOf[name]
	if !ok {
		return
	}
	v.partial.note("Pod", name.namespace, name.name, "")
	delete(v.nodeOf, name)
	i, _ := e.find(name)
	v.ledger.shapes.release(e.pods[i].shape, v.ledger.batches)
	e.pods = slices.Delete(e.pods, i, i+1)
	v.ledger.touch(e)
}

// find returns the place of a pod among the pods of a View's node, which are in name order.
func (e *entry) find(name podName) (int, bool) {
	return slices.BinarySearchFunc(e.pods, name, func(p podEntry, name podName) int {
		if c := strings.Compare(p.namespace, name.namespace); c != 0 {
			return c
		}
		return strings.Compare(p.name, name.name)
	})
}

// Sync brings the engine up to date with what was set and deleted before the call. Without changes it makes no
// call and waits for nobody, and so does not notice that an engine was restarted; Ask does.
func (v *View) Sync(ctx context.Context) error {
	if !v.pending() {
		return nil
	}
	if err := v.turn.lock(ctx); err != nil {
		return err
	}
	defer v.turn.unlock()
	return v.sync(ctx, 0)
}

// Ask brings the engine up to date and calls ask with the state to name in a question: an empty batch. If the
// engine refuses the question because it has lost the view, everything is sent again and ask is called once more.
// No batch is sent while ask runs: slots stay what they are. Without changes a question runs beside others; with some
// it waits until those under way have ended, or ctx has.
func (v *View) Ask(ctx context.Context, ask func(at *loadlinev1.Changes) error) error {
	for attempt := 0; ; attempt++ {
		if err := v.Sync(ctx); err != nil {
			return err
		}
		err := v.askOnce(ctx, ask)
		if err == nil || !refused(err) || attempt == maxRefusals {
			return err
		}
	}
}

func (v *View) askOnce(ctx context.Context, ask func(at *loadlinev1.Changes) error) error {
	if err := v.turn.share(ctx); err != nil {
		return err
	}
	defer v.turn.unshare()
	err := v.askAtPin(ask)
	if refused(err) {
		v.restart()
	}
	return err
}

// askAtPin calls ask with the state that the engine is known to have.
func (v *View) askAtPin(ask func(at *loadlinev1.Changes) error) error {
	v.mu.Lock()
	at := v.ledger.pin()
	known := v.ledger.standsAtPin()
	v.mu.Unlock()
	if !known { // another question was refused meanwhile, or another Sync failed
		return errLostView
	}
	return ask(at)
}

// AskApart is Ask for a question that names no slot, and whose answer has none: batches are sent while it runs, so that
// others do not wait for it, however long it takes. The engine refuses it if a batch is first; then ask is called
// again, three times in all. An engine that has lost the view is noticed by the next Ask.
func (v *View) AskApart(ctx context.Context, ask func(at *loadlinev1.Changes) error) error {
	for attempt := 0; ; attempt++ {
		if err := v.Sync(ctx); err != nil {
			return err
		}
		if err := v.askAtPin(ask); err == nil || !refused(err) || attempt == maxRefusals {
			return err
		}
	}
}

// Slot returns the slot of a node that the engine holds, for use in a question within Ask.
func (v *View) Slot(node string) (int32, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	e, ok := v.ledger.entries[node]
	if !ok || !e.held {
		return 0, false
	}
	return e.slot, true
}

// Node returns the name of the node in a slot, for reading an answer within Ask.
func (v *View) Node(slot int32) (string, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if slot < 0 || int(slot) >= len(v.ledger.slots) || v.ledger.slots[slot] == nil || !v.ledger.slots[slot].held {
		return "", false
	}
	return v.ledger.slots[slot].name, true
}

// Drop makes the engine forget the view. The next Sync sends everything again.
func (v *View) Drop(ctx context.Context) error {
	if err := v.turn.lock(ctx); err != nil {
		return err
	}
	defer v.turn.unlock()
	v.restart()
	_, err := v.client.Drop(ctx, &loadlinev1.DropRequest{View: v.ledger.view})
	return err
}

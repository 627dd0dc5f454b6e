package clusterapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/providers/apiserver"
)

// scale is the name of the subresource.
const scale = "scale"

// now returns a group as it is now, with its target, and the scale that states it.
func (p *Provider) now(ctx context.Context, id string) (*found, int, *unstructured.Unstructured, error) {
	last, err := p.group(id)
	if err != nil {
		return nil, 0, nil, err
	}
	scaled, err := p.of(last.GetKind(), last.GetNamespace()).Get(ctx, last.GetName(), metav1.GetOptions{}, scale)
	if err != nil {
		return nil, 0, nil, err
	}
	target, _, err := unstructured.NestedInt64(scaled.Object, "spec", "replicas") // omitted where it is 0
	if err != nil {
		return nil, 0, nil, fmt.Errorf("scale of %s: %w", id, err)
	}
	options := metav1.ListOptions{}
	if cluster := last.cluster(); cluster != "" {
		options.LabelSelector = group() + clusterName + "=" + cluster
	}
	sets, err := p.list(ctx, setKind, last.GetNamespace(), options)
	if err != nil {
		return nil, 0, nil, err
	}
	machines, err := p.list(ctx, machineKind, last.GetNamespace(), options)
	if err != nil {
		return nil, 0, nil, err
	}
	f := &found{object: last.object}
	assign(map[string]*found{id: f}, sets, machines)
	return f, int(target), scaled, nil
}

// inTurn makes one change at a time, and makes it again from what is there then if another write came between: the
// controllers of Cluster API write the status of a group all the time. A change that never succeeds ends with
// cloud.ErrChanged.
func (p *Provider) inTurn(ctx context.Context, id string, change func() error) error {
	select {
	case p.changing <- struct{}{}:
		defer func() { <-p.changing }()
	case <-ctx.Done():
		return fmt.Errorf("nothing was asked for, as another change is under way: %s: %w", id, ctx.Err())
	}
	for try := 0; ; try++ {
		err := change()
		switch {
		case !apierrors.IsConflict(err):
			return err
		case try == mostTries:
			return fmt.Errorf("node group %s: %w: %v", id, cloud.ErrChanged, err)
		}
	}
}

// resize states another target. The scale is of the version that was read: if somebody else has written the group
// since, this is a conflict.
func (p *Provider) resize(ctx context.Context, f *found, scaled *unstructured.Unstructured, target int) error {
	if err := unstructured.SetNestedField(scaled.Object, int64(target), "spec", "replicas"); err != nil {
		return err
	}
	_, err := p.of(f.GetKind(), f.GetNamespace()).Update(ctx, scaled, metav1.UpdateOptions{}, scale)
	if err == nil {
		klog.V(2).InfoS("The number of machines of a group is changed", "group", f.id(), "machines", target)
		return nil
	}
	return apiserver.Outcome(fmt.Errorf("scale of %s: %w", f.id(), err))
}

// IncreaseSize asks for `delta` more machines in a group whose target is `from`.
func (p *Provider) IncreaseSize(ctx context.Context, id string, from, delta int) error {
	return p.inTurn(ctx, id, func() error {
		f, target, scaled, err := p.now(ctx, id)
		if err != nil {
			return err
		}
		_, high, _, err := f.bounds()
		switch {
		case err != nil:
			return err
		case target != from:
			return fmt.Errorf("node group %s: %w: it is %d and not %d", id, cloud.ErrChanged, target, from)
		case delta < 1 || target+delta > high:
			return fmt.Errorf("node group %s has a target of %d nodes and may not have %d more: its maximum is %d", id, target,
				delta, high)
		}
		return p.resize(ctx, f, scaled, target+delta)
	})
}

// DecreaseTargetSize takes back the request for `delta` machines without a node. Machines that there are already are
// marked, so that Cluster API deletes these and no others: those that failed first, then those without an instance.
func (p *Provider) DecreaseTargetSize(ctx context.Context, id string, from, delta int) error {
	return p.inTurn(ctx, id, func() error {
		f, target, scaled, err := p.now(ctx, id)
		if err != nil {
			return err
		}
		low, _, _, err := f.bounds()
		switch {
		case err != nil:
			return err
		case target != from:
			return fmt.Errorf("node group %s: %w: it is %d and not %d", id, cloud.ErrChanged, target, from)
		case delta < 1 || target-delta < low:
			return fmt.Errorf("node group %s has a target of %d nodes and may not have %d fewer: its minimum is %d", id, target,
				delta, low)
		}
		waiting := f.waiting(target)
		notMade := max(0, target-f.there(scaled))
		if len(waiting) < delta-notMade {
			return fmt.Errorf("node group %s: %d of the %d nodes that are to be taken back are there already", id,
				delta-notMade-len(waiting), delta)
		}
		return p.shrink(ctx, f, scaled, waiting[:max(0, delta-notMade)], target-delta)
	})
}

// there returns how many machines are there, or become. A pool without Machines counts them in its status: `counting`
// is that pool as it was at the last look, or its scale as it is now. The ids that it lists are those of the last
// look.
func (f *found) there(counting *unstructured.Unstructured) int {
	if !f.isWithoutMachines() {
		return len(f.live())
	}
	counted, _, _ := unstructured.NestedInt64(counting.Object, "status", "replicas")
	return max(int(counted), len(f.providerIDs()))
}

// running returns how many machines have become nodes.
func (f *found) running() int {
	nodes := 0
	for _, machine := range f.live() {
		if machine.nodeName() != "" {
			nodes++
		}
	}
	return nodes
}

// waiting returns the machines that have no instance yet, or failed to become one, those that failed first.
func (f *found) waiting(target int) []object {
	leaving := f.leaving(target)
	var failed, waiting []object
	for _, machine := range f.live() {
		reason, message := machine.failure()
		switch {
		case machine.nodeName() != "" || leaving[machine.GetName()]:
		case reason != "" || message != "":
			failed = append(failed, machine)
		case machine.providerID() == "":
			waiting = append(waiting, machine)
		}
	}
	return append(failed, waiting...)
}

// shrink marks machines and lowers the target, so that Cluster API deletes these and no others. If the target stays,
// the marks are taken back.
func (p *Provider) shrink(ctx context.Context, f *found, scaled *unstructured.Unstructured, going []object,
	target int) error {
	var stale []object
	if len(f.live()) > target { // else Cluster API deletes nothing
		var err error
		if stale, err = f.staleMarks(going, target); err != nil {
			return err
		}
	}
	var marked, unmarked []object
	for _, machine := range going {
		changed, err := p.mark(ctx, machine, true)
		if changed {
			marked = append(marked, machine)
		}
		if err != nil {
			p.unmark(ctx, marked)
			return err // a mark alone deletes nothing
		}
	}
	var err error
	for _, machine := range stale {
		var changed bool
		if changed, err = p.mark(ctx, machine, false); apierrors.IsNotFound(err) {
			err = nil // it is gone by now
		} else if err != nil {
			break
		}
		if changed {
			unmarked = append(unmarked, machine)
		}
	}
	if err == nil {
		err = p.resize(ctx, f, scaled, target)
	}
	if err != nil && !cloud.OutcomeUnknown(err) {
		p.unmark(ctx, marked)
		// The other write of a conflict may be the one that these marks were for.
		p.setMarks(ctx, unmarked, true)
	}
	return err
}

// staleMarks returns the machines that are marked and were not deleted: the process ended before it lowered the
// target, or had no answer. Their nodes may have pods again. If the target fell to `target` now, Cluster API would
// delete them in the place of `going`. A mark that somebody else has set is an error.
func (f *found) staleMarks(going []object, target int) (stale []object, err error) {
	leaving := f.leaving(target + len(going))
	for _, machine := range f.live() {
		switch {
		case !machine.isMarked() || leaving[machine.GetName()] || slices.ContainsFunc(going, machine.is):
		case machine.isMarkedByUs():
			stale = append(stale, machine)
		default:
			err = fmt.Errorf("node group %s: machine %s has the annotation %s of somebody else and would be deleted in the "+
				"place of another: take the annotation off, or delete the machine", f.id(), machine.GetName(),
				group()+deleteMachine)
		}
	}
	return stale, err
}

func (p *Provider) unmark(ctx context.Context, machines []object) { p.setMarks(ctx, machines, false) }

func (p *Provider) setMarks(ctx context.Context, machines []object, on bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cloud.DefaultTimeout)
	defer cancel()
	for _, machine := range machines {
		if _, err := p.mark(ctx, machine, on); err != nil {
			klog.ErrorS(err, "The mark of a machine as the first to go stays as it is", "machine", klog.KObj(&machine),
				"wanted", on)
		}
	}
}

// mark sets or removes the annotation by which Cluster API deletes a machine before others. It changes the machine that
// was looked at, or none: one of the same name that came since is another one.
func (p *Provider) mark(ctx context.Context, machine object, on bool) (changed bool, err error) {
	machines := p.of(machineKind, machine.GetNamespace())
	for try := 0; ; try++ {
		current, err := machines.Get(ctx, machine.GetName(), metav1.GetOptions{})
		if err != nil {
			return false, fmt.Errorf("machine %s: %w", machine.GetName(), err)
		}
		annotations := current.GetAnnotations()
		value, marked := annotations[group()+deleteMachine]
		switch {
		case current.GetUID() != machine.GetUID():
			return false, fmt.Errorf("machine %s is another one than before", machine.GetName())
		case marked == on:
			return false, nil
		case !on && !strings.HasPrefix(value, ourMark):
			return false, fmt.Errorf("machine %s: somebody else has set %s since", machine.GetName(), group()+deleteMachine)
		case on && annotations == nil:
			annotations = map[string]string{}
		}
		if delete(annotations, group()+deleteMachine); on {
			annotations[group()+deleteMachine] = ourMark + time.Now().UTC().Format(time.RFC3339)
		}
		current.SetAnnotations(annotations)
		_, err = machines.Update(ctx, current, metav1.UpdateOptions{})
		switch {
		case err == nil:
			return true, nil
		case !apierrors.IsConflict(err) || try == mostTries:
			return false, fmt.Errorf("machine %s: %w", machine.GetName(), err)
		}
	}
}

// mostTries is how often an object is read again that its controllers change at the same time.
const mostTries = 5

// DeleteNodes deletes machines by their nodes, unless the group would get smaller than it may.
func (p *Provider) DeleteNodes(ctx context.Context, id string, nodes []*v1.Node) error {
	tried := make([]bool, len(nodes))
	return p.inTurn(ctx, id, func() error {
		f, target, scaled, err := p.now(ctx, id)
		if err != nil {
			return err
		}
		if f.isRollingOut() {
			return fmt.Errorf("node group %s: its machines are being replaced", id)
		}
		exists := func(name string) bool {
			_, err := p.nodes.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
			return !apierrors.IsNotFound(err)
		}
		going, fewer, err := f.choose(nodes, tried, target, exists)
		if err != nil {
			return err
		}
		low, _, _, err := f.bounds()
		if err != nil {
			return err
		}
		if target-fewer < low {
			return fmt.Errorf("node group %s has a target of %d nodes and may not have %d fewer: its minimum is %d", id, target,
				fewer, low)
		}
		if fewer == 0 {
			return nil // all of them go already
		}
		return p.shrink(ctx, f, scaled, going, target-fewer)
	})
}

// choose returns the machines of nodes that are to be marked, and by how many the target falls. `tried` says which
// nodes were chosen in an earlier attempt, before which another write came, and is updated. Cluster API may have
// deleted the machine of such a node because it was marked for a moment, in the place of a machine whose deletion was
// asked for before. That other machine is marked and stays: the target falls for it.
func (f *found) choose(nodes []*v1.Node, tried []bool, target int, exists func(node string) bool) (
	going []object, fewer int, err error) {
	leaving := f.leaving(target)
	accounted := maps.Clone(leaving)
	replaced := 0
	for i, node := range nodes {
		machine, err := f.machineOf(node, exists)
		switch {
		case errors.Is(err, errIsNode):
			return nil, 0, err
		case err == nil && !machine.isGoing() && !leaving[machine.GetName()]:
			going, accounted[machine.GetName()], tried[i] = append(going, machine), true, true
		case tried[i]:
			replaced++
		case err != nil:
			return nil, 0, err
		}
	}
	staying := 0
	for _, machine := range f.live() {
		if machine.isMarked() && !accounted[machine.GetName()] {
			staying++
		}
	}
	return going, len(going) + min(replaced, staying), nil
}

// isHere returns whether a machine of the group is a node of the cluster that is planned.
func (f *found) isHere(exists func(node string) bool) bool {
	return slices.ContainsFunc(f.live(), func(m object) bool { return m.nodeName() != "" && exists(m.nodeName()) })
}

// errIsNode is the error for a machine that was to go because it is no node, and is one by now.
var errIsNode = errors.New("it was to go as one without a node")

// machineOf returns the machine of a node, by provider id, or by what either says of the other. One that was to go
// because it is no node must not be one by now, here or in another cluster: if it names a node, that one must be gone,
// and another node of the group must be there.
func (f *found) machineOf(node *v1.Node, exists func(node string) bool) (object, error) {
	at := slices.IndexFunc(f.machines, func(m object) bool {
		id := node.Spec.ProviderID
		return id != "" && (m.providerID() == id || m.pendingID() == id)
	})
	if at < 0 {
		at = slices.IndexFunc(f.machines, func(m object) bool {
			return m.providerID() == "" && m.nodeName() != "" && m.nodeName() == node.Name ||
				node.Annotations[group()+machineOfNode] == m.GetName() &&
					node.Annotations[group()+namespaceOfNode] == m.GetNamespace()
		})
	}
	if at < 0 {
		return object{}, fmt.Errorf("node group %s has no machine of node %s, provider id %q", f.id(), node.Name,
			node.Spec.ProviderID)
	}
	machine := f.machines[at]
	_, withoutNode := node.Annotations[cloud.WithoutNode]
	if name := machine.nodeName(); withoutNode && name != "" && (exists(name) || !f.isHere(exists)) {
		return object{}, fmt.Errorf("machine %s of node group %s is node %s: %w", machine.GetName(), f.id(), name,
			errIsNode)
	}
	return machine, nil
}

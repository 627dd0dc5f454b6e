package karpenter

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/providers/apiserver"
)

// lostOf returns the failed claims of a group that are not listed any more, or only until Karpenter has deleted them.
func (p *Provider) lostOf(id string) (names []string) {
	for name, l := range p.lost {
		if l.group == id {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// targetOf returns how many machines a group is to have: the claims that stay, and the failed ones until they are given
// up.
func (p *Provider) targetOf(g *group) int {
	target := len(p.lostOf(g.id))
	for _, c := range g.claims {
		if _, failed := p.lost[c.Name]; !failed && c.DeletionTimestamp == nil {
			target++
		}
	}
	return target
}

// machinesOf returns the machines of a group, by name of their claims.
func (p *Provider) machinesOf(g *group) (all []*externalgrpc.Instance) {
	byName := map[string]*externalgrpc.Instance{}
	for _, c := range g.claims {
		byName[c.Name] = machineOf(c)
	}
	for _, name := range p.lostOf(g.id) {
		l := p.lost[name]
		byName[name] = &externalgrpc.Instance{Id: idPrefix + name, Status: &externalgrpc.InstanceStatus{
			InstanceState: externalgrpc.InstanceState_INSTANCE_CREATING,
			ErrorInfo: &externalgrpc.InstanceErrorInfo{ErrorCode: l.code, ErrorMessage: l.why,
				InstanceErrorClass: l.class}}}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		all = append(all, byName[name])
	}
	return all
}

// machineOf returns a claim as a machine. What keeps Karpenter from launching it, while it tries again, is its error.
func machineOf(c *nodeClaim) *externalgrpc.Instance {
	s := &externalgrpc.InstanceStatus{InstanceState: externalgrpc.InstanceState_INSTANCE_CREATING}
	launched := condition(c.Status.Conditions, "Launched")
	switch {
	case c.DeletionTimestamp != nil:
		s.InstanceState = externalgrpc.InstanceState_INSTANCE_DELETING
	case c.registered():
		s.InstanceState = externalgrpc.InstanceState_INSTANCE_RUNNING
	case launched != nil && launched.Status != metav1.ConditionTrue && launched.Reason != "" &&
		launched.Reason != "AwaitingReconciliation":
		s.ErrorInfo = &externalgrpc.InstanceErrorInfo{ErrorCode: launched.Reason, ErrorMessage: launched.Message,
			InstanceErrorClass: otherError}
	}
	return &externalgrpc.Instance{Id: c.id(), Status: s}
}

// current looks again, and returns a group that may be changed. The caller holds the lock.
func (p *Provider) current(ctx context.Context, id string) (*group, error) {
	if err := p.look(ctx); err != nil {
		return nil, fmt.Errorf("nothing was asked for: %w", err)
	}
	g := p.state.groups[id]
	switch {
	case g == nil:
		return nil, fmt.Errorf("there is no node group %s", id)
	case g.pool.problem != nil || g.problem != nil:
		return nil, cmp.Or(g.pool.problem, g.problem)
	}
	return g, nil
}

// IncreaseSize makes claims. Their names follow from the claims that are there, so that two who see the same cannot
// both buy: the second gets the error that the group has changed.
func (p *Provider) IncreaseSize(ctx context.Context, id string, from, delta int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	g, err := p.current(ctx, id)
	if err != nil {
		return err
	}
	if target := p.targetOf(g); target != from {
		return fmt.Errorf("node group %s: %w: it is %d and not %d", id, cloud.ErrChanged, target, from)
	}
	if delta < 1 || delta > g.room {
		err := fmt.Errorf("node group %s may not have %d more nodes: its NodePool allows %d", id, delta, g.room)
		if delta > 0 && delta <= p.offered[id] { // other groups of the pool have grown since: no failure of this one
			err = fmt.Errorf("%w: %w", err, cloud.ErrChanged)
		}
		return err
	}
	for i, name := range p.namesFor(g, delta) {
		object, err := encode(g.claim(name))
		if err != nil {
			return partly(i, err)
		}
		call, cancel := context.WithTimeout(ctx, p.callTime)
		_, err = p.objects.Resource(nodeClaims).Create(call, object, metav1.CreateOptions{})
		if cancel(); err != nil {
			if apierrors.IsAlreadyExists(err) && i == 0 {
				return fmt.Errorf("node group %s: %w: somebody else has made NodeClaim %s", id, cloud.ErrChanged, name)
			}
			if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
				err = explained(err, nodeClaims)
			}
			return partly(i, apiserver.Outcome(fmt.Errorf("NodeClaim %s of node group %s: %w", name, id, err)))
		}
		p.awaited[name] = awaited{group: id}
	}
	return nil
}

// partly returns an error after so many claims were changed. If it is not 0, nobody knows how many there are before
// the next look.
func partly(claims int, err error) error {
	if claims > 0 && !cloud.OutcomeUnknown(err) {
		return cloud.Uncertain(err)
	}
	return err
}

// namesFor returns names for new claims of a group: hashes of the group and of the claims that it has.
func (p *Provider) namesFor(g *group, count int) (names []string) {
	var seen []string
	for _, c := range g.claims {
		seen = append(seen, string(c.UID))
	}
	seen = append(seen, p.lostOf(g.id)...)
	slices.Sort(seen)
	pool := g.pool.Name[:min(len(g.pool.Name), 40)]
	for i := range count {
		sum := sha256.Sum256([]byte(strings.Join(append([]string{g.id, strconv.Itoa(i)}, seen...), "\n")))
		names = append(names, strings.TrimRight(pool, "-.")+"-"+hex.EncodeToString(sum[:6]))
	}
	return names
}

// claim returns a new claim of the group.
func (g *group) claim(name string) *nodeClaim {
	template := &g.pool.Spec.Template
	class := template.Spec.NodeClassRef
	labels := maps.Clone(template.Metadata.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[nodePoolLabel] = g.pool.Name
	labels[class.Group+"/"+strings.ToLower(class.Kind)] = class.Name
	annotations := maps.Clone(template.Metadata.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[groupAnnotation] = g.id
	c := &nodeClaim{TypeMeta: metav1.TypeMeta{APIVersion: Version, Kind: "NodeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: Version, Kind: "NodePool", Name: g.pool.Name,
				UID: g.pool.UID}}}, // without blockOwnerDeletion, which would need the right to update NodePools
		Spec: template.Spec}
	c.Spec.Requirements = require(template.Spec.Requirements, map[string]string{v1.LabelInstanceTypeStable: g.kind,
		v1.LabelTopologyZone: g.zone, capacityTypeLabel: g.capacity, v1.LabelArchStable: g.machine.Arch,
		v1.LabelOSStable: g.machine.Labels[v1.LabelOSStable]}, v1.LabelInstanceTypeStable, v1.LabelTopologyZone,
		capacityTypeLabel, v1.LabelArchStable, v1.LabelOSStable)
	c.Spec.Resources = &claimResources{Requests: g.requests()}
	return c
}

// requestedPercent is the share of cpu and memory of a node that its claim requests: a little less than what is planned
// with, so that an estimate that is slightly too high does not keep the node from being made.
const requestedPercent = 90

// requests returns the resources without which a node of the group would be useless. Karpenter waits with Initialized
// until the node shows them, such as its GPUs.
func (g *group) requests() v1.ResourceList {
	requests := v1.ResourceList{}
	for name, amount := range g.machine.Allocatable {
		switch name {
		case v1.ResourcePods, v1.ResourceEphemeralStorage:
		case v1.ResourceCPU:
			requests[name] = *resource.NewMilliQuantity(amount.MilliValue()*requestedPercent/100, resource.DecimalSI)
		case v1.ResourceMemory:
			requests[name] = *resource.NewQuantity(amount.Value()/100*requestedPercent, resource.BinarySI)
		default:
			if strings.Contains(string(name), "/") && amount.Sign() > 0 {
				requests[name] = amount
			}
		}
	}
	return requests
}

// DecreaseTargetSize fails: each machine that was asked for is a claim, which DeleteNodes deletes.
func (p *Provider) DecreaseTargetSize(_ context.Context, id string, _, delta int) error {
	return fmt.Errorf("node group %s has no %d machines without a NodeClaim", id, delta)
}

// DeleteNodes deletes the claims of nodes, and gives up failed ones. All of them must be in the group.
func (p *Provider) DeleteNodes(ctx context.Context, id string, nodes []*v1.Node) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	g, err := p.current(ctx, id)
	if err != nil {
		return err
	}
	var names []string
	for _, node := range nodes {
		name, err := p.claimOf(g, node)
		if err != nil {
			return err
		}
		names = append(names, name)
	}
	for i, name := range names {
		if err := p.deleteClaim(ctx, g, name); err != nil {
			return partly(i, apiserver.Outcome(fmt.Errorf("NodeClaim %s of node group %s: %w", name, id, err)))
		}
	}
	return nil
}

// claimOf returns the name of the claim of a node, or of a machine without one. Such a machine may have become a node
// since it was looked at.
func (p *Provider) claimOf(g *group, node *v1.Node) (string, error) {
	id := node.Spec.ProviderID
	bare, byName := strings.CutPrefix(id, idPrefix)
	_, withoutNode := node.Annotations[cloud.WithoutNode]
	for _, c := range g.claims {
		switch {
		case byName && c.Name != bare, !byName && (c.Status.ProviderID != id || id == ""):
		case (byName || withoutNode) && c.registered():
			return "", status.Errorf(codes.FailedPrecondition, "NodeClaim %s has become node %s meanwhile", c.Name,
				c.Status.NodeName)
		default:
			return c.Name, nil
		}
	}
	if byName {
		return bare, nil // it is gone, which is what is wanted
	}
	return "", status.Errorf(codes.NotFound, "node %s with provider id %q has no NodeClaim in node group %s", node.Name,
		id, g.id)
}

// deleteClaim deletes a claim as it was seen, by its UID. One that is gone is no error.
func (p *Provider) deleteClaim(ctx context.Context, g *group, name string) error {
	var uid *types.UID
	for _, c := range g.claims {
		if c.Name == name {
			uid = &c.UID
		}
	}
	p.ordered[name] = true
	delete(p.awaited, name)
	delete(p.lost, name)
	if uid == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.callTime)
	defer cancel()
	err := p.objects.Resource(nodeClaims).Delete(ctx, name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: uid}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	if err != nil {
		return explained(err, nodeClaims)
	}
	return nil
}

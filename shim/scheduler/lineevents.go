package scheduler

import (
	"context"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"loadline.dev/shim/api/loadlinev1"
)

// EventsToRegister names what may let in a pod that the line kept off: limits that go or are lowered, and nodes that
// come or offer more. Labels of a node may raise its line.
//
// All updates of pods are registered, and the hint compares limits: the framework has no name for updates that lower
// limits alone.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	if p.loadLine.line == nil {
		return nil, nil
	}
	node := fwk.ActionType(fwk.Add | fwk.UpdateNodeAllocatable)
	if p.loadLine.line.GetNodeLabelPrefix() != "" {
		node |= fwk.UpdateNodeLabel
	}
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.Delete | fwk.Update}, QueueingHintFn: p.afterPod},
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: node}, QueueingHintFn: p.afterNode},
	}, nil
}

// afterPod lets a pod be tried again when another one is deleted that counted under the line, or counts as less, or
// when it counts as less itself. It is called with the queue of the scheduler locked, so that it does not ask the
// engine: it compares what the engine's rules read.
//
// A pod that was on no node wakes others as well: the framework reports the deletion of a pod only where it took room,
// and where it has missed the end of a watch, it does so with an object from before the pod was bound.
func (p *Plugin) afterPod(_ klog.Logger, waiting *v1.Pod, before, after any) (fwk.QueueingHint, error) {
	was, isPod := before.(*v1.Pod)
	if !isPod || was == nil {
		return fwk.Queue, nil
	}
	now, updated := after.(*v1.Pod)
	for _, resource := range p.lineResources() {
		needs := p.limitsOf(waiting, resource)
		left := p.limitsOf(was, resource)
		if !needs.counts && was.UID != waiting.UID || !left.counts {
			continue
		}
		if !updated || p.limitsOf(now, resource).mayBeLessThan(left) {
			return fwk.Queue, nil
		}
	}
	return fwk.QueueSkip, nil
}

// afterNode lets a pod be tried again when a node is added, offers more of what has a line, or has another line.
//
// To offer less helps no pod: as each counts as a fixed amount or as a multiple of what the node offers, or as the
// smaller one of both, what they count as falls by a smaller share than the ceiling. But where a node does not offer a
// resource at all, pods without limits count as nothing.
func (p *Plugin) afterNode(_ klog.Logger, waiting *v1.Pod, before, after any) (fwk.QueueingHint, error) {
	now, ok := after.(*v1.Node)
	if !ok || now == nil {
		return fwk.Queue, nil
	}
	was, updated := before.(*v1.Node)
	updated = updated && was != nil
	for _, resource := range p.lineResources() {
		if !p.limitsOf(waiting, resource).counts {
			continue
		}
		offers := now.Status.Allocatable[resource]
		if !updated {
			if offers.Sign() <= 0 && p.limitsOf(waiting, resource).limits > 0 {
				return fwk.QueueSkip, nil // it lacks what the pod limits
			}
			continue
		}
		offered := was.Status.Allocatable[resource]
		if offers.Cmp(offered) > 0 || offers.Sign() <= 0 && offered.Sign() > 0 || p.mayRaiseLine(resource, was, now) {
			return fwk.Queue, nil
		}
	}
	if updated {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}

// mayRaiseLine says whether a change of labels may raise the line of a node: it does not where one number takes the
// place of a larger one.
func (p *Plugin) mayRaiseLine(resource v1.ResourceName, was, now *v1.Node) bool {
	prefix := p.loadLine.line.GetNodeLabelPrefix()
	if prefix == "" {
		return false
	}
	key := prefix + "/" + string(resource)
	before, after := was.Labels[key], now.Labels[key]
	if before == after {
		return false
	}
	low, errBefore := strconv.ParseFloat(before, 64)
	high, errAfter := strconv.ParseFloat(after, 64)
	return errBefore != nil || errAfter != nil || high > low
}

func (p *Plugin) lineResources() []v1.ResourceName {
	var names []v1.ResourceName
	for _, resource := range p.loadLine.line.GetResources() {
		names = append(names, v1.ResourceName(resource.GetResource()))
	}
	return names
}

// podLimits is what a pod counts by for one resource of the line.
type podLimits struct {
	counts   bool  // as something, on a node that offers the resource
	limits   int64 // of containers that have one, in thousandths
	missing  int   // containers without a limit that count by a rule
	requests int64 // where that rule says so, in thousandths
}

// mayBeLessThan says whether a pod may count as less than it did. A limit in the place of a missing one may be less.
func (l podLimits) mayBeLessThan(before podLimits) bool {
	return l.limits < before.limits || l.missing < before.missing || l.requests < before.requests
}

// limitsOf reads a pod as the scheduler does that is built with the same library: one that is being resized has the
// larger amounts until the node has taken the smaller ones.
func (p *Plugin) limitsOf(pod *v1.Pod, resource v1.ResourceName) podLimits {
	options := resourcehelper.PodResourcesOptions{UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true}
	var out podLimits
	out.limits = milli(resourcehelper.PodLimits(pod, options), resource)
	out.missing = withoutLimit(pod, resource)
	out.counts = out.limits > 0
	if out.missing == 0 {
		return out
	}
	switch p.missingRule(pod, resource) {
	case loadlinev1.MissingLimitRule_ZERO:
		out.missing = 0
	case loadlinev1.MissingLimitRule_REQUEST:
		out.requests = milli(resourcehelper.PodRequests(pod, options), resource)
		out.counts = out.counts || out.requests > 0
	default:
		out.counts = true
	}
	return out
}

func milli(list v1.ResourceList, resource v1.ResourceName) int64 {
	amount := list[resource]
	return amount.MilliValue()
}

// withoutLimit counts the containers that have no limit, where the pod as a whole has none.
func withoutLimit(pod *v1.Pod, resource v1.ResourceName) int {
	has := func(limits v1.ResourceList) bool {
		limit := limits[resource]
		return limit.Sign() > 0
	}
	if pod.Spec.Resources != nil && has(pod.Spec.Resources.Limits) {
		return 0
	}
	count := 0
	for i := range pod.Spec.Containers {
		if !has(pod.Spec.Containers[i].Resources.Limits) {
			count++
		}
	}
	for i := range pod.Spec.InitContainers {
		if !has(pod.Spec.InitContainers[i].Resources.Limits) {
			count++
		}
	}
	return count
}

// missingRule returns what the engine says that a missing limit of a pod counts as; unspecified: it has not answered
// yet.
func (p *Plugin) missingRule(pod *v1.Pod, resource v1.ResourceName) loadlinev1.MissingLimitRule_Rule {
	pods := loadlinev1.MissingLimitRule_OTHERS
	if isBestEffort(pod) {
		pods = loadlinev1.MissingLimitRule_BEST_EFFORT
	}
	for _, rule := range p.loadLine.counting.Load().GetMissingLimits() {
		if rule.GetPods() == pods && rule.GetResource() == string(resource) {
			return rule.GetRule()
		}
	}
	return loadlinev1.MissingLimitRule_RULE_UNSPECIFIED
}

// isBestEffort says whether no container and not the pod as a whole requests or limits cpu or memory.
func isBestEffort(pod *v1.Pod) bool {
	states := func(r *v1.ResourceRequirements) bool {
		for _, list := range []v1.ResourceList{r.Requests, r.Limits} {
			for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
				if amount := list[name]; amount.Sign() > 0 {
					return true
				}
			}
		}
		return false
	}
	inContainer := func(c v1.Container) bool { return states(&c.Resources) }
	return !slices.ContainsFunc(pod.Spec.Containers, inContainer) &&
		!slices.ContainsFunc(pod.Spec.InitContainers, inContainer) &&
		(pod.Spec.Resources == nil || !states(pod.Spec.Resources))
}

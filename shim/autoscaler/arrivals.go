package autoscaler

import (
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/autoscaler/backoff"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/provider"
	"loadline.dev/shim/internal/text"
)

// arrivals knows what was asked of the cloud and has not come yet, and which groups have failed. After a restart
// everything but the failures is found again in the cloud's target sizes and instances, and times begin anew.
type arrivals struct {
	options *config.ScaleUp
	backoff *backoff.Backoff
	metrics *metrics
	// requests are what this leader has asked for, by group.
	requests map[string]request
	// missing says since when a machine has no node, by provider id; short since when a group has fewer machines than
	// its target; faulty are machines whose fault has been counted.
	missing map[string]time.Time
	short   map[string]time.Time
	faulty  map[string]bool
	// givenUp says when the cloud was asked to delete a machine without a node that it still lists, by provider id.
	givenUp map[string]time.Time
	// hadNode are machines that have had a node since this process began to look. If it is gone, the machine is not
	// late: pods may run on it, and all nodes may be gone at once, such as from a store that was restored.
	hadNode map[string]bool
	// inherited are machines that ran without a node when this process began to look; nil: it has not.
	inherited map[string]bool
}

// request is what was asked for: so many nodes beyond a target size, to be there until then.
type request struct {
	from, nodes int
	until       time.Time
}

func newArrivals(s *config.ScaleUp, m *metrics) *arrivals {
	return &arrivals{options: s, metrics: m, requests: map[string]request{}, missing: map[string]time.Time{},
		short: map[string]time.Time{}, faulty: map[string]bool{}, givenUp: map[string]time.Time{},
		backoff: backoff.New(backoff.Options{Initial: s.InitialNodeGroupBackoffDuration.Duration,
			Max: s.MaxNodeGroupBackoffDuration.Duration, Reset: s.NodeGroupBackoffResetTimeout.Duration})}
}

// follow takes note of how long machines are missing, before they are counted.
func (a *arrivals) follow(groups []provider.Group, nodes map[string]*v1.Node, now time.Time) {
	registered := map[string]bool{}
	for _, node := range nodes {
		registered[node.Spec.ProviderID] = true
	}
	missing, short, givenUp := map[string]time.Time{}, map[string]time.Time{}, map[string]time.Time{}
	faulty, hadNode := map[string]bool{}, map[string]bool{}
	first := a.inherited == nil
	if first {
		a.inherited = map[string]bool{}
	}
	for i := range groups {
		live := 0
		faults := map[provider.Fault]int{}
		for _, instance := range groups[i].Instances {
			switch had := a.hadNode[instance.ProviderID]; {
			case registered[instance.ProviderID]:
				hadNode[instance.ProviderID] = true
			case instance.State == externalgrpc.InstanceState_INSTANCE_CREATING: // a new one by an old id
			case had && instance.State != externalgrpc.InstanceState_INSTANCE_DELETING:
				hadNode[instance.ProviderID] = true
			}
			switch {
			case instance.State == externalgrpc.InstanceState_INSTANCE_DELETING:
				continue
			case registered[instance.ProviderID]:
			case instance.Fault.Code != "":
				faulty[instance.ProviderID] = true
				if !a.faulty[instance.ProviderID] {
					faults[instance.Fault]++
				}
			default:
				missing[instance.ProviderID] = earlier(a.missing, instance.ProviderID, now)
				// Not all clouds tell states.
				if first && instance.State != externalgrpc.InstanceState_INSTANCE_CREATING {
					a.inherited[instance.ProviderID] = true
				}
			}
			if at, asked := a.givenUp[instance.ProviderID]; asked {
				givenUp[instance.ProviderID] = at
			}
			if !a.isBeingDeleted(instance, now) {
				live++
			}
		}
		if live < groups[i].Target {
			short[groups[i].ID] = earlier(a.short, groups[i].ID, now)
		}
		for fault, machines := range faults {
			a.creationFailed(groups[i].ID, fault, machines, now)
		}
	}
	a.missing, a.short, a.givenUp, a.faulty, a.hadNode = missing, short, givenUp, faulty, hadNode
	a.backoff.Prune(now)
}

func earlier(since map[string]time.Time, key string, now time.Time) time.Time {
	if at, known := since[key]; known {
		return at
	}
	return now
}

// isBeingDeleted says whether a machine is being deleted: the cloud says so, or was asked to delete it a short time
// ago, since what it says may be old or missing.
func (a *arrivals) isBeingDeleted(instance provider.Instance, now time.Time) bool {
	at, asked := a.givenUp[instance.ProviderID]
	return instance.State == externalgrpc.InstanceState_INSTANCE_DELETING || asked && now.Sub(at) < deletionPatience
}

func (a *arrivals) isLate(group *provider.Group, instance provider.Instance, now time.Time) bool {
	since, missing := a.missing[instance.ProviderID]
	return missing && now.Sub(since) >= provisionTime(group, a.options)
}

func (a *arrivals) isShort(group *provider.Group, now time.Time) bool {
	since, short := a.short[group.ID]
	return short && now.Sub(since) >= provisionTime(group, a.options)
}

func (a *arrivals) creationFailed(group string, fault provider.Fault, machines int, now time.Time) {
	reason := backoff.ReasonCreation
	if fault.OutOfResources {
		reason = backoff.ReasonResources
	}
	a.metrics.failedCreations.WithLabelValues(reason).Add(float64(machines))
	a.backOff(group, reason,
		fmt.Sprintf("%d machines could not be created: %s: %s", machines, fault.Code, fault.Message), now)
	if r, asked := a.requests[group]; asked { // these do not come, but that is no success of the request
		if r.nodes -= machines; r.nodes <= 0 {
			delete(a.requests, group)
		} else {
			a.requests[group] = r
		}
	}
}

// noteRemoval takes note of a node that we have removed from a group, with its machine.
func (a *arrivals) noteRemoval(group, machine string) {
	delete(a.hadNode, machine)
	if r, asked := a.requests[group]; asked {
		r.from--
		a.requests[group] = r
	}
}

// endRequests ends requests that have come true, or did not in their time. Groups that shrink have removals of ours
// under way, which may have lowered their target sizes already.
func (a *arrivals) endRequests(groups []*groupState, shrinks map[string]bool, now time.Time) {
	for _, group := range groups {
		r, asked := a.requests[group.ID]
		_, backsOff := a.backoff.Of(group.ID, now)
		late := len(group.late) > 0 || group.short > 0
		switch {
		case late && backsOff, !late && !asked:
		case late || group.upcoming() > 0 && !now.Before(r.until):
			delete(a.requests, group.ID)
			a.backOff(group.ID, backoff.ReasonTimeout,
				fmt.Sprintf("nodes did not register in %v", provisionTime(group.Group, a.options)), now)
		case group.upcoming() > 0:
		case group.Target <= r.from && shrinks[group.ID]:
		case group.Target <= r.from && len(group.failed) == 0:
			delete(a.requests, group.ID)
			a.backOff(group.ID, backoff.ReasonCreation,
				fmt.Sprintf("the cloud has taken its target size back to %d", group.Target), now)
		default:
			delete(a.requests, group.ID)
			if !backsOff { // what came is no success of what failed beside it
				a.backoff.Succeed(group.ID)
			}
		}
	}
}

// backOff makes a group back off.
func (a *arrivals) backOff(group, reason, why string, now time.Time) {
	info := a.backoff.Fail(group, reason, text.Bound(why, mostStatusText), now)
	a.metrics.failedScaleUps.WithLabelValues(reason).Inc()
	klog.InfoS("Node group backs off", "group", group, "reason", reason, "text", info.Text, "for", info.Until.Sub(now))
}

// noteRequest takes note of a request that the cloud has granted.
func (a *arrivals) noteRequest(group *groupState, nodes int, now time.Time) {
	r, before := a.requests[group.ID]
	if !before {
		r.from = group.Target
	}
	r.nodes += nodes
	r.until = now.Add(provisionTime(group.Group, a.options))
	a.requests[group.ID] = r
}

// refused says whether a cloud that answered with an error has not done what it was asked for the fault of nobody: the
// group does not back off.
func refused(err error) bool { return errors.Is(err, provider.ErrChanged) }

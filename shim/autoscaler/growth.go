package autoscaler

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/autoscaler/backoff"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/provider"
	"loadline.dev/shim/internal/text"
)

// growth knows what was asked of the cloud and has not come yet, and which groups have failed. All of it but the failures
// is found again after a restart, in the cloud's target sizes and instances; times then begin anew.
type growth struct {
	options *config.ScaleUp
	backoff *backoff.Backoff
	metrics *metrics
	// requests are what this leader has asked for, by group.
	requests map[string]request
	// missing says since when a machine has no node, by provider id; short since when a group has fewer machines than its
	// target; faulty are machines whose fault has been counted.
	missing map[string]time.Time
	short   map[string]time.Time
	faulty  map[string]bool
	// givenUp says when the cloud was asked to delete a machine without a node that it still lists, by provider id.
	givenUp map[string]time.Time
	// inherited are machines that ran without a node when this process began to look; nil: it has not.
	inherited map[string]bool
}

// request is what was asked for: so many nodes beyond a target size, to be there until then.
type request struct {
	from, nodes int
	until       time.Time
}

func newGrowth(s *config.ScaleUp, m *metrics) *growth {
	return &growth{options: s, metrics: m, requests: map[string]request{}, missing: map[string]time.Time{}, short: map[string]time.Time{}, faulty: map[string]bool{},
		givenUp: map[string]time.Time{}, backoff: backoff.New(backoff.Options{Initial: s.InitialNodeGroupBackoffDuration.Duration, Max: s.MaxNodeGroupBackoffDuration.Duration,
			Reset: s.NodeGroupBackoffResetTimeout.Duration})}
}

// look takes note of how long machines are missing, before they are counted.
func (g *growth) look(groups []provider.Group, nodes map[string]*v1.Node, now time.Time) {
	registered := map[string]bool{}
	for _, node := range nodes {
		registered[node.Spec.ProviderID] = true
	}
	missing, short, givenUp, faulty := map[string]time.Time{}, map[string]time.Time{}, map[string]time.Time{}, map[string]bool{}
	first := g.inherited == nil
	if first {
		g.inherited = map[string]bool{}
	}
	for i := range groups {
		live := 0
		faults := map[provider.Fault]int{}
		for _, instance := range groups[i].Instances {
			switch {
			case instance.State == externalgrpc.InstanceState_INSTANCE_DELETING:
				continue
			case registered[instance.ProviderID]:
			case instance.Fault.Code != "":
				faulty[instance.ProviderID] = true
				if !g.faulty[instance.ProviderID] {
					faults[instance.Fault]++
				}
			default:
				missing[instance.ProviderID] = earlier(g.missing, instance.ProviderID, now)
				if first && instance.State != externalgrpc.InstanceState_INSTANCE_CREATING { // not all clouds tell states
					g.inherited[instance.ProviderID] = true
				}
			}
			if at, asked := g.givenUp[instance.ProviderID]; asked {
				givenUp[instance.ProviderID] = at
			}
			if !g.leaves(instance, now) {
				live++
			}
		}
		if live < groups[i].Target {
			short[groups[i].ID] = earlier(g.short, groups[i].ID, now)
		}
		for fault, machines := range faults {
			g.creationFailed(groups[i].ID, fault, machines, now)
		}
	}
	g.missing, g.short, g.givenUp, g.faulty = missing, short, givenUp, faulty
	g.backoff.Prune(now)
}

func earlier(since map[string]time.Time, key string, now time.Time) time.Time {
	if at, known := since[key]; known {
		return at
	}
	return now
}

// leaves says whether a machine is being deleted: by what the cloud says of it, or, as that may be old or not be told, as it was
// asked to a short time ago.
func (g *growth) leaves(instance provider.Instance, now time.Time) bool {
	at, asked := g.givenUp[instance.ProviderID]
	return instance.State == externalgrpc.InstanceState_INSTANCE_DELETING || asked && now.Sub(at) < deletionPatience
}

func (g *growth) isLate(group *provider.Group, instance provider.Instance, now time.Time) bool {
	since, missing := g.missing[instance.ProviderID]
	return missing && now.Sub(since) >= provisionTime(group, g.options)
}

func (g *growth) isShort(group *provider.Group, now time.Time) bool {
	since, short := g.short[group.ID]
	return short && now.Sub(since) >= provisionTime(group, g.options)
}

func (g *growth) creationFailed(group string, fault provider.Fault, machines int, now time.Time) {
	reason := backoff.ReasonCreation
	if fault.OutOfResources {
		reason = backoff.ReasonResources
	}
	g.metrics.failedCreations.WithLabelValues(reason).Add(float64(machines))
	g.fail(group, reason, fmt.Sprintf("%d machines could not be created: %s: %s", machines, fault.Code, fault.Message), now)
	if r, asked := g.requests[group]; asked { // these do not come, but that is no success of the request
		if r.nodes -= machines; r.nodes <= 0 {
			delete(g.requests, group)
		} else {
			g.requests[group] = r
		}
	}
}

// shrunk takes note of a node that we have removed from a group.
func (g *growth) shrunk(group string) {
	if r, asked := g.requests[group]; asked {
		r.from--
		g.requests[group] = r
	}
}

// settle ends requests that have come true, or did not in their time. Groups that shrink have removals of ours under way, which
// may have lowered their target sizes already.
func (g *growth) settle(groups []*groupState, shrinks map[string]bool, now time.Time) {
	for _, group := range groups {
		r, asked := g.requests[group.ID]
		_, backsOff := g.backoff.Of(group.ID, now)
		late := len(group.late) > 0 || group.short > 0
		switch {
		case late && backsOff, !late && !asked:
		case late || group.upcoming() > 0 && !now.Before(r.until):
			delete(g.requests, group.ID)
			g.fail(group.ID, backoff.ReasonTimeout, fmt.Sprintf("nodes did not register in %v", provisionTime(group.Group, g.options)), now)
		case group.upcoming() > 0:
		case group.Target <= r.from && shrinks[group.ID]:
		case group.Target <= r.from && len(group.failed) == 0:
			delete(g.requests, group.ID)
			g.fail(group.ID, backoff.ReasonCreation, fmt.Sprintf("the cloud has taken its target size back to %d", group.Target), now)
		default:
			delete(g.requests, group.ID)
			if !backsOff { // what came is no success of what failed beside it
				g.backoff.Succeed(group.ID)
			}
		}
	}
}

// fail makes a group back off.
func (g *growth) fail(group, reason, why string, now time.Time) {
	info := g.backoff.Fail(group, reason, text.Bound(why, mostStatusText), now)
	g.metrics.failedScaleUps.WithLabelValues(reason).Inc()
	klog.InfoS("Node group backs off", "group", group, "reason", reason, "text", info.Text, "for", info.Until.Sub(now))
}

// asked takes note of a request that the cloud has granted.
func (g *growth) asked(group *groupState, nodes int, now time.Time) {
	r, before := g.requests[group.ID]
	if !before {
		r.from = group.Target
	}
	r.nodes += nodes
	r.until = now.Add(provisionTime(group.Group, g.options))
	g.requests[group.ID] = r
}

// cleanUpTime bounds what is asked of the cloud in one loop about machines that do not become nodes.
const cleanUpTime = 30 * time.Second

// cleanUp gives up machines that cannot be created or did not register in time, and what the cloud did not begin to make,
// as far as the minimum of their group allows it.
func (l *leader) cleanUp(ctx context.Context, o *loop) {
	ctx, cancel := context.WithTimeout(ctx, cleanUpTime)
	defer cancel()
	for _, g := range o.states {
		if g.Problem != nil {
			continue // it may have to go as a whole
		}
		l.deleteMachines(ctx, o, g, g.failed, "failed", "cannot be created")
		l.deleteMachines(ctx, o, g, l.growth.doubtless(g), "late", "did not register in time")
		if short := min(g.short, g.Target-g.Min); short > 0 && ctx.Err() == nil {
			err := l.cloud.DecreaseTargetSize(ctx, g.ID, g.Target, short)
			klog.InfoS("Nodes are given up that the cloud has not begun to make", "group", g.ID, "nodes", short, "err", err)
			if err != nil {
				l.metrics.errors.WithLabelValues("cloudProvider").Inc()
				continue
			}
			g.Target -= short
			g.short -= short
			l.metrics.givenUp.WithLabelValues("notBegun").Add(float64(short))
		}
	}
}

// doubtless returns the late machines of a group that are to go. Machines that have been running for longer than this process
// may have nodes by another provider id than the cloud tells: they go only where other machines of the group have nodes.
func (g *growth) doubtless(group *groupState) (machines []provider.Instance) {
	matches := len(group.nodes)+group.starting > 0
	for _, m := range group.late {
		if matches || !g.inherited[m.ProviderID] {
			machines = append(machines, m)
		}
	}
	return machines
}

// deleteMachines deletes machines that are no nodes. The cloud may list them for some time, and is not asked twice meanwhile: its
// target size would be one too small for each time.
func (l *leader) deleteMachines(ctx context.Context, o *loop, g *groupState, machines []provider.Instance, reason, why string) {
	most := min(len(machines), g.Target-g.Min)
	if most <= 0 || ctx.Err() != nil {
		return
	}
	var nodes []*v1.Node
	for _, m := range machines[:most] {
		// Of a machine without a node Cluster Autoscaler gives the provider id as name.
		nodes = append(nodes, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.ProviderID}, Spec: v1.NodeSpec{ProviderID: m.ProviderID}})
		l.growth.givenUp[m.ProviderID] = o.now
	}
	err := l.cloud.DeleteNodes(ctx, g.ID, nodes)
	klog.InfoS("Machines are given up", "group", g.ID, "machines", most, "why", why, "err", err)
	if err != nil {
		l.metrics.errors.WithLabelValues("cloudProvider").Inc()
		if provider.OutcomeUnknown(err) {
			return
		}
		for _, m := range machines[:most] {
			delete(l.growth.givenUp, m.ProviderID)
		}
		return
	}
	g.Target -= most
	l.metrics.givenUp.WithLabelValues(reason).Add(float64(most))
}

// whyHeld returns why a group may not grow now; empty: it may.
func (l *leader) whyHeld(o *loop, g *groupState) string {
	if g.Problem != nil {
		return "its options are not known: " + g.Problem.Error()
	}
	if info, held := l.growth.backoff.Of(g.ID, o.now); held {
		return fmt.Sprintf("backs off for %v: %s", info.Until.Sub(o.now).Round(time.Second), info.Text)
	}
	if g.Options.GetZeroOrMaxNodeScaling() && g.room() > o.newNodes {
		return fmt.Sprintf("grows by all of its %d nodes or none, and %d may be added", g.room(), o.newNodes)
	}
	return o.held
}

// unhealthyCluster returns why no group grows, as Cluster Autoscaler has it: where many nodes are not ready, more of them
// help nobody. Empty: some may.
func (l *leader) unhealthyCluster(now time.Time) string {
	unready := 0
	for _, node := range l.cluster.nodes {
		if !started(node) && !starts(node, l.config.ScaleUp.MaxNodeStartupTime.Duration, now) {
			unready++
		}
	}
	s, all := &l.config.ScaleDown, len(l.cluster.nodes)
	if unready > s.OKTotalUnreadyCount && unready*100 > s.MaxTotalUnreadyPercentage*all {
		return fmt.Sprintf("ClusterUnhealthy: %d of %d nodes are not ready", unready, all)
	}
	return ""
}

// refused says whether a cloud that answered with an error has not done what it was asked for the fault of nobody: the
// group does not back off.
func refused(err error) bool { return errors.Is(err, provider.ErrChanged) }

package autoscaler

import (
	"fmt"
	"time"
)

// whyBlocked returns why a group may not grow now; empty: it may.
func (l *leader) whyBlocked(o *loop, g *groupState) string {
	if g.Problem != nil {
		return "its options are not known: " + g.Problem.Error()
	}
	if info, backsOff := l.arrivals.backoff.Of(g.ID, o.now); backsOff {
		return fmt.Sprintf("backs off for %v: %s", info.Until.Sub(o.now).Round(time.Second), info.Text)
	}
	if g.Options.GetZeroOrMaxNodeScaling() && g.room() > o.newNodes {
		return fmt.Sprintf("grows by all of its %d nodes or none, and %d may be added", g.room(), o.newNodes)
	}
	return o.blockedReason
}

// unhealthyCluster returns why no group grows, as Cluster Autoscaler decides it: if many nodes are not ready, more
// nodes help nobody. Empty: groups may grow.
func (l *leader) unhealthyCluster(now time.Time) string {
	unready := 0
	for _, node := range l.cluster.nodes {
		if !started(node) && !starts(node, nil, l.config.ScaleUp.MaxNodeStartupTime.Duration, now) {
			unready++
		}
	}
	s, all := &l.config.ScaleDown, len(l.cluster.nodes)
	if unready > s.OKTotalUnreadyCount && unready*100 > s.MaxTotalUnreadyPercentage*all {
		return fmt.Sprintf("ClusterUnhealthy: %d of %d nodes are not ready", unready, all)
	}
	return ""
}

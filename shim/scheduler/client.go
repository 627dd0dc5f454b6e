package scheduler

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/guard"
	"loadline.dev/shim/internal/budgets"
	"loadline.dev/shim/internal/nodereader"
	"loadline.dev/shim/leftout"
	"loadline.dev/shim/usage/store"
	"loadline.dev/shim/view"
	"loadline.dev/shim/workload"
)

// viewCycles and viewCycle are those of kube-scheduler's NodeInfos.
type (
	viewCycles = view.Cycles[fwk.NodeInfo, nodereader.Reader]
	viewCycle  = view.Cycle[fwk.NodeInfo]
)

// client is a connection to an engine with one view in it. Profiles of one scheduler see the same cluster, so that
// those with the same engine and view share one.
type client struct {
	key    clientKey
	conn   engine.Conn
	cycles *viewCycles
	scorer loadlinev1.SchedulerExtenderClient
	guard  *guard.Guard
	open   metrics.GaugeMetric
	partly metrics.GaugeMetric // objects that the engine could not read in full
	logger klog.Logger
	on     atomic.Bool // the engine has answered

	users    int    // guarded by clients.mu
	supplied func() // ends the supply of profiles; nil: none. Guarded by clients.mu
	budgeted func() // likewise of disruption budgets
}

type clientKey struct{ address, view string }

// clients are those in use.
type clients struct {
	dial func(address string) (engine.Conn, error)
	now  func() time.Time

	mu    sync.Mutex
	byKey map[clientKey]*client // guarded by mu
}

// acquire returns the client of a key, which may have to be made. Each must be given to release.
func (c *clients) acquire(logger klog.Logger, key clientKey) (*client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if have, ok := c.byKey[key]; ok {
		have.users++
		return have, nil
	}
	conn, err := c.dial(key.address)
	if err != nil {
		return nil, err
	}
	fresh := &client{
		key: key, conn: conn, scorer: loadlinev1.NewSchedulerExtenderClient(conn), users: 1,
		open:   breakerOpen.WithLabelValues(key.address, key.view),
		partly: unreadable.WithLabelValues(key.address, key.view),
	}
	fresh.guard = guard.New(conn, guard.Options{Now: c.now, Changed: fresh.changed})
	fresh.open.Set(0)
	fresh.partly.Set(0)
	fresh.cycles = view.NewCycles[fwk.NodeInfo, nodereader.Reader](conn, key.view,
		view.Events{Synced: fresh.synced, LeftOut: fresh.leftOut, Unreadable: fresh.unreadable})
	if c.byKey == nil {
		c.byKey = map[clientKey]*client{}
	}
	c.byKey[key] = fresh
	if local, ok := conn.(interface{ Version() string }); ok {
		logger = logger.WithValues("engineVersion", local.Version())
	}
	fresh.logger = logger.WithValues("engine", key.address, "view", key.view)
	fresh.logger.Info("Limit-aware scoring begins with the first answer of the engine")
	return fresh, nil
}

// supply has profiles of what pods use read for a client, once for all that use it.
func (c *clients) supply(have *client, api kubernetes.Interface, namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if have.supplied != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	have.supplied = cancel
	have.cycles.TellWorkloads()
	store.Supply(ctx, api, namespace, have.cycles, nil)
}

// supplyBudgets has disruption budgets read for a client, and pods sent with what says whether they block drains, once
// for all that use it.
func (c *clients) supplyBudgets(have *client, api kubernetes.Interface) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if have.budgeted != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	have.budgeted = cancel
	have.cycles.TellBlockers()
	budgets.Supply(ctx, api, have.cycles, nil)
}

// release closes a client that nobody uses any more. Others do not wait for its background sync.
func (c *clients) release(have *client) error {
	c.mu.Lock()
	have.users--
	unused := have.users == 0
	if unused {
		delete(c.byKey, have.key)
		for _, end := range []func(){have.supplied, have.budgeted} {
			if end != nil {
				end()
			}
		}
	}
	c.mu.Unlock()
	if !unused {
		return nil
	}
	have.cycles.Close()
	return have.conn.Close()
}

// rawScores asks for the raw scores of the feasible nodes that are not known yet, and returns those of all, in their
// order. It hands on the scale of an answer. Without scores it returns a reason, and an error where there is one.
func (c *client) rawScores(ctx context.Context, pod *v1.Pod, policy *loadlinev1.ScorePolicy, cycle viewCycle,
	scale func(*loadlinev1.RawScale)) ([]int64, reason, error) {
	if !c.guard.Allow() {
		return nil, reasonBreakerOpen, nil
	}
	kind := view.Kind{Pod: string(sign(pod, policy)), Policy: policy}
	asked := false
	scores, err := c.cycles.RawScores(cycle, kind, func(changes *loadlinev1.Changes, slots []int32) ([]int64, error) {
		asked = true
		defer observeSince(engineSeconds, time.Now())
		answer, err := c.scorer.Score(ctx, &loadlinev1.ScoreRequest{Changes: changes, Slots: slots,
			Pod: view.ScoredPod(pod, policy), Policy: policy, Raw: true})
		if err == nil && answer.GetScale() != nil {
			scale(answer.GetScale())
		}
		return answer.GetRawScores(), err
	})
	switch {
	case errors.Is(err, view.ErrSyncing):
		return nil, reasonSyncing, nil // the background tells the guard
	case err == nil && !asked: // all was known, which says nothing of the engine
		c.guard.NotAsked()
		return scores, "", nil
	}
	why := c.note(err)
	if why == "" && scores == nil {
		why = reasonBadAnswer
	}
	return scores, why, err
}

// sign returns bytes that are equal for pods that a policy scores alike.
func sign(pod *v1.Pod, policy *loadlinev1.ScorePolicy) []byte {
	signed := view.SignPod(pod)
	if policy.GetExpectedUse() != nil {
		signed = append(signed, pod.Namespace+"/"+workload.AnnotationOf(pod)...)
	}
	if policy.GetBlockersTogether() > 0 {
		signed = view.WithProtection(append(signed, pod.Namespace...), pod)
	}
	return signed
}

// leftOut hears of a node that the engine finds invalid: it has the lowest score until it changes.
func (c *client) leftOut(node string, err error) {
	leftOut.Inc()
	c.logger.Error(err, "The engine finds a node invalid; it gets the lowest score until it changes",
		"node", klog.KRef("", node))
}

// unreadable hears of what the engine could not read in full. Such a node counts as left out: it has the lowest score
// if an amount that is scored could not be read.
func (c *client) unreadable(news []leftout.Object, total int64) {
	c.partly.Set(float64(total))
	for _, object := range news {
		if object.Kind == "Node" {
			leftOut.Inc()
		}
		c.logger.Error(nil, "The engine cannot read all of an object; it counts with what could be read until it "+
			"changes", "kind", object.Kind, "object", klog.KRef(object.Namespace, object.Name), "reason", object.Reason)
	}
}

// synced hears how a background sync ended.
func (c *client) synced(err error) { c.note(err) }

// note tells the guard of an outcome, and returns the reason for a skip. The first answer is logged: a connection that
// is configured says nothing of an engine.
func (c *client) note(err error) reason {
	verdict := c.guard.Note(err)
	if verdict == guard.Answered && !c.on.Load() && c.on.CompareAndSwap(false, true) {
		c.logger.Info("Limit-aware scoring is on")
	}
	return reasonOf[verdict]
}

// reasonOf are the reasons for which a cycle is skipped after a question, by verdict.
var reasonOf = [guard.Panicked + 1]reason{
	guard.Answered: "", guard.Invalid: reasonInvalid, guard.Refused: reasonRefused, guard.Busy: reasonExhausted,
	guard.Canceled: reasonCanceled, guard.Late: reasonTimeout, guard.Away: reasonUnavailable, guard.Failed: reasonError,
}

// changed hears that the engine does not answer, or answers again.
func (c *client) changed(open bool, err error) {
	if open {
		c.open.Set(1)
		c.logger.Error(err, "The engine does not answer; scheduling goes on without limit-aware scores")
		return
	}
	c.open.Set(0)
	c.logger.Info("The engine answers again")
}

// Package autoscaler decides with the engine which nodes a cluster needs: which node groups grow, what room is kept
// free, and which nodes go. It watches the cluster, asks a cloud provider for node groups, has the engine plan, and
// acts on the plan. Several may run; one leads.
package autoscaler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/act"
	"loadline.dev/shim/autoscaler/act/drain"
	"loadline.dev/shim/autoscaler/buffers"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/autoscaler/quotas"
	"loadline.dev/shim/autoscaler/tell"
	"loadline.dev/shim/autoscaler/watch"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/view"
)

// Autoscaler is one process. It leads or waits to.
type Autoscaler struct {
	// Clock tells the time of loops and plans. It may be replaced before Run.
	Clock Clock
	// Leases reads and writes the lease. It may be replaced before Run, by one that shares no limit of requests with
	// the rest of the work.
	Leases coordination.LeasesGetter

	config  *config.Configuration
	objects dynamic.Interface
	client  kubernetes.Interface
	conn    engine.Conn
	cloud   cloud.Provider
	metrics *tell.Metrics
	cluster *watch.Cluster
	planner *plan.Planner
	pages   *tell.Pages
	vitals  vitals
}

// New returns an autoscaler for an engine, a cluster and a cloud provider, with the files that its configuration names.
// It does nothing before Run.
func New(options *config.Configuration, files *config.Loaded, conn engine.Conn, client kubernetes.Interface,
	objects dynamic.Interface, asked cloud.Provider, version string) *Autoscaler {
	cluster := watch.New(view.NewForPlanning(conn, options.View), options, files.Fit)
	metrics := tell.NewMetrics(version)
	metrics.GPUResources = engine.GPUResources(conn)
	if options.UpstreamMetrics {
		metrics.ServeUpstream(options.GroupMetrics)
	}
	return &Autoscaler{Clock: systemClock(), Leases: client.CoordinationV1(), config: options, objects: objects,
		client: client, conn: conn, cloud: asked, metrics: metrics, cluster: cluster,
		planner: plan.NewPlanner(loadlinev1.NewAutoscalerClient(conn), cluster, options, files, client),
		pages:   tell.NewPages(options, version)}
}

// Size has groups grow and shrink by how full they are, and by nothing else. It is called before Run.
func (a *Autoscaler) Size(groups []nodegroup.NodeGroup) { a.planner.Sized = groups }

// errLostLease ends a process that does not lead any more: what it knows may be wrong.
var errLostLease = errors.New("lost the lease")

// Run works until the context ends, or the lease is lost, which is an error. Removals under way then keep their marks:
// who leads next finishes them.
func (a *Autoscaler) Run(ctx context.Context) error {
	klog.InfoS("Autoscaler starts", "cloud", a.config.CloudProvider.Kind, "mode", a.config.Mode,
		"decisions", a.config.Decisions)
	if a.config.ScaleDown.UnsafeDeletePodsDespiteDisruptionBudgets {
		klog.Warning("Pods are deleted although their disruption budgets refuse it: " +
			"unsafeDeletePodsDespiteDisruptionBudgets is set")
	}
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWatching()
	if err := a.cluster.Watch(watching, a.client); err != nil {
		return err
	}
	if election := &a.config.LeaderElection; election.LeaderElect {
		err := a.cluster.WatchLease(watching, a.client, a.config.Namespace, election.ResourceName)
		if err != nil {
			return err
		}
	}
	closeServer, err := a.serve()
	if err != nil {
		return err
	}
	defer closeServer()
	if !a.config.LeaderElection.LeaderElect {
		a.lead(ctx, 0)
		return nil
	}
	return a.elect(ctx)
}

// elect waits to lead, and leads. The lease is given up only when all work has ended, which ends as soon as the lease
// cannot be renewed in time.
func (a *Autoscaler) elect(ctx context.Context) error {
	lock, err := a.newLock()
	if err != nil {
		return err
	}
	holding, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	ended := make(chan error, 1)
	leading := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: tell.Component,
		LeaseDuration: a.config.LeaderElection.LeaseDuration.Duration,
		RenewDeadline: a.config.LeaderElection.RenewDeadline.Duration,
		RetryPeriod:   a.config.LeaderElection.RetryPeriod.Duration,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(lease context.Context) {
				close(leading)
				work, cancel := context.WithCancel(lease)
				defer cancel()
				defer context.AfterFunc(ctx, cancel)()
				ended <- a.leadWithLease(work, lock)
				giveUp()
			},
			OnStoppedLeading: func() {},
			OnNewLeader:      func(identity string) { a.pages.Holder.Store(&identity) },
		},
	})
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() {
		select {
		case <-leading: // the lease is given up behind the work
		default:
			giveUp()
		}
	})()
	elector.Run(holding)
	select {
	case <-leading:
	default:
		return nil // it never led
	}
	err = <-ended
	release(context.WithoutCancel(ctx), lock)
	if ctx.Err() == nil && err == nil {
		err = errLostLease
	}
	return err
}

func (a *Autoscaler) leadWithLease(ctx context.Context, lock resourcelock.Interface) error {
	lease, _, err := lock.Get(ctx)
	if err != nil {
		return fmt.Errorf("lease: %w", err)
	}
	a.lead(ctx, int64(lease.LeaderTransitions)+1)
	return nil
}

// lead works loop by loop until the context ends. The term is larger than that of each leader before, if there is a
// lease to tell.
func (a *Autoscaler) lead(ctx context.Context, term int64) {
	term, listed := a.waitReady(ctx, term)
	if !listed {
		return
	}
	klog.InfoS("Leads", "term", term)
	a.vitals.leads.Store(true)
	a.metrics.Set(tell.Leader, 1)
	a.loops(ctx, term)
	a.metrics.Set(tell.Leader, 0)
	a.vitals.leads.Store(false)
}

// waitReady waits until the cluster is listed, and returns a term that is not below one that a node is marked with;
// false: the context has ended before.
func (a *Autoscaler) waitReady(ctx context.Context, term int64) (int64, bool) {
	for !a.cluster.Ready() {
		select {
		case <-ctx.Done():
			return 0, false
		case <-time.After(100 * time.Millisecond):
		}
	}
	a.cluster.AskRelease(ctx, a.client.Discovery())
	if err := a.cluster.Apply(); err != nil {
		klog.ErrorS(err, "The cluster is not known as a whole")
	}
	for _, node := range a.cluster.Nodes {
		if mark, ours := drain.MarkOf(node); ours {
			term = max(term, min(mark.Term, drain.MostTerm-1)+1)
		}
	}
	return term, ctx.Err() == nil
}

func (a *Autoscaler) loops(ctx context.Context, term int64) {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedv1.EventSinkImpl{Interface: a.client.CoreV1().Events("")})
	defer broadcaster.Shutdown()
	t := tell.New(a.cluster, a.config, a.client, broadcaster.NewRecorder(scheme.Scheme, tell.EventSource(a.config)),
		a.metrics, term)
	t.Line.Client = loadlinev1.NewSchedulerExtenderClient(a.conn)
	t.Loads = tell.DescribeView(loadlinev1.NewClusterStateClient(a.conn), a.config.View)
	l := newLeader(a.planner, t, a.client, a.cloud, a.Clock)
	l.missing = &a.vitals.missing
	l.actor.Keeper = act.KeeperOf(a.config, a.objects)
	if a.config.Slack.CapacityBuffers && a.config.Decides(config.SlackDecision) {
		l.buffers = buffers.New(a.objects, a.client.Discovery(), a.cluster.Handler(buffers.Kind))
	}
	if a.config.ScaleUp.CapacityQuotas {
		a.planner.Quotas = quotas.New(a.objects)
	}
	a.pages.Leader.Store(t)
	defer a.pages.Leader.Store(nil)
	defer l.actor.Actuator.Wait()
	defer l.actor.Soft.Wait()
	defer l.actor.Costs.Wait()
	_ = a.cluster.View.Drop(ctx) // what an engine that lives on remembers of another leader
	a.planner.Recall(ctx)
	ticker := time.NewTicker(a.config.ScanInterval.Duration)
	defer ticker.Stop()
	for {
		began := time.Now()
		a.vitals.loopBegan.Store(began.UnixNano())
		err := l.once(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			klog.ErrorS(plan.Bounded(err), "Loop ended without all of its decisions")
		default:
			a.vitals.planned.Store(true)
		}
		if !pause(ctx, ticker.C, l.actor.Actuator.Freed(), l.batchWait, began) {
			return
		}
	}
}

// betweenLoops is the least time from the begin of a loop to that of the next one, where a removal has ended.
const betweenLoops = 2 * time.Second

// pause waits until the next loop is due: at the next tick; when growth has waited for further pods for so long, if it
// does; or, where nodes went meanwhile, soon after the last loop, so that their places do not stay empty. It returns
// false when the context ends.
func pause(ctx context.Context, tick <-chan time.Time, freed <-chan struct{}, batch time.Duration,
	began time.Time) bool {
	var batchEnds <-chan time.Time
	if batch > 0 {
		batchEnds = time.After(batch)
	}
	select {
	case <-ctx.Done():
		return false
	case <-tick:
		return true
	case <-batchEnds:
		return true
	case <-freed:
	}
	select {
	case <-ctx.Done():
		return false
	case <-tick:
	case <-batchEnds:
	case <-time.After(time.Until(began.Add(betweenLoops))):
	}
	return true
}

package watch

import (
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// freshness says how old the cluster is that the watches report. Two things show it:
//
// This process renews its lease every few seconds, and watches it. All that arrives this way is as old as the last
// renewal that the watch has reported: the connection may be dead, or the API server's cache behind.
//
// A kind that cannot be listed or watched any more, for want of rights or because the API server refuses, is as old as
// the first such error, until something newer is reported of it or no further error occurs.
//
// Safe for concurrent use.
type freshness struct {
	mu     sync.Mutex
	heard  time.Time             // when the watch last reported a renewal; zero: it never did; guarded by mu
	lag    time.Duration         // how old that renewal was then; guarded by mu
	broken map[string]brokenKind // guarded by mu
	// refused are the optional kinds that may not be listed, and never were; guarded by mu.
	refused map[string]bool
}

func newFreshness() *freshness {
	return &freshness{broken: map[string]brokenKind{}, refused: map[string]bool{}}
}

// brokenKind is a kind whose list or watch failed.
type brokenKind struct {
	since   time.Time
	last    time.Time     // failure
	version string        // the last one before
	current func() string // the last one now
}

// WatchLease follows the lease that this process renews while it leads. It needs the right to list and watch it.
func (f *freshness) WatchLease(ctx context.Context, client kubernetes.Interface, namespace, name string) error {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("metadata.name", name).String()
		}))
	hear := func(object any) {
		if lease, ok := object.(*coordinationv1.Lease); ok && lease.Spec.RenewTime != nil {
			f.hear(lease.Spec.RenewTime.Time)
		}
	}
	informer := factory.Coordination().V1().Leases().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: hear, UpdateFunc: func(_, object any) { hear(object) }})
	if err == nil {
		err = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
			if !apierrors.IsForbidden(err) { // which is reported once, as a missing right
				cache.DefaultWatchErrorHandler(ctx, r, err)
			}
		})
	}
	if err == nil {
		factory.StartWithContext(ctx)
	}
	return err
}

func (f *freshness) hear(renewed time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heard = time.Now()
	f.lag = max(0, f.heard.Sub(renewed)) // below 0: another process, with a clock that is ahead, has renewed it
}

// watchErrors hears of errors of an informer that has not started. An optional kind that may not be listed is reported
// once, as a missing right, and makes nothing old.
func (f *freshness) watchErrors(kind string, informer cache.SharedIndexInformer) error {
	return informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		if isOptional(kind) && apierrors.IsForbidden(err) && informer.LastSyncResourceVersion() == "" {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.refused[kind] = true
			return
		}
		cache.DefaultWatchErrorHandler(ctx, r, err)
		f.fail(kind, informer.LastSyncResourceVersion)
	})
}

// isRefused says whether plans are made without a kind.
func (f *freshness) isRefused(kind string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refused[kind]
}

func (f *freshness) fail(kind string, current func() string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, b := time.Now(), f.broken[kind]
	if b.current == nil || b.version != current() || now.Sub(b.last) > retriesWithin {
		b = brokenKind{since: now, version: current(), current: current}
	}
	b.last = now
	f.broken[kind] = b
}

// retriesWithin is within what time a list or watch that has failed is tried again, for certain. One that does not fail
// again works, though nothing newer may have been reported.
const retriesWithin = 2 * time.Minute

// viewAge returns how old the cluster is at least, as it is reported now.
func (f *freshness) viewAge() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	var age time.Duration
	if !f.heard.IsZero() {
		age = time.Since(f.heard) + f.lag
	}
	for kind, b := range f.broken {
		if b.current() != b.version || time.Since(b.last) > retriesWithin {
			delete(f.broken, kind)
			continue
		}
		age = max(age, time.Since(b.since))
	}
	return age
}

package extender

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/guard"
)

const (
	// gatherTime is how long events are gathered before they are sent in the background. Requests do not wait for
	// it: each brings the engine up to date first.
	gatherTime = 50 * time.Millisecond
	// checkTime is how often an engine that is well is asked how it is, and retryTime one that is not.
	checkTime = time.Second
	retryTime = 200 * time.Millisecond
	// refreshTimeout bounds one refresh: a full list of 15,000 nodes takes seconds.
	refreshTimeout = 30 * time.Second
)

// refresher keeps the engine up to date in the background, and finds out when it lost the view or is gone.
type refresher struct {
	state   state
	engine  loadlinev1.ClusterStateClient
	view    string
	guard   *guard.Guard
	metrics *metrics

	wake    chan struct{} // holds at most one
	synced  atomic.Bool   // the engine has the whole cluster, as far as we know
	ready   chan struct{} // closed after the first full sync
	failing bool          // the last refresh failed; used by run only
}

// changed says that there is something to send, or to find out. Never blocks.
func (r *refresher) changed() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// suspect says that the engine seems to be gone, or to have lost the view. Until that is settled nobody asks it, so
// that a full list on its way is not disturbed.
func (r *refresher) suspect() {
	r.synced.Store(false)
	r.changed()
}

// run refreshes after changes, at least every checkTime, until ctx ends. It calls `round` before each refresh.
func (r *refresher) run(ctx context.Context, round func()) {
	for ctx.Err() == nil {
		round()
		began := time.Now()
		wait := checkTime
		if !r.refresh(ctx) {
			wait = retryTime
		}
		r.pause(ctx, began, wait)
	}
}

// pause returns after `wait`, or after changes, but not before gatherTime has passed since the last refresh began.
func (r *refresher) pause(ctx context.Context, began time.Time, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return
	case <-timer.C:
		return
	case <-r.wake:
	}
	gather := time.NewTimer(gatherTime - time.Since(began))
	defer gather.Stop()
	select {
	case <-ctx.Done():
	case <-gather.C:
	}
}

// refresh sends the changes, or a full list if the engine has lost the view, and returns whether the engine is well.
func (r *refresher) refresh(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	began := time.Now()
	var held *loadlinev1.ViewState
	err := r.state.Ask(ctx, func(at *loadlinev1.Changes) (err error) {
		held, err = r.describe(ctx, at)
		return err
	})
	if ctx.Err() != nil && err == nil {
		err = ctx.Err()
	}
	result := "ok"
	if err != nil {
		result = "error"
	}
	r.metrics.syncs.WithLabelValues(result).Observe(time.Since(began).Seconds())
	set(r.metrics.engineUp, err == nil)
	if err != nil {
		r.failed(ctx, err)
		return false
	}
	r.succeeded(held)
	return true
}

// describe returns what the engine holds of the view, or an error that tells it has lost it.
func (r *refresher) describe(ctx context.Context, at *loadlinev1.Changes) (*loadlinev1.ViewState, error) {
	response, err := r.engine.Describe(ctx, &loadlinev1.DescribeRequest{})
	if err != nil {
		return nil, err
	}
	r.metrics.failedChecks.Set(float64(response.GetFailedChecks()))
	for _, held := range response.GetViews() {
		if held.GetName() == r.view && held.GetEpoch() == at.GetEpoch() && held.GetRevision() == at.GetRevision() {
			return held, nil
		}
	}
	return nil, status.Errorf(codes.FailedPrecondition,
		"the engine does not hold view %q at the revision it was brought to", r.view)
}

func (r *refresher) failed(ctx context.Context, err error) {
	r.synced.Store(false)
	if !r.failing || klog.V(4).Enabled() {
		klog.FromContext(ctx).Error(err, "The engine is not up to date; answers are neutral until it is")
	}
	r.failing = true
}

func (r *refresher) succeeded(held *loadlinev1.ViewState) {
	r.guard.Note(nil)
	r.metrics.viewNodes.Set(float64(held.GetNodes()))
	r.metrics.viewPods.Set(float64(held.GetPods()))
	r.metrics.clamped.Set(float64(held.GetClampedAmounts()))
	r.failing = false
	if !r.synced.Swap(true) {
		klog.InfoS("The engine is up to date", "view", r.view, "nodes", held.GetNodes(), "pods", held.GetPods())
	}
	select {
	case <-r.ready:
	default:
		close(r.ready)
	}
}

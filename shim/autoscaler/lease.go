package autoscaler

import (
	"context"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"loadline.dev/shim/autoscaler/plan"
)

// lease is a lease that explains why it is not there.
type lease struct{ *resourcelock.LeaseLock }

// Create creates the lease. Without the right to, the error names the manifest that creates it.
func (l lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return plan.WhyMissing(l.LeaseLock.Create(ctx, record), "Lease", l.LeaseMeta.Namespace, l.LeaseMeta.Name,
		"manifests/autoscaler/10-rbac.yaml")
}

// newLock returns the lease as this process takes it, under an identity that no other process has.
func (a *Autoscaler) newLock() (resourcelock.Interface, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	return lease{&resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: a.config.Namespace, Name: a.config.LeaderElection.ResourceName},
		Client:     a.Leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}}, nil
}

// releaseTime bounds how long a process that ends tries to give up its lease.
const releaseTime = 10 * time.Second

// release lets another process lead at once. One that has taken the lease meanwhile keeps it.
func release(ctx context.Context, lock resourcelock.Interface) {
	ctx, cancel := context.WithTimeout(ctx, releaseTime)
	defer cancel()
	held, _, err := lock.Get(ctx)
	if err == nil && held.HolderIdentity == lock.Identity() {
		now := metav1.Now()
		err = lock.Update(ctx, resourcelock.LeaderElectionRecord{LeaderTransitions: held.LeaderTransitions,
			LeaseDurationSeconds: 1, AcquireTime: now, RenewTime: now})
	}
	if err != nil {
		klog.ErrorS(err, "The lease cannot be given up: another process leads when it has run out")
	}
}

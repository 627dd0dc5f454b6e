package autoscaler

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"loadline.dev/shim/autoscaler/config"
)

// The lease of the manifests is empty, and the first process takes it without a right to create any.
func TestAnEmptyLeaseIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := config.Default()
		client := fake.NewClientset(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: options.Namespace, Name: options.LeaderElection.ResourceName}})
		client.PrependReactor("create", "leases", forbid)
		lock, err := (&Autoscaler{Leases: client.CoordinationV1(), config: &options}).newLock()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		leads := false
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{Lock: lock,
			LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
			Callbacks: leaderelection.LeaderCallbacks{OnStoppedLeading: func() {},
				OnStartedLeading: func(context.Context) { leads = true; cancel() }}})
		synctest.Wait()
		if !leads {
			t.Error("nobody leads after a minute")
		}
	})
}

// forbid refuses what is asked for.
func forbid(action clienttesting.Action) (bool, runtime.Object, error) {
	return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", errors.New("no right"))
}

// Without the lease of the manifests the error names the manifest.
func TestAMissingLeaseNamesItsManifest(t *testing.T) {
	options := config.Default()
	client := fake.NewClientset()
	client.PrependReactor("create", "leases", forbid)
	lock, err := (&Autoscaler{Leases: client.CoordinationV1(), config: &options}).newLock()
	if err != nil {
		t.Fatal(err)
	}
	err = lock.Create(t.Context(), resourcelock.LeaderElectionRecord{})
	if !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(),
		"Lease kube-system/loadline-autoscaler is missing, and may not be created: apply manifests/autoscaler/10-rbac.yaml") {
		t.Error(err)
	}
}

package watch

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// All news of watches are as old as the last renewal of the lease that they have reported.
func TestAgeByTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, f := fake.NewClientset(), newFreshness()
		leases := client.CoordinationV1().Leases("kube-system")
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "loadline"}}
		renew := func(at time.Time) {
			lease.Spec.RenewTime = &metav1.MicroTime{Time: at}
			if _, err := leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		if _, err := leases.Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := f.WatchLease(t.Context(), client, "kube-system", "loadline"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		expectAge(t, f, "of one that is not renewed yet", 0)
		renew(time.Now())
		expectAge(t, f, "just renewed", 0)
		time.Sleep(50 * time.Second)
		expectAge(t, f, "no renewal is told", 50*time.Second)
		renew(time.Now().Add(-30 * time.Second))
		expectAge(t, f, "an old renewal is told", 30*time.Second)
		time.Sleep(5 * time.Second)
		expectAge(t, f, "later", 35*time.Second)
		renew(time.Now().Add(time.Hour))
		expectAge(t, f, "a clock that is ahead", 0)
	})
}

// A kind that cannot be listed is as old as the first error, until something newer is reported of it.
func TestAgeByErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, version := newFreshness(), "7"
		current := func() string { return version }
		f.fail("Pod", current)
		time.Sleep(10 * time.Second)
		f.fail("Pod", current)
		time.Sleep(10 * time.Second)
		f.fail("Node", func() string { return "" }) // it never was listed
		expectAge(t, f, "the second error", 20*time.Second)
		version = "8"
		expectAge(t, f, "pods are told again, nodes are not", 0)
		time.Sleep(5 * time.Second)
		expectAge(t, f, "nodes are still not listed", 5*time.Second)
		f.fail("Pod", current)
		time.Sleep(time.Second)
		f.fail("Pod", current)
		expectAge(t, f, "pods fail again, later than nodes", 6*time.Second)
		time.Sleep(retriesWithin + time.Second)
		expectAge(t, f, "neither fails again", 0)
	})
}

func TestWatchErrorsAreHeard(t *testing.T) {
	client, f := fake.NewClientset(), newFreshness()
	client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("forbidden")
	})
	factory := informers.NewSharedInformerFactory(client, 0)
	if err := f.watchErrors("Pod", factory.Core().V1().Pods().Informer()); err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(t.Context())
	for f.viewAge() == 0 { // until the test times out
		time.Sleep(time.Millisecond)
	}
}

func expectAge(t *testing.T, f *freshness, what string, want time.Duration) {
	t.Helper()
	if age := f.viewAge(); age != want {
		t.Errorf("%s: age %v, want %v", what, age, want)
	}
}

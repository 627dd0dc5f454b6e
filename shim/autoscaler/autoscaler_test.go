package autoscaler

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// A process that ends gives up its own lease, with the number of leaders before as it is, and not that of another one.
func TestRelease(t *testing.T) {
	for holder, want := range map[string]string{"us": "", "another": "another"} {
		now := metav1.NewMicroTime(time.Unix(1_700_000_000, 0))
		client := fake.NewClientset(
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "lease"},
				Spec: coordinationv1.LeaseSpec{
					HolderIdentity: &holder, LeaseDurationSeconds: new(int32(15)), LeaseTransitions: new(int32(7)),
					AcquireTime: &now, RenewTime: &now}})
		release(t.Context(),
			&resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "lease"},
				Client: client.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: "us"}})
		lease, err := client.CoordinationV1().Leases("kube-system").Get(t.Context(), "lease", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := *lease.Spec.HolderIdentity; got != want || *lease.Spec.LeaseTransitions != 7 {
			t.Errorf("held by %q: it is held by %q then, after %d leaders, want %q and 7",
				holder, got, *lease.Spec.LeaseTransitions, want)
		}
	}
}

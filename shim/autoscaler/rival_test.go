package autoscaler

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"loadline.dev/shim/autoscaler/config"
)

// upstreamLeads has a Cluster Autoscaler lead until the context ends. Its clock is an hour behind.
func (b *bench) upstreamLeads(ctx context.Context) {
	b.t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: upstreamLease},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: new("ca-0"), LeaseDurationSeconds: new(int32(15))}}
	renew := func() *coordinationv1.Lease {
		lease = lease.DeepCopy()
		lease.Spec.RenewTime = new(metav1.NewMicroTime(time.Now().Add(-time.Hour)))
		return lease
	}
	leases := b.client.CoordinationV1().Leases("kube-system")
	if _, err := leases.Create(ctx, renew(), metav1.CreateOptions{}); err != nil {
		b.t.Fatal(err)
	}
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(2 * time.Second):
				_, _ = leases.Update(ctx, renew(), metav1.UpdateOptions{})
			}
		}
	}()
}

// While a Cluster Autoscaler leads, the groups that its status names are left alone, and all of them if it names none.
// When its lease is not renewed any more, they are not.
func TestGroupsOfClusterAutoscalerAreLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		status      string
		while, then []string
	}{
		"OneOfTwo": {"time: x\nnodeGroups:\n- name: cheap\n", []string{"dear+1"}, []string{"dear+1", "cheap+1"}},
		"NotTold":  {"", nil, []string{"cheap+1", "cheap+1"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := growing(t, map[string]*skyGroup{"cheap": {max: 10, cpu: "4", price: 0.1},
					"dear": {max: 10, cpu: "4", price: 0.3}}, nil)
				if c.status != "" {
					if _, err := b.client.CoreV1().ConfigMaps("kube-system").Create(t.Context(), &v1.ConfigMap{
						ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: upstreamStatus},
						Data:       map[string]string{"status": c.status}}, metav1.CreateOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				leads, ends := context.WithCancel(t.Context())
				b.upstreamLeads(leads)
				b.addPending("web", 1, "3")
				b.run(time.Minute)
				if got := b.sky.requests(); !slices.Equal(got, c.while) {
					t.Errorf("asked for %v beside Cluster Autoscaler, want %v", got, c.while)
				}
				if s := b.readStatus(); !slices.Contains(s.Warnings, "node group cheap is left as it is: Cluster Autoscaler "+
					"acts on it: ca-0 holds lease kube-system/cluster-autoscaler") {
					t.Errorf("warnings %q", s.Warnings)
				}
				ends()
				b.run(30 * time.Second) // the lease runs for 15 s, and is looked at every 10 s
				b.addPending("late", 1, "3")
				b.run(30 * time.Second)
				if got := b.sky.requests(); !slices.Equal(got, c.then) {
					t.Errorf("asked for %v when it does not lead any more, want %v", got, c.then)
				}
				b.end()
			})
		})
	}
}

// Beside one that decides growth alone, nodes are removed, and a warning says what that one must not do. Without the
// right to read its lease nothing is deferred; with an error nothing is done.
func TestBesideClusterAutoscaler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := growing(t, map[string]*skyGroup{"cheap": {max: 10, cpu: "4", target: 1, price: 0.1}},
			func(c *config.Configuration) { c.Decisions = []string{config.ScaleDownDecision} })
		b.upstreamLeads(t.Context())
		b.run(20 * time.Second)
		if s := b.readStatus(); len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "--scale-down-enabled=false") {
			t.Errorf("warnings %q", s.Warnings)
		}
		b.run(15 * time.Minute)
		b.expectRequests("delete sky://cheap1")
		b.end()
	})
	for _, forbidden := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := growing(t, map[string]*skyGroup{"cheap": {max: 10, cpu: "4", price: 0.1}}, nil)
			failure := apierrors.NewInternalError(context.DeadlineExceeded)
			if forbidden {
				failure = apierrors.NewForbidden(coordinationv1.Resource("leases"), upstreamLease, nil)
			}
			b.client.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, failure
			})
			b.addPending("web", 1, "3")
			_ = b.leader.once(t.Context())
			if got := b.sky.requests(); (len(got) == 1) != forbidden {
				t.Errorf("asked for %v; the lease may not be read: %v", got, forbidden)
			}
			b.end()
		})
	}
}

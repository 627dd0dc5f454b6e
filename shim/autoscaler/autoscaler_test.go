package autoscaler

import (
	"context"
	"testing"
	"testing/synctest"
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

// The next loop begins with the tick, or soon after the last one began when a removal has ended, and never with the
// end.
func TestPause(t *testing.T) {
	const interval = 10 * time.Second
	for _, c := range []struct {
		name         string
		freed, stops time.Duration // after the loop began; 0: never
		batch        time.Duration // for which growth waits
		want         time.Duration
		goesOn       bool
	}{
		{name: "nothing ends", want: interval, goesOn: true},
		{name: "ended while the loop ran", freed: time.Nanosecond, want: betweenLoops, goesOn: true},
		{name: "ended soon", freed: time.Second, want: betweenLoops, goesOn: true},
		{name: "ended later", freed: 5 * time.Second, want: 5 * time.Second, goesOn: true},
		{name: "growth waits", batch: 900 * time.Millisecond, want: 900 * time.Millisecond, goesOn: true},
		{name: "growth waits and places are free", batch: 1500 * time.Millisecond, freed: time.Second,
			want: 1500 * time.Millisecond, goesOn: true},
		{name: "growth waits longer", batch: time.Minute, want: interval, goesOn: true},
		{name: "stopped", stops: 3 * time.Second, want: 3 * time.Second},
		{name: "stopped before places are filled", freed: time.Second, stops: 1500 * time.Millisecond,
			want: 1500 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				began, freed := time.Now(), make(chan struct{}, 1)
				if c.freed > 0 {
					time.AfterFunc(c.freed, func() { freed <- struct{}{} })
				}
				if c.stops > 0 {
					time.AfterFunc(c.stops, cancel)
				}
				if goesOn := pause(ctx, time.After(interval), freed, c.batch, began); goesOn != c.goesOn {
					t.Errorf("goes on: %v", goesOn)
				}
				if took := time.Since(began); took != c.want {
					t.Errorf("after %v, want %v", took, c.want)
				}
			})
		})
	}
}

// A wall clock that is set changes nothing while timers run, and is followed when none does.
func TestPlanClock(t *testing.T) {
	begin := time.Date(2026, 2, 17, 9, 0, 0, 0, time.UTC)
	for name, set := range map[string]time.Duration{"Ahead": time.Hour, "Back": -time.Hour, "NotAtAll": 0} {
		t.Run(name, func(t *testing.T) {
			passed, wall := 100*time.Second, time.Duration(0)
			c := newPlanClock(Clock{Now: func() time.Time { return begin.Add(passed - 100*time.Second + wall) },
				Passed: func() time.Duration { return passed }})
			expect := func(want time.Duration) {
				t.Helper()
				if got := c.now().Sub(begin); got != want {
					t.Errorf("%v after the begin it is %v", want, got)
				}
			}
			passed += 10 * time.Second
			expect(10 * time.Second)
			wall = set
			c.look(true)
			passed += 5 * time.Second
			expect(15 * time.Second)
			c.look(false)
			expect(15*time.Second + set)
			passed += time.Second
			expect(16*time.Second + set)
		})
	}
}

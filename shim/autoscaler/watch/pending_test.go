package watch

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The API server's times are whole seconds of another clock: what a pod says of itself may be early or late by one.
func TestWhenAPodCame(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	at := func(ago time.Duration) metav1.Time { return metav1.NewTime(now.Add(-ago)) }
	for name, c := range map[string]struct {
		created, refused metav1.Time
		seen             time.Duration // ago; 0: not before
		want             time.Duration // ago
	}{
		"JustCreated":       {created: at(0), want: 0},
		"WithinASecond":     {created: at(2 * time.Second), want: time.Second},
		"SeenBefore":        {created: at(2 * time.Second), seen: 1500 * time.Millisecond, want: 1500 * time.Millisecond},
		"RefusedLater":      {created: at(time.Hour), refused: at(3 * time.Second), want: 2 * time.Second},
		"AClockThatIsAhead": {created: at(-time.Hour), want: 0},
	} {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", CreationTimestamp: c.created},
			Status: v1.PodStatus{Conditions: []v1.PodCondition{{Type: v1.PodScheduled, LastTransitionTime: c.refused}}}}
		b := &batch{}
		if c.seen > 0 {
			b.seen = map[types.UID]time.Time{"u": now.Add(-c.seen)}
		}
		if got := now.Sub(b.cameAt(pod, now)); got != c.want {
			t.Errorf("%s: came %v ago, want %v", name, got, c.want)
		}
	}
}

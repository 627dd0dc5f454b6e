package watch

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/internal/enginetest"
	"loadline.dev/shim/view"
)

// Pods that come and go leave nothing behind: neither where nobody leads, nor while loops end before they look at pods.
func TestPodsThatComeAndGoAreForgotten(t *testing.T) {
	conn, err := engine.Open("inprocess://" + enginetest.Library(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	options := config.Default()
	c := New(view.NewForPlanning(conn, "test"), &options, nil)
	comeAndGo := func() {
		for i := range 1000 {
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint(i)}}
			c.take(KindPod, pod, pod)
			c.take(KindPod, pod, gone{pod})
		}
	}
	stays := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stays"}}
	c.take(KindPod, stays, stays)
	comeAndGo()
	if len(c.inbox.notes) != 1 {
		t.Errorf("a standby remembers %d objects, want 1", len(c.inbox.notes))
	}
	if err := c.Apply(); err != nil {
		t.Fatal(err)
	}
	comeAndGo()
	c.take(KindPod, stays, gone{stays})
	c.ForgetGone()
	if len(c.inbox.notes) != 1 {
		t.Errorf("a leader without a cloud remembers %d objects, want the one that it has to take back", len(c.inbox.notes))
	}
	if err := c.Apply(); err != nil || len(c.Pods) != 0 {
		t.Errorf("pods %v, %v", c.Pods, err)
	}
}

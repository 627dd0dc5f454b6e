package autoscaler

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
	c := newCluster(view.NewForPlanning(conn, "test"), &options)
	comeAndGo := func() {
		for i := range 1000 {
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint(i)}}
			c.take(kindPod, pod, pod)
			c.take(kindPod, pod, gone{pod})
		}
	}
	stays := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stays"}}
	c.take(kindPod, stays, stays)
	comeAndGo()
	if len(c.notes) != 1 {
		t.Errorf("a standby remembers %d objects, want 1", len(c.notes))
	}
	if err := c.apply(); err != nil {
		t.Fatal(err)
	}
	comeAndGo()
	c.take(kindPod, stays, gone{stays})
	c.forgetGone()
	if len(c.notes) != 1 {
		t.Errorf("a leader without a cloud remembers %d objects, want the one that it has to take back", len(c.notes))
	}
	if err := c.apply(); err != nil || len(c.pods) != 0 {
		t.Errorf("pods %v, %v", c.pods, err)
	}
}

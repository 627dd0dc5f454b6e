package autoscaler

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"loadline.dev/shim/autoscaler/config"
)

const stateName = "loadline-autoscaler-state"

// restart is a new process, which leads after the old one.
func (b *bench) restart() { b.start(b.config, b.teller.Term+1) }

func (b *bench) state() *v1.ConfigMap {
	b.t.Helper()
	object, err := b.client.CoreV1().ConfigMaps("kube-system").Get(b.t.Context(), stateName, metav1.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	return object
}

// A group backs off over the end of a leader, and twice as long the second time.
func TestANewLeaderGoesOnWithBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := growing(t, map[string]*skyGroup{"g": {max: 10, cpu: "4", price: 1, fails: errors.New("out of quota")}}, nil)
		b.addPending("web", 1, "3")
		b.run(2 * time.Minute)
		b.restart()
		b.run(2*time.Minute + 50*time.Second)
		if got := b.sky.requests(); !slices.Equal(got, []string{"g+1"}) {
			t.Fatalf("asked for %v in 5 minutes, want g+1 once", got)
		}
		if up := b.readStatus().NodeGroups[0].ScaleUp; up.Status != "Backoff" || up.BackoffInfo == nil ||
			up.BackoffInfo.ErrorCode != "apiError" || up.BackoffInfo.ErrorMessage != "out of quota" {
			t.Errorf("status %+v", up)
		}
		b.run(20 * time.Second)
		b.restart()
		b.run(9*time.Minute + 30*time.Second)
		if got := b.sky.requests(); len(got) != 2 {
			t.Errorf("asked for %v in 15 minutes, want it twice", got)
		}
		b.run(time.Minute)
		if got := b.sky.requests(); len(got) != 3 {
			t.Errorf("asked for %v in 16 minutes, want it three times", got)
		}
		b.end()
	})
}

// Machines that do not register are late as if the leader had never changed.
func TestANewLeaderGoesOnWithLateMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := growing(t, map[string]*skyGroup{"g": {max: 10, cpu: "4", price: 1}}, nil)
		b.sky.delay = 0 // no machine becomes a node
		b.addPending("web", 1, "3")
		for range 3 {
			b.run(4 * time.Minute)
			b.restart()
		}
		b.run(2*time.Minute + 50*time.Second)
		if got := b.sky.requests(); !slices.Equal(got, []string{"g+1"}) {
			t.Fatalf("asked for %v, want g+1 alone", got)
		}
		b.run(30 * time.Second)
		if got := b.sky.requests(); !slices.Equal(got, []string{"g+1", "delete sky://g1"}) {
			t.Errorf("asked for %v, want the machine deleted after 15 minutes", got)
		}
		if up := b.readStatus().NodeGroups[0].ScaleUp; up.BackoffInfo == nil || up.BackoffInfo.ErrorCode != "timeout" {
			t.Errorf("status %+v", up)
		}
		b.end()
	})
}

// If a node vanishes while nobody leads, its machine is not late: a new leader knows that it had one.
func TestANewLeaderKnowsWhichMachinesHadNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := growing(t, map[string]*skyGroup{"g": {max: 10, target: 3, cpu: "4", price: 1}}, func(c *config.Configuration) {
			c.Decisions = []string{config.ScaleUpDecision}
		})
		b.run(time.Minute)
		if err := b.client.CoreV1().Nodes().Delete(t.Context(), "g2", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		b.restart()
		b.run(40 * time.Minute)
		if got := b.sky.requests(); len(got) != 0 {
			t.Errorf("asked for %v", got)
		}
		if counts := b.readStatus().NodeGroups[0].Health.NodeCounts; counts.LongUnregistered != 1 {
			t.Errorf("counts %+v", counts)
		}
		b.end()
	})
}

// No node is removed for some time after a group has grown, whoever leads then.
func TestANewLeaderGoesOnWithCoolDowns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := growing(t, map[string]*skyGroup{"g": {max: 10, cpu: "4", price: 1}}, nil)
		b.addPending("web", 1, "3")
		b.run(time.Minute)
		b.restart()
		b.run(time.Minute)
		coolsDown := func() bool { return gaugeOf(t, b, "loadline_autoscaler_scale_down_in_cooldown", "") == 1 }
		if !coolsDown() {
			t.Error("no cool-down two minutes after a group has grown")
		}
		b.run(9 * time.Minute)
		if coolsDown() {
			t.Error("a cool-down eleven minutes after a group has grown")
		}
		b.end()
	})
}

// The ConfigMap is written when something has changed, by who acts.
func TestTheStateIsWrittenWhenItChanges(t *testing.T) {
	writes := func(b *bench) (count int) {
		for _, action := range b.client.Actions() {
			named, ok := action.(interface{ GetObject() runtime.Object })
			if ok && action.GetResource().Resource == "configmaps" && named.GetObject().(*v1.ConfigMap).Name == stateName {
				count++
			}
		}
		return count
	}
	for mode, want := range map[string]int{config.Act: 1, config.Observe: 0} {
		synctest.Test(t, func(t *testing.T) {
			b := growing(t, map[string]*skyGroup{"g": {max: 10, target: 1, cpu: "4", price: 1}}, func(c *config.Configuration) {
				c.Mode, c.Decisions = mode, []string{config.ScaleUpDecision}
			})
			b.run(5 * time.Minute)
			if got := writes(b); got != want {
				t.Errorf("mode %s: written %d times, want %d", mode, got, want)
			}
			b.addPending("web", 2, "3") // one of them fits on g1
			b.run(20 * time.Second)
			// The first write has the request, and the later ones the machines that followed.
			if got := writes(b); got != 3*want {
				t.Errorf("mode %s: written %d times once a group has grown, want %d", mode, got, 3*want)
			}
			b.end()
		})
	}
}

// A ConfigMap that somebody else has written is reported, and does no harm.
func TestForeignState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := growing(t, map[string]*skyGroup{"g": {max: 10, cpu: "4", price: 1}}, nil)
		b.run(20 * time.Second)
		foreign := b.state()
		foreign.BinaryData = map[string][]byte{"loop": []byte("LLFS\x08 of a later version")}
		if _, err := b.client.CoreV1().ConfigMaps("kube-system").Update(t.Context(), foreign,
			metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		b.restart()
		b.addPending("web", 1, "3")
		b.run(20 * time.Second)
		if got := b.sky.requests(); !slices.Equal(got, []string{"g+1"}) {
			t.Errorf("asked for %v", got)
		}
		if got := b.state().BinaryData["loop"]; !strings.HasPrefix(string(got), "LLLM\x08") {
			t.Errorf("the state is %q", got)
		}
		b.end()
	})
}

// A write that is lost, or that is behind one of somebody else, is no error of the loop, and is tried again.
func TestAStateThatCannotBeWritten(t *testing.T) {
	configMaps := schema.GroupResource{Resource: "configmaps"}
	for name, fails := range map[string]error{
		"Forbidden": apierrors.NewForbidden(configMaps, stateName, errors.New("no right")),
		"Conflict":  apierrors.NewConflict(configMaps, stateName, errors.New("somebody else")),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := growing(t, map[string]*skyGroup{"g": {max: 10, cpu: "4", price: 1}}, nil)
				left := 3
				fail := func(action clienttesting.Action) (bool, runtime.Object, error) {
					object := action.(interface{ GetObject() runtime.Object }).GetObject().(*v1.ConfigMap)
					if object.Name != stateName || left == 0 {
						return false, nil, nil
					}
					left--
					return true, nil, fails
				}
				b.client.PrependReactor("create", "configmaps", fail)
				b.client.PrependReactor("update", "configmaps", fail)
				b.addPending("web", 1, "3")
				b.run(30 * time.Second) // any error of a loop fails the test
				if left != 0 {
					t.Errorf("%d writes were not tried", left)
				}
				b.run(10 * time.Second)
				if got := b.state().BinaryData["loop"]; string(got) != string(b.planner.Fleet.State) {
					t.Errorf("the state is %q, want %q", got, b.planner.Fleet.State)
				}
				b.end()
			})
		})
	}
}

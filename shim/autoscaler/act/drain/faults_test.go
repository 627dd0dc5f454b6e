package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"loadline.dev/shim/api/loadlinev1"
)

// A look from before the engine was away is old when it is there again: the node may be another leader's by then, and
// another pod on it.
func TestNothingIsDoneByWhatWasSeenLongAgo(t *testing.T) {
	for name, c := range map[string]struct {
		away func(q *loadlinev1.StepRemovalRequest) bool // since this question, for 100 s
		then func(w *world)
	}{
		"AnotherLeader": {func(q *loadlinev1.StepRemovalRequest) bool { return q.Node != nil }, func(w *world) {
			node := w.node("n").DeepCopy()
			if err := setMark(node, Mark{Term: 2}); err != nil {
				w.t.Error(err)
			}
			w.updateNode(node)
		}},
		"AnotherPod": {func(q *loadlinev1.StepRemovalRequest) bool {
			return q.Pods != nil && q.State.Stage == loadlinev1.RemovalState_READY
		}, func(w *world) { w.addPod("late", "n") }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				node := w.addNode("n")
				a := w.actuator(testOptions())
				var away time.Time
				a.engine = brokenEngine{Engine: a.engine, fail: func(q *loadlinev1.StepRemovalRequest) error {
					if away.IsZero() && c.away(q) {
						away = time.Now()
					}
					if !away.IsZero() && time.Since(away) < 100*time.Second {
						return status.Error(codes.Unavailable, "it is started again")
					}
					return nil
				}}
				if _, err := a.Start(t.Context(), drainOf(node, w.addPod("p", "n"))); err != nil {
					t.Fatal(err)
				}
				time.Sleep(20 * time.Second)
				w.mu.Lock()
				evicted := len(w.evicted)
				w.mu.Unlock()
				c.then(w)
				a.Wait()
				if len(w.evicted) != evicted || len(w.deleted) != 0 {
					t.Errorf("evicted %v, deleted %v", w.evicted, w.deleted)
				}
			})
		})
	}
}

// A tenant whose budgets refuse all evictions costs two lists and two looks at the node in each round, whatever the
// number of pods: 120 s hold 10 to 15 rounds of 8 to 12 s.
func TestRefusedEvictionsDoNotLookForEachPod(t *testing.T) {
	for _, count := range []int{1, 110} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			node := w.addNode("n")
			var pods []*v1.Pod
			for i := range count {
				pod := w.addPod(fmt.Sprint("p", i), "n")
				pods, w.answers[pod.Name] = append(pods, pod), tooMany()
			}
			var mu sync.Mutex
			lists, gets := 0, 0
			w.client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
				mu.Lock()
				defer mu.Unlock()
				if action.Matches("list", "pods") {
					lists++
				}
				if action.Matches("get", "nodes") {
					gets++
				}
				return false, nil, nil
			})
			a := w.actuator(testOptions())
			if _, err := a.Start(t.Context(), drainOf(node, pods...)); err != nil {
				t.Fatal(err)
			}
			a.Wait()
			if lists > 32 || gets > 32 || w.attempts["p0"] < 10 {
				t.Errorf("%d pods: %d lists, %d looks at the node, %d attempts", count, lists, gets, w.attempts["p0"])
			}
		})
	}
}

// slowCloud answers when it is let go.
type slowCloud struct {
	*world
	hold chan struct{}
	err  error
	does func() // before it answers
}

func (c *slowCloud) DeleteNodes(ctx context.Context, group string, nodes []*v1.Node) error {
	<-c.hold
	if c.does != nil {
		c.does()
	}
	if c.err != nil {
		return c.err
	}
	return c.world.DeleteNodes(ctx, group, nodes)
}

func (w *world) threeNodes(atomic bool) (plan []*Removal) {
	for _, name := range []string{"a", "b", "c"} {
		r := emptyOf(w.addNode(name))[0]
		r.Atomic = atomic
		plan = append(plan, r)
	}
	return plan
}

// Whatever one node of a call has found out, the others are judged by what the cloud deletes after the call.
func TestFailedCallOfSeveralNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		options := testOptions()
		options.NodeDeletionBatcherInterval.Duration = time.Minute
		c := &slowCloud{world: w, hold: make(chan struct{}), err: errors.New("one of them cannot go")}
		c.does = func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.deletedByOthers = map[string]bool{"sim://b": true}
		}
		a := w.actuator(options)
		a.cloud = c
		if _, err := a.Start(t.Context(), w.threeNodes(false)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		w.addPod("late", "a")
		time.Sleep(2 * time.Minute)
		close(c.hold)
		a.Wait()
		if !clean(w.node("a")) || clean(w.node("b")) || !clean(w.node("c")) {
			t.Errorf("a is clean: %v, b, which the cloud deletes: %v, c: %v", clean(w.node("a")), clean(w.node("b")),
				clean(w.node("c")))
		}
	})
}

// All nodes of a call say that the cloud deletes them, also when the process ends before it answers.
func TestAcknowledgedWhileTheProcessEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := &slowCloud{world: w, hold: make(chan struct{})}
		a := w.actuator(testOptions())
		a.cloud = c
		ctx, stop := context.WithCancel(t.Context())
		if _, err := a.Start(ctx, w.threeNodes(true)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		stop()
		synctest.Wait()
		close(c.hold)
		a.Wait()
		for _, node := range w.nodes() {
			if mark, _ := MarkOf(node); !mark.Acknowledged {
				t.Errorf("node %s: %+v", node.Name, mark)
			}
		}
	})
}

// While evictions wait for long for their turn, an error of looking at the node is none of the eviction.
func TestNodeCannotBeReadBeforeAnEviction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		node := w.addNode("n")
		a := w.actuator(testOptions())
		for range evictionsAtOnce {
			a.evicting <- struct{}{}
		}
		var mu sync.Mutex
		broken := false
		set := func(is bool) { mu.Lock(); broken = is; mu.Unlock() }
		w.client.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			mu.Lock()
			defer mu.Unlock()
			return broken, nil, apierrors.NewForbidden(nodeResource.GroupResource(), "n", errors.New("for now"))
		})
		time.AfterFunc(7*time.Second, func() { set(true) })
		time.AfterFunc(20*time.Second, func() {
			for range evictionsAtOnce {
				<-a.evicting
			}
		})
		time.AfterFunc(20*time.Second+time.Millisecond, func() { set(false) })
		w.linger = func(string) bool { return true }
		time.AfterFunc(30*time.Second, func() { w.removePod("p") })
		if _, err := a.Start(t.Context(), drainOf(node, w.addPod("p", "n"))); err != nil {
			t.Fatal(err)
		}
		a.Wait()
		if w.attempts["p"] != 1 || !slices.Equal(w.deleted, []string{"n"}) {
			t.Errorf("attempts %v, deleted %v, ended %v", w.attempts, w.deleted, a.TakeEnded())
		}
	})
}

// An engine of another version does not know the question: nothing is written on nodes.
func TestEngineOfAnotherVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.actuator(testOptions())
		a.engine = brokenEngine{Engine: a.engine, fail: func(*loadlinev1.StepRemovalRequest) error {
			return status.Error(codes.Unimplemented, "there is no such method")
		}}
		_, err := a.Start(t.Context(), emptyOf(w.addNode("n")))
		a.Wait()
		if ended := a.TakeEnded(); status.Code(err) != codes.Unimplemented || len(ended) != 1 || w.tried["n"] {
			t.Errorf("error %v, ended %v, written %v", err, ended, w.tried)
		}
	})
}

// Only pods whose place others take are reported as evicted: a DaemonSet makes none elsewhere.
func TestEvictionsThatAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		node := w.addNode("n")
		w.addDaemonSetPod("agent", "n")
		a := w.actuator(testOptions())
		if _, err := a.Start(t.Context(), drainOf(node, w.addPod("p", "n"))); err != nil {
			t.Fatal(err)
		}
		a.Wait()
		slices.Sort(w.evicted)
		if told := a.TakeEvictions(); len(told) != 1 || told[0].Pod.Name != "p" ||
			!slices.Equal(w.evicted, []string{"agent", "p"}) {
			t.Errorf("told %v, evicted %v", told, w.evicted)
		}
	})
}

// A pod that is in no list any more needs no eviction: the engine may go by a list that is older than ours.
func TestEvictionOfAPodThatIsNotListed(t *testing.T) {
	w := newWorld(t)
	answers := w.actuator(testOptions()).evictAll(t.Context(), &deletion{seen: map[string]*v1.Pod{}},
		[]*loadlinev1.EvictionOrder{{Uid: "uid-p"}})
	if len(answers) != 1 || answers[0].Code != 404 || len(w.attempts) != 0 {
		t.Errorf("answers %v, attempts %v", answers, w.attempts)
	}
}

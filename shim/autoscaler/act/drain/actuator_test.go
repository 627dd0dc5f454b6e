package drain

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"loadline.dev/shim/api/loadlinev1"
)

// drainOf plans to drain a node with these pods.
func drainOf(node *v1.Node, pods ...*v1.Pod) []*Removal {
	r := &Removal{Node: node, Group: "g", Since: time.Unix(1000, 0), Pods: pods, Moves: map[types.UID]bool{}}
	for _, pod := range pods {
		r.Moves[pod.UID] = true
	}
	return []*Removal{r}
}

func emptyOf(node *v1.Node) []*Removal {
	return []*Removal{{Node: node, Group: "g", Empty: true, Since: time.Unix(1000, 0)}}
}

// TestRemoval has one node n with a pod p that is drained while something happens. Invariants D9, G1, G2, G3.
func TestRemoval(t *testing.T) {
	again := func(w *world) *v1.Node { return w.node("n").DeepCopy() }
	severalBudgets := apierrors.NewInternalError(
		errors.New("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."))
	for _, c := range []struct {
		name   string
		before func(w *world)
		// after is how long after the start `then` happens.
		after time.Duration
		then  func(w *world)

		want     Result
		wantErr  string // part of the error
		attempts int    // evictions of p that were asked for; -1: any number
		took     time.Duration
	}{
		// Delay after the taint, then one look at the node: the pod is gone.
		{name: "Plain", want: NodeDeleteOK, attempts: 1, took: 5 * time.Second},
		{name: "BudgetAllowsLater", before: func(w *world) { w.answers["p"] = tooMany() },
			after: 60 * time.Second, then: func(w *world) { w.grant("p") }, want: NodeDeleteOK, attempts: -1},
		{name: "BudgetNeverAllows", before: func(w *world) { w.answers["p"] = tooMany() },
			want: ErrorFailedToEvict, wantErr: "not evicted in time", attempts: -1},
		{name: "SeveralBudgetsAreHopeless", before: func(w *world) { w.answers["p"] = severalBudgets },
			want: ErrorFailedToEvict, wantErr: severalBudgets.Error(), attempts: 1, took: 5 * time.Second},
		{name: "OtherInternalErrorsAreTriedAgain",
			before: func(w *world) { w.answers["p"] = apierrors.NewInternalError(errors.New("etcd")) },
			after:  20 * time.Second, then: func(w *world) { w.grant("p") }, want: NodeDeleteOK, attempts: -1},
		{name: "ForbiddenIsHopeless", before: func(w *world) {
			w.answers["p"] = apierrors.NewForbidden(podResource.GroupResource(), "p", errors.New("no"))
		},
			want: ErrorFailedToEvict, wantErr: "forbidden", attempts: 1},
		{name: "ServerAsksToWaitLonger",
			before: func(w *world) { w.answers["p"] = apierrors.NewTooManyRequests("busy", 90) },
			after:  60 * time.Second, then: func(w *world) { w.grant("p") }, want: NodeDeleteOK, attempts: 2,
			took: 95 * time.Second},
		{name: "BusyServerIsTriedAgain", before: func(w *world) { w.answers["p"] = busy() },
			after: 20 * time.Second, then: func(w *world) { w.grant("p") }, want: NodeDeleteOK, attempts: -1},
		{name: "PodGoneBefore", after: time.Second, then: func(w *world) { w.removePod("p") }, want: NodeDeleteOK,
			attempts: 0},
		{name: "SameNameOnAnotherNodeIsGone", before: func(w *world) { w.linger = func(string) bool { return true } },
			after: 18 * time.Second, then: func(w *world) {
				w.removePod("p")
				w.addNode("other")
				pod := w.addPod("p", "other")
				pod.UID = "another"
				w.update(pod)
			}, want: NodeDeleteOK, attempts: 1, took: 20 * time.Second},
		// 30 s of grace are asked for, 600 s and 30 s of headroom are waited.
		{name: "PodNeverEnds", before: func(w *world) { w.linger = func(string) bool { return true } },
			want: ErrorFailedToEvict, wantErr: "still there 630 s after its eviction", attempts: 1,
			took: 635 * time.Second},
		{name: "NewPodOnTheNode", after: time.Second, then: func(w *world) { w.addPod("late", "n") },
			want: ErrorInternal, wantErr: "pod default/late has arrived on the node", attempts: 0, took: 5 * time.Second},
		{name: "NewPodDuringTheDrain", before: func(w *world) { w.linger = func(string) bool { return true } },
			after: 20 * time.Second, then: func(w *world) { w.addPod("late", "n"); w.removePod("p") },
			want: ErrorInternal, wantErr: "pod default/late is on the node", attempts: 1},
		{name: "NewDaemonSetPodIsNoReason", after: time.Second,
			then: func(w *world) { w.addDaemonSetPod("agent", "n") },
			want: NodeDeleteOK, attempts: 1},
		{name: "NewForgedDaemonSetPodIsOne", after: time.Second,
			then: func(w *world) { w.addForgedDaemonSetPod("forged", "n") },
			want: ErrorInternal, wantErr: "pod default/forged has arrived on the node", attempts: 0,
			took: 5 * time.Second},
		{name: "ForgedDaemonSetPodDuringTheDrain",
			before: func(w *world) { w.linger = func(string) bool { return true } },
			after:  20 * time.Second, then: func(w *world) { w.addForgedDaemonSetPod("forged", "n"); w.removePod("p") },
			want: ErrorInternal, wantErr: "pod default/forged is on the node", attempts: 1},
		{name: "PodMustNotMoveAnyMore", after: time.Second, then: func(w *world) {
			pod := w.addPodAgain("p", "n")
			pod.Annotations = map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
			w.update(pod)
		}, want: ErrorInternal, wantErr: "pod default/p has changed", attempts: 0},
		{name: "PodGetsAnotherLabel", after: time.Second, then: func(w *world) {
			pod := w.addPodAgain("p", "n")
			pod.Labels = map[string]string{"example.com/leader": "now"}
			w.update(pod)
		}, want: NodeDeleteOK, attempts: 1},
		{name: "PodGetsAnAnnotationThatNobodyReads", after: time.Second, then: func(w *world) {
			pod := w.addPodAgain("p", "n")
			pod.Annotations = map[string]string{"example.com/note": "x"}
			w.update(pod)
		}, want: NodeDeleteOK, attempts: 1},
		{name: "NodeRecreated", after: time.Second, then: func(w *world) {
			node := again(w)
			node.UID = "another"
			w.updateNode(node)
		}, want: ErrorInternal, wantErr: "UID", attempts: 0},
		{name: "AnotherMachine", after: time.Second, then: func(w *world) {
			node := again(w)
			node.Spec.ProviderID = "sim://other"
			w.updateNode(node)
		}, want: ErrorInternal, wantErr: "provider id", attempts: 0},
		{name: "SomebodyTakesTheTaintAway", after: time.Second, then: func(w *world) {
			node := again(w)
			dropTaint(node, HardTaint)
			w.updateNode(node)
		}, want: ErrorInternal, wantErr: "somebody has taken", attempts: 0},
		{name: "AnotherLeader", after: time.Second, then: func(w *world) {
			node := again(w)
			if err := setMark(node, Mark{Term: 2}); err != nil {
				w.t.Error(err)
			}
			w.updateNode(node)
		}, want: ErrorInternal, wantErr: "the leader of term 2 has it", attempts: 0},
		{name: "CloudRefuses", before: func(w *world) { w.cloudFails = []string{"n"} },
			want: ErrorFailedDelete, wantErr: "told to fail", attempts: 1},
		{name: "DeletionIsDelayed", before: func(w *world) { w.delay("n", true) },
			after: 33 * time.Second, then: func(w *world) { w.delay("n", false) }, want: NodeDeleteOK, attempts: 1,
			took: 35 * time.Second},
		{name: "DelayDoesNotLastForEver", before: func(w *world) { w.delay("n", true) }, want: NodeDeleteOK,
			attempts: 1, took: 125 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.addNode("n")
				pod := w.addPod("p", "n")
				if c.before != nil {
					c.before(w)
				}
				a := w.actuator(testOptions())
				began := time.Now()
				if outcome, err := a.Start(t.Context(), drainOf(again(w), pod)); outcome != NodeDeleteStarted ||
					err != nil {
					t.Fatal(outcome, err)
				}
				if c.then != nil {
					time.Sleep(c.after)
					c.then(w)
				}
				a.Wait()
				took := time.Since(began)
				ended := a.TakeEnded()
				if len(ended) != 1 || ended[0].Result != c.want {
					t.Fatalf("ended %v, want %s", ended, c.want)
				}
				if text := fmt.Sprint(ended[0].Err); c.wantErr != "" && !strings.Contains(text, c.wantErr) {
					t.Errorf("error %q, want %q in it", text, c.wantErr)
				}
				if c.attempts >= 0 && w.attempts["p"] != c.attempts {
					t.Errorf("%d evictions were asked for, want %d", w.attempts["p"], c.attempts)
				}
				if c.took != 0 && took != c.took {
					t.Errorf("it took %v, want %v", took, c.took)
				}
				w.checkEnd(c.want, c.name)
			})
		})
	}
}

// checkEnd checks what must hold however a removal ends.
func (w *world) checkEnd(result Result, name string) {
	w.t.Helper()
	if deleted := slices.Equal(w.deleted, []string{"n"}); deleted != (result == NodeDeleteOK) {
		w.t.Errorf("result %s, but deleted are %v", result, w.deleted)
	}
	node := w.node("n")
	touched := name == "NodeRecreated" || name == "AnotherMachine" || name == "AnotherLeader"
	if result != NodeDeleteOK && clean(node) == touched {
		w.t.Errorf("result %s, node %v with annotations %v: only one that is not ours may keep a taint",
			result, node.Spec, node.Annotations)
	}
}

func (w *world) addPodAgain(name, node string) *v1.Pod {
	w.removePod(name)
	return w.addPod(name, node)
}

func (w *world) delay(name string, on bool) {
	node := w.node(name).DeepCopy()
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	delete(node.Annotations, delayDeletionPrefix+"backup")
	if on {
		node.Annotations[delayDeletionPrefix+"backup"] = "running"
	}
	w.updateNode(node)
}

func TestDeletionDespiteBudgets(t *testing.T) {
	severalBudgets := apierrors.NewInternalError(
		errors.New("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."))
	forbidden := apierrors.NewForbidden(podResource.GroupResource(), "p", errors.New("no"))
	unseenBudget := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.",
		10)
	unseenBudget.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause,
		Message: "The disruption budget pdb is still being processed by the server."}}
	for _, c := range []struct {
		name    string
		allowed bool
		answer  error // to each eviction
		want    Result
		deleted bool
		took    time.Duration // at least
		refusal string        // how answers are counted; empty: it does not matter
	}{
		{name: "NotUnlessAllowed", answer: tooMany(), want: ErrorFailedToEvict},
		{name: "WhenTheTimeIsUp", allowed: true, answer: tooMany(), want: NodeDeleteOK, deleted: true,
			took: 90 * time.Second, refusal: "budget"},
		{name: "BudgetNotYetSeen", allowed: true, answer: unseenBudget, want: NodeDeleteOK, deleted: true,
			took: 90 * time.Second, refusal: "budget"},
		{name: "BusyServer", allowed: true, answer: busy(), want: ErrorFailedToEvict, took: 90 * time.Second,
			refusal: "busy"},
		{name: "SeveralBudgets", allowed: true, answer: severalBudgets, want: NodeDeleteOK, deleted: true},
		{name: "NoBudget", allowed: true, answer: forbidden, want: ErrorFailedToEvict},
		{name: "NotNeeded", allowed: true, want: NodeDeleteOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				node, pod := w.addNode("n"), w.addPod("p", "n")
				if c.answer != nil {
					w.answers["p"] = c.answer
				}
				var results []string
				options := testOptions()
				options.UnsafeDeletePodsDespiteDisruptionBudgets = c.allowed
				var got Result
				a := New(options, engineOf(t), w.client, w, w.events, 1,
					Hooks{Evicted: func(result string) { results = append(results, result) },
						Removed: func(_ *Removal, result Result, _ time.Duration) { got = result }})
				began := time.Now()
				r := Removal{Node: node, Group: "g", Pods: []*v1.Pod{pod}, Moves: map[types.UID]bool{pod.UID: true}}
				if _, err := a.Start(t.Context(), []*Removal{&r}); err != nil {
					t.Fatal(err)
				}
				a.Wait()
				var deletions []clienttesting.DeleteAction
				for _, action := range w.client.Actions() {
					if d, ok := action.(clienttesting.DeleteAction); ok && action.Matches("delete", "pods") {
						deletions = append(deletions, d)
					}
				}
				if got != c.want || (len(deletions) > 0) != c.deleted || time.Since(began) < c.took {
					t.Errorf("%s after %v, %d pods deleted, answers %v",
						got, time.Since(began), len(deletions), results)
				}
				if c.refusal != "" && (len(results) < 2 || results[0] != c.refusal) {
					t.Errorf("answers %v, want several of %s", results, c.refusal)
				}
				if !c.deleted {
					return
				}
				if o := deletions[0].GetDeleteOptions(); *o.Preconditions.UID != pod.UID ||
					*o.GracePeriodSeconds != 30 {
					t.Errorf("deleted with %v", o)
				}
				if last := results[len(results)-1]; last != "deleted_despite_budget" {
					t.Errorf("the last answer is %q", last)
				}
				close(w.events.Events)
				told := false
				for event := range w.events.Events {
					told = told || strings.HasPrefix(event, "Warning DeletedDespiteBudget")
				}
				if !told {
					t.Error("no event tells of it")
				}
			})
		})
	}
}

// A node that is replaced while evictions are refused, or handed over, is another one: nothing more is evicted from it,
// and it stays as it is. Invariant D9.
func TestNodeReplacedMidDrain(t *testing.T) {
	for name, change := range map[string]func(*v1.Node){
		"UID": func(n *v1.Node) {
			n.UID, n.Annotations, n.Spec.Taints, n.Spec.Unschedulable = "another", nil, nil, false
		},
		"ProviderID": func(n *v1.Node) { n.Spec.ProviderID = "sim://another" },
		"MarkTaken":  func(n *v1.Node) { delete(n.Annotations, MarkAnnotation) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.addNode("n")
				pod := w.addPod("p", "n")
				w.answers["p"] = tooMany()
				a := w.actuator(testOptions())
				if _, err := a.Start(t.Context(), drainOf(w.node("n").DeepCopy(), pod)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(7 * time.Second) // the first attempt was after 5 s, the next is 8 s to 12 s later
				node := w.node("n").DeepCopy()
				change(node)
				w.updateNode(node)
				w.grant("p")
				a.Wait()
				if w.attempts["p"] != 1 || len(w.evicted) != 0 || len(w.deleted) != 0 {
					t.Errorf("evictions %v, accepted %v, deleted %v", w.attempts, w.evicted, w.deleted)
				}
				if after := w.node("n"); name != "MarkTaken" && !reflect.DeepEqual(after.Spec, node.Spec) {
					t.Errorf("the other node became %+v", after.Spec)
				}
			})
		})
	}
}

// A pod gets the grace period that it states, up to the limit; without one 30 s.
func TestGracePeriods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		node := w.addNode("n")
		var pods []*v1.Pod
		for name, grace := range map[string]int64{"short": 3, "long": 3600, "none": -1} {
			pod := w.addPod(name, "n")
			if grace >= 0 {
				pod.Spec.TerminationGracePeriodSeconds = &grace
				w.update(pod)
			}
			pods = append(pods, pod)
		}
		a := w.actuator(testOptions())
		if _, err := a.Start(t.Context(), drainOf(node, pods...)); err != nil {
			t.Fatal(err)
		}
		a.Wait()
		if want := map[string]int64{"short": 3, "long": 600, "none": 30}; !reflect.DeepEqual(w.grace, want) {
			t.Errorf("grace periods %v, want %v", w.grace, want)
		}
	})
}

// Pods that end already are waited for and not evicted again; one that should have ended long ago is not waited for.
func TestTerminatingPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		node := w.addNode("n")
		ends := w.addPod("ends", "n")
		ends.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(30 * time.Second)}
		w.update(ends)
		stuck := w.addPod("stuck", "n")
		stuck.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(-2 * time.Minute)}
		w.update(stuck)
		a := w.actuator(testOptions())
		began := time.Now()
		if _, err := a.Start(t.Context(), drainOf(node, ends, stuck)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(22 * time.Second)
		w.removePod("ends")
		a.Wait()
		if took := time.Since(began); took != 25*time.Second { // looked at 5 s, 10 s, ..., 25 s
			t.Errorf("it took %v", took)
		}
		if len(w.attempts) != 0 || !slices.Equal(w.deleted, []string{"n"}) {
			t.Errorf("evictions %v, deleted %v", w.attempts, w.deleted)
		}
	})
}

// However many pods are to be evicted, only so many requests are under way: here they have no answer.
func TestEvictionsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.actuator(testOptions())
		for range evictionsAtOnce {
			a.evicting <- struct{}{}
		}
		node := w.addNode("n")
		if _, err := a.Start(t.Context(), drainOf(node, w.addPod("p1", "n"), w.addPod("p2", "n"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if len(w.attempts) != 0 {
			t.Errorf("asked for %v beyond the limit", w.attempts)
		}
		<-a.evicting // one is answered: the two take turns
		a.Wait()
		slices.Sort(w.evicted)
		if !slices.Equal(w.evicted, []string{"p1", "p2"}) || !slices.Equal(w.deleted, []string{"n"}) {
			t.Errorf("evicted %v, deleted %v", w.evicted, w.deleted)
		}
	})
}

// A node of which nobody knows whether the cloud deletes it keeps its taint, and the time at which the cloud was asked.
// One of which the cloud says that it does not is given back.
func TestFailedDeletion(t *testing.T) {
	for code, unknown := range map[codes.Code]bool{
		codes.DeadlineExceeded: true, codes.Unavailable: true, codes.Canceled: true, codes.Unknown: true,
		codes.Internal: true, codes.Aborted: true, codes.DataLoss: true,
		codes.FailedPrecondition: false, codes.InvalidArgument: false, codes.PermissionDenied: false,
		codes.Unimplemented: false,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.cloudFails, w.cloudError = []string{"n"}, fmt.Errorf("cloud provider: %w", status.Error(code, "no"))
			a := w.actuator(testOptions())
			if _, err := a.Start(t.Context(), emptyOf(w.addNode("n"))); err != nil {
				t.Fatal(err)
			}
			a.Wait()
			ended := a.TakeEnded()
			if len(ended) != 1 || ended[0].Result != ErrorFailedDelete {
				t.Errorf("%v: ended %v", code, ended)
			}
			mark, ours := MarkOf(w.node("n"))
			if ours != unknown || unknown != (mark.Deleting != 0) || HasTaint(w.node("n"), HardTaint) != unknown ||
				mark.Acknowledged {
				t.Errorf("%v: mark %+v, %v", code, mark, ours)
			}
		})
	}
}

// A cloud may answer anything: its text must not keep the engine from saying the next step.
func TestTextOfTheCloudIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.cloudFails, w.cloudError = []string{"n"}, errors.New("\xff"+strings.Repeat("no ", 2<<20))
		a := w.actuator(testOptions())
		if _, err := a.Start(t.Context(), emptyOf(w.addNode("n"))); err != nil {
			t.Fatal(err)
		}
		a.Wait()
		if ended := a.TakeEnded(); len(ended) != 1 || ended[0].Result != ErrorFailedDelete ||
			len(ended[0].Err.Error()) > 2000 || !clean(w.node("n")) {
			t.Errorf("ended %.100v", ended)
		}
	})
}

// A node that cannot be drained keeps its taint where somebody else has its machine deleted meanwhile, or where nobody
// knows: pods that came to it would be lost.
func TestDrainFailsOfNodeThatOthersDelete(t *testing.T) {
	for _, c := range []struct {
		deleted map[string]bool
		fails   error
		back    bool
	}{{nil, nil, true}, {map[string]bool{"sim://n": true}, nil, false}, {nil, errors.New("no list"), false}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			node := w.addNode("n")
			plan := emptyOf(node)
			plan[0].Pods = []*v1.Pod{w.addPod("p", "n")} // the plan does not move it
			w.deletedByOthers, w.listError = c.deleted, c.fails
			a := w.actuator(testOptions())
			if _, err := a.Start(t.Context(), plan); err != nil {
				t.Fatal(err)
			}
			a.Wait()
			if ended := a.TakeEnded(); len(ended) != 1 || ended[0].Err == nil || clean(w.node("n")) != c.back {
				t.Errorf("%+v: ended %v, node %v", c, ended, w.node("n").Spec)
			}
		})
	}
}

// A node whose deletion the cloud has acknowledged is neither given back nor deleted again: not by a watch that is
// late, and not by the next leader.
func TestAcknowledgedDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		late := w.addNode("n")
		a := w.actuator(testOptions())
		if _, err := a.Start(t.Context(), emptyOf(late)); err != nil {
			t.Fatal(err)
		}
		a.Wait()
		if mark, _ := MarkOf(w.node("n")); !mark.Acknowledged || !slices.Equal(w.deleted, []string{"n"}) {
			t.Fatalf("mark %+v, deleted %v", mark, w.deleted)
		}
		next := w.actuator(testOptions())
		for name, c := range map[string]struct {
			actuator *Actuator
			node     *v1.Node
		}{"LateWatch": {a, late}, "NextLeader": {next, w.node("n")}} {
			if err := c.actuator.Release(t.Context(), c.node); !errors.Is(err, errAcknowledged) {
				t.Errorf("%s: release: %v", name, err)
			}
			if outcome, err := c.actuator.Start(t.Context(), emptyOf(c.node)); outcome != NoNodeDeleted || err != nil {
				t.Errorf("%s: %v, %v", name, outcome, err)
			}
			c.actuator.Wait()
		}
		if len(w.deleted) != 1 || !HasTaint(w.node("n"), HardTaint) {
			t.Errorf("deleted %v, taints %v", w.deleted, w.node("n").Spec.Taints)
		}
		a.ForgetGone(map[string]*v1.Node{"n": late})
		if !a.Acknowledged(late) {
			t.Error("a node that is there is forgotten")
		}
		a.ForgetGone(map[string]*v1.Node{"n": {ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "another"}}})
		if a.Acknowledged(late) {
			t.Error("a node that is gone is remembered")
		}
	})
}

// Nodes a, b and c are ready to be deleted and wait for each other, the last one until its deletion is not delayed any
// more. Meanwhile something happens to a. Of an atomic group either all nodes go that are still there, or none does.
func TestAtomicGroupIsNotLeftInPart(t *testing.T) {
	changed := func(edit func(*v1.Node)) func(*world) {
		return func(w *world) {
			node := w.node("a").DeepCopy()
			edit(node)
			w.updateNode(node)
		}
	}
	markTaken := changed(func(n *v1.Node) { delete(n.Annotations, MarkAnnotation) })
	for name, c := range map[string]struct {
		then    func(*world)
		apart   bool // the group is not atomic
		deleted []string
		why     string // in the error of b and c, if they do not go
	}{
		"Nothing":   {then: func(*world) {}, deleted: []string{"a", "b", "c"}},
		"MarkTaken": {then: markTaken, why: "node a cannot be removed: the node is not ours any more"},
		"CannotBeWritten": {then: func(w *world) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.taintFails = []string{"a"}
		}, why: "node a cannot be removed: Internal error occurred: told to fail"},
		"Replaced": {then: changed(func(n *v1.Node) { n.UID = "another" }),
			why: "node a cannot be removed: the node is gone: another one has its name"},
		"Gone": {then: func(w *world) {
			if err := w.client.Tracker().Delete(nodeResource, "", "a"); err != nil {
				w.t.Error(err)
			}
		}, deleted: []string{"b", "c"}},
		"PodComes": {then: func(w *world) { w.addPod("late", "a") },
			why: "node a cannot be removed: pod default/late is on the node that is to be deleted"},
		"NotAtomic": {then: markTaken, apart: true, deleted: []string{"b", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				plan := w.threeNodes(!c.apart)
				w.delay("c", true)
				options := testOptions()
				options.NodeDeletionBatcherInterval.Duration = time.Minute // for those that are not atomic
				a := w.actuator(options)
				if _, err := a.Start(t.Context(), plan); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second) // a and b wait since 5 s
				c.then(w)
				w.delay("c", false)
				a.Wait()
				if slices.Sort(w.deleted); !slices.Equal(w.deleted, c.deleted) {
					t.Errorf("deleted %v, want %v", w.deleted, c.deleted)
				}
				if w.listed > 1 {
					t.Errorf("the group's machines were listed %d times, for nodes that fail together", w.listed)
				}
				for _, ended := range a.TakeEnded() {
					goes := slices.Contains(c.deleted, ended.Node.Name)
					if goes != (ended.Result == NodeDeleteOK) || !goes && ended.Node.Name != "a" &&
						(!clean(w.node(ended.Node.Name)) || !strings.Contains(ended.Err.Error(), c.why)) {
						t.Errorf("node %s ended with %s, %v; it is %v", ended.Node.Name, ended.Result, ended.Err,
							w.node(ended.Node.Name).Spec)
					}
				}
			})
		})
	}
}

// A pod that the plan has seen and does not move keeps the node.
func TestPodThatThePlanLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		plan := emptyOf(w.addNode("n"))
		plan[0].Pods = []*v1.Pod{w.addPod("p", "n")}
		a := w.actuator(testOptions())
		if _, err := a.Start(t.Context(), plan); err != nil {
			t.Fatal(err)
		}
		a.Wait()
		if ended := a.TakeEnded(); len(ended) != 1 || ended[0].Result != ErrorInternal || !clean(w.node("n")) ||
			len(w.deleted) != 0 {
			t.Errorf("ended %v, deleted %v", ended, w.deleted)
		}
	})
}

// A node that a person has cordoned stays cordoned when a removal is taken back.
func TestCordonOfOthersStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.cloudFails = []string{"n"}
		node := w.addNode("n")
		node.Spec.Unschedulable = true
		node.Spec.Taints = []v1.Taint{{Key: "team", Value: "a", Effect: v1.TaintEffectNoSchedule}}
		w.updateNode(node)
		a := w.actuator(testOptions())
		if _, err := a.Start(t.Context(), emptyOf(node)); err != nil {
			t.Fatal(err)
		}
		a.Wait()
		if after := w.node("n"); !reflect.DeepEqual(after.Spec, node.Spec) || len(after.Annotations) != 0 {
			t.Errorf("the node is %v with annotations %v, was %v", after.Spec, after.Annotations, node.Spec)
		}
	})
}

// A node that somebody else removes is left alone, and keeps no other one from going.
func TestForeignTaintIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		theirs, ours := w.addNode("theirs"), w.addNode("ours")
		theirs.Spec.Taints = []v1.Taint{{Key: HardTaint, Value: "1", Effect: v1.TaintEffectNoSchedule}}
		w.updateNode(theirs)
		a := w.actuator(testOptions())
		plan := append(emptyOf(theirs), emptyOf(ours)...)
		if outcome, err := a.Start(t.Context(), plan); outcome != NodeDeleteStarted || err != nil {
			t.Fatal(outcome, err)
		}
		a.Wait()
		if !slices.Equal(w.deleted, []string{"ours"}) || w.tried["theirs"] {
			t.Errorf("deleted %v, tried to change theirs: %v", w.deleted, w.tried["theirs"])
		}
	})
}

// Ended at any moment, a removal is finished by another leader: each node is deleted once, and each pod evicted once.
func TestAnotherLeaderFinishes(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second, 5 * time.Second, 7 * time.Second, 15 * time.Second,
		24 * time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.linger = func(pod string) bool {
					go func() { time.Sleep(18 * time.Second); w.removePod(pod) }()
					return true
				}
				w.addNode("n")
				pod := w.addPod("p", "n")
				first := w.actuator(testOptions())
				ctx, stop := context.WithCancel(t.Context())
				if _, err := first.Start(ctx, drainOf(w.node("n").DeepCopy(), pod)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(after)
				stop()
				first.Wait()
				if mark, ok := MarkOf(w.node("n")); !ok || mark.Term != 1 || !mark.Drain || mark.Since != 1000 {
					t.Fatalf("mark %+v, %v", mark, ok)
				}
				w.term = 2
				second := w.actuator(testOptions())
				plan := drainOf(w.node("n").DeepCopy(), pod)
				if w.attempts["p"] > 0 && after < 24*time.Second { // the API server tells of the eviction
					ends := pod.DeepCopy()
					ends.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(30 * time.Second)}
					w.update(ends)
					plan = drainOf(w.node("n").DeepCopy(), ends)
				}
				if outcome, err := second.Start(t.Context(), plan); outcome != NodeDeleteStarted || err != nil {
					t.Fatal(outcome, err)
				}
				second.Wait()
				if !slices.Equal(w.deleted, []string{"n"}) || w.attempts["p"] != 1 {
					t.Errorf("deleted %v, evictions %v", w.deleted, w.attempts)
				}
			})
		})
	}
}

// A node whose removal was begun keeps its marks when the process ends, and the next one gives it back.
func TestRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		before := w.addNode("n")
		pod := w.addPod("p", "n")
		a := w.actuator(testOptions())
		ctx, stop := context.WithCancel(t.Context())
		if _, err := a.Start(ctx, drainOf(before, pod)); err != nil {
			t.Fatal(err)
		}
		if err := a.Release(t.Context(), w.node("n")); err == nil {
			t.Error("a node is released while its removal is under way")
		}
		stop()
		a.Wait()
		if clean(w.node("n")) {
			t.Error("the node lost its marks when the process ended")
		}
		w.term = 2
		if err := w.actuator(testOptions()).Release(t.Context(), w.node("n")); err != nil || !clean(w.node("n")) {
			t.Errorf("released: %v, error %v", w.node("n").Spec, err)
		}
	})
}

// A node that changes while it is written is read again; one that always changes is given up after some seconds.
func TestConflicts(t *testing.T) {
	for _, c := range []struct {
		conflicts int
		want      string
	}{{3, NodeDeleteStarted}, {1000, Failed}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			node := w.addNode("n")
			w.conflicts = c.conflicts
			a := w.actuator(testOptions())
			began := time.Now()
			outcome, err := a.Start(t.Context(), emptyOf(node))
			if outcome != c.want || (err != nil) != (c.want == Failed) {
				t.Errorf("%d conflicts: %s, error %v", c.conflicts, outcome, err)
			}
			if took := time.Since(began); took > conflictTimeout {
				t.Errorf("%d conflicts: took %v", c.conflicts, took)
			}
			w.mu.Lock()
			w.conflicts = 0
			w.mu.Unlock()
			a.Wait()
		})
	}
}

// Events have the reasons of Cluster Autoscaler.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.cloudFails = []string{"n"}
		node := w.addNode("n")
		pod := w.addPod("p", "n")
		a := w.actuator(testOptions())
		if _, err := a.Start(t.Context(), drainOf(node, pod)); err != nil {
			t.Fatal(err)
		}
		a.Wait()
		close(w.events.Events)
		var got []string
		for event := range w.events.Events {
			got = append(got, event)
		}
		want := []string{"Normal ScaleDown marked the node as toBeDeleted/unschedulable", "Normal ScaleDown deleting " +
			"pod for node scale down", "Warning ScaleDownFailed failed to delete the node: the cloud was told to fail"}
		if !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
	})
}

// Removals begin while the loop continues: they are under way at once, and failures of tainting are reported later.
func TestRemovalsBeginInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		good, bad := w.addNode("good"), w.addNode("bad")
		w.taintFails = []string{"bad"}
		a := w.actuator(testOptions())
		a.engine = brokenEngine{Engine: a.engine, fail: func(*loadlinev1.StepRemovalRequest) error {
			time.Sleep(time.Second)
			return nil
		}}
		began := time.Now()
		for _, node := range []*v1.Node{good, bad} {
			plan := []*Removal{{Node: node, Group: "g", Empty: true}}
			if got := a.Begin(t.Context(), plan); got != NodeDeleteStarted {
				t.Errorf("%s: %s", node.Name, got)
			}
		}
		if under := a.UnderWay(); len(under) != 2 || time.Since(began) != 0 {
			t.Errorf("under way %v after %v", under, time.Since(began))
		}
		again := []*Removal{{Node: good, Group: "g", Empty: true}}
		if got := a.Begin(t.Context(), again); got != NoNodeDeleted {
			t.Errorf("a second time: %s", got)
		}
		a.Wait()
		if err := a.TakeFailure(); err == nil || !strings.Contains(err.Error(), "node bad cannot be tainted") {
			t.Errorf("failure %v", err)
		}
		if err := a.TakeFailure(); err != nil || !slices.Equal(w.deleted, []string{"good"}) {
			t.Errorf("failure %v, deleted %v", err, w.deleted)
		}
	})
}

// A DaemonSet pod whose budget allows no eviction at first is asked again as other pods are; that it is never evicted
// holds its node no longer than that, and fails nothing.
func TestDaemonSetPodIsAskedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		allows bool // a budget, after 35 s
		took   time.Duration
	}{
		"AllowedLater": {allows: true, took: 40 * time.Second},
		"NeverAllowed": {took: 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.addNode("n")
				w.addDaemonSetPod("agent", "n")
				w.answers["agent"] = tooMany()
				if c.allows {
					time.AfterFunc(35*time.Second, func() { w.grant("agent") })
				}
				options := testOptions()
				options.DaemonSetEvictionForEmptyNodes = true
				a, begun := w.actuator(options), time.Now()
				if _, err := a.Start(t.Context(), emptyOf(w.node("n").DeepCopy())); err != nil {
					t.Fatal(err)
				}
				a.Wait()
				// Attempts lie 8 to 12 s apart, the first of them 5 s after the taint.
				if took := time.Since(begun); took < c.took-7*time.Second || took > c.took+13*time.Second {
					t.Errorf("took %v, want about %v", took, c.took)
				}
				if got := slices.Contains(w.evicted, "agent"); got != c.allows {
					t.Errorf("evicted: %v", got)
				}
			})
		})
	}
}

// Anybody can name a DaemonSet as the owner of a pod. Where there is none of that UID, the pod is evicted as the plan
// says, and a budget that refuses it keeps the node.
func TestForgedDaemonSetPodIsEvicted(t *testing.T) {
	for _, refused := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.addNode("n")
			pod := w.addForgedDaemonSetPod("forged", "n")
			if refused {
				w.answers["forged"] = tooMany()
			}
			a := w.actuator(testOptions())
			if outcome, err := a.Start(t.Context(),
				drainOf(w.node("n").DeepCopy(), pod)); outcome != NodeDeleteStarted || err != nil {
				t.Fatal(outcome, err)
			}
			a.Wait()
			if w.attempts["forged"] == 0 || slices.Contains(w.deleted, "n") == refused {
				t.Errorf("refused %v: asked to evict %d times, deleted %v", refused, w.attempts["forged"], w.deleted)
			}
		})
	}
}

// A pod that has come since the plan was made stops the removal, unless it only keeps room free. Who says so is not the
// pod.
func TestOnlyPlaceholdersMayComeMeanwhile(t *testing.T) {
	for _, placeholder := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.addNode("n")
			planned := w.addPod("p", "n")
			time.AfterFunc(time.Second, func() {
				late := w.addPod("late", "n")
				late.Labels = map[string]string{"loadline.dev/placeholder": "true"}
				w.update(late)
			})
			options := testOptions()
			options.IsPlaceholder = func(pod *v1.Pod) bool { return placeholder && pod.Name == "late" }
			a := w.actuator(options)
			if outcome, err := a.Start(t.Context(),
				drainOf(w.node("n").DeepCopy(), planned)); outcome != NodeDeleteStarted || err != nil {
				t.Fatal(outcome, err)
			}
			a.Wait()
			if deleted := len(w.deleted) > 0; deleted != placeholder {
				t.Errorf("placeholder %v: deleted %v, evicted %v", placeholder, w.deleted, w.evicted)
			}
		})
	}
}

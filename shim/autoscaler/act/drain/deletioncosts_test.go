package drain

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"loadline.dev/shim/view"
)

// costWorld is a cluster of pods whose deletion costs are written.
type costWorld struct {
	t         *testing.T
	client    *fake.Clientset
	costs     *DeletionCosts
	results   map[string]int
	fails     map[string]error // by pod
	writeCost time.Duration    // of one write
}

func newCostWorld(t *testing.T, pods ...*v1.Pod) *costWorld {
	w := &costWorld{t: t, client: fake.NewClientset(), results: map[string]int{}, fails: map[string]error{}}
	for _, pod := range pods {
		if err := w.client.Tracker().Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	w.client.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		time.Sleep(w.writeCost)
		err := w.fails[action.(clienttesting.PatchAction).GetName()]
		return err != nil, nil, err
	})
	w.costs = NewDeletionCosts(w.client, func(result string) { w.results[result]++ })
	return w
}

// replica is a pod of a ReplicaSet, with annotations KEY=VALUE: "cost" and "mark" stand for those of deletion costs.
func replica(name, node string, annotations ...string) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name),
		ResourceVersion: "7", Annotations: map[string]string{"other": "x"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web",
			Controller: new(true)}}}, Spec: v1.PodSpec{NodeName: node}}
	names := map[string]string{"cost": v1.PodDeletionCost, "mark": view.DeletionCostMark}
	for _, annotation := range annotations {
		key, value, _ := strings.Cut(annotation, "=")
		pod.Annotations[names[key]] = value
	}
	return pod
}

func ownedBy(pod *v1.Pod, apiVersion, kind string) *v1.Pod {
	pod.OwnerReferences[0].APIVersion, pod.OwnerReferences[0].Kind = apiVersion, kind
	return pod
}

func ending(pod *v1.Pod) *v1.Pod {
	pod.DeletionTimestamp, pod.Finalizers = new(metav1.Unix(1, 0)), []string{"keep"}
	return pod
}

// pods returns those of the cluster, by name.
func (w *costWorld) pods() map[string]*v1.Pod {
	w.t.Helper()
	list, err := w.client.CoreV1().Pods("").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	pods := map[string]*v1.Pod{}
	for i := range list.Items {
		pods[list.Items[i].Name] = &list.Items[i]
	}
	return pods
}

// follow is one loop, which waits for what it has begun.
func (w *costWorld) follow(costs map[string]int32) (err error) {
	w.t.Helper()
	w.costs.Begin(w.t.Context(), maps.Values(w.pods()), costs, func(_ time.Duration, e error) { err = e })
	w.costs.Wait()
	return err
}

// written returns the pods that were written, in order.
func (w *costWorld) written() (names []string) {
	for _, action := range w.client.Actions() {
		if patch, ok := action.(clienttesting.PatchAction); ok {
			names = append(names, patch.GetName())
		}
	}
	return names
}

// Pods of nodes that are to be empty get their cost, others lose what is ours, and what others state stays.
func TestDeletionCosts(t *testing.T) {
	for name, c := range map[string]struct {
		pod        *v1.Pod
		cost, mark string // afterwards
		writes     int
	}{
		"gets one":         {replica("p", "goes"), "-9", "-9", 1},
		"has it":           {replica("p", "goes", "cost=-9", "mark=-9"), "-9", "-9", 0},
		"gets another":     {replica("p", "goes", "cost=-8", "mark=-8"), "-9", "-9", 1},
		"loses it":         {replica("p", "stays", "cost=-9", "mark=-9"), "", "", 1},
		"waits for a node": {replica("p", ""), "", "", 0},
		"never had one":    {replica("p", "stays"), "", "", 0},
		"somebody's":       {replica("p", "goes", "cost=5"), "5", "", 0},
		"somebody's, on":   {replica("p", "stays", "cost=5"), "5", "", 0},
		"taken over":       {replica("p", "goes", "cost=5", "mark=-9"), "5", "", 1},
		"taken over, on":   {replica("p", "stays", "cost=5", "mark=-9"), "5", "", 1},
		"taken away":       {replica("p", "goes", "mark=-9"), "-9", "-9", 1},
		"taken away, on":   {replica("p", "stays", "mark=-9"), "", "", 1},
		"controller":       {ownedBy(replica("p", "goes"), "v1", "ReplicationController"), "-9", "-9", 1},
		"other controller": {ownedBy(replica("p", "goes"), "apps/v1", "StatefulSet"), "", "", 0},
		"namesake":         {ownedBy(replica("p", "goes"), "example.com/v1", "ReplicaSet"), "", "", 0},
		"ends":             {ending(replica("p", "goes")), "", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCostWorld(t, c.pod)
			for range 2 { // a second time nothing is left to do
				if err := w.follow(map[string]int32{"goes": -9}); err != nil {
					t.Fatal(err)
				}
			}
			pod := w.pods()["p"]
			if cost, mark := pod.Annotations[v1.PodDeletionCost], pod.Annotations[view.DeletionCostMark]; cost != c.cost ||
				mark != c.mark || pod.Annotations["other"] != "x" || len(w.written()) != c.writes {
				t.Errorf("annotations %v after %d writes, want cost %q, mark %q after %d", pod.Annotations,
					len(w.written()), c.cost, c.mark, c.writes)
			}
		})
	}
}

// Pods that lose their costs are first, then the lowest cost, then names. A loop writes 20 pods, the next ones the
// rest.
func TestDeletionCostsAreWrittenInOrder(t *testing.T) {
	pods := []*v1.Pod{replica("a", "high"), replica("c", "low"), replica("b", "low"),
		replica("z", "stays", "cost=-1", "mark=-1"), replica("y", "stays", "cost=-1", "mark=-1")}
	for i := range 30 {
		pods = append(pods, replica(fmt.Sprintf("more-%02d", i), "high"))
	}
	w := newCostWorld(t, pods...)
	costs := map[string]int32{"low": -1_000_000_000, "high": -999_999_999}
	for i, want := range []int{mostCostWrites, len(pods), len(pods)} {
		if err := w.follow(costs); err != nil || len(w.written()) != want {
			t.Fatalf("after loop %d: %d pods are written, want %d, error %v", i+1, len(w.written()), want, err)
		}
	}
	if want := []string{"y", "z", "b", "c", "a", "more-00"}; !slices.Equal(w.written()[:len(want)], want) {
		t.Errorf("written in the order %v, want %v first", w.written(), want)
	}
	if want := map[string]int{CostSet: 33, CostRemoved: 2}; !maps.Equal(w.results, want) {
		t.Errorf("results %v, want %v", w.results, want)
	}
}

// A namespace whose pods cannot be written, or are changed again each time, keeps no other one waiting.
func TestDeletionCostsOfOneNamespaceKeepNoOthersWaiting(t *testing.T) {
	var pods []*v1.Pod
	for i := range 3 * mostCostWrites {
		pods = append(pods, replica(fmt.Sprintf("bad-%02d", i), "low"))
	}
	good := replica("good", "high")
	good.Namespace = "team"
	w := newCostWorld(t, append(pods, good)...)
	for _, pod := range pods {
		w.fails[pod.Name] = apierrors.NewConflict(podResource.GroupResource(), pod.Name, errors.New("it has changed"))
	}
	if err := w.follow(map[string]int32{"low": -1_000_000_000, "high": -999_999_999}); err != nil {
		t.Fatal(err)
	}
	if want := map[string]int{CostStale: mostCostWrites - 1, CostSet: 1}; !maps.Equal(w.results, want) {
		t.Errorf("results %v, want %v", w.results, want)
	}
}

// Each write names the very pod in the state in which it was seen. One that is gone or has changed is no error.
func TestDeletionCostsOfPodsThatChange(t *testing.T) {
	w := newCostWorld(t, replica("changed", "goes"), replica("forbidden", "goes"), replica("gone", "goes"))
	resource := podResource.GroupResource()
	w.fails["changed"] = apierrors.NewConflict(resource, "changed", errors.New("it has changed"))
	w.fails["forbidden"] = apierrors.NewForbidden(resource, "forbidden", errors.New("no right"))
	w.fails["gone"] = apierrors.NewNotFound(resource, "gone")
	err := w.follow(map[string]int32{"goes": -9})
	if !apierrors.IsForbidden(err) || strings.Contains(err.Error(), "gone") || strings.Contains(err.Error(), "changed") {
		t.Errorf("error %v, want only that of the pod that must not be written", err)
	}
	if want := map[string]int{CostStale: 2, CostFailed: 1}; !maps.Equal(w.results, want) {
		t.Errorf("results %v, want %v", w.results, want)
	}
	for _, action := range w.client.Actions() {
		patch, ok := action.(clienttesting.PatchAction)
		if !ok {
			continue
		}
		var pod v1.Pod
		if err := json.Unmarshal(patch.GetPatch(), &pod); err != nil || pod.UID != types.UID("uid-"+patch.GetName()) ||
			pod.ResourceVersion != "7" || patch.GetPatchType() != types.MergePatchType {
			t.Errorf("patch %s, error %v", patch.GetPatch(), err)
		}
	}
}

// No loop waits for writes, and none begins others beside them; they end in their time.
func TestDeletionCostsInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pods []*v1.Pod
		for i := range 10 {
			pods = append(pods, replica(fmt.Sprint(i), "goes"))
		}
		w := newCostWorld(t, pods...)
		w.writeCost = time.Second
		ended, began, seen := []time.Duration{}, time.Now(), w.pods() // the client answers nobody during a write
		for range 2 {
			w.costs.Begin(t.Context(), maps.Values(seen), map[string]int32{"goes": -9},
				func(took time.Duration, err error) { ended = append(ended, took) })
		}
		if time.Since(began) != 0 {
			t.Errorf("the loop waited for %v", time.Since(began))
		}
		w.costs.Wait()
		if len(w.written()) != 3 || !slices.Equal(ended, []time.Duration{mostCostTime}) {
			t.Errorf("%d writes took %v, want 3 in %v", len(w.written()), ended, mostCostTime)
		}
	})
}

// A loop looks at each pod, and most have what they are to have.
func BenchmarkCostWrites(b *testing.B) {
	costs, pods := map[string]int32{}, make([]*v1.Pod, 80_000)
	for i := range 100 {
		costs[fmt.Sprint("node-", i)] = int32(-1_000_000_000 + i)
	}
	for i := range pods {
		node := fmt.Sprint("node-", i%2_000)
		pods[i] = replica(fmt.Sprint("pod-", i), node)
		if cost, ok := costs[node]; ok {
			text := fmt.Sprint(cost)
			pods[i].Annotations[v1.PodDeletionCost], pods[i].Annotations[view.DeletionCostMark] = text, text
		}
	}
	for b.Loop() {
		if writes := costWrites(slices.Values(pods), costs); len(writes) > 0 {
			b.Fatalf("%d pods are to be written", len(writes))
		}
	}
}

package extender

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"loadline.dev/shim/internal/testing/fakeapi"
)

// notes writes down its calls.
type notes struct {
	mu    sync.Mutex
	lines []string
}

func (n *notes) note(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, line)
}

func (n *notes) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	taken := n.lines
	n.lines = nil
	slices.Sort(taken)
	return taken
}

func (n *notes) SetNode(node *v1.Node)  { n.note("set node " + node.Name) }
func (n *notes) DeleteNode(name string) { n.note("delete node " + name) }
func (n *notes) SetPod(pod *v1.Pod)     { n.note("set pod " + pod.Namespace + "/" + pod.Name) }
func (n *notes) DeletePod(pod *v1.Pod)  { n.note("delete pod " + pod.Namespace + "/" + pod.Name) }

func newPod(namespace, name, node string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name)},
		Spec:       v1.PodSpec{NodeName: node},
	}
}

func TestFeedPassesEventsOnInOrder(t *testing.T) {
	n := &notes{}
	changes := 0
	f := newPodFeed(n, func() { changes++ })
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(f.Replace([]any{newPod("d", "a", "x"), newPod("d", "b", "x")}, "1"))
	select {
	case <-f.listed:
	default:
		t.Error("not listed after a list")
	}
	must(f.Add(newPod("d", "c", "x")))
	must(f.Update(newPod("d", "a", "x")))
	must(f.Delete(newPod("d", "b", "x")))
	want := []string{"set pod d/a", "set pod d/b", "set pod d/c", "set pod d/a", "delete pod d/b"}
	if diff := cmp.Diff(want, n.lines); diff != "" {
		t.Error("(-want +got):", diff)
	}
	if changes != 4 {
		t.Errorf("%d changes announced, want one per event", changes)
	}
	n.take()
	must(f.Replace([]any{newPod("d", "c", "x"), newPod("e", "a", "x")}, "9")) // after a watch broke
	if diff := cmp.Diff([]string{"delete pod d/a", "set pod d/c", "set pod e/a"}, n.take()); diff != "" {
		t.Error("after a second list (-want +got):", diff)
	}
	must(f.Replace(nil, "10"))
	if diff := cmp.Diff([]string{"delete pod d/c", "delete pod e/a"}, n.take()); diff != "" {
		t.Error("after an empty list (-want +got):", diff)
	}
	if f.Add(&v1.Node{}) == nil || f.Replace([]any{&v1.Node{}}, "") == nil || f.Add("x") == nil {
		t.Error("took something else for a pod")
	}
}

func TestFinishedAndUnboundPodsAreNotWatched(t *testing.T) {
	for _, c := range []struct {
		phase v1.PodPhase
		node  string
		want  bool
	}{
		{v1.PodRunning, "x", true}, {v1.PodPending, "x", true}, {"", "x", true}, {v1.PodUnknown, "x", true},
		{v1.PodSucceeded, "x", false}, {v1.PodFailed, "x", false}, {v1.PodPending, "", false},
	} {
		got := podsThatCount.Matches(fields.Set{"status.phase": string(c.phase), "spec.nodeName": c.node})
		if got != c.want {
			t.Errorf("phase %q on node %q: watched %v, want %v", c.phase, c.node, got, c.want)
		}
	}
}

func TestSlimPodKeepsWhatCounts(t *testing.T) {
	always := v1.ContainerRestartPolicyAlways
	pod := newPod("d", "a", "x")
	pod.Annotations = map[string]string{"a": "b"}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	pod.Spec.Containers = []v1.Container{{Name: "c", Image: "i", Env: []v1.EnvVar{{Name: "E"}}}}
	pod.Spec.InitContainers = []v1.Container{{Name: "i", RestartPolicy: &always, Args: []string{"x"}}}
	pod.Spec.Volumes = []v1.Volume{{Name: "v"}}
	slim, err := newPodFeed(&notes{}, func() {}).Transformer()(pod)
	if err != nil {
		t.Fatal(err)
	}
	want := newPod("d", "a", "x")
	want.Spec.Containers = []v1.Container{{Name: "c"}}
	want.Spec.InitContainers = []v1.Container{{Name: "i", RestartPolicy: &always}}
	if diff := cmp.Diff(want, slim); diff != "" {
		t.Error("(-want +got):", diff)
	}
}

// The reflector, the feed and a client together: lists, then events.
func TestWatchFollowsTheCluster(t *testing.T) {
	client := fake.NewClientset(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, newPod("d", "a", "x"))
	n := &notes{}
	ctx, cancel := context.WithCancel(t.Context())
	nodes, pods := newNodeFeed(n, func() {}), newPodFeed(n, func() {})
	var running sync.WaitGroup
	running.Go(func() { watchNodes(ctx, client, nodes) })
	running.Go(func() { watchPods(ctx, client, pods) })
	<-nodes.listed
	<-pods.listed
	if diff := cmp.Diff([]string{"set node x", "set pod d/a"}, n.take()); diff != "" {
		t.Error("lists (-want +got):", diff)
	}
	fakeapi.WaitForWatch(t, client, "nodes", "pods")
	if _, err := client.CoreV1().Pods("d").Create(ctx, newPod("d", "b", "x"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().Nodes().Delete(ctx, "x", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	var got []string
	deadline := time.Now().Add(5 * time.Second)
	for ; len(got) < 2 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		got = append(got, n.take()...)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"delete node x", "set pod d/b"}, got); diff != "" {
		t.Error("events (-want +got):", diff)
	}
	cancel()
	running.Wait()
}

// If a watch has missed events, which the API server says by 410 Gone, the cluster is listed anew: objects that were
// deleted meanwhile are gone here too. Invariant F4.
func TestAWatchThatMissedEventsListsAgain(t *testing.T) {
	var lists, watches atomic.Int32
	answer := func(w http.ResponseWriter, object string) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, object)
		http.NewResponseController(w).Flush()
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		switch {
		case query.Has("sendInitialEvents"): // an API server that cannot stream lists
			http.Error(w, "", http.StatusBadRequest)
		case query.Has("watch") && watches.Add(1) == 1:
			answer(w,
				`{"type":"ADDED","object":{"kind":"Node","apiVersion":"v1","metadata":{"name":"b","resourceVersion":"8"}}}`+
					`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`)
		case query.Has("watch"):
			answer(w, "")
			<-r.Context().Done()
		case lists.Add(1) == 1:
			answer(w,
				`{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]}`)
		default:
			answer(w,
				`{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"20"},"items":[{"metadata":{"name":"c"}}]}`)
		}
	}))
	defer server.Close()
	client, err := kubernetes.NewForConfig(
		&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	n := &notes{}
	ctx, cancel := context.WithCancel(t.Context())
	nodes := newNodeFeed(n, func() {})
	var running sync.WaitGroup
	running.Go(func() { watchNodes(ctx, client, nodes) })
	defer running.Wait()
	defer cancel()
	want := []string{"delete node a", "delete node b", "set node a", "set node b", "set node c"}
	var got []string
	deadline := time.Now().Add(10 * time.Second)
	for ; len(got) < len(want) && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		got = append(got, n.take()...)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("(-want +got):", diff)
	}
	if lists.Load() != 2 {
		t.Errorf("%d lists, want 2", lists.Load())
	}
}

// Events are gathered for 50 ms; without events the engine is asked once a second.
func TestRefresherPaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := refresher{wake: make(chan struct{}, 1)}
		start := time.Now()
		r.pause(t.Context(), start, checkTime)
		if took := time.Since(start); took != checkTime {
			t.Errorf("without events: %v", took)
		}
		start = time.Now()
		r.changed()
		r.changed()
		r.pause(t.Context(), start, checkTime)
		if took := time.Since(start); took != gatherTime {
			t.Errorf("after an event: %v", took)
		}
		r.changed()
		r.pause(t.Context(), start, checkTime) // a refresh that took long need not wait again
		if took := time.Since(start); took != gatherTime {
			t.Errorf("after a long refresh: %v", took)
		}
	})
}

package e2e

import (
	"context"
	"math"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"loadline.dev/test/e2e/harness"
)

// budgetWatch follows how many pods of the Deployment are healthy, by the API server's own events, one by one.
type budgetWatch struct {
	mu     sync.Mutex
	ready  map[string]bool // guarded by mu
	fewest int             // since all were; guarded by mu
}

func watchBudgets(t *testing.T, ctx context.Context, cluster *harness.Cluster) *budgetWatch {
	t.Helper()
	selector := labels.SelectorFromSet(labels.Set{"app": "web"}).String()
	list, err := cluster.Client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		t.Fatal(err)
	}
	b := &budgetWatch{ready: map[string]bool{}, fewest: math.MaxInt}
	for i := range list.Items {
		b.set(&list.Items[i], true)
	}
	// It goes on where it was when the API server is started again.
	watched, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = selector
			return cluster.Client.CoreV1().Pods("default").Watch(ctx, options)
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watched.Stop)
	b.fewest = len(b.ready)
	go func() {
		for event := range watched.ResultChan() {
			if pod, ok := event.Object.(*v1.Pod); ok {
				b.set(pod, event.Type != watch.Deleted)
			}
		}
	}()
	return b
}

// set takes note of a pod. One that is to end does not count, as it does not for a budget.
func (b *budgetWatch) set(pod *v1.Pod, there bool) {
	ready := false
	for _, c := range pod.Status.Conditions {
		ready = ready || c.Type == v1.PodReady && c.Status == v1.ConditionTrue
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if there && ready && pod.DeletionTimestamp == nil {
		b.ready[string(pod.UID)] = true
	} else {
		delete(b.ready, string(pod.UID))
	}
	b.fewest = min(b.fewest, len(b.ready))
}

func (b *budgetWatch) lowest() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fewest
}

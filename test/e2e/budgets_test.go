package e2e

import (
	"context"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"loadline.dev/test/e2e/harness"
)

// budgetWatch follows how many pods are healthy for each value of a label, by the API server's own events, one by one.
type budgetWatch struct {
	label   string
	mu      sync.Mutex
	healthy map[string]map[types.UID]bool // by value; guarded by mu
	fewest  map[string]int                // since begin; guarded by mu
}

// watchBudgets follows all pods that have the label.
func watchBudgets(t *testing.T, ctx context.Context, cluster *harness.Cluster, label string) *budgetWatch {
	t.Helper()
	pods := cluster.Client.CoreV1().Pods(metav1.NamespaceAll)
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: label})
	if err != nil {
		t.Fatal(err)
	}
	b := &budgetWatch{label: label, healthy: map[string]map[types.UID]bool{}}
	for i := range list.Items {
		b.set(&list.Items[i], true)
	}
	// It continues where it was when the API server is started again.
	watched, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = label
			return pods.Watch(ctx, options)
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watched.Stop)
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
	value := pod.Labels[b.label]
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.healthy[value] == nil {
		b.healthy[value] = map[types.UID]bool{}
	}
	if there && ready && pod.DeletionTimestamp == nil {
		b.healthy[value][pod.UID] = true
	} else {
		delete(b.healthy[value], pod.UID)
	}
	if fewest, begun := b.fewest[value]; begun {
		b.fewest[value] = min(fewest, len(b.healthy[value]))
	}
}

// begin starts to remember how few there have been.
func (b *budgetWatch) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fewest = map[string]int{}
	for value, pods := range b.healthy {
		b.fewest[value] = len(pods)
	}
}

// lowest returns the fewest healthy pods with a value of the label at any time since begin.
func (b *budgetWatch) lowest(value string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fewest[value]
}

// ready returns how many pods are healthy.
func (b *budgetWatch) ready() (pods int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, healthy := range b.healthy {
		pods += len(healthy)
	}
	return pods
}

// readyOf returns how many of those with a value of the label are healthy.
func (b *budgetWatch) readyOf(value string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.healthy[value])
}

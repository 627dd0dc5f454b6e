package harness

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
)

// A PodWatch follows how the pods of a cluster are placed.
type PodWatch struct {
	cancel context.CancelFunc

	mu      sync.Mutex
	pods    map[string]*v1.Pod // by namespace/name; guarded by mu
	changed time.Time          // when a pod was last bound or judged; guarded by mu
}

// Progress counts pods.
type Progress struct {
	// Bound have a node. Unschedulable were tried and found none; they are tried again.
	Bound, Unschedulable int
	// Total includes those that were not tried yet.
	Total int
}

// WatchPods starts to follow the pods of all namespaces. It ends with Close, with the context or with the cluster.
func (c *Cluster) WatchPods(ctx context.Context) (*PodWatch, error) {
	watched, cancel := context.WithCancel(ctx)
	context.AfterFunc(c.sandbox.ctx, cancel)
	w := &PodWatch{cancel: cancel, pods: map[string]*v1.Pod{}, changed: time.Now()}
	source := cache.NewListWatchFromClient(c.Client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll,
		fields.Everything())
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: source,
		ObjectType:    &v1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { w.set(object) },
			UpdateFunc: func(_, object any) { w.set(object) },
			DeleteFunc: func(object any) { w.drop(object) },
		},
	})
	go informer.RunWithContext(watched)
	if !cache.WaitForCacheSync(watched.Done(), informer.HasSynced) {
		cancel()
		return nil, errors.Join(errors.New("the list of pods does not come"), ctx.Err())
	}
	return w, nil
}

// Close ends the watch.
func (w *PodWatch) Close() { w.cancel() }

func (w *PodWatch) set(object any) {
	pod, ok := object.(*v1.Pod)
	if !ok {
		return
	}
	key := pod.Namespace + "/" + pod.Name
	w.mu.Lock()
	defer w.mu.Unlock()
	if old := w.pods[key]; old == nil || old.Spec.NodeName != pod.Spec.NodeName ||
		unschedulable(old) != unschedulable(pod) {
		w.changed = time.Now()
	}
	w.pods[key] = pod
}

func (w *PodWatch) drop(object any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pods, key)
	w.changed = time.Now()
}

func unschedulable(pod *v1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == v1.PodScheduled && condition.Reason == v1.PodReasonUnschedulable {
			return condition.Status == v1.ConditionFalse
		}
	}
	return false
}

// Progress returns how far placing has come.
func (w *PodWatch) Progress() Progress {
	progress, _ := w.state()
	return progress
}

func (w *PodWatch) state() (Progress, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	progress := Progress{Total: len(w.pods)}
	for _, pod := range w.pods {
		switch {
		case pod.Spec.NodeName != "":
			progress.Bound++
		case unschedulable(pod):
			progress.Unschedulable++
		}
	}
	return progress, time.Since(w.changed)
}

// Pods returns the pods as they are now. They are shared: not to be changed.
func (w *PodWatch) Pods() []*v1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	pods := make([]*v1.Pod, 0, len(w.pods))
	for _, pod := range w.pods {
		pods = append(pods, pod)
	}
	return pods
}

// WaitBound waits until there are `total` pods and all are bound.
func (w *PodWatch) WaitBound(ctx context.Context, total int) error {
	return w.wait(ctx, func(p Progress, _ time.Duration) bool { return p.Total >= total && p.Bound == p.Total })
}

// WaitSettled waits until there are `total` pods, each is bound or was found unschedulable, and, where some were,
// nothing has changed for `calm`: a pod that failed once may fit after all.
func (w *PodWatch) WaitSettled(ctx context.Context, total int, calm time.Duration) error {
	return w.wait(ctx, func(p Progress, quiet time.Duration) bool {
		settled := p.Total >= total && p.Bound+p.Unschedulable == p.Total
		return settled && (p.Unschedulable == 0 || quiet >= calm)
	})
}

func (w *PodWatch) wait(ctx context.Context, done func(Progress, time.Duration) bool) error {
	for {
		progress, quiet := w.state()
		if done(progress, quiet) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("of %d pods %d are bound and %d unschedulable: %w",
				progress.Total, progress.Bound, progress.Unschedulable, ctx.Err())
		case <-time.After(pollInterval):
		}
	}
}

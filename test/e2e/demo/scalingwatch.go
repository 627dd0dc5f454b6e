package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"loadline.dev/shim/autoscaler/act/drain"
)

// Sample is the cluster at one time.
type Sample struct {
	At time.Duration
	// USDPerHour is what all machines cost that were asked for and are not gone.
	USDPerHour    float64
	Nodes, Going  int
	Pods, Waiting int
	BudgetsBroken int
}

// sampleEvery is the time between two samples.
const sampleEvery = 250 * time.Millisecond

// sample begins to look at the cluster, until what it returns is called.
func (s *scaling) sample(ctx context.Context) (end func() []Sample) {
	s.began = time.Now()
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan []Sample, 1)
	go func() {
		var all []Sample
		for ctx.Err() == nil {
			if sample, err := s.look(ctx); err == nil {
				all = append(all, sample)
			}
			select {
			case <-ctx.Done():
			case <-time.After(sampleEvery):
			}
		}
		done <- all
	}()
	return func() []Sample {
		cancel()
		return <-done
	}
}

func (s *scaling) look(ctx context.Context) (Sample, error) {
	sample := Sample{At: time.Since(s.began)}
	for _, g := range ScalingGroups() {
		sample.USDPerHour += g.Price * float64(s.cloud.Target(g.ID))
	}
	nodes, err := s.nodes(ctx)
	if err != nil {
		return sample, err
	}
	sample.Nodes = len(nodes)
	for i := range nodes {
		if _, goes := drain.MarkOf(&nodes[i]); goes {
			sample.Going++
		}
	}
	pods, err := s.Client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return sample, err
	}
	for i := range pods.Items {
		sample.Pods++
		if pods.Items[i].Spec.NodeName == "" {
			sample.Waiting++
		}
	}
	budgets, err := s.Client.PolicyV1().PodDisruptionBudgets("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return sample, err
	}
	for i := range budgets.Items {
		if broken(&budgets.Items[i]) {
			sample.BudgetsBroken++
		}
	}
	return sample, nil
}

// broken says whether fewer pods of a budget are healthy than it asks for, though it has seen all that there are to be.
func broken(b *policyv1.PodDisruptionBudget) bool {
	return b.Status.ObservedGeneration == b.Generation && b.Status.CurrentHealthy < b.Status.DesiredHealthy
}

// sum adds the samples up.
func (s *scaling) sum() {
	all := s.out.Samples
	for i, sample := range all {
		s.out.Most = max(s.out.Most, sample.Going)
		if i > 0 {
			s.out.USD += all[i-1].USDPerHour * (sample.At - all[i-1].At).Hours()
		}
		// Before that, pods that are new and have no node yet are missing in their budgets.
		if s.left > 0 && sample.At > s.left && sample.BudgetsBroken > 0 && !s.closed(sample.At) {
			s.out.Broken = append(s.out.Broken,
				fmt.Sprintf("%d budgets were broken after %v", sample.BudgetsBroken, sample.At.Round(time.Second)))
		}
	}
}

// waits follows pods from their creation to their node, by the API server's own events.
type waits struct {
	stop func()

	mu     sync.Mutex
	seen   map[types.UID]time.Time     // when it came; guarded by mu
	waited map[types.UID]time.Duration // guarded by mu
	ready  map[types.UID]bool          // guarded by mu
}

func watchWaits(ctx context.Context, client kubernetes.Interface, selector string) (*waits, error) {
	w := &waits{seen: map[types.UID]time.Time{}, waited: map[types.UID]time.Duration{}, ready: map[types.UID]bool{}}
	list, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		w.take(watch.Modified, &list.Items[i])
	}
	watched, err := client.CoreV1().Pods("default").Watch(ctx,
		metav1.ListOptions{LabelSelector: selector, ResourceVersion: list.ResourceVersion})
	if err != nil {
		return nil, err
	}
	w.stop = watched.Stop
	go func() {
		for event := range watched.ResultChan() {
			if pod, ok := event.Object.(*v1.Pod); ok {
				w.take(event.Type, pod)
			}
		}
	}()
	return w, nil
}

func (w *waits) take(event watch.EventType, pod *v1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if event == watch.Added {
		w.seen[pod.UID] = time.Now()
	}
	if since, new := w.seen[pod.UID]; new && pod.Spec.NodeName != "" {
		if _, known := w.waited[pod.UID]; !known {
			w.waited[pod.UID] = time.Since(since)
		}
	}
	if event != watch.Deleted && pod.DeletionTimestamp == nil && pod.Status.Phase == v1.PodRunning {
		w.ready[pod.UID] = true
	} else {
		delete(w.ready, pod.UID)
	}
}

func (w *waits) running() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.ready)
}

func (w *waits) longest() (longest time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.waited {
		longest = max(longest, d)
	}
	return longest
}

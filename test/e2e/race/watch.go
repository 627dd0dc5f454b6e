package race

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Namespace is where the load is.
const Namespace = "default"

// capacityTypeLabel tells spot machines apart, on the nodes of all contestants.
const capacityTypeLabel = "karpenter.sh/capacity-type"

// Moment is the cluster at one time.
type Moment struct {
	Seconds         float64 `json:"seconds"`
	Nodes           int     `json:"nodes"`
	Pods            int     `json:"pods"`
	Waiting         int     `json:"waiting"`
	Evictions       int     `json:"evictions"`
	USDPerHour      float64 `json:"usdPerHour"`
	BoundUSDPerHour float64 `json:"boundUsdPerHour"`
}

// watcher looks at nodes and pods of a cluster from outside, the same way whoever makes the nodes. Safe for concurrent
// use.
type watcher struct {
	bound     bound
	prices    map[string]float64 // by instance type and capacity type
	requests  map[string]amounts // by the label app
	nodeStart time.Duration
	stop      context.CancelFunc
	now       func() time.Time

	mu     sync.Mutex // guards all below
	began  time.Time
	clock  time.Time // up to when amounts are summed
	nodes  map[string]seenNode
	pods   map[types.UID]*seenPod
	asked  amounts // of pods on nodes
	loaded float64 // the most that limits of memory on a node were of what it has
	usd    float64 // what nodes have cost
	least  float64 // what they cost at least
	waited []time.Duration
	series []Moment
	counts counts
}

type counts struct {
	added, removed, evictions int
	startUSD                  float64 // of the time from their order to their nodes
}

// seenNode is a node that is there.
type seenNode struct {
	usdPerHour float64
	memory     float64 // bytes that its pods may use
}

// seenPod is a pod that is there.
type seenPod struct {
	node             string
	memoryLimit      float64 // bytes
	app              string
	came             time.Time
	onNode, finished bool
	evicted          bool
}

func priceKey(instanceType, capacityType string) string { return instanceType + "/" + capacityType }

// watchCluster begins to watch; sums begin with begin.
func watchCluster(ctx context.Context, client kubernetes.Interface, s *Scenario) (*watcher, error) {
	w := &watcher{bound: bound{s.Types}, prices: map[string]float64{}, requests: map[string]amounts{},
		now: time.Now, nodeStart: s.NodeStart, nodes: map[string]seenNode{}, pods: map[types.UID]*seenPod{}}
	for _, t := range s.Types {
		w.prices[priceKey(t.Name, t.CapacityType())] = t.USDPerHour
	}
	for _, service := range s.Services {
		w.requests[service.Name] = service.amounts()
	}
	for _, job := range s.Jobs {
		w.requests[job.Name] = job.amounts()
	}
	w.began = w.now()
	w.clock = w.began
	ctx, w.stop = context.WithCancel(ctx)
	rest := client.CoreV1().RESTClient()
	nodes := cache.NewListWatchFromClient(rest, "nodes", metav1.NamespaceAll, fields.Everything())
	pods := cache.NewListWatchFromClient(rest, "pods", Namespace, fields.Everything())
	return w, errors.Join(follow(ctx, nodes, w.setNode, w.dropNode), follow(ctx, pods, w.setPod, w.dropPod))
}

// follow calls functions for each object that is added, changed and deleted.
func follow[T any](ctx context.Context, source cache.ListerWatcher, set, drop func(*T)) error {
	take := func(do func(*T)) func(any) {
		return func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			if typed, ok := object.(*T); ok {
				do(typed)
			}
		}
	}
	sample, ok := any(new(T)).(runtime.Object)
	if !ok {
		return errors.New("only objects of the API can be followed")
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: source, ObjectType: sample,
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: take(set), DeleteFunc: take(drop),
			UpdateFunc: func(_, object any) { take(set)(object) }}})
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return errors.Join(errors.New("a list of nodes or pods does not come"), ctx.Err())
	}
	return nil
}

// advance sums up to now. The caller holds mu.
func (w *watcher) advance() time.Time {
	now := w.now()
	hours := now.Sub(w.clock).Hours()
	w.usd += w.usdPerHour() * hours
	w.least += w.bound.usdPerHour(w.asked) * hours
	w.clock = now
	return now
}

func (w *watcher) usdPerHour() (usd float64) {
	for _, node := range w.nodes {
		usd += node.usdPerHour
	}
	return usd
}

func (w *watcher) setNode(node *v1.Node) {
	price, ours := w.prices[priceKey(node.Labels[v1.LabelInstanceTypeStable], node.Labels[capacityTypeLabel])]
	w.mu.Lock()
	defer w.mu.Unlock()
	if !ours {
		return
	}
	w.advance()
	_, known := w.nodes[node.Name]
	w.nodes[node.Name] = seenNode{price, node.Status.Allocatable.Memory().AsApproximateFloat64()}
	w.noteLoad(node.Name)
	if known {
		return
	}
	w.counts.added++
	w.counts.startUSD += price * w.nodeStart.Hours()
}

func (w *watcher) dropNode(node *v1.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.nodes[node.Name]; !known {
		return
	}
	w.advance()
	delete(w.nodes, node.Name)
	w.counts.removed++
}

func (w *watcher) setPod(pod *v1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	request, ours := w.requests[pod.Labels["app"]]
	if !ours {
		return
	}
	now := w.advance()
	seen := w.pods[pod.UID]
	if seen == nil {
		seen = &seenPod{app: pod.Labels["app"], came: now}
		w.pods[pod.UID] = seen
	}
	w.noteEviction(seen, pod)
	if !seen.onNode && pod.Spec.NodeName != "" {
		seen.onNode, seen.node = true, pod.Spec.NodeName
		limits := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})
		seen.memoryLimit = limits.Memory().AsApproximateFloat64()
		w.waited = append(w.waited, now.Sub(seen.came))
		w.ask(request, 1)
	}
	if !seen.finished && (pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed) {
		seen.finished = true
		if seen.onNode {
			w.ask(request, -1)
		}
	}
	w.noteLoad(seen.node)
}

// noteLoad takes note of the limits of memory on a node. A pod's limit counts at most as all that the node has, as it
// does for a load line, and none as nothing. Pods may be seen before their node.
func (w *watcher) noteLoad(name string) {
	node, known := w.nodes[name]
	if !known || node.memory == 0 {
		return
	}
	limits := 0.0
	for _, pod := range w.pods {
		if pod.node == name && !pod.finished {
			limits += min(pod.memoryLimit, node.memory)
		}
	}
	w.loaded = max(w.loaded, limits/node.memory)
}

// noteEviction counts a pod whose status says that the eviction API has ended it.
func (w *watcher) noteEviction(seen *seenPod, pod *v1.Pod) {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == v1.DisruptionTarget && condition.Reason == "EvictionByEvictionAPI" && !seen.evicted {
			seen.evicted = true
			w.counts.evictions++
		}
	}
}

func (w *watcher) dropPod(pod *v1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.pods[pod.UID]
	if seen == nil {
		return
	}
	w.advance()
	w.noteEviction(seen, pod)
	if seen.onNode && !seen.finished {
		w.ask(w.requests[seen.app], -1)
	}
	delete(w.pods, pod.UID)
}

func (w *watcher) ask(request amounts, sign float64) {
	for r := range w.asked {
		w.asked[r] += sign * request[r]
	}
}

// begin forgets all sums: what is measured begins now.
func (w *watcher) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began = w.advance()
	w.loaded = 0
	w.usd, w.least, w.counts, w.waited, w.series = 0, 0, counts{}, nil, nil
}

// sample notes the cluster as it is.
func (w *watcher) sample() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.advance()
	m := Moment{Seconds: math.Round(now.Sub(w.began).Seconds()*10) / 10, Nodes: len(w.nodes), USDPerHour: w.usdPerHour(),
		BoundUSDPerHour: w.bound.usdPerHour(w.asked), Evictions: w.counts.evictions}
	for _, pod := range w.pods {
		switch {
		case pod.finished:
		case !pod.onNode:
			m.Waiting++
			m.Pods++
		default:
			m.Pods++
		}
	}
	w.series = append(w.series, m)
}

// end returns what was measured since begin.
func (w *watcher) end() Measured {
	w.sample()
	w.stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	m := Measured{USD: w.usd, USDWithStarts: w.usd + w.counts.startUSD, BoundUSD: w.least, Waits: waitsOf(w.waited),
		Evictions: w.counts.evictions, NodesAdded: w.counts.added, NodesRemoved: w.counts.removed,
		MemoryLimitsMost: w.loaded, Series: w.series}
	last := w.series[len(w.series)-1]
	m.LeftWaiting = last.Waiting
	return m
}

// waitsOf works out percentiles by nearest rank.
func waitsOf(waited []time.Duration) Waits {
	waits := Waits{Pods: len(waited)}
	if len(waited) == 0 {
		return waits
	}
	sorted := slices.Sorted(slices.Values(waited))
	sum := time.Duration(0)
	for _, wait := range sorted {
		sum += wait
	}
	rank := func(percent int) float64 {
		return round(sorted[max(1, (len(sorted)*percent+99)/100)-1].Seconds())
	}
	waits.Mean, waits.P50, waits.P95, waits.Max = round(sum.Seconds()/float64(len(sorted))), rank(50), rank(95), rank(100)
	return waits
}

func round(value float64) float64 { return math.Round(value*100) / 100 }

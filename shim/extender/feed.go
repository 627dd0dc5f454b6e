package extender

import (
	"context"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"loadline.dev/shim/view"
)

// podsThatCount selects the pods that kube-scheduler's own informer selects, as far as they are bound. A finished
// pod holds nothing: here it vanishes as if it were deleted.
var podsThatCount = fields.ParseSelectorOrDie("status.phase!=" + string(v1.PodSucceeded) +
	",status.phase!=" + string(v1.PodFailed) + ",spec.nodeName!=")

// cluster takes note of objects. *view.View is one.
type cluster interface {
	SetNode(node *v1.Node)
	DeleteNode(name string)
	SetPod(pod *v1.Pod)
	DeletePod(pod *v1.Pod)
}

// nowhere takes note of nothing.
type nowhere struct{}

func (nowhere) SetNode(*v1.Node)  {}
func (nowhere) DeleteNode(string) {}
func (nowhere) SetPod(*v1.Pod)    {}
func (nowhere) DeletePod(*v1.Pod) {}

// feed passes on what the API server says about one kind of object, in the order of the events. It is the store of
// a reflector: it holds names, where an informer would hold each object a second time.
type feed struct {
	set     func(object any) error
	remove  func(name types.NamespacedName)
	changed func() // called after each event
	listed  chan struct{}

	mu    sync.Mutex
	known map[types.NamespacedName]struct{} // nil until the first list; guarded by mu
}

var _ cache.ReflectorStore = (*feed)(nil)
var _ cache.TransformingStore = (*feed)(nil)

func newNodeFeed(to cluster, changed func()) *feed {
	return &feed{
		set: func(object any) error {
			node, ok := object.(*v1.Node)
			if !ok {
				return fmt.Errorf("%T is not a node", object)
			}
			to.SetNode(node)
			return nil
		},
		remove:  func(name types.NamespacedName) { to.DeleteNode(name.Name) },
		changed: changed, listed: make(chan struct{}),
	}
}

func newPodFeed(to cluster, changed func()) *feed {
	return &feed{
		set: func(object any) error {
			pod, ok := object.(*v1.Pod)
			if !ok {
				return fmt.Errorf("%T is not a pod", object)
			}
			to.SetPod(pod)
			return nil
		},
		remove: func(name types.NamespacedName) {
			to.DeletePod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}})
		},
		changed: changed, listed: make(chan struct{}),
	}
}

// watchNodes lists and watches nodes until ctx ends, again where a watch breaks.
func watchNodes(ctx context.Context, client kubernetes.Interface, f *feed) {
	nodes := client.CoreV1().Nodes()
	run(ctx, client, f, &v1.Node{}, "nodes", &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return nodes.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return nodes.Watch(ctx, o)
		},
	})
}

// watchPods is watchNodes for the pods that count.
func watchPods(ctx context.Context, client kubernetes.Interface, f *feed) {
	pods := client.CoreV1().Pods(metav1.NamespaceAll)
	run(ctx, client, f, &v1.Pod{}, "pods", &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = podsThatCount.String()
			return pods.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = podsThatCount.String()
			return pods.Watch(ctx, o)
		},
	})
}

func run(ctx context.Context, client kubernetes.Interface, f *feed, kind runtime.Object, name string,
	source *cache.ListWatch) {
	listWatcher := cache.ToListWatcherWithWatchListSemantics(source, client)
	cache.NewReflectorWithOptions(listWatcher, kind, f, cache.ReflectorOptions{Name: name}).RunWithContext(ctx)
}

// Add takes note of a new object.
func (f *feed) Add(object any) error {
	name, err := nameOf(object)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.set(object); err != nil {
		return err
	}
	if f.known == nil {
		f.known = map[types.NamespacedName]struct{}{}
	}
	f.known[name] = struct{}{}
	f.changed()
	return nil
}

// Update takes note of a changed object.
func (f *feed) Update(object any) error {
	return f.Add(object)
}

// Delete takes note that an object is gone.
func (f *feed) Delete(object any) error {
	name, err := nameOf(object)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.known, name)
	f.remove(name)
	f.changed()
	return nil
}

// Replace takes note of a whole list: what was known and is not in it is gone.
func (f *feed) Replace(objects []any, _ string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := make(map[types.NamespacedName]struct{}, len(objects))
	for _, object := range objects {
		name, err := nameOf(object)
		if err != nil {
			return err
		}
		if err := f.set(object); err != nil {
			return err
		}
		now[name] = struct{}{}
	}
	for name := range f.known {
		if _, still := now[name]; !still {
			f.remove(name)
		}
	}
	f.known = now
	select {
	case <-f.listed:
	default:
		close(f.listed)
	}
	f.changed()
	return nil
}

// count returns how many objects there are; false before the first list.
func (f *feed) count() (int, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.listed:
		return len(f.known), true
	default:
		return 0, false
	}
}

// Resync has no meaning here: nothing is derived from the objects but what was passed on.
func (f *feed) Resync() error {
	return nil
}

// Transformer makes the reflector drop what nobody reads from the objects of a list before it gathers them.
func (f *feed) Transformer() cache.TransformFunc {
	return func(object any) (any, error) {
		if pod, ok := object.(*v1.Pod); ok {
			slimPod(pod)
		}
		if accessor, err := meta.Accessor(object); err == nil {
			accessor.SetManagedFields(nil)
			accessor.SetAnnotations(view.Protection(accessor.GetAnnotations()))
		}
		return object, nil
	}
}

// slimPod drops the bulky parts of a pod that play no part in what it may use.
func slimPod(pod *v1.Pod) {
	pod.Spec.Volumes, pod.Spec.Affinity, pod.Spec.Tolerations = nil, nil, nil
	for _, containers := range [][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			c := &containers[i]
			*c = v1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy}
		}
	}
}

func nameOf(object any) (types.NamespacedName, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return types.NamespacedName{}, err
	}
	return types.NamespacedName{Namespace: accessor.GetNamespace(), Name: accessor.GetName()}, nil
}

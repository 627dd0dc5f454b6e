package store

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"loadline.dev/shim/usage/profile"
)

const (
	// settle is how long shards that are being written are waited for.
	settle = time.Second
	// aged is the age from which on the profiles are reported as old: twenty-four times as long as they are written
	// after.
	aged = 24 * time.Hour
)

// Holder holds profiles. Views are.
type Holder interface {
	SetUsage(profiles []profile.Profile)
}

// Supply supplies a view with the profiles in a namespace until the context ends. What is wrong is logged once. After
// each change it calls changed, if that is not nil.
func Supply(ctx context.Context, client kubernetes.Interface, namespace string, to Holder, changed func()) {
	Follow(ctx, client, namespace, func(profiles []profile.Profile) {
		to.SetUsage(profiles)
		if changed != nil {
			changed()
		}
	}, func(problem string) {
		if problem == "" {
			klog.InfoS("Profiles of what pods use are there again")
			return
		}
		klog.InfoS("Warning: pods count by their limits where they have no profile of what they use", "problem", problem)
	})
}

// Follower is what a client knows of the profiles that are written.
type Follower struct {
	namespace string
	// changed hears of all profiles after each change; the other function hears of a problem, once, and of nothing when
	// all is well again.
	changed func([]profile.Profile)
	told    func(problem string)

	mu     sync.Mutex
	shards [Shards]shard // guarded by mu
	dirty  bool          // guarded by mu
	synced []cache.InformerSynced
}

// Follow follows the ConfigMaps until the context ends. Each has a watch of its own by its name, so that the right to
// list and watch these names is enough. What is missing or cannot be read counts as no profile.
func Follow(ctx context.Context, client kubernetes.Interface, namespace string, changed func([]profile.Profile),
	told func(problem string)) {
	f := &Follower{namespace: namespace, changed: changed, told: told}
	for i := range Shards {
		_, informer := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: f.one(client, Name(i)),
			ObjectType: &v1.ConfigMap{}, Handler: f.handler(i), Transform: dropManaged})
		f.synced = append(f.synced, informer.HasSynced)
		go informer.RunWithContext(ctx)
	}
	go f.run(ctx)
}

// one lists and watches the ConfigMap of a name.
func (f *Follower) one(client kubernetes.Interface, name string) cache.ListerWatcher {
	configMaps := client.CoreV1().ConfigMaps(f.namespace)
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			return configMaps.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			return configMaps.Watch(ctx, o)
		},
	}, client)
}

func dropManaged(object any) (any, error) {
	if m, ok := object.(*v1.ConfigMap); ok {
		m.ManagedFields = nil
	}
	return object, nil
}

// handler takes note of one ConfigMap.
func (f *Follower) handler(i int) cache.ResourceEventHandler {
	set := func(object any) {
		m, ok := object.(*v1.ConfigMap)
		if !ok || m.Name != Name(i) { // a server that does not know the selector
			return
		}
		f.note(i, read(m))
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: set, UpdateFunc: func(_, object any) { set(object) },
		DeleteFunc: func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			if m, ok := object.(*v1.ConfigMap); ok && m.Name == Name(i) {
				f.note(i, shard{})
			}
		}}
}

func (f *Follower) note(i int, s shard) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shards[i], f.dirty = s, true
}

// run tells of changes and of problems.
func (f *Follower) run(ctx context.Context) {
	before := ""
	ticker := time.NewTicker(settle)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if profiles, changed := f.take(); changed {
				f.changed(profiles)
			}
			if problem := f.problem(now); problem != before {
				before = problem
				f.told(problem)
			}
		}
	}
}

// take returns the profiles where they have changed since the last call.
func (f *Follower) take() ([]profile.Profile, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.dirty {
		return nil, false
	}
	f.dirty = false
	_, profiles := merge(f.shards[:])
	return profiles, true
}

// problem says what is wrong at a time; empty: nothing, or it is not known yet.
func (f *Follower) problem(now time.Time) string {
	for _, synced := range f.synced {
		if !synced() {
			return ""
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	there := false
	for i := range f.shards {
		if f.shards[i].problem != "" {
			return f.shards[i].problem
		}
		there = there || f.shards[i].there
	}
	if !there {
		return fmt.Sprintf("there is no ConfigMap %s/%s: does loadline usage run?", f.namespace, Name(0))
	}
	head, _ := merge(f.shards[:])
	if age := now.Sub(time.Unix(head.Collected, 0)); age > aged {
		return fmt.Sprintf("the profiles in namespace %s are from %s: does loadline usage run?", f.namespace,
			time.Unix(head.Collected, 0).UTC().Format(time.RFC3339))
	}
	return ""
}

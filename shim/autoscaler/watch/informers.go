package watch

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/scaleup"
	"loadline.dev/shim/usage/store"
	"loadline.dev/shim/view"
)

// unfinished selects the pods that hold something.
var unfinished = fields.ParseSelectorOrDie("status.phase!=" + string(v1.PodSucceeded) +
	",status.phase!=" + string(v1.PodFailed))

// listed is what is followed, and how far that is.
type listed struct {
	kinds []followedKind
	// daemonSets are those that exist now, also between two calls of Apply; nil before Watch.
	daemonSets appslisters.DaemonSetLister
	// complete says that all kinds have been listed that plans need, and that the engine has them.
	complete bool
}

// followedKind is a kind of objects that an informer follows.
type followedKind struct {
	name   string
	synced cache.InformerSynced
}

// inbox is what informers have noted. Safe for concurrent use.
type inbox struct {
	mu    sync.Mutex
	notes map[note]any  // the object, or that it is gone; guarded by mu
	fresh map[note]bool // those of which no object has been taken; guarded by mu
}

func newInbox() inbox { return inbox{notes: map[note]any{}, fresh: map[note]bool{}} }

// set takes note of an object, which was added or changed.
func (in *inbox) set(n note, object any, added bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if _, noted := in.notes[n]; added && !noted {
		in.fresh[n] = true
	}
	in.notes[n] = object
}

// remove takes note that an object is gone. One that came since the last call of takeAll is forgotten: while the cloud
// does not answer, or another process leads, these would become more and more.
func (in *inbox) remove(n note, object any) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.fresh[n] {
		delete(in.notes, n)
		delete(in.fresh, n)
		return
	}
	in.notes[n] = gone{object}
}

func (in *inbox) takeAll() map[note]any {
	in.mu.Lock()
	defer in.mu.Unlock()
	notes := in.notes
	in.notes, in.fresh = map[note]any{}, map[note]bool{}
	return notes
}

// note names an object that has changed.
type note struct {
	kind string
	name types.NamespacedName
}

func (n note) compare(other note) int {
	return cmp.Or(strings.Compare(n.kind, other.kind), strings.Compare(n.name.Namespace, other.name.Namespace),
		strings.Compare(n.name.Name, other.name.Name))
}

// Kinds of objects.
const (
	KindNode    = "Node"
	KindPod     = "Pod"
	kindService = "Service"
)

// Watch starts to follow the cluster, until the context ends.
func (c *Cluster) Watch(ctx context.Context, client kubernetes.Interface) error {
	reduce := informers.WithTransform(view.NewKeeper().Reduce)
	all := informers.NewSharedInformerFactoryWithOptions(client, 0, reduce)
	pods := informers.NewSharedInformerFactoryWithOptions(client, 0, reduce,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = unfinished.String() }))
	core, apps, storage := all.Core().V1(), all.Apps().V1(), all.Storage().V1()
	c.listed.daemonSets = apps.DaemonSets().Lister()
	followed := map[string]cache.SharedIndexInformer{
		KindNode: core.Nodes().Informer(), KindPod: pods.Core().V1().Pods().Informer(),
		"Namespace": core.Namespaces().Informer(), "PersistentVolume": core.PersistentVolumes().Informer(),
		"PersistentVolumeClaim": core.PersistentVolumeClaims().Informer(),
		"StorageClass":          storage.StorageClasses().Informer(),
		"CSINode":               storage.CSINodes().Informer(), "CSIDriver": storage.CSIDrivers().Informer(),
		"PodDisruptionBudget":   all.Policy().V1().PodDisruptionBudgets().Informer(),
		"ReplicationController": core.ReplicationControllers().Informer(), "ReplicaSet": apps.ReplicaSets().Informer(),
		"StatefulSet": apps.StatefulSets().Informer(), "DaemonSet": apps.DaemonSets().Informer(),
		"Deployment": apps.Deployments().Informer(), "Job": all.Batch().V1().Jobs().Informer(),
	}
	if c.selectors != nil {
		followed[kindService] = core.Services().Informer()
	}
	if ServesDevices(client) {
		followed["DeviceClass"] = all.Resource().V1().DeviceClasses().Informer()
	} else {
		c.View.Complete(view.Kinds["DeviceClass"]) // there are none
	}
	for kind, informer := range followed {
		handle, err := informer.AddEventHandler(c.Handler(kind))
		if err != nil {
			return err
		}
		if err := c.watchErrors(kind, informer); err != nil {
			return err
		}
		c.listed.kinds = append(c.listed.kinds, followedKind{kind, handle.HasSynced})
	}
	if c.countsUse {
		store.Supply(ctx, client, c.options.UsageNamespace, &c.usage, nil)
	}
	all.StartWithContext(ctx)
	pods.StartWithContext(ctx)
	return nil
}

// ServesDevices says whether the API server may have device classes: one before 1.34 has not, unless asked to.
func ServesDevices(client kubernetes.Interface) bool {
	_, err := client.Discovery().ServerResourcesForGroupVersion(resourcev1.SchemeGroupVersion.String())
	return !apierrors.IsNotFound(err)
}

// Handler returns what takes notes of one kind of objects.
func (c *Cluster) Handler(kind string) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if n, ok := noteOf(kind, object); ok {
				c.inbox.set(n, object, true)
			}
		},
		UpdateFunc: func(_, object any) {
			if n, ok := noteOf(kind, object); ok {
				c.inbox.set(n, object, false)
			}
		},
		DeleteFunc: func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			if n, ok := noteOf(kind, object); ok {
				c.inbox.remove(n, object)
			}
		}}
}

// Take takes note of an object of a cluster that is not watched: one of a list, or of a dump.
func (c *Cluster) Take(object any) {
	if n, ok := noteOf(reflect.TypeOf(object).Elem().Name(), object); ok { // types have the names of their kinds
		c.inbox.set(n, object, true)
	}
}

// gone is an object that was deleted, as it was last.
type gone struct{ object any }

func noteOf(kind string, object any) (note, bool) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		klog.ErrorS(err, "An event tells of something that is no object", "kind", kind)
		return note{}, false
	}
	return note{kind, types.NamespacedName{Namespace: accessor.GetNamespace(), Name: accessor.GetName()}}, true
}

// Ready says whether all kinds have been listed, but those that a plan can do without and that may not be listed. Safe
// for concurrent use once Watch has returned.
func (c *Cluster) Ready() bool {
	return len(c.listed.kinds) > 0 && !slices.ContainsFunc(c.listed.kinds,
		func(kind followedKind) bool { return !kind.synced() && !c.isRefused(kind.name) })
}

// listedKinds returns the kinds of which all objects have been noted.
func (c *Cluster) listedKinds() (all []loadlinev1.ObjectKind) {
	for _, kind := range c.listed.kinds {
		if of, ok := view.Kinds[kind.name]; ok && kind.synced() {
			all = append(all, of)
		}
	}
	return all
}

// IsOfDaemonSet says whether the DaemonSet that a pod names as its owner exists. Safe for concurrent use once Watch has
// returned.
func (c *Cluster) IsOfDaemonSet(pod *v1.Pod) bool {
	named, claims := scaleup.DaemonSetOf(pod)
	if !claims || c.listed.daemonSets == nil {
		return false
	}
	set, err := c.listed.daemonSets.DaemonSets(named.Namespace).Get(named.Name)
	return err == nil && scaleup.IdentityOf(set) == named
}

package autoscaler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/filterconfig"
	"loadline.dev/shim/internal/kuberelease"
	"loadline.dev/shim/scaleup"
	"loadline.dev/shim/slack"
	"loadline.dev/shim/view"
)

// unfinished selects the pods that hold something.
var unfinished = fields.ParseSelectorOrDie("status.phase!=" + string(v1.PodSucceeded) +
	",status.phase!=" + string(v1.PodFailed))

// cluster is what the autoscaler knows of a cluster. Informers take notes; apply brings them into effect, so that a
// loop sees one state from its begin to its end, and the engine the same.
type cluster struct {
	view   *view.View
	synced []cache.InformerSynced
	kinds  []loadlinev1.ObjectKind // that are watched, beside nodes and pods
	// daemonSets are those that exist now, also between two calls of apply; nil before watch.
	daemonSets appslisters.DaemonSetLister
	// selectors are those of default spread constraints; nil: the scheduler has none. They belong to the loop.
	selectors *filterconfig.Selectors
	minor     int32 // of the release by which resized pods count; 0: that of the API server

	mu      sync.Mutex
	notes   map[note]any // the object, or that it is gone; guarded by mu
	applied bool         // apply was called; guarded by mu

	// Between two calls of apply these stay as they are. They belong to the loop.
	nodes   map[string]*v1.Node
	pods    map[types.NamespacedName]*v1.Pod
	onNode  map[string]map[types.NamespacedName]*v1.Pod
	unbound map[types.NamespacedName]*v1.Pod // pods without a node
	// daemons are the pods that say that a DaemonSet made them, by what they say; sets are the DaemonSets that exist.
	daemons  map[scaleup.DaemonSet]map[types.NamespacedName]*v1.Pod
	sets     map[types.NamespacedName]*appsv1.DaemonSet
	asking   map[note]any                     // pods and workloads that ask for copies to be kept free
	standing map[types.NamespacedName]*v1.Pod // placeholders of ours that are on nodes
	// standsFor says which pods are placeholders of ours. The engine is not told of them.
	standsFor func(*v1.Pod) bool
	// slackNamespace is where our placeholders are.
	slackNamespace string
	// complete says that all kinds have been listed, told that the engine knows it.
	complete, told bool
	fresh          *freshness
	age            time.Duration // of what the last call of apply has brought into effect
	// turns say which namespaces come first while more pods wait than are planned for in one loop.
	turns turns
}

// note names an object that has changed.
type note struct {
	kind string
	name types.NamespacedName
}

const (
	kindNode = "Node"
	kindPod  = "Pod"

	kindService = "Service"
)

func newCluster(v *view.View, options *config.Configuration) *cluster {
	c := &cluster{view: v, slackNamespace: options.Slack.Namespace, fresh: newFreshness(),
		standsFor: func(pod *v1.Pod) bool { return standsFor(options, pod) },
		asking:    map[note]any{}, standing: map[types.NamespacedName]*v1.Pod{}, notes: map[note]any{},
		nodes: map[string]*v1.Node{}, pods: map[types.NamespacedName]*v1.Pod{},
		onNode: map[string]map[types.NamespacedName]*v1.Pod{}, unbound: map[types.NamespacedName]*v1.Pod{},
		daemons: map[scaleup.DaemonSet]map[types.NamespacedName]*v1.Pod{},
		sets:    map[types.NamespacedName]*appsv1.DaemonSet{}}
	v.LeaveOutInvalid(func(node string, err error) {
		klog.ErrorS(err, "The engine finds a node invalid; it is left alone until it changes",
			"node", klog.KRef("", node))
	})
	return c
}

// isPlaceholder says whether a pod is one of ours that only keeps room free, whether or not we keep slack now. Such a
// pod waits for no node, and goes with the node that it is on.
func (c *cluster) isPlaceholder(pod *v1.Pod) bool { return slack.IsPlaceholder(pod, c.slackNamespace) }

// isOfDaemonSet says whether the DaemonSet that a pod names as its owner exists. Safe for concurrent use once watch has
// returned.
func (c *cluster) isOfDaemonSet(pod *v1.Pod) bool {
	named, claims := scaleup.DaemonSetOf(pod)
	if !claims || c.daemonSets == nil {
		return false
	}
	set, err := c.daemonSets.DaemonSets(named.Namespace).Get(named.Name)
	return err == nil && scaleup.IdentityOf(set) == named
}

// watch starts to follow the cluster, until the context ends.
func (c *cluster) watch(ctx context.Context, client kubernetes.Interface) error {
	reduce := informers.WithTransform(view.NewKeeper().Reduce)
	all := informers.NewSharedInformerFactoryWithOptions(client, 0, reduce)
	pods := informers.NewSharedInformerFactoryWithOptions(client, 0, reduce,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = unfinished.String() }))
	core, apps, storage := all.Core().V1(), all.Apps().V1(), all.Storage().V1()
	c.daemonSets = apps.DaemonSets().Lister()
	followed := map[string]cache.SharedIndexInformer{
		kindNode: core.Nodes().Informer(), kindPod: pods.Core().V1().Pods().Informer(),
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
	if servesDevices(client) {
		followed["DeviceClass"] = all.Resource().V1().DeviceClasses().Informer()
	} else {
		c.kinds = append(c.kinds, view.Kinds["DeviceClass"]) // there are none
	}
	for kind, informer := range followed {
		handle, err := informer.AddEventHandler(c.handler(kind))
		if err != nil {
			return err
		}
		if err := c.fresh.watchErrors(kind, informer); err != nil {
			return err
		}
		c.synced = append(c.synced, handle.HasSynced)
		if of, ok := view.Kinds[kind]; ok {
			c.kinds = append(c.kinds, of)
		}
	}
	all.StartWithContext(ctx)
	pods.StartWithContext(ctx)
	return nil
}

// servesDevices says whether the API server may have device classes: one before 1.34 has not, unless asked to.
func servesDevices(client kubernetes.Interface) bool {
	_, err := client.Discovery().ServerResourcesForGroupVersion(resourcev1.SchemeGroupVersion.String())
	return !apierrors.IsNotFound(err)
}

func (c *cluster) handler(kind string) cache.ResourceEventHandler {
	set := func(object any) { c.take(kind, object, object) }
	return cache.ResourceEventHandlerFuncs{AddFunc: set, UpdateFunc: func(_, object any) { set(object) },
		DeleteFunc: func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			c.take(kind, object, gone{object})
		}}
}

// gone is an object that was deleted, as it was last.
type gone struct{ object any }

func (c *cluster) take(kind string, object, value any) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		klog.ErrorS(err, "An event tells of something that is no object", "kind", kind)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := note{kind, types.NamespacedName{Namespace: accessor.GetNamespace(), Name: accessor.GetName()}}
	if _, isGone := value.(gone); isGone && !c.applied {
		delete(c.notes, n) // a standby knows of nothing that could go
		return
	}
	c.notes[n] = value
}

// forgetGone forgets pods that came and went since the last call of apply. It is for loops that do not come to apply:
// while the cloud does not answer, these would become more and more.
func (c *cluster) forgetGone() {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.notes, func(n note, value any) bool {
		_, isGone := value.(gone)
		return isGone && n.kind == kindPod && c.pods[n.name] == nil && c.standing[n.name] == nil && c.asking[n] == nil
	})
}

// ready says whether all kinds have been listed. Safe for concurrent use once watch has returned.
func (c *cluster) ready() bool {
	for _, synced := range c.synced {
		if !synced() {
			return false
		}
	}
	return len(c.synced) > 0
}

// askRelease has pods that are being resized count as in the release that is meant, or else in that of the API server.
// To be called before the first plan.
func (c *cluster) askRelease(ctx context.Context, server discovery.ServerVersionInterface) {
	c.view.CountAs(kuberelease.Await(ctx, c.minor, server))
}

// apply brings what the informers have noted into effect.
func (c *cluster) apply() error {
	ready := c.ready() // before the notes are taken: they hold the whole list then
	c.age = c.fresh.age()
	c.mu.Lock()
	notes := c.notes
	c.notes, c.applied = map[note]any{}, true
	c.mu.Unlock()
	var errs []error
	for n, value := range notes {
		switch n.kind {
		case kindNode:
			c.applyNode(n.name.Name, value)
		case kindPod:
			c.applyPod(n.name, value)
		default:
			c.ask(n, value)
			errs = append(errs, c.applyObject(value))
		}
	}
	c.complete = c.complete || ready
	if c.complete && !c.told {
		c.told = true
		c.view.Complete(c.kinds...)
	}
	return errors.Join(errs...)
}

func (c *cluster) applyNode(name string, value any) {
	node, ok := value.(*v1.Node)
	if !ok {
		delete(c.nodes, name)
		c.view.DeleteNode(name)
		return
	}
	c.nodes[name] = node
	c.view.SetNode(node)
}

func (c *cluster) applyPod(name types.NamespacedName, value any) {
	if old := c.pods[name]; old != nil {
		remove(c.onNode, old.Spec.NodeName, name)
		set, _ := scaleup.DaemonSetOf(old)
		remove(c.daemons, set, name)
		delete(c.unbound, name)
	}
	delete(c.standing, name)
	pod, ok := value.(*v1.Pod)
	c.ask(note{kindPod, name}, value)
	stands := ok && c.standsFor(pod)
	if stands && pod.Spec.NodeName != "" {
		c.standing[name] = pod
	}
	if !ok || stands {
		delete(c.pods, name)
		c.view.DeletePod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}})
		return
	}
	c.pods[name] = pod
	c.view.SetPod(pod)
	if node := pod.Spec.NodeName; node != "" {
		add(c.onNode, node, name, pod)
	} else {
		c.unbound[name] = pod
	}
	if set, claims := scaleup.DaemonSetOf(pod); claims {
		add(c.daemons, set, name, pod)
	}
}

// ask takes note of whether an object asks for copies.
func (c *cluster) ask(n note, value any) {
	if slack.AsksForCopies(value) {
		c.asking[n] = value
	} else {
		delete(c.asking, n)
	}
}

func add[K comparable](to map[K]map[types.NamespacedName]*v1.Pod, key K, name types.NamespacedName, pod *v1.Pod) {
	if to[key] == nil {
		to[key] = map[types.NamespacedName]*v1.Pod{}
	}
	to[key][name] = pod
}

func remove[K comparable](from map[K]map[types.NamespacedName]*v1.Pod, key K, name types.NamespacedName) {
	delete(from[key], name)
	if len(from[key]) == 0 {
		delete(from, key)
	}
}

func (c *cluster) applyObject(value any) error {
	if last, ok := value.(gone); ok {
		if set, ok := last.object.(*appsv1.DaemonSet); ok {
			delete(c.sets, types.NamespacedName{Namespace: set.Namespace, Name: set.Name})
		}
		c.selectors.Delete(last.object)
		if _, ok := last.object.(*v1.Service); ok {
			return nil
		}
		return c.view.DeleteObject(last.object)
	}
	if set, ok := value.(*appsv1.DaemonSet); ok {
		c.sets[types.NamespacedName{Namespace: set.Namespace, Name: set.Name}] = set
	}
	c.selectors.Set(value)
	if _, ok := value.(*v1.Service); ok {
		return nil // an engine has no use for it
	}
	return c.view.SetObject(value)
}

// podsOf returns the pods of a node in the order in which the engine holds them.
func (c *cluster) podsOf(node string) []*v1.Pod {
	pods := slices.Collect(maps.Values(c.onNode[node]))
	slices.SortFunc(pods, func(a, b *v1.Pod) int {
		if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return pods
}

// sortedNodes returns all nodes by name.
func (c *cluster) sortedNodes() []*v1.Node {
	nodes := make([]*v1.Node, 0, len(c.nodes))
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		nodes = append(nodes, c.nodes[name])
	}
	return nodes
}

func (c *cluster) nodeUIDs() map[types.UID]bool {
	uids := make(map[types.UID]bool, len(c.nodes))
	for _, node := range c.nodes {
		uids[node.UID] = true
	}
	return uids
}

// doubt returns why the cluster cannot be as it was told; nil when it can.
func (c *cluster) doubt() error {
	switch {
	case !c.complete:
		return errors.New("not all kinds of objects are listed yet")
	case len(c.nodes) > 0 && len(c.pods) == 0:
		return fmt.Errorf("there are %d nodes, and not one pod was listed", len(c.nodes))
	}
	return nil
}

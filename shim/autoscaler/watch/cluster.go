// Package watch is what is seen of a cluster: its objects as one state for each loop, how old that is, and the pods
// that wait for a node.
package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/filterconfig"
	"loadline.dev/shim/internal/kuberelease"
	"loadline.dev/shim/scaleup"
	"loadline.dev/shim/slack"
	"loadline.dev/shim/usage/profile"
	"loadline.dev/shim/view"
)

// Cluster is what the autoscaler knows of a cluster. Informers take notes; Apply brings them into effect, so that a
// loop sees one state from its begin to its end, and the engine the same.
type Cluster struct {
	View    *view.View
	options *config.Configuration
	listed  listed
	inbox   inbox
	objects
	*freshness
	// Age is that of what the last call of Apply has brought into effect.
	Age    time.Duration
	demand demand
	// selectors are those of default spread constraints; nil: the scheduler has none. They belong to the loop.
	selectors *filterconfig.Selectors
	machines  machines
	usage     heldUsage
	countsUse bool                      // plans count pods by what they are expected to use
	profiled  map[profile.Workload]bool // the workloads of the profiles that are in effect
	minor     int32                     // of the release by which resized pods count; 0: that of the API server
}

// objects stay as they are between two calls of Apply. They belong to the loop.
type objects struct {
	Nodes   map[string]*v1.Node // by name
	Pods    map[types.NamespacedName]*v1.Pod
	onNode  map[string]map[types.NamespacedName]*v1.Pod
	Unbound map[types.NamespacedName]*v1.Pod // pods without a node
	// daemons are the pods that say that a DaemonSet made them, by what they say; Sets are the DaemonSets that exist.
	daemons  map[scaleup.DaemonSet]map[types.NamespacedName]*v1.Pod
	Sets     map[types.NamespacedName]*appsv1.DaemonSet
	Asking   map[note]any                     // pods and workloads that ask for copies to be kept free
	Standing map[types.NamespacedName]*v1.Pod // placeholders of ours that are on nodes
}

// New returns what follows a cluster by a configuration that has been checked, whose filters are `fit`.
func New(v *view.View, options *config.Configuration, fit *loadlinev1.FitOptions) *Cluster {
	c := &Cluster{View: v, options: options, freshness: newFreshness(),
		inbox: newInbox(), minor: fit.GetKubernetesMinor(),
		machines: machines{nodes: map[string]map[string]bool{}},
		objects: objects{Asking: map[note]any{}, Standing: map[types.NamespacedName]*v1.Pod{},
			Nodes: map[string]*v1.Node{}, Pods: map[types.NamespacedName]*v1.Pod{},
			onNode: map[string]map[types.NamespacedName]*v1.Pod{}, Unbound: map[types.NamespacedName]*v1.Pod{},
			daemons: map[scaleup.DaemonSet]map[types.NamespacedName]*v1.Pod{},
			Sets:    map[types.NamespacedName]*appsv1.DaemonSet{}}}
	if filterconfig.NeedsSelectors(fit) {
		c.selectors = &filterconfig.Selectors{}
	}
	if c.countsUse = countsUse(fit); c.countsUse {
		v.TellWorkloads()
	}
	v.LeaveOutInvalid(func(node string, err error) {
		klog.ErrorS(err, "The engine finds a node invalid; it is left alone until it changes",
			"node", klog.KRef("", node))
	})
	return c
}

// IsPlaceholder says whether a pod is one of ours that only keeps room free, whether or not we keep slack now. Such a
// pod waits for no node, and ends with the node that it is on.
func (c *Cluster) IsPlaceholder(pod *v1.Pod) bool {
	return slack.IsPlaceholder(pod, c.options.Slack.Namespace)
}

// AskRelease has pods that are being resized count as in the release that is meant, or else in that of the API server.
// To be called before the first plan.
func (c *Cluster) AskRelease(ctx context.Context, server discovery.ServerVersionInterface) {
	c.View.CountAs(kuberelease.Await(ctx, c.minor, server))
}

// GiveSpreadSelector says what default spread constraints count a pod by, in place of services and owners.
func (c *Cluster) GiveSpreadSelector(pod types.NamespacedName, selector []byte) {
	c.selectors.Give(pod, selector)
}

// Apply brings what the informers have noted into effect.
func (c *Cluster) Apply() error {
	ready, complete := c.Ready(), c.listedKinds() // before the notes are taken: they hold the whole lists then
	c.Age = c.viewAge()
	var errs []error
	notes := c.inbox.takeAll()
	for _, n := range slices.SortedFunc(maps.Keys(notes), note.compare) { // equal clusters make equal questions
		value := notes[n]
		switch n.kind {
		case KindNode:
			c.applyNode(n.name.Name, value)
		case KindPod:
			c.applyPod(n.name, value)
		default:
			c.ask(n, value)
			errs = append(errs, c.applyObject(value))
		}
	}
	if profiles, changed := c.usage.take(); changed {
		c.View.SetUsage(profiles)
		c.profiled = map[profile.Workload]bool{}
		for i := range profiles {
			c.profiled[profiles[i].Workload] = true
		}
	}
	if ready { // also later: the right to list a kind may be granted meanwhile
		c.listed.complete = true
		c.View.Complete(complete...)
	}
	return errors.Join(errs...)
}

func (c *Cluster) applyNode(name string, value any) {
	before, now := "", ""
	if old := c.Nodes[name]; old != nil {
		before = old.Spec.ProviderID
	}
	node, ok := value.(*v1.Node)
	if ok {
		now = node.Spec.ProviderID
	}
	others := c.machines.set(name, before, now)
	if ok {
		c.Nodes[name] = node
		c.show(node)
	} else {
		delete(c.Nodes, name)
		c.View.DeleteNode(name)
	}
	for _, other := range others {
		c.show(c.Nodes[other])
	}
}

func (c *Cluster) applyPod(name types.NamespacedName, value any) {
	if old := c.Pods[name]; old != nil {
		remove(c.onNode, old.Spec.NodeName, name)
		set, _ := scaleup.DaemonSetOf(old)
		remove(c.daemons, set, name)
		delete(c.Unbound, name)
	}
	delete(c.Standing, name)
	pod, ok := value.(*v1.Pod)
	c.ask(note{KindPod, name}, value)
	stands := ok && c.options.Decides(config.SlackDecision) && c.IsPlaceholder(pod) // the engine counts its own
	if stands && pod.Spec.NodeName != "" {
		c.Standing[name] = pod
	}
	if !ok || stands {
		delete(c.Pods, name)
		c.View.DeletePod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}})
		return
	}
	c.Pods[name] = pod
	c.View.SetPod(pod)
	if node := pod.Spec.NodeName; node != "" {
		add(c.onNode, node, name, pod)
	} else {
		c.Unbound[name] = pod
	}
	if set, claims := scaleup.DaemonSetOf(pod); claims {
		add(c.daemons, set, name, pod)
	}
}

// ask takes note of whether an object asks for copies.
func (c *Cluster) ask(n note, value any) {
	if slack.AsksForCopies(value) {
		c.Asking[n] = value
	} else {
		delete(c.Asking, n)
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

func (c *Cluster) applyObject(value any) error {
	if last, ok := value.(gone); ok {
		if set, ok := last.object.(*appsv1.DaemonSet); ok {
			delete(c.Sets, types.NamespacedName{Namespace: set.Namespace, Name: set.Name})
		}
		c.selectors.Delete(last.object)
		if _, ok := last.object.(*v1.Service); ok {
			return nil
		}
		return c.View.DeleteObject(last.object)
	}
	if set, ok := value.(*appsv1.DaemonSet); ok {
		c.Sets[types.NamespacedName{Namespace: set.Namespace, Name: set.Name}] = set
	}
	c.selectors.Set(value)
	if _, ok := value.(*v1.Service); ok {
		return nil // an engine has no use for it
	}
	return c.View.SetObject(value)
}

// PodsOf returns the pods of a node in the order in which the engine holds them.
func (c *Cluster) PodsOf(node string) []*v1.Pod {
	return slices.SortedFunc(maps.Values(c.onNode[node]), byName)
}

func byName(a, b *v1.Pod) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// SortedNodes returns all nodes by name.
func (c *Cluster) SortedNodes() []*v1.Node {
	return slices.SortedFunc(maps.Values(c.Nodes), func(a, b *v1.Node) int { return strings.Compare(a.Name, b.Name) })
}

// NodesByID returns the nodes of a cluster by the ids of their machines; of those that share one the first by name.
func (c *Cluster) NodesByID() map[string]*v1.Node {
	byID := map[string]*v1.Node{}
	for _, node := range c.SortedNodes() {
		if id := cloud.MachineID(node); byID[id] == nil {
			byID[id] = node
		}
	}
	return byID
}

// Doubt returns why the cluster cannot be as the watches report it; nil when it can.
func (c *Cluster) Doubt() error {
	switch {
	case !c.listed.complete:
		return errors.New("not all kinds of objects are listed yet")
	case len(c.Nodes) > 0 && len(c.Pods) == 0:
		return fmt.Errorf("there are %d nodes, and not one pod was listed", len(c.Nodes))
	}
	return nil
}

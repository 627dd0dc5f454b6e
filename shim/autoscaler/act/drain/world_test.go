package drain

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/internal/testing/enginetest"
)

var (
	podResource  = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodeResource = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
)

// world is a cluster with its cloud. Evicted pods are gone at once, unless lingering says how long they stay.
type world struct {
	t      *testing.T
	client *fake.Clientset
	events *record.FakeRecorder
	term   int64

	taintFails      []string         // nodes whose change is refused
	cloudFails      []string         // nodes that the cloud does not delete
	cloudError      error            // its answer then; nil: a plain one
	deletedByOthers map[string]bool  // by provider id
	listError       error            // of the list that tells of them
	listed          int              // how often that was asked for
	answers         map[string]error // by pod: the answer to an eviction
	patchCost       time.Duration    // of one change of a node
	conflicts       int              // changes of nodes that are refused because somebody was faster

	mu       sync.Mutex
	deleted  []string            // nodes, by the cloud
	evicted  []string            // pods, in order
	grace    map[string]int64    // by pod: as asked for
	attempts map[string]int      // by pod
	tried    map[string]bool     // nodes of which a change was tried
	history  map[string][]string // by node: "+" hard taint set, "-" taken back
	linger   func(pod string) bool
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, client: fake.NewClientset(), events: record.NewFakeRecorder(1000), term: 1,
		answers: map[string]error{},
		deleted: []string{}, evicted: []string{}, grace: map[string]int64{}, attempts: map[string]int{},
		tried: map[string]bool{}, history: map[string][]string{}}
	w.client.PrependReactor("list", "pods", w.listPods)
	w.client.PrependReactor("create", "pods", w.evict)
	w.client.PrependReactor("patch", "nodes", w.patch)
	return w
}

// listPods honours the field selector, which the fake does not.
func (w *world) listPods(action clienttesting.Action) (bool, runtime.Object, error) {
	object, err := w.client.Tracker().List(podResource, schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
		metav1.NamespaceAll)
	if err != nil {
		return true, nil, err
	}
	selector := action.(clienttesting.ListAction).GetListRestrictions().Fields.String()
	list := object.(*v1.PodList).DeepCopy()
	list.Items = slices.DeleteFunc(list.Items, func(p v1.Pod) bool {
		return selector != "" && selector != "spec.nodeName="+p.Spec.NodeName
	})
	return true, list, nil
}

func (w *world) evict(action clienttesting.Action) (bool, runtime.Object, error) {
	if action.GetSubresource() != "eviction" {
		return false, nil, nil
	}
	eviction := action.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction)
	name := eviction.Name
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempts[name]++
	if err := w.answers[name]; err != nil {
		return true, nil, err
	}
	object, err := w.client.Tracker().Get(podResource, action.GetNamespace(), name)
	if err != nil {
		return true, nil, err
	}
	if object.(*v1.Pod).UID != *eviction.DeleteOptions.Preconditions.UID {
		return true, nil, apierrors.NewConflict(podResource.GroupResource(), name, errors.New("another UID"))
	}
	w.evicted = append(w.evicted, name)
	w.grace[name] = *eviction.DeleteOptions.GracePeriodSeconds
	if w.linger != nil && w.linger(name) {
		return true, eviction, nil
	}
	return true, eviction, w.client.Tracker().Delete(podResource, action.GetNamespace(), name)
}

// grant has evictions of a pod accepted from now on.
func (w *world) grant(pod string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.answers, pod)
}

func (w *world) patch(action clienttesting.Action) (bool, runtime.Object, error) {
	name := action.(clienttesting.PatchAction).GetName()
	time.Sleep(w.patchCost)
	w.mu.Lock()
	w.tried[name] = true
	w.mu.Unlock()
	w.mu.Lock()
	refused := w.conflicts > 0
	w.conflicts = max(0, w.conflicts-1)
	failed := slices.Contains(w.taintFails, name)
	w.mu.Unlock()
	if refused {
		return true, nil, apierrors.NewConflict(nodeResource.GroupResource(), name, errors.New("it has changed"))
	}
	if failed {
		return true, nil, apierrors.NewInternalError(errors.New("told to fail"))
	}
	var patch struct {
		Metadata struct {
			UID         types.UID          `json:"uid"`
			Annotations map[string]*string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(action.(clienttesting.PatchAction).GetPatch(), &patch); err != nil {
		w.t.Error(err)
	}
	if value, ok := patch.Metadata.Annotations[MarkAnnotation]; ok &&
		(value == nil || !strings.Contains(*value, "deleting")) {
		sign := "+"
		if value == nil {
			sign = "-"
		}
		w.mu.Lock()
		w.history[name] = append(w.history[name], sign)
		w.mu.Unlock()
	}
	return false, nil, nil
}

// DeleteNodes is the cloud. Nodes that it deletes keep their objects, as those of a real cloud do for a while.
func (w *world) DeleteNodes(_ context.Context, _ string, nodes []*v1.Node) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, node := range nodes {
		if slices.Contains(w.cloudFails, node.Name) {
			if w.cloudError != nil {
				return w.cloudError
			}
			return errors.New("the cloud was told to fail")
		}
	}
	for _, node := range nodes {
		w.deleted = append(w.deleted, node.Name)
	}
	return nil
}

// Deleting is the cloud's list.
func (w *world) Deleting(context.Context, string) (map[string]bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listed++
	return w.deletedByOthers, w.listError
}

func testOptions() Options {
	return Options{ScaleDown: config.Default().ScaleDown, IsOfDaemonSet: isOfTheDaemonSet,
		SharesMachine: func(*v1.Node) bool { return false },
		IsPlaceholder: func(*v1.Pod) bool { return false }, Now: time.Now}
}

// Failed is Cluster Autoscaler's outcome of nodes that cannot be tainted.
const Failed = "ScaleDownError"

// Start is Begin, but returns when all nodes are tainted.
func (a *Actuator) Start(ctx context.Context, plan []*Removal) (string, error) {
	nodes := a.admit(plan)
	if len(nodes) == 0 {
		return NoNodeDeleted, nil
	}
	if err := a.start(ctx, nodes); err != nil {
		return Failed, err
	}
	return NodeDeleteStarted, nil
}

// isOfTheDaemonSet knows the one DaemonSet that there is.
func isOfTheDaemonSet(pod *v1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet" && owner.UID == "ds"
}

func (w *world) actuator(options Options) *Actuator {
	return New(options, engineOf(w.t), w.client, w, w.events, w.term,
		Hooks{Evicted: func(string) {}, Removed: func(*Removal, Result, time.Duration) {}})
}

func (w *world) addNode(name string) *v1.Node {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)},
		Spec: v1.NodeSpec{ProviderID: "sim://" + name}}
	if err := w.client.Tracker().Add(node); err != nil {
		w.t.Fatal(err)
	}
	return node.DeepCopy()
}

func (w *world) addPod(name, node string) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
		Spec: v1.PodSpec{NodeName: node}}
	if err := w.client.Tracker().Add(pod); err != nil {
		w.t.Fatal(err)
	}
	return pod.DeepCopy()
}

func (w *world) addDaemonSetPod(name, node string) *v1.Pod {
	pod := w.addPod(name, node)
	controller := true
	pod.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "ds", UID: "ds", Controller: &controller}}
	w.update(pod)
	return pod
}

// addForgedDaemonSetPod adds a pod that names a DaemonSet which does not exist.
func (w *world) addForgedDaemonSetPod(name, node string) *v1.Pod {
	pod := w.addDaemonSetPod(name, node)
	pod.OwnerReferences[0].UID = "forged"
	w.update(pod)
	return pod
}

func (w *world) update(pod *v1.Pod) {
	if err := w.client.Tracker().Update(podResource, pod.DeepCopy(), pod.Namespace); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) updateNode(node *v1.Node) {
	if err := w.client.Tracker().Update(nodeResource, node.DeepCopy(), ""); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) removePod(name string) {
	if err := w.client.Tracker().Delete(podResource, "default", name); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) node(name string) *v1.Node {
	object, err := w.client.Tracker().Get(nodeResource, "", name)
	if err != nil {
		w.t.Fatal(err)
	}
	return object.(*v1.Node)
}

func (w *world) nodes() (nodes []*v1.Node) {
	object, err := w.client.Tracker().List(nodeResource, schema.GroupVersionKind{Version: "v1", Kind: "Node"}, "")
	if err != nil {
		w.t.Fatal(err)
	}
	list := object.(*v1.NodeList)
	for i := range list.Items {
		nodes = append(nodes, &list.Items[i])
	}
	return nodes
}

// untainted are the nodes that had the hard taint and have nothing of ours any more.
func (w *world) untainted() []string {
	names := []string{}
	for _, node := range w.nodes() {
		if len(w.history[node.Name]) > 1 && clean(node) {
			names = append(names, node.Name)
		}
	}
	return names
}

// untouched are the nodes of which no change was tried.
func (w *world) untouched() []string {
	names := []string{}
	for _, node := range w.nodes() {
		if !w.tried[node.Name] && clean(node) {
			names = append(names, node.Name)
		}
	}
	return names
}

// clean says that a node has neither taint nor cordon nor mark.
func clean(node *v1.Node) bool {
	return len(node.Spec.Taints) == 0 && !node.Spec.Unschedulable && node.Annotations[MarkAnnotation] == ""
}

// tooMany is the answer to an eviction that a budget refuses.
func tooMany() error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause,
		Message: "The disruption budget pdb needs 1 healthy pods and has 1 currently"}}
	return err
}

// busy is what client-go makes of the answer of priority and fairness, which is plain text: it has a cause too.
func busy() error {
	return apierrors.NewGenericServerResponse(http.StatusTooManyRequests, "create", podResource.GroupResource(), "p",
		"Too many requests, please try again later.", 1, true)
}

func engineOf(t *testing.T) loadlinev1.AutoscalerClient {
	return loadlinev1.NewAutoscalerClient(enginetest.Open(t))
}

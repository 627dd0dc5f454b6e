package clusterapi

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	discoveryfake "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

const annotation = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-"

// world is a management cluster of one version of the API.
type world struct {
	t       *testing.T
	version string
	client  *fake.FakeDynamicClient
	nodes   *kubefake.Clientset
	// beforeScale, if set, runs before a scale is written; its error is the answer.
	beforeScale func() error
}

func newWorld(t *testing.T, version string, objects ...*unstructured.Unstructured) *world {
	t.Helper()
	lists := map[schema.GroupVersionResource]string{
		{Group: "infra.test", Version: "v1", Resource: "machinetemplates"}: "MachineTemplateList"}
	for _, r := range resources {
		lists[schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: version, Resource: r.name}] = r.kind + "List"
	}
	var all []runtime.Object
	for _, o := range objects {
		if o.GetAPIVersion() == "" {
			o.SetAPIVersion("cluster.x-k8s.io/" + version)
		}
		all = append(all, o)
	}
	w := &world{t: t, version: version, nodes: kubefake.NewClientset(),
		client: fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, all...)}
	w.client.PrependReactor("get", "*", w.getScale)
	w.client.PrependReactor("update", "*", w.setScale)
	return w
}

// getScale answers as the scale subresource of a custom resource does.
func (w *world) getScale(action clienttesting.Action) (bool, runtime.Object, error) {
	get := action.(clienttesting.GetAction)
	if get.GetSubresource() != scale {
		return false, nil, nil
	}
	found, err := w.client.Tracker().Get(get.GetResource(), get.GetNamespace(), get.GetName())
	if err != nil {
		return true, nil, err
	}
	o := found.(*unstructured.Unstructured)
	out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale",
		"metadata": map[string]any{"name": o.GetName(), "namespace": o.GetNamespace(),
			"resourceVersion": o.GetResourceVersion()}, "spec": map[string]any{}}}
	if count, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas"); count != 0 {
		_ = unstructured.SetNestedField(out.Object, count, "spec", "replicas")
	}
	if count, _, _ := unstructured.NestedInt64(o.Object, "status", "replicas"); count != 0 {
		_ = unstructured.SetNestedField(out.Object, count, "status", "replicas")
	}
	return true, out, nil
}

func (w *world) setScale(action clienttesting.Action) (bool, runtime.Object, error) {
	update := action.(clienttesting.UpdateAction)
	if update.GetSubresource() != scale {
		return false, nil, nil
	}
	if w.beforeScale != nil {
		if err := w.beforeScale(); err != nil {
			return true, nil, err
		}
	}
	stated := update.GetObject().(*unstructured.Unstructured)
	found, err := w.client.Tracker().Get(update.GetResource(), update.GetNamespace(), stated.GetName())
	if err != nil {
		return true, nil, err
	}
	o := found.(*unstructured.Unstructured).DeepCopy()
	if o.GetResourceVersion() != stated.GetResourceVersion() {
		return true, nil, apierrors.NewConflict(update.GetResource().GroupResource(), o.GetName(), fmt.Errorf("changed"))
	}
	count, _, _ := unstructured.NestedInt64(stated.Object, "spec", "replicas")
	_ = unstructured.SetNestedField(o.Object, count, "spec", "replicas")
	return true, stated, w.client.Tracker().Update(update.GetResource(), o, o.GetNamespace())
}

// writeBetween has somebody else write the MachineDeployment so often before a scale is written, with that target.
func (w *world) writeBetween(times, target int) {
	writes := 0
	w.beforeScale = func() error {
		if writes++; writes > times {
			return nil
		}
		o := w.get(deploymentKind, "md")
		o.SetResourceVersion(fmt.Sprint(100 + writes))
		_ = unstructured.SetNestedField(o.Object, int64(target), "spec", "replicas")
		return w.client.Tracker().Update(schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: w.version,
			Resource: "machinedeployments"}, &o.Unstructured, "ns")
	}
}

// provider returns a provider that has looked at the world.
func (w *world) provider(discovery ...string) *Provider {
	w.t.Helper()
	list := &metav1.APIResourceList{GroupVersion: "cluster.x-k8s.io/" + w.version}
	for _, r := range resources {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: r.name, Kind: r.kind, Namespaced: true})
	}
	served := &discoveryfake.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{list,
		{GroupVersion: "infra.test/v1", APIResources: []metav1.APIResource{{Name: "machinetemplates"}}}}}}
	p, err := New(&Options{NodeGroupAutoDiscovery: discovery}, w.client, served, w.nodes)
	if err != nil {
		w.t.Fatal(err)
	}
	w.refresh(p)
	return p
}

func (w *world) refresh(p *Provider) {
	w.t.Helper()
	if err := p.Refresh(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) get(kind, name string) object {
	w.t.Helper()
	found, err := w.client.Tracker().Get(schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: w.version,
		Resource: resourceOf(kind)}, "ns", name)
	if err != nil {
		w.t.Fatal(err)
	}
	return object{*found.(*unstructured.Unstructured)}
}

// expect compares a target and the marked machines.
func (w *world) expect(kind, name string, target int, marked ...string) {
	w.t.Helper()
	if got, err := w.get(kind, name).replicas(); err != nil || got != target {
		w.t.Errorf("%s has a target of %d, %v, want %d", name, got, err, target)
	}
	is := map[string]bool{}
	for _, machine := range marked {
		is[machine] = true
	}
	all, err := w.client.Tracker().List(schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: w.version,
		Resource: "machines"}, schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: w.version, Kind: machineKind},
		"ns")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, item := range all.(*unstructured.UnstructuredList).Items {
		if (object{item}).isMarked() != is[item.GetName()] {
			w.t.Errorf("machine %s: annotations %v", item.GetName(), item.GetAnnotations())
		}
	}
}

// scalable returns an object that scales, with bounds and further annotations.
func scalable(kind, name string, replicas int64, bounds string, more ...string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"kind": kind, "metadata": map[string]any{"name": name,
		"namespace": "ns", "uid": name, "resourceVersion": "1"},
		"spec": map[string]any{"replicas": replicas, "clusterName": "c"}}}
	annotations := map[string]string{}
	var low, high string
	if n, _ := fmt.Sscanf(bounds, "%s %s", &low, &high); n == 2 {
		annotations[annotation+"min-size"], annotations[annotation+"max-size"] = low, high
	}
	for i := 0; i < len(more); i += 2 {
		annotations[more[i]] = more[i+1]
	}
	o.SetAnnotations(annotations)
	return o
}

func owned(o *unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "cluster.x-k8s.io/v1", Kind: kind, Name: name}})
	return o
}

// machine returns one of a MachineSet, which is the node of its name where it has an instance.
func machine(set, name, providerID string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"kind": machineKind, "metadata": map[string]any{"name": name,
		"namespace": "ns", "uid": name, "resourceVersion": "1",
		"labels": map[string]any{"cluster.x-k8s.io/cluster-name": "c"}},
		"spec": map[string]any{"clusterName": "c"}}}
	if providerID != "" {
		_ = unstructured.SetNestedField(o.Object, providerID, "spec", "providerID")
		_ = unstructured.SetNestedField(o.Object, name, "status", "nodeRef", "name")
	}
	return owned(o, setKind, set)
}

func with(o *unstructured.Unstructured, value any, fields ...string) *unstructured.Unstructured {
	_ = unstructured.SetNestedField(o.Object, value, fields...)
	return o
}

// deployment returns a MachineDeployment of three machines, a, b and c, with its MachineSet, which has inherited the
// annotations, as Cluster API copies them; c has no instance yet.
func deployment(bounds string) []*unstructured.Unstructured {
	set := owned(with(scalable(setKind, "md-1", 3, bounds), map[string]any{"cluster.x-k8s.io/cluster-name": "c"},
		"metadata", "labels"), deploymentKind, "md")
	return []*unstructured.Unstructured{scalable(deploymentKind, "md", 3, bounds), set,
		machine("md-1", "a", "sim://a"), machine("md-1", "b", "sim://b"), machine("md-1", "c", "")}
}

func node(name, providerID string) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.NodeSpec{ProviderID: providerID}}
}

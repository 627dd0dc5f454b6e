package autoscaler

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"

	"loadline.dev/shim/autoscaler/buffers"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/slack"
)

var capacityBuffers = schema.GroupVersionResource{Group: "autoscaling.x-k8s.io", Version: "v1beta1",
	Resource: "capacitybuffers"}

var resourceQuotas = v1.SchemeGroupVersion.WithResource("resourcequotas")

// buffered is a cluster as of slacking, which keeps nothing free but for CapacityBuffers.
type buffered struct {
	*bench
	objects *fake.FakeDynamicClient
	kept    *kept
}

func keepingBuffers(t *testing.T, objects ...map[string]any) *buffered {
	b, k := slacking(t, func(c *config.Configuration) {
		c.Slack.ExtraCapacityMinRate, c.Slack.CapacityBuffers = "0%", true
	})
	scheme := runtime.NewScheme()
	var all []runtime.Object
	for _, o := range objects {
		all = append(all, &unstructured.Unstructured{Object: o})
	}
	out := &buffered{b, fake.NewSimpleDynamicClientWithCustomListKinds(scheme, map[schema.GroupVersionResource]string{
		capacityBuffers: "CapacityBufferList", alphaBuffers: "CapacityBufferList",
		resourceQuotas: "ResourceQuotaList"}, all...), k}
	b.client.Resources = servedIn("capacitybuffers", "v1beta1")
	b.leader.buffers = buffers.New(out.objects, b.client.Discovery(), b.cluster.Handler(buffers.Kind))
	for name, labels := range map[string]map[string]string{"shop": nil,
		"closed": {"loadline.dev/slack-copies": "forbidden"}} {
		if _, err := b.client.CoreV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: labels}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Wait()
	return out
}

func bufferOf(namespace, name string, labels map[string]any, spec map[string]any) map[string]any {
	return map[string]any{"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer",
		"metadata": map[string]any{"namespace": namespace, "name": name, "uid": "uid-" + name, "labels": labels},
		"spec":     spec}
}

// podOf is a pod template that requests so much.
func podOf(cpu string) map[string]any {
	return map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c",
		"resources": map[string]any{"requests": map[string]any{"cpu": cpu}}}}}}
}

// remove deletes an object of core/v1 in the namespace shop.
func (b *buffered) remove(resource, name string) {
	b.t.Helper()
	objects := b.objects.Resource(v1.SchemeGroupVersion.WithResource(resource)).Namespace("shop")
	if err := objects.Delete(b.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *buffered) expectStatus(namespace, name string, replicas int64, want string) {
	b.t.Helper()
	o, err := b.objects.Resource(capacityBuffers).Namespace(namespace).Get(b.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	var read slack.CapacityBuffer
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &read); err != nil {
		b.t.Fatal(err)
	}
	got := ""
	for _, c := range read.Status.Conditions {
		got += fmt.Sprintf("%s=%s %s. ", c.Type, c.Status, c.Reason)
	}
	if count := read.Status.Replicas; got != want || count == nil && replicas >= 0 ||
		count != nil && int64(*count) != replicas {
		b.t.Errorf("buffer %s: %v replicas, %q, want %d, %q", name, count, got, replicas, want)
	}
}

// A group grows for the room that CapacityBuffers ask for, once, in a namespace without a label. A buffer of a namespace
// whose label forbids it, one that cannot be,
// ours and those of other strategies keep nothing; each of the first two gets the reason.
func TestCapacityBuffersAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		template := map[string]any{"name": "shape"}
		b := keepingBuffers(t,
			map[string]any{"apiVersion": "v1", "kind": "PodTemplate", "metadata": map[string]any{
				"namespace": "shop", "name": "shape", "generation": int64(7)}, "template": podOf("2")},
			map[string]any{"apiVersion": "v1", "kind": "PodTemplate", "metadata": map[string]any{"namespace": "closed",
				"name": "shape"}, "template": podOf("2")},
			map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "shop",
				"name": "web"}, "spec": map[string]any{"template": podOf("1")}, "status": map[string]any{"replicas": int64(4)}},
			bufferOf("shop", "fixed", nil, map[string]any{"podTemplateRef": template, "replicas": int64(3)}),
			bufferOf("shop", "share", nil, map[string]any{"scalableRef": map[string]any{"apiGroup": "apps",
				"kind": "Deployment", "name": "web"}, "percentage": int64(20)}),
			bufferOf("shop", "wrong", nil, map[string]any{"podTemplateRef": map[string]any{"name": "nowhere"},
				"replicas": int64(3)}),
			bufferOf("shop", "other", nil, map[string]any{"podTemplateRef": template, "replicas": int64(9),
				"provisioningStrategy": "example.com/standby"}),
			bufferOf("shop", "ours", map[string]any{slack.ShapeLabel: "slack-1"}, map[string]any{
				"podTemplateRef": template, "replicas": int64(9)}),
			bufferOf("closed", "refused", nil, map[string]any{"podTemplateRef": template, "replicas": int64(9)}))
		b.run(10 * time.Second)
		// Three copies of 2 cpus and one of 1 cpu, on nodes of 4: the one fits beside the pod of 3 cpus, and two nodes
		// take the others.
		if got := fmt.Sprint(b.sky.requests()); got != "[g+2]" || b.kept.replicas() != 4 {
			t.Fatalf("asked for %s, %d replicas of %+v", got, b.kept.replicas(), b.kept.shapes)
		}
		const ready = "ReadyForProvisioning=True AttributesSetSuccessfully. "
		b.expectStatus("shop", "fixed", 3, ready+"Provisioning=False RequiresNewCapacity. ")
		b.expectStatus("shop", "share", 1, ready+"Provisioning=True FitsExistingCapacity. ")
		b.expectStatus("shop", "wrong", -1, "ReadyForProvisioning=False Error. Provisioning=False NotReadyForProvisioning. ")
		b.expectStatus("closed", "refused", 9, ready+"Provisioning=False Refused. ")
		for _, name := range []string{"other", "ours"} {
			b.expectStatus("shop", name, -1, "")
		}
		b.run(2 * time.Minute)
		if got := fmt.Sprint(b.sky.requests()); got != "[g+2]" {
			t.Errorf("asked for %s", got)
		}
		b.expectStatus("shop", "fixed", 3, ready+"Provisioning=True FitsExistingCapacity. ")
		writes := 0
		for _, action := range b.objects.Actions() {
			if action.GetVerb() == "patch" {
				writes++
			}
		}
		if writes != 5 && writes != 6 { // by how many of both nodes the loop sees that sees the first one
			t.Errorf("%d statuses were written, want one for each of four buffers and one when room had come", writes)
		}
		if err := b.objects.Resource(capacityBuffers).Namespace("shop").Delete(t.Context(), "fixed",
			metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		b.run(40 * time.Minute)
		if b.kept.replicas() != 1 || len(b.sky.requests()) != 3 {
			t.Errorf("%d replicas, asked for %v after a buffer has gone", b.kept.replicas(), b.sky.requests())
		}
		b.end()
	})
}

// A field that no longer holds leaves the status of a buffer, by one write: replicas and the generation of a PodTemplate
// that was deleted, and the reference to one after the buffer refers to a workload.
func TestStatusOfACapacityBufferForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := keepingBuffers(t,
			map[string]any{"apiVersion": "v1", "kind": "PodTemplate", "metadata": map[string]any{
				"namespace": "shop", "name": "shape", "generation": int64(7)}, "template": podOf("2")},
			map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "shop",
				"name": "web"}, "spec": map[string]any{"template": podOf("1")}, "status": map[string]any{"replicas": int64(4)}},
			bufferOf("shop", "one", nil, map[string]any{"podTemplateRef": map[string]any{"name": "shape"},
				"replicas": int64(2)}))
		b.run(2 * time.Minute)
		expect := func(want string, writes int) {
			t.Helper()
			o, err := b.objects.Resource(capacityBuffers).Namespace("shop").Get(t.Context(), "one", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			status, _, _ := unstructured.NestedMap(o.Object, "status")
			delete(status, "conditions")
			if got := fmt.Sprint(status); got != want {
				t.Errorf("status %s, want %s", got, want)
			}
			patches := 0
			for _, action := range b.objects.Actions() {
				if action.GetVerb() == "patch" {
					patches++
				}
			}
			if b.objects.ClearActions(); patches != writes {
				t.Errorf("%d writes, want %d", patches, writes)
			}
		}
		const strategy = " provisioningStrategy:buffer.x-k8s.io/active-capacity"
		expect("map[podTemplateGeneration:7 podTemplateRef:map[name:shape]"+strategy+" readyReplicas:2 replicas:2]", 2)
		b.remove("podtemplates", "shape")
		b.run(2 * time.Minute)
		expect("map[podTemplateRef:map[name:shape]"+strategy+"]", 1)
		buffers := b.objects.Resource(capacityBuffers).Namespace("shop")
		o, err := buffers.Get(t.Context(), "one", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		o.Object["spec"] = map[string]any{"scalableRef": map[string]any{"apiGroup": "apps", "kind": "Deployment",
			"name": "web"}, "replicas": int64(1)}
		if _, err := buffers.Update(t.Context(), o, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		b.run(2 * time.Minute)
		expect("map["+strategy[1:]+" readyReplicas:1 replicas:1]", 1)
		b.end()
	})
}

// Quotas of the namespace bound what all its buffers ask for together, in the order of their names; those with scopes do
// not, and without the right to read them only the engine's bounds hold.
func TestQuotasBoundCapacityBuffers(t *testing.T) {
	quota := func(name string, spec, hard, used map[string]any) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": map[string]any{
			"namespace": "shop", "name": name}, "spec": spec, "status": map[string]any{"hard": hard, "used": used}}
	}
	for _, forbidden := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			template := map[string]any{"name": "shape"}
			b := keepingBuffers(t,
				map[string]any{"apiVersion": "v1", "kind": "PodTemplate", "metadata": map[string]any{
					"namespace": "shop", "name": "shape", "generation": int64(1)}, "template": podOf("2")},
				quota("cores", nil, map[string]any{"requests.cpu": "10", "services": "0"},
					map[string]any{"requests.cpu": "1500m"}),
				quota("scoped", map[string]any{"scopes": []any{"Terminating"}}, map[string]any{"pods": "0"}, nil),
				bufferOf("shop", "one", nil, map[string]any{"podTemplateRef": template, "replicas": int64(3)}),
				bufferOf("shop", "two", nil, map[string]any{"podTemplateRef": template, "replicas": int64(3)}))
			if forbidden {
				refuse := func(k8stesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "resourcequotas"}, "", nil)
				}
				b.objects.PrependReactor("list", "resourcequotas", refuse)
			}
			b.run(10 * time.Second)
			const ready = "ReadyForProvisioning=True AttributesSetSuccessfully. "
			const grows = "Provisioning=False RequiresNewCapacity. "
			b.expectStatus("shop", "one", 3, ready+grows)
			if forbidden {
				b.expectStatus("shop", "two", 3, ready+grows)
			} else {
				b.expectStatus("shop", "two", 1, ready+"LimitedByQuotas=True LimitedByQuotas. "+grows)
				b.remove("resourcequotas", "cores")
				b.run(time.Minute)
				b.expectStatus("shop", "two", 3, ready+"LimitedByQuotas=False NotLimited. "+grows)
				b.remove("podtemplates", "shape")
				b.run(time.Minute)
				const none = "=False NotReadyForProvisioning. "
				b.expectStatus("shop", "two", -1, "ReadyForProvisioning=False Error. LimitedByQuotas"+none+"Provisioning"+none)
			}
			b.end()
		})
	}
}

// No buffer is kept without the right to list the kind, or if it is not served any more. Loops end without an error.
// While the API server fails, the buffers that were listed last are kept.
func TestCapacityBuffersThatCannotBeListed(t *testing.T) {
	group := capacityBuffers.GroupResource()
	for name, c := range map[string]struct {
		err  error
		kept int
	}{
		"it has gone":       {apierrors.NewNotFound(group, ""), 0},
		"no right":          {apierrors.NewForbidden(group, "", nil), 0},
		"a webhook is down": {apierrors.NewInternalError(errors.New("conversion webhook failed")), 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := keepingBuffers(t,
				map[string]any{"apiVersion": "v1", "kind": "PodTemplate", "metadata": map[string]any{
					"namespace": "shop", "name": "shape", "generation": int64(1)}, "template": podOf("2")},
				bufferOf("shop", "one", nil, map[string]any{"podTemplateRef": map[string]any{"name": "shape"},
					"replicas": int64(3)}))
			b.run(2 * time.Minute)
			asked := len(b.sky.requests())
			b.objects.PrependReactor("list", "capacitybuffers", func(k8stesting.Action) (bool, runtime.Object, error) {
				return true, nil, c.err
			})
			b.run(15 * time.Minute)
			if b.kept.replicas() != c.kept || asked == 0 {
				t.Errorf("%s: %d replicas, %d requests before", name, b.kept.replicas(), asked)
			}
			b.end()
		})
	}
}

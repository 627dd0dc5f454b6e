package autoscaler

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"loadline.dev/shim/autoscaler/buffers"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/slack"
)

var capacityBuffers = schema.GroupVersionResource{Group: "autoscaling.x-k8s.io", Version: "v1beta1",
	Resource: "capacitybuffers"}

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
		capacityBuffers: "CapacityBufferList"}, all...), k}
	b.leader.buffers = buffers.New(out.objects, b.cluster.Handler(buffers.Kind))
	if _, err := b.client.CoreV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "shop", Labels: map[string]string{"loadline.dev/slack-copies": "allowed"}}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
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

// A group grows for the room that CapacityBuffers ask for, once. A buffer that nobody may ask for, one that cannot be,
// ours and those of other strategies keep nothing; each of the first two gets the reason.
func TestCapacityBuffersAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		template := map[string]any{"name": "shape"}
		b := keepingBuffers(t,
			map[string]any{"apiVersion": "v1", "kind": "PodTemplate", "metadata": map[string]any{"namespace": "shop",
				"name": "shape", "generation": int64(7)}, "template": podOf("2")},
			map[string]any{"apiVersion": "v1", "kind": "PodTemplate", "metadata": map[string]any{"namespace": "default",
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
			bufferOf("default", "refused", nil, map[string]any{"podTemplateRef": template, "replicas": int64(9)}))
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
		b.expectStatus("default", "refused", 9, ready+"Provisioning=False Refused. ")
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
		if writes != 5 {
			t.Errorf("%d statuses were written, want one for each of four buffers and one when the room had come", writes)
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

// Package placeholders brings the objects that keep slack into line with a plan: one for each shape, of which only the
// replicas change. What does not carry its label it leaves alone.
package placeholders

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"loadline.dev/shim/slack"
)

// Ours is on all objects that are made here, and on no others.
const (
	OursLabel = "app.kubernetes.io/managed-by"
	Ours      = "loadline-autoscaler"
)

// mostWrites bounds what is written in one call. The rest follows in the next one.
const mostWrites = 50

// Keeper keeps objects of one namespace.
type Keeper struct {
	client    dynamic.Interface
	namespace string
	// kinds are made in this order, and deleted in the opposite one.
	kinds   []schema.GroupVersionResource
	objects func([]slack.Shape) []any
}

var (
	deployments     = appsv1.SchemeGroupVersion.WithResource("deployments")
	podTemplates    = v1.SchemeGroupVersion.WithResource("podtemplates")
	capacityBuffers = schema.GroupVersionResource{Group: "autoscaling.x-k8s.io", Version: "v1beta1",
		Resource: "capacitybuffers"}
)

// Deployments returns a keeper of Deployments of pods that give way to all others.
func Deployments(client dynamic.Interface, namespace string) *Keeper {
	return &Keeper{client, namespace, []schema.GroupVersionResource{deployments}, slack.Deployments}
}

// CapacityBuffers returns a keeper of CapacityBuffers and their PodTemplates.
func CapacityBuffers(client dynamic.Interface, namespace string) *Keeper {
	return &Keeper{client, namespace, []schema.GroupVersionResource{podTemplates, capacityBuffers},
		slack.CapacityBuffers}
}

// Keep creates, scales and deletes objects, so that there is one for each shape with its replicas. Room for pods is
// made first: objects that are not needed are deleted last.
func (k *Keeper) Keep(ctx context.Context, shapes []slack.Shape) error {
	wanted, err := k.wanted(shapes)
	if err != nil {
		return err
	}
	var errs []error
	left := mostWrites
	extra := make([][]*unstructured.Unstructured, len(k.kinds))
	for i, kind := range k.kinds {
		there, err := k.list(ctx, kind)
		if err != nil {
			return err // without knowing what is there nothing is written
		}
		for _, object := range wanted[kind] {
			if left > 0 {
				wrote, err := k.bring(ctx, kind, object, there[object.GetName()])
				if wrote {
					left--
				}
				errs = append(errs, err)
			}
			delete(there, object.GetName())
		}
		extra[i] = slices.SortedFunc(maps.Values(there),
			func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	}
	for i, kind := range slices.Backward(k.kinds) {
		for _, object := range extra[i][:min(left, len(extra[i]))] {
			left--
			errs = append(errs, k.remove(ctx, kind, object))
		}
	}
	return errors.Join(errs...)
}

// wanted returns the objects of shapes by their kinds, with our label.
func (k *Keeper) wanted(shapes []slack.Shape) (map[schema.GroupVersionResource][]*unstructured.Unstructured, error) {
	var here []slack.Shape
	for _, shape := range shapes {
		here = append(here, shape.In(k.namespace))
	}
	out := map[schema.GroupVersionResource][]*unstructured.Unstructured{}
	for _, object := range k.objects(here) {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return nil, err
		}
		o := &unstructured.Unstructured{Object: content}
		kind, known := map[string]schema.GroupVersionResource{"Deployment": deployments, "PodTemplate": podTemplates,
			"CapacityBuffer": capacityBuffers}[o.GetKind()]
		if !known {
			continue // namespaces and priority classes are the administrator's
		}
		delete(content, "status")
		labels := o.GetLabels()
		labels[OursLabel] = Ours
		o.SetLabels(labels)
		out[kind] = append(out[kind], o)
	}
	return out, nil
}

func (k *Keeper) list(ctx context.Context,
	kind schema.GroupVersionResource) (map[string]*unstructured.Unstructured, error) {
	list, err := k.client.Resource(kind).Namespace(k.namespace).List(ctx,
		metav1.ListOptions{LabelSelector: OursLabel + "=" + Ours})
	if err != nil {
		return nil, fmt.Errorf("%s of namespace %s: %w", kind.Resource, k.namespace, err)
	}
	there := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		if o := &list.Items[i]; o.GetLabels()[OursLabel] == Ours && o.GetLabels()[slack.ShapeLabel] != "" &&
			o.GetDeletionTimestamp() == nil {
			there[o.GetName()] = o
		}
	}
	return there, nil
}

// bring creates an object, or sets its replicas. An object of its name that is not ours is an error.
func (k *Keeper) bring(ctx context.Context, kind schema.GroupVersionResource,
	wanted, there *unstructured.Unstructured) (wrote bool, err error) {
	client := k.client.Resource(kind).Namespace(k.namespace)
	replicas, counted, _ := unstructured.NestedInt64(wanted.Object, "spec", "replicas")
	if there == nil {
		klog.V(2).InfoS("Slack: placeholders are made", "kind", kind.Resource, "name", wanted.GetName(),
			"replicas", replicas)
		_, err := client.Create(ctx, wanted, metav1.CreateOptions{})
		return true, err
	}
	if has, _, _ := unstructured.NestedInt64(there.Object, "spec", "replicas"); !counted || has == replicas {
		return false, nil
	}
	patch, err := json.Marshal(
		map[string]any{"metadata": map[string]any{"uid": there.GetUID(), "resourceVersion": there.GetResourceVersion()},
			"spec": map[string]any{"replicas": replicas}})
	if err != nil {
		return false, err
	}
	klog.V(2).InfoS("Slack: placeholders are scaled", "kind", kind.Resource, "name", wanted.GetName(),
		"replicas", replicas)
	_, err = client.Patch(ctx, wanted.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsConflict(err) {
		err = nil // somebody else has changed it: the next loop looks again
	}
	return true, err
}

func (k *Keeper) remove(ctx context.Context, kind schema.GroupVersionResource,
	object *unstructured.Unstructured) error {
	klog.V(2).InfoS("Slack: placeholders go", "kind", kind.Resource, "name", object.GetName())
	background := metav1.DeletePropagationBackground
	err := k.client.Resource(kind).Namespace(k.namespace).Delete(ctx, object.GetName(), metav1.DeleteOptions{
		PropagationPolicy: &background, Preconditions: metav1.NewUIDPreconditions(string(object.GetUID()))})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

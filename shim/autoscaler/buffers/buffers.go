// Package buffers has room kept for the CapacityBuffers of others: the engine gets a substitute pod for each, and the
// buffer its result.
package buffers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/slack"
	"loadline.dev/shim/workload"
)

// Kind is that of the notes of stand-ins.
const Kind = "CapacityBuffer"

// lookEvery is how often buffers and what they refer to are read: replicas of a workload change by themselves.
const lookEvery = 30 * time.Second

// mostBuffers bounds what is read and kept; others are left out, and logged.
const mostBuffers = 1000

// Conditions of a buffer and their reasons.
const (
	readyForProvisioning = "ReadyForProvisioning"
	provisioning         = "Provisioning"
	limitedByQuotas      = "LimitedByQuotas"
)

// Buffers are those of a cluster.
type Buffers struct {
	objects dynamic.Interface
	served  discovery.DiscoveryInterface
	to      cache.ResourceEventHandler // takes the stand-ins
	looked  time.Time
	known   map[types.NamespacedName]*buffer
	version string // of the kind; empty: not known yet
	warning string // why none are kept
	silent  bool   // that there is no such kind has been logged
	// pruned are the fields of a status that the API server drops, because its definition of the kind lacks them.
	pruned map[string]bool
}

// buffer is one buffer with its result.
type buffer struct {
	slack.CapacityBuffer
	standIn    *appsv1.Deployment // nil: it cannot be kept
	copies     int32
	wanted     int32  // copies, were there no quotas
	generation *int64 // of its PodTemplate
	problem    error
}

// New returns what has read none yet. `to` takes the stand-ins as it takes objects of the API server.
func New(objects dynamic.Interface, served discovery.DiscoveryInterface, to cache.ResourceEventHandler) *Buffers {
	return &Buffers{objects: objects, served: served, to: to, known: map[types.NamespacedName]*buffer{},
		pruned: map[string]bool{}}
}

// Look reads the buffers, unless that was done a short time ago. Without the kind, or the right to list it, there are
// none; after another error those that were known stay.
func (b *Buffers) Look(ctx context.Context, now time.Time) error {
	if b == nil || !b.looked.IsZero() && now.Sub(b.looked) < lookEvery {
		return nil
	}
	list, err := b.list(ctx)
	if err != nil {
		return fmt.Errorf("CapacityBuffers: %w", err)
	}
	if list.GetContinue() != "" {
		klog.InfoS("Warning: only the first CapacityBuffers are kept", "most", mostBuffers)
	}
	b.looked = now
	before := b.known
	b.known = map[types.NamespacedName]*buffer{}
	slices.SortFunc(list.Items, func(x, y unstructured.Unstructured) int { // they share quotas, in this order
		return cmp.Or(cmp.Compare(x.GetNamespace(), y.GetNamespace()), cmp.Compare(x.GetName(), y.GetName()))
	})
	quotas := map[string]slack.Quotas{}
	for i := range list.Items {
		one := &buffer{}
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &one.CapacityBuffer)
		if err != nil {
			klog.ErrorS(err, "A CapacityBuffer cannot be read", "object", klog.KObj(&list.Items[i]))
			continue
		}
		if one.IsOurs() || !one.IsKept() || one.DeletionTimestamp != nil {
			continue
		}
		if _, read := quotas[one.Namespace]; !read {
			if quotas[one.Namespace], err = b.quotasOf(ctx, one.Namespace); err != nil {
				b.known, b.looked = before, time.Time{}
				return err
			}
		}
		one.resolve(ctx, b.objects, quotas[one.Namespace])
		b.known[types.NamespacedName{Namespace: one.Namespace, Name: one.Name}] = one
	}
	b.tell(before)
	return nil
}

// tell tells of stand-ins that have changed.
func (b *Buffers) tell(before map[types.NamespacedName]*buffer) {
	for name, one := range b.known {
		var old *appsv1.Deployment
		if was := before[name]; was != nil {
			old = was.standIn
		}
		switch {
		case one.standIn == nil && old != nil:
			b.to.OnDelete(old)
		case one.standIn != nil && (old == nil || !reflect.DeepEqual(old, one.standIn)):
			b.to.OnUpdate(nil, one.standIn)
		}
	}
	for name, was := range before {
		if b.known[name] == nil && was.standIn != nil {
			b.to.OnDelete(was.standIn)
		}
	}
}

// resolve finds out of which pod a buffer keeps how many copies.
func (b *buffer) resolve(ctx context.Context, objects dynamic.Interface, quotas slack.Quotas) {
	template, current, err := b.template(ctx, objects)
	if err == nil {
		workload.Submitted(&template.Spec)
		b.wanted, err = b.Spec.Copies(current, template)
	}
	if err != nil {
		b.problem = err
		return
	}
	b.copies = quotas.Take(template, b.wanted)
	b.standIn = b.StandIn(template, b.copies)
}

// quotasOf returns what the ResourceQuotas of a namespace leave; without the right to list them, the bounds of the
// engine are the only ones.
func (b *Buffers) quotasOf(ctx context.Context, namespace string) (slack.Quotas, error) {
	list, err := b.objects.Resource(v1.SchemeGroupVersion.WithResource("resourcequotas")).Namespace(namespace).List(ctx,
		metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		klog.InfoS("Warning: quotas do not bound CapacityBuffers", "namespace", namespace, "why", err)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("quotas of CapacityBuffers: %w", err)
	}
	all := make([]v1.ResourceQuota, len(list.Items))
	for i := range list.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &all[i]); err != nil {
			return nil, fmt.Errorf("quotas of CapacityBuffers: %w", err)
		}
	}
	return slack.QuotasOf(all), nil
}

// template returns the pod of a buffer, and how many replicas there are of what it refers to.
func (b *buffer) template(ctx context.Context, objects dynamic.Interface) (*v1.PodTemplateSpec, int32, error) {
	get := func(group, resource, name string, into any) error {
		o, err := objects.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}).
			Namespace(b.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into)
	}
	if ref := b.Spec.PodTemplateRef; ref != nil {
		template := &v1.PodTemplate{}
		if err := get("", "podtemplates", ref.Name, template); err != nil {
			return nil, 0, fmt.Errorf("spec.podTemplateRef: %w", err)
		}
		b.generation = &template.Generation
		return &template.Template, 0, nil
	}
	ref := b.Spec.ScalableRef
	if ref == nil {
		return nil, 0, fmt.Errorf("spec: needs a podTemplateRef or a scalableRef")
	}
	resource, err := ref.Resource()
	if err != nil {
		return nil, 0, err
	}
	var workload struct {
		Spec struct {
			Template v1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
		Status struct {
			Replicas int32 `json:"replicas"`
		} `json:"status"`
	}
	if err := get(ref.APIGroup, resource, ref.Name, &workload); err != nil {
		return nil, 0, fmt.Errorf("spec.scalableRef: %w", err)
	}
	return &workload.Spec.Template, workload.Status.Replicas, nil
}

// Write tells each buffer what a plan has made of it. A status that is as it should be is not written.
func (b *Buffers) Write(ctx context.Context, plan *loadlinev1.PlanSlackResponse, now time.Time) error {
	if b == nil || plan == nil {
		return nil
	}
	refused, mirrored := map[string]string{}, map[string]*loadlinev1.MirroredSlack{}
	for _, e := range plan.GetErrors() {
		refused[e.GetSource()] = e.GetText()
	}
	for _, m := range plan.GetMirrored() {
		for _, source := range m.GetSources() {
			mirrored[source] = m
		}
	}
	for name, one := range b.known {
		status := one.statusOf(refused[one.Source()], mirrored[one.Source()], now)
		fields, err := fieldsOf(&status)
		if err != nil {
			return fmt.Errorf("status of CapacityBuffer %s: %w", name, err)
		}
		before, err := fieldsOf(&one.Status)
		if err != nil {
			return fmt.Errorf("status of CapacityBuffer %s: %w", name, err)
		}
		for field := range b.pruned { // it is written beside others alone, in case that the definition has got it
			before[field] = fields[field]
		}
		if reflect.DeepEqual(fields, before) {
			continue
		}
		if err := b.patch(ctx, name, one.UID, fields); err != nil {
			return fmt.Errorf("status of CapacityBuffer %s: %w", name, err)
		}
		one.Status = status
	}
	return nil
}

// patch writes the fields of a status, and finds out which of them the API server drops. A buffer that has gone, or is
// another one of the same name, is left as it is.
func (b *Buffers) patch(ctx context.Context, name types.NamespacedName, uid types.UID, fields map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid}, "status": fields})
	if err != nil {
		return err
	}
	written, err := b.objects.Resource(b.resource()).Namespace(name.Namespace).Patch(ctx, name.Name,
		types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for field, value := range fields {
		if value == nil {
			continue // nothing to keep
		}
		if _, kept, _ := unstructured.NestedFieldNoCopy(written.Object, "status", field); kept {
			delete(b.pruned, field)
		} else {
			b.pruned[field] = true
		}
	}
	return nil
}

// fieldsOf returns all fields of a status, for a merge patch: null takes an earlier value away. Without it, the field
// would keep this value, and the status would be written again after each look.
func fieldsOf(status *slack.CapacityBufferStatus) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return nil, err
	}
	for field := range reflect.TypeFor[slack.CapacityBufferStatus]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if _, has := fields[name]; !has {
			fields[name] = nil
		}
	}
	return fields, nil
}

// ready returns how many copies fit now; nil: the plan does not tell. Buffers with the same pod are kept together: each
// gets the least number that may be its own.
func (b *buffer) ready(refused string, kept *loadlinev1.MirroredSlack) *int32 {
	switch {
	case refused != "" || b.copies == 0:
		return new(int32)
	case kept == nil:
		return nil
	}
	return new(int32(max(0, int64(b.copies)-max(0, kept.GetWanted()-kept.GetPlaced()))))
}

// statusOf returns the status that a buffer should have.
func (b *buffer) statusOf(refused string, kept *loadlinev1.MirroredSlack, now time.Time) slack.CapacityBufferStatus {
	s := slack.CapacityBufferStatus{ProvisioningStrategy: slack.ActiveCapacity,
		PodTemplateRef: b.Spec.PodTemplateRef, PodTemplateGeneration: b.generation, Replicas: &b.copies,
		ReadyReplicas: b.ready(refused, kept)}
	s.Conditions = append(s.Conditions, b.Status.Conditions...)
	set := func(kind string, holds bool, reason, message string) {
		c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message,
			ObservedGeneration: b.Generation, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second))}
		if holds {
			c.Status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&s.Conditions, c)
	}
	wasLimited := meta.FindStatusCondition(s.Conditions, limitedByQuotas) != nil
	if b.problem != nil {
		s.Replicas, s.ReadyReplicas = nil, nil
		set(readyForProvisioning, false, "Error", b.problem.Error())
		if wasLimited {
			set(limitedByQuotas, false, "NotReadyForProvisioning", "")
		}
		set(provisioning, false, "NotReadyForProvisioning", "")
		return s
	}
	set(readyForProvisioning, true, "AttributesSetSuccessfully", "")
	if b.copies < b.wanted {
		set(limitedByQuotas, true, limitedByQuotas,
			fmt.Sprintf("quotas of the namespace allow %d of %d copies", b.copies, b.wanted))
	} else if wasLimited {
		set(limitedByQuotas, false, "NotLimited", "")
	}
	switch {
	case refused != "":
		set(provisioning, false, "Refused", refused)
	case b.copies == 0:
		set(provisioning, true, "BufferIsEmpty", "")
	case kept == nil:
		set(provisioning, false, "NotPlanned", "the last plan does not tell of it")
	case kept.GetCount() < kept.GetWanted():
		set(provisioning, false, "Limited", kept.GetReason())
	case kept.GetPlaced() < kept.GetCount():
		set(provisioning, false, "RequiresNewCapacity", kept.GetReason())
	default:
		set(provisioning, true, "FitsExistingCapacity", "")
	}
	return s
}

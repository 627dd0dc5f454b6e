package slack

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	helpers "k8s.io/component-helpers/resource"
)

// ActiveCapacity is the strategy of buffers for which nodes are added in advance; one that states none has it.
const ActiveCapacity = "buffer.x-k8s.io/active-capacity"

// CapacityBuffer is one of autoscaling.x-k8s.io, in v1beta1 or v1alpha1, which have these fields alike. What is written
// here has replicas only, since implementations differ in what percentages and limits come to.
type CapacityBuffer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              CapacityBufferSpec   `json:"spec"`
	Status            CapacityBufferStatus `json:"status,omitzero"`
}

// CapacityBufferSpec says of which pod how many copies are to fit.
type CapacityBufferSpec struct {
	ProvisioningStrategy string               `json:"provisioningStrategy,omitempty"`
	PodTemplateRef       *LocalObjectTemplate `json:"podTemplateRef,omitempty"`
	ScalableRef          *ScalableRef         `json:"scalableRef,omitempty"`
	Replicas             *int32               `json:"replicas,omitempty"`
	Percentage           *int32               `json:"percentage,omitempty"` // of the replicas of ScalableRef
	Limits               v1.ResourceList      `json:"limits,omitempty"`     // of all copies together
}

// LocalObjectTemplate names a PodTemplate of the same namespace.
type LocalObjectTemplate struct {
	Name string `json:"name"`
}

// ScalableRef names a workload of the same namespace.
type ScalableRef struct {
	APIGroup string `json:"apiGroup,omitempty"`
	Kind     string `json:"kind"`
	Name     string `json:"name"`
}

// CapacityBufferStatus says what has become of a buffer.
type CapacityBufferStatus struct {
	PodTemplateRef        *LocalObjectTemplate `json:"podTemplateRef,omitempty"`
	PodTemplateGeneration *int64               `json:"podTemplateGeneration,omitempty"`
	Replicas              *int32               `json:"replicas,omitempty"`
	ReadyReplicas         *int32               `json:"readyReplicas,omitempty"` // that fit now; older definitions lack it
	ProvisioningStrategy  string               `json:"provisioningStrategy,omitempty"`
	Conditions            []metav1.Condition   `json:"conditions,omitempty"`
}

// IsOurs says whether a buffer was written here: what keeps slack asks for none.
func (b *CapacityBuffer) IsOurs() bool { return b.Labels[ShapeLabel] != "" }

// IsKept says whether a buffer is of a strategy that is kept here; another one is somebody else's.
func (b *CapacityBuffer) IsKept() bool {
	return b.Spec.ProvisioningStrategy == "" || b.Spec.ProvisioningStrategy == ActiveCapacity
}

// Copies returns of how many copies of a pod a buffer is: its replicas or its percentage of the `current` ones of what
// it refers to, rounded up, whichever is more, and no more than its limits allow; without either, as many as these do.
func (s *CapacityBufferSpec) Copies(current int32, pod *v1.PodTemplateSpec) (int32, error) {
	copies, bounded := int64(0), false
	if s.Replicas != nil {
		copies, bounded = int64(*s.Replicas), true
	}
	if s.Percentage != nil && s.ScalableRef != nil {
		copies, bounded = max(copies, (int64(*s.Percentage)*int64(current)+99)/100), true
	}
	allowed, limited := s.allowed(pod)
	switch {
	case limited && bounded:
		copies = min(copies, allowed)
	case limited:
		copies = allowed
	case !bounded && len(s.Limits) > 0:
		return 0, errors.New("spec.limits: the pod requests none of these resources, and there are neither replicas nor a " +
			"percentage")
	case !bounded:
		return 0, errors.New("spec: needs replicas, a percentage of a scalableRef, or limits")
	}
	if copies < 0 || copies > mostCopies {
		return 0, fmt.Errorf("spec: %d copies, the limit is %d", copies, mostCopies)
	}
	return int32(copies), nil
}

// mostCopies of one buffer; the engine keeps fewer in one namespace, unless its options allow more.
const mostCopies = 1_000_000

// allowed returns how many copies of a pod fit into the limits. `limited` is false if the pod requests none of these
// resources.
func (s *CapacityBufferSpec) allowed(pod *v1.PodTemplateSpec) (copies int64, limited bool) {
	template := copyPod(pod)
	requests := helpers.PodRequests(&v1.Pod{Spec: template.Spec}, helpers.PodResourcesOptions{})
	for name, limit := range s.Limits {
		each, most := requests[name], limit.Value()
		size := each.Value()
		if name == v1.ResourceCPU {
			size, most = each.MilliValue(), limit.MilliValue()
		}
		if size <= 0 {
			continue
		}
		if fit := max(0, most/size); !limited || fit < copies {
			copies = fit
		}
		limited = true
	}
	return copies, limited
}

// Quotas is what each ResourceQuota of a namespace leaves. Those with scopes are not counted.
type Quotas []v1.ResourceList

// QuotasOf returns what they leave now.
func QuotasOf(all []v1.ResourceQuota) (quotas Quotas) {
	for i := range all {
		if q := &all[i]; len(q.Spec.Scopes) == 0 && q.Spec.ScopeSelector == nil {
			left := v1.ResourceList{}
			for name, most := range q.Status.Hard {
				most.Sub(q.Status.Used[name])
				left[name] = most
			}
			quotas = append(quotas, left)
		}
	}
	return quotas
}

// Take returns how many of so many copies of a pod the quotas allow, and takes these from them, so that several buffers
// share the rest.
func (q Quotas) Take(pod *v1.PodTemplateSpec, copies int32) int32 {
	template := copyPod(pod)
	of := &v1.Pod{Spec: template.Spec}
	requests := helpers.PodRequests(of, helpers.PodResourcesOptions{})
	limits := helpers.PodLimits(of, helpers.PodResourcesOptions{})
	each := v1.ResourceList{}
	for _, left := range q {
		for name, amount := range left {
			size := quotaSize(name, requests, limits)
			each[name] = size
			if size.Sign() > 0 {
				copies = min(copies, int32(max(0, min(mostCopies, unitsOf(name, amount)/unitsOf(name, size)))))
			}
		}
	}
	for _, left := range q {
		for name, amount := range left {
			size := each[name]
			size.Mul(int64(copies))
			amount.Sub(size)
			left[name] = amount
		}
	}
	return copies
}

// unitsOf returns an amount as a whole number: millicores of CPU, and of all else what the quota counts in.
func unitsOf(name v1.ResourceName, amount resource.Quantity) int64 {
	if strings.HasSuffix(string(name), "cpu") {
		return amount.MilliValue()
	}
	return amount.Value()
}

// quotaSize returns what a pod takes from a quota of this name.
func quotaSize(name v1.ResourceName, requests, limits v1.ResourceList) resource.Quantity {
	if name == v1.ResourcePods || name == "count/pods" {
		return *resource.NewQuantity(1, resource.DecimalSI)
	}
	if limited, ok := strings.CutPrefix(string(name), "limits."); ok {
		return limits[v1.ResourceName(limited)]
	}
	return requests[v1.ResourceName(strings.TrimPrefix(string(name), "requests."))]
}

// ScalableKinds are the kinds of workloads that a buffer may refer to, with their groups and names in the API.
var ScalableKinds = []struct{ Kind, Group, Resource string }{
	{"Deployment", "apps", "deployments"}, {"ReplicaSet", "apps", "replicasets"},
	{"StatefulSet", "apps", "statefulsets"}, {"ReplicationController", "", "replicationcontrollers"},
}

// Resource returns the name in the API of what is referred to; an error if it is of a kind that is not known.
func (r *ScalableRef) Resource() (string, error) {
	i := slices.IndexFunc(ScalableKinds, func(k struct{ Kind, Group, Resource string }) bool {
		return k.Kind == r.Kind && k.Group == r.APIGroup
	})
	if i < 0 {
		return "", fmt.Errorf("spec.scalableRef: kind %q of group %q is none of Deployment, ReplicaSet and StatefulSet of "+
			"apps and ReplicationController", r.Kind, r.APIGroup)
	}
	return ScalableKinds[i].Resource, nil
}

// bufferPrefix begins the name of a stand-in. No object of the API server can have such a name.
const bufferPrefix = "capacitybuffer:"

// StandIn returns a Deployment without replicas that asks for the copies of a buffer: the engine keeps room for it as
// for any workload that asks.
func (b *CapacityBuffer) StandIn(pod *v1.PodTemplateSpec, count int32) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: bufferPrefix + b.Name,
		UID: b.UID, Annotations: map[string]string{copies: fmt.Sprint(count)}},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32), Template: *pod,
			Selector: &metav1.LabelSelector{MatchLabels: pod.Labels}}}
}

// Source is what the engine calls the stand-in of a buffer.
func (b *CapacityBuffer) Source() string {
	return fmt.Sprintf("Deployment %s/%s%s", b.Namespace, bufferPrefix, b.Name)
}

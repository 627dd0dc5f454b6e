// Package quotas has the CapacityQuotas of the cluster bound how far node groups grow.
package quotas

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"

	"loadline.dev/shim/api/loadlinev1"
)

// lookEvery is how often quotas are read.
const lookEvery = 30 * time.Second

// mostQuotas bounds what is read: of more, none is known, and no group grows.
const mostQuotas = 1000

// Bounds of the engine for one quota.
const (
	mostGPUTypes     = 100
	mostRequirements = 256
	mostNameBytes    = 253
)

// Resource is that of CapacityQuotas.
var Resource = schema.GroupVersionResource{Group: "autoscaling.x-k8s.io", Version: "v1beta1",
	Resource: "capacityquotas"}

// Resources of a quota that are no type of GPUs.
const (
	cpu    = "cpu"
	memory = "memory"
	nodes  = "nodes"
)

// capacityQuota is what is read of a CapacityQuota.
type capacityQuota struct {
	Spec struct {
		Selector *metav1.LabelSelector `json:"selector"`
		Limits   struct {
			Resources map[string]resource.Quantity `json:"resources"`
		} `json:"limits"`
	} `json:"spec"`
}

// Quotas are those of a cluster.
type Quotas struct {
	objects dynamic.Interface
	looked  time.Time
	// maxima are what the quotas say; nil: they were never read, and no group grows.
	maxima []*loadlinev1.NodeMaximum
	others []string // those that are not followed, each with the reason
}

// New returns what has read none yet.
func New(objects dynamic.Interface) *Quotas { return &Quotas{objects: objects} }

// Look reads the quotas, unless that was done a short time ago. Without the kind there are none; after any other error,
// also that of missing rights, those that were known stay.
func (q *Quotas) Look(ctx context.Context, now time.Time) error {
	if q == nil || !q.looked.IsZero() && now.Sub(q.looked) < lookEvery {
		return nil
	}
	list, err := q.objects.Resource(Resource).List(ctx, metav1.ListOptions{Limit: mostQuotas})
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		list = &unstructured.UnstructuredList{}
	case err != nil:
		return fmt.Errorf("CapacityQuotas: %w", err)
	case list.GetContinue() != "":
		return fmt.Errorf("CapacityQuotas: there are more than %d", mostQuotas)
	}
	maxima, others := []*loadlinev1.NodeMaximum{}, []string{}
	for i := range list.Items {
		maximum, problem := maximumOf(&list.Items[i])
		if maximum != nil {
			maxima = append(maxima, maximum)
		}
		if problem != "" {
			others = append(others, list.Items[i].GetName()+": "+problem)
		}
	}
	q.looked, q.maxima, q.others = now, maxima, others
	return nil
}

// Warning says which quotas are not followed, or not as a whole, and why; empty: all are.
func (q *Quotas) Warning() string {
	if q == nil || len(q.others) == 0 {
		return ""
	}
	return "CapacityQuotas that are not followed: " + strings.Join(q.others, "; ")
}

// maximumOf returns what a quota says, nil if it is not followed, and what is not followed of it; empty: nothing.
func maximumOf(object *unstructured.Unstructured) (maximum *loadlinev1.NodeMaximum, problem string) {
	var quota capacityQuota
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &quota); err != nil {
		return nil, err.Error()
	}
	name := "CapacityQuota/" + object.GetName()
	maximum = &loadlinev1.NodeMaximum{Name: name[:min(len(name), mostNameBytes)]}
	if maximum.Selector, problem = selectorOf(quota.Spec.Selector); problem != "" {
		return nil, problem
	}
	unknown := []string{}
	for _, name := range slices.Sorted(maps.Keys(quota.Spec.Limits.Resources)) {
		limit := quota.Spec.Limits.Resources[name]
		amount := max(0, limit.Value()) // a limit below 0 permits no more than 0 does
		switch {
		case name == cpu: // whole cores, rounded down: a quota is never exceeded
			maximum.Cores = new(min(max(0, limit.MilliValue()/1000), math.MaxInt32))
		case name == memory:
			maximum.MemoryBytes = new(min(amount, 1<<62))
		case name == nodes:
			maximum.Nodes = new(min(amount, math.MaxInt32))
		case name == "" || len(validation.IsValidLabelValue(name)) > 0 || len(maximum.Gpus) == mostGPUTypes:
			unknown = append(unknown, fmt.Sprintf("%q", name))
		default:
			maximum.Gpus = append(maximum.Gpus, &loadlinev1.GpuCount{GpuType: name, Gpus: min(amount, math.MaxInt32)})
		}
	}
	if len(unknown) > 0 {
		problem = fmt.Sprintf("only cpu, memory, nodes and up to %d types of GPUs are bounded, not %s", mostGPUTypes,
			strings.Join(unknown, ", "))
	}
	return maximum, problem
}

// selectorOf returns the selector as the engine takes it, and why the quota cannot be followed; empty: it can.
func selectorOf(selector *metav1.LabelSelector) (bytes []byte, problem string) {
	if selector == nil {
		return nil, ""
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, "spec.selector: " + err.Error()
	}
	requirements, _ := parsed.Requirements()
	if len(requirements) > mostRequirements {
		return nil, fmt.Sprintf("spec.selector: has more than %d requirements", mostRequirements)
	}
	for _, requirement := range requirements {
		if requirement.Key() == v1.LabelHostname {
			return nil, "spec.selector: " + v1.LabelHostname + " is not known of new nodes"
		}
	}
	if bytes, err = selector.Marshal(); err != nil {
		return nil, err.Error()
	}
	return bytes, ""
}

// Bound puts the quotas into a question. While they are not known, no group may grow.
func (q *Quotas) Bound(request *loadlinev1.PlanLoopRequest) {
	switch {
	case q == nil:
	case q.maxima == nil:
		request.MaxCoresTotal = new(int64(0))
	default:
		request.Maxima = q.maxima
	}
}

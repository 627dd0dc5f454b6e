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

// mostGPUTypes is how many types the engine takes.
const mostGPUTypes = 100

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

// Quotas are those of a cluster. Of each resource the least limit of all quotas of all nodes counts.
type Quotas struct {
	objects dynamic.Interface
	looked  time.Time
	// limits are those by resource; nil: they were never read, and no group grows.
	limits map[string]int64
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
	limits, others := map[string]int64{}, []string{}
	for i := range list.Items {
		if problem := add(list.Items[i].Object, limits); problem != "" {
			others = append(others, list.Items[i].GetName()+": "+problem)
		}
	}
	q.looked, q.limits, q.others = now, limits, others
	return nil
}

// Warning says which quotas are not followed, or not as a whole, and why; empty: all are.
func (q *Quotas) Warning() string {
	if q == nil || len(q.others) == 0 {
		return ""
	}
	return "CapacityQuotas that are not followed: " + strings.Join(q.others, "; ")
}

// add takes over the limits of a quota, and says why it is not followed; empty: it is.
func add(object map[string]any, limits map[string]int64) (problem string) {
	var quota capacityQuota
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &quota); err != nil {
		return err.Error()
	}
	if s := quota.Spec.Selector; s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0 {
		return "it selects nodes by labels, and only quotas of all nodes are followed"
	}
	unknown := []string{}
	for name, limit := range quota.Spec.Limits.Resources {
		amount := limit.Value()
		switch {
		case name == cpu: // whole cores, rounded down: a quota is never exceeded
			amount = limit.MilliValue() / 1000
		case name != memory && name != nodes && (name == "" || len(validation.IsValidLabelValue(name)) > 0):
			unknown = append(unknown, fmt.Sprintf("%q", name))
			continue
		}
		amount = max(0, amount) // a limit below 0 permits no more than 0 does
		if before, known := limits[name]; !known || amount < before {
			limits[name] = amount
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return "only cpu, memory, nodes and types of GPUs are bounded, not " + strings.Join(unknown, ", ")
	}
	return ""
}

// Bound puts the limits into a question, where they are below its own. While they are not known, no group may grow.
func (q *Quotas) Bound(request *loadlinev1.PlanLoopRequest) {
	if q == nil {
		return
	}
	if q.limits == nil {
		request.MaxCoresTotal = new(int64(0))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(q.limits)) {
		limit := q.limits[name]
		switch name {
		case cpu:
			request.MaxCoresTotal = lower(request.MaxCoresTotal, min(limit, math.MaxInt32))
		case memory:
			request.MaxMemoryTotal = lower(request.MaxMemoryTotal, min(limit, 1<<62))
		case nodes:
			if limit == 0 { // which means no limit in a question
				request.MaxCoresTotal = new(int64(0))
			} else if most := int32(min(limit, math.MaxInt32)); request.MaxNodesTotal == 0 || most < request.MaxNodesTotal {
				request.MaxNodesTotal = most
			}
		default:
			request.MaxGpusTotal = lowerGPUs(request.MaxGpusTotal, name, min(limit, math.MaxInt32))
		}
	}
}

func lower(own *int64, limit int64) *int64 {
	if own != nil && *own <= limit {
		return own
	}
	return &limit
}

// lowerGPUs returns the limits with that of a type; those that were given stay as they are.
func lowerGPUs(own []*loadlinev1.GpuCount, kind string, limit int64) []*loadlinev1.GpuCount {
	at := slices.IndexFunc(own, func(count *loadlinev1.GpuCount) bool { return count.GpuType == kind })
	switch {
	case at < 0 && len(own) >= mostGPUTypes || at >= 0 && own[at].Gpus <= limit:
		return own
	case at < 0:
		return append(slices.Clip(own), &loadlinev1.GpuCount{GpuType: kind, Gpus: limit})
	}
	own = slices.Clone(own)
	own[at] = &loadlinev1.GpuCount{GpuType: kind, Gpus: limit}
	return own
}

package karpenter

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Version is the version of Karpenter's API that is spoken.
const Version = "karpenter.sh/v1"

var (
	nodePools  = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}
	nodeClaims = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}
)

// Labels and annotations of Karpenter.
const (
	nodePoolLabel     = "karpenter.sh/nodepool"
	capacityTypeLabel = "karpenter.sh/capacity-type"
)

// Labels and annotations of ours. ManagedLabel is on a NodePool whose nodes Loadline makes and removes.
const (
	ManagedLabel = "loadline.dev/managed"
	// limitsAnnotation of a NodePool bounds it in place of spec.limits, which keep Karpenter from acting.
	limitsAnnotation = "loadline.dev/limits"
	// budgetsAnnotation of a NodePool has what spec.disruption.budgets would have, which keep Karpenter from acting.
	budgetsAnnotation = "loadline.dev/disruption-budgets"
	// groupAnnotation of a NodeClaim is the node group that it was made for.
	groupAnnotation = "loadline.dev/node-group"
)

// Capacity types.
const (
	onDemand = "on-demand"
	spot     = "spot"
	reserved = "reserved"
)

// nodePool is what is read of a NodePool.
type nodePool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Template struct {
			Metadata struct {
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"metadata"`
			Spec claimSpec `json:"spec"`
		} `json:"template"`
		Disruption struct {
			ConsolidateAfter    string   `json:"consolidateAfter"`
			ConsolidationPolicy string   `json:"consolidationPolicy"`
			Budgets             []budget `json:"budgets"`
		} `json:"disruption"`
		Limits   v1.ResourceList `json:"limits"`
		Replicas *int64          `json:"replicas"`
		Weight   int64           `json:"weight"` // 0, as where there is none, to 100
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

type budget struct {
	Reasons  []string `json:"reasons"`
	Nodes    string   `json:"nodes"`
	Schedule string   `json:"schedule"`
	Duration string   `json:"duration"`
}

// claimSpec is the spec of a NodeClaim, and of the template of a NodePool.
type claimSpec struct {
	Taints                 []v1.Taint       `json:"taints,omitempty"`
	StartupTaints          []v1.Taint       `json:"startupTaints,omitempty"`
	Requirements           []requirement    `json:"requirements"`
	Resources              *claimResources  `json:"resources,omitempty"`
	NodeClassRef           nodeClassRef     `json:"nodeClassRef"`
	TerminationGracePeriod *metav1.Duration `json:"terminationGracePeriod,omitempty"`
	ExpireAfter            string           `json:"expireAfter,omitempty"`
}

type claimResources struct {
	Requests v1.ResourceList `json:"requests,omitempty"`
}

type nodeClassRef struct {
	Group string `json:"group"`
	Kind  string `json:"kind"`
	Name  string `json:"name"`
}

// nodeClaim is what is read and written of a NodeClaim.
type nodeClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   claimSpec   `json:"spec"`
	Status claimStatus `json:"status,omitzero"`
}

type claimStatus struct {
	NodeName    string             `json:"nodeName,omitempty"`
	ProviderID  string             `json:"providerID,omitempty"`
	Capacity    v1.ResourceList    `json:"capacity,omitempty"`
	Allocatable v1.ResourceList    `json:"allocatable,omitempty"`
	Conditions  []metav1.Condition `json:"conditions,omitempty"`
}

// condition returns a condition; nil: there is none.
func condition(all []metav1.Condition, kind string) *metav1.Condition {
	for i := range all {
		if all[i].Type == kind {
			return &all[i]
		}
	}
	return nil
}

func isTrue(all []metav1.Condition, kind string) bool {
	c := condition(all, kind)
	return c != nil && c.Status == metav1.ConditionTrue
}

func (c *nodeClaim) launched() bool   { return isTrue(c.Status.Conditions, "Launched") }
func (c *nodeClaim) registered() bool { return isTrue(c.Status.Conditions, "Registered") }

// idPrefix begins the id of a machine that has no provider id yet: the name of its NodeClaim follows.
const idPrefix = "nodeclaim:///"

// id returns the id of the machine of a claim.
func (c *nodeClaim) id() string {
	if c.Status.ProviderID != "" {
		return c.Status.ProviderID
	}
	return idPrefix + c.Name
}

// label returns the value of a label of the claim, else the single value that its requirements leave to it; empty:
// there is none.
func (c *nodeClaim) label(key string) string {
	if value := c.Labels[key]; value != "" {
		return value
	}
	return singleValue(c.Spec.Requirements, key)
}

func decode[T any](from []unstructured.Unstructured, what string) ([]*T, error) {
	all := make([]*T, 0, len(from))
	for i := range from {
		object := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from[i].Object, object); err != nil {
			return nil, fmt.Errorf("%s %s cannot be read as %s: %w", what, from[i].GetName(), Version, err)
		}
		all = append(all, object)
	}
	return all, nil
}

func encode(claim *nodeClaim) (*unstructured.Unstructured, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(claim)
	if err != nil {
		return nil, err
	}
	delete(object, "status")
	return &unstructured.Unstructured{Object: object}, nil
}

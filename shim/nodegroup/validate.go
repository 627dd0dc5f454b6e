package nodegroup

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// check checks a group of our own form by itself, and completes its template. The error starts with the field.
func (g *NodeGroup) check() error {
	if g.Metadata.Name == "" {
		return errors.New("metadata.name: missing")
	}
	s := &g.Spec
	switch {
	case s.Min < 0:
		return fmt.Errorf("spec.min: %d is negative", s.Min)
	case s.Max < s.Min:
		return fmt.Errorf("spec.max: %d is less than min, %d", s.Max, s.Min)
	case s.Target != nil && *s.Target < 0:
		return fmt.Errorf("spec.target: %d is negative", *s.Target)
	case s.Price != nil && !(*s.Price >= 0 && *s.Price <= math.MaxFloat64):
		return fmt.Errorf("spec.price: %v is not an amount of money", *s.Price)
	case len(s.NodeSelector) == 0 && (s.Template == nil || len(s.Template.Labels) == 0):
		return errors.New("spec.nodeSelector: missing, and there is no template with labels: no node can belong to " +
			"the group")
	}
	if s.Template != nil {
		completeAmounts(s)
		if err := cmp.Or(checkAmounts(s), checkLabels(s)); err != nil {
			return err
		}
	}
	if s.Size != nil {
		if err := s.Size.check(); err != nil {
			return fmt.Errorf("spec.size.%w", err)
		}
	}
	if s.ScaleDown != nil {
		if err := s.ScaleDown.check(); err != nil {
			return fmt.Errorf("spec.scaleDown.%w", err)
		}
	}
	return nil
}

// checkLabels refuses a template whose nodes would be in another group, so that no number of them is ever enough.
func checkLabels(s *Spec) error {
	for _, key := range slices.Sorted(maps.Keys(s.NodeSelector)) {
		if has, ok := s.Template.Labels[key]; ok && has != s.NodeSelector[key] {
			return fmt.Errorf("spec.template.metadata.labels[%q]: %q is not %q, by which spec.nodeSelector knows the nodes of "+
				"the group", key, has, s.NodeSelector[key])
		}
	}
	return nil
}

// defaultMaxPods is the default of kubelet's maxPods.
const defaultMaxPods = 110

// completeAmounts lets a template that does not say how many pods a node takes offer what kubelets do.
func completeAmounts(s *Spec) {
	offer := s.Template.Status.Allocatable
	if len(offer) == 0 {
		offer = s.Template.Status.Capacity
	}
	if _, stated := offer[v1.ResourcePods]; len(offer) > 0 && !stated {
		offer[v1.ResourcePods] = *resource.NewQuantity(defaultMaxPods, resource.DecimalSI)
	}
}

func checkAmounts(s *Spec) error {
	status := &s.Template.Status
	if len(status.Allocatable) == 0 && len(status.Capacity) == 0 {
		return errors.New("spec.template.status.allocatable: missing")
	}
	for name, amount := range status.Allocatable {
		if amount.Cmp(resource.Quantity{}) < 0 {
			return fmt.Errorf("spec.template.status.allocatable[%q]: %s is negative", name, amount.String())
		}
	}
	return nil
}

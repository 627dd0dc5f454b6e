package karpenter

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// problemOf says why Loadline must leave a NodePool alone; nil: it need not. Beside Karpenter it would buy nodes twice,
// and each would remove what the other has made.
func (p *pool) problemOf() error {
	refused := func(why, todo string) error {
		return fmt.Errorf("NodePool %s has the label %s=true, and %s: %s", p.Name, ManagedLabel, why, todo)
	}
	var err error
	switch p.limits, err = readLimits(p.Annotations[limitsAnnotation]); {
	case p.DeletionTimestamp != nil:
		return fmt.Errorf("NodePool %s is being deleted", p.Name)
	case p.Spec.Replicas != nil:
		return refused("spec.replicas makes Karpenter keep a number of nodes", "take it out")
	case !p.provisioningIsOff():
		return refused("Karpenter still makes nodes for it", `set spec.limits to {cpu: "0"}; limits for Loadline go into `+
			"the annotation "+limitsAnnotation)
	case !p.disruptionIsOff():
		return refused("Karpenter still removes its nodes", `set spec.disruption.budgets to [{nodes: "0"}]`)
	case err != nil:
		return fmt.Errorf("NodePool %s: annotation %s: %w", p.Name, limitsAnnotation, err)
	}
	if p.budgets, err = readBudgets(p.Annotations[budgetsAnnotation]); err != nil {
		return fmt.Errorf("NodePool %s: annotation %s: %w", p.Name, budgetsAnnotation, err)
	}
	if ready := condition(p.Status.Conditions, "NodeClassReady"); ready != nil && ready.Status == metav1.ConditionFalse {
		return fmt.Errorf("NodePool %s: its node class is not ready: %s", p.Name, ready.Message)
	}
	return nil
}

// provisioningIsOff says whether a limit of nothing keeps Karpenter from making nodes. Limits do not count NodeClaims
// that others make.
func (p *pool) provisioningIsOff() bool {
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, "nodes"} {
		if limit, stated := p.Spec.Limits[name]; stated && limit.IsZero() {
			return true
		}
	}
	return false
}

// disruptionIsOff says whether a budget that always holds, for all reasons, lets no node go.
func (p *pool) disruptionIsOff() bool {
	for _, b := range p.Spec.Disruption.Budgets {
		if len(b.Reasons) == 0 && b.Schedule == "" && (b.Nodes == "0" || b.Nodes == "0%") {
			return true
		}
	}
	return false
}

// resources are those without a domain that a limit can be of.
var resources = []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, v1.ResourcePods,
	"nodes"}

// readLimits reads RESOURCE=QUANTITY, ...
func readLimits(text string) (v1.ResourceList, error) {
	limits := v1.ResourceList{}
	for entry := range strings.SplitSeq(text, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		left, right, _ := strings.Cut(entry, "=")
		name := v1.ResourceName(strings.TrimSpace(left))
		quantity, err := resource.ParseQuantity(strings.TrimSpace(right))
		if err != nil || name == "" || quantity.Sign() < 0 {
			return nil, fmt.Errorf("must be RESOURCE=QUANTITY, ..., such as cpu=1000,memory=4Ti,nodes=50; %q is not", entry)
		}
		extended := strings.Contains(string(name), "/") && len(validation.IsQualifiedName(string(name))) == 0
		if !extended && !slices.Contains(resources, name) && !strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix) {
			return nil, fmt.Errorf("%q is no resource: must be one of cpu, memory, ephemeral-storage, pods and nodes, or have "+
				"a domain, such as nvidia.com/gpu", name)
		}
		if _, twice := limits[name]; twice {
			return nil, fmt.Errorf("%s occurs twice", name)
		}
		limits[name] = quantity
	}
	return limits, nil
}

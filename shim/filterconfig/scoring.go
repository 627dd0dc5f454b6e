package filterconfig

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"

	"loadline.dev/shim/defaultscores"
)

// Strategies of NodeResourcesFit.
const (
	LeastAllocated           = string(schedulerv1.LeastAllocated)
	MostAllocated            = string(schedulerv1.MostAllocated)
	RequestedToCapacityRatio = string(schedulerv1.RequestedToCapacityRatio)
)

// Resource is one that is scored, and how much it counts among the others. [1, 100].
type Resource struct {
	Name   v1.ResourceName
	Weight int64
}

// Scoring is how one profile scores what nodes have free. Other scores play no part in it.
type Scoring struct {
	// Strategy of NodeResourcesFit, its resources, and of RequestedToCapacityRatio the shape.
	Strategy  string
	Resources []Resource
	Shape     []defaultscores.Point
	// Balanced are the resources of NodeResourcesBalancedAllocation.
	Balanced []v1.ResourceName
	// Weights of both plugins; 0: it does not score.
	FitWeight, BalancedWeight int64
}

// defaultScoring is that of kube-scheduler's default profile.
func defaultScoring() *Scoring {
	return &Scoring{Strategy: LeastAllocated, Resources: []Resource{{v1.ResourceCPU, 1}, {v1.ResourceMemory, 1}},
		Balanced: []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory}, FitWeight: 1, BalancedWeight: 1}
}

// DefaultShape prefers what is used most: the shape where nobody has stated one.
var DefaultShape = []defaultscores.Point{{Utilization: 0, Score: 0}, {Utilization: 100, Score: 10}}

// SetStrategy replaces the strategy of every profile; with no shape of its own one gets DefaultShape.
func (s *Scheduler) SetStrategy(strategy string) error {
	switch strategy {
	case LeastAllocated, MostAllocated, RequestedToCapacityRatio:
	default:
		return fmt.Errorf("strategy %q: must be %s, %s or %s", strategy, LeastAllocated, MostAllocated,
			RequestedToCapacityRatio)
	}
	for _, scoring := range s.Profiles {
		scoring.Strategy = strategy
		if strategy == RequestedToCapacityRatio && len(scoring.Shape) == 0 {
			scoring.Shape = DefaultShape
		}
	}
	return nil
}

// mostWeight is the highest weight of a resource, mostScore the highest score of a shape.
const (
	mostWeight = 100
	mostScore  = 10
)

// readStrategy reads how NodeResourcesFit scores. Errors continue the path of its arguments.
func (s *Scoring) readStrategy(strategy *schedulerv1.ScoringStrategy) error {
	switch strategy.Type {
	case "", schedulerv1.LeastAllocated:
		s.Strategy = LeastAllocated
	case schedulerv1.MostAllocated, schedulerv1.RequestedToCapacityRatio:
		s.Strategy = string(strategy.Type)
	default:
		return fmt.Errorf(".scoringStrategy.type: %q must be %s, %s or %s", strategy.Type, LeastAllocated, MostAllocated,
			RequestedToCapacityRatio)
	}
	if len(strategy.Resources) > 0 {
		s.Resources = nil
	}
	for i, resource := range strategy.Resources {
		read, err := readResource(resource)
		if err != nil {
			return fmt.Errorf(".scoringStrategy.resources[%d].%w", i, err)
		}
		s.Resources = append(s.Resources, read)
	}
	if s.Strategy != RequestedToCapacityRatio {
		return nil
	}
	if strategy.RequestedToCapacityRatio == nil || len(strategy.RequestedToCapacityRatio.Shape) == 0 {
		return fmt.Errorf(".scoringStrategy.requestedToCapacityRatio.shape: must have a point")
	}
	for i, point := range strategy.RequestedToCapacityRatio.Shape {
		at := fmt.Sprintf(".scoringStrategy.requestedToCapacityRatio.shape[%d]", i)
		switch {
		case point.Utilization < 0 || point.Utilization > 100:
			return fmt.Errorf("%s.utilization: %d is not in [0, 100]", at, point.Utilization)
		case i > 0 && int64(point.Utilization) <= s.Shape[i-1].Utilization:
			return fmt.Errorf("%s.utilization: %d must be more than that of the point before", at, point.Utilization)
		case point.Score < 0 || point.Score > mostScore:
			return fmt.Errorf("%s.score: %d is not in [0, %d]", at, point.Score, mostScore)
		}
		s.Shape = append(s.Shape, defaultscores.Point{Utilization: int64(point.Utilization), Score: int64(point.Score)})
	}
	return nil
}

// fills says whether of equal nodes the one scores best that is used most.
func (s *Scoring) fills() bool {
	rises := len(s.Shape) > 1 && s.Shape[0].Score < s.Shape[len(s.Shape)-1].Score
	return s.FitWeight > 0 && (s.Strategy == MostAllocated || s.Strategy == RequestedToCapacityRatio && rises)
}

func readResource(resource schedulerv1.ResourceSpec) (Resource, error) {
	switch {
	case resource.Name == "":
		return Resource{}, fmt.Errorf("name: must not be empty")
	case resource.Weight == 0:
		resource.Weight = 1
	case resource.Weight < 0 || resource.Weight > mostWeight:
		return Resource{}, fmt.Errorf("weight: %d is not in [1, %d]", resource.Weight, mostWeight)
	}
	return Resource{v1.ResourceName(resource.Name), resource.Weight}, nil
}

func (s *Scoring) readBalanced(resources []schedulerv1.ResourceSpec) error {
	s.Balanced = nil
	for i, resource := range resources {
		read, err := readResource(resource)
		if err == nil && read.Weight != 1 {
			err = fmt.Errorf("weight: %d must be 1", read.Weight)
		}
		if err != nil {
			return fmt.Errorf(".resources[%d].%w", i, err)
		}
		s.Balanced = append(s.Balanced, read.Name)
	}
	return nil
}

// readWeights reads whether and how much the two plugins count.
func (s *Scoring) readWeights(plugins *schedulerv1.Plugins) error {
	for name, weight := range map[string]*int64{"NodeResourcesFit": &s.FitWeight,
		"NodeResourcesBalancedAllocation": &s.BalancedWeight} {
		on, stated := enabled(name, plugins, &plugins.Score)
		switch {
		case stated < 0:
			return fmt.Errorf("score.enabled: weight %d of %s is negative", stated, name)
		case !on:
			*weight = 0
		case stated > 0:
			*weight = int64(stated)
		}
	}
	return nil
}

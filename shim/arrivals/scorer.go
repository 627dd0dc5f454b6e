package arrivals

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"

	"loadline.dev/shim/defaultscores"
	"loadline.dev/shim/filterconfig"
)

// amounts are those of the resources of a Scorer, in their order: cpu in millicores, all others in their own unit.
type amounts []int64

// requests of a pod, or of the pods of a node.
type requests struct {
	stated amounts
	// assumed counts 100m and 200Mi for a container that states nothing: so NodeResourcesFit scores.
	assumed amounts
}

// assumedPerContainer is what kube-scheduler assumes of a container without requests.
var assumedPerContainer = v1.ResourceList{
	v1.ResourceCPU:    *resource.NewMilliQuantity(100, resource.DecimalSI),
	v1.ResourceMemory: *resource.NewQuantity(200<<20, resource.DecimalSI),
}

// Scorer works out what kube-scheduler's NodeResourcesFit and NodeResourcesBalancedAllocation give nodes.
type Scorer struct {
	scheduler *filterconfig.Scheduler
	resources []v1.ResourceName
	columns   map[*filterconfig.Scoring]columns
}

// columns are positions among the resources of a Scorer.
type columns struct {
	fit, balanced []int
	weights       []int64 // of fit
}

// NewScorer returns what scores as a scheduler is configured.
func NewScorer(scheduler *filterconfig.Scheduler) *Scorer {
	s := &Scorer{scheduler: scheduler, columns: map[*filterconfig.Scoring]columns{}}
	for _, scoring := range scheduler.Profiles {
		var of columns
		for _, r := range scoring.Resources {
			of.fit, of.weights = append(of.fit, s.column(r.Name)), append(of.weights, r.Weight)
		}
		for _, name := range scoring.Balanced {
			of.balanced = append(of.balanced, s.column(name))
		}
		s.columns[scoring] = of
	}
	return s
}

func (s *Scorer) column(name v1.ResourceName) int {
	if i := slices.Index(s.resources, name); i >= 0 {
		return i
	}
	s.resources = append(s.resources, name)
	return len(s.resources) - 1
}

// requestsOf returns the requests of a pod that is to be placed. Pod-level resources do not count for what
// NodeResourcesFit assumes of it: kube-scheduler 1.36 leaves them out there, and only there.
func (s *Scorer) requestsOf(pod *v1.Pod) requests {
	pod = own(pod)
	return requests{
		stated: s.amountsOf(helpers.PodRequests(pod, helpers.PodResourcesOptions{})),
		assumed: s.amountsOf(
			helpers.PodRequests(pod, helpers.PodResourcesOptions{NonMissingContainerRequests: assumedPerContainer,
				SkipPodLevelResources: true})),
	}
}

// requestsOnNode returns what a pod counts as once it is on a node. Of a pod with pod-level requests nothing is
// assumed for a resource that some container states.
func (s *Scorer) requestsOnNode(pod *v1.Pod) requests {
	pod = own(pod)
	options := helpers.PodResourcesOptions{UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true}
	list := helpers.PodRequests(pod, options)
	stated := s.amountsOf(list)
	options.NonMissingContainerRequests = assumedPerContainer.DeepCopy()
	if helpers.IsPodLevelRequestsSet(pod) {
		for name := range list {
			delete(options.NonMissingContainerRequests, name)
		}
	}
	return requests{stated: stated, assumed: s.amountsOf(helpers.PodRequests(pod, options))}
}

// own returns a pod to add up: the helpers change pod-level amounts in place.
func own(pod *v1.Pod) *v1.Pod {
	if pod.Spec.Resources == nil {
		return pod
	}
	return pod.DeepCopy()
}

func (s *Scorer) amountsOf(list v1.ResourceList) amounts {
	out := make(amounts, len(s.resources))
	for i, name := range s.resources {
		quantity := list[name]
		if out[i] = quantity.Value(); name == v1.ResourceCPU {
			out[i] = quantity.MilliValue()
		}
	}
	return out
}

// nodeSums is one node as kube-scheduler scores it.
type nodeSums struct {
	allocatable amounts
	requests
}

func (s *Scorer) newNodeSums(node *v1.Node) *nodeSums {
	n := &nodeSums{allocatable: s.amountsOf(node.Status.Allocatable)}
	n.stated, n.assumed = make(amounts, len(s.resources)), make(amounts, len(s.resources))
	return n
}

func (n *nodeSums) add(r requests) {
	for i := range n.stated {
		n.stated[i] += r.stated[i]
		n.assumed[i] += r.assumed[i]
	}
}

// Scores returns what NodeResourcesFit and NodeResourcesBalancedAllocation give a node for a pod that is to be placed,
// before their weights.
func (s *Scorer) Scores(node *v1.Node, onNode []*v1.Pod, pod *v1.Pod) (fit, balanced int64) {
	sums := s.newNodeSums(node)
	for _, p := range onNode {
		sums.add(s.requestsOnNode(p))
	}
	scoring, incoming := s.scheduler.Scoring(pod), s.requestsOf(pod)
	return s.fit(sums, incoming, scoring), s.balanced(sums, incoming, scoring)
}

// score returns the sum of both scores, each with its weight.
func (s *Scorer) score(n *nodeSums, pod requests, scoring *filterconfig.Scoring) (total int64) {
	if scoring.FitWeight > 0 {
		total += scoring.FitWeight * s.fit(n, pod, scoring)
	}
	if scoring.BalancedWeight > 0 {
		total += scoring.BalancedWeight * s.balanced(n, pod, scoring)
	}
	return total
}

func (s *Scorer) fit(n *nodeSums, pod requests, scoring *filterconfig.Scoring) int64 {
	of := s.columns[scoring]
	allocatable, requested := make([]int64, len(of.fit)), make([]int64, len(of.fit))
	for i, column := range of.fit {
		if s.passedOver(column, pod.assumed) {
			continue
		}
		allocatable[i] = n.allocatable[column]
		requested[i] = s.onNode(n, column) + pod.assumed[column]
	}
	switch scoring.Strategy {
	case filterconfig.MostAllocated:
		return defaultscores.MostAllocated(of.weights, requested, allocatable)
	case filterconfig.RequestedToCapacityRatio:
		return defaultscores.RequestedToCapacityRatio(scoring.Shape, of.weights, requested, allocatable)
	}
	return defaultscores.LeastAllocated(of.weights, requested, allocatable)
}

// onNode returns what NodeResourcesFit counts as requested by the pods of a node: of cpu and memory something is
// assumed.
func (s *Scorer) onNode(n *nodeSums, column int) int64 {
	if name := s.resources[column]; name == v1.ResourceCPU || name == v1.ResourceMemory {
		return n.assumed[column]
	}
	return n.stated[column]
}

// balanced has no opinion about a pod that requests nothing of what is to be balanced.
func (s *Scorer) balanced(n *nodeSums, pod requests, scoring *filterconfig.Scoring) int64 {
	of := s.columns[scoring]
	var before, after, allocatable []int64
	asks := false
	for _, column := range of.balanced {
		asks = asks || pod.stated[column] != 0
		if s.passedOver(column, pod.stated) {
			continue
		}
		before, after = append(before, n.stated[column]), append(after, n.stated[column]+pod.stated[column])
		allocatable = append(allocatable, n.allocatable[column])
	}
	if !asks {
		return 0
	}
	return defaultscores.BalancedAllocation(before, after, allocatable)
}

// passedOver says whether a resource does not count for a pod: of scalar resources only those that it requests do.
func (s *Scorer) passedOver(column int, pod amounts) bool {
	name := string(s.resources[column])
	scalar := strings.Contains(name, "/") || strings.HasPrefix(name, v1.ResourceHugePagesPrefix) ||
		strings.HasPrefix(name, v1.ResourceAttachableVolumesPrefix)
	return scalar && pod[column] == 0
}

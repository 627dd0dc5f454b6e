package simulate

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"

	"loadline.dev/shim/peers"
)

// scored are the resources that kube-scheduler's default profile scores, each with weight 1.
var scored = [...]v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory}

var evenWeights = []int64{1, 1}

// amounts are those of scored, cpu in millicores and memory in bytes.
type amounts [len(scored)]int64

// requests of a pod, or of the pods of a node.
type requests struct {
	stated amounts
	// assumed counts 100m and 200Mi for a container that states nothing: so NodeResourcesFit scores.
	assumed amounts
}

// What kube-scheduler assumes of a container without requests.
var assumedPerContainer = v1.ResourceList{
	v1.ResourceCPU:    *resource.NewMilliQuantity(100, resource.DecimalSI),
	v1.ResourceMemory: *resource.NewQuantity(200<<20, resource.DecimalSI),
}

// requestsOf returns the requests of a pod that is to be placed. Pod-level resources do not count for what
// NodeResourcesFit assumes of it: kube-scheduler 1.36 leaves them out there, and only there.
func requestsOf(pod *v1.Pod) requests {
	return requests{
		stated: amountsOf(helpers.PodRequests(pod, helpers.PodResourcesOptions{})),
		assumed: amountsOf(
			helpers.PodRequests(pod, helpers.PodResourcesOptions{NonMissingContainerRequests: assumedPerContainer,
				SkipPodLevelResources: true})),
	}
}

// requestsOnNode returns what a pod counts as once it is on a node. Of a pod with pod-level requests nothing is
// assumed for a resource that some container states.
func requestsOnNode(pod *v1.Pod) requests {
	options := helpers.PodResourcesOptions{UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true}
	list := helpers.PodRequests(pod, options)
	stated := amountsOf(list)
	options.NonMissingContainerRequests = assumedPerContainer.DeepCopy()
	if helpers.IsPodLevelRequestsSet(pod) {
		for name := range list {
			delete(options.NonMissingContainerRequests, name)
		}
	}
	return requests{stated: stated, assumed: amountsOf(helpers.PodRequests(pod, options))}
}

func amountsOf(list v1.ResourceList) (out amounts) {
	for i, name := range scored {
		quantity := list[name]
		if out[i] = quantity.Value(); name == v1.ResourceCPU {
			out[i] = quantity.MilliValue()
		}
	}
	return out
}

// nodeSums is one node as the default scheduler scores it.
type nodeSums struct {
	allocatable amounts
	requests
}

func newNodeSums(node *v1.Node) *nodeSums {
	return &nodeSums{allocatable: amountsOf(node.Status.Allocatable)}
}

func (n *nodeSums) add(pod *v1.Pod) {
	r := requestsOnNode(pod)
	n.stated, n.assumed = n.stated.plus(r.stated), n.assumed.plus(r.assumed)
}

func (a amounts) plus(b amounts) amounts {
	for i := range a {
		a[i] += b[i]
	}
	return a
}

// DefaultScores returns what kube-scheduler's LeastAllocated and BalancedAllocation give a node for a pod that is to be
// placed, with the default profile's resources and weights.
func DefaultScores(node *v1.Node, onNode []*v1.Pod, pod *v1.Pod) (leastAllocated, balancedAllocation int64) {
	sums := newNodeSums(node)
	for _, p := range onNode {
		sums.add(p)
	}
	incoming := requestsOf(pod)
	return sums.leastAllocated(incoming), sums.balancedAllocation(incoming)
}

// score returns LeastAllocated plus BalancedAllocation, each with weight 1 as in the default profile. The latter has
// no opinion about a pod that requests nothing.
func (n *nodeSums) score(pod requests) int64 {
	return n.leastAllocated(pod) + n.balancedAllocation(pod)
}

func (n *nodeSums) leastAllocated(pod requests) int64 {
	after := n.assumed.plus(pod.assumed)
	return peers.LeastAllocated(evenWeights, after[:], n.allocatable[:])
}

func (n *nodeSums) balancedAllocation(pod requests) int64 {
	if pod.stated == (amounts{}) {
		return 0
	}
	after := n.stated.plus(pod.stated)
	return peers.BalancedAllocation(n.stated[:], after[:], n.allocatable[:])
}

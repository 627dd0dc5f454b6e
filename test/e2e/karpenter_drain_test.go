package e2e

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Names that Karpenter gives its taint of nodes that it terminates, and its finalizer of nodes.
const (
	karpenterTaint     = "karpenter.sh/disrupted"
	karpenterFinalizer = "karpenter.sh/termination"
)

// drainTaint is Cluster Autoscaler's taint of nodes that are drained, which Loadline uses too.
const drainTaint = "ToBeDeletedByClusterAutoscaler"

// A node with a pod is drained: the pod is evicted and runs on the other node of Karpenter's. Until it has gone, the
// NodeClaim stays. Then Loadline deletes the NodeClaim, Karpenter terminates the node beside Loadline's taint, and
// while that takes its time nobody acts on the node again.
func TestKarpenterNodeIsDrained(t *testing.T) {
	t.Parallel()
	a := startActing(t)
	a.start("autoscaler", "--decisions=scale-up,scale-down", "--node-deletion-delay-timeout=5m")
	a.deploy("base", 2, "1000m") // one on a small node, and one of web beside each
	a.load.waitRunning("base", 2)
	a.deploy("web", 2, "800m")
	a.load.waitRunning("web", 2)
	a.load.protect("web", 1)
	a.wait("two nodes that Karpenter has initialized", func() bool { return a.initialized() == 2 })
	for _, node := range a.load.nodes() {
		if len(a.podsOn(node.Name)) != 2 || !slices.Contains(node.Finalizers, karpenterFinalizer) {
			t.Fatalf("node %s has pods %v, finalizers %v", node.Name, a.podsOn(node.Name), node.Finalizers)
		}
		a.patchNode(node.Name, `{"metadata":{"annotations":{"delay-deletion.cluster-autoscaler.kubernetes.io/test":"yes"},
			"finalizers":["test.example/kept","`+karpenterFinalizer+`"]}}`)
	}
	a.deploy("base", 0, "1000m")

	var drained string
	a.wait("a node without pods", func() bool {
		for _, node := range a.load.nodes() {
			if len(a.podsOn(node.Name)) == 0 {
				drained = node.Name
			}
		}
		return drained != "" && a.load.runs("web") == 2
	})
	a.waitLoops(2)
	if node := a.nodeNamed(drained); !hasTaint(node, drainTaint) || a.claims.going() != 0 {
		t.Errorf("node %s is drained with taints %v, and %d NodeClaims are being deleted before they may", drained,
			node.Spec.Taints, a.claims.going())
	}
	a.patchNode(drained, `{"metadata":{"annotations":{"delay-deletion.cluster-autoscaler.kubernetes.io/test":null}}}`)
	a.wait("Karpenter to terminate the node", func() bool { return a.nodeNamed(drained).DeletionTimestamp != nil })
	a.waitLoops(3)
	if node := a.nodeNamed(drained); !hasTaint(node, drainTaint) || !hasTaint(node, karpenterTaint) {
		t.Errorf("node %s has taints %v while Karpenter terminates it", drained, node.Spec.Taints)
	}
	a.patchNode(drained, `{"metadata":{"finalizers":null}}`)
	a.wait("the NodeClaim to go", func() bool { return len(a.list(nodeClaims)) == 1 && len(a.nodes()) == 1 })
	a.waitLoops(3)
	a.checkDrain(drained)
}

func (a *acting) nodeNamed(name string) *v1.Node {
	a.Helper()
	node, err := a.cluster.Client.CoreV1().Nodes().Get(a.ctx, name, metav1.GetOptions{})
	a.must(err)
	return node
}

func hasTaint(node *v1.Node, key string) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(taint v1.Taint) bool { return taint.Key == key })
}

// checkDrain looks through the record of the API server: one eviction, and then one deletion of a NodeClaim. Karpenter
// had nothing left to evict.
func (a *acting) checkDrain(drained string) {
	a.Helper()
	evictions, deletions := a.requests("create", "pods/eviction"), a.requests("delete", "nodeclaims")
	if len(evictions) != 1 || len(deletions) != 1 || !evictions[0].At.Before(deletions[0].At) {
		a.Errorf("the autoscaler evicted %v and deleted %v, want a pod and then a NodeClaim", evictions, deletions)
	}
	others, err := a.cluster.Changes("admin")
	a.must(err)
	for _, change := range others {
		if change.Resource == "pods/eviction" {
			a.Errorf("Karpenter has evicted: %v", change)
		}
	}
	if reasons := a.load.eventsOn(drained); !slices.Contains(reasons, "ScaleDown") {
		a.Errorf("events on the node that was drained: %v", reasons)
	}
	if a.load.runs("web") != 2 || len(a.podsOn(drained)) != 0 {
		a.Errorf("%d pods run; on node %s: %v", a.load.runs("web"), drained, a.podsOn(drained))
	}
	a.check("2 small")
	expectNothingForbidden(a.T, a.load.autoscaler.Process)
}

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"loadline.dev/test/e2e/harness"
)

// setBudget changes how many pods of the Deployment are to be there at any time, and returns when that was in force.
func (s *scaled) setBudget(pods int) time.Time {
	s.t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"minAvailable":%d}}`, pods)
	if _, err := s.cluster.Client.PolicyV1().PodDisruptionBudgets("default").Patch(s.ctx, "web", types.MergePatchType,
		patch, metav1.PatchOptions{}); err != nil {
		s.t.Fatal(err)
	}
	return time.Now()
}

// evictions returns those that the autoscaler has asked for since some time, by the status of the API server's answer.
func (s *scaled) evictions(since time.Time) map[int][]harness.Change {
	s.t.Helper()
	changes, err := s.cluster.Changes(autoscalerUser)
	if err != nil {
		s.t.Fatal(err)
	}
	evictions := map[int][]harness.Change{}
	for _, change := range changes {
		if change.Resource == "pods/eviction" && change.At.After(since) {
			evictions[change.Code] = append(evictions[change.Code], change)
		}
	}
	return evictions
}

// A budget closes after nodes were tainted, and stays closed for longer than evictions are tried: none is accepted, the
// nodes are given back, and are not tried again in vain. Once it opens, nodes go. Invariants D1, G3.
func TestEvictionsRefused(t *testing.T) {
	t.Parallel()
	const tried = 4 * time.Second
	s := startScaled(t, "act", true, "--node-delete-delay-after-taint=4s", "--max-pod-eviction-time="+tried.String())
	s.wait("drains", func() bool { return len(s.busy()) > 0 })
	closed := s.setBudget(webPods)
	drained := s.busy()
	s.wait("refusals", func() bool { return len(s.evictions(closed)[429]) > 0 })
	s.wait("nodes to be given back", func() bool { return len(s.busy()) == 0 })
	s.wait("nodes without taints", func() bool { return !slices.ContainsFunc(s.nodes(), isTouched) })
	loops, refused := s.loops(), len(s.evictions(closed)[429])
	s.wait("ten loops with a closed budget", func() bool { return s.loops() >= loops+10 })
	asked := s.evictions(closed)
	if len(asked[201]) > 0 || len(asked[429]) != refused || len(s.busy()) > 0 {
		t.Errorf("with a closed budget: %d evictions accepted, %d refused of which %d after nodes were given back; "+
			"nodes that go: %v", len(asked[201]), len(asked[429]), len(asked[429])-refused, s.busy())
	}
	attempts := map[string]int{}
	for _, change := range asked[429] {
		attempts[change.Name]++
	}
	t.Logf("nodes %v, refusals by pod %v", drained, attempts)
	for pod, count := range attempts { // every 0.8 s to 1.2 s
		if count < 2 {
			t.Errorf("eviction of pod %s was tried %d times in %v", pod, count, tried)
		}
	}
	metrics := metricsOf(t, s.ctx, s.autoscaler)
	if counted := metrics.Sum("loadline_autoscaler_evicted_pods_total",
		harness.Labels{"eviction_result": "budget"}); int(counted) != refused {
		t.Errorf("%v refusals were counted, the API server tells of %d", counted, refused)
	}
	if failed := metrics.Sum("loadline_autoscaler_scale_down_failed_nodes_total",
		harness.Labels{"result": "NodeDeleteErrorFailedToEvictPods"}); failed == 0 {
		t.Error("no removal was counted as failed")
	}
	left := len(s.nodes())
	s.setBudget(budgetMin)
	s.wait("nodes to go", func() bool { return len(s.nodes()) < left })
	s.waitSettled()
	s.check()
}

// replacedNode is a node in whose place another machine came, under the same name.
type replacedNode struct {
	when string
	node *v1.Node
	pods []string
	at   time.Time
}

// replace puts another machine in the place of a node whose removal is under way, does something more, and waits until
// that removal has ended. The new one may not be removed.
func (s *scaled) replace(when, name string, then func()) replacedNode {
	s.t.Helper()
	failed := func() float64 {
		return metricsOf(s.t, s.ctx, s.autoscaler).Sum("loadline_autoscaler_scale_down_failed_nodes_total", nil)
	}
	before := failed()
	r := replacedNode{when: when}
	var err error
	if r.node, err = s.cloud.Replace(s.ctx, name,
		map[string]string{"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}); err != nil {
		s.t.Fatal(err)
	}
	r.at, r.pods = time.Now(), s.podsOn(name)
	s.t.Logf("%s: node %s was replaced, with pods %v", when, name, r.pods)
	then()
	s.wait("the removal of the node that was replaced to end", func() bool { return failed() > before })
	return r
}

func (s *scaled) podsOn(node string) (names []string) {
	s.t.Helper()
	list, err := s.cluster.Client.CoreV1().Pods("default").List(s.ctx,
		metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()})
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// drained waits until the removal of a node has begun, and returns its name.
func (s *scaled) drained() (name string) {
	s.t.Helper()
	s.wait("the removal of a node", func() bool {
		busy := s.busy()
		if len(busy) == 1 {
			name = busy[0]
		}
		return name != ""
	})
	return name
}

// Nodes are replaced by others of their names: after the plan, while evictions are refused, and when all pods are gone.
// The new ones are neither drained nor deleted; the others go on. Invariant D9.
func TestNodesReplacedMidDrain(t *testing.T) {
	t.Parallel()
	s := startScaled(t, "act", true, "--node-delete-delay-after-taint=3s", "--max-pod-eviction-time=1m",
		"--node-deletion-delay-timeout=1m", "--max-scale-down-parallelism=1", "--max-drain-parallelism=1")
	s.mostLeft = poolSize - 1
	replaced := []replacedNode{s.replace("after the plan", s.drained(), func() {})}

	name := s.drained()
	closed := s.setBudget(webPods)
	s.wait("refusals", func() bool { return len(s.evictions(closed)[429]) > 0 })
	replaced = append(replaced, s.replace("while evictions are refused", name, func() { s.setBudget(budgetMin) }))

	name = s.drained()
	delay := []byte(`{"metadata":{"annotations":{"delay-deletion.cluster-autoscaler.kubernetes.io/test":"yes"}}}`)
	if _, err := s.cluster.Client.CoreV1().Nodes().Patch(s.ctx, name, types.MergePatchType, delay,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.wait("all pods to be gone", func() bool { return len(s.podsOn(name)) == 0 })
	replaced = append(replaced, s.replace("before the deletion", name, func() {}))

	s.waitSettled()
	s.check()
	for _, r := range replaced {
		s.checkReplaced(r)
	}
}

// checkReplaced looks through the records of API server and cloud for what was done to a node that came in the place of
// another.
func (s *scaled) checkReplaced(r replacedNode) {
	s.t.Helper()
	now, err := s.cluster.Client.CoreV1().Nodes().Get(s.ctx, r.node.Name, metav1.GetOptions{})
	if err != nil || now.UID != r.node.UID || isTouched(*now) {
		s.t.Errorf("%s: node %s became %+v, error %v", r.when, r.node.Name, now, err)
	}
	if slices.Contains(s.cloud.Asked(), r.node.Name) {
		s.t.Errorf("%s: the cloud was asked to delete node %s", r.when, r.node.Name)
	}
	changes, err := s.cluster.Changes(autoscalerUser)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, change := range changes {
		if change.At.Before(r.at) || change.Code >= 300 {
			continue
		}
		if change.Resource == "nodes" && change.Name == r.node.Name ||
			change.Resource == "pods/eviction" && slices.Contains(r.pods, change.Name) {
			s.t.Errorf("%s: node %s: %v", r.when, r.node.Name, change)
		}
	}
}

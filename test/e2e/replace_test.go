package e2e

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"loadline.dev/test/e2e/harness"
	"loadline.dev/test/e2e/simcloud"
)

// A dear node whose utilization keeps it from going is replaced by two cheap ones, which are added first; the pods move
// within their budget. A leader that is killed while the new nodes are on their way is followed by one that continues:
// nothing is bought twice. Metrics, status and events tell of it, and then nothing happens any more.
func TestAutoscalerReplacesNodes(t *testing.T) {
	t.Parallel()
	groups := []simcloud.Group{pool("dear", 0, 2, 8, 100), pool("cheap", 0, 8, 4, 1)}
	s := startGrowing(t, 6*time.Second, groups, "--decisions=scale-up,scale-down,replace",
		"--scale-down-delay-after-add=2s", "--replacement-rest=5s", "--pod-disruption-cost=0.0005", "--payback-hours=1")
	// Meanwhile nobody takes the dear node for an empty one.
	if err := errors.Join(s.autoscaler.Stop(), s.cloud.Grow("dear", 1)); err != nil {
		t.Fatal(err)
	}
	s.wait("the dear node", func() bool { return len(s.nodes()) == 2 })
	s.deploy("web", 2, "3") // both fit on the dear node alone
	s.protect("web", 1)
	s.waitRunning("web", 2)
	s.budgets = watchBudgets(t, s.ctx, s.cluster, "app")
	s.wait("healthy pods", func() bool { return s.budgets.ready() == 3 })
	s.budgets.begin()
	dear := s.nodeOf("dear")
	if err := s.autoscaler.Restart(s.ctx); err != nil {
		t.Fatal(err)
	}

	s.wait("new nodes to be ordered", func() bool { return s.cloud.Target("cheap") > 0 })
	if s.nodeOf("dear") != dear {
		t.Errorf("the dear node goes before new ones have come")
	}
	s.autoscaler.Kill()
	s.autoscaler = s.start("autoscaler2", "act")
	s.wait("the dear node to go", func() bool { return s.nodeOf("dear") == "" && len(s.busy()) == 0 })
	s.waitRunning("web", 2)
	s.wait("the end of the move", func() bool {
		return metricsOf(t, s.ctx, s.autoscaler).Sum("loadline_autoscaler_replacement_moves_total",
			harness.Labels{"result": "done"}) >= 1 // nodes that came empty may have gone as moves of their own
	})
	if cheap, dear := s.cloud.Target("cheap"), s.cloud.Target("dear"); cheap != 2 || dear != 0 {
		t.Errorf("%d cheap nodes and %d dear ones, want 2 and 0", cheap, dear)
	}
	if lowest := s.budgets.lowest("web"); lowest < 1 {
		t.Errorf("at some time %d pods were healthy, the budget wants 1", lowest)
	}
	if told := s.eventsOn(dear); !slices.Contains(told, "Replacement") {
		t.Errorf("events on the node that was replaced: %v", told)
	}
	s.calm(40) // and the bill counts the loops that look for moves
	if text := s.status(); !strings.Contains(text, "replacement:") || !strings.Contains(text, "reachable: ") {
		t.Errorf("the status does not tell the bill:\n%s", text)
	}
	s.checkSizes(groups...)
	expectNothingForbidden(t, s.autoscaler.Process)
}

// protect makes a budget by which so many pods of a Deployment may be away at a time.
func (s *scaled) protect(app string, away int32) {
	s.t.Helper()
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: app},
		Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(away)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}
	if _, err := s.cluster.Client.PolicyV1().PodDisruptionBudgets("default").Create(s.ctx, budget,
		metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// nodeOf returns the first node of a pool; empty: there is none.
func (s *scaled) nodeOf(pool string) string {
	for _, node := range s.nodes() {
		if node.Labels["pool"] == pool {
			return node.Name
		}
	}
	return ""
}

// eventsOn returns the reasons of events on a node.
func (s *scaled) eventsOn(node string) (reasons []string) {
	s.t.Helper()
	events, err := s.cluster.Client.CoreV1().Events(metav1.NamespaceAll).List(s.ctx, metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, event := range events.Items {
		if of := event.InvolvedObject; of.Kind == "Node" && of.Name == node && event.Type == v1.EventTypeNormal {
			reasons = append(reasons, event.Reason)
		}
	}
	return reasons
}

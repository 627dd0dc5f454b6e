package autoscaler

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/view"
)

// The deletion costs of a plan are written to the pods of its nodes, and taken away by a later plan; only with the
// decision.
func TestPodsStateTheDeletionCostsOfAPlan(t *testing.T) {
	for _, decides := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := threeNodes(t, func(c *config.Configuration) {
				if decides {
					c.Decisions = append(c.Decisions, config.DownscaleOrderDecision)
				}
			})
			costs := []*loadlinev1.NodeDeletionCost{{Slot: 2, Cost: -1_000_000_000}, {Slot: 9, Cost: -5}}
			for _, answer := range []*loadlinev1.PlanLoopResponse{{DeletionCosts: costs}, {}} {
				if err := b.cluster.Apply(); err != nil {
					t.Fatal(err)
				}
				o := plan.NewLoop(b.clock.now())
				o.Plan = &plan.Plan{Answer: answer, NameOf: map[int32]string{1: "n1", 2: "n2"}}
				if part, err := b.actor.Act(b.ctx, o); err != nil {
					t.Fatal(part, err)
				}
				b.actor.Costs.Wait()
				synctest.Wait() // the informers see it
				var stating []string
				for _, pod := range b.cluster.PodsOf("n2") {
					pod, err := b.client.CoreV1().Pods(pod.Namespace).Get(b.ctx, pod.Name, metav1.GetOptions{})
					if err != nil {
						t.Fatal(err)
					}
					if view.HasOurDeletionCost(pod.Annotations) {
						stating = append(stating, pod.Name+" "+pod.Annotations[v1.PodDeletionCost])
					}
				}
				var want []string
				if decides && len(answer.DeletionCosts) > 0 {
					want = []string{"p2 -1000000000"}
				}
				if !slices.Equal(stating, want) {
					t.Errorf("decides %v: %q, want %q", decides, stating, want)
				}
			}
			b.expectCostWrites(decides)
			b.end()
		})
	}
}

func (b *bench) podWrites() int {
	return len(slices.DeleteFunc(b.writes(), func(write string) bool { return write != "patch pods " }))
}

// expectCostWrites expects a cost to be written and removed, or nothing to be written.
func (b *bench) expectCostWrites(some bool) {
	b.t.Helper()
	if got, want := b.podWrites(), map[bool]int{true: 2}[some]; got != want {
		b.t.Errorf("pods were written %d times, want %d", got, want)
	}
	const name = "loadline_autoscaler_pod_deletion_cost_writes_total"
	want := ""
	if some {
		want = "# HELP " + name + " Writes of the annotation pod-deletion-cost to pods: set, removed, stale (the pod has " +
			"changed, or is gone) or failed.\n# TYPE " + name + " counter\n" + name + "{result=\"removed\"} 1\n" + name +
			"{result=\"set\"} 1\n"
	}
	if err := testutil.GatherAndCompare(b.teller.Metrics.Registry, strings.NewReader(want), name); err != nil {
		b.t.Error(err)
	}
}

// The engine chooses nodes, and their pods are written; at constant load nothing is written again, and nothing evicted.
func TestNodesThatAreToBeEmptyFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := threeNodes(t, func(c *config.Configuration) {
			c.Decisions = append(c.Decisions, config.DownscaleOrderDecision)
			c.ScaleDown.ScaleDownUnneededTime.Duration = 24 * time.Hour
		})
		b.run(30 * time.Second)
		first := b.podWrites()
		b.run(5 * time.Minute)
		if first == 0 || b.podWrites() != first || slices.Contains(b.writes(), "create pods eviction") {
			t.Errorf("%d writes of pods, then %d; all: %q", first, b.podWrites(), b.writes())
		}
		b.end()
	})
}

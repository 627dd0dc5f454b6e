package drain

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/testing/enginetest"
)

// softTaintsOf asks the engine which nodes of one group get or lose soft taints. They are empty: each may go.
func softTaintsOf(t *testing.T, nodes []*v1.Node, most int) (changes []SoftTaintChange) {
	t.Helper()
	own := &loadlinev1.Changes{CompleteKinds: []loadlinev1.ObjectKind{loadlinev1.ObjectKind_POD_DISRUPTION_BUDGET,
		loadlinev1.ObjectKind_REPLICA_SET, loadlinev1.ObjectKind_STATEFUL_SET, loadlinev1.ObjectKind_DAEMON_SET,
		loadlinev1.ObjectKind_JOB}}
	group := &loadlinev1.LoopGroup{Growth: &loadlinev1.ScalableGroup{NodeGroup: "g", MaxNodes: int32(len(nodes))},
		Cloud: &loadlinev1.CloudGroup{Target: int32(len(nodes))}}
	for i, node := range nodes {
		told := node.DeepCopy()
		told.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1"),
			v1.ResourceMemory: resource.MustParse("1Gi")}
		bytes, err := told.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		own.Nodes = append(own.Nodes, &loadlinev1.NodeRecord{Slot: int32(i), Node: bytes})
		group.Cloud.Machines = append(group.Cloud.Machines, &loadlinev1.CloudMachine{Id: node.Name,
			State: loadlinev1.CloudMachine_RUNNING, Slot: new(int32(i))})
	}
	now := time.Now()
	answer, err := loadlinev1.NewAutoscalerClient(enginetest.Open(t)).PlanLoop(t.Context(),
		&loadlinev1.PlanLoopRequest{Cluster: &loadlinev1.PlanLoopRequest_Own{Own: own}, NowS: now.Unix(),
			Groups:    []*loadlinev1.LoopGroup{group},
			Decisions: []loadlinev1.PlanLoopRequest_Decision{loadlinev1.PlanLoopRequest_SCALE_DOWN},
			Drain:     &loadlinev1.DrainOptions{ScaleDownUnneededTimeS: new(int32(600))},
			Fleet: &loadlinev1.LoopFleet{Acts: true, NowMilliseconds: now.UnixMilli(),
				Options: &loadlinev1.FleetOptions{MaxNodeProvisionMilliseconds: 1, InitialBackOffMilliseconds: 1,
					MaxBackOffMilliseconds: 1, OkUnreadyNodes: int32(len(nodes)), MaxSoftTaints: int32(most)}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, action := range answer.GetFleet().GetActions() {
		if taint := action.GetSoftTaint(); taint != nil {
			changes = append(changes, SoftTaintChange{Node: nodes[taint.GetSlot()], Since: &taint.SinceS})
		}
	}
	return changes
}

// Soft taints carry since when, and what fails keeps no others from being written. A node that has got a hard taint
// meanwhile gets no soft one. The attempts are reported once.
func TestSoftTaints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stays, fails, goes, begun := w.addNode("stays"), w.addNode("fails"), w.addNode("goes"), w.addNode("begun")
		stays.Spec.Taints = []v1.Taint{{Key: SoftTaint, Value: "5", Effect: v1.TaintEffectPreferNoSchedule}}
		w.updateNode(stays)
		hard := begun.DeepCopy()
		hard.Spec.Taints = []v1.Taint{{Key: HardTaint, Value: "5", Effect: v1.TaintEffectNoSchedule}}
		w.updateNode(hard)
		w.taintFails = []string{"fails"}
		since := int64(77)
		taint := []v1.Taint{{Key: SoftTaint, Value: "77", Effect: v1.TaintEffectPreferNoSchedule}}
		soft := NewSoftTaints(w.client, 1, time.Second)
		var failure error
		soft.Begin(t.Context(), []SoftTaintChange{{Node: stays}, {Node: fails, Since: &since},
			{Node: goes, Since: &since}, {Node: begun, Since: &since}}, func(_ time.Duration, err error) { failure = err })
		soft.Wait()
		if !clean(w.node("stays")) || !slices.Equal(w.node("goes").Spec.Taints, taint) {
			t.Errorf("taints %v, %v", w.node("stays").Spec.Taints, w.node("goes").Spec.Taints)
		}
		if HasTaint(w.node("begun"), SoftTaint) {
			t.Error("a node that goes got a soft taint")
		}
		if failure == nil {
			t.Error("no failure is told")
		}
		want := []string{string(stays.UID), string(fails.UID), string(goes.UID), string(begun.UID)}
		if tried, again := soft.TakeTried(), soft.TakeTried(); !slices.Equal(tried, want) || again != nil {
			t.Errorf("tried %v, then %v, want %v", tried, again, want)
		}
	})
}

// Soft taints are written while the loop continues, one loop's after the other's, and for so long only.
func TestSoftTaintsInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		nodes := []*v1.Node{w.addNode("n1"), w.addNode("n2"), w.addNode("n3")}
		w.patchCost = time.Second
		soft := NewSoftTaints(w.client, 1, 2*time.Second)
		since := int64(77)
		var ended []time.Duration
		begin := func(since *int64, nodes ...*v1.Node) {
			var changes []SoftTaintChange
			for _, node := range nodes {
				changes = append(changes, SoftTaintChange{Node: node, Since: since})
			}
			soft.Begin(t.Context(), changes, func(took time.Duration, err error) {
				if err != nil {
					t.Error(err)
				}
				ended = append(ended, took)
			})
		}
		tainted := func() (names []string) {
			for _, node := range w.nodes() {
				if HasTaint(node, SoftTaint) {
					names = append(names, node.Name)
				}
			}
			return names
		}
		began := time.Now()
		begin(&since, nodes...)
		begin(nil, nodes...) // the first one still writes
		if time.Since(began) != 0 {
			t.Errorf("the loop waited for %v", time.Since(began))
		}
		soft.Wait()
		if got := strings.Join(tainted(), " "); got != "n1 n2" {
			t.Errorf("tainted %s: there was time for two", got)
		}
		if tried := soft.TakeTried(); len(tried) != 2 {
			t.Errorf("tried %v", tried)
		}
		begin(nil, nodes[1])
		soft.Wait()
		if got := strings.Join(tainted(), " "); got != "n1" {
			t.Errorf("tainted %s: a later loop is not followed", got)
		}
		if want := []time.Duration{2 * time.Second, time.Second}; !slices.Equal(ended, want) {
			t.Errorf("writes took %v, want %v", ended, want)
		}
	})
}

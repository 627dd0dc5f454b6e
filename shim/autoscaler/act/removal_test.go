package act

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/autoscaler/watch"
	"loadline.dev/shim/view"
)

// An answer that does not match the objects that it was made from is not acted upon.
func TestPlansThatCannotBe(t *testing.T) {
	options := config.Default()
	c := watch.New(view.NewForPlanning(nil, "test"), &options, nil)
	c.Nodes["n"] = &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u"}}
	loopOf := func(r *loadlinev1.NodeRemoval) *plan.Loop {
		r.Start = true
		o := plan.NewLoop(time.Now())
		o.See([]cloud.Group{{ID: "g"}})
		o.Plan = &plan.Plan{PlanDrainResponse: &loadlinev1.PlanDrainResponse{Remove: []*loadlinev1.NodeRemoval{r}},
			NameOf: map[int32]string{3: "n"}}
		return o
	}
	for want, r := range map[string]*loadlinev1.NodeRemoval{
		"":                    {Slot: 3, Node: "n", Uid: "u", NodeGroup: "g", Empty: true},
		"of slot 4":           {Slot: 4, Node: "n", NodeGroup: "g"},
		"which is \"n\"":      {Slot: 3, Node: "other", NodeGroup: "g"},
		"of UID v":            {Slot: 3, Node: "n", Uid: "v", NodeGroup: "g"},
		"of node group \"h\"": {Slot: 3, Node: "n", NodeGroup: "h"},
		"moves pod 0, default/p": {Slot: 3, NodeGroup: "g",
			Moves: []*loadlinev1.PodMove{{Namespace: "default", Name: "p"}}},
	} {
		got, err := removals(c, loopOf(r), map[int32]int32{r.Slot: 1})
		if want == "" && (err != nil || len(got) != 1) ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v: removals %v, error %v, want %q in it", r, got, err, want)
		}
	}
}

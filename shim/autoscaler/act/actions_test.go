package act

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/autoscaler/tell"
	"loadline.dev/shim/autoscaler/watch"
	"loadline.dev/shim/view"
)

// callTime is how long a cloud that does not answer is waited for.
const callTime = 5 * time.Second

// hangingCloud answers for some groups only.
type hangingCloud struct {
	cloud.Provider
	callTime time.Duration
	hangs    map[string]bool
	began    time.Time

	mu    sync.Mutex
	asked []string        // in the order in which calls begin
	after []time.Duration // since `began`
}

func (c *hangingCloud) call(ctx context.Context, group, what string) error {
	c.mu.Lock()
	c.asked, c.after = append(c.asked, what+" "+group), append(c.after, time.Since(c.began))
	c.mu.Unlock()
	if !c.hangs[group] {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.callTime)
	defer cancel()
	<-ctx.Done()
	return status.FromContextError(ctx.Err()).Err()
}

func (c *hangingCloud) DeleteNodes(ctx context.Context, group string, _ []*v1.Node) error {
	return c.call(ctx, group, "delete")
}

func (c *hangingCloud) DecreaseTargetSize(ctx context.Context, group string, _, _ int) error {
	return c.call(ctx, group, "takeBack")
}

func (c *hangingCloud) IncreaseSize(ctx context.Context, group string, _, _ int) error {
	return c.call(ctx, group, "grow")
}

// act carries out actions by a cloud, and returns the outcomes that the engine gets.
func (c *hangingCloud) act(t *testing.T, actions []*loadlinev1.LoopAction) (outcomes []string) {
	options := config.Default()
	client := fake.NewClientset()
	cluster := watch.New(view.NewForPlanning(nil, "test"), &options, nil)
	planner := plan.NewPlanner(nil, cluster, &options, &config.Loaded{}, client)
	teller := tell.New(cluster, &options, client, record.NewFakeRecorder(1000), tell.NewMetrics("test"), 1)
	o := plan.NewLoop(time.Now())
	names := map[string]bool{}
	for _, action := range actions {
		names[action.GetDeleteMachines().GetNodeGroup()+action.GetTakeBack().GetNodeGroup()+
			action.GetGrow().GetNodeGroup()] = true
	}
	var groups []cloud.Group
	for _, name := range slices.Sorted(maps.Keys(names)) {
		groups = append(groups, cloud.Group{ID: name, Max: 10, Model: cloud.Model{Node: &v1.Node{}},
			Instances: []*externalgrpc.Instance{{Id: "cloud://" + name}}})
	}
	o.See(groups)
	o.Plan = &plan.Plan{Answer: &loadlinev1.PlanLoopResponse{Fleet: &loadlinev1.LoopFleetAnswer{Actions: actions}}}
	c.began = time.Now()
	if part, err := New(planner, teller, client, c, time.Now).Act(t.Context(), o); err != nil {
		t.Errorf("%s: %v", part, err)
	}
	for _, outcome := range planner.Fleet.Outcomes.Outcomes {
		outcomes = append(outcomes, fmt.Sprintf("%d %v", outcome.GetId(), outcome.GetResult()))
	}
	return outcomes
}

func deletes(id int64, group string) *loadlinev1.LoopAction {
	return &loadlinev1.LoopAction{Id: id, Action: &loadlinev1.LoopAction_DeleteMachines{
		DeleteMachines: &loadlinev1.DeleteMachines{NodeGroup: group, Machines: []int32{0}}}}
}

func takesBack(id int64, group string, afterGrowth bool) *loadlinev1.LoopAction {
	return &loadlinev1.LoopAction{Id: id, AfterGrowth: afterGrowth, Action: &loadlinev1.LoopAction_TakeBack{
		TakeBack: &loadlinev1.ChangeTarget{NodeGroup: group, Nodes: 1, ExpectedTarget: 3}}}
}

func grows(id int64, group string) *loadlinev1.LoopAction {
	return &loadlinev1.LoopAction{Id: id, Action: &loadlinev1.LoopAction_Grow{
		Grow: &loadlinev1.ChangeTarget{NodeGroup: group, Nodes: 1, ExpectedTarget: 2}}}
}

// A cloud that does not answer for some groups, more than are asked at once, keeps no other group waiting. Growth is
// first. What is noted is in the order of the actions, whichever answer came first.
func TestHangingGroupsKeepNoOthersWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &hangingCloud{hangs: map[string]bool{}, callTime: callTime}
		var actions []*loadlinev1.LoopAction
		var want []string
		for i := range 20 {
			group := fmt.Sprintf("a%02d", i)
			c.hangs[group] = true
			actions, want = append(actions, deletes(int64(i+1), group)), append(want, fmt.Sprintf("%d UNKNOWN", i+1))
		}
		actions = append(actions, deletes(21, "z"), grows(22, "pods"))
		if got := c.act(t, actions); !slices.Equal(got, append(want, "21 DONE", "22 DONE")) {
			t.Errorf("outcomes %v", got)
		}
		if at := slices.Index(c.asked, "grow pods"); at < 0 || c.after[at] != 0 {
			t.Errorf("growth does not come first: asked %v, after %v", c.asked, c.after)
		}
		if took := time.Since(c.began); took != 3*callTime { // 20 groups, 8 at once
			t.Errorf("it took %v", took)
		}
	})
}

// An action that there was no time for has no outcome: it was not tried.
func TestWhatIsNotTriedHasNoOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &hangingCloud{hangs: map[string]bool{}, callTime: time.Hour}
		var actions []*loadlinev1.LoopAction
		var want []string
		for i := range 8 {
			group := fmt.Sprintf("g%d", i)
			c.hangs[group] = true
			actions, want = append(actions, grows(int64(i+1), group)), append(want, fmt.Sprintf("%d UNKNOWN", i+1))
		}
		actions = append(actions, grows(9, "late"), deletes(10, "later"))
		if got := c.act(t, actions); !slices.Equal(got, want) || len(c.asked) != 8 {
			t.Errorf("outcomes %v, want %v; asked %v", got, want, c.asked)
		}
		if took := time.Since(c.began); took != time.Minute {
			t.Errorf("it took %v", took)
		}
	})
}

// The target of a group after an action is the one that the next action expects.
func TestActionsOfOneGroupKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &hangingCloud{hangs: map[string]bool{"g": true}, callTime: callTime}
		c.act(t, []*loadlinev1.LoopAction{deletes(1, "g"), takesBack(2, "g", false), grows(3, "g")})
		want := []time.Duration{0, callTime, 2 * callTime}
		if !slices.Equal(c.asked, []string{"delete g", "takeBack g", "grow g"}) || !slices.Equal(c.after, want) {
			t.Errorf("asked %v, after %v", c.asked, c.after)
		}
	})
}

// Nodes are taken back for others only once the cloud has agreed to all of these.
func TestSwapWaitsForAllGrowth(t *testing.T) {
	for hanging, want := range map[string][]string{"": {"1 DONE", "2 DONE", "3 DONE"}, "b": {"1 DONE", "2 UNKNOWN"}} {
		synctest.Test(t, func(t *testing.T) {
			c := &hangingCloud{hangs: map[string]bool{hanging: true}, callTime: callTime}
			got := c.act(t, []*loadlinev1.LoopAction{grows(1, "a"), grows(2, "b"), takesBack(3, "c", true)})
			if !slices.Equal(got, want) {
				t.Errorf("group %q hangs: outcomes %v, want %v", hanging, got, want)
			}
		})
	}
}

// Cluster Autoscaler's names for the reasons are part of what providers read.
func TestMachinesWithoutANodeSayWhy(t *testing.T) {
	failed := &externalgrpc.Instance{Id: "m://1", Status: &externalgrpc.InstanceStatus{
		ErrorInfo: &externalgrpc.InstanceErrorInfo{ErrorCode: "OUT_OF_RESOURCES"}}}
	for _, c := range []struct {
		machine *externalgrpc.Instance
		want    string
	}{{failed, "create-error"}, {&externalgrpc.Instance{Id: "m://1"}, "unregistered"}} {
		node := withoutNode(c.machine)
		if node.Name != "m://1" || node.Spec.ProviderID != "m://1" ||
			node.Annotations["k8s.io/cluster-autoscaler/fake-node-reason"] != c.want {
			t.Errorf("%v: %+v", c.machine, node)
		}
	}
}

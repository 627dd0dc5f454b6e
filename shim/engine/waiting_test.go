package engine_test

import (
	"context"
	"fmt"
	"os/exec"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/testing/enginetest"
	"loadline.dev/shim/view"
)

// planTime is what the plan may take; growth takes at most half of it.
const planTime = 8 * time.Second

// endlessPlan is a question that takes all the time that it may: each of many pods spreads over full nodes by a rule of
// its own.
func endlessPlan(at *loadlinev1.Changes) *loadlinev1.PlanLoopRequest {
	template := view.TrimNodeForPlanning(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "template"},
		Status: v1.NodeStatus{Allocatable: offering}})
	request := &loadlinev1.PlanLoopRequest{Cluster: &loadlinev1.PlanLoopRequest_Changes{Changes: at},
		NowS: 1000, SeenS: 1000,
		Groups: []*loadlinev1.LoopGroup{{Growth: &loadlinev1.ScalableGroup{NodeGroup: "g", TemplateNode: template,
			MaxNodes: 1000}}},
		MaxMilliseconds: int32(planTime.Milliseconds()), MaxWork: 1 << 50}
	for i := range 6000 {
		label := map[string]string{"a": fmt.Sprint(i)}
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("pod-", i), Labels: label},
			Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Resources: requesting(fmt.Sprint(100+i, "m"))}},
				TopologySpreadConstraints: []v1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: v1.LabelHostname,
					WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: label}}}}}
		request.Pods = append(request.Pods, &loadlinev1.PendingPods{Count: 1, Unschedulable: true,
			Pod: &loadlinev1.IncomingPod{Pod: view.TrimIncomingPodForPlanning(pod)}})
	}
	return request
}

func requesting(cpu string) v1.ResourceRequirements {
	return v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse(cpu)}}
}

var offering = v1.ResourceList{"cpu": resource.MustParse("4"), "pods": resource.MustParse("110")}

func setNodes(v *view.View) {
	for i := range 300 {
		name := fmt.Sprint("node-", i)
		v.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}},
			Status: v1.NodeStatus{Allocatable: offering}})
		v.SetPod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: v1.PodSpec{NodeName: name,
			Containers: []v1.Container{{Name: "c", Resources: requesting("3900m")}}}})
	}
}

// While a plan has a view, and the only thread for plans, neither health checks nor other questions wait for it, of
// that view or of others.
func TestNothingButPlansWaitsForAPlan(t *testing.T) {
	daemon := enginetest.StartDaemon(t, "--threads=1")
	conn := daemon.Open()
	planned, other := view.NewForPlanning(conn, "planned"), view.New(conn, "other")
	setNodes(planned)
	setNodes(other)
	score := func(ctx context.Context, v *view.View) error {
		return v.Ask(ctx, func(at *loadlinev1.Changes) error {
			_, err := loadlinev1.NewSchedulerExtenderClient(conn).Score(ctx, &loadlinev1.ScoreRequest{Changes: at,
				Pod:    view.TrimIncomingPod(&v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c"}}}}),
				Policy: &loadlinev1.ScorePolicy{Preset: loadlinev1.ScorePolicy_STRICT}})
			return err
		})
	}
	checkLine := func(ctx context.Context, v *view.View) error {
		return v.Ask(ctx, func(at *loadlinev1.Changes) error {
			_, err := loadlinev1.NewSchedulerExtenderClient(conn).CheckLoadLine(ctx, &loadlinev1.CheckLoadLineRequest{
				Changes: at, Line: &loadlinev1.LoadLine{Resources: []*loadlinev1.LineResource{
					{Resource: "cpu", MaxLimitsOverAllocatable: "1.5"}}}})
			return err
		})
	}
	cluster := loadlinev1.NewClusterStateClient(conn)
	for _, v := range []*view.View{planned, other} {
		if err := score(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
	var all, scores sync.WaitGroup
	defer all.Wait()
	begun, ended := make(chan struct{}), make(chan struct{})
	all.Go(func() {
		defer close(ended)
		err := planned.Ask(t.Context(), func(at *loadlinev1.Changes) error {
			request := endlessPlan(at)
			close(begun)
			_, err := loadlinev1.NewAutoscalerClient(conn).PlanLoop(t.Context(), request)
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-begun
	time.Sleep(planTime / 16)
	for range 12 {
		scores.Go(func() {
			if err := score(t.Context(), planned); err != nil {
				t.Error(err)
			}
		})
	}
	if out, err := exec.Command(enginetest.Program(t), "--check", daemon.Socket).CombinedOutput(); err != nil {
		t.Errorf("--check: %v: %s", err, out)
	}
	for name, v := range map[string]*view.View{"planned": planned, "other": other} {
		if err := checkLine(t.Context(), v); err != nil {
			t.Errorf("the load line of %s: %v", name, err)
		}
		if _, err := cluster.Describe(t.Context(), &loadlinev1.DescribeRequest{View: name}); err != nil {
			t.Errorf("Describe of %s: %v", name, err)
		}
	}
	other.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "fresh"}, Status: v1.NodeStatus{Allocatable: offering}})
	if err := score(t.Context(), other); err != nil { // brings the change, or sends it before
		t.Error(err)
	}
	if _, err := cluster.Sync(t.Context(), &loadlinev1.SyncRequest{Changes: &loadlinev1.Changes{View: "third", Epoch: 1,
		Revision: 1, FullList: &loadlinev1.FullListChunk{Last: true}}}); err != nil {
		t.Error(err)
	}
	scores.Wait()
	select {
	case <-ended:
		t.Error("the plan has ended before, or was waited for")
	default:
	}
}

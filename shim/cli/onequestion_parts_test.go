package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
)

// hear hands on the part of a loop's question that a command asks.
func (e *ear) hear(question proto.Message) error {
	e.parts <- proto.CloneOf(question)
	return errors.New("only listens")
}

func (e *ear) PlanDrain(_ context.Context, r *loadlinev1.PlanDrainRequest) (*loadlinev1.PlanDrainResponse, error) {
	_ = e.hear(r)
	return &loadlinev1.PlanDrainResponse{}, nil // a bill asks on
}

func (e *ear) PlanConsolidation(_ context.Context,
	r *loadlinev1.PlanConsolidationRequest) (*loadlinev1.PlanConsolidationResponse, error) {
	return nil, e.hear(r)
}

func (e *ear) EstimateScaleUp(_ context.Context,
	r *loadlinev1.EstimateScaleUpRequest) (*loadlinev1.EstimateScaleUpResponse, error) {
	return nil, e.hear(r)
}

// asks returns the question of this type that a command asks, and the cluster that it is about.
func asks[Q proto.Message](t *testing.T, a *asker, args ...string) (asked Q, own *loadlinev1.Changes) {
	t.Helper()
	_, errs, _ := run(t, "loadline", "", append(args, "--engine", a.ear.address, "--kubeconfig", a.kubeconfig,
		"--context", "test", "--groups", questionGroups)...)
	for {
		select {
		case part := <-a.ear.parts:
			if asked, ok := part.(Q); ok {
				return asked, a.ear.own()
			}
		case <-time.After(time.Minute):
			t.Fatalf("%v: no question: %s", args, errs)
		}
	}
}

// same fails if two messages differ, but for fields that are left out.
func same[M any](t *testing.T, what string, want, got M, but ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, append(but, protocmp.Transform())...); diff != "" {
		t.Errorf("%s (-autoscaler +command)\n%s", what, diff)
	}
}

// slotsOf returns the slots of nodes in a cluster.
func slotsOf(t *testing.T, own *loadlinev1.Changes, nodes ...string) (slots []int32) {
	t.Helper()
	for _, name := range nodes {
		i := slices.IndexFunc(own.GetNodes(), func(record *loadlinev1.NodeRecord) bool {
			var node v1.Node
			return node.Unmarshal(record.GetNode()) == nil && node.Name == name
		})
		if i < 0 {
			t.Fatalf("there is no node %s", name)
		}
		slots = append(slots, own.GetNodes()[i].GetSlot())
	}
	return slots
}

// schedulerFlag names a file of a scheduler with spread constraints of its own and a line that counts expected use.
func schedulerFlag(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "scheduler.yaml")
	if err := os.WriteFile(file, []byte(schedulerOfQuestion), 0o600); err != nil {
		t.Fatal(err)
	}
	return "--scheduler-config-file=" + file
}

// waitingFlags are those of pods that wait, each with another value than its default.
var waitingFlags = []string{"--expendable-pods-priority-cutoff=10", "--new-pod-scale-up-delay=7m",
	"--allowed-scheduler-names=other,default-scheduler", "--bypassed-scheduler-names=other"}

// drainGroupsOf are the groups of the question, counted by hand. The machine that two nodes of b state is one.
func drainGroupsOf(t *testing.T, own *loadlinev1.Changes) []*loadlinev1.DrainGroup {
	return []*loadlinev1.DrainGroup{
		{NodeGroup: "a", MinNodes: 1, MaxNodes: new(int32(9)), Target: new(int32(6)),
			Slots: slotsOf(t, own, "a-1", "a-2", "a-3", "a-4")},
		{NodeGroup: "b", MaxNodes: new(int32(3)), Target: new(int32(1)), Slots: slotsOf(t, own, "b-0"), Atomic: true,
			ScaleDownUtilizationThreshold: new(0.75), ScaleDownGpuUtilizationThreshold: new(0.5),
			IgnoreDaemonsetsUtilization: new(false), ScaleDownUnneededTimeS: new(int64(180)),
			ScaleDownUnreadyTimeS: new(int64(1200))},
		{NodeGroup: "s", MinNodes: 1, MaxNodes: new(int32(5)), Target: new(int32(1)), Slots: slotsOf(t, own, "s-1"),
			Sized: true}}
}

// `drain` asks about the cluster and the groups that an autoscaler asks about which decides only that.
func TestDrainAsksWhatTheAutoscalerAsks(t *testing.T) {
	a := newAsker(t)
	flags := []string{"--ignore-daemonsets-utilization=false", "--startup-taint=example.com/starting", schedulerFlag(t),
		"--node-budgets=10%", "--cores-total=7:9"}
	flags = append(flags, waitingFlags...)
	loop := a.byAutoscaler(append(flags, "--decisions=scale-down")...)
	got, own := asks[*loadlinev1.PlanDrainRequest](t, a, append([]string{"drain", "--now",
		questionTime.Format(time.RFC3339)}, flags...)...)
	same(t, "cluster", loop.GetOwn(), own)
	same(t, "groups", drainGroupsOf(t, own), got.GetGroups())
	same(t, "options", loop.GetDrain(), got.GetOptions())
	same(t, "filters", loop.GetFit(), got.GetFit())
	same(t, "taints", loop.GetStartupTaints(), got.GetStartupTaints())
	same(t, "pods", loop.GetPods(), got.GetPods())
	same(t, "waiting", loop.GetWaiting(), got.GetWaiting())
	if got.GetNowS() != loop.GetNowS() || got.GetSeenS() != loop.GetSeenS() || got.GetDeriveGroups() {
		t.Error(got)
	}
}

// `bill` and `consolidate` ask about what an autoscaler asks about that grows, shrinks and replaces.
func TestConsolidateAsksWhatTheAutoscalerAsks(t *testing.T) {
	a := newAsker(t)
	flags := []string{"--startup-taint=example.com/starting", schedulerFlag(t), "--payback-hours=3",
		"--gpu-total=t4:1:9", "--max-nodes-total=77", "--min-nodes-total=3", "--cores-total=7:9", "--memory-total=7:9"}
	flags = append(flags, waitingFlags...)
	loop := a.byAutoscaler(append(flags, "--decisions=scale-up,scale-down,replace")...)
	got, own := asks[*loadlinev1.PlanConsolidationRequest](t, a, append([]string{"consolidate", "--now",
		questionTime.Format(time.RFC3339)}, flags...)...)
	same(t, "cluster", loop.GetOwn(), own)
	shrinking := drainGroupsOf(t, own)
	for i, group := range got.GetGroups() {
		want := proto.CloneOf(loop.GetGroups()[i].GetGrowth())
		want.CurrentNodes = shrinking[i].GetTarget()
		same(t, "growth", want, group.GetGrowth())
		shrinks := shrinking[i]
		shrinks.NodeGroup, shrinks.Target, shrinks.MaxNodes = "", nil, nil // growth says it
		same(t, "scale-down", shrinks, group.GetScaleDown())
	}
	same(t, "daemon pods", loop.GetDaemonPods(), got.GetDaemonPods())
	same(t, "drain", loop.GetDrain(), got.GetDrain())
	same(t, "filters", loop.GetFit(), got.GetFit())
	same(t, "taints", loop.GetStartupTaints(), got.GetStartupTaints())
	same(t, "pods", loop.GetPods(), got.GetPods())
	same(t, "waiting", loop.GetWaiting(), got.GetWaiting())
	same(t, "policy", loop.GetConsolidation(), got.GetPolicy(),
		protocmp.IgnoreFields(&loadlinev1.ConsolidationPolicy{}, "mode", "rest_seconds"))
	if got.GetNowS() != loop.GetNowS() || got.GetMaxNodesTotal() != 77 || len(got.GetGroups()) != 3 ||
		len(got.GetDaemonPods()) != 2 {
		t.Error(got)
	}
}

// growsOf are the groups of a loop's question as they are where each is asked about by itself.
func growsOf(t *testing.T, loop *loadlinev1.PlanLoopRequest,
	own *loadlinev1.Changes) (all []*loadlinev1.ScalableGroup) {
	for i, of := range drainGroupsOf(t, own) {
		want := proto.CloneOf(loop.GetGroups()[i].GetGrowth())
		want.CurrentNodes, want.NodeSlots = of.GetTarget(), of.GetSlots()
		all = append(all, want)
	}
	return all
}

// ages are the fields of pods that wait which turn on the time of the question; only loops read them.
var ages = protocmp.IgnoreFields(&loadlinev1.PendingPods{}, "first_age_milliseconds", "last_age_milliseconds",
	"youngest_age_milliseconds")

// waitingOf are the pods of a loop's question but for those of low priority and others that are named, for which the
// engine lets no group grow.
func waitingOf(t *testing.T, loop *loadlinev1.PlanLoopRequest, but ...string) (waiting []*loadlinev1.PendingPods) {
	for _, entry := range loop.GetPods() {
		var pod v1.Pod
		if err := pod.Unmarshal(entry.GetPod().GetPod()); err != nil {
			t.Fatal(err)
		}
		if pod.Name != "expendable" && !slices.Contains(but, pod.Name) {
			waiting = append(waiting, entry)
		}
	}
	if len(waiting)+len(but) != 8 { // wait, important, patient, untried, disk, claims, of-other, of-group
		t.Errorf("%d kinds of pods wait", len(waiting))
	}
	return waiting
}

// `slack` asks what an autoscaler asks that grows for pods and slack.
func TestSlackAsksWhatTheAutoscalerAsks(t *testing.T) {
	a := newAsker(t)
	flags := []string{"--startup-taint=example.com/starting", schedulerFlag(t), "--slack-version=2b",
		"--bypassed-scheduler-names=other", "--max-nodes-total=20", "--cores-total=0:100"}
	loop := a.byAutoscaler(append(flags, "--decisions=scale-up,slack")...)
	sameLoop(t, loop, a.byCommand("slack", flags...), "state") // what is in --state
}

// `rank` asks about what an autoscaler asks about that grows for pods and slack. It reads no objects that only drains
// read.
func TestRankAsksWhatTheAutoscalerAsks(t *testing.T) {
	a := newAsker(t)
	flags := []string{"--startup-taint=example.com/starting", schedulerFlag(t), "--kubernetes-version=1.37"}
	loop := a.byAutoscaler(append(flags, "--decisions=scale-up,slack")...)
	asked, own := asks[*loadlinev1.EstimateScaleUpRequest](t, a, append([]string{"rank"}, flags...)...)
	got := asked.GetProblem()
	same(t, "nodes", loop.GetOwn().GetNodes(), own.GetNodes())
	same(t, "pods on nodes", loop.GetOwn().GetPodShapes(), own.GetPodShapes())
	same(t, "groups", growsOf(t, loop, own), got.GetGroups())
	same(t, "pods", waitingOf(t, loop, "untried"), got.GetPods(), ages)
	same(t, "daemon pods", loop.GetDaemonPods(), got.GetDaemonPods())
	same(t, "filters", loop.GetFit(), got.GetFit())
	same(t, "taints", loop.GetStartupTaints(), got.GetStartupTaints())
}

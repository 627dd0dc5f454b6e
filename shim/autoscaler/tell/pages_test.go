package tell

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/autoscaler/watch"
	"loadline.dev/shim/report"
	"loadline.dev/shim/scaleup"
	"loadline.dev/shim/slack"
	"loadline.dev/shim/view"
)

func answerOf(t *testing.T, p *Pages, path string) string {
	t.Helper()
	mux := http.NewServeMux()
	p.Add(mux)
	answer := httptest.NewRecorder()
	request := httptest.NewRequest("GET", path, nil)
	request.RemoteAddr = "127.0.0.1:40000" // as of kubectl port-forward
	mux.ServeHTTP(answer, request)
	if answer.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, answer.Code, answer.Body)
	}
	return answer.Body.String()
}

func expectSays(t *testing.T, page string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(page, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if t.Failed() {
		t.Log(page)
	}
}

func placeholderOn(node, name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "slack", Name: name,
		Labels:          map[string]string{slack.PlaceholderLabel: "true"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Controller: new(true)}}},
		Spec: v1.PodSpec{NodeName: node, Priority: new(int32(math.MinInt32))}}
}

// The page tells which groups grow, which pods get no node and why, and how much of the slack is there.
func TestPageOfGrowth(t *testing.T) {
	options := config.Default()
	options.Slack.Namespace = "slack"
	slack := &loadlinev1.PlanSlackResponse{
		Classes: []*loadlinev1.ClassSlack{
			{Name: "zone=a", Nodes: 3, Status: loadlinev1.SlackStatus_SLACK_READY,
				Extra: &loadlinev1.CpuAndMemory{MilliCpu: 400}, Sum: &loadlinev1.CpuAndMemory{MilliCpu: 400},
				Ready: &loadlinev1.CpuAndMemory{MilliCpu: 400}},
			{Name: "zone=b", Nodes: 1, Status: loadlinev1.SlackStatus_SLACK_MISSING,
				Extra: &loadlinev1.CpuAndMemory{MilliCpu: 900}, Sum: &loadlinev1.CpuAndMemory{MilliCpu: 1000},
				Ready: &loadlinev1.CpuAndMemory{MilliCpu: 250}}},
		Demands: []*loadlinev1.SlackDemand{{ClassName: "zone=b", Nodes: 2}}}
	s := &snapshot{at: time.Now(), loads: func() (report.Placement, error) {
		cpu := map[string]report.Amounts{"cpu": {Allocatable: 1000, Limits: 10}}
		return report.Placement{Nodes: []report.Node{{Name: "n1", Resources: cpu}, {Name: "n2", Resources: cpu}}}, nil
	}}
	s.addGrowth(&ScaleUpStatus{PendingPods: 5, Unplaced: 2, Why: "2 max node group size reached",
		Growth: []string{"g: 3 for pods, 1 for slack, 0.4000 USD per hour"}})
	s.Page.Slack = shownSlack(slack)
	s.Page.Notes = map[string]string{"n1": "could go"}
	c := watch.New(view.NewForPlanning(nil, "test"), &options, nil)
	for i, node := range []string{"n1", "n2", "n2", ""} {
		pod, in := placeholderOn(node, fmt.Sprint(i)), c.Pods
		if i == 1 {
			in = c.Standing // as where slack is decided here
		}
		in[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = pod
	}
	notePlaceholders(c, s.Page.Notes)
	l := &Teller{Term: 1}
	l.Snapshot.Store(s)
	p := NewPages(&options, "")
	p.Leader.Store(l)
	page := answerOf(t, p, "/")
	expectSays(t, page, "Grows: g: 3 for pods, 1 for slack, 0.4000 USD per hour.",
		"2 of 5 pods that wait get no node: 2 max node group size reached",
		"3 nodes: ready", "1 node: missing; asks for 2 more nodes", "0.4 of 0.4 cpu", "0.25 of 0.9 cpu",
		"could go; keeps room for 1 placeholder<", ">keeps room for 2 placeholders<")
	if strings.Index(page, "zone=b") > strings.Index(page, "zone=a") {
		t.Error("the class that lacks most does not come first")
	}
}

// A process that waits says so, and who leads.
func TestPageOfStandby(t *testing.T) {
	options := config.Default()
	p := NewPages(&options, "v1")
	expectSays(t, answerOf(t, p, "/"), "Stands by. Nobody is known to lead.")
	p.Holder.Store(new("other<1>"))
	expectSays(t, answerOf(t, p, "/"), "Stands by. other&lt;1&gt; leads; its page tells what happens.")
	expectSays(t, answerOf(t, p, "/statusz"), "State: Stands by. other<1> leads")
	p.Leader.Store(&Teller{Term: 7})
	expectSays(t, answerOf(t, p, "/"), "Leads, term 7, and is in its first loop.")
}

// What it costs a loop to leave a snapshot behind, in a cluster of 15,000 nodes that could all go.
func BenchmarkSnapshot(b *testing.B) {
	const nodes = 15000
	options := config.Default()
	c := watch.New(view.NewForPlanning(nil, "test"), &options, nil)
	made := &plan.Plan{PlanDrainResponse: &loadlinev1.PlanDrainResponse{}, NameOf: map[int32]string{}}
	for i := range nodes {
		name := "node-" + string(rune('a'+i%26)) + time.Duration(i).String()
		c.Nodes[name] = &v1.Node{}
		made.NameOf[int32(i)] = name
		made.Remove = append(made.Remove,
			&loadlinev1.NodeRemoval{Slot: int32(i), Moves: make([]*loadlinev1.PodMove, 40)})
	}
	l := New(c, &options, nil, nil, NewMetrics(""), 1)
	o := plan.NewLoop(time.Now())
	made.Answer = &loadlinev1.PlanLoopResponse{ScaleDown: made.PlanDrainResponse}
	o.Plan, o.Pods = made, scaleup.NewPodsForPlanning()
	status := l.statusOf(o)
	for b.Loop() {
		l.snapshotOf(o, status, o.Now, 0)
	}
}

// Pages name what is in all namespaces: another machine does not get them unless that is configured.
func TestPagesAreForThisMachine(t *testing.T) {
	for from, want := range map[string]int{"127.0.0.1:4000": http.StatusOK, "[::1]:4000": http.StatusOK,
		"[::ffff:127.0.0.1]:4000": http.StatusOK,
		"10.0.0.7:4000":           http.StatusForbidden, "[2001:db8::1]:4000": http.StatusForbidden,
		"": http.StatusForbidden} {
		for _, path := range []string{"/", "/statusz"} {
			for _, exposed := range []bool{false, true} {
				options := config.Default()
				options.ExposePage = exposed
				mux := http.NewServeMux()
				NewPages(&options, "").Add(mux)
				request, answer := httptest.NewRequest("GET", path, nil), httptest.NewRecorder()
				request.RemoteAddr = from
				mux.ServeHTTP(answer, request)
				if exposed && answer.Code != http.StatusOK || !exposed && answer.Code != want {
					t.Errorf("%s from %q, exposed %v: status %d", path, from, exposed, answer.Code)
				}
			}
		}
	}
}

package autoscaler

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/watch"
	"loadline.dev/shim/internal/enginetest"
	"loadline.dev/shim/report"
	"loadline.dev/shim/slack"
	"loadline.dev/shim/view"
)

// seen returns what a process answers whose leader is the bench's.
func (b *bench) seen(path string) string {
	b.t.Helper()
	a := &Autoscaler{config: b.config, started: time.Now().Add(-time.Hour), version: "v1"}
	a.leader.Store(b.leader)
	return answerOf(b.t, a, path)
}

func answerOf(t *testing.T, a *Autoscaler, path string) string {
	t.Helper()
	mux := http.NewServeMux()
	a.addPages(mux)
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

// The page tells what goes, what stays and why, who waits, and how full nodes are.
func TestPageOfLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := threeNodes(t, func(c *config.Configuration) { c.Mode = config.Observe })
		conn := enginetest.Open(t)
		b.loads = describeView(loadlinev1.NewClusterStateClient(conn), "test") // an engine that knows nothing
		waiting := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "<img>", UID: "w",
			CreationTimestamp: metav1.Now()}}
		if _, err := b.client.CoreV1().Pods("default").Create(t.Context(), waiting,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		b.run(30 * time.Second)
		page := b.seen("/?refresh=10")
		expectSays(t, page,
			"Leads, term 1. Mode observe: it plans and changes nothing. Last loop: ScaleDownNoNodeDeleted.",
			"3 nodes, 4 pods, 1 of them waiting for a node.", "3 nodes; target 3, 0 to 100", "1 could go",
			`http-equiv="refresh" content="10"`,
			"<td>n1</td><td>g</td><td>waits: NotUnneededLongEnough, timer ends in 4",
			"</td><td>20s</td><td>1</td></tr>",
			"<td>NoPlaceToMovePods</td><td>1</td><td>n2</td><td>default/p2</td>", "They cannot be shown: ")
		if strings.Contains(page, "<img>") ||
			!strings.Contains(page, "<td>default, &lt;img&gt;</td><td>1</td><td>20s</td>") {
			t.Errorf("the pod that waits is not there, or not escaped: %s", page)
		}
		status := b.seen("/statusz")
		expectSays(t, status, "\nloadline-autoscaler statusz\nWarning: This endpoint is not meant",
			"Up: 1 hr 00 min 00 sec\n", "Binary version: v1\n",
			"Paths: /healthz /livez /metrics /readyz /statusz\n", "State: Leads, term 1.", "Last loop: ")

		b.loads = func() (report.Placement, error) {
			return report.Placement{Nodes: []report.Node{{Name: "n1",
				Resources: map[string]report.Amounts{"cpu": {Allocatable: 4000, Limits: 8000, Requests: 1000}}}}}, nil
		}
		b.run(10 * time.Second)
		expectSays(t, b.seen("/"), "limits 2.00, requests 0.25", "could go")

		// What is old says so, and a problem stands at the top.
		time.Sleep(time.Hour)
		expectSays(t, b.seen("/"), "What is shown is old: since 1h0m10s ago no loop has ended.")
		b.fails = errors.New("no <cloud>")
		_ = b.once(b.ctx)
		expectSays(t, b.seen("/"), "The last loop has no plan: no &lt;cloud&gt;", "There is no plan that says so.")
		b.end()
	})
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
	s.page.Slack = shownSlack(slack)
	s.page.Notes = map[string]string{"n1": "could go"}
	c := watch.New(view.NewForPlanning(nil, "test"), &options, nil)
	for i, node := range []string{"n1", "n2", "n2", ""} {
		pod, in := placeholderOn(node, fmt.Sprint(i)), c.Pods
		if i == 1 {
			in = c.Standing // as where slack is decided here
		}
		in[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = pod
	}
	notePlaceholders(c, s.page.Notes)
	l := &leader{term: 1}
	l.seen.Store(s)
	a := &Autoscaler{config: &options}
	a.leader.Store(l)
	page := answerOf(t, a, "/")
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
	a := &Autoscaler{config: &options, started: time.Now(), version: "v1"}
	expectSays(t, answerOf(t, a, "/"), "Stands by. Nobody is known to lead.")
	a.holder.Store(new("other<1>"))
	expectSays(t, answerOf(t, a, "/"), "Stands by. other&lt;1&gt; leads; its page tells what happens.")
	expectSays(t, answerOf(t, a, "/statusz"), "State: Stands by. other<1> leads")
	a.leader.Store(&leader{term: 7})
	expectSays(t, answerOf(t, a, "/"), "Leads, term 7, and is in its first loop.")
}

// What it costs a loop to leave a snapshot behind, in a cluster of 15,000 nodes that could all go.
func BenchmarkSnapshot(b *testing.B) {
	const nodes = 15000
	options := config.Default()
	c := watch.New(view.NewForPlanning(nil, "test"), &options, nil)
	plan := &loopPlan{PlanDrainResponse: &loadlinev1.PlanDrainResponse{}, nameOf: map[int32]string{}}
	for i := range nodes {
		name := "node-" + string(rune('a'+i%26)) + time.Duration(i).String()
		c.Nodes[name] = &v1.Node{}
		plan.nameOf[int32(i)] = name
		plan.Remove = append(plan.Remove,
			&loadlinev1.NodeRemoval{Slot: int32(i), Moves: make([]*loadlinev1.PodMove, 40)})
	}
	l := &leader{config: &options, cluster: c, clock: newPlanClock(systemClock())}
	o := &loop{now: time.Now(), plan: plan}
	status := l.statusOf(o)
	for b.Loop() {
		l.snapshotOf(o, status)
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
				a := &Autoscaler{config: &options, started: time.Now()}
				mux := http.NewServeMux()
				a.addPages(mux)
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

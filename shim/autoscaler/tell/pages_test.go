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
	"loadline.dev/shim/autoscaler/watch"
	"loadline.dev/shim/report"
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

// The page tells what the engine tells, and on which nodes room is kept.
func TestPageOfGrowth(t *testing.T) {
	options := config.Default()
	options.Slack.Namespace = "slack"
	told := &loadlinev1.LoopReport{
		Lines:    []string{"Grows: g: 3 for pods, 1 for slack, 0.4000 USD per hour."},
		Warnings: []string{"2 of 5 pods that wait get no node: 2 max node group size reached"},
		Slack: []*loadlinev1.PageSlack{{Name: "zone=b", Note: "1 node", Reason: "missing; asks for 2 more nodes",
			Bars: []*loadlinev1.PageSlackBar{{Resource: "cpu", Wanted: 900, Kept: 1000, Ready: 250}}}},
		Groups: []*loadlinev1.PageGroup{{Name: "g", Note: "1 could go", MaxSize: 100, Target: 3, Nodes: 3, Going: 1}},
		Tables: []*loadlinev1.PageTable{{Title: "Nodes that go", Header: []string{"NODE"}, RowsTotal: 22, RowsAre: "node",
			Rows: []*loadlinev1.PageRow{{Cells: []string{"n1"}}}}},
		Notes: []*loadlinev1.NodeNote{{Node: "n1", Text: "could go"}}}
	s := &snapshot{at: time.Now(), Page: report.FromLoop(told), loads: func() (report.Placement, error) {
		cpu := map[string]report.Amounts{"cpu": {Allocatable: 1000, Limits: 10}}
		return report.Placement{Nodes: []report.Node{{Name: "n1", Resources: cpu}, {Name: "n2", Resources: cpu}}}, nil
	}}
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
		"1 node: missing; asks for 2 more nodes", "0.25 of 0.9 cpu", "3 nodes, 1 going, 1 on their way; target 3, 0 to 100",
		"And 21 other nodes.",
		"could go; keeps room for 1 placeholder<", ">keeps room for 2 placeholders<")
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

// The sidecar of a mesh makes all callers ones of this machine; what it adds tells.
func TestPagesAreNotForWhatProxiesPassOn(t *testing.T) {
	options := config.Default()
	mux := http.NewServeMux()
	NewPages(&options, "").Add(mux)
	for header, want := range map[string]int{"X-Forwarded-For": http.StatusForbidden, "Forwarded": http.StatusForbidden,
		"x-forwarded-proto": http.StatusForbidden, "Via": http.StatusForbidden, "l5d-client-id": http.StatusForbidden,
		"x-envoy-attempt-count": http.StatusForbidden, "Accept": http.StatusOK} {
		request, answer := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
		request.RemoteAddr = "127.0.0.1:4000"
		request.Header.Set(header, "x")
		mux.ServeHTTP(answer, request)
		if answer.Code != want {
			t.Errorf("%s: status %d, want %d", header, answer.Code, want)
		}
	}
}

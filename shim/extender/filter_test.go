package extender

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/testing/enginetest"
	"loadline.dev/shim/policy"
)

func (e *scriptedEngine) CheckLoadLine(ctx context.Context, in *loadlinev1.CheckLoadLineRequest,
	_ ...grpc.CallOption) (*loadlinev1.CheckLoadLineResponse, error) {
	e.calls.Add(1)
	return e.line(ctx, in)
}

func lineOf(t *testing.T, cpu policy.Ratio) *loadlinev1.LoadLine {
	t.Helper()
	return policy.Line{MaxLimitsOverAllocatable: map[string]policy.Ratio{"cpu": cpu}}.Proto(nil)
}

// filterOnce answers one request.
func filterOnce(t *testing.T, f *lineFilter, body string) (int, extenderv1.ExtenderFilterResult, string) {
	t.Helper()
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest(http.MethodPost, FilterPath, strings.NewReader(body)))
	var result extenderv1.ExtenderFilterResult
	if w.Code == http.StatusOK {
		if err := Decode(w.Body.Bytes(), &result); err != nil {
			t.Fatal(err)
		}
	}
	return w.Code, result, w.Body.String()
}

func TestFilterNamesTheNodesThatPassAndWhyOthersDoNot(t *testing.T) {
	b := newBench(slotTimesTen)
	b.engine.line = func(_ context.Context, in *loadlinev1.CheckLoadLineRequest) (*loadlinev1.CheckLoadLineResponse, error) {
		if !slices.Equal(in.GetSlots(), []int32{1, 2, 10}) || in.GetLine().GetResources()[0].GetResource() != "cpu" {
			t.Errorf("asked %v", in)
		}
		return &loadlinev1.CheckLoadLineResponse{NodesAbove: 1, Refusals: []*loadlinev1.LineRefusal{
			{Reasons: []string{"load line: x"}, Slots: []int32{2}},
			{Reasons: []string{"load line: y", "load line: z"}, Unresolvable: true, Slots: []int32{10}},
		}}, nil
	}
	f := &lineFilter{prioritizer: b.prioritizer, line: lineOf(t, "1.5")}
	code, got, _ := filterOnce(t, f, ask("a", "b", "unknown", "c"))
	if code != http.StatusOK || !slices.Equal(*got.NodeNames, []string{"a"}) ||
		got.FailedNodes["b"] != "load line: x" || got.FailedAndUnresolvableNodes["c"] != "load line: y, load line: z" ||
		got.FailedNodes["unknown"] != "load line: the node is not known yet" || got.Error != "" {
		t.Errorf("%d: %+v", code, got)
	}
	f.allow = true
	if _, got, _ = filterOnce(t, f, ask("a", "b", "unknown", "c")); !slices.Equal(*got.NodeNames, []string{"a", "unknown"}) {
		t.Errorf("%+v", got)
	}
}

func TestFilterWithoutTheEngine(t *testing.T) {
	b := newBench(slotTimesTen)
	for code, reason := range map[codes.Code]string{codes.Unavailable: skipUnavailable,
		codes.DeadlineExceeded: skipDeadline, codes.InvalidArgument: skipBadPod, codes.NotFound: skipRefused} {
		b.engine.line = func(context.Context, *loadlinev1.CheckLoadLineRequest) (*loadlinev1.CheckLoadLineResponse, error) {
			return nil, status.Error(code, "")
		}
		f := &lineFilter{prioritizer: b.prioritizer, line: lineOf(t, "1.5")}
		_, got, _ := filterOnce(t, f, ask("a"))
		if !strings.Contains(got.Error, reason) || got.NodeNames != nil {
			t.Errorf("%v: %+v", code, got)
		}
		f.allow = true
		if _, got, _ = filterOnce(t, f, ask("a")); got.Error != "" || !slices.Equal(*got.NodeNames, []string{"a"}) {
			t.Errorf("%v, allowed: %+v", code, got)
		}
	}
	b.engine.line = func(context.Context, *loadlinev1.CheckLoadLineRequest) (*loadlinev1.CheckLoadLineResponse, error) {
		panic("bug")
	}
	f := &lineFilter{prioritizer: b.prioritizer, line: lineOf(t, "1.5")}
	if _, got, _ := filterOnce(t, f, ask("a")); !strings.Contains(got.Error, skipPanic) {
		t.Errorf("panic: %+v", got)
	}
	b.synced = func() bool { return false }
	if _, got, _ := filterOnce(t, f, ask("a")); !strings.Contains(got.Error, skipNotSynced) {
		t.Errorf("not synced: %+v", got)
	}
}

func TestFilterRejectsWhatItCannotAnswer(t *testing.T) {
	f := &lineFilter{prioritizer: newBench(slotTimesTen).prioritizer, line: lineOf(t, "1.5")}
	for body, says := range map[string]string{
		`{`: "", `{"NodeNames":["a"]}`: "Pod",
		`{"Pod":{"metadata":{"name":"p"}},"Nodes":{"items":[{"metadata":{"name":"a"}}]}}`: "nodeCacheCapable",
	} {
		if code, _, got := filterOnce(t, f, body); code != http.StatusBadRequest || !strings.Contains(got, says) {
			t.Errorf("%s: %d %s", body, code, got)
		}
	}
}

// pod5 may use 4 cores: node1 has 10 of 8 already, node2 5.
func TestGatewayKeepsToTheLoadLine(t *testing.T) {
	r := start(t, enginetest.Open(t), Options{Line: lineOf(t, "1.5")}, proposalCluster()...)
	r.waitReady()
	response, err := r.http.Post(r.url+FilterPath, "application/json", strings.NewReader(askBoth))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var got extenderv1.ExtenderFilterResult
	if err := Decode(body, &got); err != nil {
		t.Fatal(err)
	}
	if got.NodeNames == nil || !slices.Equal(*got.NodeNames, []string{"node2"}) ||
		got.FailedNodes["node1"] != "load line: cpu limits would exceed 1.5 x allocatable" {
		t.Errorf("got %s", body)
	}
	if above := r.metric("loadline_nodes_above_line"); above != "0" {
		t.Errorf("%s nodes above", above)
	}
}

func TestGatewayWithoutALineHasNoFilter(t *testing.T) {
	r := start(t, enginetest.Open(t), Options{}, proposalCluster()...)
	response, err := r.http.Post(r.url+FilterPath, "application/json", strings.NewReader(askBoth))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusNotFound {
		t.Errorf("status %d", response.StatusCode)
	}
}

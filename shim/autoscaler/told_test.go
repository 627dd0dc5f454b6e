package autoscaler

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/tell"
	"loadline.dev/shim/internal/enginetest"
	"loadline.dev/shim/report"
)

// expectPage expects texts in what a process answers whose leader is the bench's.
func (b *bench) expectPage(path string, wants ...string) string {
	b.t.Helper()
	p := tell.NewPages(b.config, "v1")
	p.Started = time.Now().Add(-time.Hour)
	p.Leader.Store(b.teller)
	mux := http.NewServeMux()
	p.Add(mux)
	answer, request := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
	request.RemoteAddr = "127.0.0.1:40000" // as of kubectl port-forward
	mux.ServeHTTP(answer, request)
	page := answer.Body.String()
	for _, want := range wants {
		if answer.Code != http.StatusOK || !strings.Contains(page, want) {
			b.t.Errorf("%s: %d, it does not say %q:\n%s", path, answer.Code, want, page)
		}
	}
	return page
}

// The page tells what goes, what stays and why, who waits, and how full nodes are.
func TestPageOfLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := threeNodes(t, func(c *config.Configuration) { c.Mode = config.Observe })
		conn := enginetest.Open(t)
		b.teller.Loads = tell.DescribeView(loadlinev1.NewClusterStateClient(conn), "test") // an engine that knows nothing
		waiting := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "<img>", UID: "w",
			CreationTimestamp: metav1.Now()}}
		if _, err := b.client.CoreV1().Pods("default").Create(t.Context(), waiting,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		b.run(30 * time.Second)
		page := b.expectPage("/?refresh=10",
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
		b.expectPage("/statusz", "\nloadline-autoscaler statusz\nWarning: This endpoint is not meant",
			"Up: 1 hr 00 min 00 sec\n", "Binary version: v1\n",
			"Paths: /healthz /livez /metrics /readyz /statusz\n", "State: Leads, term 1.", "Last loop: ")

		b.teller.Loads = func() (report.Placement, error) {
			return report.Placement{Nodes: []report.Node{{Name: "n1",
				Resources: map[string]report.Amounts{"cpu": {Allocatable: 4000, Limits: 8000, Requests: 1000}}}}}, nil
		}
		b.run(10 * time.Second)
		b.expectPage("/", "limits 2.00, requests 0.25", "could go")

		// What is old says so, and a problem stands at the top.
		time.Sleep(time.Hour)
		b.expectPage("/", "What is shown is old: since 1h0m10s ago no loop has ended.")
		b.fails = errors.New("no <cloud>")
		_ = b.once(b.ctx)
		b.expectPage("/", "The last loop has no plan: no &lt;cloud&gt;")
		b.end()
	})
}

// The pods have no limit of memory, so that each counts as all of its node: n1 with two of them is above a line of 1.5,
// and no node takes a second one, so that none can go. Without a line n1 takes the pod of n2.
func TestNodesAboveTheLoadLineAreTold(t *testing.T) {
	for line, want := range map[string]struct {
		above float64
		goes  bool
	}{"": {0, true}, "memory=1.5": {1, false}, "memory=3": {0, true}} {
		synctest.Test(t, func(t *testing.T) {
			b := newBenchWith(t, nil, 2, func(c *config.Configuration) {
				if line != "" {
					c.Filters.MaxLimitsOverAllocatable = []string{line}
				}
			})
			b.addController()
			b.addPod("p1", "n1", "1", nil)
			b.addPod("p2", "n1", "1", nil)
			b.addPod("p3", "n2", "1", nil)
			synctest.Wait() // the informers see them
			b.run(3 * time.Minute)
			gone := len(b.deleted) > 0
			b.end()
			above := gaugeOf(t, b, "loadline_autoscaler_nodes_above_load_line", "")
			if gone != want.goes || !gone && above != want.above {
				t.Errorf("line %q: %v nodes above, a node is gone: %v; want %+v", line, above, gone, want)
			}
		})
	}
}

package autoscaler

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/act/drain"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/autoscaler/tell"
	"loadline.dev/shim/internal/testing/enginetest"
	"loadline.dev/shim/report"
)

// expectPage expects texts in what a process answers whose leader is the bench's.
func (b *bench) expectPage(path string, wants ...string) string {
	b.t.Helper()
	if b.teller.Loads == nil {
		b.teller.Loads = func() (report.Placement, error) { return report.Placement{}, nil }
	}
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

// The page shows which nodes are removed, which stay and why, who waits, and how full nodes are.
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
			"Leads, term 1. Mode observe: it plans and changes nothing. Cloud provider: externalgrpc. Last loop: "+
				"ScaleDownNoNodeDeleted.",
			"3 nodes, 4 pods, 1 of them waiting for a node.", "3 nodes; target 3, 0 to 100", "1 could go",
			`http-equiv="refresh" content="10"`,
			"<td>n1</td><td>g</td><td>waits: NotUnneededLongEnough, timer ends in 4",
			"</td><td>20 s</td><td>1</td></tr>",
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

		// An old page says so, and a problem is shown at the top.
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

// going returns what status and metric say of nodes that are drained.
func (b *bench) going() (removing []string, gauge float64) {
	return b.readStatus().ClusterWide.ScaleDown.Removing,
		gaugeOf(b.t, b, "loadline_autoscaler_pending_node_deletions", "drain")
}

// A node that somebody else removes is not reported as one of ours, however often the plan says that it is removed.
func TestWhatDidNotBeginIsNotToldAsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := threeNodes(t, nil)
		b.addTaints("n1", v1.Taint{Key: drain.HardTaint, Value: "1", Effect: v1.TaintEffectNoSchedule})
		b.run(3 * time.Minute)
		if removing, gauge := b.going(); len(removing) > 0 || gauge != 0 {
			t.Errorf("removing %q, metric %v", removing, gauge)
		}
		b.end()
	})
}

// absent is an engine that is away at times.
type absent struct {
	loadlinev1.AutoscalerClient
	away bool
}

func (a *absent) PlanLoop(ctx context.Context, q *loadlinev1.PlanLoopRequest,
	options ...grpc.CallOption) (*loadlinev1.PlanLoopResponse, error) {
	if a.away {
		return nil, errors.New("the engine is away")
	}
	return a.AutoscalerClient.PlanLoop(ctx, q, options...)
}

// Without a plan people still see what happens: removals, and node groups with their sizes.
func TestRemovalsAreToldWithoutAPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := threeNodes(t, nil)
		engine := &absent{AutoscalerClient: b.planner.Client}
		b.planner.Client = engine
		b.mu.Lock()
		b.refuses = true
		b.mu.Unlock()
		b.run(90 * time.Second)
		engine.away = true
		_ = b.once(b.ctx)
		removing, gauge := b.going()
		s := b.readStatus()
		if len(removing) != 1 || gauge != 1 || s.Message != "the engine is away" ||
			s.ClusterWide.Health.Status != "Unknown" || len(s.NodeGroups) != 1 || s.NodeGroups[0].Health.MaxSize != 100 {
			t.Errorf("metric %v, status %v", gauge, s)
		}
		b.expectPage("/", "The last loop has no plan: the engine is away", "target 3, 0 to 100", "n1", "draining")
		b.mu.Lock()
		b.refuses = false
		b.mu.Unlock()
		time.Sleep(5 * time.Minute)
		_ = b.once(b.ctx)
		if removing, gauge := b.going(); len(removing) > 0 || gauge != 0 {
			t.Errorf("after it has ended: removing %q, metric %v", removing, gauge)
		}
		b.end()
	})
}

// The status says that a plan is not carried out, though there is one; and that an engine reports too little.
func TestProblemsAfterThePlanAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := threeNodes(t, nil)
		b.run(30 * time.Second)
		o := plan.NewLoop(b.clock.now())
		if part, err := b.look(b.ctx, o); err != nil {
			t.Fatal(part, err)
		}
		if err := b.makePlan(b.ctx, o); err != nil {
			t.Fatal(err)
		}
		o.Problem = errors.New("the plan is of another cluster")
		b.teller.Tell(b.ctx, o, b.clock.wall(), 0)
		if s := b.readStatus(); s.Message != "the plan is of another cluster" || s.ClusterWide.Health.Status != "Unknown" ||
			s.ClusterWide.ScaleDown.Candidates != 1 {
			t.Errorf("status %v", s)
		}
		b.expectPage("/", "The last plan is not carried out: the plan is of another cluster")
		b.planner.Client = silent{b.planner.Client}
		if err := b.once(b.ctx); err == nil || !strings.Contains(err.Error(), "the engine is of an older version") {
			t.Errorf("error %v", err)
		}
		b.end()
	})
}

// silent is an engine without a report for people.
type silent struct{ loadlinev1.AutoscalerClient }

func (s silent) PlanLoop(ctx context.Context, q *loadlinev1.PlanLoopRequest,
	options ...grpc.CallOption) (*loadlinev1.PlanLoopResponse, error) {
	answer, err := s.AutoscalerClient.PlanLoop(ctx, q, options...)
	if err == nil {
		answer.Report = nil
	}
	return answer, err
}

// Without --write-status-configmap no status is written, and the page has it all the same.
func TestNoStatusIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := threeNodes(t, func(c *config.Configuration) { c.WriteStatus = false })
		b.run(30 * time.Second)
		for _, action := range b.client.Actions() {
			if named, is := action.(interface{ GetName() string }); is && named.GetName() == b.config.StatusConfigMap {
				t.Errorf("the status is touched: %v", action)
			}
		}
		if _, err := b.client.CoreV1().ConfigMaps(b.config.Namespace).Get(t.Context(), b.config.StatusConfigMap,
			metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the status is there: error %v", err)
		}
		b.expectPage("/", "3 nodes, 3 pods")
	})
}

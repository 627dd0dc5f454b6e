package extender

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"loadline.dev/shim/freeport"
	"loadline.dev/shim/internal/testing/enginetest"
	"loadline.dev/shim/internal/testing/fakeapi"
)

// A gateway without an extender serves its other doors, knows the size of the cluster and needs no pods.
func TestGatewayWithAnotherDoorOnly(t *testing.T) {
	api := fake.NewClientset(proposalCluster()...)
	g, err := New(Options{HealthAddress: "127.0.0.1:0"}, enginetest.Open(t), api)
	if err != nil {
		t.Fatal(err)
	}
	if count, known := g.Nodes(); known {
		t.Errorf("%d nodes are known before they are listed", count)
	}
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "door_total", Help: "Of the test."})
	reached := make(chan string, 1)
	g.Add(Door{Name: "other", Address: "127.0.0.1:0", Collectors: []prometheus.Collector{counter},
		Serve: func(ctx context.Context, listener net.Listener) error {
			reached <- listener.Addr().String()
			<-ctx.Done()
			return listener.Close()
		}})
	open, err := g.listen()
	if err != nil {
		t.Fatal(err)
	}
	if open.extender != nil {
		t.Error("there is a port for an extender")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.serve(ctx, open) }()
	if got := <-reached; got != open.doors[0].Addr().String() {
		t.Errorf("the door serves %s, not its own port %s", got, open.doors[0].Addr())
	}
	r := &running{Gateway: g, t: t, url: "http://" + open.health.Addr().String(),
		http: &http.Client{Timeout: 5 * time.Second}}
	r.waitReady()
	if _, body := r.get("/readyz?verbose"); body != "[+]nodes ok\n[+]shutdown ok\n" {
		t.Errorf("/readyz?verbose: %s", body)
	}
	if got := r.metric("door_total"); got != "0" {
		t.Errorf("door_total is %s", got)
	}
	waitForNodes(t, g, 2)
	fakeapi.WaitForWatch(t, api, "nodes")
	if _, err := api.CoreV1().Nodes().Create(t.Context(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node3"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitForNodes(t, g, 3)
	for _, action := range api.Actions() {
		if resource := action.GetResource().Resource; resource != "nodes" {
			t.Errorf("%s of %s, which it needs no right for", action.GetVerb(), resource)
		}
	}
	r.http.CloseIdleConnections()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}

func waitForNodes(t *testing.T, g *Gateway, want int) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		count, known := g.Nodes()
		if known && count == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d nodes, known %v, want %d", count, known, want)
		}
	}
}

// A door that cannot open keeps none of the others open.
func TestDoorWhosePortIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	health, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(Options{HealthAddress: health}, enginetest.Open(t), fake.NewClientset())
	if err != nil {
		t.Fatal(err)
	}
	g.Add(Door{Name: "other", Address: taken.Addr().String()})
	if err := g.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("got %v", err)
	}
	again, err := net.Listen("tcp", health)
	if err != nil {
		t.Fatalf("the port for health is still taken: %v", err)
	}
	again.Close()
}

package cli

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/api/grpcplugin"
	"loadline.dev/shim/freeport"
	"loadline.dev/shim/internal/testing/enginetest"
)

// freeAddress returns an address on which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// gatewayRun is a gateway with an expander, started by its command line, with a pair that it has made.
type gatewayRun struct {
	t           *testing.T
	client      grpcplugin.ExpanderClient
	health, dir string
	cancel      context.CancelFunc
	ended       chan int
	stderr      bytes.Buffer
}

func startGateway(t *testing.T, engineAddress string, args ...string) *gatewayRun {
	t.Helper()
	kubeconfig, _ := apiServer(t, "testdata/proposal.json")
	r := &gatewayRun{t: t, health: freeAddress(t), dir: filepath.Join(t.TempDir(), "pair"), ended: make(chan int, 1)}
	out, errs, code := run(t, "loadline", "", "gateway", "certificate", "--dir", r.dir)
	if want := filepath.Join(r.dir, "tls.key") + "\n" + filepath.Join(r.dir, "tls.crt") + "\n"; code != 0 ||
		out != want {
		t.Fatalf("exit %d, out %q, err %q", code, out, errs)
	}
	address := freeAddress(t)
	if at := slices.Index(args, "--health-address"); at >= 0 {
		r.health = strings.NewReplacer("[", "", "]", "").Replace(args[at+1]) // in URLs only IPv6 may have brackets
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	t.Setenv("LOADLINE_LIBRARY", enginetest.Library(t))
	all := append([]string{"loadline", "gateway", "--expander-address", address, "--health-address", r.health,
		"--kubeconfig", kubeconfig,
		"--context", "test", "--engine", engineAddress, "--tls-cert-file", filepath.Join(r.dir, "tls.crt"),
		"--tls-private-key-file", filepath.Join(r.dir, "tls.key")}, args...)
	go func() { r.ended <- Run(ctx, all, Streams{Out: io.Discard, Err: &r.stderr}) }()
	trusted, err := credentials.NewClientTLSFromFile(filepath.Join(r.dir, "tls.crt"), "") // as Cluster Autoscaler does
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(trusted))
	if err != nil {
		t.Fatal(err)
	}
	r.client = grpcplugin.NewExpanderClient(conn)
	t.Cleanup(func() {
		conn.Close()
		r.end()
	})
	waitForOK(t, "http://"+r.health+"/readyz")
	return r
}

func (r *gatewayRun) end() {
	r.cancel()
	if code := <-r.ended; code != 0 {
		r.t.Errorf("exit %d: %s", code, r.stderr.String())
	}
	r.ended <- 0
}

// metrics are what /metrics says.
func (r *gatewayRun) metrics() string {
	r.t.Helper()
	response, err := http.Get("http://" + r.health + "/metrics")
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

// The port for Prometheus of manifests/extender/health has its host in brackets, for both families of addresses.
func TestGatewayServesMetricsOfTheExtender(t *testing.T) {
	port := strings.TrimPrefix(freeAddress(t), "127.0.0.1:")
	r := startGateway(t, "inprocess", "--extender-address", freeAddress(t), "--health-address", "[127.0.0.1]:"+port)
	if got := r.metrics(); !strings.Contains(got, "loadline_engine_up 1\n") ||
		!strings.Contains(got, `loadline_extender_skips_total{reason="deadline"} 0`) {
		t.Errorf("metrics:\n%s", got)
	}
}

// best asks which of two machines of one size is to come for a pod. To least waste they are the same, so that it takes
// the first one, which is the dear one.
func (r *gatewayRun) best() string {
	r.t.Helper()
	marshal := func(object interface{ Marshal() ([]byte, error) }) []byte {
		data, err := object.Marshal()
		if err != nil {
			r.t.Fatal(err)
		}
		return data
	}
	list := func(cpu, memory string) v1.ResourceList {
		return v1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
	}
	pod := marshal(
		&v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{
			{Resources: v1.ResourceRequirements{Requests: list("2", "8Gi")}}}}})
	request := &grpcplugin.BestOptionsRequest{}
	for _, machine := range []string{"dear", "cheap"} {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: machine,
			Labels: map[string]string{v1.LabelInstanceTypeStable: machine + "-4"}},
			Status: v1.NodeStatus{Capacity: list("4", "16Gi"), Allocatable: list("4", "16Gi")}}
		request.Options = append(request.Options,
			&grpcplugin.Option{NodeGroupId: "group-" + machine, NodeCount: 1, PodBytes: [][]byte{pod}})
		request.NodeBytesMap = append(request.NodeBytesMap,
			&grpcplugin.NodeEntry{Key: "group-" + machine, Value: marshal(node)})
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), 5*time.Second)
	defer cancel()
	response, err := r.client.BestOptions(ctx, request)
	if err != nil || len(response.GetOptions()) != 1 {
		r.t.Fatalf("got %v, %v", response, err)
	}
	return response.GetOptions()[0].GetNodeGroupId()
}

func (r *gatewayRun) has(lines ...string) {
	r.t.Helper()
	text := r.metrics()
	for _, line := range lines {
		if !strings.Contains(text, "\n"+line+"\n") {
			r.t.Errorf("/metrics has no line %s", line)
		}
	}
}

func TestGatewayCommandWithExpanderAndWithoutEngine(t *testing.T) {
	r := startGateway(t, "unix:///nonexistent/loadline.sock")
	if got := r.best(); got != "group-dear" {
		t.Errorf("chose %s, which is not the first of equals", got)
	}
	r.has(`loadline_decision_total{kind="rank",outcome="fallback"} 1`,
		`loadline_decision_fallback_total{kind="rank",reason="unavailable"} 1`)
	http.DefaultClient.CloseIdleConnections()
	r.end()
}

// Both doors at one gateway, which follows the cluster once.
func TestGatewayCommandWithBothDoors(t *testing.T) {
	address := freeAddress(t)
	r := startGateway(t, "inprocess", "--extender-address", address)
	r.best()
	r.has(`loadline_view_nodes 2`, `loadline_engine_up 1`)
	http.DefaultClient.CloseIdleConnections()
	r.end()
}

func TestCertificateLeavesFilesAlone(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tls.crt"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := run(t, "loadline", "", "gateway", "certificate", "--dir", dir); code != 1 ||
		!strings.Contains(errs, "tls.crt is there already") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "tls.crt")); err != nil || string(text) != "mine" {
		t.Errorf("the file holds %q, %v", text, err)
	}
	info, err := os.Stat(filepath.Join(dir, "tls.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v, %v", info, err)
	}
}

// The arguments in manifests/expander are arguments of this gateway.
func TestArgumentsOfTheExpanderManifest(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "manifests", "expander", "20-gateway.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var deployment struct {
		Kind string `json:"kind"`
		Spec struct {
			Template v1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		if err := yaml.Unmarshal([]byte(document), &deployment); err != nil {
			t.Fatal(err)
		}
	}
	if deployment.Kind != "Deployment" {
		t.Fatalf("the last document is a %s", deployment.Kind)
	}
	pod := deployment.Spec.Template.Spec
	args := pod.Containers[0].Args
	command := (&app{}).newGateway()
	if args[0] != command.Name() {
		t.Errorf("runs %s", args[0])
	}
	if err := command.ParseFlags(args[1:]); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"tls-cert-file", "tls-private-key-file", "prices"} {
		mounted := slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(mount v1.VolumeMount) bool {
			return strings.Contains(command.Flags().Lookup(path).Value.String(), mount.MountPath+"/")
		})
		if !mounted {
			t.Errorf("--%s %s is on no volume", path, command.Flags().Lookup(path).Value)
		}
	}
	engine := "unix://" + strings.TrimPrefix(pod.InitContainers[0].Args[0], "--socket=")
	if got := command.Flags().Lookup("engine").Value.String(); got != engine {
		t.Errorf("asks the engine at %s, which serves %s", got, engine)
	}
}

// The whole way: pair, flags, kubeconfig, watch, prices, engine, answer, metrics, end.
func TestGatewayCommandWithExpander(t *testing.T) {
	prices := filepath.Join(t.TempDir(), "prices.csv")
	if err := os.WriteFile(prices, []byte("instance_type,on_demand_usd_per_hour\ndear-4,0.3\ncheap-4,0.2\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	r := startGateway(t, "inprocess", "--prices", prices)
	if got := r.best(); got != "group-cheap" {
		t.Errorf("chose %s", got)
	}
	r.has(`loadline_decision_total{kind="rank",outcome="ranked"} 1`,
		`loadline_rank_winner_total{node_group="group-cheap"} 1`,
		`loadline_requests_rejected_total{reason="size"} 0`, `loadline_tls_last_reload_successful 1`)
	if text := r.metrics(); strings.Contains(text, "loadline_extender_") || strings.Contains(text, "loadline_view_") {
		t.Error("there are metrics of an extender, and there is none")
	}
	http.DefaultClient.CloseIdleConnections()
	r.end()
}

package extender

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"regexp"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	discovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"

	"loadline.dev/shim/certificates"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/internal/ports"
	"loadline.dev/shim/internal/testing/certtest"
	"loadline.dev/shim/internal/testing/enginetest"
	"loadline.dev/shim/internal/testing/fakeapi"
	"loadline.dev/shim/policy"
)

func withLimit(pod *v1.Pod, request, limit string) *v1.Pod {
	pod.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{"cpu": resource.MustParse(request)},
		Limits:   v1.ResourceList{"cpu": resource.MustParse(limit)},
	}}}
	return pod
}

// proposalCluster is the example of the limit-aware scoring proposal: node1 with limits of 10 cpu out of 8, node2 with
// 5 out of 8.
func proposalCluster() []runtime.Object {
	node := func(name string) *v1.Node {
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: v1.NodeStatus{Allocatable: v1.ResourceList{"cpu": resource.MustParse("8")}}}
	}
	return []runtime.Object{
		node("node1"), node("node2"),
		withLimit(newPod("default", "pod1", "node1"), "2", "6"),
		withLimit(newPod("default", "pod2", "node1"), "2", "4"),
		withLimit(newPod("default", "pod3", "node2"), "3", "3"),
		withLimit(newPod("default", "pod4", "node2"), "2", "2"),
	}
}

const pod5 = `{"metadata":{"name":"pod5","namespace":"default"},
	"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1"},"limits":{"cpu":"4"}}}]}}`

// running is a gateway on a real engine, a fake API server and a real port.
type running struct {
	*Gateway
	t      *testing.T
	url    string
	cancel context.CancelFunc
	done   chan error
	http   *http.Client
	api    *fake.Clientset
}

func start(t *testing.T, conn engine.Conn, options Options, objects ...runtime.Object) *running {
	t.Helper()
	return startWith(t, conn, options, func(*discovery.FakeDiscovery) {}, objects...)
}

// startWith lets what the API server says of itself be changed.
func startWith(t *testing.T, conn engine.Conn, options Options, change func(*discovery.FakeDiscovery),
	objects ...runtime.Object) *running {
	t.Helper()
	kep := policy.Policy{}
	kep.Default()
	options.Policy = kep.Proto()
	options.Address = "127.0.0.1:0"
	api := fake.NewClientset(objects...)
	change(api.Discovery().(*discovery.FakeDiscovery))
	g, err := New(options, conn, api)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := ports.Listen(options.Address, maxConnections, maxOfClient)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{Gateway: g, t: t, url: "http://" + listener.Addr().String(), cancel: cancel,
		done: make(chan error, 1), http: &http.Client{Timeout: patience, Transport: &http.Transport{}}, api: api}
	go func() { r.done <- g.serve(ctx, listeners{extender: listener}) }()
	t.Cleanup(func() {
		r.stop()
		r.http.CloseIdleConnections()
	})
	return r
}

func (r *running) stop() error {
	r.cancel()
	err := <-r.done
	r.done <- err // for the next one who asks
	return err
}

func (r *running) get(path string) (int, string) {
	r.t.Helper()
	response, err := r.http.Get(r.url + path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func (r *running) post(body string) (int, string) {
	r.t.Helper()
	response, err := r.http.Post(r.url+PrioritizePath, "application/json", strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return response.StatusCode, string(answer)
}

// patience is how long the tests wait before they say that something hangs. None says that anything is fast.
const patience = 60 * time.Second

// waitFor waits for an answer.
func (r *running) waitFor(body, want string) {
	r.t.Helper()
	var got string
	for start := time.Now(); time.Since(start) < patience; time.Sleep(2 * time.Millisecond) {
		if _, got = r.post(body); got == want {
			return
		}
	}
	r.t.Fatalf("still %s, want %s", got, want)
}

func (r *running) waitReady() {
	r.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		code, body := r.get("/readyz")
		if code == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("not ready: %s", body)
		}
	}
}

// metric returns the value of a sample, such as `x_total{reason="y"}`.
func (r *running) metric(sample string) string {
	r.t.Helper()
	_, body := r.get("/metrics")
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(sample) + ` (.*)$`).FindStringSubmatch(body)
	if found == nil {
		r.t.Fatalf("no sample %s", sample)
	}
	return found[1]
}

const (
	askBoth   = `{"Pod":` + pod5 + `,"Nodes":null,"NodeNames":["node1","node2"]}`
	preferred = `[{"Host":"node1","Score":0},{"Host":"node2","Score":10}]`
	noOpinion = `[{"Host":"node1","Score":0},{"Host":"node2","Score":0}]`
)

func TestGatewayScoresTheExampleOfTheProposal(t *testing.T) {
	r := start(t, enginetest.Open(t), Options{Version: "1.2.3"}, proposalCluster()...)
	r.waitReady()
	if code, got := r.post(askBoth); code != http.StatusOK || got != preferred {
		t.Errorf("status %d: %s", code, got)
	}
	for sample, want := range map[string]string{
		`loadline_extender_requests_total{result="scored"}`:   "1",
		`loadline_extender_skips_total{reason="not_synced"}`:  "0",
		`loadline_extender_request_duration_seconds_count`:    "1",
		`loadline_view_nodes`:                                 "2",
		`loadline_view_pods`:                                  "4",
		`loadline_engine_up`:                                  "1",
		`loadline_view_clamped_amounts`:                       "0",
		`loadline_engine_failed_checks`:                       "0",
		`loadline_build_info{version="1.2.3"}`:                "1",
		`loadline_extender_full_node_requests_total`:          "0",
		`loadline_extender_requests_total{result="rejected"}`: "0",
		`loadline_tls_last_reload_successful`:                 "1",
	} {
		if got := r.metric(sample); got != want {
			t.Errorf("%s is %s, want %s", sample, got, want)
		}
	}
}

func TestGatewayFollowsTheCluster(t *testing.T) {
	r := start(t, enginetest.Open(t), Options{}, proposalCluster()...)
	r.waitReady()
	fakeapi.WaitForWatch(r.t, r.api, "nodes", "pods")
	ctx := t.Context()
	pods := r.api.CoreV1().Pods("default")
	// pod6 brings node2 to 14 of 8 with pod5, and node1 is at 14 of 8 as well.
	if _, err := pods.Create(ctx, withLimit(newPod("default", "pod6", "node2"), "1", "5"),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.waitFor(askBoth, noOpinion)
	if err := pods.Delete(ctx, "pod1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.waitFor(askBoth, `[{"Host":"node1","Score":10},{"Host":"node2","Score":0}]`)
	if err := r.api.CoreV1().Nodes().Delete(ctx, "node1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.waitFor(askBoth, noOpinion)
}

// A pod that the engine cannot read keeps its node: it counts with what could be read.
func TestGatewayKeepsNodesOfInvalidPods(t *testing.T) {
	negative := withLimit(newPod("default", "pod9", "node3"), "1", "-1")
	node3 := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node3"}}
	r := start(t, enginetest.Open(t), Options{}, append(proposalCluster(), node3, negative)...)
	r.waitReady()
	if code, got := r.post(askBoth); code != http.StatusOK || got != preferred {
		t.Errorf("status %d: %s", code, got)
	}
	if got := r.metric("loadline_view_nodes_left_out_total"); got != "0" {
		t.Errorf("%s nodes were left out, want 0", got)
	}
}

// A node that the engine cannot read in full is counted and named once, and costs the others nothing.
func TestGatewayTellsOfNodesThatCannotBeRead(t *testing.T) {
	node3 := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node3"}}
	node3.Status.Allocatable = v1.ResourceList{"cpu": resource.MustParse("-1")}
	r := start(t, enginetest.Open(t), Options{}, append(proposalCluster(), node3)...)
	r.waitReady()
	if code, got := r.post(askBoth); code != http.StatusOK || got != preferred {
		t.Errorf("status %d: %s", code, got)
	}
	expect := func(leftOut, unreadable string) {
		t.Helper()
		if got := r.metric("loadline_view_nodes_left_out_total"); got != leftOut {
			t.Errorf("%s nodes were left out, want %s", got, leftOut)
		}
		if got := r.metric("loadline_view_unreadable_objects"); got != unreadable {
			t.Errorf("%s objects cannot be read in full, want %s", got, unreadable)
		}
	}
	expect("1", "1")
	mended := node3.DeepCopy()
	mended.Status.Allocatable = v1.ResourceList{"cpu": resource.MustParse("8")}
	if _, err := r.api.CoreV1().Nodes().UpdateStatus(t.Context(), mended, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(patience)
	for r.metric("loadline_view_unreadable_objects") != "0" && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	expect("1", "0")
}

// Invariant H4.
func TestGatewayHealth(t *testing.T) {
	r := start(t, enginetest.Open(t), Options{}, proposalCluster()...)
	r.waitReady()
	for _, path := range []string{"/livez", "/healthz", "/readyz"} {
		if code, body := r.get(path); code != http.StatusOK || body != "ok" {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if _, body := r.get("/readyz?verbose"); body != "[+]nodes ok\n[+]pods ok\n[+]engine ok\n[+]shutdown ok\n" {
		t.Errorf("/readyz?verbose: %s", body)
	}
	for path, want := range map[string]int{"/": 404, "/prioritize": 405, "/filter": 404, "/debug/pprof/": 404} {
		if code, _ := r.get(path); code != want {
			t.Errorf("GET %s: %d, want %d", path, code, want)
		}
	}
	r.rounds.Store(time.Now().Add(-stuckAfter - time.Minute).UnixNano())
	if checks := r.alive(); checks[0].Problem == "" {
		t.Error("a background that hangs is taken for alive")
	}
	r.ending.Store(true)
	if code, body := r.get("/readyz"); code != http.StatusServiceUnavailable ||
		!strings.Contains(body, "[-]shutdown failed") {
		t.Errorf("/readyz at the end: %d %s", code, body)
	}
}

// Without an engine the gateway lives, is not ready, and answers without asking.
func TestGatewayWithoutEngine(t *testing.T) {
	conn, err := engine.Open("unix:///nonexistent/loadline.sock")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := start(t, conn, Options{}, proposalCluster()...)
	for range 20 {
		if code, got := r.post(askBoth); code != http.StatusOK || got != noOpinion {
			t.Fatalf("status %d: %s", code, got)
		}
	}
	if code, body := r.get("/readyz"); code != http.StatusServiceUnavailable ||
		!strings.Contains(body, "[-]engine failed") {
		t.Errorf("/readyz: %d %s", code, body)
	}
	if code, _ := r.get("/livez"); code != http.StatusOK {
		t.Errorf("/livez: %d", code)
	}
	if got := r.metric(`loadline_extender_skips_total{reason="not_synced"}`); got != "20" {
		t.Errorf("%s skips", got)
	}
}

// The gateway reads the cluster, asks for its version, and writes nothing to it. Invariant H6.
func TestTheGatewayOnlyReads(t *testing.T) {
	r := start(t, enginetest.Open(t), Options{}, proposalCluster()...)
	r.waitReady()
	r.waitFor(askBoth, preferred)
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	verbs := map[string]int{}
	for _, action := range r.api.Actions() {
		verbs[action.GetVerb()]++
	}
	reads := verbs["list"] + verbs["watch"] + verbs["get"]
	// The last watch may not have begun when the gateway stops.
	if reads != len(r.api.Actions()) || verbs["list"] < 2 || verbs["watch"] < 1 || verbs["get"] != 1 {
		t.Errorf("the gateway made these calls: %v", verbs)
	}
}

// Killed, stopped, restarted: there is an answer all along, and the scores come back. How long an engine that hangs may
// cost, the tests of the prioritizer hold.
func TestGatewaySurvivesItsEngine(t *testing.T) {
	daemon := enginetest.StartDaemon(t)
	r := start(t, daemon.Open(), Options{}, proposalCluster()...)
	r.waitReady()
	r.waitFor(askBoth, preferred)

	answers := func(what string) {
		t.Helper()
		for range 10 {
			if code, got := r.post(askBoth); code != http.StatusOK || (got != noOpinion && got != preferred) {
				t.Fatalf("%s: status %d: %s", what, code, got)
			}
		}
		if _, got := r.post(askBoth); got != noOpinion {
			t.Errorf("%s: %s", what, got)
		}
	}
	daemon.Kill()
	answers("killed")
	daemon.Start()
	r.waitFor(askBoth, preferred)
	daemon.Stop()
	answers("stopped")
	daemon.Continue()
	r.waitFor(askBoth, preferred)
}

// A scheduler uses two connections, again and again: an answer without a length would cost one each time.
func TestConnectionsAreUsedAgain(t *testing.T) {
	r := start(t, enginetest.Open(t), Options{}, proposalCluster()...)
	r.waitReady()
	fresh := 0
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if !info.Reused {
			fresh++
		}
	}}
	r.http.CloseIdleConnections()
	var names []string
	for i := range 500 {
		names = append(names, fmt.Sprintf(`"node-%d"`, i))
	}
	body := `{"Pod":` + pod5 + `,"NodeNames":[` + strings.Join(names, ",") + `]}`
	for range 20 {
		req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodPost,
			r.url+PrioritizePath, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := r.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		// The test reads as a scheduler does: the announced bytes and no end.
		if _, err := io.ReadFull(response.Body, make([]byte, response.ContentLength)); err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	if fresh != 1 {
		t.Errorf("%d connections for 20 requests, want 1", fresh)
	}
}

func TestGatewayEndsGracefully(t *testing.T) {
	r := start(t, enginetest.Open(t), Options{}, proposalCluster()...)
	r.waitReady()
	// A request whose body is on its way when the server ends.
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", PrioritizePath, len(askBoth),
		askBoth[:10])
	for start := time.Now(); len(r.prioritizer.reading) == 0 && time.Since(start) < patience; {
		time.Sleep(time.Millisecond)
	}
	r.cancel()
	for start := time.Now(); !r.ending.Load() && time.Since(start) < patience; {
		time.Sleep(time.Millisecond)
	}
	fmt.Fprint(conn, askBoth[10:])
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasSuffix(string(answer), preferred) {
		t.Errorf("the request under way got %q, %v", answer, err)
	}
	if err := r.stop(); err != nil {
		t.Errorf("ended with %v", err)
	}
}

func TestPortInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	g, err := New(Options{Address: taken.Addr().String()}, enginetest.Open(t), fake.NewClientset())
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("got %v", err)
	}
}

// tlsRunning is start with certificates of an authority, whose clients the gateway trusts.
func tlsRunning(t *testing.T, ca *certtest.Authority, withClientCA bool) *running {
	t.Helper()
	dir := t.TempDir()
	cert, key := ca.WriteIn(dir, 1)
	files := certificates.Files{Cert: cert, Key: key}
	if withClientCA {
		files.ClientCA = dir + "/ca.crt"
		certtest.Write(t, files.ClientCA, ca.PEM)
	}
	r := start(t, enginetest.Open(t), Options{Certificates: files}, proposalCluster()...)
	r.url = "https" + strings.TrimPrefix(r.url, "http")
	r.http.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.Pool()}, ForceAttemptHTTP2: true}
	return r
}

func TestGatewayWithTLS(t *testing.T) {
	ca := certtest.New(t)
	r := tlsRunning(t, ca, false)
	r.waitReady()
	if code, got := r.post(askBoth); code != http.StatusOK || got != preferred {
		t.Errorf("status %d: %s", code, got)
	}
	plain := &http.Client{Timeout: patience}
	if response, err := plain.Get("http" + strings.TrimPrefix(r.url, "https") + "/livez"); err == nil {
		if response.StatusCode == http.StatusOK {
			t.Error("answers without TLS")
		}
		response.Body.Close()
	}
	// New certificates are used for new connections.
	ca.WriteIn(strings.TrimSuffix(r.options.Certificates.Cert, "/tls.crt"), 2)
	time.Sleep(certificates.ReloadInterval + 50*time.Millisecond)
	conn, err := tls.Dial("tcp", strings.TrimPrefix(r.url, "https://"), &tls.Config{RootCAs: ca.Pool()})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if serial := conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64(); serial != 2 {
		t.Errorf("certificate %d after the change, want 2", serial)
	}
	if version := conn.ConnectionState().Version; version != tls.VersionTLS13 {
		t.Errorf("TLS version %x", version)
	}
}

func TestClientCertificateIsRequired(t *testing.T) {
	ca := certtest.New(t)
	r := tlsRunning(t, ca, true)
	r.waitReady() // probes have no certificate
	for path, post := range map[string]bool{PrioritizePath: true, "/metrics": false} {
		code := 0
		if post {
			code, _ = r.post(askBoth)
		} else {
			code, _ = r.get(path)
		}
		if code != http.StatusUnauthorized {
			t.Errorf("%s without a certificate: %d", path, code)
		}
	}
	use := func(issuer *certtest.Authority) *http.Client {
		cert, key := issuer.Issue("scheduler", 5)
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		return &http.Client{Timeout: patience, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{pair}}}}
	}
	r.http = use(ca)
	if code, got := r.post(askBoth); code != http.StatusOK || got != preferred {
		t.Errorf("with a certificate: status %d: %s", code, got)
	}
	stranger := use(certtest.New(t))
	if response, err := stranger.Post(r.url+PrioritizePath, "application/json",
		strings.NewReader(askBoth)); err == nil {
		response.Body.Close()
		t.Errorf("a certificate of another authority: status %d", response.StatusCode)
	}
}

func TestHealthAddressServesNoVerb(t *testing.T) {
	g, err := New(Options{Address: "127.0.0.1:0"}, enginetest.Open(t), fake.NewClientset())
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/livez": 200, "/metrics": 200, PrioritizePath: 404} {
		recorder := httptest.NewRecorder()
		req, _ := http.NewRequest(http.MethodGet, path, nil)
		g.healthHandler().ServeHTTP(recorder, req)
		if recorder.Code != want {
			t.Errorf("%s: %d, want %d", path, recorder.Code, want)
		}
	}
}

// Nobody keeps a connection without asking, or with headers that do not end.
// Invariant H2.
func TestSlowAndOversizedHeaders(t *testing.T) {
	r := start(t, enginetest.Open(t), Options{}, proposalCluster()...)
	r.waitReady()
	dial := func(text string) (net.Conn, *bufio.Reader) {
		t.Helper()
		conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		fmt.Fprint(conn, text)
		return conn, bufio.NewReader(conn)
	}
	slow, slowReader := dial("POST /prioritize HTTP/1.1\r\nHost: x\r\nX: ")

	_, large := dial("POST /prioritize HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 2*ports.MaxHeaderBytes) + "\r\n\r\n")
	if line, err := large.ReadString('\n'); err != nil || !strings.Contains(line, "431") {
		t.Errorf("oversized headers: %q, %v", line, err)
	}
	slow.SetReadDeadline(time.Now().Add(patience)) // it takes as long as a header may
	if _, err := io.Copy(io.Discard, slowReader); err != nil {
		t.Errorf("slow headers: the connection stays open: %v", err)
	}
}

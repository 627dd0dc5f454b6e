package autoscaler

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"

	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/tell"
	"loadline.dev/shim/autoscaler/watch"
)

// ask returns the answer of a process that does not lead to a request from an address.
func ask(change func(*config.Configuration), path, from string) *httptest.ResponseRecorder {
	options := config.Default()
	if change != nil {
		change(&options)
	}
	a := &Autoscaler{config: &options, metrics: tell.NewMetrics("v1"), cluster: &watch.Cluster{},
		pages: tell.NewPages(&options, "v1")}
	answer := httptest.NewRecorder()
	request := httptest.NewRequest("GET", path, nil)
	request.RemoteAddr = from
	a.handler().ServeHTTP(answer, request)
	return answer
}

const (
	thisMachine  = "127.0.0.1:40000"
	otherMachine = "192.0.2.7:40000"
)

// /metrics has, beside our own, what client-go counts of requests to the API server, the process and Go's runtime. All
// of our own begin with the name of the autoscaler: the gateway has some that mean the like.
func TestServesMetricsOfLibraries(t *testing.T) {
	api := httptest.NewServer(http.NotFoundHandler())
	defer api.Close()
	client, err := kubernetes.NewForConfig(&restclient.Config{Host: api.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{}); err == nil {
		t.Fatal("there is a node")
	}
	answer := ask(nil, "/metrics", otherMachine)
	if answer.Code != http.StatusOK {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	for _, want := range []string{`(?m)^rest_client_requests_total\{code="404",host="[^"]+",method="GET"\} 1$`,
		`(?m)^go_goroutines `, `(?m)^process_resident_memory_bytes `,
		`(?m)^loadline_autoscaler_build_info\{version="v1"\} 1$`, `(?m)^loadline_autoscaler_leader 0$`} {
		if !regexp.MustCompile(want).MatchString(answer.Body.String()) {
			t.Errorf("there is no %s", want)
		}
	}
	for _, line := range strings.Split(answer.Body.String(), "\n") {
		if strings.HasPrefix(line, "loadline_") && !strings.HasPrefix(line, "loadline_autoscaler_") {
			t.Errorf("%q has not the prefix of the autoscaler", line)
		}
	}
}

// Profiles are served only if that is configured, and then as the page: to this machine only.
func TestProfiling(t *testing.T) {
	on := func(c *config.Configuration) { c.Profiling = true }
	exposed := func(c *config.Configuration) { c.Profiling, c.ExposePage = true, true }
	for name, c := range map[string]struct {
		change func(*config.Configuration)
		from   string
		want   int
	}{
		"Default":        {nil, thisMachine, http.StatusNotFound},
		"ThisMachine":    {on, thisMachine, http.StatusOK},
		"AnotherMachine": {on, otherMachine, http.StatusForbidden},
		"Exposed":        {exposed, otherMachine, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/heap?debug=1"} {
				if got := ask(c.change, path, c.from).Code; got != c.want {
					t.Errorf("%s: %d, want %d", path, got, c.want)
				}
			}
		})
	}
}

// Charts and manifests of Cluster Autoscaler probe /health-check, which says what /livez says.
func TestHealthCheckOfClusterAutoscaler(t *testing.T) {
	if got, want := ask(nil, "/health-check", otherMachine), ask(nil, "/livez", otherMachine); got.Code != http.StatusOK ||
		got.Body.String() != want.Body.String() {
		t.Errorf("%d %s, want %s", got.Code, got.Body, want.Body)
	}
}

// /livez fails when a loop takes longer than --max-inactivity and one scan interval.
func TestALoopThatHangs(t *testing.T) {
	options := config.Default()
	options.MaxInactivity.Duration, options.ScanInterval.Duration = 3*time.Minute, 10*time.Second
	a := &Autoscaler{config: &options}
	for took, alive := range map[time.Duration]bool{3 * time.Minute: true, 3*time.Minute + 11*time.Second: false} {
		a.vitals.leads.Store(true)
		a.vitals.loopBegan.Store(time.Now().Add(-took).UnixNano())
		if problem := a.alive()[0].Problem; (problem == "") != alive {
			t.Errorf("after %v: %q", took, problem)
		}
	}
}

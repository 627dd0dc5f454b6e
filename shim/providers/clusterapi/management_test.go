package clusterapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"loadline.dev/shim/api/externalgrpc"
)

// server is an API server of either cluster, which notes what it is asked for.
type server struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string // guarded by mu
}

// answers has the objects of one MachineDeployment, whose machine is known by the name of its node alone, and the node.
var answers = map[string]string{
	"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"cluster.x-k8s.io",` +
		`"versions":[{"groupVersion":"cluster.x-k8s.io/v1beta2","version":"v1beta2"}],` +
		`"preferredVersion":{"groupVersion":"cluster.x-k8s.io/v1beta2","version":"v1beta2"}}]}`,
	"/apis/cluster.x-k8s.io/v1beta2": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":` +
		`"cluster.x-k8s.io/v1beta2","resources":[{"name":"machines","namespaced":true,"kind":"Machine","verbs":["list"]},` +
		`{"name":"machinesets","namespaced":true,"kind":"MachineSet","verbs":["list"]}]}`,
	"/apis/cluster.x-k8s.io/v1beta2/machinesets": `{"kind":"MachineSetList","apiVersion":"cluster.x-k8s.io/v1beta2",` +
		`"metadata":{},"items":[{"kind":"MachineSet","apiVersion":"cluster.x-k8s.io/v1beta2","metadata":{"name":"ms",` +
		`"namespace":"ns","annotations":{"` + annotation + `max-size":"5"}},"spec":{"replicas":1}}]}`,
	"/apis/cluster.x-k8s.io/v1beta2/machines": `{"kind":"MachineList","apiVersion":"cluster.x-k8s.io/v1beta2",` +
		`"metadata":{},"items":[{"kind":"Machine","apiVersion":"cluster.x-k8s.io/v1beta2","metadata":{"name":"m",` +
		`"namespace":"ns","ownerReferences":[{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"MachineSet","name":"ms",` +
		`"uid":"u"}]},"spec":{},"status":{"nodeRef":{"name":"n"}}}]}`,
	"/api/v1/nodes": `{"kind":"NodeList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"n"},` +
		`"spec":{"providerID":"sim://n"}}]}`,
}

func startServer(t *testing.T) *server {
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if answer, ok := answers[r.URL.Path]; ok && r.Method == http.MethodGet {
			s.asked = append(s.asked, r.URL.Path)
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, answer)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// asks returns the paths that were asked for, each once, in the order of their names.
func (s *server) asks() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(s.asked))), " ")
}

// The rows of docs/platforms.md: objects of Cluster API are read from the management cluster, wherever that is, and
// nodes from the cluster whose nodes are planned. Neither is asked for what the other one has.
func TestManagementClusterApart(t *testing.T) {
	const objects = "/apis /apis/cluster.x-k8s.io/v1beta2 /apis/cluster.x-k8s.io/v1beta2/machines " +
		"/apis/cluster.x-k8s.io/v1beta2/machinesets"
	const nodes = "/api/v1/nodes"
	for _, c := range []struct {
		name                string
		file, authoritative bool
		in                  string // which server the management cluster is
	}{
		{"the same", false, false, "workload"},
		{"another one", true, false, "file"},
		{"the one of the pod", false, true, "pod"},
		{"another one, and nodes are elsewhere than the pod", true, true, "file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			servers := map[string]*server{"workload": startServer(t), "file": startServer(t), "pod": startServer(t)}
			inPod(t, func() (*rest.Config, error) { return &rest.Config{Host: servers["pod"].URL}, nil })
			options := &Options{Authoritative: c.authoritative}
			if c.file {
				options.CloudConfig = kubeconfig(t, servers["file"].URL)
			}
			workload := &rest.Config{Host: servers["workload"].URL, QPS: 50, Burst: 100}
			client, err := kubernetes.NewForConfig(workload)
			if err != nil {
				t.Fatal(err)
			}
			p, err := Open(options, workload, client)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			groups, err := p.Groups(t.Context(), &externalgrpc.NodeGroupAutoscalingOptions{})
			if err != nil || len(groups) != 1 || len(groups[0].Instances) != 1 || groups[0].Instances[0].GetId() != "sim://n" {
				t.Errorf("groups %+v, error %v", groups, err)
			}
			for name, s := range servers {
				want := map[bool]string{true: objects}[name == c.in]
				if name == "workload" {
					want = strings.TrimSpace(nodes + " " + want)
				}
				if got := s.asks(); got != want {
					t.Errorf("%s was asked for %q, want %q", name, got, want)
				}
			}
		})
	}
}

// Limits of requests are those of the other cluster; a call takes no longer than a loop can wait. An error names the
// flag, and the options of the workload stay as they are.
func TestManagementConfiguration(t *testing.T) {
	workload := &rest.Config{Host: "https://workload", QPS: 7, Burst: 9, BearerToken: "of the workload"}
	file := kubeconfig(t, "https://management")
	config, err := (&Options{CloudConfig: file}).management(workload)
	if err != nil || config.Host != "https://management" || config.QPS != 7 || config.Burst != 9 ||
		config.Timeout != callTime || config.BearerToken != "of management" {
		t.Errorf("%+v, error %v", config, err)
	}
	if workload.Timeout != 0 || workload.Host != "https://workload" {
		t.Errorf("the other configuration was changed: %+v", workload)
	}
	inPod(t, func() (*rest.Config, error) { return nil, rest.ErrNotInCluster })
	for want, o := range map[string]*Options{
		"--clusterapi-cloud-config-authoritative: " + rest.ErrNotInCluster.Error(): {Authoritative: true},
		`--cloud-config "/none": `: {CloudConfig: "/none"},
	} {
		if _, err := o.management(workload); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: error %v, want %s", o, err, want)
		}
	}
}

// inPod replaces what a pod's API server is.
func inPod(t *testing.T, config func() (*rest.Config, error)) {
	before := podConfig
	podConfig = config
	t.Cleanup(func() { podConfig = before })
}

func kubeconfig(t *testing.T, url string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "management.kubeconfig")
	content := `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "` + url + `"}}]
users: [{name: u, user: {token: of management}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

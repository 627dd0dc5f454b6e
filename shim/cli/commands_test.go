package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"loadline.dev/shim/internal/testing/enginetest"
	"loadline.dev/shim/policy"
)

func TestWrongUsageExitsWith2(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		says string
	}{
		{"UnknownCommand", []string{"frobnicate"}, "unknown command"},
		{"UnknownFlag", []string{"top", "--frobnicate"}, "unknown flag: --frobnicate"},
		{"NoPod", []string{"score"}, "name a POD"},
		{"EngineAddress", []string{"version", "--engine", "http://x"}, `engine address "http://x"`},
		{"TwoPods", []string{"score", "a", "b"}, "accepts at most 1 arg"},
		{"PodAndFile", []string{"why", "a", "-p", "x"}, "exclude each other"},
		{"BothStdin", []string{"why", "-p", "-", "-f", "-"}, "cannot both read standard input"},
		{"PodName", []string{"why", "a/b/c", "-f", "x"}, `pod "a/b/c"`},
		{"Output", []string{"score", "a", "-f", "x", "-o", "xml"}, `-o "xml": must be one of table, json, yaml, html`},
		{"NoSheet", []string{"fit", "a", "-f", "x", "-o", "csv"}, `-o "csv": must be one of table, json, yaml, html, wide`},
		{"Preset", []string{"score", "a", "-f", "x", "--preset", "loose"},
			`preset: Unsupported value: "loose": supported values: "strict", "kep217"`},
		{"Weight", []string{"score", "a", "-f", "x", "--resources", "cpu=0"}, "resources[0].weight: Invalid value: 0"},
		{"WeightText", []string{"score", "a", "-f", "x", "--resources", "cpu=x"}, `--resources "cpu=x"`},
		{"ResourceTwice", []string{"score", "a", "-f", "x", "--resources", "cpu,cpu"},
			`resources[1].resource: Duplicate value: "cpu"`},
		{"UnknownResource", []string{"score", "a", "-f", "x", "--resources", "ram"},
			`resources[0].resource: Invalid value: "ram"`},
		{"MissingLimit", []string{"score", "a", "-f", "x", "--missing-limit", "memory"}, "PODS:RESOURCE=RULE"},
		{"MissingLimitRule", []string{"score", "a", "-f", "x", "--missing-limit", "Others:cpu=Guess"},
			`missingLimits[0].rule: Unsupported value: "Guess"`},
		{"SortBy", []string{"top", "-f", "testdata/proposal.json", "--sort-by", "disk"},
			`--sort-by "disk": must be load, name or one of the resources shown: cpu, memory`},
		{"Weight0", []string{"simulate", "-f", "x", "--weight", "0"}, "--weight 0: must be 1 to 1000"},
		{"WhyNotWithThree", []string{"why-not", "-p", "x", "node", "other"}, "exclude each other"},
		{"Top", []string{"top", "--top", "-1"}, "--top -1"},
		{"TopArgs", []string{"top", "x"}, `unknown command "x" for "loadline top"`},
		{"GroupsAndQuestion", []string{"rank", "--groups", "x", "--question", "y"}, "exclude each other"},
		{"QuestionAndPolicy", []string{"rank", "--question", "y", "--rank-preset", "proposal"},
			"says itself how to rank"},
		{"ClusterNodes", []string{"rank", "--groups", "x", "--cluster-nodes", "-2"}, "--cluster-nodes -2"},
		{"SizeNoGroups", []string{"size", "-f", "x"}, "--groups FILE is required"},
		{"SizeMode", []string{"size", "-f", "x", "--groups", "y", "--size-mode", "shipped"},
			`--size-mode "shipped": must be default or compat`},
		{"SizeNow", []string{"size", "-f", "x", "--groups", "y", "--now", "noon"}, `--now "noon": is not a time`},
		{"WhyNoGroup", []string{"why", "--groups", "x"}, "name a GROUP"},
		{"NoAddress", []string{"gateway"}, "--extender-address HOST:PORT or --expander-address HOST:PORT is required"},
		{"PublicAddress", []string{"gateway", "--extender-address", "0.0.0.0:8888"},
			"can be reached from other machines"},
		{"CertWithoutKey", []string{"gateway", "--extender-address", "127.0.0.1:1", "--tls-cert-file", "x"},
			"go together"},
		{"ExpanderWithoutTLS", []string{"gateway", "--expander-address", "127.0.0.1:1"},
			"needs --tls-cert-file and --tls-private-key-file"},
		{"ExpanderPort", []string{"gateway", "--expander-address", "8889", "--tls-cert-file", "x",
			"--tls-private-key-file", "y"}, "must be HOST:PORT"},
		{"ExpanderTimeout", []string{"gateway", "--expander-address", "127.0.0.1:1", "--tls-cert-file", "x",
			"--tls-private-key-file", "y",
			"--expander-timeout", "4s"}, "at most 3.5s"},
		{"RankPreset", []string{"gateway", "--expander-address", "127.0.0.1:1", "--tls-cert-file", "x",
			"--tls-private-key-file", "y",
			"--rank-preset", "strict"}, `--rank-preset: "strict" must be one of`},
		{"CertificateWithoutHost", []string{"gateway", "certificate", "--host", ""}, "no host"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, errs, code := run(t, "loadline", "", c.args...)
			if code != 2 || out != "" || !strings.Contains(errs, c.says) || !strings.Contains(errs, "--help") {
				t.Errorf("exit %d, out %q, err %q, want 2 and %q", code, out, errs, c.says)
			}
		})
	}
}

// A name that is none is shown in a form that no terminal takes for a command, and its node keeps no other from being
// shown.
func TestNodeNameThatIsNoneIsPrintable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "name")
	content :=
		`{"kind":"List","apiVersion":"v1","items":[{"kind":"Node","apiVersion":"v1","metadata":{"name":"a\u001b[31m\u0000"}},{"kind":"Node","apiVersion":"v1","metadata":{"name":"b"}}]}`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := run(t, "loadline", "", "top", "-f", file)
	if code != 0 || strings.ContainsAny(out+errs, "\x1b\x00") || !strings.Contains(out, `a\x1b[31m\x00~`) ||
		!strings.Contains(out, "\nb ") && !strings.Contains(out, "\nb\n") {
		t.Errorf("exit %d, out %q, err %q", code, out, errs)
	}
}

func TestFailureExitsWith1(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const nodeWith = `{"kind":"List","items":[{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},"status":{"allocatable":{"cpu":"8"}}},
		{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"nodeName":%q,"containers":[{"name":"c","resources":{"limits":{"cpu":%q}}}]}}]}`
	for _, c := range []struct {
		name string
		args []string
		says []string
	}{
		{"NoFile", []string{"top", "-f", dir + "/absent"}, []string{"no such file"}},
		{"NotADump", []string{"top", "-f", file("text", "hello world")},
			[]string{"text: document 0: not a dump of a cluster"}},
		{"NoNodes", []string{"top", "-f", file("pods", `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"}}`)},
			[]string{"pods holds no node"}},
		{"NoSuchPod", []string{"score", "nobody", "-f", "testdata/proposal.json"},
			[]string{"pod default/nobody is not in testdata/proposal.json", "-p FILE"}},
		{"OtherNamespace", []string{"score", "pod5", "-n", "x", "-f", "testdata/proposal.json"},
			[]string{"pod x/pod5 is not in"}},
		{"PodFileIsNoPod", []string{"score", "-p", "testdata/proposal.json", "-f", "testdata/proposal.json"},
			[]string{"holds 5 pods, want one"}},
		{"PolicyFile",
			[]string{"score", "pod5", "-f", "testdata/proposal.json", "--policy", file("policy", "prest: strict\n")},
			[]string{"policy: ", `unknown field "prest"`}},
		{"NegativeLimitOfThePod", []string{"score", "p", "-f", file("incoming", fmt.Sprintf(nodeWith, "", "-1"))},
			[]string{"engine: ", "limits", "cpu", "-1"}},
		{"MalformedLimit", []string{"top", "--lines", "1", "-f", file("malformed", fmt.Sprintf(nodeWith, "n", "1x"))},
			[]string{`item 1 (Pod "p"): spec.containers[0].resources.limits.cpu: `}},
		{"NoLibrary", []string{"version", "--engine", "inprocess:///nonexistent.so"}, []string{"/nonexistent.so"}},
		{"Kubeconfig", []string{"top", "--kubeconfig", dir + "/absent"}, []string{"absent"}},
		{"Context", []string{"top", "--kubeconfig", file("kubeconfig", "apiVersion: v1\nkind: Config\n"), "--context",
			"moon"}, []string{`"moon"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, errs, code := run(t, "loadline", "", c.args...)
			if code != 1 || strings.Contains(errs, "--help") {
				t.Errorf("exit %d, out %q, err %q", code, out, errs)
			}
			for _, says := range c.says {
				if !strings.Contains(errs, says) {
					t.Errorf("the error does not say %q: %s", says, errs)
				}
			}
			if strings.ContainsAny(errs, "\x00\x1b") {
				t.Errorf("control characters in %q", errs)
			}
		})
	}
}

func TestNameOfThePlugin(t *testing.T) {
	for program, want := range map[string]string{"loadline": "\n  loadline [command]",
		"/usr/bin/kubectl-loadline": "\n  kubectl loadline [command]"} {
		out, _, code := run(t, program, "", "--help")
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("%s --help: exit %d, %s", program, code, out)
		}
	}
	if _, errs, _ := run(t, "kubectl-loadline", "", "frobnicate"); !strings.Contains(errs,
		"See 'kubectl loadline --help'") {
		t.Error(errs)
	}
}

// One version: that of the build.
func TestVersion(t *testing.T) {
	build, err := os.ReadFile("../../CMakeLists.txt")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`project\(loadline VERSION ([0-9.]+)`).FindSubmatch(build)
	if found == nil || string(found[1]) != Version {
		t.Errorf("CMakeLists.txt says %s, version.go %s", found, Version)
	}
	out, errs, code := run(t, "loadline", "", "version")
	if want := fmt.Sprintf("loadline %s\nengine %s\n", Version, Version); out != want || code != 0 {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
}

func TestCompletion(t *testing.T) {
	if out, _, code := run(t, "loadline", "", "completion", "bash"); code != 0 ||
		!strings.Contains(out, "__start_loadline") {
		t.Errorf("exit %d: %.80s", code, out)
	}
}

// The form that other programs read.
func TestScoreJSON(t *testing.T) {
	out, errs, code := run(t, "loadline", "", "score", "pod5", "-f", "testdata/proposal.json", "-o",
		"json", "--resources", "cpu")
	if code != 0 {
		t.Fatal(errs)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"pod": "default/pod5", "leftOut": []any{}, "scores": []any{
		map[string]any{"node": "node2", "score": 100.0, "raw": -12.5},
		map[string]any{"node": "node1", "score": 0.0, "raw": -75.0},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("(-want +got):", diff)
	}
}

func TestVerdictInOneLine(t *testing.T) {
	out, _, _ := run(t, "loadline", "", "why", "pod5", "-f", "testdata/proposal.json", "--resources", "cpu")
	const want = "default/pod5: node2 (score 100, limits 9/8 cpu = 1.13) over node1 (score 0, limits 14/8 cpu = 1.75)"
	if first, _, _ := strings.Cut(out, "\n"); first != want {
		t.Errorf("got  %s\nwant %s", first, want)
	}
}

func TestDumpFromStandardInput(t *testing.T) {
	dump, err := os.ReadFile("testdata/mixed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	fromFile, _, _ := run(t, "loadline", "", "why", "shop/new", "-f", "testdata/mixed.yaml")
	fromStdin, errs, code := run(t, "loadline", string(dump), "why", "shop/new", "-f", "-")
	if code != 0 || fromStdin != fromFile {
		t.Errorf("exit %d, %s, %s", code, errs, cmp.Diff(fromFile, fromStdin))
	}
	pod, err := os.ReadFile("testdata/pod.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, errs, code := run(t, "loadline", string(pod), "why", "-p", "-", "-f", "testdata/mixed.yaml"); code != 0 {
		t.Error(errs)
	}
}

// A pod from a file takes the place of one of the same name.
func TestPodFileReplacesThePod(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pod.yaml")
	manifest := "apiVersion: v1\nkind: Pod\nmetadata: {name: pod1}\nspec:\n  containers:\n  - name: c\n" +
		"    resources: {limits: {cpu: 1}}\n"
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := run(t, "loadline", "", "why", "-p", file, "-f", "testdata/proposal.json", "--resources", "cpu")
	// Without pod1 there are 4 cpu on node1 and 5 on node2.
	const want = "default/pod1: node1 (score 100, limits 5/8 cpu = 0.63) over node2 (score 0, limits 6/8 cpu = 0.75)"
	if code != 0 || !strings.HasPrefix(out, want) || !strings.Contains(out, "It is on node1 now") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
}

func TestPagesAreSelfContained(t *testing.T) {
	for _, args := range [][]string{
		{"top", "-f", "testdata/mixed.yaml"}, {"top", "-f", "testdata/hostile.json"},
		{"score", "shop/new", "-f", "testdata/mixed.yaml"}, {"score", "d/p\x1b]0;x\x07", "-f", "testdata/hostile.json"},
		{"why", "shop/new", "-f", "testdata/mixed.yaml"}, {"why", "d/p\x1b]0;x\x07", "-f", "testdata/hostile.json"},
	} {
		out, errs, code := run(t, "loadline", "", append(args, "-o", "html")...)
		if code != 0 {
			t.Fatal(errs)
		}
		root, err := html.Parse(strings.NewReader(out))
		if err != nil {
			t.Fatal(err)
		}
		for n := range root.Descendants() {
			if n.Type == html.ElementNode && slices.Contains([]string{"script", "link", "img", "iframe"}, n.Data) {
				t.Errorf("%v: <%s> in the page", args, n.Data)
			}
		}
		if strings.ContainsAny(out, "\x00\x07\x1b") || !strings.HasPrefix(out, "<!doctype html>") {
			t.Errorf("%v: not a clean page", args)
		}
	}
}

// The page of `why` has all that the table has, and that of `score` all nodes.
func TestPagesHoldEverySection(t *testing.T) {
	for _, c := range []struct {
		args []string
		says []string
	}{
		{[]string{"why", "pod5", "-f", "testdata/proposal.json"}, []string{
			"default/pod5: node2 (score 100, limits 9/8 cpu = 1.13) over node1 (score 0, limits 14/8 cpu = 1.75)",
			"default/pod5 fits on 2 of 2 nodes"}},
		{[]string{"why", "shop/huge", "-f", "testdata/fit.yaml"},
			[]string{"0/4 nodes are available", "NodeResourcesFit", "Insufficient cpu", "SUCH AS"}},
		{[]string{"score", "pod5", "-f", "testdata/proposal.json"}, []string{
			"Scores of nodes", "node1", "node2", "9 / 8 = 1.13", "14 / 8 = 1.75"}},
		{[]string{"plan", "-f", "../../docs/shop.yaml", "--groups", "../../docs/groups.yaml", "--now", drainNow},
			[]string{"<title>What one loop would decide</title>", "1 finds room", "SUCH AS", "No node goes now", "STAYS"}},
		{[]string{"fit", "pod5", "-f", "testdata/proposal.json"},
			[]string{"<title>Where the pod fits</title>", "fits on 2 of 2 nodes", "<td>node1</td>"}},
		{[]string{"why-not", "shop/huge", "-f", "testdata/fit.yaml"},
			[]string{"<title>Why the pod does not fit</title>", "0/4 nodes are available", "SUCH AS"}},
		{[]string{"why-not", "shop/huge", "-f", "testdata/fit.yaml", "--by-node"},
			[]string{"<title>Why the pod does not fit</title>", "0/4 nodes are available", "NODE"}},
		{[]string{"why-not", "pod5", "node1", "-f", "testdata/proposal.json"},
			[]string{"<title>Why the pod does not fit</title>", "default/pod5 fits on node1"}},
		{[]string{"why-not", "shop/web-0", "-f", "../../docs/shop.yaml", "--groups", "../../docs/groups.yaml"},
			[]string{"<title>Which node groups grow</title>", "NODE GROUP", "spot-large"}},
		{[]string{"version"}, []string{"<title>Versions</title>", "engine " + Version}},
	} {
		out, errs, code := run(t, "loadline", "", append(c.args, "-o", "html")...)
		if code != 0 {
			t.Fatal(errs)
		}
		for _, says := range c.says {
			if !strings.Contains(html.UnescapeString(out), says) {
				t.Errorf("%v: the page does not say %q", c.args, says)
			}
		}
	}
}

func TestPolicyOfFlagsAndFile(t *testing.T) {
	ratio := int32(-1)
	for _, c := range []struct {
		args string
		want policy.Policy
	}{
		{"", policy.Policy{Preset: "strict"}},
		{"--preset kep217", policy.Policy{Preset: "kep217"}},
		{"--resources cpu=2,memory,nvidia.com/gpu=100 --aggregate Worst --normalization Absolute --pod-limits " +
			"Proposal --arithmetic Truncating --absent-resource AddNothing --missing-limit-scope IncomingPod " +
			"--max-limit-ratio -1 --missing-limit Others:cpu=Fixed:500m --missing-limit BestEffort:memory=Zero",
			policy.Policy{
				Preset: "strict",
				Resources: []policy.ResourceWeight{{Resource: "cpu", Weight: 2}, {Resource: "memory", Weight: 1},
					{Resource: "nvidia.com/gpu", Weight: 100}},
				Aggregate: "Worst", Normalization: "Absolute", PodLimits: "Proposal", Arithmetic: "Truncating",
				AbsentResource: "AddNothing", MissingLimitScope: "IncomingPod", MaxLimitRatio: &ratio,
				MissingLimits: []policy.MissingLimit{{Pods: "Others", Resource: "cpu", Rule: "Fixed", Fixed: "500m"},
					{Pods: "BestEffort", Resource: "memory", Rule: "Zero"}},
			}},
		{"--policy testdata/policy.yaml --aggregate WeightedSum --resources memory --missing-limit Others:memory=Zero",
			policy.Policy{
				Preset: "strict", Resources: []policy.ResourceWeight{{Resource: "memory", Weight: 1}},
				Aggregate:     "WeightedSum",
				Normalization: "Absolute",
				MissingLimits: []policy.MissingLimit{{Pods: "Others", Resource: "memory", Rule: "Zero"}},
			}},
	} {
		got, err := addPolicyFlagsTo(t, c.args).policy()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got): %s", c.args, diff)
		}
	}
}

func apiServer(t *testing.T, file string) (kubeconfig string, paths *[]string) {
	return apiServerOf(t, file, "v1.36.3")
}

// apiServerOf serves the objects of a dump, two at a time, and notes what it was asked beside its version. The pages of
// one list count once.
func apiServerOf(t *testing.T, file, gitVersion string) (kubeconfig string, paths *[]string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var dump struct{ Items []map[string]any }
	if err := json.Unmarshal(data, &dump); err != nil {
		t.Fatal(err)
	}
	paths = &[]string{}
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		switch {
		case r.Method != http.MethodGet: // no command writes: invariant H6
			t.Errorf("%s %s", r.Method, r.URL.Path)
			return
		case query.Has("sendInitialEvents"): // an API server that cannot stream lists
			http.Error(w, "", http.StatusBadRequest)
			return
		case query.Has("watch"): // nothing ever happens
			w.WriteHeader(http.StatusOK)
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		case r.URL.Path == "/version":
			fmt.Fprintf(w, `{"gitVersion": %q}`, gitVersion)
			return
		}
		if !query.Has("continue") {
			mu.Lock()
			*paths = append(*paths, r.URL.Path)
			mu.Unlock()
		}
		kind := map[string]string{"/api/v1/nodes": "Node", "/api/v1/pods": "Pod",
			"/api/v1/namespaces/default/pods": "Pod", "/api/v1/namespaces": "Namespace",
			"/api/v1/persistentvolumes": "PersistentVolume", "/api/v1/persistentvolumeclaims": "PersistentVolumeClaim",
			"/apis/storage.k8s.io/v1/storageclasses":    "StorageClass",
			"/apis/storage.k8s.io/v1/csinodes":          "CSINode",
			"/apis/storage.k8s.io/v1/csidrivers":        "CSIDriver",
			"/apis/policy/v1/poddisruptionbudgets":      "PodDisruptionBudget",
			"/api/v1/services":                          "Service",
			"/api/v1/replicationcontrollers":            "ReplicationController",
			"/apis/apps/v1/replicasets":                 "ReplicaSet",
			"/apis/apps/v1/statefulsets":                "StatefulSet",
			"/apis/apps/v1/daemonsets":                  "DaemonSet",
			"/apis/apps/v1/deployments":                 "Deployment",
			"/apis/batch/v1/jobs":                       "Job",
			"/api/v1/namespaces/kube-system/configmaps": "ConfigMap",
		}[r.URL.Path]
		named, one := strings.CutPrefix(query.Get("fieldSelector"), "metadata.name=")
		if name, ok := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/kube-system/configmaps/"); ok {
			kind, named, one = "ConfigMap", name, true
		}
		if devices, ok := strings.CutPrefix(r.URL.Path, "/apis/resource.k8s.io/v1"); ok {
			kind = "DeviceClass"
			if !slices.ContainsFunc(dump.Items, func(o map[string]any) bool { return o["kind"] == kind }) {
				http.NotFound(w, r) // an API server of 1.33
				return
			}
			if devices == "" {
				fmt.Fprint(w, `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "resource.k8s.io/v1"}`)
				return
			}
		}
		items := slices.DeleteFunc(slices.Clone(dump.Items), func(o map[string]any) bool {
			return o["kind"] != kind || one && o["metadata"].(map[string]any)["name"] != named
		})
		if strings.HasSuffix(r.URL.Path, "/"+named) && one {
			if len(items) == 0 {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(items[0])
			return
		}
		start := 0
		fmt.Sscan(query.Get("continue"), &start)
		metadata := map[string]any{"resourceVersion": "7"}
		end := min(start+2, len(items))
		if end < len(items) {
			metadata["continue"] = fmt.Sprint(end)
		}
		w.Header().Set("Content-Type", "application/json")
		version := "v1"
		if group, ok := strings.CutPrefix(r.URL.Path, "/apis/"); ok {
			version = filepath.Dir(group)
		}
		json.NewEncoder(w).Encode(map[string]any{"kind": kind + "List", "apiVersion": version, "metadata": metadata,
			"items": items[start:end]})
	}))
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: other
clusters:
- {name: here, cluster: {server: %q}}
- {name: nowhere, cluster: {server: "http://127.0.0.1:1"}}
users: [{name: me, user: {token: x}}]
contexts:
- {name: test, context: {cluster: here, user: me, namespace: default}}
- {name: other, context: {cluster: nowhere, user: me, namespace: other}}
`, server.URL)
	if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig, paths
}

func TestErrorsOfALiveCluster(t *testing.T) {
	kubeconfig, _ := apiServer(t, "testdata/proposal.json")
	live := []string{"--kubeconfig", kubeconfig, "--context", "test"}
	_, errs, _ := run(t, "loadline", "", append([]string{"why", "pod9"}, live...)...)
	if !strings.Contains(errs, "pod default/pod9 is not in test;") {
		t.Errorf("the error does not name the context: %s", errs)
	}
	if _, errs, code := run(t, "loadline", "", "top", "--kubeconfig", kubeconfig); code != 1 ||
		!strings.Contains(errs, "nodes: ") {
		t.Errorf("exit %d without an API server: %s", code, errs)
	}
}

// A daemon answers what the engine in this process does, and is left without our view.
func TestEngineOnASocket(t *testing.T) {
	daemon := enginetest.StartDaemon(t)
	want, _, _ := run(t, "loadline", "", "why", "shop/new", "-f", "testdata/mixed.yaml")
	got, errs, code := run(t, "loadline", "", "why", "shop/new", "-f", "testdata/mixed.yaml", "--engine",
		daemon.Address())
	if diff := cmp.Diff(want, got); diff != "" || code != 0 {
		t.Errorf("exit %d, %s (-inprocess +socket): %s", code, errs, diff)
	}
	if views := viewsOf(t, daemon); len(views) > 0 {
		t.Errorf("the daemon still holds %v", views)
	}
}

// The whole way: flags, kubeconfig, watch, engine, answer, end.
func TestGatewayCommand(t *testing.T) {
	kubeconfig, _ := apiServer(t, "testdata/proposal.json")
	address := freeAddress(t)
	ctx, cancel := context.WithCancel(t.Context())
	t.Setenv("LOADLINE_LIBRARY", enginetest.Library(t))
	ended := make(chan int, 1)
	var stderr bytes.Buffer
	go func() {
		ended <- Run(ctx, []string{"loadline", "gateway", "--extender-address", address, "--kubeconfig", kubeconfig,
			"--context", "test", "--resources", "cpu"}, Streams{Out: io.Discard, Err: &stderr})
	}()
	waitForOK(t, "http://"+address+"/readyz")
	body :=
		`{"pod":{"metadata":{"name":"p"},"spec":{"containers":[{"resources":{"limits":{"cpu":"4"}}}]}},"nodenames":["node1","node2"]}`
	response, err := http.Post("http://"+address+"/prioritize", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if want := `[{"Host":"node1","Score":0},{"Host":"node2","Score":10}]`; err != nil || string(answer) != want {
		t.Errorf("got %s, %v, want %s", answer, err, want)
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if code := <-ended; code != 0 {
		t.Errorf("exit %d: %s", code, stderr.String())
	}
}

func waitForOK(t *testing.T, url string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		response, err := http.Get(url)
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not answer: %v", url, err)
		}
	}
}

// A live cluster says that a claim is missing; a dump without claims does not know.
func TestOnlyALiveClusterKnowsThatAClaimIsMissing(t *testing.T) {
	kubeconfig, _ := apiServer(t, "testdata/proposal.json")
	file := filepath.Join(t.TempDir(), "pod.yaml")
	manifest := "apiVersion: v1\nkind: Pod\nmetadata: {name: stateful}\nspec:\n  containers: [{name: c}]\n" +
		"  volumes: [{name: data, persistentVolumeClaim: {claimName: data-0}}]\n"
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]string{
		"--kubeconfig=" + kubeconfig + " --context=test": "0/2 nodes are available: persistentvolumeclaim \"data-0\" " +
			"not found.\n",
		"-f testdata/proposal.json": "default/stateful: not known to fit on any of 2 nodes; 2 of them cannot be " +
			"judged\n",
	} {
		out, errs, code := run(t, "loadline", "", append([]string{"why-not", "-p", file}, strings.Fields(source)...)...)
		if first, _, _ := strings.Cut(out, "\n"); code != 0 || first+"\n" != want {
			t.Errorf("%s: exit %d, %s%s", source, code, out, errs)
		}
	}
}

// A pod may be given by what makes such pods.
func TestAPodIsReadFromWhatMakesIt(t *testing.T) {
	const cluster = `{apiVersion: v1, kind: Node, metadata: {name: n1},
  status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}}`
	const template = "template: {metadata: {labels: {app: x}}, " +
		"spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}"
	file := filepath.Join(t.TempDir(), "pod.yaml")
	const apps, batch = "apiVersion: apps/v1, metadata: {name: x}, ", "apiVersion: batch/v1, metadata: {name: x}, "
	const spec, fits = "spec: {" + template + "}", "default/x fits on 1 of 1 node"
	const generated = "metadata: {generateName: x-}, "
	for _, c := range []struct{ manifest, want string }{
		{"{apiVersion: apps/v1, metadata: {name: x, namespace: shop}, kind: Deployment, " + spec + "}",
			"shop/x fits on 1 of 1 node"},
		{"{" + apps + "kind: StatefulSet, " + spec + "}", fits},
		{"{" + batch + "kind: CronJob, spec: {jobTemplate: {" + spec + "}}}", fits},
		{"{apiVersion: batch/v1, kind: Job, " + generated + spec + "}", "default/x-xxxxx fits on 1 of 1 node"},
		{"{apiVersion: v1, kind: Pod, " + generated + "spec: {containers: [{name: c}]}}",
			"default/x-xxxxx fits on 1 of 1 node"},
		{"{" + batch + "kind: Job, spec: {}}", `document 0 (Job "x"): spec.template: missing`},
		{"{" + batch + "kind: Job, spec: {template: {spec: {nodeName: 7}}}}",
			`document 0 (Job "x"): spec.template: spec.nodeName: `},
		{"{" + apps + "kind: DaemonSet, " + strings.Replace(spec, "cpu: 1", "cpu: 5", 1) + "}", "Insufficient cpu"},
		{"{apiVersion: v1, kind: Service, metadata: {name: x}}", "holds no pod: give a Pod, or what makes pods"},
		{"", "not the manifest of a pod: expected a Pod, or what makes pods, such as a Deployment"},
	} {
		if err := os.WriteFile(file, []byte(c.manifest), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs, _ := run(t, "loadline", cluster, "fit", "-p", file, "-f", "-")
		if !strings.Contains(out+errs, c.want) {
			t.Errorf("%s: got %s%s, want %s", c.manifest, out, errs, c.want)
		}
	}
}

func TestTopRefusesWhatNamesNoResource(t *testing.T) {
	_, errs, code := run(t, "loadline", "", "top", "-f", "testdata/proposal.json", "--resources", "memory,cpu=1")
	if code != exitUsage || !strings.Contains(errs, `--resources "cpu=1": must be names of resources`) {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// No colon is needed where no filter says anything.
func TestAFieldThatIsNotKnownIsToldWithoutAFilter(t *testing.T) {
	const cluster = `{apiVersion: v1, kind: Node, metadata: {name: n1},
  status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [{name: c, resources: {request: {cpu: 1}}}]}}
`
	out, errs, code := run(t, "loadline", cluster, "fit", "x", "-f", "-")
	if code != 0 || !strings.Contains(out, "not known   the pod states spec.containers[0].resources.request,") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

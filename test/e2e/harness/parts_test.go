package harness

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"sigs.k8s.io/yaml"
)

// The document of the score gives reasons for one weight, and that is the one in manifests/.
func TestDocumentAndManifestsAgreeOnTheWeight(t *testing.T) {
	weights, err := ManifestWeights()
	if err != nil {
		t.Fatal(err)
	}
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "scheduler.md"))
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("**Why weight %d.**", weights.Plugin); !strings.Contains(string(page), want) {
		t.Errorf("docs/scheduler.md does not say %q", want)
	}
	if weights.Extender != weights.Plugin { // a score of 10 times the weight times 10 is as much as one of 100
		t.Errorf("the extender has weight %d, the plugin %d", weights.Extender, weights.Plugin)
	}
}

// A watcher of a cluster for the engine may read, and nothing else. Invariant H6.
func TestTheGatewayMayOnlyRead(t *testing.T) {
	for _, folder := range []string{"extender", "expander"} {
		objects, err := ManifestObjects(folder)
		if err != nil {
			t.Fatal(err)
		}
		rules := 0
		for _, object := range objects {
			if !strings.HasSuffix(object.GetKind(), "Role") {
				continue
			}
			for _, rule := range list(object.Object, "rules") {
				rules++
				verbs, _ := rule["verbs"].([]any)
				for _, verb := range verbs {
					if verb != "get" && verb != "list" && verb != "watch" {
						t.Errorf("manifests/%s: %s %s may %v", folder, object.GetKind(), object.GetName(), verb)
					}
				}
				if len(verbs) == 0 {
					t.Errorf("manifests/%s: a rule without verbs", folder)
				}
			}
		}
		if rules == 0 {
			t.Errorf("manifests/%s holds no rule", folder)
		}
	}
}

func TestSiteReplacesOnlyWhatItNames(t *testing.T) {
	const config = `
leaderElection: {leaderElect: true, resourceName: x}
extenders:
- {urlPrefix: "http://127.0.0.1:10280", weight: 2}
profiles:
- pluginConfig:
  - {name: Other, args: {engineAddress: keep}}
  - {name: NodeResourcesLimitAware, args: {engineAddress: "unix:///run/a.sock", timeout: 20ms}}
`
	for _, c := range []struct {
		name string
		site Site
		want string
	}{
		{"Nothing", Site{}, config + "clientConnection: {}\n"},
		{"Everything", Site{Kubeconfig: "/k", EngineAddress: "inprocess", EngineTimeout: 500 * time.Millisecond,
			ExtenderURL: "http://127.0.0.1:1", QPS: 9, NoLeaderElection: true}, `
clientConnection: {kubeconfig: /k, qps: 9, burst: 9}
leaderElection: {leaderElect: false, resourceName: x}
extenders:
- {urlPrefix: "http://127.0.0.1:1", weight: 2}
profiles:
- pluginConfig:
  - {name: Other, args: {engineAddress: keep}}
  - {name: NodeResourcesLimitAware, args: {engineAddress: inprocess, timeout: 500ms}}
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.site.Apply([]byte(config))
			if err != nil {
				t.Fatal(err)
			}
			if want := canonical(t, c.want); canonical(t, string(got)) != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
	if _, err := (Site{}).Apply([]byte("a: 1\na: 2\n")); err == nil {
		t.Error("a field that occurs twice was accepted")
	}
}

func TestWithoutPlugin(t *testing.T) {
	got, err := WithoutPlugin([]byte(`
leaderElection: {leaderElect: true}
profiles:
- schedulerName: s
  plugins:
    multiPoint: {enabled: [{name: NodeResourcesLimitAware, weight: 2}, {name: Other}]}
    score: {disabled: [{name: ImageLocality}], enabled: [{name: NodeResourcesLimitAware, weight: 2}]}
  pluginConfig:
  - {name: Other, args: {a: 1}}
  - {name: NodeResourcesLimitAware, args: {timeout: 20ms}}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := canonical(t, `
leaderElection: {leaderElect: true}
profiles:
- schedulerName: s
  plugins:
    multiPoint: {enabled: [{name: Other}]}
    score: {disabled: [{name: ImageLocality}], enabled: []}
  pluginConfig:
  - {name: Other, args: {a: 1}}
`)
	if canonical(t, string(got)) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func canonical(t *testing.T, text string) string {
	t.Helper()
	var object any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	canonical, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(canonical)
}

func TestMetrics(t *testing.T) {
	const text = `
# TYPE skips counter
skips{reason="timeout",zone="a"} 2
skips{reason="timeout",zone="b"} 3
skips{reason="open"} 7
# TYPE took histogram
took_bucket{point="x",le="0.1"} 4
took_bucket{point="x",le="0.2"} 9
took_bucket{point="x",le="+Inf"} 10
took_sum{point="x"} 1.5
took_count{point="x"} 10
took_bucket{point="y",le="0.1"} 1
took_bucket{point="y",le="0.2"} 1
took_bucket{point="y",le="+Inf"} 1
took_sum{point="y"} 0.05
took_count{point="y"} 1
`
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader([]byte(text)))
	if err != nil {
		t.Fatal(err)
	}
	metrics := Metrics(families)
	if got := metrics.Sum("skips", Labels{"reason": "timeout"}); got != 5 {
		t.Errorf("sum of the timeouts %v, want 5", got)
	}
	if got := metrics.Sum("skips", Labels{"reason": "timeout", "zone": "b"}); got != 3 {
		t.Errorf("timeouts of zone b %v, want 3", got)
	}
	if got := metrics.Sum("absent", nil); got != 0 {
		t.Errorf("sum of a metric that is not there %v, want 0", got)
	}
	if got := metrics.By("skips", "reason"); len(got) != 2 || got["timeout"] != 5 || got["open"] != 7 {
		t.Errorf("by reason %v, want timeout 5 and open 7", got)
	}
	both := metrics.Histogram("took", nil)
	if both.Count != 11 || math.Abs(both.Sum-1.55) > 1e-9 || both.AtMost[0.1] != 5 {
		t.Errorf("histogram of both %+v, want 11 observations, 1.55 in all, 5 within 0.1", both)
	}
	x := metrics.Histogram("took", Labels{"point": "x"})
	// 0.15 lies in the bucket up to 0.2: only what is beyond that is certainly above it.
	for value, want := range map[float64]uint64{0.05: 6, 0.1: 6, 0.15: 1, 0.2: 1, 0.3: 0} {
		if got := x.Above(value); got != want {
			t.Errorf("%d observations above %v, want %d", got, value, want)
		}
	}
}

func TestVersionFlags(t *testing.T) {
	flags, err := versionFlags("v1.36.3")
	const pkg = "k8s.io/component-base/version"
	if want := "-X " + pkg + ".gitVersion=v1.36.3 -X " + pkg + ".gitMajor=1 -X " + pkg +
		".gitMinor=36"; flags != want || err != nil {
		t.Errorf("flags %q, error %v; want %q", flags, err, want)
	}
	if _, err := versionFlags("v1"); err == nil {
		t.Error("version v1 was accepted")
	}
}

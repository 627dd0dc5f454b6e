package tell

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const monitoringFolder = "../../../manifests/autoscaler/monitoring"

// Kinds of the Prometheus operator, as far as we use them: what is not here is a typing error.
type (
	serviceMonitor struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Selector  metav1.LabelSelector `json:"selector"`
			Endpoints []struct {
				Port     string `json:"port"`
				Path     string `json:"path"`
				Interval string `json:"interval"`
			} `json:"endpoints"`
		} `json:"spec"`
	}
	prometheusRule struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Groups []struct {
				Name  string  `json:"name"`
				Rules []alert `json:"rules"`
			} `json:"groups"`
		} `json:"spec"`
	}
	alert struct {
		Alert       string            `json:"alert"`
		Expr        string            `json:"expr"`
		For         string            `json:"for"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	}
	dashboard struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr, LegendFormat string }
		}
	}
)

func readMonitoring(t *testing.T, file string, into any) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(monitoringFolder, file))
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(file, ".json") {
		err = json.Unmarshal(content, into)
	} else {
		err = yaml.UnmarshalStrict(content, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

var described = regexp.MustCompile(`fqName: "(\w+)".*variableLabels: \{([\w,]*)\}`)

// scraped are the labels that Prometheus adds.
var scraped = []string{"job", "namespace", "pod"}

// servedMetrics returns the metrics of the autoscaler with their labels, as a query names them.
func servedMetrics(t *testing.T) map[string][]string {
	t.Helper()
	descriptions := make(chan *prometheus.Desc)
	go func() {
		NewMetrics("").Registry.Describe(descriptions)
		close(descriptions)
	}()
	// The metrics of component-base: see TestServesMetricsOfLibraries.
	served := map[string][]string{"process_resident_memory_bytes": scraped,
		"rest_client_requests_total": append([]string{"code", "host", "method"}, scraped...)}
	for d := range descriptions {
		parts := described.FindStringSubmatch(d.String())
		if parts == nil {
			t.Fatalf("cannot read %s", d)
		}
		labels := append(strings.FieldsFunc(parts[2], func(r rune) bool { return r == ',' }), scraped...)
		served[parts[1]] = labels
		served[parts[1]+"_bucket"] = append(slices.Clone(labels), "le")
	}
	return served
}

var (
	queried  = regexp.MustCompile(`\b((?:loadline|process|rest_client)_\w+)(?:\{(.*?)\})?`)
	matcher  = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"[^"]*"`)
	grouped  = regexp.MustCompile(`\b(?:by|on)\s*\(([\w, ]*)\)`)
	template = regexp.MustCompile(`\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}`)
)

// checkQuery returns what is wrong with a query, and with texts that are made of its result: metrics and labels that
// are not served.
func checkQuery(served map[string][]string, query string, texts ...string) (wrong []string) {
	if query == "" || strings.Count(query, "(") != strings.Count(query, ")") ||
		strings.Count(query, "[") != strings.Count(query, "]") {
		wrong = append(wrong, fmt.Sprintf("%q is no query", query))
	}
	var labels []string
	for _, name := range queried.FindAllStringSubmatch(query, -1) {
		of, ok := served[name[1]]
		if !ok {
			wrong = append(wrong, fmt.Sprintf("no metric %s, in %s", name[1], query))
		}
		labels = append(labels, of...)
		for _, m := range matcher.FindAllStringSubmatch(name[2], -1) {
			if !slices.Contains(of, m[1]) {
				wrong = append(wrong, fmt.Sprintf("metric %s has no label %s, in %s", name[1], m[1], query))
			}
		}
	}
	kept := labels
	for i, by := range grouped.FindAllStringSubmatch(query, -1) {
		names := strings.FieldsFunc(by[1], func(r rune) bool { return r == ',' || r == ' ' })
		for _, name := range names {
			if !slices.Contains(labels, name) {
				wrong = append(wrong, fmt.Sprintf("no metric has the label %s, in %s", name, query))
			}
		}
		if i == 0 {
			kept = names
		}
	}
	for _, text := range texts {
		for _, name := range template.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(kept, name[1]) {
				wrong = append(wrong, fmt.Sprintf("%q: no label %s is left by %s", text, name[1], query))
			}
		}
	}
	return wrong
}

// Each alert asks for metrics that there are, and says what it means and what to do.
func TestAlerts(t *testing.T) {
	served := servedMetrics(t)
	var rule prometheusRule
	readMonitoring(t, "30-rules.yaml", &rule)
	seen := map[string]bool{}
	for _, group := range rule.Spec.Groups {
		for _, a := range group.Rules {
			for _, wrong := range checkQuery(served, a.Expr, a.Annotations["summary"], a.Annotations["description"]) {
				t.Errorf("alert %s: %s", a.Alert, wrong)
			}
			if !strings.HasPrefix(a.Alert, "Loadline") || seen[a.Alert] || a.For == "" ||
				!slices.Contains([]string{"critical", "warning", "info"}, a.Labels["severity"]) {
				t.Errorf("alert %+v", a)
			}
			seen[a.Alert] = true
			for _, key := range []string{"summary", "description", "runbook"} {
				if a.Annotations[key] == "" {
					t.Errorf("alert %s has no %s", a.Alert, key)
				}
			}
		}
	}
	if len(seen) == 0 {
		t.Error("there are no alerts")
	}
}

// Each panel of the dashboard asks for metrics that there are, and has a place of its own.
func TestDashboard(t *testing.T) {
	served := servedMetrics(t)
	var d dashboard
	readMonitoring(t, "dashboard.json", &d)
	if len(d.Panels) == 0 {
		t.Fatal("there are no panels")
	}
	for i, panel := range d.Panels {
		p := panel.GridPos
		for _, other := range d.Panels[:i] {
			o := other.GridPos
			if panel.ID == other.ID || p.X < o.X+o.W && o.X < p.X+p.W && p.Y < o.Y+o.H && o.Y < p.Y+p.H {
				t.Errorf("panels %q and %q have the same place or number", panel.Title, other.Title)
			}
		}
		if p.X+p.W > 24 {
			t.Errorf("panel %q does not fit: %+v", panel.Title, p)
		}
		for _, target := range panel.Targets {
			for _, wrong := range checkQuery(served, target.Expr, target.LegendFormat) {
				t.Errorf("panel %q: %s", panel.Title, wrong)
			}
		}
	}
}

// The checks above find what is wrong.
func TestCheckQuery(t *testing.T) {
	served := map[string][]string{"loadline_a": {"x"}}
	for _, wrong := range [][]string{{"sum(loadline_b)"}, {`loadline_a{y="1"}`}, {"sum by (y) (loadline_a)"},
		{"sum(loadline_a"}, {""}, {"sum by (x) (loadline_a)", "{{y}}"}} {
		if got := checkQuery(served, wrong[0], wrong[1:]...); len(got) != 1 {
			t.Errorf("%q: found %q, want one error", wrong, got)
		}
	}
	if got := checkQuery(served, `sum by (x) (rate(loadline_a{x=~"1|2"}[5m])) > 1`, "{{ $labels.x }}"); len(got) > 0 {
		t.Errorf("found %q", got)
	}
}

// The files of kubectl apply -k are those that exist, and the monitor finds the port of the Service and of the pods.
func TestMonitoringFolder(t *testing.T) {
	var list struct {
		metav1.TypeMeta    `json:",inline"`
		Namespace          string
		Resources          []string
		ConfigMapGenerator []struct {
			Name    string
			Files   []string
			Options map[string]any
		}
	}
	readMonitoring(t, "kustomization.yaml", &list)
	named := append([]string{"kustomization.yaml"}, list.Resources...)
	for _, generated := range list.ConfigMapGenerator {
		named = append(named, generated.Files...)
	}
	entries, err := os.ReadDir(monitoringFolder)
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	for _, entry := range entries {
		there = append(there, entry.Name())
	}
	slices.Sort(named)
	if !slices.Equal(named, there) {
		t.Errorf("named are %q, there are %q", named, there)
	}
	var service v1.Service
	readMonitoring(t, "10-service.yaml", &service)
	var monitor serviceMonitor
	readMonitoring(t, "20-service-monitor.yaml", &monitor)
	content, err := os.ReadFile(filepath.Join(monitoringFolder, "../30-autoscaler.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	port, endpoint := service.Spec.Ports[0], monitor.Spec.Endpoints[0]
	if endpoint.Port != port.Name || endpoint.Path != "/metrics" ||
		!strings.Contains(string(content), "{name: "+port.TargetPort.StrVal+", containerPort: 8085}") {
		t.Errorf("endpoint %+v, port %+v", endpoint, port)
	}
	for key, value := range monitor.Spec.Selector.MatchLabels {
		if service.Labels[key] != value {
			t.Errorf("the Service has no label %s=%s", key, value)
		}
	}
}

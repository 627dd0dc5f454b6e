// Package alerts tests the alerts of manifests/ and the dashboards with Prometheus' own engine.
package alerts

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"sigs.k8s.io/yaml"
)

const folder = "../../../manifests/autoscaler/monitoring/"

// folders have alerts.
var folders = []string{folder, "../../../manifests/second-scheduler/monitoring/",
	"../../../manifests/extender/monitoring/", "../../../manifests/expander/monitoring/"}

type alert struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

func alerts(t *testing.T) map[string]alert {
	t.Helper()
	all := map[string]alert{}
	for _, folder := range folders {
		content, err := os.ReadFile(folder + "30-rules.yaml")
		if err != nil {
			t.Fatal(err)
		}
		var object struct {
			Spec struct{ Groups []struct{ Rules []alert } }
		}
		if err := yaml.Unmarshal(content, &object); err != nil {
			t.Fatal(err)
		}
		for _, g := range object.Spec.Groups {
			for _, r := range g.Rules {
				all[r.Alert] = r
			}
		}
	}
	return all
}

// A world is what Prometheus has scraped, a sample a minute, and the alert that fires in it and in no other way.
type world struct {
	series, fires string
	// after is when it has to fire; it must not a few minutes earlier.
	after time.Duration
	// labels are those of the alert, beside its name and severity.
	labels map[string]string
}

const leads = `loadline_autoscaler_leader{namespace="kube-system",pod="a"} 1x400
`

var worlds = []world{
	{`up 1x400`, "LoadlineAutoscalerWithoutLeader", 5 * time.Minute, nil},
	{leads + `loadline_autoscaler_last_loop_timestamp_seconds 0x400`, "LoadlineAutoscalerLoopStuck", 11 * time.Minute, nil},
	{leads + `loadline_autoscaler_errors_total{type="plan"} 0+1x400`, "LoadlineAutoscalerErrors", 15 * time.Minute,
		map[string]string{"type": "plan"}},
	{leads + `loadline_autoscaler_left_out_objects{kind="Pod"} 2x400`, "LoadlineObjectsLeftOut", 30 * time.Minute,
		map[string]string{"kind": "Pod"}},
	{leads + `loadline_autoscaler_unschedulable_pods 3x400
loadline_autoscaler_node_groups{held="none"} 0x400`, "LoadlinePodsWait", 15 * time.Minute, nil},
	{leads + `loadline_autoscaler_unschedulable_pods 3x400
loadline_autoscaler_node_groups{held="none"} 2x400`, "LoadlinePodsWaitLong", 30 * time.Minute, nil},
	{leads + `loadline_autoscaler_failed_scale_ups_total{reason="timeout"} 0+1x400`, "LoadlineScaleUpFails", 5 * time.Minute,
		map[string]string{"reason": "timeout"}},
	{leads + `loadline_autoscaler_node_groups{held="backoff"} 1x400`, "LoadlineNodeGroupsBackOff", time.Hour, nil},
	{leads + `loadline_autoscaler_cluster_safe_to_autoscale{namespace="kube-system",pod="a"} 0x400`, "LoadlineClusterUnsafe",
		15 * time.Minute, map[string]string{"namespace": "kube-system", "pod": "a"}},
	{leads + `loadline_autoscaler_scale_down_brake{brake="PodsVanished"} 1x400`, "LoadlineScaleDownBraked", 30 * time.Minute,
		map[string]string{"brake": "PodsVanished"}},
	{leads + `loadline_autoscaler_evicted_pods_total{eviction_result="budget"} 0+3x400
loadline_autoscaler_evicted_pods_total{eviction_result="accepted"} 0x400`, "LoadlineEvictionsRefused", 15 * time.Minute,
		map[string]string{"eviction_result": "budget"}},
	{leads + `loadline_autoscaler_scale_down_failed_nodes_total{result="NodeDeleteErrorFailedToDelete"} 0+1x400`,
		"LoadlineDrainsFail", 15 * time.Minute, map[string]string{"result": "NodeDeleteErrorFailedToDelete"}},
	{leads + `loadline_autoscaler_max_node_skip_eval_duration_seconds 2000x400`, "LoadlineNodesNotEvaluated", 15 * time.Minute,
		nil},
	{leads + `loadline_scheduler_breaker_open{namespace="s",pod="p",engine="e",view="v"} 1x400`,
		"LoadlineSchedulerEngineAway", 10 * time.Minute, map[string]string{"namespace": "s", "pod": "p"}},
	{leads + `loadline_scheduler_load_line_failures_total{reason="timeout"} 0+1x400`, "LoadlineSchedulerLineUnknown",
		26 * time.Minute, map[string]string{"reason": "timeout"}},
	{leads + `loadline_scheduler_panics_total{where="score"} 0x20 1x400`, "LoadlineSchedulerPanics", 22 * time.Minute, nil},
	{leads + `loadline_scheduler_unreadable_objects{engine="e",view="v"} 2x400`, "LoadlineSchedulerObjectsUnreadable",
		30 * time.Minute, nil},
	{leads + `loadline_decision_fallback_total{kind="rank",reason="deadline"} 0+1x400`, "LoadlineExpanderFallsBack",
		8 * time.Minute, map[string]string{"reason": "deadline"}},
	{leads + `loadline_requests_rejected_total{reason="size"} 0+1x400`, "LoadlineExpanderRejectsRequests",
		8 * time.Minute, map[string]string{"reason": "size"}},
	{leads + `loadline_rank_unpriced_options_total 0+1x400`, "LoadlineExpanderUnpricedOptions", 61 * time.Minute, nil},
	{leads + `loadline_tls_last_reload_successful 0x400`, "LoadlineExpanderCertificateUnreadable", 15 * time.Minute, nil},
	{leads + `loadline_engine_up{namespace="s",pod="p"} 0x400
loadline_engine_up{namespace="s",pod="q"} 1x400`, "LoadlineExtenderEngineAway", 10 * time.Minute,
		map[string]string{"namespace": "s", "pod": "p"}},
	{leads + `loadline_extender_skips_total{reason="deadline"} 0+1x400`, "LoadlineExtenderWithoutScores", 26 * time.Minute,
		map[string]string{"reason": "deadline"}},
	{leads + `loadline_extender_filter_requests_total{result="busy"} 0+1x400`, "LoadlineExtenderLineUnknown",
		26 * time.Minute, map[string]string{"result": "busy"}},
	{leads + `loadline_extender_requests_total{result="refused"} 0+1x400`, "LoadlineExtenderRejectsRequests",
		8 * time.Minute, map[string]string{"result": "refused"}},
	{leads + `loadline_extender_full_node_requests_total 0+1x400`, "LoadlineExtenderGetsWholeNodes", 16 * time.Minute, nil},
	{leads + `loadline_view_unreadable_objects 2x400`, "LoadlineExtenderObjectsUnreadable", 30 * time.Minute, nil},
	// A healthy cluster: pods wait now and then, some evictions are refused, others are not.
	{leads + `loadline_autoscaler_unschedulable_pods 0x5 2x5 0x390
loadline_autoscaler_node_groups{held="none"} 3x400
loadline_autoscaler_last_loop_timestamp_seconds 0+60x400
loadline_autoscaler_evicted_pods_total{eviction_result="budget"} 0+3x400
loadline_autoscaler_evicted_pods_total{eviction_result="accepted"} 0+1x400
loadline_autoscaler_errors_total{type="plan"} 0x400
loadline_autoscaler_cluster_safe_to_autoscale{namespace="kube-system",pod="a"} 1x400
loadline_scheduler_breaker_open{namespace="s",pod="p",engine="e",view="v"} 0x5 1x5 0x390
loadline_scheduler_load_line_failures_total{reason="timeout"} 0x400
loadline_scheduler_panics_total{where="score"} 0x400
loadline_decision_fallback_total{kind="rank",reason="deadline"} 0x400
loadline_tls_last_reload_successful 1x400
loadline_engine_up{namespace="s",pod="p"} 1x5 0x5 1x390
loadline_extender_skips_total{reason="deadline"} 0x5 8x395
loadline_extender_requests_total{result="scored"} 0+9x400
loadline_extender_filter_requests_total{result="answered"} 0+9x400
loadline_extender_full_node_requests_total 0x400
loadline_view_unreadable_objects 0x400
loadline_autoscaler_scale_down_brake{brake="PodsVanished"} 0x400`, "", 0, nil},
}

// Each alert fires in a world of its own, after its time and not before, and all others that fire there are expected
// too; none fires in a healthy one.
func TestAlertsFire(t *testing.T) {
	all := alerts(t)
	fired := map[string]bool{}
	for _, w := range worlds {
		t.Run(w.fires, func(t *testing.T) {
			first := map[string]time.Duration{}
			for name, a := range all {
				if when, with, ok := firstFiring(t, a, w.series); ok {
					first[name] = when
					if name == w.fires {
						checkLabels(t, w, with)
					}
				}
			}
			if w.fires == "" {
				if len(first) > 0 {
					t.Errorf("in a healthy cluster: %v", first)
				}
				return
			}
			fired[w.fires] = true
			when, ok := first[w.fires]
			if !ok || when < w.after || when > w.after+10*time.Minute {
				t.Errorf("fires after %v (%v), want %v", when, ok, w.after)
			}
			for other := range first {
				if other != w.fires && !(w.fires == "LoadlinePodsWait" && other == "LoadlinePodsWaitLong") {
					t.Errorf("%s fires too", other)
				}
			}
		})
	}
	for name := range all {
		if !fired[name] {
			t.Errorf("no world is about %s", name)
		}
	}
}

// firstFiring evaluates an alert minute by minute and returns when it first fires, with its labels.
func firstFiring(t *testing.T, a alert, series string) (time.Duration, labels.Labels, bool) {
	t.Helper()
	storage := promqltest.LoadedStorage(t, "load 1m\n"+indent(series))
	defer storage.Close()
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	expr, err := parse(a.Expr)
	if err != nil {
		t.Fatal(err)
	}
	hold, err := model.ParseDuration(a.For)
	if err != nil {
		t.Fatal(err)
	}
	rule := rules.NewAlertingRule(a.Alert, expr, time.Duration(hold), 0, labels.FromMap(a.Labels), labels.FromMap(a.Annotations),
		labels.EmptyLabels(), "", true, slog.New(slog.DiscardHandler))
	for minute := time.Duration(0); minute <= 2*time.Hour; minute += time.Minute {
		_, err := rule.Eval(context.Background(), 0, time.Unix(0, 0).Add(minute), rules.EngineQueryFunc(engine, storage),
			&url.URL{}, 0)
		if err != nil {
			t.Fatalf("%s: %v", a.Alert, err)
		}
		for _, active := range rule.ActiveAlerts() {
			if active.State == rules.StateFiring {
				if text := active.Annotations.Get("summary") + active.Annotations.Get("description"); strings.Contains(text, "error expanding") {
					t.Errorf("%s: %s", a.Alert, text)
				}
				return minute, active.Labels, true
			}
		}
	}
	return 0, labels.EmptyLabels(), false
}

func indent(series string) string {
	var out strings.Builder
	for line := range strings.Lines(series) {
		out.WriteString("  " + strings.TrimSpace(line) + "\n")
	}
	return out.String()
}

func checkLabels(t *testing.T, w world, got labels.Labels) {
	t.Helper()
	for name, value := range w.labels {
		if got.Get(name) != value {
			t.Errorf("label %s is %q, want %q", name, got.Get(name), value)
		}
	}
}

// Prometheus' own parser takes the queries of the dashboards.
func TestDashboardsParse(t *testing.T) {
	for _, component := range []string{"autoscaler", "usage"} {
		content, err := os.ReadFile("../../../manifests/" + component + "/monitoring/dashboard.json")
		if err != nil {
			t.Fatal(err)
		}
		var dashboard struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(content, &dashboard); err != nil {
			t.Fatal(err)
		}
		queries := 0
		for _, p := range dashboard.Panels {
			for _, target := range p.Targets {
				queries++
				if _, err := parse(target.Expr); err != nil {
					t.Errorf("%s, panel %q: %v", component, p.Title, err)
				}
			}
		}
		if queries < 5 {
			t.Errorf("%s: %d queries", component, queries)
		}
	}
}

func parse(query string) (parser.Expr, error) {
	return parser.NewParser(parser.Options{}).ParseExpr(query)
}

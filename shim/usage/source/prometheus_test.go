package source

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"loadline.dev/shim/usage/profile"
)

// Tests ask about one hour.
const (
	testFrom = int64(1_795_003_200) // a full hour
	testTo   = testFrom + 3600
)

// liar is a Prometheus that answers with what a test says.
type liar struct {
	// cpu and memory are the results of range queries: each a series.
	cpu, memory []string
	owners      string // the results of kube_pod_owner; empty: one of web-1
	limits      string // the results of kube_pod_container_resource_limits for CPU
	handler     http.HandlerFunc
}

const owned = `{"metric":{"namespace":"shop","pod":"web-1","owner_kind":"ReplicaSet","owner_name":"web-abc"},"value":[1,"1"]}`

func (l *liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.FormValue("query")
	if l.handler != nil && !strings.Contains(query, "kube_") {
		l.handler(w, r)
		return
	}
	result, form := "", "vector"
	switch {
	case strings.Contains(query, "kube_pod_owner"):
		if result = l.owners; result == "" {
			result = owned
		}
	case strings.Contains(query, "kube_replicaset_owner"):
		result = `{"metric":{"namespace":"shop","replicaset":"web-abc","owner_name":"web"},"value":[1,"1"]}`
	case strings.Contains(query, `kube_pod_container_resource_limits{resource="cpu"}`):
		result = l.limits
	case strings.Contains(query, "container_cpu_usage_seconds_total"):
		result, form = strings.Join(l.cpu, ","), "matrix"
	case strings.Contains(query, "container_memory_working_set_bytes"):
		result, form = strings.Join(l.memory, ","), "matrix"
	}
	fmt.Fprintf(w, `{"status":"success","data":{"resultType":%q,"result":[%s]}}`, form, result)
}

// series is one of a pod of namespace shop with a sample each five minutes.
func series(pod string, values ...string) string {
	var samples []string
	for i, value := range values {
		samples = append(samples, fmt.Sprintf(`[%d,%q]`, testFrom+int64(i)*300, value))
	}
	name, _ := json.Marshal(pod)
	return fmt.Sprintf(`{"metric":{"namespace":"shop","pod":%s},"values":[%s]}`, name, strings.Join(samples, ","))
}

// taken are the samples that a sink got.
type taken []string

func (t *taken) sink(w profile.Workload, of profile.Resource, seconds, amount int64) bool {
	switch {
	case of < profile.Resources:
		*t = append(*t, fmt.Sprintf("%v %d +%d %d", w, of, seconds-testFrom, amount))
	case amount > 0:
		*t = append(*t, fmt.Sprintf("%v %d +%d <= %d", w, of-profile.Resources, seconds-testFrom, amount))
	}
	return true
}

// ask asks a liar about the hour.
func (l *liar) ask(t *testing.T, change func(*PrometheusOptions)) (taken, Outcome, error) {
	t.Helper()
	server := httptest.NewServer(l)
	defer server.Close()
	options := DefaultPrometheus()
	options.Address, options.Timeout = server.URL, 5*time.Second
	if change != nil {
		change(&options)
	}
	p, err := NewPrometheus(options)
	if err != nil {
		t.Fatal(err)
	}
	var got taken
	out, err := p.Collect(context.Background(), testFrom, testTo, got.sink)
	return got, out, err
}

func TestPrometheus(t *testing.T) {
	good := []string{"Deployment shop/web 0 +0 500", "Deployment shop/web 1 +0 1000"}
	long := strings.Repeat("x", 300)
	tests := []struct {
		name        string
		cpu, memory []string
		owners      string
		want        taken
		dropped     map[Reason]int64
	}{
		{"AsItShouldBe", nil, nil, "", good, nil},
		{"RoundedUp", []string{series("web-1", "0.0001", "0")}, nil, "",
			taken{"Deployment shop/web 0 +0 1", "Deployment shop/web 0 +300 0", good[1]}, nil},
		{"NotANumber", []string{series("web-1", "0.5", "NaN", "+Inf", "-Inf")}, nil, "", good, map[Reason]int64{NotFinite: 3}},
		{"Negative", []string{series("web-1", "0.5", "-0.1")}, []string{series("web-1", "1000", "-1")}, "", good,
			map[Reason]int64{Negative: 2}},
		{"Absurd", []string{series("web-1", "0.5", "1e300", "1000001")}, []string{series("web-1", "1000", "1.2e18")}, "", good,
			map[Reason]int64{Absurd: 3}},
		{"Gaps", []string{`{"metric":{"namespace":"shop","pod":"web-1"},"values":[[` + fmt.Sprint(testFrom) + `,"0.5"],[` +
			fmt.Sprint(testFrom+3300) + `,"0.5"]]}`}, nil, "",
			taken{good[0], "Deployment shop/web 0 +3300 500", good[1]}, nil},
		{"OtherTimes", []string{fmt.Sprintf(`{"metric":{"namespace":"shop","pod":"web-1"},"values":[[%d,"9"],[%d,"0.5"],[%d,"9"]]}`,
			testFrom-7200, testFrom, testTo)}, nil, "", good, map[Reason]int64{OutsideWindow: 2}},
		{"MoreSamplesThanSteps", []string{series("web-1", "0.5"), series("web-1", slices.Repeat([]string{"9"}, 13)...)}, nil, "",
			good, map[Reason]int64{TooMany: 13}},
		{"HostileNames", []string{series("web-1", "0.5"), series("\x1b[2J", "1"), series("a/b", "1"), series(long, "1"), series("", "1")},
			[]string{series("web-1", "1000"), `{"metric":{},"values":[[1,"1"]]}`}, "", good, map[Reason]int64{BadName: 5}},
		{"WithoutOwner", []string{series("web-1", "0.5"), series("web-2", "9", "9")}, nil, "", good, map[Reason]int64{NoOwner: 2}},
		{"HostileOwners", nil, nil, owned + `,{"metric":{"namespace":"shop","pod":"web-2","owner_kind":"a@b","owner_name":"x"},"value":[1,"1"]}` +
			`,{"metric":{"namespace":"shop","pod":"web-3","owner_kind":"Node","owner_name":"x"},"value":[1,"1"]}`, good, nil},
		{"OwnedTwice", nil, nil, owned + `,{"metric":{"namespace":"shop","pod":"web-1","owner_kind":"StatefulSet","owner_name":"a"},"value":[1,"1"]}`,
			good, nil},
		{"AHistogram", []string{series("web-1", "0.5"), `{"metric":{"namespace":"shop","pod":"web-1"},"histograms":[[` + fmt.Sprint(testFrom) +
			`,{"count":"1","sum":"1","buckets":[]}]]}`}, nil, "", good, map[Reason]int64{Unreadable: 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := &liar{cpu: test.cpu, memory: test.memory, owners: test.owners}
			if l.cpu == nil {
				l.cpu = []string{series("web-1", "0.5")}
			}
			if l.memory == nil {
				l.memory = []string{series("web-1", "1000")}
			}
			got, out, err := l.ask(t, nil)
			if err != nil || !slices.Equal(got, test.want) || !maps.Equal(out.Dropped, test.dropped) {
				t.Errorf("samples %q, dropped %v, %v;\nwant %q, %v", got, out.Dropped, err, test.want, test.dropped)
			}
			if out.Samples != int64(len(test.want)) {
				t.Errorf("%d samples counted, want %d", out.Samples, len(test.want))
			}
		})
	}
}

func TestPrometheusTellsLimits(t *testing.T) {
	limit := func(pod, value string) string {
		return fmt.Sprintf(`{"metric":{"namespace":"shop","pod":%q},"value":[1,%q]}`, pod, value)
	}
	use := taken{"Deployment shop/web 0 +0 500", "Deployment shop/web 1 +0 1000"}
	for limits, want := range map[string]taken{
		limit("web-1", "1.25") + "," + limit("web-2", "9"): {use[0], "Deployment shop/web 0 +3599 <= 1250", use[1]},
		limit("web-1", "NaN"):                              use, limit("web-1", "-1"): use, "": use} {
		l := &liar{cpu: []string{series("web-1", "0.5")}, memory: []string{series("web-1", "1000")}, limits: limits}
		if got, _, err := l.ask(t, nil); err != nil || !slices.Equal(got, want) {
			t.Errorf("limits %s: samples %q, %v; want %q", limits, got, err, want)
		}
	}
}

func TestPrometheusThatFails(t *testing.T) {
	tests := []struct {
		name    string
		handler http.HandlerFunc
		owners  string
		want    string
	}{
		{"AnError", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, strings.Repeat("x", 5000), 500) }, "", "500"},
		{"NoJSON", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>\x1b[2J") }, "", ""},
		{"AnotherForm", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`)
		}, "", "not a matrix"},
		{"Slow", func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-time.After(time.Second): // a server notices late that its client has gone
			}
		}, "", "deadline"},
		{"ABodyWithoutEnd", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"status":"success","data":{"resultType":"matrix","result":[`)
			for r.Context().Err() == nil {
				if _, err := fmt.Fprint(w, series("web-1", "1"), ","); err != nil {
					return
				}
			}
		}, "", "too large"},
		{"ManySeries", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[%s]}}`,
				strings.Join(slices.Repeat([]string{series("web-1", "1")}, 101), ","))
		}, "", "101 series, at most 100"},
		{"Redirects", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		},
			"", "redirects"},
		{"NobodyOwns", nil, " ", "no pod has an owner"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := &liar{handler: test.handler, owners: test.owners}
			got, out, err := l.ask(t, func(o *PrometheusOptions) {
				o.MostSeries, o.MostBytes, o.Timeout = 100, 64<<10, 300*time.Millisecond
			})
			if err == nil || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 400 {
				t.Errorf("%v, want %q", err, test.want)
			}
			if len(got) != 0 || out.Samples != 0 {
				t.Errorf("%d samples with an error", len(got))
			}
		})
	}
}

func TestPrometheusIsAskedForLessWhereAnAnswerIsTooLarge(t *testing.T) {
	longest := int64(0)
	l := &liar{}
	l.handler = func(w http.ResponseWriter, r *http.Request) {
		var from, to float64
		fmt.Sscan(r.FormValue("start"), &from)
		fmt.Sscan(r.FormValue("end"), &to)
		var samples []string
		for at := int64(from); at <= int64(to); at += 300 {
			samples = append(samples, fmt.Sprintf(`[%d,"1"]`, at))
		}
		if len(samples) > 3 { // 12 are asked for, then 6, then 3
			fmt.Fprint(w, strings.Repeat(" ", 4096))
		} else {
			longest = max(longest, int64(len(samples)))
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"namespace":"shop","pod":"web-1"},"values":[%s]}]}}`,
			strings.Join(samples, ","))
	}
	got, _, err := l.ask(t, func(o *PrometheusOptions) { o.MostBytes = 4096 })
	if err != nil || len(got) != 24 || longest != 3 {
		t.Fatalf("%d samples, %v; want 24, in pieces of 3", len(got), err)
	}
	for i, sample := range got[:12] {
		if want := fmt.Sprintf("Deployment shop/web 0 +%d 1000", i*300); sample != want {
			t.Errorf("sample %d is %q, want %q", i, sample, want)
		}
	}
}

func TestAllMillionSeriesAreRefused(t *testing.T) {
	l := &liar{handler: func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"matrix","result":[`)
		for range 1_000_000 {
			if _, err := fmt.Fprint(w, `{"metric":{"namespace":"shop","pod":"web-1"},"values":[[1,"1"]]},`); err != nil {
				return
			}
		}
	}}
	got, _, err := l.ask(t, nil)
	if err == nil || len(got) > 0 {
		t.Errorf("%d samples, %v", len(got), err)
	}
}

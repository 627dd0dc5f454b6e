package source

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// listener notes the queries of a server.
type listener struct {
	liar
	mutex   sync.Mutex
	queries []string
}

func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mutex.Lock()
	l.queries = append(l.queries, r.FormValue("query"))
	l.mutex.Unlock()
	l.liar.ServeHTTP(w, r)
}

// collectFrom asks a server about the hour.
func collectFrom(t *testing.T, handler http.Handler, change func(*PrometheusOptions)) (taken, Outcome, error) {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	options := DefaultPrometheus()
	options.Address, options.Timeout = server.URL, 5*time.Second
	change(&options)
	p, err := NewPrometheus(options)
	if err != nil {
		t.Fatal(err)
	}
	var got taken
	out, err := p.Collect(t.Context(), testFrom, testTo, got.sink)
	return got, out, err
}

func TestTheSelectorIsOfAllQueries(t *testing.T) {
	l := &listener{liar: liar{cpu: []string{series("web-1", "0.5")}}}
	if _, _, err := collectFrom(t, l, func(o *PrometheusOptions) { o.Selector = `cluster="a"` }); err != nil {
		t.Fatal(err)
	}
	if len(l.queries) != 6 { // owners of pods and of ReplicaSets, two limits, two resources
		t.Errorf("%d queries, want 6: %q", len(l.queries), l.queries)
	}
	for _, query := range l.queries {
		if !strings.Contains(query, `", cluster="a"}`) {
			t.Errorf("without the selector: %s", query)
		}
	}
}

// ownersByHalf is a Prometheus whose list of owners is too large for more than half an hour. A pod runs in each half.
type ownersByHalf struct {
	liar
	asked int // for limits
}

func (o *ownersByHalf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.FormValue("query")
	if strings.Contains(query, "kube_") && strings.Contains(query, "[3600s]") {
		fmt.Fprint(w, strings.Repeat(" ", 8192))
		return // the client may ask for the first half already
	}
	var at float64
	fmt.Sscan(r.FormValue("time"), &at)
	pod := "web-1"
	if int64(at) > testFrom+1800 {
		pod = "web-2"
	}
	o.owners = strings.Replace(owned, "web-1", pod, 1)
	if strings.Contains(query, `resource="cpu"`) {
		o.asked++
		value := fmt.Sprintf(`{"metric":{"namespace":"shop","pod":"web-1"},"value":[1,"%d"]}`, 4-o.asked)
		o.liar.limits = value
	}
	o.liar.ServeHTTP(w, r)
}

func TestAListOfOwnersThatIsTooLargeIsAskedForInHalves(t *testing.T) {
	o := &ownersByHalf{liar: liar{cpu: []string{series("web-1", "0.5"), series("web-2", "0.25")}}}
	got, out, err := collectFrom(t, o, func(o *PrometheusOptions) { o.MostBytes = 4096 })
	want := taken{"Deployment shop/web 0 +0 500", "Deployment shop/web 0 +3599 <= 3000", "Deployment shop/web 0 +0 250"}
	if err != nil || !slices.Equal(got, want) || len(out.Dropped) > 0 {
		t.Errorf("samples %q, dropped %v, %v; want %q", got, out.Dropped, err, want)
	}
}

func TestWarningsOfOwnersCount(t *testing.T) {
	l := &liar{cpu: []string{series("web-1", "0.5")}}
	warns := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.FormValue("query"), "kube_pod_owner") {
			fmt.Fprintf(w, `{"status":"success","warnings":["partial\u001b"],"data":{"resultType":"vector","result":[%s]}}`,
				owned)
			return
		}
		l.ServeHTTP(w, r)
	})
	_, out, err := collectFrom(t, warns, func(*PrometheusOptions) {})
	if err != nil || !slices.Equal(out.Warnings, []string{"partial\ufffd"}) {
		t.Errorf("warnings %q, %v", out.Warnings, err)
	}
}

func TestAnHourWithoutOwnersHasNoData(t *testing.T) {
	_, out, err := (&liar{owners: " "}).ask(t, nil)
	if !errors.Is(err, ErrNoData) || out.Samples > 0 {
		t.Errorf("%v, want one that says that there is no data", err)
	}
	broken := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadGateway) })
	if _, _, err := collectFrom(t, broken, func(*PrometheusOptions) {}); err == nil || errors.Is(err, ErrNoData) {
		t.Errorf("a server that fails: %v", err)
	}
}

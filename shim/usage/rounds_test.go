package usage

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"loadline.dev/shim/usage/profile"
	"loadline.dev/shim/usage/source"
)

// testNow is the time of rounds: two minutes and a half after a full hour.
var testNow = time.Date(2026, 11, 18, 12, 2, 30, 0, time.UTC)

// server is a Prometheus that has of each hour what a test says. Hours are counted back from testNow: 1 is the newest.
type server struct {
	ownerless func(hour int64) bool // kube_pod_owner has nothing
	fails     func(hour int64) bool
	pods      func(hour int64) int // pods with series; each uses half a core; nil: three
	warns     func(hour int64) bool
	cpu       string // the value of samples of CPU; empty: 0.5
	asked     []int64
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var to float64
	fmt.Sscan(r.FormValue("time")+r.FormValue("end"), &to)
	hour := (testNow.Unix()-int64(to))/3600 + 1
	if strings.Contains(r.FormValue("query"), "kube_pod_owner") {
		s.asked = append(s.asked, hour)
	}
	if s.fails != nil && s.fails(hour) {
		http.Error(w, "no", http.StatusInternalServerError)
		return
	}
	warnings := ""
	if s.warns != nil && s.warns(hour) {
		warnings = `,"warnings":["partial response: store x is down"]`
	}
	form, result := s.result(r, hour)
	fmt.Fprintf(w, `{"status":"success","data":{"resultType":%q,"result":[%s]}%s}`, form, strings.Join(result, ","),
		warnings)
}

// result is what a query about an hour gives.
func (s *server) result(r *http.Request, hour int64) (form string, result []string) {
	query, pods := r.FormValue("query"), 3
	if s.pods != nil {
		pods = s.pods(hour)
	}
	switch {
	case strings.Contains(query, "kube_pod_owner"):
		for i := range 3 {
			if s.ownerless == nil || !s.ownerless(hour) {
				result = append(result, fmt.Sprintf(`{"metric":{"namespace":"shop","pod":"web-%d","owner_kind":"Deployment",`+
					`"owner_name":"web"},"value":[1,"1"]}`, i))
			}
		}
		return "vector", result
	case strings.Contains(query, "kube_"):
		return "vector", nil
	}
	value := "1000"
	if strings.Contains(query, "cpu") {
		if value = s.cpu; value == "" {
			value = "0.5"
		}
	}
	var from float64
	fmt.Sscan(r.FormValue("start"), &from)
	for i := range pods {
		result = append(result, fmt.Sprintf(`{"metric":{"namespace":"shop","pod":"web-%d"},"values":[[%d,%q]]}`,
			i, int64(from),
			value))
	}
	return "matrix", result
}

// collector returns one that asks the server.
func (s *server) collector(t *testing.T) *Collector {
	t.Helper()
	http := httptest.NewServer(s)
	t.Cleanup(http.Close)
	options := source.DefaultPrometheus()
	options.Address = http.URL
	from, err := source.NewPrometheus(options)
	if err != nil {
		t.Fatal(err)
	}
	return New(DefaultOptions(), from, nil, NewMetrics("test"))
}

// round asks once, so long after testNow, and checks how it ends.
func roundAfter(t *testing.T, c *Collector, later time.Duration, complete bool, want string) {
	t.Helper()
	got, err := c.Round(t.Context(), testNow.Add(later))
	if got != complete || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("after %v: complete %v, %v; want %v, %q", later, got, err, complete, want)
	}
}

// only returns the one profile.
func only(t *testing.T, c *Collector) profile.Profile {
	t.Helper()
	profiles := c.Profiles(testNow)
	if len(profiles) != 1 {
		t.Fatalf("%d profiles", len(profiles))
	}
	return profiles[0]
}

func TestAnHourWithoutOwnersIsNoFailure(t *testing.T) {
	for _, test := range []struct {
		name      string
		ownerless func(hour int64) bool
		samples   int64 // three an hour, of 167 hours: the oldest one that is asked about counts no more
	}{
		{"AGap", func(hour int64) bool { return hour > 20 && hour <= 26 }, 3 * 161},
		{"AYoungPrometheus", func(hour int64) bool { return hour > 80 }, 3 * 80},
		{"AnOldOne", func(int64) bool { return false }, 3 * 167},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &server{ownerless: test.ownerless}
			c := s.collector(t)
			roundAfter(t, c, 0, true, "")
			if p := only(t, c); p.Samples != test.samples || len(s.asked) != 168 {
				t.Errorf("%d samples, asked %d times; want %d, 168", p.Samples, len(s.asked), test.samples)
			}
		})
	}
}

func TestNoOwnerInAnyHourIsAnError(t *testing.T) {
	s := &server{ownerless: func(int64) bool { return true }}
	c := s.collector(t)
	roundAfter(t, c, 0, true, "no pod has an owner: is there kube_pod_owner of kube-state-metrics")
	s.asked = nil
	roundAfter(t, c, time.Minute, true, "none of 168 hours has data")
	if !slices.Equal(s.asked, []int64{1}) {
		t.Errorf("asked again about %v, want the newest hour alone", s.asked)
	}
	s.ownerless, s.asked = nil, nil // now it has all
	roundAfter(t, c, 10*time.Minute, true, "")
	if p := only(t, c); p.Samples != 3*167 || len(s.asked) != 168 {
		t.Errorf("%d samples, asked %d times", p.Samples, len(s.asked))
	}
}

func TestHoursThatAlwaysFailHideNoOther(t *testing.T) {
	s := &server{fails: func(hour int64) bool { return hour >= 2 && hour <= 9 }}
	c := s.collector(t)
	for minute := range 3 {
		s.asked = nil
		roundAfter(t, c, time.Duration(minute)*time.Minute, false, "500")
	}
	if p := only(t, c); p.Samples != 3*(167-8) {
		t.Errorf("%d samples, want those of all hours that do not fail: %d", p.Samples, 3*(167-8))
	}
	s.fails = nil
	roundAfter(t, c, 3*time.Minute, true, "")
	if p := only(t, c); p.Samples != 3*167 {
		t.Errorf("%d samples, want %d", p.Samples, 3*167)
	}
	s.fails, s.asked = func(int64) bool { return true }, nil
	roundAfter(t, c, 24*time.Hour, false, "500")
	if len(s.asked) != mostFailures {
		t.Errorf("a server that is away was asked %d times", len(s.asked))
	}
}

func TestAnAnswerWithWarningsIsAskedForAgain(t *testing.T) {
	s := &server{warns: func(hour int64) bool { return hour == 5 || hour == 7 }, pods: func(hour int64) int {
		return map[int64]int{5: 1, 7: 0}[hour] + map[bool]int{true: 3}[hour != 5 && hour != 7]
	}}
	c := s.collector(t)
	roundAfter(t, c, 0, true, "")
	if p := only(t, c); p.Samples != 3*165+1 {
		t.Errorf("%d samples, want %d", p.Samples, 3*165+1)
	}
	s.asked = nil
	roundAfter(t, c, 9*time.Minute, true, "")
	if len(s.asked) > 0 {
		t.Errorf("asked for %v after nine minutes", s.asked)
	}
	s.pods, s.warns = nil, func(hour int64) bool { return hour == 5 }
	for range 5 { // three times, and no more
		roundAfter(t, c, 10*time.Minute, true, "")
		for _, s := range c.spans {
			s.at = s.at.Add(-time.Hour) // an hour passes, but those of the server stay where they are
		}
	}
	if want := []int64{5, 7, 5, 5}; !slices.Equal(s.asked, want) {
		t.Errorf("asked for %v, want %v", s.asked, want)
	}
	if p := only(t, c); p.Samples != 3*167 {
		t.Errorf("%d samples, want each once: %d", p.Samples, 3*167)
	}
}

func TestAnEmptyHourBesideDataIsAskedForAgain(t *testing.T) {
	// 30 has no data of its own; 100 and beyond is before there was anything.
	s := &server{pods: func(hour int64) int { return map[bool]int{true: 3}[hour != 30 && hour < 100] }}
	c := s.collector(t)
	roundAfter(t, c, 0, true, "")
	s.asked = nil
	roundAfter(t, c, 10*time.Minute, true, "")
	if want := []int64{30, 100}; !slices.Equal(s.asked, want) {
		t.Errorf("asked for %v, want %v", s.asked, want)
	}
	s.pods, s.asked = nil, nil
	roundAfter(t, c, 30*time.Minute, true, "")
	if p := only(t, c); p.Samples != 3*167 || len(s.asked) != 1+69 {
		t.Errorf("%d samples, asked for %v", p.Samples, s.asked)
	}
}

// onlyCPU is a source of which memory is not taken.
type onlyCPU struct{ source.Source }

func (o onlyCPU) Collect(ctx context.Context, from, to int64, sink source.Sink) (source.Outcome, error) {
	memory := int64(0)
	out, err := o.Source.Collect(ctx, from, to, func(w profile.Workload, of profile.Resource, seconds, amount int64) bool {
		if of == profile.Memory {
			memory++
			return true
		}
		return sink(w, of, seconds, amount)
	})
	out.Samples -= memory
	return out, err
}

func TestWhereAllIsLeftOutTheErrorSaysWhy(t *testing.T) {
	c := (&server{cpu: "NaN", pods: func(hour int64) int { return map[bool]int{true: 2}[hour < 3] }}).collector(t)
	roundAfter(t, c, 0, true, "")
	if c.left.outcome.Dropped[source.NotFinite] != 4 || c.left.outcome.Examples[source.NotFinite] != "pod shop/web-0" {
		t.Errorf("left out %+v", c.left.outcome)
	}
	s := &server{}
	c = s.collector(t)
	c.source = onlyCPU{c.source}
	s.cpu = "-1"
	roundAfter(t, c, 0, true, "all samples were left out: 504 negative, such as pod shop/web-0")
}

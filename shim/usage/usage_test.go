package usage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"loadline.dev/shim/usage/profile"
	"loadline.dev/shim/usage/source"
	"loadline.dev/shim/usage/store"
)

var web = profile.Workload{Namespace: "shop", Kind: "Deployment", Name: "web"}

// someSource answers with one sample of each resource in each hour that it is asked about, of as many millicores and
// bytes as the hour of the day and one.
type someSource struct {
	span  int64
	fails func(from int64) error
	asked []int64
	mute  bool // it answers, but has no sample
}

func (s *someSource) Span() int64 { return s.span }

func (s *someSource) Collect(_ context.Context, from, to int64, sink source.Sink) (out source.Outcome, err error) {
	s.asked = append(s.asked, from)
	if s.fails != nil {
		if err := s.fails(from); err != nil {
			return out, err
		}
	}
	at := from
	if s.span == 0 {
		at = to - 30
	}
	if !s.mute {
		for _, of := range []profile.Resource{profile.CPU, profile.Memory} {
			sink(web, of, at, at/3600%24+1)
			out.Samples++
		}
	}
	return out, nil
}

func TestAsksForTheWholePastOnceAndThenEachHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &someSource{span: 3600}
		client := fake.NewClientset()
		ctx, cancel := context.WithCancel(t.Context())
		options := DefaultOptions()
		options.Namespace = "ll"
		c := New(options, s, client, NewMetrics("test"))
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		synctest.Wait()
		// synctest begins at midnight: the hour that just ended is still waited for.
		if now := time.Now().Unix(); len(s.asked) != 168 || s.asked[0] != now-2*3600 || s.asked[167] != now-169*3600 {
			t.Errorf("asked %d times, from %d to %d before now", len(s.asked), now-s.asked[0], now-s.asked[len(s.asked)-1])
		}
		head, profiles, problems, err := store.Read(ctx, client, "ll")
		if err != nil || len(problems) > 0 || len(profiles) != 1 || head.Collected != time.Now().Unix() || head.CarriedUntil != 0 {
			t.Fatalf("%+v, %d profiles, %v, %v", head, len(profiles), problems, err)
		}
		for hour := range profile.Hours {
			if got := profiles[0].Day[profile.CPU][hour]; got != int64(hour)+1 {
				t.Errorf("%d millicores at %d, want %d", got, hour, hour+1)
			}
		}
		if profiles[0].Days != 6 { // the oldest hour counts no more: the hour of now is not over
			t.Errorf("%d days", profiles[0].Days)
		}
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if len(s.asked) != 169 || s.asked[168] != time.Now().Truncate(time.Hour).Unix()-3600 {
			t.Errorf("asked %d times after the hour", len(s.asked))
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if head, _, _, _ := store.Read(ctx, client, "ll"); time.Now().Unix()-head.Collected > 3600 {
			t.Errorf("last written %d s ago", time.Now().Unix()-head.Collected)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestAnHourThatFailedIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := time.Now().Unix() - 5*3600
		s := &someSource{span: 3600, fails: func(from int64) error {
			if from == bad {
				return errors.New("no")
			}
			return nil
		}}
		c := New(DefaultOptions(), s, nil, NewMetrics("test"))
		complete, err := c.Round(t.Context(), time.Now())
		if complete || err == nil || !strings.Contains(err.Error(), "1999-12-31T19:00:00Z to 1999-12-31T20:00:00Z: no") || len(s.asked) != 168 {
			t.Errorf("complete %v, %v, asked %d times", complete, err, len(s.asked))
		}
		s.fails, s.asked = nil, nil
		if complete, err := c.Round(t.Context(), time.Now()); !complete || err != nil || !slices.Equal(s.asked, []int64{bad}) {
			t.Errorf("complete %v, %v, asked for %v", complete, err, s.asked)
		}
		s.fails, s.asked = func(int64) error { return errors.New("away") }, nil
		if _, err := c.Round(t.Context(), time.Now().Add(24*time.Hour)); err == nil || len(s.asked) != mostFailures {
			t.Errorf("a server that is away was asked %d times, %v", len(s.asked), err)
		}
	})
}

func TestWritesNothingWhereThereAreNoProfiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		c := New(DefaultOptions(), &someSource{span: 3600, mute: true}, client, NewMetrics("test"))
		complete, err := c.Round(t.Context(), time.Now())
		if c.due(time.Now(), complete) || err == nil || !strings.Contains(err.Error(), "none of 168 hours has data") {
			t.Errorf("it is time to publish nothing, %v", err)
		}
		if err := c.Publish(t.Context(), time.Now()); err == nil || !strings.Contains(err.Error(), "there is no sample") {
			t.Error(err)
		}
		if list, _ := client.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{}); len(list.Items) > 0 {
			t.Errorf("%d ConfigMaps", len(list.Items))
		}
	})
}

// written returns profiles as an earlier process has written them.
func written(t *testing.T, client kubernetes.Interface, carriedUntil int64) {
	p := profile.Profile{Workload: web, Samples: 5, Days: 6, First: 1, Last: time.Now().Unix()}
	for of := range p.Day {
		for hour := range p.Day[of] {
			p.Day[of][hour] = 1000
		}
	}
	head := store.Head{Collected: time.Now().Unix() - 3600, CarriedUntil: carriedUntil, Days: 7, Percent: 90}
	shards, _ := store.Encode(&head, []profile.Profile{p})
	if err := store.Write(t.Context(), client, "ll", shards); err != nil {
		t.Fatal(err)
	}
}

func TestProfilesOfAnEarlierProcessCountUntilTheyAreTooOld(t *testing.T) {
	const day = int64(86400)
	for _, test := range []struct {
		name string
		span int64
		// carriedUntil is what the earlier process says, and until what follows, in seconds from now; 0: nothing.
		carriedUntil, until int64
	}{
		{"TheFirstRestart", 0, 0, 7*day - 3600},
		{"ASecondOne", 0, 2 * day, 2 * day},
		{"AfterTheyHaveGone", 0, -1, 7*day - 3600},
		{"ASourceThatKnowsThePast", 3600, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, now := fake.NewClientset(), time.Now().Unix()
				carried := int64(0)
				if test.carriedUntil != 0 {
					carried = now + test.carriedUntil
				}
				written(t, client, carried)
				options := DefaultOptions()
				options.Namespace = "ll"
				c := New(options, &someSource{span: test.span}, client, NewMetrics("test"))
				c.carry(t.Context())
				if got := max(c.carriedUntil-now, 0); got != test.until {
					t.Errorf("they count for %d s more, want %d", got, test.until)
				}
				if test.until == 0 {
					return
				}
				time.Sleep(time.Duration(test.until)*time.Second - time.Second)
				if _, err := c.Round(t.Context(), time.Now()); err != nil {
					t.Fatal(err)
				}
				hour := time.Now().UTC().Hour() // the last second of an hour; what it was asked about is of the next one
				next := (hour + 1) % 24
				for _, want := range []int64{1000, int64(next) + 1} {
					if p := c.Profiles(time.Now()); len(p) != 1 || p[0].Day[profile.CPU][next] != want {
						t.Errorf("%+v, want %d at %d", p, want, next)
					}
					time.Sleep(time.Second)
				}
			})
		})
	}
}

func TestMetricsAndProbes(t *testing.T) {
	c := New(DefaultOptions(), &someSource{span: 3600}, fake.NewClientset(), NewMetrics("test"))
	get := func(path string) string {
		w := httptest.NewRecorder()
		c.handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		body, _ := io.ReadAll(w.Result().Body)
		return fmt.Sprint(w.Code, " ", string(body))
	}
	if got := get("/readyz"); !strings.HasPrefix(got, "503") || !strings.Contains(got, "not answered yet") {
		t.Error(got)
	}
	if _, err := c.Round(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := c.Publish(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	out := source.Outcome{Dropped: map[source.Reason]int64{source.NotFinite: 3}}
	c.metrics.count(&out, errors.New("no"), time.Second)
	all := get("/metrics")
	for _, want := range []string{"loadline_usage_samples_total 336\n", `loadline_usage_dropped_samples_total{reason="notFinite"} 3` + "\n",
		`loadline_usage_dropped_samples_total{reason="negative"} 0` + "\n", `loadline_usage_errors_total{type="ask"} 1` + "\n",
		"loadline_usage_profiles 1\n", "loadline_usage_pending_seconds 0\n", "loadline_usage_left_out_profiles 0\n"} {
		if !strings.Contains(all, want) {
			t.Errorf("the metrics lack %q", want)
		}
	}
	for _, path := range []string{"/readyz", "/livez", "/healthz"} {
		if got := get(path); got != "200 ok" {
			t.Errorf("%s: %s", path, got)
		}
	}
	c.vitals.roundBegan.Store(time.Now().Add(-time.Hour).UnixNano())
	if got := get("/livez"); !strings.HasPrefix(got, "503") {
		t.Error(got)
	}
}

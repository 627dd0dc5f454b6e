package autoscaler

import (
	"net/http"
	"net/http/pprof"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/clientgo/leaderelection" // leader_election_*
	_ "k8s.io/component-base/metrics/prometheus/restclient"              // rest_client_*

	"loadline.dev/shim/internal/health"
	"loadline.dev/shim/internal/ports"
)

// maxConnections bounds the connections of the port, and maxOfClient those of one client. Probes and whoever scrapes
// metrics need a few.
const (
	maxConnections = 256
	maxOfClient    = 32
)

// serve answers probes, metrics and people, if that is configured.
func (a *Autoscaler) serve() (closeServer func(), err error) {
	if a.config.BindAddress == "" {
		return func() {}, nil
	}
	return ports.Serve(a.config.BindAddress, a.handler(), maxConnections, maxOfClient)
}

// handler answers on all paths.
func (a *Autoscaler) handler() http.Handler {
	mux := http.NewServeMux()
	health.Handle(mux, a.alive, a.readiness)
	mux.Handle("GET /health-check", health.Handler(a.alive)) // Cluster Autoscaler's name, which its charts probe
	// The registry of component-base has what client-go counts, the process and Go's runtime.
	mux.Handle("GET /metrics", ports.Metrics(prometheus.Gatherers{a.metrics.Registry, legacyregistry.DefaultGatherer}))
	a.pages.Add(mux)
	if a.config.Profiling {
		a.addProfiles(mux)
	}
	return mux
}

// addProfiles adds what Go's profiler serves. Profiles show function names and command lines, and cost time: they are
// guarded as the pages are.
func (a *Autoscaler) addProfiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/", a.pages.Guarded(pprof.Index))
	mux.HandleFunc("GET /debug/pprof/cmdline", a.pages.Guarded(pprof.Cmdline))
	mux.HandleFunc("GET /debug/pprof/profile", a.pages.Guarded(pprof.Profile))
	mux.HandleFunc("GET /debug/pprof/symbol", a.pages.Guarded(pprof.Symbol))
	mux.HandleFunc("GET /debug/pprof/trace", a.pages.Guarded(pprof.Trace))
}

// vitals are what probes ask for.
type vitals struct {
	leads     atomic.Bool
	loopBegan atomic.Int64 // of the last loop, in nanoseconds since 1970; 0: there was none
	planned   atomic.Bool  // a loop has ended without an error
	// missing is which rights are missing; nil or empty: none is, as far as is known.
	missing atomic.Pointer[string]
}

// alive fails when a loop has hung for so long that only a restart helps.
func (a *Autoscaler) alive() []health.Check {
	began := a.vitals.loopBegan.Load()
	if !a.vitals.leads.Load() {
		began = 0
	}
	return []health.Check{health.Stuck("loop", began, a.config.MaxInactivity.Duration+a.config.ScanInterval.Duration)}
}

// readiness fails until the cluster is listed, and on a leader until a loop has ended well.
func (a *Autoscaler) readiness() []health.Check {
	listed, plan := health.Check{Name: "cluster"}, health.Check{Name: "plan"}
	if !a.cluster.Ready() {
		listed.Problem = "not listed yet"
	}
	if a.vitals.leads.Load() && !a.vitals.planned.Load() {
		plan.Problem = "no loop has ended without an error yet"
	}
	missing := textOf(&a.vitals.missing)
	for _, check := range []*health.Check{&listed, &plan} {
		if check.Problem != "" && missing != "" {
			check.Problem += ": " + missing
		}
	}
	return []health.Check{listed, plan}
}

// textOf returns the text that is stored, if any.
func textOf(stored *atomic.Pointer[string]) string {
	if stored == nil || stored.Load() == nil {
		return ""
	}
	return *stored.Load()
}

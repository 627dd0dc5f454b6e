package autoscaler

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/clientgo/leaderelection" // leader_election_*
	_ "k8s.io/component-base/metrics/prometheus/restclient"              // rest_client_*
	"k8s.io/klog/v2"

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
	listener, err := net.Listen("tcp", a.config.BindAddress)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: a.handler(), ReadHeaderTimeout: 2 * time.Second, ReadTimeout: 5 * time.Second,
		WriteTimeout: 5 * time.Second, IdleTimeout: ports.IdleTime, MaxHeaderBytes: 16 << 10}
	go func() {
		if err := server.Serve(ports.Limit(listener, maxConnections, maxOfClient)); !errors.Is(err, http.ErrServerClosed) {
			klog.ErrorS(err, "Probes are not answered any more")
		}
	}()
	return func() { server.Close() }, nil
}

// handler answers on all paths.
func (a *Autoscaler) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /livez", health.Handler(a.alive))
	mux.Handle("GET /healthz", health.Handler(a.alive))      // the older name
	mux.Handle("GET /health-check", health.Handler(a.alive)) // Cluster Autoscaler's name, which its charts probe
	mux.Handle("GET /readyz", health.Handler(a.readiness))
	// The registry of component-base has what client-go counts, the process and Go's runtime.
	all := prometheus.Gatherers{a.metrics.Registry, legacyregistry.DefaultGatherer}
	mux.Handle("GET /metrics", promhttp.HandlerFor(all, promhttp.HandlerOpts{MaxRequestsInFlight: ports.MostGathering}))
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
}

// alive fails when a loop has hung for so long that only a restart helps.
func (a *Autoscaler) alive() []health.Check {
	c := health.Check{Name: "loop"}
	if began := a.vitals.loopBegan.Load(); a.vitals.leads.Load() && began != 0 {
		if since := time.Since(time.Unix(0, began)); since > stuckAfter+a.config.ScanInterval.Duration {
			c.Problem = fmt.Sprintf("stuck for %v", since.Round(time.Second))
		}
	}
	return []health.Check{c}
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
	return []health.Check{listed, plan}
}

package extender

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/klog/v2"

	"loadline.dev/shim/internal/health"
	"loadline.dev/shim/internal/ports"
)

// PrioritizePath is where the prioritize verb is answered: urlPrefix http://HOST:PORT and prioritizeVerb prioritize in
// the scheduler's configuration.
const PrioritizePath = "/prioritize"

const (
	readHeaderTimeout = 2 * time.Second
	requestTimeout    = 5 * time.Second
	maxHeaderBytes    = 16 << 10
	// idleTimeout outlives the 90 s for which Go's clients keep an idle connection, so that no request meets a
	// connection that is being closed.
	idleTimeout = 2 * time.Minute
)

func newServer(handler http.Handler, idleTime time.Duration) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      requestTimeout,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxReading},
	}
}

func listen(address string, each int) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return ports.Limit(listener, maxConnections, each), nil
}

// handler serves all paths. With `certificateNeeded`, only probes get an answer without a client certificate.
func (g *Gateway) handler(certificateNeeded bool) http.Handler {
	mux := http.NewServeMux()
	guard := func(next http.Handler) http.Handler { return next }
	if certificateNeeded {
		guard = requireCertificate
	}
	mux.Handle("POST "+PrioritizePath, guard(&g.prioritizer))
	if g.filter != nil {
		mux.Handle("POST "+FilterPath, guard(g.filter))
	}
	g.addHealth(mux, guard)
	return mux
}

// healthHandler serves all but the verb.
func (g *Gateway) healthHandler() http.Handler {
	mux := http.NewServeMux()
	g.addHealth(mux, func(next http.Handler) http.Handler { return next })
	return mux
}

func (g *Gateway) addHealth(mux *http.ServeMux, guard func(http.Handler) http.Handler) {
	mux.Handle("GET /livez", health.Handler(g.alive))
	mux.Handle("GET /healthz", health.Handler(g.alive)) // the older name
	mux.Handle("GET /readyz", health.Handler(g.readiness))
	mux.Handle("GET /metrics",
		guard(promhttp.HandlerFor(g.metrics.registry, promhttp.HandlerOpts{ErrorLog: errorLog{},
			MaxRequestsInFlight: ports.MostGathering})))
}

func requireCertificate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
			http.Error(w, "a client certificate is required", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// errorLog passes on what the metrics handler cannot tell its client.
type errorLog struct{}

func (errorLog) Println(v ...any) {
	klog.ErrorS(nil, "Metrics could not be gathered", "cause", fmt.Sprint(v...))
}

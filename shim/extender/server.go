package extender

import (
	"net/http"
	"time"

	"loadline.dev/shim/internal/health"
	"loadline.dev/shim/internal/ports"
)

// PrioritizePath is where the prioritize verb is answered: urlPrefix http://HOST:PORT and prioritizeVerb prioritize in
// the scheduler's configuration.
const PrioritizePath = "/prioritize"

// idleTimeout outlives the 90 s for which Go's clients keep an idle connection, so that no request meets a connection
// that is being closed.
const idleTimeout = 2 * time.Minute

func newServer(handler http.Handler, idleTime time.Duration) *http.Server {
	server := ports.NewServer(handler, idleTime)
	server.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: maxReading}
	return server
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
	health.Handle(mux, g.alive, g.readiness)
	mux.Handle("GET /metrics", guard(ports.Metrics(g.metrics.registry)))
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

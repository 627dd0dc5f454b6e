// Package health answers probes in the form of other Kubernetes components.
package health

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Check is one line of an answer.
type Check struct {
	Name    string
	Problem string // empty when all is well
}

// Handler answers "ok", or, when something is wrong or ?verbose is asked for, a line per check.
func Handler(checks func() []Check) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var lines strings.Builder
		code := http.StatusOK
		for _, c := range checks() {
			if c.Problem == "" {
				fmt.Fprintf(&lines, "[+]%s ok\n", c.Name)
				continue
			}
			code = http.StatusServiceUnavailable
			fmt.Fprintf(&lines, "[-]%s failed: %s\n", c.Name, c.Problem)
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(code)
		if code == http.StatusOK && !r.URL.Query().Has("verbose") {
			fmt.Fprint(w, "ok")
			return
		}
		fmt.Fprint(w, lines.String())
	})
}

// Stuck is a check of rounds of which the last began at a time in nanoseconds since 1970, 0: none did. It fails when
// that round has taken so long that only a restart helps.
func Stuck(name string, began int64, longest time.Duration) Check {
	c := Check{Name: name}
	if since := time.Since(time.Unix(0, began)); began != 0 && since > longest {
		c.Problem = fmt.Sprintf("stuck for %v", since.Round(time.Second))
	}
	return c
}

// Handle answers /livez, /healthz, which is its older name, and /readyz.
func Handle(mux *http.ServeMux, alive, ready func() []Check) {
	mux.Handle("GET /livez", Handler(alive))
	mux.Handle("GET /healthz", Handler(alive))
	mux.Handle("GET /readyz", Handler(ready))
}

// Package health answers probes in the form of other Kubernetes components.
package health

import (
	"fmt"
	"net/http"
	"strings"
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

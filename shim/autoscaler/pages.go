package autoscaler

import (
	"bytes"
	"fmt"
	"net/http"
	"net/netip"
	"runtime"
	"strconv"
	"time"

	"k8s.io/klog/v2"

	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/report"
	"loadline.dev/shim/report/texttable"
)

// paths are those that are served, as /statusz tells them.
func (a *Autoscaler) paths() string {
	const always = "/healthz /livez /metrics /readyz /statusz"
	if a.config.Profiling {
		return "/debug/pprof/ " + always
	}
	return always
}

// longestRefresh bounds ?refresh=SECONDS of the page.
const longestRefresh = 3600

// lateLoops is after how many scan intervals without a loop the page calls what it shows old.
const lateLoops = 3

// addPages adds what people look at: the page and /statusz.
func (a *Autoscaler) addPages(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", a.guarded(a.servePage))
	mux.HandleFunc("GET /statusz", a.guarded(a.serveStatus))
}

// guarded serves to this machine only, unless it is configured otherwise: pages name nodes and pods of all namespaces,
// and nobody has to log in. Requests through kubectl port-forward come from this machine, and the API server decides
// who may use it.
func (a *Autoscaler) guarded(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		if !a.config.ExposePage && (err != nil || !from.Addr().Unmap().IsLoopback()) {
			http.Error(w, "served to this machine only: use kubectl port-forward, or set exposePage",
				http.StatusForbidden)
			return
		}
		serve(w, r)
	}
}

func (a *Autoscaler) servePage(w http.ResponseWriter, r *http.Request) {
	refresh, _ := strconv.Atoi(r.URL.Query().Get("refresh"))
	var out bytes.Buffer
	page := a.page(time.Now())
	page.Refresh = min(max(refresh, 0), longestRefresh)
	if err := report.AutoscalerPage(&out, page); err != nil {
		klog.ErrorS(err, "The page cannot be drawn")
		http.Error(w, "the page cannot be drawn", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(out.Bytes()) // who asked may be gone
}

// page returns what there is to be seen now.
func (a *Autoscaler) page(now time.Time) report.Autoscaler {
	page := report.Autoscaler{Title: "Loadline autoscaler"}
	s := a.latest()
	if s != nil {
		page = s.page
		page.Title = "Loadline autoscaler"
	}
	page.Verdict = a.verdict(s, now)
	if s == nil {
		return page
	}
	age := now.Sub(s.at)
	if age > lateLoops*a.config.ScanInterval.Duration+s.took {
		old := fmt.Sprintf("What is shown is old: since %v ago no loop has ended.", age.Round(time.Second))
		page.Warnings = append([]string{old}, page.Warnings...)
	}
	asOf := fmt.Sprintf("As of %s, %v ago. The loop took %v; one begins every %v. ?refresh=10 asks again every 10 s.",
		s.at.UTC().Format(time.RFC3339), max(0, age).Round(time.Second), s.took.Round(time.Millisecond),
		a.config.ScanInterval.Duration)
	page.Lines = append([]string{asOf}, page.Lines...)
	placement, err := s.loads()
	page.Nodes = placement
	if err != nil {
		page.NodesProblem = err.Error()
	}
	return page
}

// latest returns the snapshot of the last loop; nil: this process does not lead, or has had none.
func (a *Autoscaler) latest() *snapshot {
	if l := a.leader.Load(); l != nil {
		return l.seen.Load()
	}
	return nil
}

func (a *Autoscaler) verdict(s *snapshot, now time.Time) string {
	mode := "Mode " + a.config.Mode
	if a.config.Mode == config.Observe {
		mode += ": it plans and changes nothing"
	}
	l := a.leader.Load()
	switch {
	case l == nil && a.holder.Load() != nil:
		return fmt.Sprintf("Stands by. %s leads; its page tells what happens.", *a.holder.Load())
	case l == nil:
		return "Stands by. Nobody is known to lead."
	case s == nil:
		return fmt.Sprintf("Leads, term %d, and is in its first loop. %s.", l.term, mode)
	}
	return fmt.Sprintf("Leads, term %d. %s. Last loop: %s.", l.term, mode, s.outcome)
}

// serveStatus answers in the form of other Kubernetes components.
func (a *Autoscaler) serveStatus(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	now := time.Now()
	up := now.Sub(a.started)
	fmt.Fprintf(w, "\n%s statusz\nWarning: This endpoint is not meant to be machine parseable, has no formatting "+
		"compatibility guarantees and is for debugging purposes only.\n\n", component)
	fmt.Fprintf(w, "Started: %s\nUp: %d hr %02d min %02d sec\nGo version: %s\nBinary version: %s\n\nPaths: %s\n\n",
		a.started.UTC().Format(time.UnixDate), int(up.Hours()), int(up.Minutes())%60, int(up.Seconds())%60,
		runtime.Version(), a.version, a.paths())
	s := a.latest()
	fmt.Fprintf(w, "State: %s\n", a.verdict(s, now))
	if s == nil {
		return
	}
	fmt.Fprintf(w, "Last loop: %s, took %v\n", s.at.UTC().Format(time.UnixDate), s.took.Round(time.Millisecond))
	for _, warning := range s.page.Warnings {
		fmt.Fprintf(w, "Warning: %s\n", texttable.Escape(warning))
	}
	for _, line := range s.page.Lines {
		fmt.Fprintf(w, "%s\n", texttable.Escape(line))
	}
}

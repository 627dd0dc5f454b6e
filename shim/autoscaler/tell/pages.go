package tell

import (
	"bytes"
	"fmt"
	"net/http"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/report"
	"loadline.dev/shim/report/texttable"
)

// Component is the name of this program, and upstreamComponent that of Cluster Autoscaler.
const (
	Component         = "loadline-autoscaler"
	upstreamComponent = "cluster-autoscaler"
)

// Pages are what people look at: the page and /statusz.
type Pages struct {
	config  *config.Configuration
	version string
	Started time.Time
	Leader  atomic.Pointer[Teller] // while this process leads
	Holder  atomic.Pointer[string] // who leads, as far as is known
}

// NewPages returns the pages of a process that does not lead yet.
func NewPages(c *config.Configuration, version string) *Pages {
	return &Pages{config: c, version: version, Started: time.Now()}
}

// paths are those that are served, as /statusz tells them.
func (p *Pages) paths() string {
	const always = "/healthz /livez /metrics /readyz /statusz"
	if p.config.Profiling {
		return "/debug/pprof/ " + always
	}
	return always
}

// longestRefresh bounds ?refresh=SECONDS of the page.
const longestRefresh = 3600

// lateLoops is after how many scan intervals without a loop the page calls what it shows old.
const lateLoops = 3

// Add adds the pages.
func (p *Pages) Add(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", p.Guarded(p.servePage))
	mux.HandleFunc("GET /statusz", p.Guarded(p.serveStatus))
}

// Guarded serves to this machine only, unless it is configured otherwise: pages name nodes and pods of all namespaces,
// and nobody has to log in. Requests through kubectl port-forward come from this machine, and the API server decides
// who may use it. A request that a proxy passes on is from elsewhere, whatever address it has: with a mesh, that of a
// sidecar on this machine.
func (p *Pages) Guarded(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		if !p.config.ExposePage && (err != nil || !from.Addr().Unmap().IsLoopback() || passedOn(r)) {
			http.Error(w, "served to this machine only: use kubectl port-forward, or set exposePage",
				http.StatusForbidden)
			return
		}
		serve(w, r)
	}
}

// passedOn says whether a request carries what proxies add, and callers cannot keep them from adding.
func passedOn(r *http.Request) bool {
	for name := range r.Header {
		if name == "Forwarded" || name == "Via" || strings.HasPrefix(name, "X-Forwarded-") ||
			strings.HasPrefix(name, "X-Envoy-") || strings.HasPrefix(name, "L5d-") {
			return true
		}
	}
	return false
}

func (p *Pages) servePage(w http.ResponseWriter, r *http.Request) {
	refresh, _ := strconv.Atoi(r.URL.Query().Get("refresh"))
	var out bytes.Buffer
	page := p.page(time.Now())
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
func (p *Pages) page(now time.Time) report.Autoscaler {
	page := report.Autoscaler{Title: "Loadline autoscaler"}
	s := p.latest()
	if s != nil {
		page = s.Page
		page.Title = "Loadline autoscaler"
	}
	page.Verdict = p.verdict(s, now)
	if s == nil {
		return page
	}
	age := now.Sub(s.at)
	if age > lateLoops*p.config.ScanInterval.Duration+s.took {
		old := fmt.Sprintf("What is shown is old: since %v ago no loop has ended.", age.Round(time.Second))
		page.Warnings = append([]string{old}, page.Warnings...)
	}
	asOf := fmt.Sprintf("As of %s, %v ago. The loop took %v; one begins every %v. ?refresh=10 asks again every 10 s.",
		s.at.UTC().Format(time.RFC3339), max(0, age).Round(time.Second), s.took.Round(time.Millisecond),
		p.config.ScanInterval.Duration)
	page.Lines = append([]string{asOf}, page.Lines...)
	placement, err := s.loads()
	page.Nodes = placement
	if err != nil {
		page.NodesProblem = err.Error()
	}
	return page
}

// latest returns the snapshot of the last loop; nil: this process does not lead, or has had none.
func (p *Pages) latest() *snapshot {
	if l := p.Leader.Load(); l != nil {
		return l.Snapshot.Load()
	}
	return nil
}

func (p *Pages) verdict(s *snapshot, now time.Time) string {
	mode := "Mode " + p.config.Mode
	if p.config.Mode == config.Observe {
		mode += ": it plans and changes nothing"
	}
	mode += ". Cloud provider: " + p.config.CloudProvider.Kind
	l := p.Leader.Load()
	switch {
	case l == nil && p.Holder.Load() != nil:
		return fmt.Sprintf("Stands by. %s leads; its page tells what happens.", *p.Holder.Load())
	case l == nil:
		return "Stands by. Nobody is known to lead."
	case s == nil:
		return fmt.Sprintf("Leads, term %d, and is in its first loop. %s.", l.Term, mode)
	}
	return fmt.Sprintf("Leads, term %d. %s. Last loop: %s.", l.Term, mode, s.outcome)
}

// serveStatus answers in the form of other Kubernetes components.
func (p *Pages) serveStatus(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	now := time.Now()
	up := now.Sub(p.Started)
	fmt.Fprintf(w, "\n%s statusz\nWarning: This endpoint is not meant to be machine parseable, has no formatting "+
		"compatibility guarantees and is for debugging purposes only.\n\n", Component)
	fmt.Fprintf(w, "Started: %s\nUp: %d hr %02d min %02d sec\nGo version: %s\nBinary version: %s\n\nPaths: %s\n\n",
		p.Started.UTC().Format(time.UnixDate), int(up.Hours()), int(up.Minutes())%60, int(up.Seconds())%60,
		runtime.Version(), p.version, p.paths())
	s := p.latest()
	fmt.Fprintf(w, "State: %s\n", p.verdict(s, now))
	if s == nil {
		return
	}
	fmt.Fprintf(w, "Last loop: %s, took %v\n", s.at.UTC().Format(time.UnixDate), s.took.Round(time.Millisecond))
	for _, warning := range s.Page.Warnings {
		fmt.Fprintf(w, "Warning: %s\n", texttable.Escape(warning))
	}
	for _, line := range s.Page.Lines {
		fmt.Fprintf(w, "%s\n", texttable.Escape(line))
	}
}

// Package extender lets a stock kube-scheduler ask the engine: it answers the prioritize verb of the HTTP extender
// protocol, from a view of the cluster that it keeps up to date itself.
//
// It knows nothing of pods that a scheduler has assumed but not bound yet, and hears of bound ones with the delay of
// a watch: in a burst several pods are scored against the same sums. The scheduler plugin has neither weakness.
package extender

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/certificates"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/guard"
	"loadline.dev/shim/internal/health"
	"loadline.dev/shim/internal/kuberelease"
	"loadline.dev/shim/internal/ports"
	"loadline.dev/shim/leftout"
	"loadline.dev/shim/view"
)

const (
	// DefaultTimeout is how long a request waits for the engine: less than the scheduler's own httpTimeout, so that its
	// answer is in time.
	DefaultTimeout = 150 * time.Millisecond
	// DefaultView is the name of the gateway's view in the engine.
	DefaultView = "gateway"

	// stuckAfter is how long the background may take for one round before the gateway is no longer alive.
	stuckAfter = 3 * refreshTimeout
	// drainTime is how long requests under way may take when the gateway ends.
	drainTime = 5 * time.Second
)

// Options set up a gateway.
type Options struct {
	// Address is the HOST:PORT of the extender. Without certificates it must be a loopback address. Empty: there is no
	// extender, and the gateway follows nodes only, for other doors.
	Address string
	// HealthAddress, if set, is a second HOST:PORT, without TLS and without the extender: /livez, /readyz, /healthz and
	// /metrics for the kubelet and for Prometheus. They are served at Address as well.
	HealthAddress string
	// Certificates switch on TLS at Address.
	Certificates certificates.Files
	// Policy says how to score. Required.
	Policy *loadlinev1.ScorePolicy
	// Line is the load line that the filter verb keeps to; nil: there is no such verb.
	Line *loadlinev1.LoadLine
	// AllowOnFailure lets nodes pass the filter verb where the engine gives no answer.
	AllowOnFailure bool
	// Timeout bounds the question to the engine; 0: DefaultTimeout.
	Timeout time.Duration
	// View is the name of the view; empty: DefaultView. Two gateways at one loadlined need two.
	View string
	// UsageNamespace is that of the ConfigMaps of `loadline usage`, which are read where the policy counts expected use.
	UsageNamespace string
	// KeepsCluster keeps the cluster in the engine for other doors, also where no scheduler asks: see Gateway.Ask.
	KeepsCluster bool
	// Version is that of this program, for /metrics.
	Version string
}

// Check returns an error for options that contradict each other or are not safe.
func (o Options) Check() error {
	if err := o.Certificates.Check(); err != nil {
		return err
	}
	if o.Timeout < 0 {
		return fmt.Errorf("timeout %v: must not be negative", o.Timeout)
	}
	if o.View != "" {
		if err := view.CheckName(o.View); err != nil {
			return fmt.Errorf("view %q: %w", o.View, err)
		}
	}
	if o.HealthAddress != "" {
		if _, _, err := net.SplitHostPort(o.HealthAddress); err != nil {
			return fmt.Errorf("health address %q: must be HOST:PORT: %w", o.HealthAddress, err)
		}
	}
	if o.Address == "" {
		return nil
	}
	return checkAddress(o.Address, o.Certificates.Given())
}

func (o Options) keepsCluster() bool { return o.Address != "" || o.KeepsCluster }

// Door is another protocol that the gateway answers.
type Door struct {
	// Name is what the log calls it.
	Name string
	// Address is the HOST:PORT to answer at.
	Address string
	// Serve answers until ctx ends, and then finishes the requests under way. It closes the listener.
	Serve func(ctx context.Context, listener net.Listener) error
	// Collectors are its metrics.
	Collectors []prometheus.Collector
}

// Gateway answers a scheduler's extender requests, and has room for other doors.
type Gateway struct {
	options      Options
	doors        []Door
	client       kubernetes.Interface
	metrics      *metrics
	certificates *certificates.Reloader // nil: no TLS
	view         *view.View
	nodes, pods  *feed
	refresher    refresher
	prioritizer  prioritizer
	filter       *lineFilter // nil: there is no load line
	ending       atomic.Bool
	rounds       atomic.Int64 // time of the last round of the background, in nanoseconds since 1970
}

// New returns a gateway for an engine and a cluster. It does nothing before Run.
func New(options Options, conn engine.Conn, client kubernetes.Interface) (*Gateway, error) {
	if err := options.Check(); err != nil {
		return nil, err
	}
	if options.Timeout == 0 {
		options.Timeout = DefaultTimeout
	}
	if options.View == "" {
		options.View = DefaultView
	}
	g := &Gateway{options: options, client: client, metrics: newMetrics(options.Version),
		view: view.New(conn, options.View)}
	if options.Certificates.Given() {
		var err error
		g.certificates, err = certificates.Load(options.Certificates, time.Now,
			func(ok bool) { set(g.metrics.reloaded, ok) })
		if err != nil {
			return nil, err
		}
	}
	g.openEngine(conn)
	g.nodes = newNodeFeed(g.view, g.refresher.changed)
	g.pods = newPodFeed(g.view, g.refresher.changed)
	if !options.keepsCluster() {
		g.nodes = newNodeFeed(nowhere{}, func() {})
	}
	if options.Address == "" {
		return g, nil
	}
	g.metrics.registerExtender()
	if g.filter != nil {
		g.metrics.registerFilter()
	}
	return g, nil
}

// openEngine makes what asks the engine, with one guard for all.
func (g *Gateway) openEngine(conn engine.Conn) {
	options := &g.options
	g.view.LeaveOutInvalid(g.leftOut)
	g.view.HearUnreadable(g.unreadable)
	shared := guard.New(conn, guard.Options{AtOnce: maxInFlight, Timeout: options.Timeout,
		Changed: guard.Log("scheduling goes on without limit-aware scores")})
	g.refresher = refresher{
		state: g.view, engine: loadlinev1.NewClusterStateClient(conn), view: options.View, guard: shared,
		metrics: g.metrics, wake: make(chan struct{}, 1), ready: make(chan struct{}),
	}
	g.prioritizer = prioritizer{
		state: g.view, engine: loadlinev1.NewSchedulerExtenderClient(conn), policy: options.Policy,
		guard: shared, metrics: g.metrics, synced: g.refresher.synced.Load,
		suspect: g.refresher.suspect, reading: make(chan struct{}, maxReading),
		bodies: &byteBudget{limit: maxBodiesBytes},
	}
	g.tellPods()
	if options.Line != nil {
		g.filter = &lineFilter{prioritizer: &g.prioritizer, line: options.Line, allow: options.AllowOnFailure}
	}
}

// Add has a door served by Run.
func (g *Gateway) Add(door Door) {
	g.doors = append(g.doors, door)
	g.metrics.registry.MustRegister(door.Collectors...)
}

// TLS returns the configuration of the gateway's certificates, which follows their files; nil without certificates.
func (g *Gateway) TLS() *tls.Config {
	if g.certificates == nil {
		return nil
	}
	return g.certificates.ServerConfig()
}

// Nodes returns how many nodes the cluster has; false before they are listed.
func (g *Gateway) Nodes() (int, bool) { return g.nodes.count() }

// ErrNotTold says that the engine does not know the cluster.
var ErrNotTold = errors.New("the engine has not been told the cluster")

// Ask has a question without slots answered about the cluster as the engine knows it, once the engine has it. Scores
// do not wait for it.
func (g *Gateway) Ask(ctx context.Context, ask func(at *loadlinev1.Changes) error) error {
	if !g.refresher.synced.Load() {
		return ErrNotTold
	}
	return g.view.AskApart(ctx, ask)
}

// leftOut hears of a node that the engine finds invalid: it scores 0 until it changes, and the others are not delayed.
func (g *Gateway) leftOut(node string, err error) {
	g.metrics.leftOut.Inc()
	klog.ErrorS(err, "The engine finds a node invalid; it scores 0 until it changes", "node", klog.KRef("", node))
}

// unreadable hears of what the engine could not read in full. Such a node counts as left out: it scores 0 if an amount
// that is scored could not be read.
func (g *Gateway) unreadable(news []leftout.Object, total int64) {
	g.metrics.unreadable.Set(float64(total))
	for _, object := range news {
		if object.Kind == "Node" {
			g.metrics.leftOut.Inc()
		}
		klog.ErrorS(nil, "The engine cannot read all of an object; it counts with what could be read until it changes",
			"kind", object.Kind, "object", klog.KRef(object.Namespace, object.Name), "reason", object.Reason)
	}
}

// listeners are the ports of a gateway. extender and health may be nil.
type listeners struct {
	extender, health net.Listener
	doors            []net.Listener
}

// Run serves until ctx ends, and then finishes the requests under way.
func (g *Gateway) Run(ctx context.Context) error {
	open, err := g.listen()
	if err != nil {
		return err
	}
	return g.serve(ctx, open)
}

func (g *Gateway) listen() (open listeners, err error) {
	opened := []net.Listener{}
	one := func(address string, each int) (listener net.Listener) {
		if address == "" || err != nil {
			return nil
		}
		if listener, err = ports.Listen(address, maxConnections, each); err == nil {
			opened = append(opened, listener)
		}
		return listener
	}
	open.extender, open.health = one(g.options.Address, maxOfClient), one(g.options.HealthAddress, maxOfProber)
	for _, door := range g.doors {
		open.doors = append(open.doors, one(door.Address, maxOfClient))
	}
	if err != nil {
		for _, listener := range opened {
			listener.Close()
		}
	}
	return open, err
}

// serve is Run on listeners, which it closes.
func (g *Gateway) serve(ctx context.Context, open listeners) error {
	klog.InfoS("Gateway starts", "version", g.options.Version, "tls", g.certificates != nil)
	servers, starts := g.servers(open)
	doors, closeDoors := context.WithCancel(context.WithoutCancel(ctx))
	defer closeDoors()
	for i, door := range g.doors {
		klog.InfoS("Serving", "door", door.Name, "address", open.doors[i].Addr().String())
		starts = append(starts, func() error { return door.Serve(doors, open.doors[i]) })
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running, serving sync.WaitGroup
	g.startBackground(background, &running)
	failed := make(chan error, len(starts))
	for _, start := range starts {
		serving.Go(func() { failed <- start() })
	}
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	g.ending.Store(true)
	closeDoors()
	err = errors.Join(err, shutDown(servers))
	serving.Wait()
	stop()
	running.Wait()
	if g.options.keepsCluster() {
		g.forget()
	}
	klog.InfoS("Gateway ended")
	return err
}

// servers returns the HTTP servers, and what starts each.
func (g *Gateway) servers(open listeners) (servers []*http.Server, starts []func() error) {
	if open.extender != nil {
		klog.InfoS("Serving", "door", "extender", "address", open.extender.Addr().String(), "view", g.options.View)
		server := newServer(g.handler(g.options.Certificates.ClientCA != ""), idleTimeout)
		start := func() error { return server.Serve(open.extender) }
		if server.TLSConfig = g.TLS(); server.TLSConfig != nil {
			start = func() error { return server.ServeTLS(open.extender, "", "") }
		}
		servers, starts = append(servers, server), append(starts, start)
	}
	if open.health != nil {
		server := newServer(g.healthHandler(), ports.IdleTime)
		servers, starts = append(servers, server), append(starts, func() error { return server.Serve(open.health) })
	}
	return servers, starts
}

func (g *Gateway) startBackground(ctx context.Context, running *sync.WaitGroup) {
	running.Go(func() { watchNodes(ctx, g.client, g.nodes) })
	if !g.options.keepsCluster() {
		return
	}
	running.Go(func() { watchPods(ctx, g.client, g.pods) })
	g.supply(ctx)
	running.Go(func() {
		for _, f := range []*feed{g.nodes, g.pods} {
			select {
			case <-f.listed: // before, a full list would make the engine believe in half a cluster
			case <-ctx.Done():
				return
			}
		}
		g.view.CountAs(kuberelease.Await(ctx, 0, g.client.Discovery()))
		g.refresher.run(ctx, func() { g.rounds.Store(time.Now().UnixNano()) })
	})
}

func shutDown(servers []*http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	var errs []error
	for _, server := range servers {
		errs = append(errs, server.Shutdown(ctx))
	}
	return errors.Join(errs...)
}

// forget frees the memory that the view takes in an engine that lives on.
func (g *Gateway) forget() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := g.view.Drop(ctx); err != nil {
		klog.V(2).InfoS("The engine keeps the view", "err", err)
	}
}

// alive fails when the background has hung for so long that only a restart helps.
func (g *Gateway) alive() []health.Check {
	return []health.Check{health.Stuck("refresh", g.rounds.Load(), stuckAfter)}
}

// readiness fails until the cluster is known and the engine has had it once, and again when the gateway ends.
func (g *Gateway) readiness() []health.Check {
	reached := func(name string, done <-chan struct{}, problem string) health.Check {
		select {
		case <-done:
			return health.Check{Name: name}
		default:
			return health.Check{Name: name, Problem: problem}
		}
	}
	checks := []health.Check{reached("nodes", g.nodes.listed, "not listed yet")}
	if g.options.keepsCluster() {
		checks = append(checks, reached("pods", g.pods.listed, "not listed yet"),
			reached("engine", g.refresher.ready, "has not been told the cluster yet"))
	}
	checks = append(checks, health.Check{Name: "shutdown"})
	if g.ending.Load() {
		checks[len(checks)-1].Problem = "the gateway ends"
	}
	return checks
}

package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/autoscaler/watch"
	"loadline.dev/shim/dump"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/filterconfig"
	"loadline.dev/shim/leftout"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/usage/profile"
	"loadline.dev/shim/view"
)

// cluster is a cluster that was sent to the engine.
type cluster struct {
	conn engine.Conn
	view *view.View
	// now is the time of the answer.
	now time.Time
	// watched holds the objects themselves, where an option says so.
	watched *watch.Cluster
	kept    *view.Keeper // of what it holds
	// pod is the pod of the question. It is taken off its node, so that it is scored as a pod without a node.
	pod *v1.Pod
	// counts are of the dump or the API server; pending is the number of unfinished pods without a node.
	counts  dump.Counts
	pending int
	// listed takes note of all nodes; nil: nobody asks.
	listed *nodeSelector
	// bound counts unfinished pods by the name of their node.
	bound   map[string]int
	origins podOrigins
	// selectors are deduced from the objects of the cluster; nil: nobody needs any.
	selectors *filterconfig.Selectors
	// broken are objects of a dump that cannot be read; inPart counts the nodes and pods of which a part counts.
	broken []leftout.Object
	inPart struct{ nodes, pods int }
}

// leaveOut adds the objects of the cluster that do not count.
func (c *cluster) leaveOut(list *leftout.List) {
	list.Add(c.broken...)
	list.Add(c.view.LeftOut()...)
}

// loadOptions say what of a cluster is of interest.
type loadOptions struct {
	asked    *podName                      // the pod asked about, if one is named: it is set apart
	filters  bool                          // also what filters read and look up
	nodes    bool                          // also what shows of which kind a node is
	planning bool                          // and what planners read and look up
	empty    bool                          // a cluster without nodes will do
	whole    bool                          // nodes that cannot be read in full do not count
	wrap     func(engine.Conn) engine.Conn // if set, what calls go through
	// pod and object, if set, are called with each pod, and with each object that planners look up; kinds are the kinds
	// of these that are of interest, nil: all.
	pod    func(*v1.Pod)
	object func(any)
	kinds  []string
	// fit, if set, may name the release of the scheduler.
	fit *loadlinev1.FitOptions
	// selectors, if set, receives the objects from which it deduces the selectors of spread constraints.
	selectors *filterconfig.Selectors
	// profiles say what pods are expected to use; nil: with `watch` those that the cluster holds, else nothing is known.
	profiles []profile.Profile
	// now is the time of the answer; zero: that of the loop of a recording, else the present. `at`, if set, gets it
	// before any object.
	now time.Time
	at  func(time.Time)
	// watch, if set, has the cluster be as an autoscaler with this configuration sees it; with `planning`.
	watch *config.Configuration
}

// setTime sets the time of the answer.
func (c *cluster) setTime(options *loadOptions, at time.Time) {
	if c.now = at; options.at != nil {
		options.at(at)
	}
}

// tell hands an object to those that asked for it.
func (o *loadOptions) tell(object any) {
	o.selectors.Set(object)
	if o.object != nil {
		o.object(object)
	}
}

// load reads the cluster.
func load(ctx context.Context, s *sourceFlags, engine engineFlags, stdin io.Reader,
	options loadOptions) (*cluster, error) {
	if err := s.nodes.read(); err != nil {
		return nil, err
	}
	if err := options.findProfiles(ctx, s); err != nil {
		return nil, err
	}
	conn, err := engine.open()
	if err != nil {
		return nil, err
	}
	if options.wrap != nil {
		conn = options.wrap(conn)
	}
	c := &cluster{conn: conn, view: view.New(conn, viewName(engine.address)), bound: map[string]int{},
		selectors: options.selectors, listed: &s.nodes}
	c.setTime(&options, cmp.Or(options.now, time.Now()))
	handler := c.handler(ctx, &options, s, viewName(engine.address))
	c.setUsage(options.profiles)
	minor := s.minor(options.fit)
	c.counts, err = s.read(ctx, stdin, handler, options.kinds)
	c.view.CountAs(cmp.Or(minor, c.counts.Minor))
	c.view.Complete(completeKinds(c.counts, options.planning)...)
	if err == nil && c.watched != nil {
		err = c.watched.Apply()
	}
	if err == nil {
		err = c.tooFew(s, options.empty)
	}
	c.counts.Nodes, c.counts.Pods = c.counts.Nodes+c.inPart.nodes, c.counts.Pods+c.inPart.pods
	if err == nil {
		if err = c.view.Sync(ctx); err != nil {
			err = fmt.Errorf("%s: %w", s.name(), engineError(err))
		}
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// findProfiles takes the profiles that the cluster holds, where they count and no others are given.
func (o *loadOptions) findProfiles(ctx context.Context, s *sourceFlags) (err error) {
	if o.fit.GetLoadLine().GetExpectedUse() != nil && o.watch != nil && o.profiles == nil && !s.fromFile() {
		o.profiles, err = s.heldProfiles(ctx, o.watch.UsageNamespace)
	}
	return err
}

func (c *cluster) setUsage(profiles []profile.Profile) {
	switch {
	case len(profiles) == 0:
	case c.watched != nil:
		c.watched.SetUsage(profiles)
	default:
		c.view.TellWorkloads()
		c.view.SetUsage(profiles)
	}
}

// handler returns what is done with each object, and adds the kinds that this takes to the options.
func (c *cluster) handler(ctx context.Context, options *loadOptions, s *sourceFlags, name string) dump.Handler {
	handler := dump.Handler{
		Node: func(node *v1.Node) error { return c.set(node) },
		Pod: func(pod *v1.Pod) error {
			if s.fromFile() && options.watch != nil {
				pod = asTried(pod)
			}
			if options.pod != nil {
				options.pod(pod)
			}
			return c.add(pod, options.asked)
		},
		Note: func(text string) { warnBeside(ctx, text) },
		At: func(at time.Time) {
			if options.now.IsZero() {
				c.setTime(options, at)
			}
		},
	}
	c.forAnswer(options, name, &handler)
	if options.planning || options.filters || options.nodes {
		c.view.LeaveOutInvalid(func(string, error) {}) // the answer names it
		handler.Broken = func(b dump.Broken) {
			if options.planning && options.kinds == nil || !forPlanners(b.Kind) || slices.Contains(options.kinds, b.Kind) {
				c.addBroken(b, options)
			}
		}
	}
	return handler
}

// forAnswer makes the view that the answer takes. It decides what becomes of objects that are neither nodes nor pods.
func (c *cluster) forAnswer(options *loadOptions, name string, handler *dump.Handler) {
	handler.SpreadSelector = options.selectors.Give
	switch {
	case options.planning:
		c.view = view.NewForPlanning(c.conn, name)
		if options.watch != nil {
			c.watched, c.kept = watch.New(c.view, options.watch, options.fit), view.NewKeeper()
			handler.SpreadSelector = c.watched.GiveSpreadSelector
		}
		handler.Object, handler.PlannerObject = c.set, func(object any) error {
			options.tell(object)
			return c.set(object)
		}
	case options.nodes:
		c.view.TellKinds()
	case options.filters:
		c.view = view.NewForFilters(c.conn, name)
		handler.Object = c.view.SetObject
		if options.selectors != nil {
			options.kinds = selectorKinds
			handler.PlannerObject = func(object any) error {
				options.selectors.Set(object)
				return nil
			}
		}
	}
}

// completeKinds returns the kinds of which all objects were read. A dump without an object of a kind was most likely
// made without asking for that kind. Only a view for planning gets the kinds that planners look up.
func completeKinds(counts dump.Counts, planning bool) (kinds []loadlinev1.ObjectKind) {
	for kind := range counts.Objects {
		if of, ok := view.Kinds[kind]; ok && (planning || !view.ForPlanners(of)) {
			kinds = append(kinds, of)
		}
	}
	return kinds
}

// forPlanners says whether planners alone look up a kind.
func forPlanners(kind string) bool {
	return view.ForPlanners(view.Kinds[kind])
}

// viewName returns a name for the view: in a daemon one that no other client uses.
func viewName(address string) string {
	if strings.HasPrefix(address, "unix:") {
		return fmt.Sprintf("cli/%d-%d", os.Getpid(), time.Now().UnixNano())
	}
	return "cli"
}

// set has the view hold an object.
func (c *cluster) set(object any) error {
	if node, ok := object.(*v1.Node); ok {
		c.listed.see(node)
	}
	if c.watched != nil {
		if pod, ok := object.(*v1.Pod); ok { // it is reduced in its place, and others may read it
			object = new(*pod)
		}
		kept, err := c.kept.Reduce(object)
		c.watched.Take(kept)
		return err
	}
	switch o := object.(type) {
	case *v1.Node:
		c.view.SetNode(o)
	case *v1.Pod:
		c.view.SetPod(o)
	case *v1.Service: // an engine has no use for it
	default:
		return c.view.SetObject(object)
	}
	return nil
}

// asTried returns a pod of a dump as if a scheduler had found no node for it, where the dump does not say: people write
// pods by hand to ask about them.
func asTried(pod *v1.Pod) *v1.Pod {
	if pod.Spec.NodeName != "" || slices.ContainsFunc(pod.Status.Conditions,
		func(c v1.PodCondition) bool { return c.Type == v1.PodScheduled }) {
		return pod
	}
	pod = new(*pod)
	pod.Status.Conditions = append(slices.Clip(pod.Status.Conditions), v1.PodCondition{Type: v1.PodScheduled,
		Status: v1.ConditionFalse, Reason: v1.PodReasonUnschedulable})
	return pod
}

func (c *cluster) add(pod *v1.Pod, asked *podName) error {
	c.origins.add(pod)
	if asked != nil && *asked == (podName{pod.Namespace, pod.Name}) {
		c.pod = pod
		return nil
	}
	switch {
	case pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed:
	case pod.Spec.NodeName == "":
		c.pending++
	default:
		c.bound[pod.Spec.NodeName]++
	}
	return c.set(pod)
}

// close makes the engine forget the cluster.
func (c *cluster) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.view.Drop(ctx) // an engine of our own ends anyway, and one that is gone holds nothing
	c.conn.Close()
}

// gather gathers what an autoscaler with this configuration would ask about the cluster, in whose way it was loaded.
// `waits` is that of Planner.Gather.
func (c *cluster) gather(settings *config.Configuration, loaded *config.Loaded, file nodegroup.File,
	waits func(*v1.Pod) bool) (*plan.Planner, *plan.Loop, error) {
	p := plan.NewPlanner(loadlinev1.NewAutoscalerClient(c.conn), c.watched, settings, loaded, nil)
	p.Settings.Compact, p.Patience = false, 0
	o, err := p.Gather(file.Groups, c.now, waits)
	if err != nil {
		return nil, nil, err
	}
	o.Warnings = slices.Concat(file.Warnings, file.Ignored())
	return p, o, nil
}

// describe returns all nodes as the engine holds them, in slot order.
func (c *cluster) describe(ctx context.Context) ([]*loadlinev1.NodeState, error) {
	client := loadlinev1.NewClusterStateClient(c.conn)
	var nodes []*loadlinev1.NodeState
	err := c.view.Ask(ctx, func(at *loadlinev1.Changes) (err error) {
		nodes, err = view.States(ctx, client, at.GetView())
		return err
	})
	if err != nil {
		return nil, engineError(err)
	}
	return nodes, nil
}

// overcommitted returns those of these nodes whose pods request more cpu or memory than there is, without the pods that
// a plan puts there.
func (c *cluster) overcommitted(ctx context.Context, nodes []string) ([]string, error) {
	states, err := c.describe(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, state := range states {
		if slices.Contains(nodes, state.GetName()) && slices.ContainsFunc(state.GetResources(), requestsTooMuch) {
			out = append(out, state.GetName())
		}
	}
	slices.Sort(out)
	return out, nil
}

func requestsTooMuch(r *loadlinev1.ResourceSums) bool {
	return (r.GetResource() == "cpu" || r.GetResource() == "memory") && r.GetRequested() > r.GetAllocatable()
}

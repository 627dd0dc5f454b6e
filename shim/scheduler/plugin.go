// Package scheduler is the kube-scheduler plugin NodeResourcesLimitAware: it scores nodes by what the pods on them
// are allowed to use. It translates between the scheduling framework and an engine, which does all the reckoning.
//
// It cannot fail a pod: on any trouble the cycle continues without its opinion, and a counter says why.
package scheduler

import (
	"context"
	"encoding/base64"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/view"
)

// Name is the plugin's name in a KubeSchedulerConfiguration.
const Name = "NodeResourcesLimitAware"

const (
	stateKey fwk.StateKey = Name
	// signKey names what the plugin reads of a pod: the resources of its containers, of the pod as a whole, and its
	// overhead.
	signKey = "loadline.dev/v1.Pod.Spec/Resources"
	// namespaceKey names what a load line with exempt namespaces reads as well.
	namespaceKey = "loadline.dev/v1.Pod.Metadata/Namespace"
)

// Plugin is the plugin in one profile.
type Plugin struct {
	handle  fwk.Handle
	timeout time.Duration
	policy  *loadlinev1.ScorePolicy
	client  *client
	close   func() error
	logger  klog.Logger
	trouble atomic.Pointer[reason]              // the last one logged; nil: none
	scale   atomic.Pointer[loadlinev1.RawScale] // of the engine's last answer; nil: none yet

	loadLine loadLine
}

var (
	_ fwk.PreScorePlugin  = &Plugin{}
	_ fwk.ScorePlugin     = &Plugin{}
	_ fwk.ScoreExtensions = &Plugin{}
	_ fwk.SignPlugin      = &Plugin{}
)

var inUse = clients{dial: engine.Open, now: time.Now}

// New makes the plugin of one profile. It has the type of a framework PluginFactory.
func New(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	return newPlugin(ctx, obj, handle, &inUse)
}

func newPlugin(ctx context.Context, obj runtime.Object, handle fwk.Handle, clients *clients) (*Plugin, error) {
	args, err := decodeArgs(obj)
	if err != nil {
		return nil, err
	}
	registerMetrics()
	logger := klog.FromContext(ctx).WithValues("plugin", Name)
	if args.APIVersion == oldVersion.String() {
		logger.Info("The plugin's arguments have an older apiVersion, which the next minor version refuses",
			"apiVersion", oldVersion.String(), "use", argsVersion.String())
	}
	shared, err := clients.acquire(logger, clientKey{args.EngineAddress, args.View})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	if args.On() {
		registerLineMetrics()
	}
	if args.ExpectedUse.On() {
		clients.supply(shared, handle.ClientSet(), args.UsageNamespace)
	}
	if args.BlockersTogether > 0 {
		clients.supplyBudgets(shared, handle.ClientSet())
	}
	return &Plugin{
		loadLine: loadLine{line: args.Line.Proto(args.Policy.Proto()), allow: args.OnEngineFailure == AllowOnFailure},
		handle:   handle, timeout: args.Timeout.Duration, policy: args.Policy.Proto(), client: shared, logger: logger,
		close: sync.OnceValue(func() error { return clients.release(shared) }),
	}, nil
}

// Name returns the plugin's name.
func (p *Plugin) Name() string { return Name }

// Close gives up the engine. The framework calls it when the scheduler ends.
func (p *Plugin) Close() error { return p.close() }

// scores are the raw scores of one cycle's feasible nodes. They do not change after PreScore.
type scores struct {
	byNode   map[*v1.Node]int64 // by object, which is the same in PreScore and Score: cheaper than names
	scale    *loadlinev1.RawScale
	measured atomic.Bool // one Score call of the cycle was measured
}

// Clone returns the same scores: they do not change.
func (s *scores) Clone() fwk.StateData { return s }

// PreScore finds the raw scores of all feasible nodes and keeps them for Score: the engine is asked about nodes that
// changed since it was asked for such a pod. Without an answer it returns Skip, which only drops our opinion; an error
// would fail the pod.
func (p *Plugin) PreScore(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	nodes []fwk.NodeInfo) (result *fwk.Status) {
	defer observeSince(preScoreSeconds, time.Now())
	defer func() {
		if r := recover(); r != nil {
			p.recovered("PreScore", r)
			skippedFor[reasonPanic].Inc()
			result = fwk.NewStatus(fwk.Skip)
		}
	}()
	answer, why, err := p.ask(ctx, state, pod, nodes)
	p.logTrouble(why, err)
	if why != "" {
		skippedFor[why].Inc()
		return fwk.NewStatus(fwk.Skip)
	}
	answered.Inc()
	table := &scores{byNode: make(map[*v1.Node]int64, len(nodes)), scale: p.scale.Load()}
	for i, node := range nodes {
		table.byNode[node.Node()] = answer[i]
	}
	state.Write(stateKey, table)
	return nil
}

func (p *Plugin) ask(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	nodes []fwk.NodeInfo) ([]int64, reason, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	return p.client.rawScores(ctx, pod, p.policy, p.cycle(state, nodes),
		func(scale *loadlinev1.RawScale) { p.scale.Store(scale) })
}

// cycle is what the engine is asked in: these nodes, of which the scheduler's snapshot has the content.
func (p *Plugin) cycle(state fwk.CycleState, nodes []fwk.NodeInfo) viewCycle {
	cycle := viewCycle{Feasible: nodes, Snapshot: p.handle.SnapshotSharedLister().NodeInfos()}
	if state.IsPodGroupSchedulingCycle() {
		cycle.Group = state.GetPodGroupSchedulingCycle()
	}
	return cycle
}

// Score reads the raw score of a node: an integer that depends on the pod and this node alone. Kubernetes 1.37 keeps it
// for the next pods of a batch, and holds it against a fresh one of the node that was chosen.
func (p *Plugin) Score(_ context.Context, state fwk.CycleState, _ *v1.Pod,
	node fwk.NodeInfo) (score int64, result *fwk.Status) {
	defer func() {
		if r := recover(); r != nil {
			p.recovered("Score", r)
			score, result = view.NoRawScore, nil
		}
	}()
	data, err := state.Read(stateKey)
	if err != nil {
		return view.NoRawScore, nil
	}
	table := data.(*scores)
	if !table.measured.Load() && table.measured.CompareAndSwap(false, true) {
		defer observeSince(scoreSeconds, time.Now())
	}
	raw, known := table.byNode[node.Node()]
	if !known {
		return view.NoRawScore, nil
	}
	return raw, nil
}

// ScoreExtensions returns the plugin, for NormalizeScore.
func (p *Plugin) ScoreExtensions() fwk.ScoreExtensions { return p }

// NormalizeScore makes scores of raw scores, which may stem from several cycles of a batch. It guards the range: a
// score outside of it would fail the pod.
func (p *Plugin) NormalizeScore(_ context.Context, state fwk.CycleState, _ *v1.Pod,
	list fwk.NodeScoreList) (result *fwk.Status) {
	defer func() {
		if r := recover(); r != nil {
			p.recovered("NormalizeScore", r)
			withoutOpinion(list)
			result = nil
		}
	}()
	data, err := state.Read(stateKey)
	if err != nil {
		withoutOpinion(list)
		return nil
	}
	clamped.Add(float64(normalize(data.(*scores).scale, list)))
	return nil
}

// SignPod tells pods apart that the engine may score differently, so that batching stays on: the framework gives
// pods of one signature the scores of the first.
func (p *Plugin) SignPod(_ context.Context, pod *v1.Pod) (fragments []fwk.SignFragment, result *fwk.Status) {
	defer func() {
		if r := recover(); r != nil {
			p.recovered("SignPod", r)
			fragments, result = nil, fwk.NewStatus(fwk.Unschedulable, "the pod cannot be signed")
		}
	}()
	fragments = []fwk.SignFragment{{Key: signKey, Value: base64.StdEncoding.EncodeToString(sign(pod, p.policy))}}
	if len(p.loadLine.line.GetExemptNamespaces()) > 0 {
		fragments = append(fragments, fwk.SignFragment{Key: namespaceKey, Value: pod.Namespace})
	}
	return fragments, nil
}

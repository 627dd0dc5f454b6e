package extender

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/guard"
	"loadline.dev/shim/view"
)

// FilterPath is where the filter verb is answered, if the gateway has a load line: filterVerb filter in the scheduler's
// configuration.
const FilterPath = "/filter"

// lineFilter answers the filter verb: the nodes that the load line keeps a pod off.
//
// It is a promise as far as the gateway knows the cluster: pods that the scheduler has assumed and not bound yet, it
// does not know. Without an answer of the engine no node passes, unless the gateway's configuration allows that.
type lineFilter struct {
	*prioritizer // what both verbs share: how bodies are read, the view, the engine and its guard
	line         *loadlinev1.LoadLine
	allow        bool
}

var errWholeNodes = errors.New("whole nodes came: set nodeCacheCapable: true, which sends names")

// ServeHTTP answers with the names that pass, and why others do not.
func (f *lineFilter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.serve(w, r, func(a asked, err error) (any, error) {
		if err == nil && a.full {
			err = errWholeNodes
		}
		if err != nil {
			return nil, err
		}
		answer, skip := f.filter(r.Context(), a.pod, a.names)
		f.metrics.filtered(skip, time.Since(a.read))
		return answer, nil
	})
}

// codeOf returns the HTTP status for a body that cannot be read.
func codeOf(err error) int {
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return http.StatusRequestEntityTooLarge
	}
	if errors.Is(err, errBodiesTooLarge) {
		return http.StatusServiceUnavailable
	}
	return http.StatusBadRequest
}

// filter returns the answer, and why it is not the engine's, if it is not.
func (f *lineFilter) filter(ctx context.Context, pod *v1.Pod, names []string) (
	*extenderv1.ExtenderFilterResult, string) {
	switch {
	case len(names) == 0:
		return passing(names), ""
	case !f.synced():
		return f.without(names, skipNotSynced), skipNotSynced
	}
	answer, verdict, _ := guard.Ask(ctx, f.guard, func(ctx context.Context) (*extenderv1.ExtenderFilterResult, error) {
		return f.askLine(ctx, pod, names)
	})
	if verdict == guard.NotAsked { // no node is known, which says it all
		return answer, ""
	}
	if skip := f.skipOf(verdict); skip != "" {
		return f.without(names, skip), skip
	}
	return answer, ""
}

func (f *lineFilter) askLine(ctx context.Context, pod *v1.Pod,
	names []string) (answer *extenderv1.ExtenderFilterResult, err error) {
	request := &loadlinev1.CheckLoadLineRequest{Line: f.line, Pod: view.IncomingPod(pod, f.line.GetExpectedUse())}
	err = f.state.Ask(ctx, func(at *loadlinev1.Changes) error {
		request.Changes, request.Slots = at, request.Slots[:0] // asked again after a resync
		slots := make(map[string]int32, len(names))
		for _, name := range names {
			if slot, ok := f.state.Slot(name); ok {
				request.Slots = append(request.Slots, slot)
				slots[name] = slot
			}
		}
		f.metrics.unknownNodes.Add(float64(len(names) - len(slots)))
		if len(slots) == 0 { // an empty list would mean all nodes
			answer = f.fromRefusals(names, slots, nil)
			return guard.ErrNotAsked
		}
		response, err := f.engine.CheckLoadLine(ctx, request)
		if err != nil {
			return err
		}
		answer = f.fromRefusals(names, slots, response.GetRefusals())
		f.metrics.nodesAbove.Set(float64(response.GetNodesAbove()))
		return nil
	})
	return answer, err
}

// fromRefusals makes the answer of what the engine said. A node that it does not know passes only where failures are
// allowed.
func (f *lineFilter) fromRefusals(names []string, slots map[string]int32,
	refusals []*loadlinev1.LineRefusal) *extenderv1.ExtenderFilterResult {
	refused := map[int32]*loadlinev1.LineRefusal{}
	for _, refusal := range refusals {
		for _, slot := range refusal.GetSlots() {
			refused[slot] = refusal
		}
	}
	passes := make([]string, 0, len(names))
	answer := &extenderv1.ExtenderFilterResult{NodeNames: &passes, FailedNodes: extenderv1.FailedNodesMap{},
		FailedAndUnresolvableNodes: extenderv1.FailedNodesMap{}}
	for _, name := range names {
		slot, known := slots[name]
		refusal := refused[slot]
		switch {
		case !known && !f.allow:
			answer.FailedNodes[name] = "load line: the node is not known yet"
		case !known || refusal == nil:
			passes = append(passes, name)
		case refusal.GetUnresolvable():
			answer.FailedAndUnresolvableNodes[name] = strings.Join(refusal.GetReasons(), ", ")
		default:
			answer.FailedNodes[name] = strings.Join(refusal.GetReasons(), ", ")
		}
	}
	return answer
}

func passing(names []string) *extenderv1.ExtenderFilterResult {
	return &extenderv1.ExtenderFilterResult{NodeNames: &names}
}

// without is the answer where the engine gives none.
func (f *lineFilter) without(names []string, skip string) *extenderv1.ExtenderFilterResult {
	if f.allow {
		return passing(names)
	}
	return &extenderv1.ExtenderFilterResult{Error: "load line: the engine gives no answer (" + skip +
		"), so that the pod is not placed; --on-engine-failure=Allow would place it"}
}

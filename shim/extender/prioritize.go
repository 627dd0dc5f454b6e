package extender

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/guard"
	"loadline.dev/shim/view"
)

const (
	// maxBodyBytes bounds a request: 500 whole nodes have some 10 MiB, 15,000 names 1 MiB.
	maxBodyBytes   = 16 << 20
	usualBodyBytes = 1 << 20
	// maxReading bounds the requests that are read at a time, and so the memory that they take.
	maxReading = 64
	// maxInFlight bounds the questions to the engine at a time. A scheduler has one under way.
	maxInFlight = 16
)

// state is the cluster as the engine knows it. *view.View is one.
type state interface {
	Ask(ctx context.Context, ask func(at *loadlinev1.Changes) error) error
	Slot(node string) (int32, bool)
}

var errTooMany = errors.New("too many requests at a time")

// prioritizer answers the prioritize verb.
type prioritizer struct {
	state   state
	engine  loadlinev1.SchedulerExtenderClient
	policy  *loadlinev1.ScorePolicy
	guard   *guard.Guard
	metrics *metrics
	synced  func() bool   // whether the engine has the whole cluster
	suspect func()        // called when the engine seems to have lost it, or to be gone
	reading chan struct{} // one element per request that is read
	bodies  *byteBudget   // of all of them
}

// asked is a request.
type asked struct {
	pod   *v1.Pod
	names []string
	full  bool      // whole nodes came instead of names
	read  time.Time // when all of it had come
}

// serve reads a request and answers it, or says what is wrong with it. answer gets the error of a request that cannot
// be decoded, and returns the one that the client gets in place of an answer.
func (p *prioritizer) serve(w http.ResponseWriter, r *http.Request, answer func(a asked, err error) (any, error)) {
	select {
	case p.reading <- struct{}{}:
		defer func() { <-p.reading }()
	default:
		p.reject(w, http.StatusServiceUnavailable, errTooMany)
		return
	}
	body, taken, err := p.readBody(w, r)
	defer p.bodies.give(taken)
	a := asked{read: time.Now()}
	if err != nil {
		p.reject(w, codeOf(err), err)
		return
	}
	a.pod, a.names, a.full, err = decodeArguments(body)
	message, err := answer(a, err)
	if err != nil {
		p.reject(w, http.StatusBadRequest, err)
		return
	}
	writeJSON(w, message)
}

// ServeHTTP answers with one score per distinct node asked about, in the order asked. On any trouble on our side
// that is 0 for all of them, which leaves the scheduler with its own opinion; only what is not a request gets an error.
func (p *prioritizer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.serve(w, r, func(a asked, err error) (any, error) {
		if err != nil && !errors.Is(err, errNoPod) {
			return nil, err
		}
		if a.full {
			p.metrics.fullNodes.Inc()
		}
		answer, skip := p.prioritize(r.Context(), a.pod, a.names)
		p.metrics.answered(skip, time.Since(a.read))
		if skip != "" {
			klog.FromContext(r.Context()).V(4).Info("Answered without an opinion", "reason", skip, "nodes",
				len(a.names))
		}
		return answer, nil
	})
}

// readBody reads the body at once where the request tells its size, and returns how many bytes of the budget it has
// taken, with those of what is made from it.
func (p *prioritizer) readBody(w http.ResponseWriter, r *http.Request) (content []byte, taken int, err error) {
	var body bytes.Buffer
	if r.ContentLength > 0 { // what is announced is not believed beyond the usual
		body.Grow(int(min(r.ContentLength, usualBodyBytes)) + bytes.MinRead)
	}
	counted := &countedReader{from: http.MaxBytesReader(w, r.Body, maxBodyBytes), budget: p.bodies}
	if _, err = body.ReadFrom(counted); err != nil {
		return body.Bytes(), counted.taken, err
	}
	cost := costOf(body.Bytes())
	if !p.bodies.take(cost) {
		return nil, counted.taken, errBodiesTooLarge
	}
	return body.Bytes(), counted.taken + cost, nil
}

func (p *prioritizer) reject(w http.ResponseWriter, code int, err error) {
	result := resultRejected
	if code == http.StatusServiceUnavailable {
		result = resultRefused
	}
	p.metrics.requests.WithLabelValues(result).Inc()
	http.Error(w, strconv.Quote(err.Error()), code)
}

// writeJSON sends a message with its length: a client that decodes one value and stops reading can use the
// connection again only when it knows that nothing follows.
func writeJSON(w http.ResponseWriter, message any) {
	data, err := Encode(message)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data) // the client may be gone; there is nobody left to tell
}

// prioritize returns the answer, and why it is neutral, if it is.
func (p *prioritizer) prioritize(ctx context.Context, pod *v1.Pod,
	names []string) (extenderv1.HostPriorityList, string) {
	switch {
	case pod == nil:
		return neutral(names), skipBadPod
	case len(names) == 0:
		return neutral(names), ""
	case !p.synced():
		return neutral(names), skipNotSynced
	}
	got, verdict, _ := guard.Ask(ctx, p.guard, func(ctx context.Context) (reply, error) {
		return p.ask(ctx, pod, names)
	})
	skip := p.skipOf(verdict)
	if skip == "" {
		skip = got.skip
	}
	if skip != "" {
		return neutral(names), skip
	}
	return got.answer, ""
}

// reply is the answer to one question.
type reply struct {
	answer extenderv1.HostPriorityList
	skip   string // why the engine's answer is of no use
}

func (p *prioritizer) ask(ctx context.Context, pod *v1.Pod, names []string) (r reply, err error) {
	request := &loadlinev1.ScoreRequest{Pod: view.ScoredPod(pod, p.policy), Policy: p.policy}
	err = p.state.Ask(ctx, func(at *loadlinev1.Changes) error {
		r = reply{answer: neutral(names)} // asked again after a resync
		request.Changes = at
		request.Slots = request.Slots[:0]
		places := make([]int, 0, len(names)) // in the answer, by place in the request
		for i, name := range names {
			if slot, ok := p.state.Slot(name); ok {
				request.Slots = append(request.Slots, slot)
				places = append(places, i)
			}
		}
		p.metrics.unknownNodes.Add(float64(len(names) - len(places)))
		if len(places) == 0 { // an empty list would mean all nodes
			return guard.ErrNotAsked
		}
		response, err := p.engine.Score(ctx, request)
		if err != nil {
			return err
		}
		r.skip = fill(r.answer, places, response.GetScores())
		return nil
	})
	return r, err
}

// fill enters the engine's scores into an answer.
func fill(answer extenderv1.HostPriorityList, places []int, scores []int32) (skip string) {
	if len(scores) != len(places) {
		return skipBadAnswer
	}
	for i, score := range scores {
		if score < 0 || score > maxRawScore {
			return skipBadAnswer
		}
		answer[places[i]].Score = Quantise(score)
	}
	return ""
}

// skipOf returns the reason for an answer without the engine, if a verdict is one. The engine is looked after where it
// has lost the cluster, or seems to be gone.
func (p *prioritizer) skipOf(verdict guard.Verdict) (skip string) {
	switch verdict {
	case guard.Answered:
		return ""
	case guard.Invalid: // the fault of the pod: the engine is well
		return skipBadPod
	case guard.NotAsked:
		return skipUnknown
	case guard.Open:
		return skipBreakerOpen
	case guard.Busy:
		return skipBusy
	case guard.Panicked:
		return skipPanic
	case guard.Refused:
		skip = skipRefused
	case guard.Late, guard.Canceled:
		skip = skipDeadline
	default:
		skip = skipUnavailable
	}
	p.suspect()
	return skip
}

package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/filterconfig"
	"loadline.dev/shim/leftout"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/ranking"
	"loadline.dev/shim/scaleup"
	"loadline.dev/shim/sizing"
)

// askCluster has the node groups of a file ranked, or those that are derived from the nodes, for the pods of a cluster
// that wait. With `size`, it also asks how full those are that say how they are sized.
func (s *rankSource) askCluster(ctx context.Context, source *sourceFlags, engine engineFlags, stdin io.Reader,
	size *sizeSource) (*rank, error) {
	policy, err := s.settings.rank()
	if err != nil {
		return nil, err
	}
	file, err := s.load()
	if err != nil {
		return nil, err
	}
	loaded, err := s.settings.filters(ctx)
	if err != nil {
		return nil, err
	}
	now, err := s.time(size)
	if err != nil {
		return nil, err
	}
	remarks := s.settings.remarks()
	var sized *sizing.Gatherer
	if size != nil {
		sized = sizing.New()
	}
	alone := s.settings.deciding(config.ScaleUpDecision, config.SlackDecision) // which has placeholders not wait
	c, err := load(ctx, source, engine, stdin, s.options(&alone, loaded.Fit, now, remarks, sized))
	if err != nil {
		return nil, err
	}
	defer c.close()
	waits, err := s.waits(c, source, remarks)
	if err != nil {
		return nil, err
	}
	p, o, err := c.gather(&alone, loaded, file, waits)
	if err == nil && s.groups == "" {
		o, err = c.derived(ctx, p, waits)
	}
	if err != nil {
		return nil, err
	}
	r, err := s.put(ctx, c, p, o, policy)
	if err != nil {
		return nil, err
	}
	r.leftOut.Add(o.Pods.LeftOut()...)
	r.remarks, r.warnings = s.lines(remarks), append(r.warnings, o.Warnings...)
	r.addNotes(c, source, file)
	return r, r.addSizes(ctx, c, size, sized, file)
}

// waits returns what says which pods groups grow for, in a cluster that was read.
func (s *rankSource) waits(c *cluster, source *sourceFlags, remarks *scaleup.Remarks) (func(*v1.Pod) bool, error) {
	if s.only != nil {
		return s.only.take(c, source.name(), remarks)
	}
	return remarks.Waits, c.withoutPods(source, s.noPods)
}

// lines are about pods that are not planned for as others are, and about derived groups.
func (s *rankSource) lines(remarks *scaleup.Remarks) []string {
	if s.groups == "" {
		return append(remarks.Lines(), derivedNotes...)
	}
	return remarks.Lines()
}

// addSizes says how full groups are that are sized, where that is asked.
func (r *rank) addSizes(ctx context.Context, c *cluster, size *sizeSource, pods *sizing.Gatherer,
	file nodegroup.File) (err error) {
	isSized := func(g nodegroup.NodeGroup) bool { return g.Spec.Size != nil }
	if size == nil || !slices.ContainsFunc(file.Groups, isSized) {
		return nil
	}
	r.sizes, err = size.ask(ctx, c, pods, file)
	return err
}

// put puts the question.
func (s *rankSource) put(ctx context.Context, c *cluster, p *plan.Planner, o *plan.Loop,
	policy *ranking.Policy) (r *rank, err error) {
	_, err = p.Put(ctx, o, func(asked *plan.Plan) (err error) {
		if s.only == nil || s.only.held == "" {
			err = askRoom(ctx, p, asked)
		}
		if err == nil {
			r, err = s.askAt(ctx, c, asked, p.Client, policy)
		}
		if err == nil {
			r.warnings = heldLines(asked.Answer)
		}
		return err
	})
	if err != nil {
		return nil, engineError(err)
	}
	return r, nil
}

// addNotes says what holds for the cluster and its groups.
func (r *rank) addNotes(c *cluster, source *sourceFlags, file nodegroup.File) {
	r.sized = map[string]bool{}
	for i := range file.Groups {
		r.sized[file.Groups[i].Name()] = file.Groups[i].Spec.Size != nil
	}
	if _, known := c.counts.Objects["DaemonSet"]; source.fromFile() && !known {
		r.notes = append(r.notes, "The dump holds no DaemonSets: what they put on each new node does not count.")
	}
	r.notes = append(append(r.notes, r.remarks...), c.podNotes(source)...)
}

// options say what of a cluster ranking reads; and what sizing does, unless `sized` is nil.
func (s *rankSource) options(alone *config.Configuration, fit *loadlinev1.FitOptions, now time.Time,
	remarks *scaleup.Remarks, sized *sizing.Gatherer) loadOptions {
	options := loadOptions{planning: true, fit: fit, now: now, at: remarks.SetTime, empty: true, watch: alone,
		kinds: []string{"DaemonSet"}, pod: func(pod *v1.Pod) { remarks.AddWaiting(pod) }}
	if filterconfig.NeedsSelectors(fit) {
		options.kinds = append(options.kinds, selectorKinds...)
	}
	if sized != nil {
		options.kinds = nil
		options.pod = func(pod *v1.Pod) {
			remarks.AddWaiting(pod)
			sized.AddPod(pod)
		}
	}
	if s.only != nil { // for it groups grow whatever scheduler it names
		options.asked, options.pod, alone.ScaleUp.AllowedSchedulerNames = &s.only.name, nil, nil
	}
	return options
}

// askAt asks what groups would grow by, and in which order, at one state of the cluster.
func (s *rankSource) askAt(ctx context.Context, c *cluster, asked *plan.Plan, client loadlinev1.AutoscalerClient,
	policy *ranking.Policy) (*rank, error) {
	at := asked.Question.GetChanges()
	e, err := c.estimate(ctx, asked, client)
	if err != nil {
		return nil, err
	}
	problem, estimate := e.problem, e.answer
	request := &loadlinev1.RankOptionsRequest{Changes: at, Prices: s.settings.ScaleUp.PriceModel(policy),
		Policy: policy.Proto()}
	if s.clusterNodes >= 0 {
		request.Changes, request.ClusterNodes = nil, &s.clusterNodes
	}
	for _, pods := range problem.GetPods() {
		request.Pods = append(request.Pods, pods.GetPod().GetPod())
	}
	if request.Options, err = scaleup.Options(problem, estimate.GetGroups()); err != nil {
		return nil, err
	}
	priorities := policy.Matcher()
	for _, option := range request.Options {
		option.Priority = priorities.Of(option.GetNodeGroup())
	}
	var leftOut leftout.List
	c.leaveOut(&leftOut) // the engine has only a mark of what is wrong with them
	r, err := askRank(ctx, client, request, leftOut)
	if err != nil {
		return nil, err
	}
	r.tellRefusals(e)
	r.cutShortBy = estimate.GetCutShortBy()
	r.models = map[string]string{}
	for _, group := range estimate.GetGroups() {
		r.models[group.GetNodeGroup()] = group.GetModelSource()
	}
	r.notes = append(e.notes(), cutShortLines(optionsCutShort, r.cutShortBy)...)
	r.leftOut.AddAnswer(estimate)
	return r, nil
}

// rankEstimate is what each group would grow by, of a question of which all pods are in `all`.
type rankEstimate struct {
	estimated
	all  *loadlinev1.ScaleUpProblem
	room room
}

// estimate asks what each group would grow by alone: for the pods that find no room in a loop, within the maxima of the
// cluster.
func (c *cluster) estimate(ctx context.Context, asked *plan.Plan,
	client loadlinev1.AutoscalerClient) (*rankEstimate, error) {
	all := asked.Problem()
	all.Cluster = &loadlinev1.ScaleUpProblem_Changes{Changes: asked.Question.GetChanges()}
	names, err := podNames(all.GetPods())
	if err != nil {
		return nil, err
	}
	e := &rankEstimate{all: all, estimated: estimated{problem: all, pods: names}}
	ask := func() (err error) {
		e.answer, err = client.EstimateScaleUp(ctx,
			&loadlinev1.EstimateScaleUpRequest{Problem: e.problem, WithRefusals: true})
		return err
	}
	if err := ask(); err != nil {
		return nil, err
	}
	if e.room = roomBeside(asked.Answer, e.answer, len(names)); len(e.room.pods) > 0 {
		e.problem = e.room.without(all)
		if err := ask(); err != nil {
			return nil, err
		}
	}
	models, err := e.models()
	if err != nil {
		return nil, err
	}
	seen := &loadlinev1.PlanLoopResponse{Fleet: asked.Answer.GetFleet()} // groups are estimated before any grows
	maxima, err := c.maxima(ctx, asked, seen, &e.estimated, models)
	if err != nil {
		return nil, err
	}
	if e.capped = maxima.cap(&e.estimated, models); e.capped == nil {
		return e, nil
	}
	return e, ask()
}

// notes says what became of pods and groups beside the options, each in a sentence.
func (e *rankEstimate) notes() []string {
	notes := append(scaleup.Notes(e.all, e.answer), e.room.lines...)
	for i, note := range notes {
		group, limited := strings.CutSuffix(note, " may not grow further.")
		if why := e.capped[group]; limited && why != "" {
			notes[i] = fmt.Sprintf("%s may not grow further: %s.", group, why)
		}
	}
	return notes
}

// noNeed is why a group does not grow where no pod is left for it.
const noNeed = "no pod needs a new node"

// tellRefusals says of each option what of the pods that wait its group does not take, and why.
func (r *rank) tellRefusals(asked *rankEstimate) {
	r.fits = asked.room.where
	if existing := asked.answer.GetExisting(); len(existing) > 0 {
		r.fits = existing[0].GetNode()
	}
	for i, option := range r.options {
		group := int(option.GetOption())
		left := asked.leftBy(group)
		refusals := asked.refusals(group, left, "")
		switch {
		case len(refusals) > 0:
			r.options[i].Refused = refusals[0].String()
		case len(left) == 0:
			r.options[i].Refused = noNeed
		}
		r.refusals = append(r.refusals, refusals...)
	}
}

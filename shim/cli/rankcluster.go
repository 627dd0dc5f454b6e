package cli

import (
	"context"
	"io"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/filterconfig"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/ranking"
	"loadline.dev/shim/scaleup"
	"loadline.dev/shim/sizing"
)

// askCluster has the node groups of a file ranked, for the pods of a cluster that wait. With `size`, it also asks how
// full those are that say how they are sized.
func (s *rankSource) askCluster(ctx context.Context, source *sourceFlags, engine engineFlags, stdin io.Reader,
	size *sizeSource) (*rank, error) {
	policy, err := s.settings.rank()
	if err != nil {
		return nil, err
	}
	file, err := nodegroup.Load(s.groups)
	if err != nil {
		return nil, err
	}
	fit, err := s.settings.fit()
	if err != nil {
		return nil, err
	}
	remarks := s.settings.remarks(time.Time{})
	var sized *sizing.Gatherer
	if size != nil {
		sized = sizing.New()
	}
	alone := s.settings.deciding(config.ScaleUpDecision, config.SlackDecision) // which has placeholders not wait
	c, err := load(ctx, source, engine, stdin, s.options(&alone, fit, remarks, sized))
	if err != nil {
		return nil, err
	}
	defer c.close()
	waits := remarks.Waits
	if s.only != nil {
		if waits, err = s.only.take(c, source.name(), remarks); err != nil {
			return nil, err
		}
	}
	p, o, err := c.gather(&alone, &config.Loaded{Fit: fit}, file, time.Now(), waits)
	if err != nil {
		return nil, err
	}
	var r *rank
	_, err = p.Put(ctx, o, func(asked *plan.Plan) (err error) {
		r, err = s.askAt(ctx, asked.Question.GetChanges(), p.Client, asked.Problem(), policy)
		return err
	})
	if err != nil {
		return nil, engineError(err)
	}
	r.sized = map[string]bool{}
	for i := range file.Groups {
		r.sized[file.Groups[i].Name()] = file.Groups[i].Spec.Size != nil
	}
	c.leaveOut(&r.leftOut)
	r.leftOut.Add(o.Pods.LeftOut()...)
	if source.fromFile() && c.counts.Objects["DaemonSet"] == 0 {
		r.notes = append(r.notes, "The dump holds no DaemonSets: what they put on each new node does not count.")
	}
	r.remarks, r.warnings = remarks.Lines(), o.Warnings
	r.notes = append(r.notes, r.remarks...)
	if size != nil && slices.ContainsFunc(file.Groups, func(g nodegroup.NodeGroup) bool { return g.Spec.Size != nil }) {
		r.sizes, err = size.ask(ctx, c, sized, file)
	}
	return r, err
}

// options say what of a cluster ranking reads; and what sizing does, unless `sized` is nil.
func (s *rankSource) options(alone *config.Configuration, fit *loadlinev1.FitOptions, remarks *scaleup.Remarks,
	sized *sizing.Gatherer) loadOptions {
	options := loadOptions{planning: true, fit: fit, empty: true, watch: alone, kinds: []string{"DaemonSet"},
		pod: func(pod *v1.Pod) { remarks.AddWaiting(pod) }}
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
func (s *rankSource) askAt(ctx context.Context, at *loadlinev1.Changes, client loadlinev1.AutoscalerClient,
	problem *loadlinev1.ScaleUpProblem, policy *ranking.Policy) (*rank, error) {
	problem.Cluster = &loadlinev1.ScaleUpProblem_Changes{Changes: at}
	estimate, err := client.EstimateScaleUp(ctx, &loadlinev1.EstimateScaleUpRequest{Problem: problem, WithRefusals: true})
	if err != nil {
		return nil, err
	}
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
	r, err := askRank(ctx, client, request)
	if err != nil {
		return nil, err
	}
	if err := r.tellRefusals(problem, estimate); err != nil {
		return nil, err
	}
	r.cutShortBy = estimate.GetCutShortBy()
	r.models = map[string]string{}
	for _, group := range estimate.GetGroups() {
		r.models[group.GetNodeGroup()] = group.GetModelSource()
	}
	r.notes = append(scaleup.Notes(problem, estimate), cutShortLines(optionsCutShort, r.cutShortBy)...)
	r.leftOut.AddAnswer(estimate)
	return r, nil
}

// tellRefusals says of each option what of the pods that wait its group does not take, and why.
func (r *rank) tellRefusals(problem *loadlinev1.ScaleUpProblem, answer *loadlinev1.EstimateScaleUpResponse) error {
	names, err := podNames(problem.GetPods())
	if err != nil {
		return err
	}
	asked := estimated{problem, answer, names}
	if existing := answer.GetExisting(); len(existing) > 0 {
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
			r.options[i].Refused = "no pod needs a new node"
		}
		r.refusals = append(r.refusals, refusals...)
	}
	return nil
}

package cli

import (
	"context"
	"io"
	"slices"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
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
	gathered := s.settings.gatherer(file.Groups)
	gathered.Selectors = selectors(fit)
	var sized *sizing.Gatherer
	if size != nil {
		sized = sizing.New()
	}
	options := rankOptions(fit, gathered, sized)
	if s.only != nil {
		options.asked, options.pod = &s.only.name, func(pod *v1.Pod) {
			if s.only.see(pod) {
				gathered.AddPod(pod)
			}
		}
	}
	c, err := load(ctx, source, engine, stdin, options)
	if err != nil {
		return nil, err
	}
	defer c.close()
	if s.only != nil {
		if s.only.pod == nil {
			return nil, &noPodError{s.only.name.String(), source.name()}
		}
		gathered.Remarks.Add(s.only.pod)
		gathered.Pods.AddPod(s.only.waiting())
	}
	problem, err := gathered.Problem()
	if err != nil {
		return nil, err
	}
	problem.Fit, problem.StartupTaints = fit, s.settings.ScaleUp.StartupTaints.Proto()
	client := loadlinev1.NewAutoscalerClient(c.conn)
	var r *rank
	err = c.view.Ask(ctx, func(at *loadlinev1.Changes) (err error) {
		r, err = s.askAt(ctx, at, client, gathered.At(problem, c.view.Slot), policy)
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
	r.leftOut.Add(gathered.LeftOut()...)
	if source.fromFile() && c.counts.Objects["DaemonSet"] == 0 {
		r.notes = append(r.notes, "The dump holds no DaemonSets: what they put on each new node does not count.")
	}
	r.remarks = gathered.Remarks.Lines()
	r.notes = append(r.notes, r.remarks...)
	if size != nil && slices.ContainsFunc(file.Groups, func(g nodegroup.NodeGroup) bool { return g.Spec.Size != nil }) {
		if r.sizes, err = size.ask(ctx, c, sized, file); err != nil {
			return nil, err
		}
	}
	r.warnings = file.Warnings
	return r, nil
}

// rankOptions say what of a cluster ranking reads; and what sizing does, unless `sized` is nil.
func rankOptions(fit *loadlinev1.FitOptions, gathered *scaleup.Gatherer, sized *sizing.Gatherer) loadOptions {
	options := loadOptions{filters: true, fit: fit, empty: true, node: gathered.AddNode, pod: gathered.AddPod,
		object: gathered.AddObject, kinds: []string{"DaemonSet"}}
	if gathered.Selectors != nil {
		options.kinds = append(options.kinds, selectorKinds...)
	}
	if sized != nil {
		options.planning, options.kinds = true, nil
		options.pod = func(pod *v1.Pod) {
			gathered.AddPod(pod)
			sized.AddPod(pod)
		}
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

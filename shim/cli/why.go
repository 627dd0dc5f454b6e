package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"loadline.dev/shim/nodegroup"
)

// section is one part of the answer of `why`: what one decision thinks of the subject, and why. A new decision adds a
// section to whySections and nothing else.
type section struct {
	// key names the section in json and yaml.
	key string
	// ask returns the section's answer.
	ask func(ctx context.Context, q *podQuestion, top int) (answer, error)
}

var whySections = []section{{key: "score", ask: whyScore}, {key: "fit", ask: whyFit}}

// whyFlags are the flags of `why`.
type whyFlags struct {
	podFlags
	groups rankSource
	size   sizeSource
	most   int
}

func (a *app) newWhy() *cobra.Command {
	f := whyFlags{podFlags: podFlags{filters: true}}
	command := &cobra.Command{
		Use: "why POD | -p FILE | NODE | GROUP",
		Short: "Explain which node is preferred for a pod, whether a node can go, or the place of a node group, " +
			"and why",
		Long: "Explain which node is preferred for a pod: one line of verdict, then for the best nodes how their\n" +
			"scores come about, resource by resource: what the node offers, what the pods there and this pod\n" +
			"count as, by which rule, and what was clamped.\n\n" + candidatesHelp + "\n\n" +
			"GROUP is a node group of the file that --groups or --question names, or without both one that is\n" +
			"derived from the nodes: its place among those that could grow, as `loadline rank` has it, term by\n" +
			"term beside the best one, and how full it is, as `loadline size` has it.\n\n" +
			"NODE is a node: whether it can go, as `loadline drain` has it, or what keeps it. Write node/NODE or\n" +
			"pod/POD where a name could mean something else.",
		Example: `  loadline why shop/web-0
  loadline why node-3 -f cluster.json
  loadline why spot-large --groups groups.yaml
  loadline why -p pod.yaml -f cluster.json -o html > why.html`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.explain(cmd.Context(), &f, args)
		},
	}
	command.ValidArgsFunction = completeArgs([]namesOf{f.podNames, f.nodeNames, groupNames(&f.groups.groups)})
	f.groups.addTo(command.Flags(), "why")
	addPodFlags(command, &f.podFlags, formTable, formJSON, formYAML, formHTML)
	f.size.addTo(command.Flags())
	command.Flags().IntVar(&f.most, "top", 10, "explain only this many nodes, the best ones; 0: all")
	return command
}

// explain answers for what the arguments name: a node, a node group or a pod.
func (a *app) explain(ctx context.Context, f *whyFlags, args []string) error {
	if f.most < 0 {
		return usagef("--top %d: must not be negative", f.most)
	}
	if err := f.groups.settings.read(&f.engine); err != nil {
		return err
	}
	f.groups.noPods = f.size.noPods
	if len(args) == 1 && (mayBeNode(args[0]) || f.readOnce()) {
		f.kept = newKeptCluster() // several questions make the answer about a node, and about what is no pod
	}
	if len(args) == 1 && strings.HasPrefix(args[0], nodePrefix) {
		source := drainSource{groups: f.groups.groups, now: f.size.now, noPods: f.size.noPods,
			settings: f.groups.settings}
		return a.whyNamedNode(ctx, &f.podFlags, source, strings.TrimPrefix(args[0], nodePrefix))
	}
	if group, err := f.asksGroup(args); err != nil {
		return err
	} else if group {
		return a.whyGroup(ctx, &f.podFlags, &f.groups, &f.size, args)
	}
	f.how.Filters = f.groups.settings.Filters // the same flags, whatever is asked about
	q, err := f.question(ctx, a.streams.In, args)
	if missing := (*noPodError)(nil); errors.As(err, &missing) && len(args) == 1 {
		return a.whyNoPod(ctx, f, args[0], missing)
	}
	if noName := (*podNameError)(nil); errors.As(err, &noName) {
		return a.whyDerivedGroup(ctx, f, args[0], err)
	}
	if err != nil {
		return err
	}
	defer q.close()
	out, err := why(ctx, q, f.most)
	if err != nil {
		return err
	}
	return f.output.write(a.streams.Out, out)
}

// asksGroup says whether the arguments name a node group, and no pod or node.
func (f *whyFlags) asksGroup(args []string) (bool, error) {
	switch {
	case !f.groups.given(), f.groups.question == "" && f.podFile != "":
		return false, nil
	case f.groups.question != "" || len(args) == 0: // there is no cluster, or nothing is named
		return true, nil
	}
	file, err := f.groups.load()
	return slices.ContainsFunc(file.Groups, func(g nodegroup.NodeGroup) bool { return g.Name() == args[0] }), err
}

// mayBeNode says whether a name may be that of a node: a pod may have its namespace before it.
func mayBeNode(name string) bool {
	return strings.HasPrefix(name, nodePrefix) || !strings.Contains(name, "/")
}

// whyNoPod explains the node of this name, or the node group that is derived from nodes, where there is no such pod.
func (a *app) whyNoPod(ctx context.Context, f *whyFlags, name string, missing *noPodError) error {
	if mayBeNode(name) {
		source := drainSource{groups: f.groups.groups, now: f.size.now, noPods: f.size.noPods,
			settings: f.groups.settings}
		found, err := a.whyNode(ctx, &f.podFlags, source, name)
		if found || missing.isNode && err != nil {
			return err
		}
	}
	if f.groups.given() && mayBeNode(name) {
		return fmt.Errorf("%s has no node group %s, and %w", f.groups.groups, name, missing)
	}
	return a.whyDerivedGroup(ctx, f, name, missing)
}

// whyDerivedGroup explains the node group of this name that is derived from the nodes. If there is none, the error is
// that of what else the name could mean.
func (a *app) whyDerivedGroup(ctx context.Context, f *whyFlags, name string, otherwise error) error {
	if f.groups.given() || strings.HasPrefix(name, podPrefix) {
		return otherwise
	}
	r, err := f.groups.ask(ctx, &f.sourceFlags, f.engine, a.streams.In, &f.size)
	if err != nil || !r.has(name) {
		return otherwise
	}
	return a.writeGroup(&f.podFlags, r, name)
}

// why puts the sections together.
func why(ctx context.Context, q *podQuestion, top int) (answer, error) {
	data, out := map[string]any{"pod": q.name.String()}, answer{title: "Why this node"}
	for _, s := range whySections {
		part, err := s.ask(ctx, q, top)
		if err != nil {
			return answer{}, err
		}
		data[s.key], part.at = part.data, s.key
		out.parts = append(out.parts, part)
	}
	out.data, out.leftOut = data, &q.fitted.leftOut
	return out, nil
}

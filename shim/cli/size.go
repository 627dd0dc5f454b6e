package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/sizing"
)

// sizeSource says what `size` knows beside the cluster.
type sizeSource struct {
	state, mode, now string
	noPods           bool
}

func (s *sizeSource) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&s.state, "state", "", "file with what the pass before left, kind "+sizing.StateKind+
		": what a node offers of a group without nodes, and locks")
	flags.StringVar(&s.mode, "size-mode", "",
		"size all groups in this mode, whatever the file says: "+nodegroup.ModeDefault+", "+nodegroup.ModeCompat)
	flags.StringVar(&s.now, "now", "", "time of the pass, such as 2026-02-01T10:00:00Z (default: "+defaultTime+")")
	flags.BoolVar(&s.noPods, "no-pods", false, noPodsHelp)
}

func (s *sizeSource) check() error {
	if s.mode != "" && s.mode != nodegroup.ModeDefault && s.mode != nodegroup.ModeCompat {
		return usagef("--size-mode %q: must be %s or %s", s.mode, nodegroup.ModeDefault, nodegroup.ModeCompat)
	}
	if _, err := s.time(); err != nil {
		return usagef("--now %q: is not a time such as 2026-02-01T10:00:00Z", s.now)
	}
	return nil
}

// time returns the time of the pass, which --now says; zero: it is not given.
func (s *sizeSource) time() (time.Time, error) {
	if s.now == "" {
		return time.Time{}, nil
	}
	return time.Parse(time.RFC3339Nano, s.now)
}

// sizeFlags are the flags of `size`.
type sizeFlags struct {
	inquiry
	sizeSource
	groups string
}

func (a *app) newSize() *cobra.Command {
	var f sizeFlags
	command := &cobra.Command{
		Use:   "size --groups FILE",
		Short: "Tell how full node groups are, and by how many nodes they should grow or shrink",
		Long: `Tell how full node groups are, and by how many nodes they should grow or shrink, as Escalator decides it:
the requests of the pods of a group, over what its nodes offer, the larger one of cpu and memory, against
thresholds. Nothing is changed.

FILE holds node groups of kind ` + nodegroup.Kind + ` with spec.size, or is Escalator's own node group file.
By default its laws are applied to effective requests, in exact arithmetic, and without the cycles that
they can end up in; mode compat is Escalator as shipped.

A group without nodes grows by what a node of it offered when there was one (--state), else by its
template, else by one node.`,
		Example: `  loadline size --groups nodegroups.yaml
  loadline size --groups nodegroups.yaml -f cluster.json --size-mode compat -o json
  loadline size --groups nodegroups.yaml -o html > size.html`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := f.ask(cmd.Context(), a.streams.In)
			if err != nil {
				return err
			}
			a.warn(s.warnings)
			return f.output.write(a.streams.Out, s.forms())
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.groups, "groups", "", "file with node groups: kind "+nodegroup.Kind+", or Escalator's")
	f.sizeSource.addTo(flags)
	f.inquiry.addTo(flags, formTable, formJSON, formYAML, formHTML)
	f.output.ordered = true
	return command
}

func (f *sizeFlags) ask(ctx context.Context, stdin io.Reader) (*sizes, error) {
	if err := f.output.check(); err != nil {
		return nil, err
	}
	if f.groups == "" {
		return nil, usagef("--groups FILE is required")
	}
	if err := f.sizeSource.check(); err != nil {
		return nil, err
	}
	file, err := nodegroup.Load(f.groups)
	if err != nil {
		return nil, err
	}
	now, err := f.time()
	if err != nil {
		return nil, err
	}
	gathered := sizing.New()
	c, err := load(ctx, &f.sourceFlags, f.engine, stdin,
		loadOptions{planning: true, empty: true, now: now, pod: gathered.AddPod, object: gathered.AddObject})
	if err != nil {
		return nil, err
	}
	defer c.close()
	if err := c.withoutPods(&f.sourceFlags, f.noPods); err != nil {
		return nil, err
	}
	s, err := f.sizeSource.ask(ctx, c, gathered, file)
	if err != nil {
		return nil, err
	}
	s.warnings = append(file.Warnings, file.Ignored()...)
	return s, nil
}

// ask asks about the groups of a file in a cluster that is loaded.
func (s *sizeSource) ask(ctx context.Context, c *cluster, gathered *sizing.Gatherer,
	file nodegroup.File) (*sizes, error) {
	// A pass that is not carried out starts anew: the engine's own state supposes that the last one was.
	state := &loadlinev1.SizeState{}
	if s.state != "" {
		var err error
		if state, err = sizing.LoadState(s.state); err != nil {
			return nil, err
		}
	}
	out := &sizes{}
	for i := range file.Groups {
		switch size := file.Groups[i].Spec.Size; {
		case size == nil:
			out.left = append(out.left, file.Groups[i].Name())
		case s.mode != "":
			size.Mode = s.mode
		}
	}
	request, err := gathered.Request(file.Groups, c.now, state)
	if err != nil {
		return nil, err
	}
	client := loadlinev1.NewAutoscalerClient(c.conn)
	err = c.view.Ask(ctx, func(at *loadlinev1.Changes) error {
		request.Cluster = &loadlinev1.MeasureUtilizationRequest_Changes{Changes: at}
		out.response, err = client.MeasureUtilization(ctx, request)
		return err
	})
	if err != nil {
		return nil, engineError(err)
	}
	if len(out.response.GetGroups()) != len(request.GetGroups()) {
		return nil, fmt.Errorf("asked about %d node groups, answered about %d", len(request.GetGroups()),
			len(out.response.GetGroups()))
	}
	c.leaveOut(&out.leftOut)
	out.leftOut.Add(gathered.LeftOut()...)
	gathered.NameLeftOut(sizing.FieldOfRequest, out.response.GetLeftOut())
	out.leftOut.AddAnswer(out.response)
	out.asked, out.pods = request.GetGroups(), gathered
	return out, nil
}

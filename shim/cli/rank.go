package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/leftout"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/ranking"
)

// rankSource says which node groups could grow, and how they are ranked.
type rankSource struct {
	groups, question string
	now              string // empty: the present
	settings         settings
	clusterNodes     int32
	noPods           bool     // a dump without any pod is no error
	only             *onlyPod // nil: groups grow for all pods that wait
	file             nodegroup.File
	loaded           bool // `file` was read, which a pipe allows once
}

// load reads the file of groups; without one there is none in it.
func (s *rankSource) load() (nodegroup.File, error) {
	var err error
	if !s.loaded {
		s.file, err = loadGroups(s.groups)
		s.loaded = err == nil
	}
	return s.file, err
}

func (s *rankSource) addTo(flags *pflag.FlagSet, command string) {
	s.settings.addTo(flags, command, billSettings()) // a bill is part of what is explained of a node
	flags.StringVar(&s.groups, "groups", "", "file with the node groups that may grow, kind "+nodegroup.Kind+
		"; without it they are derived from the nodes, and may grow without limit")
	flags.StringVar(&s.question, "question", "",
		"file with options to be ranked as they stand there, kind "+ranking.QuestionKind+
			", instead of a cluster and its node groups")
	flags.Int32Var(&s.clusterNodes, "cluster-nodes", -1,
		"rank for a cluster of this many nodes (default: the present number)")
}

// time returns the time of the question, which --now of `size`, if not nil, says too.
func (s *rankSource) time(size *sizeSource) (time.Time, error) {
	if size != nil && s.now == "" {
		return size.time()
	}
	return timeOf(s.now)
}

// given says whether the command line names node groups.
func (s *rankSource) given() bool { return s.groups != "" || s.question != "" }

func (s *rankSource) check() error {
	switch {
	case s.groups != "" && s.question != "":
		return usagef("--groups and --question exclude each other")
	case s.clusterNodes < -1:
		return usagef("--cluster-nodes %d: must not be negative", s.clusterNodes)
	case s.question != "" && (s.settings.file != "" ||
		s.settings.flags.Changed(func(path string) bool { return reads(slices.Concat(readsPrices, readsRanking), path) })):
		return usagef("--question FILE says itself how to rank: no --config, --rank-policy, --rank-preset, --strategies " +
			"or --prices beside it")
	}
	return nil
}

// rankFlags are the flags of `rank`.
type rankFlags struct {
	inquiry
	rankSource
}

func (a *app) newRank() *cobra.Command {
	var f rankFlags
	command := &cobra.Command{
		Use:   "rank [--groups FILE | --question FILE]",
		Short: "Rank node groups that could grow for the pods that wait, by what they cost",
		Long: `Rank node groups that could grow for the pods that wait, best first:

  score = suppress(unfitness, nodes) * (cost + X) / (theoretical cost + X) * creation factor

the lowest first. cost is what the new nodes cost for an hour, theoretical cost what their pods would on
machines that suit them perfectly; unfitness is how far a node is from the one preferred for a cluster of
this size, and fades with the number of nodes.

How many nodes a group needs, and which pods they take, follows from kube-scheduler's filters, room on
nodes that are there first. Pods of DaemonSets count as what every new node carries, if the DaemonSets
that they name are there too.

A node group without a template is taken for what its nodes are. A dump should hold what filters look up:
'kubectl get nodes,pods,ds,namespaces,pv,pvc,storageclasses,csinodes,csidrivers,deviceclasses -A
-o json'.`,
		Example: `  loadline rank --groups groups.yaml --prices manifests/prices/aws-us-east-1.csv
  loadline rank --groups groups.yaml -f cluster.json -o html > rank.html
  loadline rank --question docs/ranking/proposal-100m.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmp.Or(f.output.check(), f.settings.read(&f.engine)); err != nil {
				return err
			}
			r, err := f.ask(cmd.Context(), &f.sourceFlags, f.engine, a.streams.In, nil)
			if err != nil {
				return err
			}
			a.warn(r.warnings)
			return f.output.write(a.streams.Out, r.forms())
		},
	}
	flags := command.Flags()
	f.rankSource.addTo(flags, "rank")
	addNowFlag(flags, &f.now)
	flags.BoolVar(&f.noPods, "no-pods", false, noPodsHelp)
	f.inquiry.addTo(flags, formTable, formJSON, formYAML, formHTML)
	f.output.ordered = true
	return command
}

// rank is a ranking.
type rank struct {
	options  []ranking.Ranked // best first
	response *loadlinev1.RankOptionsResponse
	// notes say what became of the pods and groups beside the ranking, each in a sentence.
	notes []string
	// refusals say why groups take no more of the pods that wait, in the order of the options.
	refusals []groupRefusal
	// sized are the groups that grow by nothing but how full they are.
	sized map[string]bool
	// remarks are about pods that are not planned for as others are; fits says where a pod finds room, if any does.
	remarks []string
	fits    string
	// cutShortBy is what was used up before all options were worked out; empty: nothing.
	cutShortBy string
	warnings   []string
	sizes      *sizes // nil: not asked for, or no group says how it is sized
	leftOut    leftout.List
	// models say by group how it is known what its new nodes will be.
	models map[string]string
}

// ask has node groups ranked; see askCluster for `size`.
func (s *rankSource) ask(ctx context.Context, source *sourceFlags, engine engineFlags, stdin io.Reader,
	size *sizeSource) (*rank, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if s.question != "" {
		return s.askQuestion(ctx, engine)
	}
	return s.askCluster(ctx, source, engine, stdin, size)
}

func (s *rankSource) askQuestion(ctx context.Context, engine engineFlags) (*rank, error) {
	question, err := ranking.LoadQuestion(s.question)
	if err != nil {
		return nil, err
	}
	if s.clusterNodes >= 0 {
		question.ClusterNodes = &s.clusterNodes
	}
	request, err := question.Proto()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.question, err)
	}
	conn, err := engine.open()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	r, err := askRank(ctx, loadlinev1.NewAutoscalerClient(conn), request, leftout.List{})
	return r, engineError(err)
}

// askRank asks for a ranking, where these objects are left out already: what is known of them is said first.
func askRank(ctx context.Context, client loadlinev1.AutoscalerClient, request *loadlinev1.RankOptionsRequest,
	leftOut leftout.List) (*rank, error) {
	response, err := client.RankOptions(ctx, request)
	if err != nil {
		return nil, err
	}
	options, err := ranking.Join(request, response)
	if err != nil {
		return nil, err
	}
	r := &rank{options: options, response: response, leftOut: leftOut}
	r.leftOut.AddAnswer(response)
	return r, nil
}

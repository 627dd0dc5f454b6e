package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/ranking"
)

// rankSource says which node groups could grow, and how they are ranked.
type rankSource struct {
	question     string
	clusterNodes int32
}

func (s *rankSource) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&s.question, "question", "", "file with options to be ranked as they stand there, kind "+ranking.QuestionKind)
	flags.Int32Var(&s.clusterNodes, "cluster-nodes", -1, "rank for a cluster of so many nodes (default: what the question says)")
}

// given says whether the command line names node groups.
func (s *rankSource) given() bool { return s.question != "" }

func (s *rankSource) check() error {
	switch {
	case !s.given():
		return usagef("--question FILE is required")
	case s.clusterNodes < -1:
		return usagef("--cluster-nodes %d: must not be negative", s.clusterNodes)
	}
	return nil
}

// rankFlags are the flags of `rank`.
type rankFlags struct {
	rankSource
	engine string
	output outputFlag
}

func (a *app) newRank() *cobra.Command {
	var f rankFlags
	command := &cobra.Command{
		Use:   "rank --question FILE",
		Short: "Rank node groups that could grow, by what they cost for what they take",
		Long: `Rank node groups that could grow, best first:

  score = suppress(unfitness, nodes) * (cost + X) / (theoretical cost + X) * creation factor

the lowest first. cost is what the new nodes cost for an hour, theoretical cost what their pods would on machines that
suit them perfectly; unfitness is how far a node is from the one preferred for a cluster of this size, and fades with the
number of nodes.`,
		Example: `  loadline rank --question docs/ranking/proposal-100m.yaml
  loadline rank --question docs/ranking/proposal-anti-affinity.yaml -o html > rank.html`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.output.check(); err != nil {
				return err
			}
			r, err := f.ask(cmd.Context(), f.engine)
			if err != nil {
				return err
			}
			return f.output.write(a.streams.Out, r.forms())
		},
	}
	flags := command.Flags()
	f.rankSource.addTo(flags)
	addEngineFlag(flags, &f.engine)
	addOutputFlag(flags, &f.output, formTable, formJSON, formYAML, formHTML)
	return command
}

// rank is a ranking.
type rank struct {
	options  []ranking.Ranked // best first
	response *loadlinev1.RankOptionsResponse
}

// ask has the options ranked.
func (s *rankSource) ask(ctx context.Context, address string) (*rank, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
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
	conn, err := engine.Open(address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	r, err := askRank(ctx, loadlinev1.NewAutoscalerClient(conn), request)
	return r, engineError(err)
}

func askRank(ctx context.Context, client loadlinev1.AutoscalerClient, request *loadlinev1.RankOptionsRequest) (*rank, error) {
	response, err := client.RankOptions(ctx, request)
	if err != nil {
		return nil, err
	}
	options, err := ranking.Join(request, response)
	if err != nil {
		return nil, err
	}
	return &rank{options: options, response: response}, nil
}

package cli

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"loadline.dev/shim/api/loadlinev1"
)

// scoreAnswer is the answer of `score`.
type scoreAnswer struct {
	Pod string `json:"pod"`
	// Scores are best first, ties by name.
	Scores []scoreLine `json:"scores"`
	// DoesNotFit are the nodes that are no candidates, and are not scored.
	DoesNotFit []refusal `json:"doesNotFit,omitempty"`
	// Remarks say what is special about the pod.
	Remarks []string `json:"remarks,omitempty"`
}

type scoreLine struct {
	Node string `json:"node"`
	// Score is normalized, 0 to 100.
	Score int32 `json:"score"`
	// Raw is higher for better: 100 nothing allowed, 0 at the load line, negative above it. Six decimals.
	Raw float64 `json:"raw"`
	// Reason says why a node has no raw score.
	Reason string `json:"reason,omitempty"`
}

func (a *app) newScore() *cobra.Command {
	flags := podFlags{filters: true}
	command := &cobra.Command{
		Use:   "score POD | -p FILE",
		Short: "Score nodes for a pod",
		Long: "Score the nodes that a pod fits on, best first: the score of 0 to 100 that a scheduler gets, and the raw " +
			"score that it is made of.\n\n" + candidatesHelp,
		Example: `  kubectl get nodes,pods -A -o json | loadline score shop/web-0 -f -
  loadline score -p pod.yaml --preset kep217 -o html > scores.html`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := flags.question(cmd.Context(), a.streams.In, args)
			if err != nil {
				return err
			}
			defer q.close()
			all, err := q.explain(cmd.Context())
			if err != nil {
				return err
			}
			return flags.output.write(a.streams.Out, q.scores(all))
		},
	}
	command.ValidArgsFunction = completeArgs([]namesOf{flags.podNames})
	flags.how.addTo(command.Flags())
	flags.nodes.addTo(command.Flags())
	addPodFlags(command, &flags, formTable, formJSON, formYAML, formHTML)
	flags.output.ordered = true
	return command
}

// scores is the answer of `score` in all forms. The page shows what each score is made of, as that of `why` does.
func (q *podQuestion) scores(all *loadlinev1.ExplainResponse) answer {
	s := newScoreAnswer(q.name, all)
	verdict := ""
	if len(s.Scores) == 0 {
		verdict = q.nowhere()
	}
	s.Scores = listedRows(q.listed, s.Scores, func(l scoreLine) string { return l.Node })
	s.DoesNotFit = listedRows(q.listed, q.fitted.DoesNotFit, refusal.node)
	s.Remarks = slices.Concat(q.listed.notes(), q.fitted.Remarks)
	out := answer{title: "Scores of nodes", data: s, verdict: verdict, lines: s.Remarks, leftOut: &q.fitted.leftOut}
	out.tables = append([]table{{rows: "scores", kind: "node", name: "node",
		columns: []column{{header: "NODE", path: "node"}, {header: "SCORE", path: "score", right: true},
			{header: "RAW", text: rawOf, right: true}, {text: func(r row) string { return r.str("reason") }}}}},
		beside(refusalTables[0]))
	drawn := newScoreSection(q, all)
	drawn.Nodes = listedRows(q.listed, drawn.Nodes, func(n scoreNode) string { return n.Node })
	out.page = func(w io.Writer) error {
		page := answer{title: "Scores of nodes", verdict: drawn.Verdict, cards: drawn.cards(), leftOut: out.leftOut,
			lines: slices.Concat(s.Remarks, drawn.lines())}
		return renderPage(w, page, nil)
	}
	return out
}

// nowhere is the verdict on a pod that fits on no node.
func (q *podQuestion) nowhere() string {
	return fmt.Sprintf("%s fits on none of %s now: none is scored", q.name, plural(len(q.fitted.DoesNotFit), "node"))
}

func newScoreAnswer(pod podName, all *loadlinev1.ExplainResponse) scoreAnswer {
	out := scoreAnswer{Pod: pod.String(), Scores: make([]scoreLine, 0, len(all.GetNodes()))}
	for _, node := range all.GetNodes() {
		out.Scores = append(out.Scores, scoreLine{
			Node: node.GetNode(), Score: node.GetScore(), Raw: roundRaw(node.GetRawScore()),
			Reason: reasonOf(node.GetOutcome()),
		})
	}
	return out
}

// reasonOf says why a node has no raw score; empty when it has one.
func reasonOf(outcome loadlinev1.NodeExplanation_Outcome) string {
	switch outcome {
	case loadlinev1.NodeExplanation_SCORED:
		return ""
	case loadlinev1.NodeExplanation_LACKS_LIMITED_RESOURCE:
		return "lacks a resource that the pod limits"
	case loadlinev1.NodeExplanation_NOTHING_COUNTED:
		return "offers none of the resources that count"
	}
	return outcome.String()
}

func beside(t table) table {
	t.aside = true
	return t
}

func apart(t table) table {
	t.apart = true
	return t
}

// roundRaw drops the digits below those that fixed-point arithmetic holds.
func roundRaw(raw float64) float64 {
	return math.Round(raw*1e6) / 1e6
}

func formatRaw(raw float64) string {
	return fmt.Sprintf("%.2f", raw)
}

package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/ranking"
	"loadline.dev/shim/report"
)

// groupAnswer is the answer of `why GROUP`: an option term by term, beside the one that it is to be compared with.
type groupAnswer struct {
	NodeGroup string `json:"nodeGroup"`
	// Place in the ranking, from 1 on, of so many.
	Place int `json:"place"`
	Of    int `json:"of"`
	// Verdict is the outcome in one line.
	Verdict string `json:"verdict"`
	// ModelSource says how it is known what a new node will be: template, shared by most nodes, or one node; absent
	// where options are ranked as a file states them.
	ModelSource string     `json:"modelSource,omitempty"`
	Option      rankOption `json:"option"`
	// Other is the best option, or of that one the runner-up; null where there is no other.
	Other *rankOption `json:"other"`
	// Size is how full the group is; absent where the file does not say how it is sized.
	Size *sizeGroup `json:"size,omitempty"`
}

// whyGroup is `why` for a node group.
func (a *app) whyGroup(ctx context.Context, flags *podFlags, groups *rankSource, size *sizeSource,
	args []string) error {
	if err := flags.output.checkOrdered(); err != nil {
		return err
	}
	if len(args) != 1 {
		return usagef("name a GROUP")
	}
	if err := size.check(); err != nil {
		return err
	}
	r, err := groups.ask(ctx, &flags.sourceFlags, flags.engine, a.streams.In, size)
	if err != nil {
		return err
	}
	return a.writeGroup(flags, r, args[0])
}

// writeGroup writes what explains the place of a node group.
func (a *app) writeGroup(flags *podFlags, r *rank, group string) error {
	out, err := r.whyGroup(group)
	if err = cmp.Or(err, flags.output.checkOrdered()); err != nil {
		return err
	}
	return flags.output.write(a.streams.Out, out)
}

// has says whether a node group is among those that are ranked.
func (r *rank) has(group string) bool {
	return slices.ContainsFunc(r.options, func(o ranking.Ranked) bool { return o.NodeGroup() == group })
}

// whyGroup explains the place of a node group.
func (r *rank) whyGroup(group string) (answer, error) {
	place := slices.IndexFunc(r.options, func(o ranking.Ranked) bool { return o.NodeGroup() == group })
	if place < 0 {
		return answer{}, fmt.Errorf("node group %s is not among the %d that could grow", group, len(r.options))
	}
	out := groupAnswer{NodeGroup: group, Place: place + 1, Of: len(r.options), Option: newRankOption(r.options[place])}
	out.ModelSource = r.models[group]
	shown := []ranking.Ranked{r.options[place]}
	out.Verdict = fmt.Sprintf("%s: place %d of %d; %s", group, out.Place, out.Of, r.options[place].Reason())
	if len(r.options) > 1 {
		other := 0
		if place == 0 {
			other = 1
		}
		best, behind := r.options[0], r.options[max(place, other)]
		shown = append(shown, r.options[other])
		o := newRankOption(r.options[other])
		out.Other = &o
		out.Verdict = fmt.Sprintf("%s: place %d of %d; %s over %s: %s", group, out.Place, out.Of, best.NodeGroup(),
			behind.NodeGroup(), ranking.Over(r.response.GetPolicy(), best, behind))
	}
	sized := r.sizes.only(group)
	if sized != nil {
		size := sized.group(0)
		out.Size = &size
	}
	terms := answer{data: out, verdict: out.Verdict, leftOut: &r.leftOut,
		tables: []table{subject("nodegroup", "nodeGroup"), {fixed: r.terms(shown), texts: []string{"TERM"}}},
		parts:  []answer{{lines: []string{r.basis()}}},
		page:   func(w io.Writer) error { return r.pageWith(w, sized.gauges()) }}
	if out.Size != nil {
		terms.parts = append(terms.parts, answer{verdict: out.Size.verdict(), tables: []table{sizeTable("size")},
			lines: out.Size.lines()})
	}
	return terms, nil
}

// terms have a line per term and a column per option.
func (r *rank) terms(shown []ranking.Ranked) report.Grid {
	grid := report.Grid{Header: []string{"TERM"}}
	line := func(name string, of func(o ranking.Ranked) string) {
		row := []string{name}
		for _, o := range shown {
			row = append(row, of(o))
		}
		grid.Rows = append(grid.Rows, row)
	}
	for _, o := range shown {
		grid.Header = append(grid.Header, o.NodeGroup())
	}
	if len(r.models) > 0 {
		line("new nodes known by", func(o ranking.Ranked) string { return r.models[o.NodeGroup()] })
	}
	for _, term := range rankTerms {
		line(term.name, term.of)
	}
	return grid
}

// rankTerms are the lines of `why GROUP`, from the inputs to the score and what follows from it.
var rankTerms = []struct {
	name string
	of   func(o ranking.Ranked) string
}{
	{"nodes", func(o ranking.Ranked) string { return strconv.Itoa(int(o.Asked.GetNodeCount())) }},
	{"pods", func(o ranking.Ranked) string { return strconv.FormatInt(o.GetPods(), 10) }},
	{"price of a node", priced(func(o ranking.Ranked) string { return o.Price() })},
	{"paid by commitments", priced(func(o ranking.Ranked) string { return sixDecimals(o.GetCommittedUsdPerHour()) })},
	{"C, cost", priced(func(o ranking.Ranked) string { return sixDecimals(o.GetCostUsdPerHour()) })},
	{"T, theoretical cost", func(o ranking.Ranked) string { return sixDecimals(o.GetTheoreticalCostUsdPerHour()) }},
	{"(C + X) / (T + X)", priced(func(o ranking.Ranked) string { return sixDecimals(o.GetCostRatio()) })},
	{"unfitness", priced(func(o ranking.Ranked) string { return sixDecimals(o.GetUnfitness()) })},
	{"suppressed", priced(func(o ranking.Ranked) string { return sixDecimals(o.GetSuppressedUnfitness()) })},
	{"creation factor", priced(func(o ranking.Ranked) string { return sixDecimals(o.GetCreationFactor()) })},
	{"score", func(o ranking.Ranked) string {
		if o.GetOutcome() != loadlinev1.RankedOption_SCORED {
			return o.Reason()
		}
		return sixDecimals(o.GetScore())
	}},
	{"waste", func(o ranking.Ranked) string {
		if o.Waste == nil {
			return "-"
		}
		return sixDecimals(o.GetWaste())
	}},
}

// priced leaves out a term that an option without a price does not have.
func priced(term func(ranking.Ranked) string) func(ranking.Ranked) string {
	return func(o ranking.Ranked) string {
		switch o.GetOutcome() {
		case loadlinev1.RankedOption_NO_PRICE, loadlinev1.RankedOption_NO_TEMPLATE,
			loadlinev1.RankedOption_HELPS_NO_POD:
			return "-"
		}
		return term(o)
	}
}

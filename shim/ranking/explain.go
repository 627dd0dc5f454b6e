package ranking

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"loadline.dev/shim/api/loadlinev1"
)

// Ranked is an option with its place in a ranking.
type Ranked struct {
	*loadlinev1.RankedOption
	// Asked is the option as it was put.
	Asked *loadlinev1.ExpansionOption
	// Refused says why the group takes no more of the pods that wait; empty: that is not known.
	Refused string
}

// NodeGroup returns the id of the group.
func (r Ranked) NodeGroup() string { return r.Asked.GetNodeGroup() }

// Join returns the options of a request in the order of the response. An error says that the response is not a
// permutation of them.
func Join(request *loadlinev1.RankOptionsRequest, response *loadlinev1.RankOptionsResponse) ([]Ranked, error) {
	asked := request.GetOptions()
	if len(response.GetOptions()) != len(asked) {
		return nil, fmt.Errorf("asked about %d options, answered about %d", len(asked), len(response.GetOptions()))
	}
	seen := make([]bool, len(asked))
	out := make([]Ranked, 0, len(asked))
	for _, option := range response.GetOptions() {
		at := option.GetOption()
		if at < 0 || int(at) >= len(asked) || seen[at] {
			return nil, errors.New("the answer is not a permutation of the options")
		}
		seen[at] = true
		out = append(out, Ranked{RankedOption: option, Asked: asked[at]})
	}
	return out, nil
}

// Reason tells in a line how the score of an option came about, or why it has none.
func (r Ranked) Reason() string {
	switch r.GetOutcome() {
	case loadlinev1.RankedOption_SCORED, loadlinev1.RankedOption_UNDEFINED_SCORE:
	case loadlinev1.RankedOption_NO_PRICE:
		return "no price: " + remarks(r.GetNodePrice())
	case loadlinev1.RankedOption_NO_TEMPLATE:
		return "no template node"
	case loadlinev1.RankedOption_HELPS_NO_POD:
		return cmp.Or(r.Refused, "adds no node, or takes no pod")
	default:
		return r.GetOutcome().String()
	}
	score := "score " + number(r.GetScore())
	if r.GetOutcome() == loadlinev1.RankedOption_UNDEFINED_SCORE {
		score = "no score (0 / 0)"
	}
	return fmt.Sprintf("%s = %s%s%s", score, strings.Join(r.terms(), " * "), BeforePrice, r.Price())
}

// BeforePrice precedes the price of a node in a reason.
const BeforePrice = "; price of a node "

// Price says what a node costs, and the source of the price.
func (r Ranked) Price() string { return PriceText(r.GetNodePrice()) }

// PriceText says what a node costs, and the source of the price; empty: it has none.
func PriceText(price *loadlinev1.NodePrice) string {
	if price.GetSource() == loadlinev1.NodePrice_SOURCE_UNSPECIFIED {
		return ""
	}
	return number(price.GetUsdPerHour()) + " " + sourceOf(price)
}

// terms are what the score is the product of.
func (r Ranked) terms() []string {
	fit := "unfitness " + number(r.GetSuppressedUnfitness())
	if r.GetSuppressedUnfitness() != r.GetUnfitness() {
		fit += fmt.Sprintf(" (%s, suppressed)", number(r.GetUnfitness()))
		if r.GetHasGpu() && r.GetSuppressedUnfitness() > r.GetUnfitness() {
			fit = fmt.Sprintf("unfitness %s (a node with GPUs)", number(r.GetSuppressedUnfitness()))
		}
	}
	x := r.GetDamperUsdPerHour()
	ratio := fmt.Sprintf("cost ratio %s (%s + %s over %s + %s)", number(r.GetCostRatio()),
		number(r.GetCostUsdPerHour()), number(x), number(r.GetTheoreticalCostUsdPerHour()), number(x))
	terms := []string{fit, ratio}
	if factor := r.GetCreationFactor(); factor != 1 {
		terms = append(terms, "creation "+number(factor))
	}
	return terms
}

// sourceOf names the source of a price.
func sourceOf(price *loadlinev1.NodePrice) string {
	text := "(" + strings.ReplaceAll(sources.Word(price.GetSource().Number()), "-", " ")
	if price.GetKey() != "" {
		text += " " + price.GetKey() + " in " + price.GetCatalogue()
		for _, about := range []string{price.GetRegion(), price.GetDate()} {
			if about != "" {
				text += ", " + about
			}
		}
	}
	if price.GetSpot() {
		text += ", spot"
	}
	if ratio := price.GetSpotRatio(); ratio > 0 {
		text += " at " + number(ratio) + " of on demand"
	}
	if noted := remarks(price); noted != "" {
		text += "; " + noted
	}
	return text + ")"
}

// remarks tells what was passed over on the way to a price.
func remarks(price *loadlinev1.NodePrice) string {
	var out []string
	for _, remark := range price.GetRemarks() {
		out = append(out, strings.ToLower(strings.ReplaceAll(remark.String(), "_", " ")))
	}
	return strings.Join(out, ", ")
}

// Over tells what put one option before another.
func Over(policy *loadlinev1.RankPolicy, first, second Ranked) string {
	for _, strategy := range policy.GetStrategies() {
		if text := differ(strategy, first, second); text != "" {
			return text
		}
	}
	if first.GetHasGpu() != second.GetHasGpu() && second.GetGpuUnneeded() {
		return "else equal, but it has no GPU that no pod asks for"
	}
	return "equal in all that counts; by name"
}

// differ tells how a strategy tells two options apart; empty if it does not.
func differ(strategy loadlinev1.RankPolicy_Strategy, first, second Ranked) string {
	against := func(what string, a, b float64) string {
		if a == b {
			return ""
		}
		return fmt.Sprintf("%s %s against %s", what, number(a), number(b))
	}
	switch strategy {
	case loadlinev1.RankPolicy_PRICE:
		return overByPrice(first, second)
	case loadlinev1.RankPolicy_LEAST_WASTE:
		switch {
		case first.Waste != nil && second.Waste != nil:
			return against("waste", first.GetWaste(), second.GetWaste())
		case first.Waste != nil:
			return "the waste of the other is not known"
		}
	case loadlinev1.RankPolicy_MOST_PODS:
		return against("pods", float64(first.GetPods()), float64(second.GetPods()))
	case loadlinev1.RankPolicy_LEAST_NODES:
		return against("nodes", float64(first.Asked.GetNodeCount()), float64(second.Asked.GetNodeCount()))
	case loadlinev1.RankPolicy_PRIORITY:
		switch {
		case first.Asked.Priority != nil && second.Asked.Priority != nil:
			return against("priority", float64(first.Asked.GetPriority()), float64(second.Asked.GetPriority()))
		case first.Asked.Priority != nil:
			return "the other has no priority"
		}
	case loadlinev1.RankPolicy_JOINT:
		return against("USD/h of the joint plan", first.GetJointUsdPerHour(), second.GetJointUsdPerHour())
	}
	return ""
}

func overByPrice(first, second Ranked) string {
	if first.GetOutcome() != second.GetOutcome() {
		return "the other has " + outcomeWords[second.GetOutcome()]
	}
	if first.GetScore() == second.GetScore() {
		return ""
	}
	return fmt.Sprintf("score %s against %s: unfitness %s against %s, cost ratio %s against %s",
		number(first.GetScore()), number(second.GetScore()), number(first.GetSuppressedUnfitness()),
		number(second.GetSuppressedUnfitness()), number(first.GetCostRatio()), number(second.GetCostRatio()))
}

var outcomeWords = map[loadlinev1.RankedOption_Outcome]string{
	loadlinev1.RankedOption_UNDEFINED_SCORE: "no score: nothing is asked for and nothing is paid",
	loadlinev1.RankedOption_NO_PRICE:        "no price",
	loadlinev1.RankedOption_NO_TEMPLATE:     "no template node",
	loadlinev1.RankedOption_HELPS_NO_POD:    "no pod that it helps",
}

// number writes a number with the digits that people compare.
func number(value float64) string {
	return fmt.Sprintf("%.6g", value)
}

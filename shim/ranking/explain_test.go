package ranking

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"loadline.dev/shim/api/loadlinev1"
)

// The small machine of the proposal's example for a pod of 1.5 CPU, 50 times under anti-affinity:
// (4-1)*(1-tanh(49/15))+1 = 1.008712, (50*0.095+0.016)/(50*0.045+0.016) = 2.103266, their product 2.121590.
func small() Ranked {
	return Ranked{Asked: &loadlinev1.ExpansionOption{NodeGroup: "small", NodeCount: 50},
		RankedOption: &loadlinev1.RankedOption{
			Outcome: loadlinev1.RankedOption_SCORED, Score: 2.1215899, SuppressedUnfitness: 1.0087121,
			CostRatio:      2.1032657,
			CreationFactor: 1, Unfitness: 4, CostUsdPerHour: 4.75, TheoreticalCostUsdPerHour: 2.25,
			DamperUsdPerHour: 0.016, Pods: 50,
			Waste:     proto.Float64(0.25),
			NodePrice: &loadlinev1.NodePrice{Source: loadlinev1.NodePrice_GIVEN, UsdPerHour: 0.095}}}
}

func TestReasons(t *testing.T) {
	if got, want := small().Reason(), "score 2.12159 = unfitness 1.00871 (4, suppressed) * cost ratio 2.10327 "+
		"(4.75 + 0.016 over 2.25 + 0.016); price of a node 0.095 (given)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	gpu := small()
	gpu.Unfitness, gpu.SuppressedUnfitness, gpu.HasGpu, gpu.CreationFactor, gpu.Score = 1, 1000, true, 2, 4206.5314
	gpu.NodePrice = &loadlinev1.NodePrice{Source: loadlinev1.NodePrice_FAMILY, UsdPerHour: 0.095, Key: "n1",
		Catalogue: "gce.csv", Spot: true,
		Remarks: []loadlinev1.NodePrice_Remark{loadlinev1.NodePrice_INSTANCE_TYPE_NOT_LISTED}}
	if got, want := gpu.Reason(), "score 4206.53 = unfitness 1000 (a node with GPUs) * cost ratio 2.10327 (4.75 + "+
		"0.016 over 2.25 + 0.016) * creation 2; price of a node 0.095 (family n1 in gce.csv, spot; instance type not "+
		"listed)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for outcome, want := range map[loadlinev1.RankedOption_Outcome]string{
		loadlinev1.RankedOption_NO_PRICE:        "no price: no instance type, sources exhausted",
		loadlinev1.RankedOption_NO_TEMPLATE:     "no template node",
		loadlinev1.RankedOption_HELPS_NO_POD:    "adds no node, or takes no pod",
		loadlinev1.RankedOption_UNDEFINED_SCORE: "no score (0 / 0)",
	} {
		r := small()
		r.Outcome = outcome
		r.NodePrice.Remarks = []loadlinev1.NodePrice_Remark{loadlinev1.NodePrice_NO_INSTANCE_TYPE,
			loadlinev1.NodePrice_SOURCES_EXHAUSTED}
		if got := r.Reason(); !strings.HasPrefix(got, want) {
			t.Errorf("%v: %s, want %s", outcome, got, want)
		}
	}
}

func TestWhatPutsOneBeforeTheOther(t *testing.T) {
	all := []loadlinev1.RankPolicy_Strategy{loadlinev1.RankPolicy_PRICE, loadlinev1.RankPolicy_LEAST_WASTE,
		loadlinev1.RankPolicy_MOST_PODS, loadlinev1.RankPolicy_LEAST_NODES, loadlinev1.RankPolicy_PRIORITY}
	for name, c := range map[string]struct {
		change func(second *Ranked)
		want   string
	}{
		"score": {func(s *Ranked) { s.Score, s.SuppressedUnfitness, s.CostRatio = 8.397, 1, 8.397 },
			"score 2.12159 against 8.397: unfitness 1.00871 against 1, cost ratio 2.10327 against 8.397"},
		"no price": {func(s *Ranked) { s.Outcome = loadlinev1.RankedOption_NO_PRICE }, "the other has no price"},
		"waste":    {func(s *Ranked) { s.Waste = proto.Float64(0.5) }, "waste 0.25 against 0.5"},
		"no waste": {func(s *Ranked) { s.Waste = nil }, "the waste of the other is not known"},
		"pods":     {func(s *Ranked) { s.Pods = 49 }, "pods 50 against 49"},
		"nodes":    {func(s *Ranked) { s.Asked.NodeCount = 51 }, "nodes 50 against 51"},
		"GPU": {func(s *Ranked) { s.HasGpu, s.GpuUnneeded = true, true },
			"else equal, but it has no GPU that no pod asks for"},
		"name":           {func(s *Ranked) { s.Asked.NodeGroup = "tiny" }, "equal in all that counts; by name"},
		"other priority": {func(s *Ranked) { s.Asked.Priority = proto.Int64(3) }, "priority 7 against 3"},
		"no priority":    {func(s *Ranked) { s.Asked.Priority = nil }, "the other has no priority"},
	} {
		first, second := small(), small()
		first.Asked.Priority, second.Asked.Priority = proto.Int64(7), proto.Int64(7)
		c.change(&second)
		if got := Over(&loadlinev1.RankPolicy{Strategies: all}, first, second); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestJoinRefusesWhatIsNoPermutation(t *testing.T) {
	request := &loadlinev1.RankOptionsRequest{Options: []*loadlinev1.ExpansionOption{{NodeGroup: "a"},
		{NodeGroup: "b"}}}
	answer := func(positions ...int32) *loadlinev1.RankOptionsResponse {
		out := &loadlinev1.RankOptionsResponse{}
		for _, position := range positions {
			out.Options = append(out.Options, &loadlinev1.RankedOption{Option: position})
		}
		return out
	}
	got, err := Join(request, answer(1, 0))
	if err != nil || got[0].NodeGroup() != "b" || got[1].NodeGroup() != "a" {
		t.Errorf("got %v, %v", got, err)
	}
	for _, positions := range [][]int32{{}, {0}, {0, 0}, {0, 2}, {-1, 0}, {0, 1, 0}} {
		if got, err := Join(request, answer(positions...)); err == nil {
			t.Errorf("%v: %v", positions, got)
		}
	}
}

package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"loadline.dev/shim/internal/testing/enginetest"
)

// rankJSON runs `rank -o json`.
func rankJSON(t *testing.T, args ...string) rankAnswer {
	t.Helper()
	t.Setenv("LOADLINE_LIBRARY", enginetest.Library(t))
	out, errs, code := run(t, "loadline", "", append([]string{"rank", "-o", "json"}, args...)...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var got rankAnswer
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// proposalRow is a line of the proposal's tables, as test/vectors/data/cases.md has them.
type proposalRow struct {
	group           string
	cost, unfitness float64
	ratio, score    string // six decimals
}

func TestTablesOfTheProposal(t *testing.T) {
	for file, want := range map[string][]proposalRow{
		"proposal-100m.yaml": {
			{"n1-standard-8", 0.380, 1, "20.842105", "20.842105"},
			{"n1-standard-2", 0.095, 4, "5.842105", "23.368421"},
			{"n1-standard-2-gpu", 0.795, 4, "42.684211", "170.736842"},
		},
		"proposal-1500m.yaml": {
			{"n1-standard-8", 0.380, 1, "6.491803", "6.491803"},
			{"n1-standard-2", 0.095, 4, "1.819672", "7.278689"},
			{"n1-standard-2-gpu", 0.795, 4, "13.295082", "53.180328"},
		},
	} {
		got := rankJSON(t, "--question", "../../docs/ranking/"+file)
		if len(got.Options) != len(want) || got.Best == nil || *got.Best != want[0].group {
			t.Fatalf("%s: best %v of %d options", file, got.Best, len(got.Options))
		}
		for i, w := range want {
			o := got.Options[i]
			if o.NodeGroup != w.group || *o.Cost != w.cost || *o.Unfitness != w.unfitness || o.NodeCount != 1 ||
				o.Pods != 1 ||
				fmt.Sprintf("%.6f", *o.CostRatio) != w.ratio || fmt.Sprintf("%.6f", *o.Score) != w.score {
				t.Errorf("%s: %s: cost %v, unfitness %v, ratio %.6f, score %.6f, want %+v", file, o.NodeGroup, *o.Cost,
					*o.Unfitness, *o.CostRatio, *o.Score, w)
			}
		}
	}
}

// 50 pods that exclude each other: suppress(4, 50) = 1.008712, as the proposal prints it, and the small machine wins.
func TestFiftyPodsUnderAntiAffinityChooseTheSmallMachine(t *testing.T) {
	got := rankJSON(t, "--question", "../../docs/ranking/proposal-anti-affinity.yaml")
	if got.Best == nil || *got.Best != "n1-standard-2" {
		t.Fatalf("best %v", got.Best)
	}
	small, large := got.Options[0], got.Options[1]
	if text := fmt.Sprintf("%.6f", *small.SuppressedUnfitness); text != "1.008712" || small.NodeCount != 50 ||
		small.Pods != 50 {
		t.Errorf("suppressed unfitness %s, %d nodes, %d pods", text, small.NodeCount, small.Pods)
	}
	// (50 * 0.095 + 0.016) / (50 * 0.045 + 0.016), and 0.380 for the large machine, whose unfitness is 1.
	for _, c := range []struct {
		option rankOption
		score  float64
	}{{small, 1.0087121 * 4.766 / 2.266}, {large, 19.016 / 2.266}} {
		if math.Abs(*c.option.Score-c.score) > 1e-6 {
			t.Errorf("%s: score %v, want %v", c.option.NodeGroup, *c.option.Score, c.score)
		}
	}
	if large.NodeGroup != "n1-standard-8" {
		t.Errorf("second is %s", large.NodeGroup)
	}
}

// B5: the terms of every option multiply up to the score shown.
func TestTermsMultiplyUpToTheScore(t *testing.T) {
	for _, file := range []string{"proposal-100m.yaml", "proposal-1500m.yaml", "proposal-anti-affinity.yaml"} {
		for _, o := range rankJSON(t, "--question", "../../docs/ranking/"+file).Options {
			ratio := (*o.Cost + *o.Damper) / (*o.TheoreticalCost + *o.Damper)
			if ratio != *o.CostRatio {
				t.Errorf("%s: %s: (%v + X) / (%v + X) is %v, shown %v", file, o.NodeGroup, *o.Cost, *o.TheoreticalCost,
					ratio, *o.CostRatio)
			}
			if product := *o.SuppressedUnfitness * *o.CostRatio * *o.CreationFactor; product != *o.Score {
				t.Errorf("%s: %s: the terms give %v, shown %v", file, o.NodeGroup, product, *o.Score)
			}
		}
	}
}

func TestWhyGroup(t *testing.T) {
	t.Setenv("LOADLINE_LIBRARY", enginetest.Library(t))
	const question = "../../docs/ranking/proposal-100m.yaml"
	for group, want := range map[string]string{
		"n1-standard-8": "n1-standard-8: place 1 of 3; n1-standard-8 over n1-standard-2: score 20.8421 against " +
			"23.3684",
		"n1-standard-2-gpu": "n1-standard-2-gpu: place 3 of 3; n1-standard-8 over n1-standard-2-gpu: score 20.8421 " +
			"against 170.737",
	} {
		if out, errs, code := run(t, "loadline", "", "why", group, "--question", question); code != 0 ||
			!strings.HasPrefix(out, want) {
			t.Errorf("exit %d, %s, out %s, want %s", code, errs, out, want)
		}
	}
	if _, errs, code := run(t, "loadline", "", "why", "absent", "--question", question); code != 1 ||
		!strings.Contains(errs, "node group absent is not among the 3") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

func TestRankPageIsSelfContained(t *testing.T) {
	t.Setenv("LOADLINE_LIBRARY", enginetest.Library(t))
	out, errs, code := run(t, "loadline", "", "rank", "--question", "../../docs/ranking/proposal-100m.yaml",
		"-o", "html")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, bad := range []string{"<script", "http://", "https://"} {
		if strings.Contains(out, bad) {
			t.Errorf("the page holds %s", bad)
		}
	}
	// Each of three bars has a part for its ratio, and two one for unfitness.
	if got := strings.Count(out, "<rect"); got != 5 {
		t.Errorf("%d parts, want 5", got)
	}
}

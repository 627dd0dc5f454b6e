package config

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"loadline.dev/shim/api/loadlinev1"
)

func TestWindowsAndCostsAreRefusedWithTheirKey(t *testing.T) {
	for want, s := range map[string]Consolidation{
		"replacementWindows: \"0 22 * *\" must have":    {ReplacementWindows: []string{"0 22 * *"}},
		"replacementWindows: \"0 22 * * * 6 UTC\"":      {ReplacementWindows: []string{"0 22 * * * 6 UTC"}},
		"it must last for 1s to":                        {ReplacementWindows: []string{"0 22 * * * 0s"}},
		"unknown time zone Moon/Tycho":                  {ReplacementWindows: []string{"0 22 * * * 6h Moon/Tycho"}},
		"replacementWindows: \"0 25 * * * 6h\"":         {ReplacementWindows: []string{"0 25 * * * 6h"}},
		"replacementWindows: number of entries 65 must": {ReplacementWindows: make([]string, 65)},
		"podDisruptionCosts: \"high=1\" must be":        {PodDisruptionCosts: []string{"high=1"}},
		"podDisruptionCosts: \"1000\" must be":          {PodDisruptionCosts: []string{"1000"}},
		"podDisruptionCosts: \"1000=-1\" must be":       {PodDisruptionCosts: []string{"1000=-1"}},
		"podDisruptionCosts: \"1000=NaN\" must be":      {PodDisruptionCosts: []string{"1000=NaN"}},
		"podDisruptionCosts: 7 occurs twice":            {PodDisruptionCosts: []string{"7=1", "7=2"}},
		"podDisruptionCosts: number of entries 65 must": {PodDisruptionCosts: make([]string, 65)},
	} {
		c := Default()
		c.Consolidation.ReplacementWindows, c.Consolidation.PodDisruptionCosts = s.ReplacementWindows, s.PodDisruptionCosts
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

func TestCostsByPriority(t *testing.T) {
	s := Consolidation{PodDisruptionCosts: []string{"1000=0.01", " -5 = 0"}}
	costs, err := s.CostsByPriority()
	if err != nil {
		t.Fatal(err)
	}
	want := []*loadlinev1.DisturbancePrice{{FromPriority: 1000, Usd: 0.01}, {FromPriority: -5}}
	if !slices.EqualFunc(costs, want, func(a, b *loadlinev1.DisturbancePrice) bool { return proto.Equal(a, b) }) {
		t.Errorf("got %v, want %v", costs, want)
	}
}

package fit

import (
	"reflect"
	"testing"
)

// The generator is worth as much as what it makes upstream say; no engine is needed to know that.
func TestGeneratorMakesEveryFilterDecide(t *testing.T) {
	upstream, err := NewUpstream(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	coverage := NewCoverage()
	for seed := range uint64(3000) {
		c := GenerateCase(seed)
		after, ok := c.After()
		if !ok {
			t.Fatalf("seed %d: moves cannot be made: %v", seed, c.Moves)
		}
		if again := GenerateCase(seed); !reflect.DeepEqual(again, c) {
			t.Fatalf("seed %d: another cluster the second time", seed)
		}
		answers, err := upstream.Filter(t.Context(), after)
		if err != nil {
			t.Fatal(err)
		}
		coverage.Add(after, answers)
	}
	t.Log("\n" + coverage.String())
	if rare := coverage.Rare(leastShare); len(rare) > 0 {
		t.Errorf("in less than %d %% of the cases: %v", leastShare, rare)
	}
}

package defaultscores

import (
	"bufio"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// row is one row of test/vectors/data/peer_scores.jsonl; see README.md there.
type row struct {
	ID string `json:"id"`
	Fn string `json:"fn"`
	In struct {
		Weights    map[string]int64   `json:"weights"`
		Mode       mode               `json:"mode"`
		Nodes      []json.RawMessage  `json:"nodes"`
		PodAsksFor []string           `json:"pod_asks_for"`
		Configs    [][]resourceWeight `json:"configs"`
	} `json:"in"`
	Want struct {
		Norm        []int64  `json:"norm"`
		Scores      []int64  `json:"scores"`
		ErrorFields []string `json:"error_fields"`
	} `json:"want"`
}

func TestVectors(t *testing.T) {
	file, err := os.Open(filepath.Join("..", "..", "test", "vectors", "data", "peer_scores.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	passed := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), `{"_meta"`) {
			continue
		}
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		t.Run(r.ID, r.check)
		passed++
	}
	if passed != 8 {
		t.Errorf("%d rows, want 8", passed)
	}
}

func (r row) check(t *testing.T) {
	names := slices.Sorted(maps.Keys(r.In.Weights))
	weights := amounts(names, r.In.Weights)
	switch r.Fn {
	case "node_resources_allocatable":
		var nodes [][]int64
		for _, raw := range r.In.Nodes {
			var node map[string]int64
			if err := json.Unmarshal(raw, &node); err != nil {
				t.Fatal(err)
			}
			nodes = append(nodes, amounts(names, node))
		}
		if got := allocatableScores(weights, r.In.Mode, nodes); !slices.Equal(got, r.Want.Norm) {
			t.Errorf("got %v, want %v", got, r.Want.Norm)
		}
	case "allocatable_config":
		var got []string
		for _, config := range r.In.Configs {
			got = append(got, refusedWeights(config)...)
		}
		if !slices.Equal(got, r.Want.ErrorFields) {
			t.Errorf("got %v, want %v", got, r.Want.ErrorFields)
		}
	case "least_allocated":
		if got := r.leastAllocated(t, names, weights); !slices.Equal(got, r.Want.Scores) {
			t.Errorf("got %v, want %v", got, r.Want.Scores)
		}
	default:
		t.Fatalf("unknown fn %q", r.Fn)
	}
}

func (r row) leastAllocated(t *testing.T, names []string, weights []int64) (scores []int64) {
	for _, raw := range r.In.Nodes {
		var node struct {
			Allocatable map[string]int64 `json:"allocatable"`
			Requested   map[string]int64 `json:"requested_after"`
		}
		if err := json.Unmarshal(raw, &node); err != nil {
			t.Fatal(err)
		}
		for name := range node.Allocatable {
			// A scalar resource counts only for pods that ask for it.
			if strings.Contains(name, "/") && !slices.Contains(r.In.PodAsksFor, name) {
				delete(node.Allocatable, name)
			}
		}
		scores = append(scores,
			LeastAllocated(weights, amounts(names, node.Requested), amounts(names, node.Allocatable)))
	}
	return scores
}

func amounts(names []string, of map[string]int64) []int64 {
	out := make([]int64, len(names))
	for i, name := range names {
		out[i] = of[name]
	}
	return out
}

// Counted by hand. Two resources: half of the difference of their shares is the deviation.
func TestBalancedAllocation(t *testing.T) {
	for _, c := range []struct {
		name                       string
		before, after, allocatable []int64
		want                       int64
	}{
		{"as even as before", []int64{0, 0}, []int64{500, 500}, []int64{1000, 1000}, 75},
		{"evened out: deviation 25 before, 0 after", []int64{500, 0}, []int64{500, 500}, []int64{1000, 1000}, 87},
		{"the opposite: 0 before, 50 after", []int64{0, 0}, []int64{1000, 0}, []int64{1000, 1000}, 50},
		{"shares above 1 count as 1", []int64{3000, 1000}, []int64{4000, 2000}, []int64{1000, 1000}, 75},
		{"one resource is always even", []int64{0, 7}, []int64{900, 7}, []int64{1000, 0}, 75},
		{"three resources: deviation 100*sqrt(2)/3 = 47.1 after", []int64{0, 0, 0}, []int64{1000, 0, 0},
			[]int64{1000, 1000, 1000}, 51},
		{"no resource", nil, nil, nil, 75},
	} {
		if got := BalancedAllocation(c.before, c.after, c.allocatable); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

func TestLeastAllocatedAtTheEdges(t *testing.T) {
	const huge = int64(1) << 62
	for _, c := range []struct {
		name                            string
		weights, requested, allocatable []int64
		want                            int64
	}{
		{"full", []int64{1}, []int64{10}, []int64{10}, 0},
		{"one over", []int64{1, 1}, []int64{11, 0}, []int64{10, 10}, 50},
		{"nothing offered", []int64{1}, []int64{0}, []int64{0}, 0},
		{"huge", []int64{1}, []int64{0}, []int64{huge}, 100},
		{"huge and half", []int64{1}, []int64{huge / 2}, []int64{huge}, 50},
	} {
		if got := LeastAllocated(c.weights, c.requested, c.allocatable); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

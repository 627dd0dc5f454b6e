package watch

import (
	"maps"
	"slices"
	"testing"
)

// Whenever it changes whether nodes share a machine, the other nodes of it are sent again.
func TestNodesThatShareAMachine(t *testing.T) {
	m := machines{nodes: map[string]map[string]bool{}}
	stated := map[string]string{}
	for i, step := range []struct {
		name, id string
		others   []string
		shared   []string // ids
	}{
		{"a", "x", nil, nil},
		{"a", "x", nil, nil},
		{"b", "", nil, nil},
		{"b", "x", []string{"a"}, []string{"x"}},
		{"c", "x", nil, []string{"x"}},
		{"c", "y", nil, []string{"x"}},
		{"b", "y", []string{"a", "c"}, []string{"y"}},
		{"b", "", []string{"c"}, nil},
		{"a", "", nil, nil},
		{"c", "", nil, nil},
	} {
		others := slices.Sorted(slices.Values(m.set(step.name, stated[step.name], step.id)))
		stated[step.name] = step.id
		var shared []string
		m.shared.Range(func(id, _ any) bool {
			shared = append(shared, id.(string))
			return true
		})
		if !slices.Equal(others, step.others) || !slices.Equal(shared, step.shared) {
			t.Errorf("step %d: told again %v, want %v; shared %v, want %v", i, others, step.others, shared, step.shared)
		}
	}
	if len(m.nodes) > 0 {
		t.Errorf("left over: %v", slices.Collect(maps.Keys(m.nodes)))
	}
}

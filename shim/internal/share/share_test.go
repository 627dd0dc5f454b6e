package share

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// itemsOf reads "priority/namespace*cost".
func itemsOf(t *testing.T, texts ...string) (items []Item) {
	t.Helper()
	for _, text := range texts {
		var i Item
		if _, err := fmt.Sscanf(strings.NewReplacer("/", " ", "*", " ").Replace(text), "%d %s %d", &i.Priority,
			&i.Namespace, &i.Cost); err != nil {
			t.Fatal(err)
		}
		items = append(items, i)
	}
	if !slices.IsSortedFunc(items, byTurn) {
		t.Fatal("not in order")
	}
	return items
}

func TestTurns(t *testing.T) {
	for name, c := range map[string]struct {
		items []string
		limit int
		// by loop
		want [][]int
	}{
		"AllFit":            {[]string{"0/a*5", "0/b*5"}, 10, [][]int{{0, 1}, {0, 1}}},
		"OneByteTooMuch":    {[]string{"0/a*5", "0/b*6"}, 10, [][]int{{0}, {1}, {0}}},
		"HigherFirst":       {[]string{"9/z*6", "0/a*5", "0/b*4"}, 10, [][]int{{0, 2}, {0, 2}}},
		"LargeOneIsSkipped": {[]string{"0/a*11", "0/a*3", "0/b*7"}, 10, [][]int{{1, 2}, {1, 2}}},
		"NamespacesInTurns": {[]string{"0/a*2", "0/a*2", "0/a*2", "0/a*2", "0/b*2", "0/c*2"}, 8,
			[][]int{{0, 1, 4, 5}, {2, 3, 4, 5}, {0, 1, 4, 5}}},
		"NobodyWaitsForever": {[]string{"0/a*4", "0/a*4", "0/a*4"}, 4, [][]int{{0}, {1}, {2}, {0}}},
		"AnotherOneBegins":   {[]string{"0/a*9", "0/b*9", "0/c*9"}, 9, [][]int{{0}, {1}, {2}, {0}}},
		"Nothing":            {nil, 0, [][]int{nil}},
	} {
		t.Run(name, func(t *testing.T) {
			var turn Turns
			for loop, want := range c.want {
				var got []int
				if got, turn = turn.Take(itemsOf(t, c.items...), c.limit, 2); !slices.Equal(got, want) {
					t.Errorf("loop %d: took %v, want %v", loop, got, want)
				}
			}
		})
	}
}

// byTurn orders items as Take wants them.
func byTurn(a, b Item) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Namespace, b.Namespace))
}

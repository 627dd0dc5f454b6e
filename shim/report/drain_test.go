package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// kinds writes the steps of a row: "taint evict2 wait delete".
func kinds(row []drainStep) string {
	var out []string
	for _, step := range row {
		text := step.Kind
		if step.Kind == "evict" {
			text += fmt.Sprint(len(step.Moves))
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func TestTimelineOfADrain(t *testing.T) {
	pods := func(n int, budget string) (out []DrainMove) {
		for i := range n {
			out = append(out, DrainMove{Pod: fmt.Sprint("p", i), To: "z", Budget: budget})
		}
		return out
	}
	for _, c := range []struct {
		name             string
		parallel, drains int
		nodes            [][]DrainMove
		want             []string
	}{
		{"an empty node goes at once", 10, 5, [][]DrainMove{nil}, []string{"taint delete"}},
		{"pods without budget go together", 10, 5, [][]DrainMove{pods(3, "")}, []string{"taint evict3 delete"}},
		{"a budget of two lets two go at a time", 10, 5, [][]DrainMove{pods(5, "two")},
			[]string{"taint evict2 evict2 evict1 delete"}},
		{"nodes share a budget", 10, 5, [][]DrainMove{pods(2, "two"), pods(1, "two")},
			[]string{"taint evict2 delete", "taint wait evict1 delete"}},
		{"one drain at a time", 10, 1, [][]DrainMove{pods(1, ""), pods(1, ""), nil},
			[]string{"taint evict1 delete", "idle idle idle taint evict1 delete", "taint delete"}},
		{"one node at a time", 1, 5, [][]DrainMove{nil, nil}, []string{"taint delete", "idle idle taint delete"}},
		{"placeholders are not evicted", 10, 5, [][]DrainMove{{{Pod: "slack-0", To: "z", Placeholder: true}}},
			[]string{"taint delete"}},
	} {
		d := Drain{Parallel: c.parallel, Drains: c.drains, Left: map[string]int64{"two": 2}}
		for i, moves := range c.nodes {
			d.Remove = append(d.Remove, DrainNode{Name: fmt.Sprint("n", i), Start: "now", Moves: moves})
		}
		rows, _, cut := d.timeline()
		for i, want := range c.want {
			if got := kinds(rows[i]); got != want || cut {
				t.Errorf("%s: node %d: %s, want %s", c.name, i, got, want)
			}
		}
	}
}

func TestTimelineIsBounded(t *testing.T) {
	node := DrainNode{Name: "n", Moves: make([]DrainMove, 10*mostSteps)}
	for i := range node.Moves {
		node.Moves[i].Budget = "one"
	}
	d := Drain{Parallel: 1, Drains: 1, Left: map[string]int64{"one": 1}, Remove: []DrainNode{node}}
	if _, steps, cut := d.timeline(); steps != mostSteps || !cut {
		t.Errorf("%d steps, cut %v", steps, cut)
	}
}

func TestDrainPageIsSelfContainedAndEscaped(t *testing.T) {
	const hostile = "<script>alert(1)</script>\x1b[31m"
	d := Drain{Title: hostile, Verdict: hostile, Lines: []string{hostile}, Parallel: 1, Drains: 1,
		Remove: []DrainNode{
			{Name: hostile, Start: hostile, Moves: []DrainMove{{Pod: hostile, To: hostile, Budget: hostile}}}},
		Keep: [][]string{{hostile, hostile, hostile, hostile}}}
	var out bytes.Buffer
	if err := d.Write(&out); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script", "\x1b", "http:", "https:", "src="} {
		if strings.Contains(out.String(), bad) {
			t.Errorf("the page has %q", bad)
		}
	}
}

// A node without a row takes part: b is tainted in the second step, when a has gone.
func TestDrainListsSomeNodes(t *testing.T) {
	var all, some bytes.Buffer
	d := Drain{Remove: []DrainNode{{Name: "a"}, {Name: "b"}}, Parallel: 1, Drains: 1}
	if err := d.Write(&all); err != nil {
		t.Fatal(err)
	}
	d.Listed = func(node string) bool { return node == "b" }
	if err := d.Write(&some); err != nil {
		t.Fatal(err)
	}
	_, row, found := strings.Cut(all.String(), `aria-label="drain of b"`)
	if !found || strings.Contains(some.String(), "drain of a") || !strings.HasSuffix(some.String(), row) {
		t.Errorf("the page is %s", some.String())
	}
}

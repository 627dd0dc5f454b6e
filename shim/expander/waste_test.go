package expander

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// leastWasteRow is a row of fn least_waste in test/vectors/data/expander.jsonl.
type leastWasteRow struct {
	ID string `json:"id"`
	Fn string `json:"fn"`
	In struct {
		Pod struct {
			MilliCPU int64 `json:"mcpu"`
			MiB      int64 `json:"memory_mib"`
		} `json:"pod"`
		Nodes   int32 `json:"nodes"`
		Options map[string]struct {
			MilliCPU int64 `json:"node_mcpu"`
			MiB      int64 `json:"node_memory_mib"`
		} `json:"options"`
	} `json:"in"`
	Want struct {
		BestOf []struct {
			Options []string `json:"options"`
			Best    string   `json:"best"`
		} `json:"best_of"`
	} `json:"want"`
}

func TestLeastWasteOfTheVectors(t *testing.T) {
	file, err := os.Open(filepath.Join("..", "..", "test", "vectors", "data", "expander.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	asserted := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var row leastWasteRow
		if json.Unmarshal(lines.Bytes(), &row) != nil || row.Fn != "least_waste" {
			continue // rows of other functions have other fields
		}
		for _, best := range row.Want.BestOf {
			q := &question{templates: map[string][]byte{},
				shapes: [][]byte{marshal(t, ordinaryPod("p", milli(row.In.Pod.MilliCPU), mebi(row.In.Pod.MiB)))}}
			for _, group := range best.Options {
				size := row.In.Options[group]
				q.options = append(q.options, option{group, row.In.Nodes, []podRun{{0, 1}}})
				q.templates[group] = marshal(t, templateNode("x", milli(size.MilliCPU), mebi(size.MiB)))
			}
			if got := q.options[leastWaste(q)].group; got != best.Best {
				t.Errorf("%s: %s of %v, want %s", row.ID, got, best.Options, best.Best)
			}
			asserted++
		}
	}
	if asserted == 0 {
		t.Error("no row of least_waste was found")
	}
}

func milli(amount int64) string { return fmt.Sprintf("%dm", amount) }

func mebi(amount int64) string { return fmt.Sprintf("%dMi", amount) }

func TestLeastWasteOfOddOptions(t *testing.T) {
	template := marshal(t, templateNode("x", "2", "4Gi"))
	q := &question{
		shapes: [][]byte{marshal(t, ordinaryPod("p", "1", "2Gi")), {0xff}},
		templates: map[string][]byte{"none": template, "full": template, "half": template, "twice": template,
			"empty": marshal(t, &v1.Node{}), "broken": {0xff}, "unread": template},
	}
	options := map[string]option{
		"none":   {"none", 0, nil},                // no new node
		"lost":   {"lost", 1, []podRun{{0, 2}}},   // no template
		"empty":  {"empty", 1, []podRun{{0, 2}}},  // a template that offers nothing
		"broken": {"broken", 1, []podRun{{0, 2}}}, // a template that cannot be read
		"unread": {"unread", 1, []podRun{{1, 2}}}, // pods that cannot be read: all is left over
		"half":   {"half", 1, []podRun{{0, 1}}},   // half of each is left over
		"full":   {"full", 1, []podRun{{0, 2}}},   // nothing is
		"twice":  {"twice", 2, []podRun{{0, 4}}},  // nothing is, of two
	}
	for _, c := range []struct {
		groups []string
		want   string
	}{
		{[]string{"none", "lost", "empty", "broken"}, "none"}, // none better than the first
		{[]string{"none", "lost", "unread"}, "unread"},
		{[]string{"unread", "half", "lost"}, "half"},
		{[]string{"half", "full", "twice"}, "full"}, // of equals the first
		{[]string{"twice", "half", "full"}, "twice"},
	} {
		q.options = nil
		for _, group := range c.groups {
			q.options = append(q.options, options[group])
		}
		if got := q.options[leastWaste(q)].group; got != c.want {
			t.Errorf("%v: %s, want %s", c.groups, got, c.want)
		}
	}
}

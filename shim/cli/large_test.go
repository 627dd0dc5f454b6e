package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// More nodes than one answer of the engine explains.
func TestScoresOfManyNodesComeInSeveralAnswers(t *testing.T) {
	const nodes = 6000
	if chunk := explainChunk(2); chunk >= nodes/2 {
		t.Fatalf("%d nodes are explained in one answer: this test needs more", chunk)
	}
	var dump strings.Builder
	dump.WriteString(`{"kind":"List","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},` +
		`"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1","memory":"1Gi"}}}]}}`)
	for i := range nodes {
		fmt.Fprintf(&dump,
			`,{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-%04d"},"status":{"allocatable":`+
				`{"cpu":"%d","memory":"64Gi","pods":"110"}}}`,
			i, 1+i%100)
	}
	dump.WriteString(`]}`)
	out, errs, code := run(t, "loadline", dump.String(), "score", "p", "-f", "-", "-o", "json")
	if code != 0 {
		t.Fatal(errs)
	}
	var got scoreAnswer
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Scores) != nodes {
		t.Fatalf("%d nodes, want %d", len(got.Scores), nodes)
	}
	seen := map[string]bool{}
	for i, line := range got.Scores {
		seen[line.Node] = true
		if i == 0 {
			continue
		}
		before := got.Scores[i-1]
		if line.Score > before.Score || line.Score == before.Score && line.Node < before.Node {
			t.Fatalf("%+v comes after %+v", line, before)
		}
	}
	if len(seen) != nodes {
		t.Errorf("%d distinct nodes, want %d", len(seen), nodes)
	}
	// The largest nodes have 100 cpu, the smallest 1: 99 and 0 % of it free, and 98.4 % of the memory.
	if first, last := got.Scores[0], got.Scores[nodes-1]; first.Node != "node-0099" || first.Score != 100 ||
		first.Raw != 98.71875 || last.Node != "node-5900" || last.Score != 0 || last.Raw != 49.21875 {
		t.Errorf("first %+v, last %+v", first, last)
	}
}

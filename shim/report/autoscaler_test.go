package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

func TestAutoscalerPage(t *testing.T) {
	page := Autoscaler{Title: "Autoscaler", Verdict: "Leads.", Warnings: []string{"No node goes: \x1b[31m"},
		Lines: []string{"As of now."}, Refresh: 10, Groups: []AutoscalerGroup{
			{Name: "<script>", Min: 2, Max: 20, Target: 10, Nodes: 8, Going: 2, Note: "1 could go"},
			{Name: "over", Min: 0, Max: 1, Target: 1, Nodes: 4},
		},
		Slack: []SlackClass{{Name: "zone a", Note: "3 nodes", Reason: "ready",
			Bars: []SlackBar{{Resource: "cpu", Wanted: 500, Kept: 500, Ready: 250}}}},
		Nodes: Placement{Nodes: []Node{
			{Name: "idle", Resources: map[string]Amounts{"cpu": {Allocatable: 1000}}},
			{Name: "full", Resources: map[string]Amounts{"cpu": {Allocatable: 1000, Limits: 2000, Requests: 500},
				"memory": {Limits: gib}}},
			{Name: "half", Resources: map[string]Amounts{"cpu": {Allocatable: 1000, Limits: 500, Requests: 500}}},
		}},
		Notes: map[string]string{"idle": "could go"},
		Tables: []TitledGrid{{Title: "Pods that wait", None: "No pod waits."},
			{Title: "Why", Note: "And 3 others.", Grid: Grid{Header: []string{"A"}, Rows: [][]string{{"<b>"}}}}},
	}
	var out bytes.Buffer
	if err := AutoscalerPage(&out, page); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{"<script>", "<b>", "\x1b", "http://", "https://", "src="} {
		if strings.Contains(out.String(), wrong) {
			t.Errorf("the page has %q", wrong)
		}
	}
	texts, widths := drawn(t, &out)
	for _, want := range []string{`! No node goes: \x1b[31m`, "1 could go",
		"8 nodes, 2 going, 4 on their way; target 10, 2 to 20", "4 nodes; target 1, 0 to 1",
		"No pod waits.", "And 3 others.", "<b>", "limits 2.00, requests 0.50", "offers none", "could go",
		"0.25 of 0.5 cpu"} {
		if !slices.Contains(texts, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	// Groups: of 300 units 6, 2 and 4 of 20 nodes, then 4 of 4. Slack: half of 260 each. Nodes: the scale ends at 2.0,
	// of 220 units; the fullest first, and one has no limits.
	want := []string{"90", "30", "60", "300", "130", "130", "220", "55"}
	if !slices.Equal(widths, want) {
		t.Errorf("bars of %v, want %v", widths, want)
	}
	full, half, idle := slices.Index(texts, "full"), slices.Index(texts, "half"), slices.Index(texts, "idle")
	if full < 0 || full > half || half > idle {
		t.Errorf("the order of the nodes is not that of their loads: %d, %d, %d", full, half, idle)
	}
}

// drawn returns the texts of a page, and the widths of its bars, but for those of histograms.
func drawn(t *testing.T, page *bytes.Buffer) (texts, widths []string) {
	t.Helper()
	root, err := html.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Type == html.TextNode {
			texts = append(texts, strings.TrimSpace(n.Data))
		}
		if n.Data != "rect" || n.Parent.Parent.Data == "figure" {
			continue
		}
		for _, a := range n.Attr {
			if a.Key == "width" {
				widths = append(widths, a.Val)
			}
		}
	}
	return texts, widths
}

// largeAutoscaler has as many groups and nodes as there may be.
func largeAutoscaler() Autoscaler {
	page := Autoscaler{Title: "Autoscaler", Verdict: "Leads.", Notes: map[string]string{}}
	for i := range 1000 {
		page.Groups = append(page.Groups,
			AutoscalerGroup{Name: fmt.Sprintf("group-%d", i), Max: 100, Target: 15, Nodes: 15})
	}
	for i := range 15000 {
		name := fmt.Sprintf("node-%05d", i)
		page.Nodes.Nodes = append(page.Nodes.Nodes, Node{Name: name, Resources: map[string]Amounts{
			"cpu":    {Allocatable: 8000, Limits: int64(i % 16000), Requests: int64(i % 8000)},
			"memory": {Allocatable: 32 * gib, Limits: gib, Requests: gib}}})
		page.Notes[name] = "could go"
	}
	return page
}

// The page of a large cluster is small, and tells how much it does not show.
func TestAutoscalerPageOfLargeCluster(t *testing.T) {
	var out bytes.Buffer
	if err := AutoscalerPage(&out, largeAutoscaler()); err != nil {
		t.Fatal(err)
	}
	if out.Len() > 200<<10 {
		t.Errorf("%d bytes", out.Len())
	}
	texts, _ := drawn(t, &out)
	for _, want := range []string{"And 900 others.", "And 14960 others, none of them fuller. loadline top shows all.",
		"node-14999"} {
		if !slices.Contains(texts, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

func BenchmarkAutoscalerPage(b *testing.B) {
	page := largeAutoscaler()
	for b.Loop() {
		if err := AutoscalerPage(&bytes.Buffer{}, page); err != nil {
			b.Fatal(err)
		}
	}
}

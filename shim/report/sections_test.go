package report

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

func TestSections(t *testing.T) {
	var out bytes.Buffer
	first := Section{Verdict: "pod5: node2 over node1\x1b[31m", Lines: []string{"Policy strict."}, Cards: []Card{
		{Node: "node2", Score: 100, Raw: -12.5, Bars: []CardBar{
			{Resource: "cpu", Allocatable: 8000, There: 5000, Pod: 4000, Note: "this pod by rule Request"},
			{Resource: "memory", Allocatable: 0},
		}},
		{Node: "<script>", Score: 0, Raw: math.NaN(), Note: "lacks a resource that the pod limits", Bars: []CardBar{
			{Resource: "cpu", Allocatable: 1, There: 1 << 62, Pod: 1 << 62},
			{Resource: "memory", Allocatable: gib, There: gib / 2},
		}},
	}}
	second := Section{Verdict: "pod5 fits on 1 of 2 nodes",
		Grid: Grid{Header: []string{"FILTER"}, Rows: [][]string{{"<script>\x07"}}}}
	if err := Sections(&out, "Why <node2>", first, second); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "<script>") || strings.ContainsAny(out.String(), "\x1b\x07") {
		t.Error("a name is not escaped")
	}
	root, err := html.Parse(&out)
	if err != nil {
		t.Fatal(err)
	}
	var texts, widths []string
	for n := range root.Descendants() {
		if n.Type == html.TextNode {
			texts = append(texts, strings.TrimSpace(n.Data))
		}
		if n.Data == "rect" {
			for _, a := range n.Attr {
				if a.Key == "width" {
					widths = append(widths, a.Val)
				}
			}
		}
	}
	for _, want := range []string{
		`pod5: node2 over node1\x1b[31m`, "9 / 8 = 1.13", "pods there 5, this pod 4, allocatable 8 cpu", "offers none",
		"this pod by rule Request", "lacks a resource that the pod limits", "-12.50", "none",
		"0.5Gi / 1Gi = 0.50",
		"pod5 fits on 1 of 2 nodes", "FILTER", `<script>\x07`,
	} {
		if !slices.Contains(texts, want) && !slices.Contains(texts, strings.Replace(want, "0.5Gi", "512Mi", 1)) {
			t.Errorf("the page does not say %q", want)
		}
	}
	isCut := func(s string) bool { return strings.HasSuffix(s, " (longer than drawn)") }
	if far := slices.IndexFunc(texts, isCut); far < 0 {
		t.Error("the page does not say that a bar is longer than drawn")
	}
	// The scale ends at 4: 220 units, 55 per load line. node2: 5/8 and 4/8 of it; the absurd bar fills the scale. The pod
	// adds nothing to the others.
	if want := []string{"34.375", "27.5", "220", "27.5"}; !slices.Equal(widths, want) {
		t.Errorf("bars of %v, want %v", widths, want)
	}
}

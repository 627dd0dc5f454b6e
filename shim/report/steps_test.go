package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

func TestStepsPage(t *testing.T) {
	page := Steps{Title: "Cost", Verdict: "<less>", Lines: []string{"a line"},
		Grid: Grid{Header: []string{"x"}, Rows: [][]string{{"<b>"}}},
		Charts: []StepChart{{Title: "USD per hour", Series: []StepSeries{
			{Name: "one", Points: []StepPoint{{0, 0}, {5, 0.2}, {6, 0.2}, {10, 0.4}},
				Marks: []StepMark{{5, "load <arrives>"}}},
			{Name: "two", Points: []StepPoint{{0, 0.1}, {10, 0.1}}},
		}}}}
	var out bytes.Buffer
	if err := StepsPage(&out, page); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "<b>") || strings.Contains(out.String(), "<less>") ||
		strings.Contains(out.String(), "<arrives>") {
		t.Error("a text is not escaped")
	}
	root, err := html.Parse(&out)
	if err != nil {
		t.Fatal(err)
	}
	var paths, texts []string
	for n := range root.Descendants() {
		if n.Type == html.TextNode {
			texts = append(texts, strings.TrimSpace(n.Data))
		}
		if n.Data == "path" {
			for _, a := range n.Attr {
				if a.Key == "d" {
					paths = append(paths, a.Val)
				}
			}
		}
	}
	// Time: 680 units for 10 s from 56 on. Value: 120 units for 0.4 up from 132. Two lines of the legend, two of the
	// chart, a mark.
	want := []string{"M0 9H36", "M0 9H36", "M56.0 132.0H396.0V72.0H736.0V12.0", "M56.0 102.0H736.0", "M396 132v8"}
	if !slices.Equal(paths, want) {
		t.Errorf("paths %q, want %q", paths, want)
	}
	for _, text := range []string{"load <arrives>", "0.4", "10", "seconds", "<less>"} {
		if !slices.Contains(texts, text) {
			t.Errorf("the page does not say %q", text)
		}
	}
}

package report

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"loadline.dev/shim/api/loadlinev1"
)

var update = flag.Bool("update", false, "write the golden files anew")

const gib = int64(1) << 30

// proposal is the example of the limit-aware scoring proposal: two nodes of 8 cpu, and where pod5 went.
func proposal() []Placement {
	node := func(name string, requests, limits int64) Node {
		return Node{Name: name, Resources: map[string]Amounts{
			"cpu": {Allocatable: 8000, Limits: limits, Requests: requests},
		}}
	}
	return []Placement{
		{Name: "stock", Nodes: []Node{node("node1", 5000, 14000), node("node2", 5000, 5000)}},
		{Name: "loadline", Nodes: []Node{node("node1", 4000, 10000), node("node2", 6000, 9000)}, PendingPods: 1},
	}
}

func TestTableShowsPlacementsSideBySide(t *testing.T) {
	var text bytes.Buffer
	if err := Table(&text, proposal()); err != nil {
		t.Fatal(err)
	}
	compareGolden(t, "proposal.txt", text.Bytes())
}

func TestTableOfHostileNamesAndMissingResources(t *testing.T) {
	placements := []Placement{{Name: "red\x1b[31m", Nodes: []Node{
		{Name: "a", Resources: map[string]Amounts{
			"cpu": {Allocatable: 1000, Limits: 1 << 62}, "memory": {Allocatable: 4 * gib, Limits: 2 * gib},
			"example.com/gpu": {Allocatable: 2, Limits: 1}, "pods": {Allocatable: 110},
		}},
		{Name: "b", Resources: map[string]Amounts{"memory": {Allocatable: 4 * gib, Limits: 6 * gib}}},
	}}, {Name: "empty 世界"}}
	var text bytes.Buffer
	if err := Table(&text, placements); err != nil {
		t.Fatal(err)
	}
	compareGolden(t, "hostile.txt", text.Bytes())
}

// Nearest rank: with n values, p percent is value number ceil(p*n/100).
func TestPercentileIsNearestRank(t *testing.T) {
	numbers := func(n int) []float64 {
		values := make([]float64, n)
		for i := range values {
			values[i] = float64(i + 1)
		}
		return values
	}
	for _, c := range []struct {
		n, percent int
		want       float64
	}{
		{0, 50, 0}, {1, 1, 1}, {1, 50, 1}, {1, 100, 1}, {2, 50, 1}, {2, 51, 2}, {3, 50, 2}, {4, 50, 2},
		{20, 95, 19}, {21, 95, 20}, {100, 95, 95}, {100, 99, 99}, {101, 99, 100}, {300, 95, 285}, {300, 100, 300},
	} {
		if got := Percentile(numbers(c.n), c.percent); got != c.want {
			t.Errorf("p%d of 1..%d = %v, want %v", c.percent, c.n, got, c.want)
		}
	}
}

func TestSummarizeCountsNodesAboveExactly(t *testing.T) {
	var p Placement
	for i, limits := range []int64{999, 1000, 1001, 1500, 1501, 2000, 2001} {
		p.Nodes = append(p.Nodes, Node{Name: fmt.Sprint(i), Resources: map[string]Amounts{
			"cpu": {Allocatable: 1000, Limits: limits, Requests: 10},
		}})
	}
	p.Nodes = append(p.Nodes, Node{Name: "bare"})
	want := Summary{
		Nodes: 7, Lacking: 1, P50: 1.5, P95: 2.001, P99: 2.001, Max: 2.001, Above: [3]int{5, 3, 1},
		Total: Amounts{Allocatable: 7000, Limits: 10002, Requests: 70},
	}
	if diff := cmp.Diff(want, Summarize(p, "cpu")); diff != "" {
		t.Error("(-want +got):", diff)
	}
}

func TestSummarizeSaturates(t *testing.T) {
	huge := Node{Resources: map[string]Amounts{"cpu": {Allocatable: 1, Limits: 1<<63 - 1}}}
	if got := Summarize(Placement{Nodes: []Node{huge, huge}}, "cpu").Total.Limits; got != 1<<63-1 {
		t.Errorf("total limits = %d, want the largest int64", got)
	}
}

func TestFormatAmount(t *testing.T) {
	for _, c := range []struct {
		resource string
		amount   int64
		want     string
	}{
		{"cpu", 0, "0"}, {"cpu", 250, "0.25"}, {"cpu", 1, "0.001"}, {"cpu", 14000, "14"}, {"cpu", 10000, "10"},
		{"memory", 0, "0"}, {"memory", 1023, "1023"}, {"memory", 1536, "1.5Ki"}, {"memory", 10 * gib, "10Gi"},
		{"hugepages-2Mi", 2 << 20, "2Mi"}, {"ephemeral-storage", 100 << 40, "100Ti"}, {"memory", 1 << 62, "4Ei"},
		{"example.com/gpu", 100, "100"},
	} {
		if got := FormatAmount(c.resource, c.amount); got != c.want {
			t.Errorf("FormatAmount(%s, %d) = %q, want %q", c.resource, c.amount, got, c.want)
		}
	}
}

func TestFormatRatio(t *testing.T) {
	for ratio, want := range map[float64]string{
		0: "0.00", 0.625: "0.63", 1.125: "1.13", 1.75: "1.75", 0.005: "0.01", 0.0049: "0.00",
		1e15: "1000000000000000.00",
	} {
		if got := FormatRatio(ratio); got != want {
			t.Errorf("FormatRatio(%v) = %q, want %q", ratio, got, want)
		}
	}
}

func TestFromNodeStates(t *testing.T) {
	got := FromNodeStates("x", []*loadlinev1.NodeState{
		{Name: "b"},
		{Name: "a", Resources: []*loadlinev1.ResourceSums{
			{Resource: "cpu", Allocatable: 8000, Requested: 4000, Limits: 14000},
		}},
	}, 3)
	want := Placement{Name: "x", PendingPods: 3, Nodes: []Node{
		{Name: "a", Resources: map[string]Amounts{"cpu": {Allocatable: 8000, Requests: 4000, Limits: 14000}}},
		{Name: "b", Resources: map[string]Amounts{}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("(-want +got):", diff)
	}
}

func TestResourcesInFixedOrder(t *testing.T) {
	placements := []Placement{{Nodes: []Node{{Resources: map[string]Amounts{
		"pods": {Allocatable: 110}, "zz.com/x": {Limits: 1}, "aa.com/x": {Requests: 1}, "memory": {Allocatable: 1},
		"hugepages-2Mi": {Allocatable: 1}, "ephemeral-storage": {Requests: 1}, "cpu": {Allocatable: 1},
	}}}}}
	want := []string{"cpu", "memory", "ephemeral-storage", "aa.com/x", "zz.com/x"}
	if diff := cmp.Diff(want, Resources(placements)); diff != "" {
		t.Error("(-want +got):", diff)
	}
}

// Every node is in exactly one bar, and a ratio on a border belongs to the bar below it.
func TestAxisCountsEachNodeOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		values := make([]float64, 1+random.IntN(50))
		scale := random.ExpFloat64() * 3
		for i := range values {
			values[i] = float64(random.Int64N(1_000_000)) / 250_000 * scale
		}
		a := newAxis(values)
		if a.bars < 1 || a.bars > maxBars {
			t.Fatalf("%d bars for %v", a.bars, values)
		}
		total := 0
		for _, count := range a.count(values) {
			total += count
		}
		if total != len(values) {
			t.Fatalf("%d of %d nodes counted", total, len(values))
		}
		if highest := slices.Max(values); !a.open && highest > a.end()+1e-9 {
			t.Fatalf("axis ends at %v and is not open, highest is %v", a.end(), highest)
		}
	}
	tenths := axis{step: 0.1, bars: 15}
	for k := 1; k <= 15; k++ {
		if got := tenths.bar(float64(k) / 10); got != k-1 {
			t.Errorf("ratio %d/10 lies in bar %d, want %d", k, got, k-1)
		}
	}
}

// The load line is a border between bars for every axis short enough to show it clearly.
func TestLoadLineIsABorderOfBars(t *testing.T) {
	for _, highest := range []float64{0.01, 1, 1.4, 2, 3, 5, 9, 19, 39} {
		a := newAxis([]float64{highest})
		if a.bar(1) == a.bar(1.0001) {
			t.Errorf("highest %v: step %v does not part 1.0 from what is above it", highest, a.step)
		}
	}
}

func randomPlacements(nodes int) []Placement {
	random := rand.New(rand.NewPCG(7, 7))
	placements := []Placement{{Name: "stock kube-scheduler"}, {Name: "loadline"}}
	for n := range nodes {
		allocatable := int64(8000 << random.IntN(4))
		for i, spread := range []float64{0.55, 0.2} {
			draw := func(unit int64) Amounts {
				limits := max(0.05, 1.15+spread*random.NormFloat64()) * float64(unit)
				return Amounts{Allocatable: unit, Limits: int64(limits), Requests: int64(limits / 2)}
			}
			placements[i].Nodes = append(placements[i].Nodes, Node{
				Name: fmt.Sprintf("node-%03d", n),
				Resources: map[string]Amounts{
					"cpu": draw(allocatable), "memory": draw(allocatable / 1000 * 4 * gib),
				},
			})
		}
	}
	placements[0].PendingPods = 4
	return placements
}

// pageOf renders a page, checks what holds for every page, and returns its text nodes and title attributes.
func pageOf(t *testing.T, title string, placements []Placement) (source string, texts []string) {
	t.Helper()
	var out bytes.Buffer
	if err := Page(&out, title, placements); err != nil {
		t.Fatal(err)
	}
	if dir := os.Getenv("REPORT_PAGES"); dir != "" {
		name := strings.ReplaceAll(t.Name(), "/", "_") + ".html"
		if err := os.WriteFile(filepath.Join(dir, name), out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	root, err := html.Parse(bytes.NewReader(out.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		switch {
		case n.Type == html.TextNode:
			texts = append(texts, n.Data)
		case n.Type == html.ElementNode &&
			slices.Contains([]string{"script", "link", "img", "iframe", "object"}, n.Data):
			t.Errorf("the page has a <%s>", n.Data)
		}
		for _, a := range n.Attr {
			switch {
			case a.Key == "title":
				texts = append(texts, a.Val)
			case a.Key == "src" || a.Key == "href" || strings.HasPrefix(a.Key, "on"):
				t.Errorf("<%s> has the attribute %s", n.Data, a.Key)
			}
		}
	}
	if strings.Contains(out.String(), "url(") || strings.Contains(out.String(), "@import") {
		t.Error("the style refers to something outside of the page")
	}
	return out.String(), texts
}

func TestPageOfTwoNodes(t *testing.T) {
	_, texts := pageOf(t, "Where pod5 went", proposal())
	for _, want := range []string{
		"node1: limits 14 / allocatable 8 cpu = 1.75; requests 5 = 0.63",
		"node2: limits 9 / allocatable 8 cpu = 1.13; requests 6 = 0.75",
		"1 node above 1.7 up to 1.75", "load line 1.00", "p95 1.75", "max 1.25", "number of nodes",
	} {
		if !slices.Contains(texts, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

func TestPageOfThreeHundredNodes(t *testing.T) {
	source, _ := pageOf(t, "300 nodes, 3,000 pods", randomPlacements(300))
	if cells := strings.Count(source, `<i class="s`) - 2*len(colourScale); cells != 300*2*2 {
		t.Errorf("%d cells, want one per node, placement and resource", cells)
	}
	again, _ := pageOf(t, "300 nodes, 3,000 pods", randomPlacements(300))
	if source != again {
		t.Error("the same input gave another page")
	}
}

func TestPageOfManyNodesStaysSmall(t *testing.T) {
	source, _ := pageOf(t, "5,000 nodes", randomPlacements(5000))
	if len(source) > 3<<20 {
		t.Errorf("%d bytes, want at most 3 MiB", len(source))
	}
}

func TestPageWithoutNodes(t *testing.T) {
	_, texts := pageOf(t, "empty", []Placement{{Name: "a"}})
	if !slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, "nothing to draw") }) {
		t.Error("a page without nodes does not say so")
	}
}

func TestPageEscapesHostileNames(t *testing.T) {
	const name = "<script>alert(1)</script>\x00\x1b[31m\u202e"
	source, _ := pageOf(t, name, []Placement{{Name: name, Nodes: []Node{
		{Name: name, Resources: map[string]Amounts{"cpu": {Allocatable: 1000, Limits: 1 << 62}, name: {Limits: 1}}},
	}}})
	for _, bad := range []string{"<script>alert", "\x00", "\x1b", "\u202e"} {
		if strings.Contains(source, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
}

func compareGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s: golden files are not written in CI", file)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

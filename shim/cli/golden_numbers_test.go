package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// Golden files with numbers, worked out again from the questions and the published formulas. They
// read the files alone, so that a number that -update wrote is found wrong without a look at what changed.

// golden returns what a command printed, without the command and the exit code.
func golden(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "golden", name))
	if err != nil {
		t.Fatal(err)
	}
	_, output, _ := strings.Cut(string(text), "\n")
	printed, _, found := strings.Cut(output, "[exit ")
	if !found {
		t.Fatalf("%s has no exit code", name)
	}
	return printed
}

// rankedOption is one of the questions under docs/ranking and testdata, as it is written there.
type rankedOption struct {
	name      string
	nodes     float64
	price     float64 // of one node, in USD per hour
	pods      float64 // what all pods of the option would cost on machines that suit them
	unfitness float64 // max(preferred/node, node/preferred) over cpu
	gpu       float64 // takes the place of the suppressed unfitness; 0: nothing does
	creation  float64 // factor of a group that does not exist yet
}

// terms are those of the cost-based ranking proposal; x damps the ratio of costs.
func (o rankedOption) terms(x float64) (unfitness, ratio, score float64) {
	unfitness = (o.unfitness-1)*(1-math.Tanh((o.nodes-1)/15)) + 1
	if o.gpu != 0 {
		unfitness = o.gpu
	}
	ratio = (o.nodes*o.price + x) / (o.pods + x)
	return unfitness, ratio, unfitness * ratio * o.creation
}

func near(got, want, tolerance float64) bool { return math.Abs(got-want) <= tolerance*math.Abs(want) }

// The proposal's own cases: a pod of 0.1 cpu costs 0.003, and 50 of 1.5 cpu cost 50 * 0.045; 8 cpu are preferred.
func TestGoldenRankingsFollowTheFormula(t *testing.T) {
	const x = 0.016
	for file, options := range map[string][]rankedOption{
		"rank.txt": {
			{"n1-standard-8", 1, 0.38, 0.003, 1, 0, 1},
			{"n1-standard-2", 1, 0.095, 0.003, 4, 0, 1},
			{"n1-standard-2-gpu", 1, 0.795, 0.003, 4, 0, 1},
		},
		"rank_anti_affinity.txt": {
			{"n1-standard-2", 50, 0.095, 50 * 0.045, 4, 0, 1},
			{"n1-standard-8", 50, 0.38, 50 * 0.045, 1, 0, 1},
			{"n1-standard-2-gpu", 50, 0.795, 50 * 0.045, 4, 0, 1},
		},
	} {
		_, table, _ := strings.Cut(golden(t, file), "PRICE OF A NODE\n")
		rows := strings.Split(strings.TrimSpace(strings.Split(table, "\n\n")[0]), "\n")
		if len(rows) != len(options) {
			t.Fatalf("%s has %d rows, want %d", file, len(rows), len(options))
		}
		last := 0.0
		for i, row := range rows {
			// NODE GROUP, NODES, PODS, UNFITNESS, COST, THEORETICAL, RATIO, SCORE
			columns := strings.Fields(row)
			at := slices.IndexFunc(options, func(o rankedOption) bool { return o.name == columns[0] })
			if at < 0 {
				t.Fatalf("%s: %q is none of the options", file, columns[0])
			}
			o := options[at]
			unfitness, ratio, score := o.terms(x)
			// Seven digits are printed.
			for k, want := range []float64{o.nodes, o.nodes, unfitness, o.nodes * o.price, o.pods, ratio, score} {
				got, err := strconv.ParseFloat(columns[k+1], 64)
				if err != nil || !near(got, want, 1e-6) {
					t.Errorf("%s: column %d of %s is %s, want %v", file, k+2, o.name, columns[k+1], want)
				}
			}
			if score < last {
				t.Errorf("%s: row %d has a lower score than the one above", file, i+1)
			}
			last = score
		}
	}
}

// Two nodes of 4 cpu for three pods of 2 cpu and 4Gi; 4 cpu are preferred.
func TestGoldenOddRankingFollowsTheFormula(t *testing.T) {
	const cpu, memory = 0.033174, 0.004446 // what GCE asks for a core and a GiB, in USD per hour
	const x = 0.5*cpu + 500.0/1024*memory
	const pods = 3 * (2*cpu + 4*memory)
	options := []rankedOption{
		{"spot", 2, 0.192 / 4, pods, 1, 0, 1},
		{"listed", 2, 0.192, pods, 1, 0, 1},
		{"to-be-created", 2, 0.192, pods, 1, 0, 2},
		{"gpu", 2, 0.1, pods, 1, 1000, 1},
	}
	var answer struct {
		Best    string
		Options []struct {
			NodeGroup                                                           string
			Score, Cost, TheoreticalCost, SuppressedUnfitness, CostRatio, Waste float64
		}
	}
	if err := json.Unmarshal([]byte(golden(t, "rank_odd_json.txt")), &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Best != "spot" || len(answer.Options) != 7 {
		t.Fatalf("%d options, the best is %s", len(answer.Options), answer.Best)
	}
	for i, o := range options {
		got := answer.Options[i]
		unfitness, ratio, score := o.terms(x)
		for _, c := range []struct {
			what      string
			got, want float64
		}{
			{"score", got.Score, score}, {"cost", got.Cost, o.nodes * o.price}, {"theoretical cost", got.TheoreticalCost, pods},
			{"unfitness", got.SuppressedUnfitness, unfitness}, {"ratio", got.CostRatio, ratio},
			{"waste", got.Waste, (8.0-6)/8 + (32.0-12)/32},
		} {
			if got.NodeGroup != o.name || !near(c.got, c.want, 1e-12) {
				t.Errorf("option %d: %s of %s is %v, want %v of %s", i, c.what, got.NodeGroup, c.got, c.want, o.name)
			}
		}
	}
	for _, got := range answer.Options[4:] {
		if got.Score != 0 { // null
			t.Errorf("%s has the score %v", got.NodeGroup, got.Score)
		}
	}
}

// Escalator's: so many nodes that the requests are no more than 70 % of what all of them offer, in the resource that
// is asked for most.
func nodesFor(requests, node float64) float64 { return math.Ceil(requests / (0.7 * node)) }

// Nodes of 1000m and 4000 MB. Without nodes, 4 pods of 450m and 25 MB; with two, 10 pods of 500m and 100 MB.
func TestGoldenSizesFollowTheFormula(t *testing.T) {
	var answer struct {
		Groups []struct {
			Action                              string
			Delta, AskCloud                     float64
			CPUPercentAfter, MemoryPercentAfter float64
			Requests                            struct{ CPUMilli, MemoryBytes float64 }
			Pods, PendingPods                   float64
		}
	}
	if err := json.Unmarshal([]byte(golden(t, "size_json.txt")), &answer); err != nil || len(answer.Groups) != 1 {
		t.Fatalf("%v, %d groups", err, len(answer.Groups))
	}
	got := answer.Groups[0]
	added := max(nodesFor(4*450, 1000), nodesFor(4*25, 4000))
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"delta", got.Delta, added}, {"ask", got.AskCloud, added}, {"pods", got.Pods, 4}, {"pending pods", got.PendingPods, 4},
		{"cpu", got.Requests.CPUMilli, 4 * 450}, {"memory", got.Requests.MemoryBytes, 4 * 25e6},
		{"cpu after", got.CPUPercentAfter, 100 * 4 * 450 / (added * 1000)},
		{"memory after", got.MemoryPercentAfter, 100 * 4 * 25 / (added * 4000)},
	} {
		if !near(c.got, c.want, 1e-12) {
			t.Errorf("size_json.txt: %s is %v, want %v", c.what, c.got, c.want)
		}
	}
	added = max(nodesFor(10*500, 1000), nodesFor(10*100, 4000)) - 2
	want := fmt.Sprintf("shared 2 10 %v%% %v%% +%v %v%% %v%% scale-up", 100*10*500.0/2000, 100*10*100.0/8000, added,
		100*10*500/((2+added)*1000), 100*10*100/((2+added)*4000))
	if text := strings.Join(strings.Fields(golden(t, "size.txt")), " "); !strings.Contains(text, want) {
		t.Errorf("size.txt does not say %q:\n%s", want, text)
	}
}

// nodeLoad is what a node of testdata/proposal.json has, and what its pods may use and ask for: cores, and GiB of
// memory.
type nodeLoad struct{ allocatable, limits, requests map[v1.ResourceName]float64 }

// proposal returns the loads of the nodes of the first proposal's example, and the limits of the new pod, pod5.
func proposal(t *testing.T) (map[string]*nodeLoad, map[v1.ResourceName]float64) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "proposal.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	add := func(sums map[v1.ResourceName]float64, amounts v1.ResourceList) {
		sums[v1.ResourceCPU] += amounts.Cpu().AsApproximateFloat64()
		sums[v1.ResourceMemory] += amounts.Memory().AsApproximateFloat64() / (1 << 30)
	}
	nodes, coming := map[string]*nodeLoad{}, map[v1.ResourceName]float64{}
	for _, item := range list.Items { // nodes stand before pods
		var node v1.Node
		var pod v1.Pod
		if err := cmp.Or(json.Unmarshal(item, &node), json.Unmarshal(item, &pod)); err != nil {
			t.Fatal(err)
		}
		if node.Kind == "Node" {
			l := &nodeLoad{map[v1.ResourceName]float64{}, map[v1.ResourceName]float64{}, map[v1.ResourceName]float64{}}
			add(l.allocatable, node.Status.Allocatable)
			nodes[node.Name] = l
			continue
		}
		resources := pod.Spec.Containers[0].Resources // each has one container
		if l := nodes[pod.Spec.NodeName]; l != nil {
			add(l.limits, resources.Limits)
			add(l.requests, resources.Requests)
		} else {
			add(coming, resources.Limits)
		}
	}
	return nodes, coming
}

// KEP 217: of each resource (allocatable - limits with the pod) / allocatable in percent, the mean of both, and
// min-max over the nodes.
func TestGoldenScoresFollowTheFormula(t *testing.T) {
	nodes, pod := proposal(t)
	raw := func(l *nodeLoad) float64 {
		sum := 0.0
		for resource, allocatable := range l.allocatable {
			sum += 100 * (allocatable - l.limits[resource] - pod[resource]) / allocatable
		}
		return sum / 2
	}
	lowest, highest := math.Inf(1), math.Inf(-1)
	for _, l := range nodes {
		lowest, highest = min(lowest, raw(l)), max(highest, raw(l))
	}
	var answer struct {
		Scores []struct {
			Node       string
			Score, Raw float64
		}
	}
	if err := json.Unmarshal([]byte(golden(t, "score_json.txt")), &answer); err != nil {
		t.Fatal(err)
	}
	if len(answer.Scores) != len(nodes) {
		t.Fatalf("%d scores of %d nodes", len(answer.Scores), len(nodes))
	}
	for _, s := range answer.Scores {
		want := raw(nodes[s.Node])
		if score := math.Round(100 * (want - lowest) / (highest - lowest)); s.Raw != want || s.Score != score {
			t.Errorf("%s: score %v, raw %v, want %v, %v", s.Node, s.Score, s.Raw, score, want)
		}
	}
}

func TestGoldenLoadsAreSums(t *testing.T) {
	nodes, _ := proposal(t)
	output := golden(t, "top.txt")
	total := &nodeLoad{map[v1.ResourceName]float64{}, map[v1.ResourceName]float64{}, map[v1.ResourceName]float64{}}
	for _, l := range nodes {
		for resource := range l.allocatable {
			total.allocatable[resource] += l.allocatable[resource]
			total.limits[resource] += l.limits[resource]
			total.requests[resource] += l.requests[resource]
		}
	}
	nodes["TOTAL"] = total
	for name, l := range nodes {
		cell := func(used map[v1.ResourceName]float64, resource v1.ResourceName, format string) string {
			u, a := used[resource], l.allocatable[resource]
			return fmt.Sprintf(format, u, a) + fmt.Sprintf(" = %.2f", math.Round(100*u/a)/100) // 0.625 is 0.63
		}
		const cpu, memory = "%.1f cpu / %.1f", "%.0fGi / %.0fGi"
		want := name + " " + strings.Join([]string{cell(l.limits, v1.ResourceCPU, cpu), cell(l.requests, v1.ResourceCPU, cpu),
			cell(l.limits, v1.ResourceMemory, memory), cell(l.requests, v1.ResourceMemory, memory)}, " ")
		if !strings.Contains(strings.Join(strings.Fields(output), " "), want) {
			t.Errorf("top.txt lacks %q", want)
		}
	}
}

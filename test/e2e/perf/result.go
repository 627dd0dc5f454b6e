package perf

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A Result is what one run of one case measured.
type Result struct {
	Case          Case
	Nodes, Pods   int
	PodsPerSecond float64
	// The times of all plugins together, per cycle.
	PreScoreP50, PreScoreP99, ScoreP50, ScoreP99 time.Duration
	// The times of the plugin's PreScore, which contains the question to the engine; 0 without the plugin.
	PluginP50, PluginP99 time.Duration
	// Cycles for pods that are measured (of the extender: all requests) in which the engine was to answer, and those
	// in which it did.
	Cycles, Answered int
	// Pods that were placed by the hint of a batch, without scores of their own.
	Batched int
}

// leastAnswered is the share of cycles that the engine must have answered for a run to count.
const leastAnswered = 0.999

// Check says why a run does not count.
func (r Result) Check() error {
	if r.Case.batching() && r.Batched == 0 {
		return fmt.Errorf("%s, %d nodes: no pod was placed by the hint of a batch", r.Case, r.Nodes)
	}
	if r.Case == r.Case.baseline() {
		return nil
	}
	if r.Cycles == 0 || float64(r.Answered) < leastAnswered*float64(r.Cycles) {
		return fmt.Errorf("%s, %d nodes: the engine answered %d of %d cycles", r.Case, r.Nodes, r.Answered, r.Cycles)
	}
	// With batching most pods need no scores of their own; else each pod has a cycle.
	pods := r.Pods
	if r.Case == Extender {
		pods += InitPods
	}
	if !r.Case.batching() && float64(r.Cycles) < leastAnswered*float64(pods) {
		return fmt.Errorf("%s, %d nodes: %d cycles for %d pods", r.Case, r.Nodes, r.Cycles, pods)
	}
	return nil
}

// Report writes a table with the medians of each case, the ratio to the default profile and what a cycle gains on it
// in PreScore and Score; and a line per target, which tells whether it is met.
func Report(w io.Writer, results []Result) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "nodes\tcase\truns\tpods/s\tlowest\thighest\tratio\tgain\tPreScore p50\tp99\tScore "+
		"p50\tp99\tplugin p50\tp99\tanswered\tbatched")
	var lines []string
	for _, nodes := range sizes(results) {
		for _, c := range AllCases {
			runs := of(results, nodes, c)
			if len(runs) == 0 {
				continue
			}
			ratio, gain := "-", "-"
			if to, ok := compare(results, nodes, c); ok {
				ratio, gain = fmt.Sprintf("%.3f", to.ratio), fmt.Sprintf("%.3fms", to.gain.Seconds()*1000)
				lines = append(lines, to.targets(nodes, c)...)
			}
			speeds := values(runs, throughput)
			fmt.Fprintf(table, "%d\t%s\t%d\t%.0f\t%.0f\t%.0f\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
				nodes, c, len(runs), median(runs, throughput), speeds[0], speeds[len(speeds)-1], ratio, gain,
				duration(runs, func(r Result) time.Duration { return r.PreScoreP50 }),
				duration(runs, func(r Result) time.Duration { return r.PreScoreP99 }),
				duration(runs, func(r Result) time.Duration { return r.ScoreP50 }),
				duration(runs, func(r Result) time.Duration { return r.ScoreP99 }),
				duration(runs, func(r Result) time.Duration { return r.PluginP50 }),
				duration(runs, func(r Result) time.Duration { return r.PluginP99 }),
				share(runs, answered), share(runs, byHint))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s", strings.Join(lines, ""))
	return err
}

// A target is what a case has to reach beside the default profile.
type target struct {
	ratio float64       // of throughput, at least
	gain  time.Duration // of a cycle's PreScore and Score, at most; 0: any
}

var targets = map[Case]target{
	InProcess: {ratio: 0.97, gain: 100 * time.Microsecond},
	Socket:    {ratio: 0.92, gain: 500 * time.Microsecond},
	Extender:  {ratio: 0.70},
}

// compare holds the medians of a case against those of the default profile.
func compare(results []Result, nodes int, c Case) (to target, ok bool) {
	base := c.baseline()
	runs, baseline := of(results, nodes, c), of(results, nodes, base)
	if len(runs) == 0 || len(baseline) == 0 || c == base {
		return target{}, false
	}
	spent := func(r Result) float64 { return float64(r.PreScoreP50 + r.ScoreP50) }
	return target{
		ratio: median(runs, throughput) / median(baseline, throughput),
		gain:  time.Duration(median(runs, spent) - median(baseline, spent)),
	}, true
}

// targets has a line for each target of a case.
func (to target) targets(nodes int, c Case) []string {
	want, ok := targets[c]
	if !ok {
		return nil
	}
	verdict := map[bool]string{true: "met", false: "missed"}
	lines := []string{fmt.Sprintf("%s, %d nodes: ratio %.3f, at least %.3f: %s\n", c, nodes, to.ratio, want.ratio,
		verdict[to.ratio >= want.ratio])}
	if want.gain > 0 {
		lines = append(lines, fmt.Sprintf("%s, %d nodes: gain %.3f ms, at most %.3f ms: %s\n", c, nodes,
			to.gain.Seconds()*1000, want.gain.Seconds()*1000, verdict[to.gain <= want.gain]))
	}
	return lines
}

func throughput(r Result) float64 { return r.PodsPerSecond }

func duration(runs []Result, of func(Result) time.Duration) string {
	value := time.Duration(median(runs, func(r Result) float64 { return float64(of(r)) }))
	if value == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3fms", value.Seconds()*1000)
}

// share adds up what `of` counts in each run, so many of so many; "-" where there is nothing to count.
func share(runs []Result, of func(Result) (part, whole int)) string {
	part, whole := 0, 0
	for _, r := range runs {
		p, w := of(r)
		part, whole = part+p, whole+w
	}
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%d of %d", part, whole)
}

func answered(r Result) (part, whole int) { return r.Answered, r.Cycles }

// byHint has nothing to count where no profile batches.
func byHint(r Result) (part, whole int) {
	if !r.Case.batching() {
		return 0, 0
	}
	return r.Batched, r.Pods
}

func sizes(results []Result) []int {
	var nodes []int
	for _, r := range results {
		nodes = append(nodes, r.Nodes)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

func of(results []Result, nodes int, c Case) []Result {
	var out []Result
	for _, r := range results {
		if r.Nodes == nodes && r.Case == c {
			out = append(out, r)
		}
	}
	return out
}

// values are sorted.
func values(runs []Result, of func(Result) float64) []float64 {
	out := make([]float64, len(runs))
	for i, r := range runs {
		out[i] = of(r)
	}
	slices.Sort(out)
	return out
}

func median(runs []Result, of func(Result) float64) float64 {
	sorted := values(runs, of)
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

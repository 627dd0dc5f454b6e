package cli

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loadline.dev/shim/internal/testing/enginetest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// run runs a command line with the engine that was built.
func run(t *testing.T, program string, stdin string, args ...string) (out, errs string, code int) {
	t.Helper()
	t.Setenv("LOADLINE_LIBRARY", enginetest.Library(t))
	var stdout, stderr bytes.Buffer
	code = Run(t.Context(), append([]string{program}, args...),
		Streams{In: strings.NewReader(stdin), Out: &stdout, Err: &stderr})
	return stdout.String(), stderr.String(), code
}

// Each golden file holds a command line with all that it prints and its exit code. The numbers are checked by hand:
// see the comments.
func TestGolden(t *testing.T) {
	for _, c := range []struct {
		name, args string
	}{
		// pod5 brings node1 to limits of 14 cpu and 12Gi, node2 to 9 cpu and 12Gi, out of 8 cpu and 32Gi.
		// node1: mean of -75 and 62.5 = -6.25; node2: mean of -12.5 and 62.5 = 25.
		{"score", "score pod5 -f testdata/proposal.json"},
		{"score_json", "score default/pod5 -f testdata/proposal.json -o json"},
		{"score_yaml", "score pod5 -f testdata/proposal.json -o yaml --resources cpu"},
		{"why", "why pod5 -f testdata/proposal.json"},
		// The letter of the proposal: whole numbers, a sum instead of a mean. cpu alone: -75 and -12.
		{"score_kep217", "score pod5 -f testdata/proposal.json --preset kep217 --resources cpu"},
		// pod1 leaves node1 with 4 cpu and 4Gi, and arrives with 6 cpu and 4Gi: 10 of 8 there, 11 of 8 on node2.
		{"why_existing", "why pod1 -f testdata/proposal.json"},
		{"why_equal", "why pod5 -f testdata/proposal.json --resources memory"},
		// big: cpu batch by its request 2 + 2 = 4/16, memory batch by allocatable 64 + 4 = 68/64: mean of 75 and -6.25.
		// small: cpu 4.5 + 2 = 6.5/4, memory 6.5 + 4 = 10.5/8: mean of -62.5 and -31.25.
		// gpu: cpu best by allocatable 8 + 4 + 2 = 14/8, memory 32 + 16 + 4 = 52/32: mean of -75 and -62.5.
		{"why_mixed", "why new -n shop -f testdata/mixed.yaml"},
		{"why_mixed_json", "why shop/new -f testdata/mixed.yaml -o json --top 1"},
		{"why_top", "why shop/new -f testdata/mixed.yaml --top 1"},
		// Only gpu has what train limits.
		{"why_lacks", "why ml/train -f testdata/mixed.yaml --resources cpu,memory,nvidia.com/gpu=2"},
		{"why_file", "why -p testdata/pod.yaml -f testdata/proposal.json"},
		// Worst of both resources, 100 / (1 + ratio): node2 100/(1 + 1.125) = 47, node1 100/(1 + 1.75) = 36.
		{"why_policy", "why pod5 -f testdata/proposal.json --policy testdata/policy.yaml"},
		// web asks for 2 cpu and 4Gi: delta has 2 left, gamma has just as much in all.
		{"fit", "fit web -n shop -f testdata/fit.yaml"},
		{"fit_json", "fit shop/web -f testdata/fit.yaml -o json"},
		// Taken off delta, the pod fits there again.
		{"fit_existing", "fit shop/there -f testdata/fit.yaml"},
		{"fit_unknown_claim", "fit shop/stateful -f testdata/fit.yaml"},
		{"why_not", "why-not shop/huge -f testdata/fit.yaml"},
		{"why_not_json", "why-not shop/huge -f testdata/fit.yaml -o json"},
		{"why_not_by_node", "why-not shop/apart -f testdata/fit.yaml --by-node"},
		{"why_not_node", "why-not shop/huge gamma -f testdata/fit.yaml"},
		{"why_not_node_fits", "why-not shop/web alpha -f testdata/fit.yaml"},
		{"why_not_unknown_claim", "why-not shop/stateful alpha -f testdata/fit.yaml"},
		{"why_not_unknown_node", "why-not shop/web omega -f testdata/fit.yaml"},
		// All five arrive by name. By requests: pod1 and pod3 on node1, the others on node2: limits of 9 and 10 cpu.
		// With Loadline pod3 joins pod2, whose limits are lower than pod1's, pod4 joins pod1, and pod5 makes 11 of 7,
		// not 12 of 8.
		{"simulate", "simulate -f testdata/proposal.json"},
		{"simulate_json", "simulate -f testdata/proposal.json -o json --weight 1"},
		// The README's: 6 of 18 pods may use 4 cpu, the others 1, 36 of 24 in all. By requests all six meet on one
		// node, 24 of 8.
		{"simulate_burst", "simulate -f ../../docs/burst.yaml"},
		{"top", "top -f testdata/proposal.json"},
		// small: limits of 2 + 2 + 0.5 cpu of 4; big: none; gpu: 4 of 8. The pod on no known node does not count.
		{"top_mixed", "top -f testdata/mixed.yaml"},
		{"top_sorted", "top -f testdata/mixed.yaml --sort-by name --top 2 --resources cpu"},
		{"top_json", "top -f testdata/mixed.yaml -o json --sort-by memory --resources memory,nvidia.com/gpu"},
		{"top_hostile", "top -f testdata/hostile.json"},
		// absurd counts as 10 cpu and 10Gi, no more than the node has: (10 + 1)/10 and (10 + 1)/10.
		{"score_hostile", "score d/p\x1b]0;x\x07 -f testdata/hostile.json"},
		{"why_hostile", "why d/p\x1b]0;x\x07 -f testdata/hostile.json"},
		// The proposal's table for a pod of 0.1 cpu, and its case of 50 pods that exclude each other.
		{"rank", "rank --question ../../docs/ranking/proposal-100m.yaml"},
		{"rank_anti_affinity", "rank --question ../../docs/ranking/proposal-anti-affinity.yaml"},
		{"why_group", "why n1-standard-8 --question ../../docs/ranking/proposal-anti-affinity.yaml"},
		// X = 0.5 * 0.033174 + 500/1024 * 0.004446 = 0.018757898; T = 3 * (2 * 0.033174 + 4 * 0.004446) = 0.252396.
		// Unfitness is 1: listed (0.384 + X) / (T + X) = 1.485348, spot at a quarter of the price 0.423221, to be
		// created twice listed, 2.970696, gpu 1000 * (0.2 + X) / (T + X) = 806.766562. Waste is (8 - 6) / 8 + (32 - 12)
		// / 32 = 0.875.
		{"rank_odd", "rank --question testdata/rank-odd.yaml"},
		// Escalator's own example: 5000m of 2000m are 250 %, six more nodes make it 62.5 %; 1000 MB of 8000 MB are 12.5
		// %, then 3.125 %.
		{"size", "size --groups testdata/size-groups.yaml -f testdata/size.yaml"},
		// web: 3 of 15.9 cpu, 12 of 63Gi; two nodes of 4 cpu and 16Gi less leave 3 of 7.9 and 12 of 31.
		{"size_mixed",
			"size --groups testdata/size-mixed-groups.yaml -f testdata/size-mixed.yaml --now 2026-02-01T09:05:00Z"},
		{"size_json", "size --groups testdata/size-groups.yaml -f testdata/size-zero.yaml --state " +
			"testdata/size-state.yaml --now 2026-02-01T09:05:00Z -o json"},
		{"why_size", "why web --groups testdata/size-mixed-groups.yaml -f testdata/size-mixed.yaml --now " +
			"2026-02-01T09:05:00Z"},
		// Budgets allow two web pods and one db pod: of node-1 and node-2 with two web pods each one can go, of node-3,
		// node-4 and node-5 with a db pod each one. node-8 is empty, node-7 is to 3/4 requested, scratch stores data on
		// node-6. Without a group file the timers begin now.
		{"drain", "drain -f testdata/drain.json --now 2026-02-17T09:00:00Z"},
		// Pool b keeps its four nodes, the nodes of a go at once, for 0.25 each.
		{"drain_groups", "drain -f testdata/drain.json --groups testdata/drain-groups.yaml --now 2026-02-17T09:00:00Z"},
		{"drain_json",
			"drain -f testdata/drain.json --groups testdata/drain-groups.yaml --now 2026-02-17T09:00:00Z -o json"},
		// Two pods are 1 of 4 cpu, more than 0.2: node-1, node-2 and node-5 stay. One node is removed at a time: node-3
		// waits for node-8.
		{"drain_threshold", "drain -f testdata/drain.json --now 2026-02-17T09:00:00Z " +
			"--scale-down-utilization-threshold 0.2 --scale-down-unneeded-time 0s --max-scale-down-parallelism 1"},
		{"why_node", "why node-2 -f testdata/drain.json --now 2026-02-17T09:00:00Z"},
		{"why_node_goes",
			"why node/node-1 -f testdata/drain.json --groups testdata/drain-groups.yaml --now 2026-02-17T09:00:00Z"},
		{"rank_odd_json", "rank --question testdata/rank-odd.yaml -o json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, errs, code := run(t, "loadline", "", strings.Fields(c.args)...)
			text := fmt.Sprintf("$ loadline %q\n%s%s[exit %d]\n", strings.Fields(c.args), out, errs, code)
			compareGolden(t, c.name+".txt", text)
		})
	}
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name)
	if *update {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s: golden files are not written in CI", file)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
	for _, r := range got {
		if r < ' ' && r != '\n' || r == 0x7f || r == '\u202e' {
			t.Errorf("%s: control character %q in the output", file, r)
		}
	}
}

package scheduler

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	fwk "k8s.io/kube-scheduler/framework"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/nodereader"
	"loadline.dev/shim/internal/testing/enginetest"
	"loadline.dev/shim/internal/testing/nodeinfo"
	"loadline.dev/shim/view"
)

// scored is a list of nodes with raw scores.
func scored(raw ...int64) fwk.NodeScoreList {
	list := make(fwk.NodeScoreList, len(raw))
	for i := range raw {
		list[i] = fwk.NodeScore{Name: fmt.Sprint("n", i), Score: raw[i]}
	}
	return list
}

// By formula, in whole numbers of any size.
func TestNormalizeIsTheFormula(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		raw := make([]int64, 2+r.IntN(4))
		for i := range raw {
			raw[i] = r.Int64() >> r.IntN(63)
			if r.IntN(2) == 0 {
				raw[i] = -raw[i]
			}
		}
		lowest, highest := big.NewInt(math.MaxInt64), big.NewInt(math.MinInt64)
		for _, value := range raw {
			if b := big.NewInt(value); b.Cmp(lowest) < 0 {
				lowest = b
			}
			if b := big.NewInt(value); b.Cmp(highest) > 0 {
				highest = b
			}
		}
		width := new(big.Int).Sub(highest, lowest)
		for _, kind := range []loadlinev1.RawScale_Kind{loadlinev1.RawScale_MIN_MAX_TRUNCATING,
			loadlinev1.RawScale_MIN_MAX_FIXED_POINT} {
			list := scored(raw...)
			normalize(&loadlinev1.RawScale{Kind: kind, EqualBelow: 1}, list)
			for i, value := range raw {
				want := new(big.Int)
				if width.Sign() > 0 {
					want.Sub(big.NewInt(value), lowest)
					want.Mul(want, big.NewInt(100))
					if kind == loadlinev1.RawScale_MIN_MAX_FIXED_POINT { // up to less than 2^-16 below an integer
						want.Lsh(want, 16)
						want.Add(want, new(big.Int).Sub(width, big.NewInt(1)))
					}
					want.Div(want, width)
					if kind == loadlinev1.RawScale_MIN_MAX_FIXED_POINT {
						want.Rsh(want, 16)
					}
				}
				if want.Int64() != list[i].Score {
					t.Fatalf("%v: %v: %d becomes %d, want %v", kind, raw, value, list[i].Score, want)
				}
			}
		}
	}
}

func TestNormalizeEdges(t *testing.T) {
	const no = view.NoRawScore
	fixed := &loadlinev1.RawScale{Kind: loadlinev1.RawScale_MIN_MAX_FIXED_POINT, EqualBelow: 4096}
	unnamed := scored(1000000, 5, 2000000)
	unnamed[1].Name = "" // as 1.37 leaves a node of a batch that was not scored
	for _, c := range []struct {
		name  string
		scale *loadlinev1.RawScale
		list  fwk.NodeScoreList
		want  []int64
	}{
		{"Empty", fixed, nil, nil},
		{"OneNode", fixed, scored(7), []int64{0}},
		{"NoneHasARawScore", fixed, scored(no, no), []int64{0, 0}},
		{"OneHasNoRawScore", fixed, scored(no, -8192, 0), []int64{0, 0, 100}},
		{"CountsAsEqual", fixed, scored(0, 4095), []int64{0, 0}},
		{"JustNotEqual", fixed, scored(0, 4096), []int64{0, 100}},
		{"Widest", &loadlinev1.RawScale{Kind: loadlinev1.RawScale_MIN_MAX_TRUNCATING},
			scored(math.MinInt64+1, math.MaxInt64, 0), []int64{0, 100, 50}},
		{"BatchWithoutScores", fixed, unnamed, []int64{0, 0, 0}},
		{"NoScale", nil, scored(1, 2), []int64{0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			normalize(c.scale, c.list)
			for i := range c.list {
				if c.list[i].Score != c.want[i] {
					t.Fatalf("got %v, want %v", c.list, c.want)
				}
			}
		})
	}
}

// The results of Score and NormalizeScore for raw scores are the engine's answers when it is asked for scores.
func TestNormalizedRawScoresAreTheEnginesScores(t *testing.T) {
	f := newRealFixture(t, enginetest.Address(t), time.Now)
	f.plugin.timeout = time.Second // of a busy machine
	r := rand.New(rand.NewPCG(3, 4))
	seen := map[int64]bool{}
	for step := range 1000 {
		f.plugin.policy = drawPolicy(r)
		f.nodes = drawNodes(r)
		f.handle.nodes = f.nodes
		f.pod = drawPod(r)
		f.plugin.client.cycles = view.NewCycles[fwk.NodeInfo, nodereader.Reader](f.plugin.client.conn, "drawn", view.Events{})
		got, status := f.cycle()
		if !status.IsSuccess() {
			t.Fatalf("step %d, policy %v: %v %v", step, f.plugin.policy, status, *f.plugin.trouble.Load())
		}
		cycle := viewCycle{Feasible: f.nodes, Snapshot: f.handle.SnapshotSharedLister().NodeInfos()}
		var want []int32
		err := f.plugin.client.cycles.Ask(cycle, func(changes *loadlinev1.Changes, slots []int32) error {
			answer, err := f.plugin.client.scorer.Score(t.Context(), &loadlinev1.ScoreRequest{Changes: changes,
				Slots: slots, Pod: view.TrimIncomingPod(f.pod), Policy: f.plugin.policy})
			want = answer.GetScores()
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			seen[got[i]] = true
			if got[i] != int64(want[i]) {
				t.Fatalf("step %d, policy %v: got %v, want %v", step, f.plugin.policy, got, want)
			}
		}
		f.plugin.client.cycles.Close()
	}
	if len(seen) < 50 {
		t.Errorf("only %d different scores were drawn", len(seen))
	}
}

func drawPolicy(r *rand.Rand) *loadlinev1.ScorePolicy {
	return &loadlinev1.ScorePolicy{
		Preset:        loadlinev1.ScorePolicy_Preset(1 + r.IntN(2)),
		Arithmetic:    loadlinev1.ScorePolicy_Arithmetic(r.IntN(3)),
		Aggregate:     loadlinev1.ScorePolicy_Aggregate(r.IntN(4)),
		Normalization: loadlinev1.ScorePolicy_Normalization(r.IntN(3)),
		Resources: []*loadlinev1.ResourceWeight{{Resource: "cpu", Weight: 1 + r.Int32N(100)},
			{Resource: "memory", Weight: 1 + r.Int32N(3)}, {Resource: "example.com/gpu", Weight: 1}},
	}
}

func drawNodes(r *rand.Rand) (nodes []fwk.NodeInfo) {
	for i := range 2 + r.IntN(6) {
		n := node(i)
		n.Status.Allocatable = v1.ResourceList{"cpu": *resource.NewMilliQuantity(r.Int64N(64000), resource.DecimalSI),
			"memory": *resource.NewQuantity(r.Int64N(1<<36), resource.BinarySI)}
		if r.IntN(2) == 0 {
			n.Status.Allocatable["example.com/gpu"] = *resource.NewQuantity(r.Int64N(9), resource.DecimalSI)
		}
		var pods []*v1.Pod
		for range r.IntN(6) {
			pods = append(pods, drawPod(r))
		}
		nodes = append(nodes, nodeinfo.New(int64(i+1), n, pods...))
	}
	return nodes
}

func drawPod(r *rand.Rand) *v1.Pod {
	p := pod()
	p.UID = ""
	limits := v1.ResourceList{}
	for i, name := range []v1.ResourceName{"cpu", "memory", "example.com/gpu"} {
		if r.IntN(3) > 0 {
			limits[name] = *resource.NewQuantity(r.Int64N([]int64{64, 1 << 36, 4}[i]), resource.DecimalSI)
		}
	}
	p.Spec.Containers[0].Resources.Limits = limits
	return p
}

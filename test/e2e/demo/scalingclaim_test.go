package demo

import (
	"strings"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
)

func TestCheckScaling(t *testing.T) {
	good := func(name string, burst time.Duration) *Scaling {
		return &Scaling{Name: name, LoadTook: NodeStart, BurstTook: burst, Most: 2, Moved: 1, PutOff: 1,
			Evictions: map[int]int{201: 1, 429: 1}, Mix: map[string]int{BaseGroup: 1, "small": 1, "large": 1}}
	}
	for _, c := range []struct {
		name   string
		change func(without, with *Scaling)
		want   []string // the beginnings of what does not hold
	}{
		{"Holds", func(*Scaling, *Scaling) {}, nil},
		{"BurstLate", func(_, with *Scaling) { with.BurstTook = BurstBound + 1 },
			[]string{"with slack the burst waited"}},
		{"BurstNeedsNoNode", func(without, _ *Scaling) { without.BurstTook = NodeStart - 1 },
			[]string{"without slack the burst waited"}},
		{"LoadNeedsNoNode", func(without, _ *Scaling) { without.LoadTook = 0 },
			[]string{"without slack: the load waited"}},
		{"LoadLate", func(without, _ *Scaling) { without.LoadTook = 2*NodeStart + 1 },
			[]string{"without slack: pods waited 30.000000001s and 15s, longer than 30s"}},
		{"OneByOne", func(_, with *Scaling) { with.Most = 1 }, []string{"with slack 1 nodes were seen"}},
		{"NoEviction", func(_, with *Scaling) { with.Evictions = map[int]int{429: 3} },
			[]string{"with slack: 1 pods were on nodes that went"}},
		{"NothingPutOff", func(without, _ *Scaling) { without.PutOff = 0 },
			[]string{"without slack: 1 pods were on nodes that went, and budgets"}},
		{"NothingToMove", func(without, _ *Scaling) { without.Moved, without.PutOff, without.Evictions = 0, 0, nil },
			nil},
		{"DearMix", func(without, _ *Scaling) { without.Mix = map[string]int{BaseGroup: 1, "small": 6} },
			[]string{"the nodes for the load, 1 base, 6 small, cost 0.60 USD per hour, nodes of one group 0.50"}},
		{"Broken", func(without, with *Scaling) { without.Broken, with.Broken = []string{"a"}, []string{"b"} },
			[]string{"without slack: a", "with slack: b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			without, with := good(WithoutSlack, NodeStart), good(WithSlack, BurstBound)
			c.change(without, with)
			got := CheckScaling(without, with)
			if len(got) != len(c.want) {
				t.Fatalf("got %q, want %q", got, c.want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], c.want[i]) {
					t.Errorf("got %q, want %q...", got[i], c.want[i])
				}
			}
		})
	}
}

// Half an hour at 1 and then a quarter at 4 dollars per hour is 1.5; a budget counts as broken only after the load has
// left.
func TestSum(t *testing.T) {
	s := &scaling{left: 20 * time.Minute, out: Scaling{Samples: []Sample{
		{At: 0, USDPerHour: 1, BudgetsBroken: 1}, {At: 30 * time.Minute, USDPerHour: 4, Going: 3},
		{At: 45 * time.Minute, USDPerHour: 9, BudgetsBroken: 2}}}}
	s.sum()
	if s.out.USD != 1.5 || s.out.Most != 3 || len(s.out.Broken) != 1 ||
		s.out.Broken[0] != "2 budgets were broken after 45m0s" {
		t.Errorf("%+v", s.out)
	}
}

// While budgets are closed, and a sample before and after, pods that had just been evicted are missing in them.
func TestSumLeavesClosuresOut(t *testing.T) {
	began := time.Date(2026, 2, 17, 9, 0, 0, 0, time.UTC)
	s := &scaling{began: began, left: time.Second,
		closures: []closure{{from: began.Add(10 * time.Second), to: began.Add(12 * time.Second)}}}
	for at, broken := range map[time.Duration]int{9 * time.Second: 1, 9800 * time.Millisecond: 0, 11 * time.Second: 0,
		12200 * time.Millisecond: 0, 13 * time.Second: 1} {
		s.out = Scaling{Samples: []Sample{{At: at, BudgetsBroken: 1}}}
		if s.sum(); len(s.out.Broken) != broken {
			t.Errorf("at %v: %v", at, s.out.Broken)
		}
	}
}

func TestBroken(t *testing.T) {
	for _, c := range []struct {
		generation    int64
		healthy, want int32
		broken        bool
	}{{1, 2, 2, false}, {1, 1, 2, true}, {0, 1, 2, false}} {
		b := &policyv1.PodDisruptionBudget{Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: c.generation,
			CurrentHealthy: c.healthy, DesiredHealthy: c.want}}
		b.Generation = 1
		if broken(b) != c.broken {
			t.Errorf("%+v: broken %v", c, broken(b))
		}
	}
}

package autoscaler

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/slack"
)

// The engine holds all limits: over random fleets, pods, slack, groups that are sized and groups of all nodes or none,
// no plan exceeds what all groups together may get, so that nothing has to be refused.
func TestPlansStayWithinAllLimits(t *testing.T) {
	const fleets = 60
	limited, grew, sizedGrew, coresLimited := 0, 0, 0, 0
	for seed := range uint64(fleets) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 5))
			groups := map[string]*skyGroup{}
			mostCores := 0
			for i := range 1 + r.IntN(5) {
				most := 1 + r.IntN(8)
				g := &skyGroup{max: most, target: r.IntN(most + 1), cpu: fmt.Sprint(1 << (1 + r.IntN(4))),
					price: 0.05 * float64(1+r.IntN(20))}
				if g.atomic = r.IntN(4) == 0; g.atomic && r.IntN(2) == 0 {
					g.target = 0
				}
				groups[fmt.Sprintf("g%d", i)] = g
			}
			sized := r.IntN(2) == 0
			if sized {
				groups["n"] = &skyGroup{min: 1, max: 2 + r.IntN(8), target: 2, cpu: "4", price: 0.1}
			}
			b := growing(t, groups, func(c *config.Configuration) {
				c.Decisions = []string{config.ScaleUpDecision, config.SlackDecision}
				c.Slack.ExtraCapacityMinRate = []slack.Share{"0%", "50%", "300%"}[r.IntN(3)]
				c.ScaleUp.MaxNodesTotal = []int{0, 1 + r.IntN(30)}[r.IntN(2)]
				c.ScaleUp.MaxNodesPerScaleUp = 1 + r.IntN(10)
				c.ScaleUp.Strategies = [][]string{nil, {"least-waste"}}[r.IntN(2)]
				mostCores = []int{320_000, 8 + r.IntN(80)}[r.IntN(2)]
				c.ScaleDown.CoresTotal = fmt.Sprintf("0:%d", mostCores)
			})
			atFirst := coresOf(groups)
			if sized {
				b.leader.planner.Sized = []nodegroup.NodeGroup{sizedPolicy()}
			}
			b.actor.Keeper = &kept{}
			for step := range 6 {
				b.addPending(fmt.Sprintf("app%d", step), r.IntN(12), fmt.Sprint(1+r.IntN(6)))
				if sized && step < 2 {
					b.addMembers(fmt.Sprint("n", step+1), "3500m", fmt.Sprint("member", step))
				}
				before := len(b.sky.asked)
				b.run(time.Duration(10+r.IntN(60)) * time.Second)
				if len(b.sky.asked) > before {
					grew++
				}
				if cores := coresOf(groups); cores > max(atFirst, mostCores) {
					t.Errorf("seed %d step %d: %d cores, at most %d", seed, step, cores, mostCores)
				}
				if s := b.readStatus(); s.ClusterWide.ScaleUp.Result == plan.ScaleUpError {
					t.Errorf("seed %d step %d: %+v", seed, step, s.ClusterWide.ScaleUp)
				}
			}
			if strings.Contains(fmt.Sprint(b.readStatus().ClusterWide.ScaleUp.Why), "max cluster cpu limit") {
				coresLimited++
			}
			if strings.Contains(fmt.Sprint(b.sky.asked), "n+") {
				sizedGrew++
			}
			total := 1
			for _, g := range groups {
				total += g.target
			}
			if most := b.leader.config.ScaleUp.MaxNodesTotal; most > 0 && total >= most {
				limited++
			}
			b.end()
		})
	}
	t.Logf("groups grew in %d steps, sized ones in %d fleets; %d fleets came to their limit of nodes, %d of cores",
		grew, sizedGrew, limited, coresLimited)
	if grew < fleets/2 || sizedGrew < fleets/10 || limited < fleets/10 || coresLimited < fleets/10 {
		t.Error("that is too few")
	}
}

// coresOf returns what the nodes of all groups offer, and the fixed node.
func coresOf(groups map[string]*skyGroup) int {
	cores := 4
	for _, g := range groups {
		var each int
		fmt.Sscan(g.cpu, &each)
		cores += g.target * each
	}
	return cores
}

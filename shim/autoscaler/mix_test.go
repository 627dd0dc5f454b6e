package autoscaler

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/autoscaler/config"
)

// Groups that are alike share what they grow by; by default the cheapest one grows.
func TestSimilarGroupsShareGrowth(t *testing.T) {
	for name, c := range map[string]struct {
		config func(*config.Configuration)
		want   []string
	}{
		"Default": {nil, []string{"a+4"}},
		"Balanced": {func(c *config.Configuration) {
			c.ScaleUp.BalanceSimilarNodeGroups, c.ScaleUp.BalancingIgnoreLabels = true, []string{"group"}
		}, []string{"a+2", "b+2"}},
		"OtherLabels": {func(c *config.Configuration) { c.ScaleUp.BalanceSimilarNodeGroups = true }, []string{"a+4"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := growing(t, map[string]*skyGroup{"a": {max: 10, cpu: "4", price: 0.1},
					"b": {max: 10, cpu: "4", price: 0.2}}, c.config)
				b.addPending("web", 4, "3")
				if err := b.once(b.ctx); err != nil {
					t.Fatal(err)
				}
				if got := slices.Sorted(slices.Values(b.sky.requests())); !slices.Equal(got, c.want) {
					t.Errorf("asked for %v, want %v", got, c.want)
				}
				b.end()
			})
		})
	}
}

// Two small nodes were asked for and are not begun when two more pods come: a large node takes all four for less.
func TestACheaperMixTakesThePlaceOfNodesThatAreNotBegun(t *testing.T) {
	for name, c := range map[string]struct {
		config  func(*config.Configuration)
		refuses bool
		begun   bool
		want    []string
	}{
		"Swapped": {want: []string{"small+2", "large+1", "small-2"}},
		"SwitchedOff": {config: func(c *config.Configuration) { c.ScaleUp.SwapNotBegun = false },
			want: []string{"small+2", "small+2"}},
		"Begun":   {begun: true, want: []string{"small+2", "small+2"}},
		"Refused": {refuses: true, want: []string{"small+2", "large+1", "small-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				groups := map[string]*skyGroup{"small": {max: 10, cpu: "4", price: 0.1, unborn: !c.begun},
					"large": {max: 10, cpu: "16", price: 0.25, unborn: !c.begun}}
				b := growing(t, groups, c.config)
				b.sky.delay = 0
				b.sky.keeps = c.refuses
				b.addPending("web", 2, "3")
				b.run(10 * time.Second)
				b.addPending("more", 2, "3")
				b.run(time.Minute)
				if got := b.sky.requests(); !slices.Equal(got, c.want) {
					t.Errorf("asked for %v, want %v", got, c.want)
				}
				for _, g := range b.readStatus().NodeGroups {
					if g.ScaleUp.BackoffInfo != nil {
						t.Errorf("group %s backs off: %+v", g.Name, g.ScaleUp.BackoffInfo)
					}
				}
				b.end()
			})
		})
	}
}

var errKeeps = errors.New("told to keep its nodes")

// A machine that was given up and is still listed is deleted once, and again only when the cloud has had its time.
func TestMachinesAreGivenUpOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &skyGroup{max: 10, target: 4, cpu: "4", price: 0.1, lists: true}
		b := growing(t, map[string]*skyGroup{"g": g}, func(c *config.Configuration) {
			c.Decisions = []string{config.ScaleUpDecision}
			c.ScaleUp.MaxNodeProvisionTime.Duration = time.Minute
		})
		b.sky.mu.Lock()
		g.machines["sky://phantom"] = machineIn(externalgrpc.InstanceState_INSTANCE_STATE_UNSPECIFIED, "sky://phantom", nil)
		g.target++
		b.sky.mu.Unlock()
		b.run(5 * time.Minute)
		once := []string{"delete sky://phantom"}
		if got := b.sky.requests(); !slices.Equal(got, once) || g.target != 4 {
			t.Errorf("asked for %v, target %d, want %v and 4", got, g.target, once)
		}
		b.run(3 * time.Minute)
		if got := b.sky.requests(); len(got) != 2 {
			t.Errorf("asked for %v, want it twice by now", got)
		}
		b.end()
	})
}

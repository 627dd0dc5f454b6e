package autoscaler

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/actuation"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/provider"
)

// A machine that was given up and is still listed is deleted once, and again only when the cloud has had its time.
func TestMachinesAreGivenUpOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &skyGroup{max: 10, target: 4, cpu: "4", price: 0.1, lists: true}
		b := growing(t, map[string]*skyGroup{"g": g}, func(c *config.Configuration) {
			c.Decisions = []string{config.ScaleUpDecision}
			c.ScaleUp.MaxNodeProvisionTime.Duration = time.Minute
		})
		b.sky.mu.Lock()
		g.machines["sky://phantom"] = provider.Instance{ProviderID: "sky://phantom",
			State: externalgrpc.InstanceState_INSTANCE_STATE_UNSPECIFIED}
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

// A cloud that has more machines than its target size has no room for as many.
func TestRoom(t *testing.T) {
	for _, c := range []struct{ target, live, want int }{{4, 4, 6}, {4, 7, 3}, {7, 4, 3}, {4, 12, 0}} {
		g := &groupState{Group: &provider.Group{Max: 10, Target: c.target},
			found: &loadlinev1.FleetGroupView{Live: int64(c.live)}}
		if got := g.room(); got != c.want {
			t.Errorf("target %d with %d machines: room for %d, want %d", c.target, c.live, got, c.want)
		}
	}
}

// While anything counts for how long something has been so, a wall clock that is set is not followed.
func TestTimersRun(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	plan := func(noScaleDown string) *loopPlan {
		return &loopPlan{loop: &loadlinev1.PlanLoopResponse{NoScaleDown: noScaleDown}}
	}
	for name, c := range map[string]struct {
		o       *loop
		prepare func(*leader)
		want    bool
	}{
		"NoPlan":          {o: &loop{}, want: true},
		"Nothing":         {o: &loop{plan: plan("")}},
		"RemovalUnderWay": {o: &loop{plan: plan(""), underWay: map[string]actuation.UnderWay{"n": {}}}, want: true},
		"NoDrainPlanned":  {o: &loop{plan: plan("groups grow")}, want: true},
		"DrainedElsewhere": {o: &loop{plan: plan("decided elsewhere")},
			prepare: func(l *leader) { l.config.Decisions = []string{config.ScaleUpDecision} }},
		"NodesOnTheirWay": {o: &loop{plan: plan(""), states: []*groupState{
			{found: &loadlinev1.FleetGroupView{Coming: 1}}}}, want: true},
		"NodesStart": {o: &loop{plan: plan(""), states: []*groupState{{},
			{found: &loadlinev1.FleetGroupView{Starting: 1}}}}, want: true},
		"BackOff": {o: &loop{plan: plan("")},
			prepare: func(l *leader) { l.fleet.backsOff = true }, want: true},
		"CoolDown": {o: &loop{plan: plan("")}, prepare: func(l *leader) { l.fleet.coolsDown = true }, want: true},
	} {
		options := config.Default()
		l := &leader{config: &options, fleet: newFleet(nil, &options, newMetrics("test"))}
		if c.prepare != nil {
			c.prepare(l)
		}
		c.o.now = now
		if got := l.timersRun(c.o); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

package autoscaler

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/config"
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
		g.machines["sky://phantom"] = cloud.Instance{ProviderID: "sky://phantom",
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

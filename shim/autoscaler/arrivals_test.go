package autoscaler

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/autoscaler/plan"
)

// step is the time between two looks at what is due.
const step = 50 * time.Millisecond

// ofSeveralSizes is a bench of groups of several sizes, of which larger nodes cost less per core.
func ofSeveralSizes(t *testing.T, change func(*config.ScaleUp)) *bench {
	return growing(t, map[string]*skyGroup{
		"a": {max: 100, cpu: "4", price: 0.21}, "b": {max: 100, cpu: "8", price: 0.40},
		"c": {max: 100, cpu: "16", price: 0.77}, "d": {max: 100, cpu: "48", price: 2.1}},
		func(c *config.Configuration) {
			c.Decisions = []string{config.ScaleUpDecision}
			c.ScaleUp.BatchIdle = config.Default().ScaleUp.BatchIdle
			if change != nil {
				change(&c.ScaleUp)
			}
		})
}

// arrive has `count` pods come, one per interval, of sizes drawn from a seed, and runs loops each second and when a
// batch ends, until so long after the last pod. It returns after which times groups grew.
func (b *bench) arrive(count int, interval, after time.Duration) (grew []time.Duration) {
	b.t.Helper()
	r := rand.New(rand.NewPCG(7, 1))
	began, made := time.Now(), 0
	next := began
	for time.Since(began) <= time.Duration(count)*interval+after {
		for ; made < count && time.Since(began) >= time.Duration(made)*interval; made++ {
			b.addPending(fmt.Sprint("p", made), 1, []string{"250m", "500m", "1", "1500m", "2", "3"}[r.IntN(6)])
		}
		if !time.Now().Before(next) {
			before := len(b.sky.requests())
			if err := b.once(b.ctx); err != nil {
				b.t.Error(err)
			}
			if len(b.sky.requests()) > before {
				grew = append(grew, time.Since(began))
			}
			next = time.Now().Add(time.Second)
			if wait := b.leader.batchWait; wait > 0 && wait < time.Second {
				next = time.Now().Add(wait)
			}
		}
		time.Sleep(step)
	}
	return grew
}

// perHour is what all machines that were asked for cost.
func (b *bench) perHour() (usd float64) {
	b.sky.mu.Lock()
	defer b.sky.mu.Unlock()
	for _, g := range b.sky.groups {
		usd += float64(g.target) * g.price
	}
	return usd
}

// 118 pods that come within six seconds are bought together, which costs hardly more than if all had been there at
// once. Each loop by itself buys in crumbs.
func TestArrivalsAreBoughtTogether(t *testing.T) {
	const pods = 118
	run := func(change func(*config.ScaleUp), interval time.Duration) (grew []time.Duration, usd float64) {
		synctest.Test(t, func(t *testing.T) {
			b := ofSeveralSizes(t, change)
			grew, usd = b.arrive(pods, interval, 5*time.Second), b.perHour()
			if up := b.readStatus().ClusterWide.ScaleUp; up.Unplaced > 0 {
				t.Errorf("pods have no place: %+v", up)
			}
			b.end()
		})
		return grew, usd
	}
	atOnce := func(s *config.ScaleUp) { s.BatchIdle.Duration = 0 }
	_, one := run(atOnce, 0)
	grew, together := run(nil, step)
	crumbs, apart := run(atOnce, step)
	t.Logf("one plan: %.2f USD per hour; together: %.2f after %v; apart: %.2f in %d rounds", one, together, grew, apart,
		len(crumbs))
	if len(grew) > 2 || together > 1.05*one {
		t.Errorf("grew after %v, to %.2f USD per hour; one plan costs %.2f", grew, together, one)
	}
	if len(crumbs) < 4 || apart < together {
		t.Errorf("without batches groups grew after %v, to %.2f USD per hour: the test shows nothing", crumbs, apart)
	}
}

// If pods never cease to arrive, groups grow every ten seconds; and nobody waits longer.
func TestArrivalsThatDoNotCease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ofSeveralSizes(t, nil)
		grew := b.arrive(100, 500*time.Millisecond, 5*time.Second)
		if len(grew) < 5 || len(grew) > 7 {
			t.Errorf("grew after %v", grew)
		}
		last := time.Duration(0)
		for _, at := range grew {
			if at-last > 11*time.Second {
				t.Errorf("grew after %v: pods waited for too long", grew)
			}
			last = at
		}
		b.end()
	})
}

// A pod alone waits a second, as the status says; one that came long ago does not, nor any when that is switched off.
func TestOnePodWaitsForOthers(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*config.ScaleUp)
		came   time.Duration // ago
		want   string
	}{
		"Now":         {want: "ScaleUpInCooldown"},
		"LongAgo":     {came: time.Minute, want: plan.ScaleUpSuccessful},
		"SwitchedOff": {change: func(s *config.ScaleUp) { s.BatchIdle.Duration = 0 }, want: plan.ScaleUpSuccessful},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := ofSeveralSizes(t, c.change)
				b.addPending("web", 1, "3")
				pod, err := b.client.CoreV1().Pods("default").Get(t.Context(), "web-0", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				pod.CreationTimestamp = metav1.NewTime(time.Now().Add(-c.came))
				_, err = b.client.CoreV1().Pods("default").Update(t.Context(), pod, metav1.UpdateOptions{})
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				for _, want := range []string{c.want, plan.ScaleUpSuccessful} {
					if err := b.once(b.ctx); err != nil {
						t.Fatal(err)
					}
					if got := b.readStatus().ClusterWide.ScaleUp.Result; got != want {
						t.Errorf("result %s, want %s", got, want)
					}
					if want == plan.ScaleUpSuccessful {
						break
					}
					if wait := b.leader.batchWait; wait != time.Second {
						t.Errorf("waits for %v", wait)
					}
					time.Sleep(b.leader.batchWait)
				}
				if got := strings.Join(b.sky.requests(), " "); got != "a+1" {
					t.Errorf("asked for %q", got)
				}
				b.end()
			})
		})
	}
}

// Pods that come and go for ever keep groups from growing for no longer than a batch may take.
func TestPodsThatComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ofSeveralSizes(t, nil)
		began := time.Now()
		for i := 0; len(b.sky.requests()) == 0 && time.Since(began) < time.Minute; i++ {
			b.addPending(fmt.Sprint("p", i), 1, "3")
			if i >= 4 {
				name := fmt.Sprintf("p%d-0", i-4)
				if err := b.client.CoreV1().Pods("default").Delete(b.ctx, name, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			if err := b.once(b.ctx); err != nil {
				t.Fatal(err)
			}
			time.Sleep(500 * time.Millisecond)
		}
		if took := time.Since(began); took < 8*time.Second || took > 13*time.Second {
			t.Errorf("groups grew after %v, want it after ten seconds", took)
		}
		b.end()
	})
}

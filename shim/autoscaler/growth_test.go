package autoscaler

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/autoscaler/config"
)

// Pods that wait make the cheapest group grow that takes them, once: what is on its way is counted.
func TestGrowsTheCheapestGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := growing(t, map[string]*skyGroup{"cheap": {max: 10, cpu: "4", price: 0.1},
			"dear": {max: 10, cpu: "4", price: 0.3}, "small": {max: 10, cpu: "1", price: 0.01}}, nil)
		b.addPending("web", 5, "2") // one cpu is left: three nodes of 4
		b.run(30 * time.Second)
		if got := b.sky.requests(); !slices.Equal(got, []string{"cheap+3"}) {
			t.Fatalf("asked for %v, want cheap+3 once", got)
		}
		events := b.eventsSince()
		if events["ScaledUpGroup"] != "Scale-up: group cheap size set to 3 instead of 0 (max: 10)" ||
			events["TriggeredScaleUp"] != "pod triggered scale-up: [{cheap 0->3 (max: 10)}]" {
			t.Errorf("events %v", events)
		}
		up := b.readStatus().ClusterWide.ScaleUp
		if up.Status != "InProgress" || up.PendingPods != 5 || up.Placed != 5 || up.Unplaced != 0 {
			t.Errorf("status %+v", up)
		}
		b.run(40 * time.Second) // the nodes are there, the scheduler has not come to the pods
		for i := range 5 {
			b.bind(fmt.Sprintf("web-%d", i), fmt.Sprintf("cheap%d", i/2+1))
		}
		b.run(10 * time.Minute)
		if got := b.sky.requests(); len(got) != 1 {
			t.Errorf("asked for %v", got)
		}
		if s := b.readStatus(); s.ClusterWide.ScaleUp.Status != "NoActivity" ||
			s.ClusterWide.ScaleUp.Result != "ScaleUpNotNeeded" ||
			s.NodeGroups[0].Health.NodeCounts.Registered.Ready != 3 {
			t.Errorf("status %+v", s)
		}
		b.end()
	})
}

// A node that is ready before its devices are registered is on its way: no second one is bought for the same pod, and
// it is no model of new ones. Cluster Autoscaler's issues 1659, 3164 and 7956.
func TestDevicesThatComeLate(t *testing.T) {
	for name, c := range map[string]struct {
		delay time.Duration // until the device is there
		nodes int           // that the group has before
		want  []string
	}{
		"FirstNode":  {delay: 5 * time.Minute, want: []string{"gpu+1"}},
		"SecondNode": {delay: 5 * time.Minute, nodes: 1, want: []string{"gpu+1"}},
		// A node whose device never arrives counts as it is once the time for its start is over, and shows what new
		// ones are like: there are no further ones, whatever the cloud says of them.
		"Never": {delay: 3 * time.Hour, want: []string{"gpu+1"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				group := &skyGroup{max: 10, target: c.nodes, cpu: "4", price: 1, gpus: "1"}
				b := growing(t, map[string]*skyGroup{"gpu": group}, func(c *config.Configuration) {
					c.Decisions = []string{config.ScaleUpDecision}
				})
				b.run(time.Minute)
				b.sky.mu.Lock()
				group.gpuDelay = c.delay
				b.sky.mu.Unlock()
				if c.nodes > 0 {
					b.addGPUPending("first")
					b.bind("first-0", "gpu1")
				}
				b.addGPUPending("train")
				b.run(90 * time.Minute)
				if got := b.sky.requests(); !slices.Equal(got, c.want) {
					t.Errorf("asked for %v, want %v", got, c.want)
				}
				b.end()
			})
		})
	}
}

// addGPUPending adds a pod that no node takes, of one GPU.
func (b *bench) addGPUPending(name string) {
	b.addPending(name, 1, "1")
	pods := b.client.CoreV1().Pods("default")
	pod, err := pods.Get(b.t.Context(), name+"-0", metav1.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	pod.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = resource.MustParse("1")
	if _, err := pods.Update(b.t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		b.t.Fatal(err)
	}
	synctest.Wait()
}

// Node objects that vanish, such as from a store that was restored, cost no machine: pods may run there.
func TestMachinesThatLoseTheirNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := growing(t, map[string]*skyGroup{"g": {max: 10, target: 2, cpu: "4", price: 1}}, func(c *config.Configuration) {
			c.Decisions = []string{config.ScaleUpDecision}
		})
		b.run(time.Minute)
		for _, node := range []string{"g1", "g2"} {
			if err := b.client.CoreV1().Nodes().Delete(t.Context(), node, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		b.run(40 * time.Minute)
		if got := b.sky.requests(); len(got) != 0 {
			t.Errorf("asked for %v", got)
		}
		s := b.readStatus()
		if counts := s.NodeGroups[0].Health.NodeCounts; counts.LongUnregistered != 2 ||
			!strings.Contains(strings.Join(s.Warnings, " "), "node group g: 2 machines had nodes that are gone") {
			t.Errorf("counts %+v, warnings %q", counts, s.Warnings)
		}
		b.end()
	})
}

// However many machines do not register, only so many are deleted in one loop.
func TestLateMachinesGoInSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := growing(t, map[string]*skyGroup{"g": {max: 30, cpu: "4", price: 1}}, func(c *config.Configuration) {
			c.ScaleDown.MaxScaleDownParallelism = 4
		})
		b.sky.delay = 0 // no machine becomes a node
		b.addPending("web", 10, "3")
		b.run(15*time.Minute + 30*time.Second)
		deleted := 0
		for range 10 {
			before := len(b.sky.requests())
			if err := b.once(b.ctx); err != nil {
				t.Fatal(err)
			}
			step := len(b.sky.requests()) - before
			if deleted += step; step > 4 {
				t.Errorf("%d requests in one loop: %v", step, b.sky.requests())
			}
		}
		if all := b.sky.requests(); len(all) != 11 {
			t.Errorf("asked for %v", all)
		}
		b.end()
	})
}

// waitFor has a pod state how long it is given.
func waitFor(delay string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Annotations = map[string]string{"cluster-autoscaler.kubernetes.io/pod-scale-up-delay": delay}
	}
}

// The pods that make groups grow, and how far.
func TestWhatGrows(t *testing.T) {
	group := func(max int) map[string]*skyGroup {
		return map[string]*skyGroup{"g": {max: max, cpu: "4", price: 0.1}}
	}
	for name, c := range map[string]struct {
		groups map[string]*skyGroup
		config func(*config.Configuration)
		edit   func(*v1.Pod)
		ends   time.Duration // until a pod on the fixed node has ended; 0: it runs on
		want   []string
		why    string // part of the status
		idle   int    // how many pods do not wait
	}{
		"AllOfThem":      {groups: group(10), want: []string{"g+4"}},
		"UpToTheMaximum": {groups: group(3), want: []string{"g+3"}, why: "1 max node group size reached"},
		"NodesInAll": {groups: group(10), config: func(c *config.Configuration) { c.ScaleUp.MaxNodesTotal = 3 },
			want: []string{"g+2"}},
		"NoneMoreInAll": {groups: group(10), config: func(c *config.Configuration) { c.ScaleUp.MaxNodesTotal = 1 },
			why: "the cluster may have 1 node in all"},
		// The fixed node has four.
		"CoresInAll": {groups: group(10), config: func(c *config.Configuration) { c.ScaleDown.CoresTotal = "0:15" },
			want: []string{"g+2"}, why: "1 max cluster cpu limit reached"},
		"NoCoresInAll": {groups: group(10), config: func(c *config.Configuration) { c.ScaleDown.CoresTotal = "0:4" },
			why: "1 max cluster cpu limit reached"},
		"MemoryInAll": {groups: group(10), config: func(c *config.Configuration) { c.ScaleDown.MemoryTotal = "0:32" },
			want: []string{"g+3"}, why: "1 max cluster memory limit reached"},
		"NodesInOneLoop": {groups: group(10),
			config: func(c *config.Configuration) { c.ScaleUp.MaxNodesPerScaleUp = 1 }, want: []string{"g+1"}},
		"AllOrNone": {groups: map[string]*skyGroup{"g": {max: 6, cpu: "4", price: 0.1, atomic: true}},
			want: []string{"g+6"}},
		"AllOrNoneTooMany": {groups: map[string]*skyGroup{"g": {max: 6, cpu: "4", price: 0.1, atomic: true}},
			config: func(c *config.Configuration) { c.ScaleUp.MaxNodesTotal = 6 },
			why:    "1 grows by all of its nodes or none"},
		"Ranked": {groups: map[string]*skyGroup{"cheap": {max: 10, cpu: "4", price: 0.1},
			"large": {max: 10, cpu: "16", price: 0.9}},
			config: func(c *config.Configuration) { c.ScaleUp.Strategies = []string{"least-nodes"} },
			want:   []string{"large+1"}},
		"TooSmall": {groups: map[string]*skyGroup{"g": {max: 6, cpu: "2", price: 0.1}},
			why: "1 Insufficient cpu"},
		"ByBaseRates": {groups: map[string]*skyGroup{"g": {max: 10, cpu: "4"}}, want: []string{"g+4"}},
		"WithoutPrice": {groups: map[string]*skyGroup{"g": {max: 10, cpu: "4"}},
			config: func(c *config.Configuration) { c.ScaleUp.BaseRatePrices = false },
			why:    "1 no price or template known"},
		"DecidedElsewhere": {groups: group(10),
			config: func(c *config.Configuration) { c.Decisions = []string{config.ScaleDownDecision} }},
		"Observed":    {groups: group(10), config: func(c *config.Configuration) { c.Mode = config.Observe }},
		"NotTriedYet": {groups: group(10), idle: 4, edit: func(p *v1.Pod) { p.Status.Conditions = nil }},
		"SchedulerBypassed": {groups: group(10), edit: func(p *v1.Pod) { p.Status.Conditions = nil },
			config: func(c *config.Configuration) { c.ScaleUp.BypassedSchedulerNames = []string{"default-scheduler"} },
			want:   []string{"g+4"}},
		"TooYoung": {groups: group(10), idle: 4,
			config: func(c *config.Configuration) { c.ScaleUp.NewPodScaleUpDelay.Duration = time.Hour }},
		"TooYoungItself":   {groups: group(10), idle: 4, edit: waitFor("1h")},
		"TooYoungForAYear": {groups: group(10), idle: 4, edit: waitFor("8760h")},
		"OneTooYoungItself": {groups: group(10), idle: 1, want: []string{"g+3"}, edit: func(p *v1.Pod) {
			if p.Name == "web-2" {
				waitFor("1h")(p)
			}
		}},
		"OneOldEnough": {groups: group(10), idle: 3, want: []string{"g+1"},
			config: func(c *config.Configuration) { c.ScaleUp.NewPodScaleUpDelay.Duration = time.Hour },
			edit: func(p *v1.Pod) {
				if p.Name == "web-2" {
					p.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
				}
			}},
		"NoDelayOfItsOwn": {groups: group(10), want: []string{"g+4"}, edit: waitFor("0s"),
			config: func(c *config.Configuration) { c.ScaleUp.NewPodScaleUpDelay.Duration = time.Hour }},
		"ADelayBelow0":         {groups: group(10), want: []string{"g+4"}, edit: waitFor("-1h")},
		"ADelayThatIsNone":     {groups: group(10), want: []string{"g+4"}, edit: waitFor("an hour")},
		"ADelayThatIsTooLarge": {groups: group(10), want: []string{"g+4"}, edit: waitFor("9999999h")},
		"ASchedulerWithoutText": {groups: group(10), idle: 4, edit: func(p *v1.Pod) {
			p.Spec.SchedulerName, p.Status.Conditions = "\xff\x00", nil
		}},
		"Expendable": {groups: group(10), idle: 4, edit: func(p *v1.Pod) { p.Spec.Priority = new(int32(-11)) }},
		"WithoutDelayAClockMayDiffer": {groups: group(10), edit: func(p *v1.Pod) {
			p.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Hour))
		}, want: []string{"g+4"}},
		"Gated": {groups: group(10), idle: 4,
			edit: func(p *v1.Pod) { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "g"}} }},
		"NominatedForOneOfFour":    {groups: group(10), ends: time.Minute, edit: nominate, want: []string{"g+3"}},
		"NominatedForTomorrow":     {groups: group(10), ends: 24 * time.Hour, edit: nominate, want: []string{"g+4"}},
		"NominatedWhereNobodyEnds": {groups: group(10), edit: nominate, want: []string{"g+4"}},
		"BelowTheMinimum": {groups: map[string]*skyGroup{"g": {min: 6, max: 10, cpu: "4", price: 0.1}},
			config: func(c *config.Configuration) { c.ScaleUp.EnforceNodeGroupMinSize = true }, want: []string{"g+6"}},
		"BelowAMinimumThatIsNotEnforced": {groups: map[string]*skyGroup{"g": {min: 6, max: 10, cpu: "4", price: 0.1}},
			want: []string{"g+4"}},
		"TooManyGPUs": {groups: map[string]*skyGroup{"g": {max: 10, cpu: "4", price: 0.1, gpus: "2"}},
			config: func(c *config.Configuration) {
				c.ScaleDown.GPULabels, c.ScaleDown.GPUTotal = []string{"group"}, []string{"other:0:0", "g:0:3"}
			}, want: []string{"g+1"}, why: "1 max cluster g limit reached"},
		"OfADaemonSet": {groups: group(10), idle: 4, edit: func(p *v1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := growing(t, c.groups, c.config)
				b.addPending("web", 4, "3")
				if c.ends > 0 {
					p, _ := b.client.CoreV1().Pods("default").Get(t.Context(), "there", metav1.GetOptions{})
					p.DeletionTimestamp = new(metav1.NewTime(time.Now().Add(c.ends)))
					if _, err := b.client.CoreV1().Pods("default").Update(t.Context(), p, metav1.UpdateOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				if c.edit != nil {
					for i := range 4 {
						p, _ := b.client.CoreV1().Pods("default").Get(t.Context(), fmt.Sprintf("web-%d", i),
							metav1.GetOptions{})
						c.edit(p)
						if _, err := b.client.CoreV1().Pods("default").Update(t.Context(), p,
							metav1.UpdateOptions{}); err != nil {
							t.Fatal(err)
						}
					}
					synctest.Wait()
				}
				if err := b.once(b.ctx); err != nil {
					t.Fatal(err)
				}
				if got := b.sky.requests(); !slices.Equal(got, c.want) {
					t.Errorf("asked for %v, want %v", got, c.want)
				}
				if up := b.readStatus().ClusterWide.ScaleUp; up.PendingPods != int32(4-c.idle) || !strings.Contains(up.Why, c.why) ||
					c.why == "" && up.Why != "" && c.want == nil && name != "DecidedElsewhere" {
					t.Errorf("status %+v, want %q in it", up, c.why)
				}
				if why := b.eventsSince()["NotTriggerScaleUp"]; c.why != "" && !strings.Contains(why, c.why) {
					t.Errorf("pods are told %q, want %q in it", why, c.why)
				}
				b.end()
			})
		})
	}
}

// If one group fails the other one grows, and the first is asked again after its back-off only.
func TestAnotherGroupGrows(t *testing.T) {
	for name, fail := range map[string]func(*skyGroup){
		"Refused": func(g *skyGroup) { g.fails = errors.New("told to fail") },
		"OutOfStock": func(g *skyGroup) {
			g.fault = &externalgrpc.InstanceErrorInfo{ErrorCode: "STOCK_OUT", ErrorMessage: "none left",
				InstanceErrorClass: 1}
		},
		"NotCreated": func(g *skyGroup) {
			g.fault = &externalgrpc.InstanceErrorInfo{ErrorCode: "BROKEN", ErrorMessage: "no such image"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				groups := map[string]*skyGroup{"cheap": {max: 10, cpu: "4", price: 0.1},
					"dear": {max: 10, cpu: "4", price: 0.3}}
				fail(groups["cheap"])
				b := growing(t, groups, nil)
				b.addPending("web", 2, "3")
				b.run(30 * time.Second)
				got := b.sky.requests()
				// Machines of the one group may be given up before the other one is asked, or after that.
				if got[0] != "cheap+2" || !slices.Contains(got, "dear+2") || groups["cheap"].target != 0 ||
					len(groups["cheap"].machines) != 0 {
					t.Fatalf("asked for %v, target %d", got, groups["cheap"].target)
				}
				s := b.readStatus().NodeGroups[0]
				if s.ScaleUp.Status != "Backoff" || s.ScaleUp.BackoffInfo == nil ||
					s.ScaleUp.BackoffInfo.ErrorMessage == "" {
					t.Errorf("status %+v", s)
				}
				b.run(time.Minute) // the nodes of the other one are there
				b.bind("web-0", "dear1")
				b.bind("web-1", "dear2")
				groups["cheap"].fails, groups["cheap"].fault = nil, nil
				before := len(b.sky.requests())
				b.addPending("more", 1, "3")
				b.run(30 * time.Second)
				if got := b.sky.requests()[before:]; !slices.Equal(got, []string{"dear+1"}) {
					t.Errorf("during the back-off: asked for %v, status %+v", got, b.readStatus())
				}
				b.run(5 * time.Minute)
				before = len(b.sky.requests())
				b.addPending("last", 1, "4")
				b.run(30 * time.Second)
				if got := b.sky.requests()[before:]; !slices.Equal(got, []string{"cheap+1"}) {
					t.Errorf("after the back-off: asked for %v", got)
				}
				b.end()
			})
		})
	}
}

// Nodes that do not register in time are given up, whether the cloud shows machines of them or not, also by a process
// that has not asked for them. Their group backs off, and events tell of both.
func TestNodesThatDoNotCome(t *testing.T) {
	const late = "Warning ScaleUpTimedOut Nodes added to group g failed to register within 3m0s"
	deleted := []string{late, "Normal DeleteUnregistered Removed unregistered node sky://g1",
		"Normal DeleteUnregistered Removed unregistered node sky://g2"}
	for name, c := range map[string]struct {
		unborn, restart, forgets bool
		want, events             []string
	}{
		"Phantoms": {want: []string{"g+2", "delete sky://g1", "delete sky://g2"}, events: deleted},
		"NotBegun": {unborn: true, want: []string{"g+2", "g-2"}, events: []string{late}},
		"PhantomsAndRestart": {restart: true, want: []string{"g+2", "delete sky://g1", "delete sky://g2"},
			events: deleted},
		// If nobody knows since when machines are missing, their time begins anew.
		"PhantomsAndALostState": {restart: true, forgets: true,
			want: []string{"g+2", "delete sky://g1", "delete sky://g2"}, events: deleted},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				groups := map[string]*skyGroup{"g": {max: 10, cpu: "4", price: 0.1, unborn: c.unborn}}
				b := growing(t, groups,
					func(c *config.Configuration) { c.ScaleUp.MaxNodeProvisionTime.Duration = 3 * time.Minute })
				b.sky.delay = 0
				b.addPending("web", 2, "3")
				b.run(time.Minute)
				left := 2 * time.Minute
				if c.forgets {
					left = 3 * time.Minute
					if err := b.client.CoreV1().ConfigMaps("kube-system").Delete(t.Context(), stateName,
						metav1.DeleteOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				if c.restart {
					b.start(b.config, 2)
				}
				b.run(left - 10*time.Second)
				if got := b.sky.requests(); !slices.Equal(got, c.want[:1]) {
					t.Fatalf("asked for %v before the time is up", got)
				}
				b.run(40 * time.Second)
				if got := b.sky.requests(); !slices.Equal(got, c.want) {
					t.Errorf("asked for %v, want %v", got, c.want)
				}
				if got := b.eventsOfMachines(); !slices.Equal(got, c.events) {
					t.Errorf("events %q, want %q", got, c.events)
				}
				if s := b.readStatus().NodeGroups[0]; s.ScaleUp.Status != "Backoff" ||
					s.ScaleUp.BackoffInfo.ErrorCode != "timeout" || s.Health.CloudProviderTarget != 0 {
					t.Errorf("status %+v", s)
				}
				b.end()
			})
		})
	}
}

// Machines that do not register in time and that the cloud keeps have an event each that says why, and so few events
// that others about the status pass as well. Machines that cannot be created have none, as in Cluster Autoscaler, and a
// process that only observes tells of nothing.
func TestEventsOfMachinesThatDoNotCome(t *testing.T) {
	broken := &externalgrpc.InstanceErrorInfo{ErrorCode: "BROKEN", ErrorMessage: "no such image"}
	for name, c := range map[string]struct {
		mode   string
		fault  *externalgrpc.InstanceErrorInfo
		events []string
	}{
		"Kept": {mode: config.Act, events: append([]string{
			"Warning ScaleUpTimedOut Nodes added to group g failed to register within 3m0s"},
			slices.Repeat([]string{"Warning DeleteUnregisteredFailed Failed to remove node sky://g: told to keep its nodes"},
				10)...)},
		"Broken":   {mode: config.Act, fault: broken},
		"Observed": {mode: config.Observe},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &skyGroup{max: 20, cpu: "4", price: 0.1, fault: c.fault}
				b := growing(t, map[string]*skyGroup{"g": g}, func(options *config.Configuration) {
					options.Mode, options.ScaleUp.MaxNodeProvisionTime.Duration = c.mode, 3*time.Minute
					options.ScaleDown.MaxScaleDownParallelism = 100
				})
				b.sky.delay, b.sky.keeps = 0, true
				if c.mode == config.Observe { // another autoscaler has asked for them
					if err := b.sky.IncreaseSize(t.Context(), "g", 0, 11); err != nil {
						t.Fatal(err)
					}
				}
				b.addPending("web", 11, "3")
				b.run(3*time.Minute + 15*time.Second)
				got := b.eventsOfMachines()
				for i := range got {
					got[i] = machineNumber.ReplaceAllString(got[i], "sky://g:")
				}
				if !slices.Equal(got, c.events) {
					t.Errorf("events %q, want %q", got, c.events)
				}
				b.end()
			})
		})
	}
}

var machineNumber = regexp.MustCompile(`sky://g\d+:`)

// Machines that have long been running may have nodes by another provider id than the cloud tells: they are not given
// up where no machine of their group has a node, and are where one has. Some clouds do not tell that machines run.
func TestMachinesWhoseNodesAreNotKnown(t *testing.T) {
	for _, c := range []struct {
		state   externalgrpc.InstanceState
		matches bool
	}{
		{externalgrpc.InstanceState_INSTANCE_RUNNING, false}, {externalgrpc.InstanceState_INSTANCE_RUNNING, true},
		{externalgrpc.InstanceState_INSTANCE_STATE_UNSPECIFIED, false},
		{externalgrpc.InstanceState_INSTANCE_STATE_UNSPECIFIED, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := &skyGroup{max: 10, cpu: "4", price: 0.1, machines: map[string]*externalgrpc.Instance{}}
			if c.matches {
				g.target = 1
			}
			b := growing(t, map[string]*skyGroup{"g": g}, func(c *config.Configuration) {
				c.Decisions = []string{config.ScaleUpDecision}
				c.ScaleUp.MaxNodeProvisionTime.Duration = time.Minute
			})
			b.sky.mu.Lock()
			g.machines["sky://other"] = machineIn(c.state, "sky://other", nil)
			g.target++
			b.sky.mu.Unlock()
			b.run(3 * time.Minute)
			if deleted := slices.Equal(b.sky.requests(), []string{"delete sky://other"}); deleted != c.matches {
				t.Errorf("%v, a machine of the group has a node %v: asked for %v", c.state, c.matches, b.sky.requests())
			}
			b.end()
		})
	}
}

// At constant load, with slack and its placeholder pods, nothing is asked for and nothing written in 1,000 loops.
// Invariant E3.
func TestNoOscillationOfTheWholeLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, k := slacking(t, nil)
		b.addPending("web", 3, "2")
		b.run(2 * time.Minute)
		for i := range 3 {
			b.bind(fmt.Sprintf("web-%d", i), fmt.Sprintf("g%d", i/2+1))
		}
		b.run(30 * time.Minute)
		writes, asked, replicas := len(b.writes()), len(b.sky.requests()), k.replicas()
		b.run(10_000 * time.Second) // 1,000 loops
		if after := b.writes(); len(after) != writes || len(b.sky.requests()) != asked || k.replicas() != replicas {
			t.Errorf("written %v, asked for %v, %d replicas instead of %d", after[writes:], b.sky.requests()[asked:],
				k.replicas(), replicas)
		}
		b.end()
	})
}

// More kinds of pods than one question may have are planned for by their priority, and the loop continues.
func TestMorePodsThanAQuestionHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := growing(t, map[string]*skyGroup{"g": {max: 1000, cpu: "4", price: 0.1}}, nil)
		const kinds = 700 // of 7 KB each
		for i := range kinds {
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("p%d", i),
				UID:    types.UID(fmt.Sprint(i)),
				Labels: map[string]string{"index": fmt.Sprint(i)}},
				Spec: v1.PodSpec{Priority: new(int32(i)), NodeSelector: map[string]string{},
					Containers: []v1.Container{{
						Resources: v1.ResourceRequirements{
							Requests: v1.ResourceList{"cpu": resource.MustParse("4")}}}}},
				Status: v1.PodStatus{Phase: v1.PodPending, Conditions: []v1.PodCondition{
					{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: v1.PodReasonUnschedulable}}}}
			for j := range 40 {
				pod.Labels[fmt.Sprintf("example.com/%0100d", j)] = strings.Repeat("x", 63)
			}
			if err := b.client.Tracker().Add(pod); err != nil {
				t.Fatal(err)
			}
			if i%50 == 0 {
				synctest.Wait() // the watch of the fake holds a hundred events
			}
		}
		synctest.Wait()
		if err := b.once(b.ctx); err != nil {
			t.Fatal(err)
		}
		if got := b.sky.requests(); len(got) != 1 || !strings.HasPrefix(got[0], "g+") {
			t.Errorf("asked for %v", got)
		}
		if up := b.readStatus().ClusterWide.ScaleUp; up.PendingPods != kinds {
			t.Errorf("status %+v", up)
		}
		b.end()
	})
}

// A group keeps its minimum, although its machines do not come.
func TestMinimumOfMachinesThatDoNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &skyGroup{min: 1, max: 10, cpu: "4", price: 0.1,
			fault: &externalgrpc.InstanceErrorInfo{ErrorCode: "STOCK_OUT", InstanceErrorClass: 1}}
		b := growing(t, map[string]*skyGroup{"g": g}, nil)
		b.sky.mu.Lock()
		b.sky.make("g")
		b.sky.make("g")
		g.target = 2
		b.sky.mu.Unlock()
		b.run(time.Minute)
		if got := b.sky.requests(); !slices.Equal(got, []string{"delete sky://g1"}) || g.target != 1 {
			t.Errorf("asked for %v, target %d", got, g.target)
		}
		b.end()
	})
}

// A node that has registered and is not ready yet is counted once, as on its way.
func TestNodesThatStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := growing(t, map[string]*skyGroup{"g": {max: 10, cpu: "4", price: 0.1}}, nil)
		b.addPending("web", 2, "3")
		b.run(30 * time.Second)
		ready := func(name string, status v1.ConditionStatus) {
			node := b.node(name).DeepCopy()
			node.Status.Conditions[0].Status = status
			if _, err := b.client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		time.Sleep(15 * time.Second)
		ready("g1", v1.ConditionFalse)
		ready("g2", v1.ConditionFalse)
		b.run(2 * time.Minute)
		if got, counts := b.sky.requests(), b.readStatus().NodeGroups[0].Health.NodeCounts; len(got) != 1 ||
			counts.Registered.NotStarted != 2 || counts.Unregistered != 0 {
			t.Errorf("asked for %v, counts %+v", got, counts)
		}
		ready("g1", v1.ConditionTrue)
		ready("g2", v1.ConditionTrue)
		b.run(time.Minute)
		if got, counts := b.sky.requests(), b.readStatus().NodeGroups[0].Health.NodeCounts; len(got) != 1 ||
			counts.Registered.Ready != 2 {
			t.Errorf("asked for %v, counts %+v", got, counts)
		}
		b.end()
	})
}

// While many nodes are not ready no group grows.
func TestUnhealthyClusterDoesNotGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := growing(t, map[string]*skyGroup{"g": {max: 10, target: 5, cpu: "4", price: 0.1}}, nil)
		for _, name := range []string{"g1", "g2", "g3", "g4"} {
			node := b.node(name).DeepCopy()
			node.CreationTimestamp, node.Status.Conditions[0].Status = metav1.NewTime(time.Now().Add(-time.Hour)),
				v1.ConditionUnknown
			if _, err := b.client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		b.addPending("web", 6, "4")
		b.run(time.Minute)
		if got, up := b.sky.requests(), b.readStatus().ClusterWide.ScaleUp; len(got) != 0 ||
			!strings.Contains(up.Why, "ClusterUnhealthy: 4 of 6 nodes are not ready") {
			t.Errorf("asked for %v, status %+v", got, up)
		}
		b.end()
	})
}

// Somebody else changes the size of a group at the same moment: nothing is asked for, and the group does not back off.
func TestTargetChangesMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		groups := map[string]*skyGroup{"g": {max: 10, cpu: "4", price: 0.1, fails: cloud.ErrChanged}}
		b := growing(t, groups, nil)
		b.addPending("web", 2, "3")
		if err := b.once(b.ctx); err != nil {
			t.Fatal(err)
		}
		groups["g"].fails = nil
		if err := b.once(b.ctx); err != nil {
			t.Fatal(err)
		}
		if got := b.sky.requests(); !slices.Equal(got, []string{"g+2", "g+2"}) || groups["g"].target != 2 {
			t.Errorf("asked for %v, target %d", got, groups["g"].target)
		}
		b.end()
	})
}

// One group whose options the provider cannot tell is left as it is: it neither grows nor loses its idle node. The
// others grow and shrink as without it.
func TestAGroupWithoutOptionsIsLeftAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := growing(t, map[string]*skyGroup{
			"cheap": {max: 10, cpu: "4", price: 0.1, target: 1, problem: errors.New("told to fail")},
			"dear":  {max: 10, cpu: "4", price: 0.3, target: 1}}, nil)
		b.run(3 * time.Minute)
		if got := b.sky.requests(); !slices.Equal(got, []string{"delete sky://dear1"}) {
			t.Errorf("asked for %v, want the idle node of the other group to go", got)
		}
		b.addPending("web", 3, "3")
		b.run(20 * time.Second)
		if got := b.sky.requests(); !slices.Equal(got, []string{"delete sky://dear1", "dear+2"}) {
			t.Errorf("asked for %v, want the other group to grow", got)
		}
		if s := b.readStatus(); !slices.Equal(s.Warnings, []string{"node group cheap is left as it is: told to fail"}) {
			t.Errorf("warnings %q", s.Warnings)
		}
		b.end()
	})
}

// A pod of 2 cpu that says that a DaemonSet made it makes no new node smaller, whether or not the set exists: the set's
// template requests nothing, and pods of 3 cpu still fit on nodes of 4.
func TestForgedDaemonSetPodsMakeNoNodeSmaller(t *testing.T) {
	want := []string{"g+2"}
	for _, uid := range []types.UID{"forged", "uid-agent"} {
		t.Run(string(uid), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := growing(t, map[string]*skyGroup{"g": {max: 10, cpu: "4", price: 0.1}}, nil)
				template := v1.PodTemplateSpec{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c"}}}}
				set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "agent",
					UID: "uid-agent"}, Spec: appsv1.DaemonSetSpec{Template: template}}
				if _, err := b.client.AppsV1().DaemonSets("default").Create(t.Context(), set,
					metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a-forged", UID: "p",
					OwnerReferences: []metav1.OwnerReference{
						{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: uid, Controller: new(true)}}},
					Spec: v1.PodSpec{NodeName: "fixed",
						Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
							Requests: v1.ResourceList{"cpu": resource.MustParse("2")}}}}}}
				if _, err := b.client.CoreV1().Pods("default").Create(t.Context(), pod,
					metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				b.addPending("web", 2, "3")
				b.run(20 * time.Second)
				if got := b.sky.requests(); !slices.Equal(got, want) {
					t.Errorf("asked for %v, want %v", got, want)
				}
				b.end()
			})
		})
	}
}

// If the pod of a DaemonSet takes the room that a pod needs on each new node, the event and the status name the set.
func TestTheDaemonSetInTheWayIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := growing(t, map[string]*skyGroup{"g": {max: 10, cpu: "4", price: 0.1}}, nil)
		set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "monitoring", Name: "agent", UID: "u"},
			Spec: appsv1.DaemonSetSpec{Template: v1.PodTemplateSpec{Spec: v1.PodSpec{Containers: []v1.Container{{
				Name: "c", Resources: v1.ResourceRequirements{
					Requests: v1.ResourceList{"cpu": resource.MustParse("2")}}}}}}}}
		if _, err := b.client.AppsV1().DaemonSets("monitoring").Create(t.Context(), set,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ pod, cpu, want string }{
			{"web", "3", "1 Insufficient cpu beside the pods of DaemonSets that each new node has, such as " +
				"monitoring/agent"},
			{"wide", "9", "1 Insufficient cpu"}} {
			b.addPending(c.pod, 1, c.cpu)
			b.run(time.Minute)
			if got := b.eventsSince()["NotTriggerScaleUp"]; got != "pod didn't trigger scale-up: "+c.want {
				t.Errorf("%s gets the event %q, want %q", c.pod, got, c.want)
			}
		}
		if got := b.sky.requests(); len(got) > 0 {
			t.Errorf("asked for %v", got)
		}
		if why := b.readStatus().ClusterWide.ScaleUp.Why; !strings.Contains(why, "such as monitoring/agent") {
			t.Errorf("the status says %q", why)
		}
		b.end()
	})
}

// If pods of many kinds get no node, only the first kinds have reasons of their own. The others get those of the
// groups, and not those of another kind.
func TestPodsOfManyKindsGetNoReasonOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := growing(t, map[string]*skyGroup{"g": {max: 10, cpu: "4", price: 0.1}}, nil)
		for i := range 20 {
			b.addPending(fmt.Sprintf("vast-%02d", i), 1, fmt.Sprint(10+i))
		}
		b.run(time.Minute)
		why := map[string]int{}
		for len(b.recorder.Events) > 0 {
			if text := <-b.recorder.Events; strings.Contains(text, "NotTriggerScaleUp") {
				why[text[strings.Index(text, "pod didn't"):]]++
			}
		}
		if want := (map[string]int{"pod didn't trigger scale-up: 1 Insufficient cpu": 16,
			"pod didn't trigger scale-up: 1 new nodes do not take it": 4}); !maps.Equal(why, want) {
			t.Errorf("events %v, want %v", why, want)
		}
		b.end()
	})
}

// The actuator believes an owner only if the cluster has that DaemonSet now, between two loops as well.
func TestOnlyDaemonSetsThatExistAreBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, nil)
		set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "agent", UID: "u"}}
		if _, err := b.client.AppsV1().DaemonSets("default").Create(t.Context(), set,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		believed := b.cluster.IsOfDaemonSet
		agent := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "u",
			Controller: new(true)}
		for name, c := range map[string]struct {
			namespace string
			edit      func(*metav1.OwnerReference)
			want      bool
		}{
			"Exists":           {"default", func(*metav1.OwnerReference) {}, true},
			"AnotherUID":       {"default", func(o *metav1.OwnerReference) { o.UID = "v" }, false},
			"AnotherName":      {"default", func(o *metav1.OwnerReference) { o.Name = "other" }, false},
			"AnotherNamespace": {"shop", func(*metav1.OwnerReference) {}, false},
			"AnotherGroup":     {"default", func(o *metav1.OwnerReference) { o.APIVersion = "example.com/v1" }, false},
			"AnotherKind":      {"default", func(o *metav1.OwnerReference) { o.Kind = "ReplicaSet" }, false},
			"NoController":     {"default", func(o *metav1.OwnerReference) { o.Controller = nil }, false},
		} {
			owner := agent
			c.edit(&owner)
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "p",
				OwnerReferences: []metav1.OwnerReference{owner}}}
			if got := believed(pod); got != c.want {
				t.Errorf("%s: believed %v", name, got)
			}
		}
		if err := b.client.AppsV1().DaemonSets("default").Delete(t.Context(),
			"agent", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if believed(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p",
			OwnerReferences: []metav1.OwnerReference{agent}}}) {
			t.Error("a DaemonSet that is gone is believed")
		}
		b.end()
	})
}

// huge makes pods that wait too large for a question, by their node affinity.
func (b *bench) huge(namespace string, count, bytes int) {
	values := []string{}
	for size := 0; size < bytes; size += 62 {
		values = append(values, fmt.Sprintf("%060d", len(values)))
	}
	for i := range count {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("huge-%d", i),
			UID: types.UID(fmt.Sprint("huge-", i)), CreationTimestamp: metav1.Now()},
			Spec: v1.PodSpec{SchedulerName: "default-scheduler",
				Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
					Requests: v1.ResourceList{"cpu": resource.MustParse("3")}}}},
				Affinity: &v1.Affinity{
					NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
						NodeSelectorTerms: []v1.NodeSelectorTerm{
							{MatchExpressions: []v1.NodeSelectorRequirement{
								{Key: fmt.Sprint("k", i), Operator: v1.NodeSelectorOpNotIn, Values: values}}}}}}}},
			Status: v1.PodStatus{Phase: v1.PodPending, Conditions: []v1.PodCondition{
				{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: v1.PodReasonUnschedulable}}}}
		if _, err := b.client.CoreV1().Pods(namespace).Create(b.t.Context(), pod, metav1.CreateOptions{}); err != nil {
			b.t.Fatal(err)
		}
	}
	synctest.Wait()
}

// Four pods of 1.4 MB in a namespace that sorts early keep nobody waiting: they are left out, by event, metric, status
// and page, and the later ones are planned for in the same loop.
func TestHugePodsOfOthersKeepNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := growing(t, map[string]*skyGroup{"g": {max: 10, cpu: "4", price: 0.1}}, nil)
		b.huge("a-evil", 4, 1_400_000)
		b.addPending("web", 2, "3")
		for range 3 {
			if err := b.once(b.ctx); err != nil {
				t.Fatal(err)
			}
		}
		if got := b.sky.requests(); !slices.Equal(got, []string{"g+2"}) {
			t.Errorf("asked for %v, want two nodes for the pods of others", got)
		}
		reason := "takes 1.3 MiB, an object may take 1 MiB"
		s := b.readStatus()
		if s.LeftOut == nil || s.LeftOut.Total != 4 || len(s.LeftOut.Objects) != 4 ||
			s.LeftOut.Objects[0] != "Pod a-evil/huge-0: "+reason {
			t.Errorf("status %+v", s.LeftOut)
		}
		if up := s.ClusterWide.ScaleUp; up.PendingPods != 6 || up.Placed != 2 || up.Unplaced != 0 || up.Deferred != 0 {
			t.Errorf("status %+v", up)
		}
		if events := b.countEvents("LeftOut"); events != 4 {
			t.Errorf("%d events in three loops, want one for each pod", events)
		}
		if got := gaugeOf(t, b, "loadline_autoscaler_left_out_objects", "Pod"); got != 4 {
			t.Errorf("the metric says %v", got)
		}
		if page := b.leader.teller.Snapshot.Load().Page; !slices.ContainsFunc(page.Warnings,
			func(text string) bool { return strings.HasPrefix(text, "4 objects were left out: Pod a-evil/huge-0: ") }) {
			t.Errorf("the page warns of %q", page.Warnings)
		}
		b.end()
	})
}

// A namespace whose pods fill questions of their own keeps nobody of others waiting, and its own come in turns.
func TestNamespacesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := growing(t, map[string]*skyGroup{"g": {max: 20, cpu: "4", price: 0.1}}, nil)
		b.huge("a-evil", 6, 800_000)
		b.addPending("web", 2, "3")
		if err := b.once(b.ctx); err != nil {
			t.Fatal(err)
		}
		if got := b.sky.requests(); !slices.Equal(got, []string{"g+6"}) {
			t.Errorf("asked for %v, want nodes for the pods of others and four large ones", got)
		}
		if up := b.readStatus().ClusterWide.ScaleUp; up.PendingPods != 8 || up.Placed != 6 || up.Deferred != 2 {
			t.Errorf("status %+v", up)
		}
		b.end()
	})
}

// countEvents counts the events of a reason since the last call.
func (b *bench) countEvents(reason string) (count int) {
	for {
		select {
		case text := <-b.recorder.Events:
			if strings.Fields(text)[1] == reason {
				count++
			}
		default:
			return count
		}
	}
}

func gaugeOf(t *testing.T, b *bench, name, label string) float64 {
	t.Helper()
	families, err := b.teller.Metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == name && (label == "" || metric.GetLabel()[0].GetValue() == label) {
				return metric.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("no metric %s of %s", name, label)
	return 0
}

// Whatever errors, the cloud and users write, status, events and page stay small, and are UTF-8.
func TestTextsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("no\xff", 1<<20)
		b := growing(t, map[string]*skyGroup{"g": {max: 10, cpu: "4", price: 0.1, fails: errors.New(long)},
			"h": {max: 10, cpu: "4", price: 0.1, problem: errors.New(long)}}, nil)
		b.addPending("web", 2, "3")
		b.run(20 * time.Second)
		object, err := b.client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "loadline-autoscaler-status",
			metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if status := object.Data["status"]; len(status) > 16<<10 || !utf8.ValidString(status) ||
			!strings.Contains(status, "node group h is left as it is: no\uFFFDno") {
			t.Errorf("the status has %d bytes: %.1000s", len(status), status)
		}
		events := b.eventsSince()
		if text := events["FailedToScaleUpGroup"]; len(text) > 1000 || !utf8.ValidString(text) ||
			!strings.HasPrefix(text, "Scale-up failed for group g: no\uFFFD") {
			t.Errorf("%d bytes: %.100s", len(text), text)
		}
		for _, warning := range b.leader.teller.Snapshot.Load().Page.Warnings {
			if len(warning) > 2048 || !utf8.ValidString(warning) {
				t.Errorf("the page has a warning of %d bytes", len(warning))
			}
		}
		b.end()
	})
}

// nominate has a pod wait for room on the node fixed, by preempting the one that runs there.
func nominate(p *v1.Pod) { p.Status.NominatedNodeName, p.Spec.Priority = "fixed", new(int32(10)) }

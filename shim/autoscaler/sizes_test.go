package autoscaler

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/act/drain"
	"loadline.dev/shim/autoscaler/config"
	"loadline.dev/shim/nodegroup"
)

// sizedBench has group n of two nodes of 4 cpu, n1 and n2, which is sized under the name batch: it grows above 70
// percent, one node is tainted below 60 and two below 40, and tainted nodes go after one minute, or ten.
func sizedBench(t *testing.T, change func(*config.Configuration), edit func(*nodegroup.NodeGroup)) *bench {
	b := growing(t, map[string]*skyGroup{"n": {min: 1, max: 10, target: 2, cpu: "4", price: 0.1}},
		func(c *config.Configuration) {
			c.ScaleDown.ScaleDownDelayAfterAdd.Duration = 0
			if change != nil {
				change(c)
			}
		})
	policy := sizedPolicy()
	if edit != nil {
		edit(&policy)
	}
	b.leader.planner.Sized = []nodegroup.NodeGroup{policy}
	return b
}

func sizedPolicy() nodegroup.NodeGroup {
	minutes := func(n int) metav1.Duration { return metav1.Duration{Duration: time.Duration(n) * time.Minute} }
	return nodegroup.NodeGroup{Metadata: nodegroup.Metadata{Name: "batch"},
		Spec: nodegroup.Spec{NodeSelector: map[string]string{"group": "n"}, Max: math.MaxInt32,
			Size: &nodegroup.Size{CloudGroup: "n", ScaleUpThresholdPercent: 70, TaintUpperCapacityThresholdPercent: 60,
				TaintLowerCapacityThresholdPercent: 40,
				SlowNodeRemovalRate:                1, FastNodeRemovalRate: 2, SoftDeleteGracePeriod: minutes(1),
				HardDeleteGracePeriod: minutes(10), ScaleUpCoolDownPeriod: minutes(2)}}}
}

// addMembers adds running pods that ask for group n.
func (b *bench) addMembers(node, cpu string, names ...string) {
	b.t.Helper()
	for _, name := range names {
		b.addPod(name, node, cpu, nil)
		pod, err := b.client.CoreV1().Pods("default").Get(b.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			b.t.Fatal(err)
		}
		pod = pod.DeepCopy()
		pod.Spec.NodeSelector = map[string]string{"group": "n"}
		if _, err := b.client.CoreV1().Pods("default").Update(b.t.Context(), pod, metav1.UpdateOptions{}); err != nil {
			b.t.Fatal(err)
		}
	}
	synctest.Wait()
}

// sizeTaintOf returns the taint of a node; false: it has none.
func (b *bench) sizeTaintOf(name string) (v1.Taint, bool) {
	taints := b.node(name).Spec.Taints
	i := slices.IndexFunc(taints, func(taint v1.Taint) bool { return taint.Key == drain.SizeTaint })
	if i < 0 {
		return v1.Taint{}, false
	}
	return taints[i], true
}

func (b *bench) addTaints(name string, taints ...v1.Taint) {
	b.t.Helper()
	node := b.node(name).DeepCopy()
	node.Spec.Taints = append(node.Spec.Taints, taints...)
	if _, err := b.client.CoreV1().Nodes().Update(b.t.Context(), node, metav1.UpdateOptions{}); err != nil {
		b.t.Fatal(err)
	}
	synctest.Wait()
}

func (b *bench) sizeStatusOf(group string) *loadlinev1.NodeGroupSizeStatus {
	b.t.Helper()
	for _, g := range b.readStatus().NodeGroups {
		if g.Name == group && g.Size != nil {
			return g.Size
		}
	}
	b.t.Fatalf("group %s has no size", group)
	return nil
}

// expectSizeMetrics compares the metrics of group n.
func (b *bench) expectSizeMetrics(cpuPercent, delta, tainted, locked float64) {
	b.t.Helper()
	for name, want := range map[string]float64{"utilization_percent": cpuPercent, "delta_nodes": delta,
		"tainted_nodes": tainted, "locked": locked} {
		if got := gaugeOf(b.t, b, "loadline_autoscaler_"+"sized_group_"+name, "n"); got != want {
			b.t.Errorf("metric %s says %v, want %v", name, got, want)
		}
	}
}

// Six of eight cpu are requested, 75 percent: ceil(6 / (0.7 * 4)) - 2 = 1 node, though no pod waits. One cpu of twelve
// is 8.3 percent: two nodes are tainted, the oldest. The empty one is removed after the soft period, the other one
// after the hard one, by evicting its pod.
func TestSizedGroupGrowsAndShrinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := sizedBench(t, nil, nil)
		b.addMembers("n1", "1", "a", "b", "c")
		b.addMembers("n2", "1", "d", "e", "f")
		b.run(10 * time.Second)
		if got := b.sky.requests(); !slices.Equal(got, []string{"n+1"}) {
			t.Fatalf("asked for %v, want n+1", got)
		}
		if s := b.sizeStatusOf("n"); s.Cpu != "75.0 %" || s.Memory != "0.0 %" || s.Action != "scale-up" ||
			s.Delta != 1 || s.Reason != "above the scale-up threshold" {
			t.Errorf("size %+v", s)
		}
		b.expectSizeMetrics(75, 1, 0, 0)
		if up := b.readStatus().ClusterWide.ScaleUp; len(up.Growth) != 1 ||
			!strings.HasPrefix(up.Growth[0], "n: 0 for pods, 0 for slack, 1 for utilization") {
			t.Errorf("growth %+v", up)
		}
		b.run(10 * time.Second) // it waits for the node
		b.expectSizeMetrics(75, 0, 0, 1)
		b.run(3 * time.Minute) // the node is there, and the cool-down over
		for _, name := range []string{"b", "c", "d", "e", "f"} {
			b.removePod(name)
		}
		b.run(20 * time.Minute)
		b.end()
		if got := b.sky.requests(); !slices.Equal(got, []string{"n+1", "delete sky://n2", "delete sky://n1"}) {
			t.Errorf("asked for %v", got)
		}
		if _, tainted := b.sizeTaintOf("n3"); tainted {
			t.Error("the newest node is tainted")
		}
		if _, err := b.client.CoreV1().Pods("default").Get(t.Context(), "a-again", metav1.GetOptions{}); err != nil {
			t.Errorf("the pod of n1: %v", err)
		}
	})
}

// The requests, and the outcome for two nodes of which n1 is as old as n2 and first by name.
func TestSizedGroup(t *testing.T) {
	escalator := func(value string) v1.Taint {
		return v1.Taint{Key: drain.SizeTaint, Value: value, Effect: v1.TaintEffectNoSchedule}
	}
	for name, c := range map[string]struct {
		change  func(*config.Configuration)
		edit    func(*nodegroup.NodeGroup)
		cpu     string // of the one pod, on n2
		tainted bool   // n1 is, at first
		effect  v1.TaintEffect
		asked   []string
		status  string
	}{
		"TaintsTheOldest": {cpu: "1", effect: "NoSchedule",
			status: "cpu 12.5 %, memory 0.0 %, remove-fast, -1: below the lower taint threshold"},
		"WithItsEffect": {cpu: "1", edit: func(g *nodegroup.NodeGroup) {
			g.Spec.Size.TaintEffect = v1.TaintEffectPreferNoSchedule
		}, effect: "PreferNoSchedule",
			status: "remove-fast, -1"},
		"DryMode": {cpu: "1", edit: func(g *nodegroup.NodeGroup) { g.Spec.Size.DryMode = true },
			status: "dry mode, nothing is done"},
		"DryModeDoesNotGrow": {cpu: "4", tainted: true,
			edit: func(g *nodegroup.NodeGroup) { g.Spec.Size.DryMode = true }, effect: "NoSchedule",
			status: "scale-up, +1"},
		"Observed": {cpu: "1", change: func(c *config.Configuration) { c.Mode = config.Observe },
			status: "remove-fast, -1"},
		"ShrinksElsewhere": {cpu: "1", change: func(c *config.Configuration) {
			c.Decisions = []string{config.ScaleUpDecision}
		}, status: "remove-fast, -1"},
		"GrowsElsewhere": {cpu: "8",
			change: func(c *config.Configuration) { c.Decisions = []string{config.ScaleDownDecision} },
			status: "nothing, +0: at the maximum; asks for nothing: growth is decided elsewhere"},
		"ItsOwnMinimum": {cpu: "1", edit: func(g *nodegroup.NodeGroup) { g.Spec.Min, g.Spec.Max = 2, 5 },
			status: "nothing, +0: at the minimum"},
		"ItsOwnMaximum": {cpu: "20", edit: func(g *nodegroup.NodeGroup) { g.Spec.Min, g.Spec.Max = 1, 3 },
			asked: []string{"n+1"}, status: "scale-up, +1"},
		"ComesBack": {cpu: "4", tainted: true,
			status: "cpu 100.0 %, memory 0.0 %, scale-up, +1: above the scale-up threshold"},
		"KeepsItsTaint": {cpu: "2", tainted: true, effect: "NoSchedule",
			status: "nothing, +0: at the minimum; 1 tainted"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := sizedBench(t, c.change, c.edit)
				if c.tainted {
					b.addTaints("n1", escalator(strconv.FormatInt(time.Now().Unix(), 10)))
				}
				b.addMembers("n2", c.cpu, "p")
				if err := b.once(b.ctx); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if got := b.sky.requests(); !slices.Equal(got, c.asked) {
					t.Errorf("asked for %v, want %v", got, c.asked)
				}
				taint, tainted := b.sizeTaintOf("n1")
				if tainted != (c.effect != "") || taint.Effect != c.effect ||
					tainted && taint.Value != strconv.FormatInt(time.Now().Unix(), 10) {
					t.Errorf("taint of n1 %+v, want effect %q", taint, c.effect)
				}
				if _, tainted := b.sizeTaintOf("n2"); tainted {
					t.Error("n2 is tainted")
				}
				if lines := fmt.Sprint(b.teller.Snapshot.Load().Page.Lines); !strings.Contains(lines, c.status) {
					t.Errorf("the page says %q, want %q in it", lines, c.status)
				}
				b.end()
			})
		})
	}
}

func TestGroupsThatCannotBeSized(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*bench)
		want string
	}{
		"NotOfTheCloud": {func(b *bench) { b.leader.planner.Sized[0].Spec.Size.CloudGroup = "other" },
			`node group "batch" is not sized: the cloud provider has no group "other"`},
		"AllOrNone": {func(b *bench) { b.sky.groups["n"].atomic = true },
			`node group "batch" is not sized: group "n" has all of its nodes or none`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := sizedBench(t, nil, nil)
				c.edit(b)
				b.addMembers("n2", "1", "p")
				if err := b.once(b.ctx); err != nil {
					t.Fatal(err)
				}
				s := b.readStatus()
				if len(s.Warnings) != 1 || !strings.HasPrefix(s.Warnings[0], c.want) || s.NodeGroups[0].Size != nil {
					t.Errorf("warnings %q, want %q; group %+v", s.Warnings, c.want, s.NodeGroups[0])
				}
				if page := b.leader.teller.Snapshot.Load().Page; !slices.Contains(page.Warnings, s.Warnings[0]) {
					t.Errorf("page warns of %q", page.Warnings)
				}
				b.end()
			})
		})
	}
}

// The taint of sizing stays on nodes whose group is not sized any more, and is warned of. Node n1 has it.
func TestStraySizeTaints(t *testing.T) {
	taint := func(key string) v1.Taint { return v1.Taint{Key: key, Value: "1", Effect: v1.TaintEffectNoSchedule} }
	for name, c := range map[string]struct {
		edit func(*bench)
		want string // the warning; empty: none
	}{
		"OfASizedGroup": {edit: func(*bench) {}},
		"TakenOut": {func(b *bench) { b.leader.planner.Sized = nil },
			"nodes of no sized group that carry the taint atlassian.com/escalator: 1, one is n1; nothing here takes " +
				"it off, and no new pod comes to them. Unless Escalator runs too: kubectl taint node n1 " +
				"atlassian.com/escalator-"},
		"TakenOutWithTwo": {func(b *bench) { b.leader.planner.Sized = nil; b.addTaints("n2", taint(drain.SizeTaint)) },
			"nodes of no sized group that carry the taint atlassian.com/escalator: 2, one is n1;"},
		"CannotBeSized": {func(b *bench) { b.leader.planner.Sized[0].Spec.Size.CloudGroup = "other" },
			"nodes of no sized group that carry the taint atlassian.com/escalator: 1, one is n1;"},
		"HasAProblem": {edit: func(b *bench) { b.sky.groups["n"].problem = errors.New("told to fail") }},
		"Goes":        {edit: func(b *bench) { b.leader.planner.Sized = nil; b.addTaints("n1", taint(drain.HardTaint)) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := sizedBench(t, nil, nil)
				b.addTaints("n1", taint(drain.SizeTaint))
				c.edit(b)
				b.addMembers("n2", "2", "p")
				if err := b.once(b.ctx); err != nil {
					t.Fatal(err)
				}
				warnings := slices.DeleteFunc(b.readStatus().Warnings,
					func(text string) bool { return !strings.Contains(text, drain.SizeTaint) })
				if len(warnings) != min(len(c.want), 1) ||
					len(warnings) == 1 && !strings.HasPrefix(warnings[0], c.want) {
					t.Errorf("warnings %q, want %q", warnings, c.want)
				}
				b.end()
			})
		})
	}
}

// Pods for which only a sized group could grow get an event about it.
func TestPodsAreToldOfSizedGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := sizedBench(t, nil, nil)
		b.addPending("large", 1, "5")
		if err := b.once(b.ctx); err != nil {
			t.Fatal(err)
		}
		if up := b.readStatus().ClusterWide.ScaleUp; up.Unplaced != 1 || up.Why != "1 sized by utilization" {
			t.Errorf("status %+v", up)
		}
		if line := fmt.Sprint(b.leader.teller.Snapshot.Load().Page.Lines); !strings.Contains(line, "Sized: n: cpu 0.0 %") {
			t.Errorf("page says %s", line)
		}
		b.end()
	})
}

// A node that was created again under its name, or that is being removed, keeps its taints.
func TestSizeTaintsTellNodesApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := sizedBench(t, nil, nil)
		old := b.node("n1").DeepCopy()
		old.UID = types.UID("another")
		if err := drain.NewSizeTaints(b.client, 1).Put(b.ctx, old, "", time.Now()); err != nil {
			t.Fatal(err)
		}
		if _, tainted := b.sizeTaintOf("n1"); tainted {
			t.Error("a node of another UID was tainted")
		}
		goes := b.node("n2").DeepCopy()
		goes.Spec.Taints = []v1.Taint{{Key: drain.HardTaint, Value: "1", Effect: v1.TaintEffectNoSchedule}}
		if _, err := b.client.CoreV1().Nodes().Update(t.Context(), goes, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := drain.NewSizeTaints(b.client, 1).Put(b.ctx, goes, "", time.Now()); err != nil {
			t.Fatal(err)
		}
		if _, tainted := b.sizeTaintOf("n2"); tainted {
			t.Error("a node that goes was tainted")
		}
		b.end()
	})
}

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/test/e2e/demo"
	"loadline.dev/test/e2e/harness"
	"loadline.dev/test/e2e/simcloud"
)

// A pair is a case of two families of rules that both act, on nodes of its own: its pods ask for its groups, and room
// is kept free on its nodes apart from that of others.
type pair struct {
	name   string
	groups []pairGroup
	loads  []pairLoad
	then   func(*scaled) // happens once the groups have kept their sizes for a while; nil: nothing does
	slack  []string      // the nodes of the placeholders that run in the end; none: no room is kept free there
}

// A pairGroup is a node group with its size at the start, before `then` happens, and in the end. It may never be larger
// than these.
type pairGroup struct {
	simcloud.Group
	start, held, end int
}

const (
	pairLine      = 1.5 // of cpu
	startupTaint  = "node.cilium.io/agent-not-ready"
	unneededFor   = 3 * time.Second
	pairsSizeFile = `- name: %[1]s
  label_key: pair
  label_value: %[2]s
  cloud_provider_group_name: %[1]s
  min_nodes: 0
  max_nodes: 0
  dry_mode: false
  scale_up_threshold_percent: 70
  taint_upper_capacity_threshold_percent: 30
  taint_lower_capacity_threshold_percent: 20
  slow_node_removal_rate: 1
  fast_node_removal_rate: 2
  soft_delete_grace_period: 1s
  hard_delete_grace_period: 2s
  scale_up_cool_down_period: 1s
  scale_on_starve: true
`
)

// inZone makes the nodes of a group have a zone.
func inZone(zone string, group simcloud.Group) simcloud.Group {
	group.Template.Labels[v1.LabelTopologyZone] = zone
	return group
}

// starting makes the nodes of a group come with a taint that an agent takes off once it runs.
func starting(group simcloud.Group) simcloud.Group {
	group.Template.Spec.Taints = []v1.Taint{{Key: startupTaint, Value: "true", Effect: v1.TaintEffectNoExecute}}
	return group
}

// startPairs brings up the nodes and pods of all pairs, our scheduler and our autoscaler, both with the same load line.
// The nodes of sized groups follow from utilization alone.
func startPairs(t *testing.T, pairs []pair, sized ...string) *scaled {
	t.Helper()
	ctx := deadline(t)
	s := &scaled{t: t, ctx: ctx, rest: 2 * time.Second, cluster: startCluster(t, ctx,
		harness.Options{Log: t.Logf, ControllerManager: true, Kubelet: true, Audit: true})}
	var sizes []string
	for _, p := range pairs {
		for _, group := range p.groups {
			if slices.Contains(sized, group.ID) {
				sizes = append(sizes, fmt.Sprintf(pairsSizeFile, group.ID, p.name))
			}
		}
	}
	file := filepath.Join(t.TempDir(), "node-groups.yaml")
	if err := os.WriteFile(file, []byte("node_groups:\n"+strings.Join(sizes, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	s.args = []string{"--decisions=scale-up,slack,scale-down,replace", "--scan-interval=" + scanInterval.String(),
		fmt.Sprintf("--max-limits-over-allocatable=cpu=%v", pairLine), "--slack-class-labels=pair",
		"--slack-class=slack=none;off", "--slack-removal-delay=2s", "--sized-node-groups=" + file,
		"--scale-down-unneeded-time=" + unneededFor.String(), "--scale-down-delay-after-add=0s",
		"--max-scale-down-parallelism=50", "--max-drain-parallelism=50", "--recent-eviction-time=5s",
		"--replacement-rest=5s", "--pod-disruption-cost=0.0005", "--payback-hours=1"}
	s.rights(true)
	s.createPairs(pairs)
	s.engine = startEngine(t, ctx, s.cluster)
	s.startLined()
	for _, p := range pairs {
		for _, load := range p.loads {
			for _, node := range load.bound {
				s.hasStarted(node)
			}
			s.load(p, load)
		}
	}
	s.waitPlaced(pairs)
	s.autoscaler = s.start("autoscaler", "act")
	return s
}

// createPairs starts the cloud with the groups of all pairs, and their nodes.
func (s *scaled) createPairs(pairs []pair) {
	s.t.Helper()
	var groups []simcloud.Group
	nodes := 0
	for _, p := range pairs {
		for _, g := range p.groups {
			g.Template.Labels["pair"] = p.name
			if len(p.slack) == 0 {
				g.Template.Labels["slack"] = "none"
			}
			groups = append(groups, g.Group)
			nodes += g.start
		}
	}
	s.startCloud(groups...)
	for _, p := range pairs {
		for _, g := range p.groups {
			if g.start > 0 {
				if err := s.cloud.Grow(g.ID, g.start); err != nil {
					s.t.Fatal(err)
				}
			}
		}
	}
	s.wait("the nodes", func() bool { return len(s.nodes()) == nodes })
}

// startLined starts our scheduler in the place of the stock one, with a load line.
func (s *scaled) startLined() {
	s.t.Helper()
	if _, err := s.cluster.Client.SchedulingV1().PriorityClasses().Create(s.ctx, &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000}, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	options, err := demo.OurOptions(harness.ReplacementConfig, s.engine.Address)
	if err != nil {
		s.t.Fatal(err)
	}
	options.Site.EngineTimeout = demo.PatientTimeout
	options.Site.MaxLimitsOverAllocatable = map[string]float64{"cpu": pairLine}
	if _, err := s.cluster.StartScheduler(s.ctx, options); err != nil {
		s.t.Fatal(err)
	}
}

// waitPlaced waits until the bound pods and those of DaemonSets run, and the scheduler has tried the others.
func (s *scaled) waitPlaced(pairs []pair) {
	s.t.Helper()
	for _, p := range pairs {
		nodes := 0
		for _, g := range p.groups {
			nodes += g.start
		}
		for _, l := range p.loads {
			want := len(l.bound)
			if l.daemon {
				want = nodes
			}
			s.until("the pods of "+l.name, func() (wrong []string) {
				if on := s.runningOn("app=" + l.name); len(on) < want && !l.lingers {
					wrong = append(wrong, fmt.Sprintf("they run on %v, want %d", on, want))
				}
				for _, pod := range s.podsOf(l.name) {
					if pod.Spec.NodeName == "" && len(pod.Status.Conditions) == 0 {
						wrong = append(wrong, "pod "+pod.Name+" has not been tried")
					}
				}
				return wrong
			})
		}
	}
}

// atSizes says which groups do not have the sizes that they are to have; `size` chooses from these.
func (s *scaled) atSizes(p pair, size func(pairGroup) int) (wrong []string) {
	for _, g := range p.groups {
		nodes := 0
		for _, node := range s.nodes() {
			if node.Labels["pool"] == g.ID {
				nodes++
			}
		}
		if target := s.cloud.Target(g.ID); target != size(g) || nodes != target {
			wrong = append(wrong, fmt.Sprintf("group %s has %d nodes of %d, want %d", g.ID, nodes, target, size(g)))
		}
	}
	return wrong
}

// held says what is not as it is to be before `then` happens.
func (s *scaled) held(p pair) []string {
	wrong := s.atSizes(p, func(g pairGroup) int { return g.held })
	for _, l := range p.loads {
		if on := s.runningOn("app=" + l.name); len(on) < len(l.bound) && !l.lingers {
			wrong = append(wrong, fmt.Sprintf("pods of %s run on %v, want %d", l.name, on, len(l.bound)))
		}
	}
	return wrong
}

// until waits until nothing is wrong any more.
func (s *scaled) until(what string, wrong func() []string) {
	s.t.Helper()
	for end := time.Now().Add(15 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		left := wrong()
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			s.t.Errorf("waited in vain for %s: %s", what, strings.Join(left, "; "))
			return
		}
	}
}

// ended says what is not yet as it is to be in the end.
func (s *scaled) ended(p pair) []string {
	wrong := s.atSizes(p, func(g pairGroup) int { return g.end })
	for _, l := range p.loads {
		on := s.runningOn("app=" + l.name)
		if wanted := len(l.bound) + l.waiting + l.late; !l.daemon && !l.lingers && len(on) != wanted {
			wrong = append(wrong, fmt.Sprintf("pods of %s run on %v, want %d", l.name, on, wanted))
		}
		if l.endsOn != "" && !slices.Contains(on, l.endsOn) {
			wrong = append(wrong, fmt.Sprintf("pods of %s run on %v, want one on %s", l.name, on, l.endsOn))
		}
	}
	placeholders := slices.DeleteFunc(s.runningOn("loadline.dev/placeholder"), func(node string) bool {
		return !slices.ContainsFunc(p.groups, func(g pairGroup) bool { return strings.HasPrefix(node, g.ID+"-") })
	})
	if !slices.Equal(placeholders, p.slack) {
		wrong = append(wrong, fmt.Sprintf("placeholders run on %v, want %v", placeholders, p.slack))
	}
	return wrong
}

// runningOn returns the nodes of running pods that have labels.
func (s *scaled) runningOn(selector string) (nodes []string) {
	s.t.Helper()
	pods, err := s.cluster.Client.CoreV1().Pods("").List(s.ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, pod := range pods.Items {
		if pod.Status.Phase == v1.PodRunning && pod.DeletionTimestamp == nil {
			nodes = append(nodes, pod.Spec.NodeName)
		}
	}
	return nodes
}

// hasStarted takes the startup taint off a node, as an agent does.
func (s *scaled) hasStarted(node string) {
	s.t.Helper()
	s.wait("the taint of "+node+" to be gone", func() bool {
		object, err := s.cluster.Client.CoreV1().Nodes().Get(s.ctx, node, metav1.GetOptions{})
		if err != nil {
			return false
		}
		isStartup := func(taint v1.Taint) bool { return taint.Key == startupTaint }
		if !slices.ContainsFunc(object.Spec.Taints, isStartup) {
			return true
		}
		object.Spec.Taints = slices.DeleteFunc(object.Spec.Taints, isStartup)
		_, err = s.cluster.Client.CoreV1().Nodes().Update(s.ctx, object, metav1.UpdateOptions{})
		return err == nil // another one may have written meanwhile
	})
}

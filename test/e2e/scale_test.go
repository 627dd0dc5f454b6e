package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/test/e2e/harness"
)

// scaleNodes is how many nodes TestScale has; `make test-scale` says 2,000, with 40 times as many pods.
func scaleNodes(t *testing.T) int {
	t.Helper()
	text := os.Getenv("SCALE_NODES")
	if text == "" {
		return 40
	}
	nodes, err := strconv.Atoi(text)
	if err != nil || nodes < scaleGroups || nodes%scaleGroups != 0 {
		t.Fatalf("SCALE_NODES: %q is not a multiple of %d", text, scaleGroups)
	}
	return nodes
}

// A scaleRun is a cluster with its autoscaler and a standby, and what is to come of it.
type scaleRun struct {
	*scaled
	nodes   int
	standby *harness.Autoscaler
	load    *scaleLoad
}

// The real autoscaler, with default options and ordinary names, on an API server with its default flow control: the
// nodes that can go do, no pod ends with its node, no budget breaks, the lease stays where it is; then a rollout
// begins. SCALE_ARGS are more arguments of the autoscaler; small clusters do not wait ten minutes for a node to be
// unneeded.
func TestScale(t *testing.T) {
	nodes := scaleNodes(t)
	args := strings.Fields(os.Getenv("SCALE_ARGS"))
	if nodes <= 100 {
		args = append(args, "--scale-down-unneeded-time=5s", "--scan-interval=2s")
		t.Parallel()
	}
	s := startScale(t, nodes, args)
	s.watchRemovals()
	s.rollOut(int32(nodes * 5 / 2))
	s.report()
}

// startScale fills a cluster and starts a leader, and a standby behind it.
func startScale(t *testing.T, nodes int, args []string) *scaleRun {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Minute)
	t.Cleanup(cancel)
	s := &scaleRun{nodes: nodes, scaled: &scaled{t: t, ctx: ctx, args: args,
		cluster: startCluster(t, ctx, harness.Options{Log: t.Logf, Kubelet: true, FlowControl: true})}}
	s.rights(true)
	for i := range scaleGroups {
		s.groups = append(s.groups, scaleGroup(i, nodes/scaleGroups*2))
	}
	s.startCloud(s.groups...)
	for _, g := range s.groups {
		if err := s.cloud.Grow(g.ID, nodes/scaleGroups); err != nil {
			t.Fatal(err)
		}
	}
	s.wait("the nodes", func() bool { return len(s.scaled.nodes()) == nodes })
	began := time.Now()
	s.fill()
	t.Logf("%d nodes have %d pods of %d sets, %d of them with a budget, after %v", nodes, len(s.load.pods),
		len(s.load.sets), len(s.load.budgets), time.Since(began))
	if err := s.cluster.StartControllerManager(ctx); err != nil {
		t.Fatal(err)
	}
	s.startScheduler()
	s.autoscaler, s.standby = s.startDefault("leader"), s.startDefault("standby")
	return s
}

// startDefault starts an autoscaler with nothing but what a user has to say, and the arguments of this run.
func (s *scaleRun) startDefault(name string) *harness.Autoscaler {
	s.t.Helper()
	file := s.cluster.Dir() + "/defaults.yaml"
	if err := os.WriteFile(file, []byte("apiVersion: loadline.dev/v1alpha1\nkind: AutoscalerConfiguration\n"),
		0o600); err != nil {
		s.t.Fatal(err)
	}
	autoscaler, err := s.cluster.StartAutoscaler(s.ctx, name, s.kubeconfig, file, append([]string{"--mode=act",
		"--decisions=scale-up,scale-down", "--cloud-address=unix://" + s.socket(), "--cloud-insecure"}, s.args...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	return autoscaler
}

// fill creates what runs on the cluster, before any controller sees it.
func (s *scaleRun) fill() {
	s.t.Helper()
	s.load = newScaleLoad(s.scaled.nodes(), 1)
	for i := range scaleNamespaces {
		namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("team-%02d", i)}}
		if _, err := s.cluster.Client.CoreV1().Namespaces().Create(s.ctx, namespace, metav1.CreateOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
	created := make([]*appsv1.ReplicaSet, len(s.load.sets))
	for i, set := range s.load.sets {
		var err error
		if created[i], err = s.cluster.Client.AppsV1().ReplicaSets(set.Namespace).Create(s.ctx, set,
			metav1.CreateOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
	s.load.own(created)
	for _, budget := range s.load.budgets {
		if _, err := s.cluster.Client.PolicyV1().PodDisruptionBudgets(budget.Namespace).Create(s.ctx, budget,
			metav1.CreateOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := s.cluster.CreatePods(s.ctx, s.load.pods); err != nil {
		s.t.Fatal(err)
	}
	s.budgets = watchBudgets(s.t, s.ctx, s.cluster, "pod-template-hash")
	for s.budgets.ready() < len(s.load.pods) { // for some minutes, at 80,000
		if time.Sleep(100 * time.Millisecond); s.ctx.Err() != nil {
			s.t.Fatalf("%d of %d pods are ready", s.budgets.ready(), len(s.load.pods))
		}
	}
	s.budgets.begin()
}

// left returns how many machines the cloud still has, by its targets.
func (s *scaleRun) left() (nodes int) {
	for _, g := range s.groups {
		nodes += s.cloud.Target(g.ID)
	}
	return nodes
}

// watchRemovals waits until most of the nodes that can go are gone, and reports the progress. One in twenty of them
// may stay: kube-scheduler prefers empty nodes, so that some of those that could go are full before it is their turn.
func (s *scaleRun) watchRemovals() {
	s.t.Helper()
	aim := s.nodes*4/10 + (s.nodes*6/10+19)/20
	var first time.Time
	for began, told := time.Now(), time.Now(); s.left() > aim; time.Sleep(200 * time.Millisecond) {
		if first.IsZero() && s.left() < s.nodes {
			first = time.Now()
			s.t.Logf("the first node went after %v", first.Sub(began))
		}
		if time.Since(told) > 30*time.Second {
			told = time.Now()
			s.t.Logf("after %v: %d nodes are left", time.Since(began).Round(time.Second), s.left())
		}
		if time.Since(began) > 90*time.Minute || s.ctx.Err() != nil {
			s.t.Fatalf("%d nodes are left, want %d; autoscaler: %s", s.left(), aim, s.status())
		}
	}
	s.t.Logf("%d nodes went within %v after the first one", s.nodes-aim, time.Since(first))
}

// rollOut creates pods that need more nodes, and waits until they run.
func (s *scaleRun) rollOut(pods int32) {
	s.t.Helper()
	set := s.load.sets[0].DeepCopy()
	set.ResourceVersion, set.Name, set.Labels = "", "rollout-6f9d8b7c5d", map[string]string{"pod-template-hash": "6f9d8b7c5d"}
	set.Spec.Replicas, set.Spec.Template.Labels = &pods, set.Labels
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: set.Labels}
	if _, err := s.cluster.Client.AppsV1().ReplicaSets(set.Namespace).Create(s.ctx, set, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	before, began := s.left(), time.Now()
	for s.budgets.readyOf(set.Labels["pod-template-hash"]) < int(pods) {
		if time.Sleep(200 * time.Millisecond); time.Since(began) > 20*time.Minute {
			s.t.Fatalf("%d of %d pods of the rollout run; autoscaler: %s", s.budgets.readyOf("6f9d8b7c5d"), pods, s.status())
		}
	}
	s.t.Logf("%d pods of a rollout ran after %v, on %d nodes more", pods, time.Since(began), s.left()-before)
}

// report says what it took, and holds what happened against what must never happen.
func (s *scaleRun) report() {
	s.t.Helper()
	for _, process := range []*harness.Autoscaler{s.autoscaler, s.standby} {
		s.t.Logf("%s: memory %s", process.Name, memoryOf(s.t, process.PID()))
		expectNothingForbidden(s.t, process.Process)
	}
	metrics := metricsOf(s.t, s.ctx, s.autoscaler)
	loops := metrics.Histogram("loadline_autoscaler_function_duration_seconds", harness.Labels{"function": "main"})
	s.t.Logf("%d loops, mean %.0f ms, half of them within %v s, 99 %% within %v s; errors %v; outcomes %v", loops.Count,
		1000*loops.Sum/float64(max(1, loops.Count)), loops.Within(0.5), loops.Within(0.99),
		metrics.By("loadline_autoscaler_errors_total", "type"),
		metrics.By("loadline_autoscaler_decision_total", "outcome"))
	errors, leads := metrics.Sum("loadline_autoscaler_errors_total", nil), metrics.Sum("loadline_autoscaler_leader", nil)
	if errors > 0 || leads != 1 {
		s.t.Errorf("%v loops failed; leader: %v", errors, leads)
	}
	lease, err := s.cluster.Client.CoordinationV1().Leases("kube-system").Get(s.ctx, "loadline-autoscaler",
		metav1.GetOptions{})
	if err != nil || lease.Spec.LeaseTransitions != nil && *lease.Spec.LeaseTransitions > 1 {
		s.t.Errorf("the lease has changed hands: %+v, error %v", lease.Spec, err)
	}
	for _, deleted := range s.cloud.Deleted() {
		if len(deleted.Pods) > 0 {
			s.t.Errorf("node %s went with %d pods", deleted.Node, len(deleted.Pods))
		}
	}
	for _, budget := range s.load.budgets {
		hash := budget.Spec.Selector.MatchLabels["pod-template-hash"]
		if fewest := s.budgets.lowest(hash); fewest < budget.Spec.MinAvailable.IntValue() {
			s.t.Errorf("%s/%s: %d pods were ready at some time, its budget wants %d", budget.Namespace, budget.Name, fewest,
				budget.Spec.MinAvailable.IntValue())
		}
	}
	if twice := s.cloud.DeletedTwice(); len(twice) > 0 {
		s.t.Errorf("the cloud was asked again to delete %v", twice)
	}
}

// memoryOf returns what the kernel says of a process' memory: now, and at most so far.
func memoryOf(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "VmRSS:") || strings.HasPrefix(line, "VmHWM:") {
			found = append(found, strings.Join(strings.Fields(line), " "))
		}
	}
	return strings.Join(slices.Sorted(slices.Values(found)), ", ")
}

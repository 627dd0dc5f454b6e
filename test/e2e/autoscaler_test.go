package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"loadline.dev/shim/autoscaler/act/drain"
	"loadline.dev/test/e2e/harness"
	"loadline.dev/test/e2e/simcloud"
)

const autoscalerUser = "system:serviceaccount:kube-system:loadline-autoscaler"

// scaled is a cluster with a simulated cloud: ten nodes of 4 cpu, of which two are enough for the pods of a Deployment
// under a budget, and one pod that must not move.
type scaled struct {
	t          *testing.T
	ctx        context.Context
	cluster    *harness.Cluster
	cloud      *simcloud.Cloud
	engine     *harness.Engine
	autoscaler *harness.Autoscaler
	kubeconfig string
	budgets    *budgetWatch
	groups     []simcloud.Group
	pinned     string // the node of the pod that must not move
	most       int    // nodes that were seen to go at once
	mostLeft   int    // nodes that may be left
	args       []string

	createDelay time.Duration // of the cloud
	rest        time.Duration // longer than the autoscaler waits for anything
}

const (
	poolSize = 10
	poolMin  = 2
	webPods  = 14
	// budgetMin of the Deployment's pods are to be there at any time.
	budgetMin = 11
)

// startScaled starts the autoscaler with the rights to act, or without, and with more arguments.
func startScaled(t *testing.T, mode string, act bool, args ...string) *scaled {
	t.Helper()
	s := newScaled(t, mode, act, args...)
	s.autoscaler = s.start("autoscaler", mode)
	return s
}

// newScaled has all but the autoscaler.
func newScaled(t *testing.T, mode string, act bool, args ...string) *scaled {
	t.Helper()
	ctx := deadline(t)
	s := &scaled{t: t, ctx: ctx, mostLeft: 4, cluster: startCluster(t, ctx,
		harness.Options{Log: t.Logf, ControllerManager: true, Kubelet: true, Audit: true})}
	s.args = []string{"--decisions=scale-down", "--scale-down-unneeded-time=4s", "--scale-down-delay-after-add=0s"}
	if mode == "observe" {
		s.args[0] = "--decisions=scale-up,slack,scale-down"
	}
	s.args = append(s.args, args...)
	s.rights(act)
	size := v1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"),
		"pods": resource.MustParse("110")}
	template := &v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"pool": "a"}},
		Status: v1.NodeStatus{Capacity: size, Allocatable: size}}
	s.startCloud(simcloud.Group{ID: "pool", Min: poolMin, Max: 20, Template: template})
	if err := s.cloud.Grow("pool", poolSize); err != nil {
		t.Fatal(err)
	}
	s.wait("the nodes", func() bool { return len(s.nodes()) == poolSize })
	s.startPods()
	s.budgets = watchBudgets(t, ctx, s.cluster, "app")
	s.budgets.begin()
	s.engine = startEngine(t, ctx, s.cluster)
	return s
}

// rights applies the manifests, without what they deploy: there are no machines that could run it.
func (s *scaled) rights(act bool) {
	s.t.Helper()
	apply(s.t, s.ctx, s.cluster, "autoscaler")
	if act {
		apply(s.t, s.ctx, s.cluster, moreRights)
		if s.changesNodes() {
			apply(s.t, s.ctx, s.cluster, nodeRights)
		}
		apply(s.t, s.ctx, s.cluster, slackRights[0])
		if strings.Contains(strings.Join(s.args, " "), "downscale-order") {
			apply(s.t, s.ctx, s.cluster, orderRights)
		}
	}
	if err := s.cluster.Client.AppsV1().Deployments("kube-system").Delete(s.ctx, "loadline-autoscaler",
		metav1.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
	kubeconfig, err := s.cluster.ServiceAccountKubeconfig(s.ctx, "kube-system", "loadline-autoscaler")
	if err != nil {
		s.t.Fatal(err)
	}
	s.kubeconfig = kubeconfig
}

// changesNodes says whether the arguments have an autoscaler decide more than slack.
func (s *scaled) changesNodes() bool {
	for _, arg := range slices.Backward(s.args) {
		if decisions, are := strings.CutPrefix(arg, "--decisions="); are {
			return strings.Contains(decisions, "scale-")
		}
	}
	return true
}

// start starts an autoscaler with the configuration of the manifests, but for addresses and times.
func (s *scaled) start(name, mode string) *harness.Autoscaler {
	s.t.Helper()
	autoscaler, err := s.cluster.StartAutoscaler(s.ctx, name, s.kubeconfig, s.config(), s.arguments(name, mode)...)
	if err != nil {
		s.t.Fatal(err)
	}
	return autoscaler
}

// arguments are those of an autoscaler beside its configuration.
func (s *scaled) arguments(name, mode string) []string {
	return append([]string{"--mode=" + mode, "--engine=" + s.engine.Address, "--view=" + name,
		"--cloud-address=unix://" + s.socket(), "--cloud-cacert=", "--cloud-cert=", "--cloud-key=",
		"--scan-interval=1s",
		"--node-delete-delay-after-taint=1s", "--eviction-retry-interval=1s", "--poll-interval=500ms",
		"--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms"},
		s.args...)
}

func (s *scaled) socket() string { return filepath.Join(s.cluster.Dir(), "cloud.sock") }

// config returns the configuration of the manifest as a file.
func (s *scaled) config() string {
	s.t.Helper()
	content, err := harness.ManifestConfig("autoscaler/20-config.yaml")
	if err != nil {
		s.t.Fatal(err)
	}
	file := filepath.Join(s.cluster.Dir(), "autoscaler.yaml")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		s.t.Fatal(err)
	}
	return file
}

func (s *scaled) startCloud(groups ...simcloud.Group) {
	s.t.Helper()
	cloud, err := simcloud.Start(s.cluster.Client, s.socket(),
		simcloud.Options{CreateDelay: s.createDelay, DeleteDelay: time.Second, Groups: groups})
	if err != nil {
		s.t.Fatal(err)
	}
	s.cloud = cloud
	s.t.Cleanup(func() {
		if err := cloud.Close(); err != nil {
			s.t.Error(err)
		}
	})
}

func (s *scaled) startScheduler() {
	s.t.Helper()
	config := []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
	if _, err := s.cluster.StartScheduler(s.ctx, harness.SchedulerOptions{Name: "stock", Config: config,
		Site: harness.Site{Kubeconfig: s.cluster.Kubeconfig, QPS: 1000, NoLeaderElection: true}}); err != nil {
		s.t.Fatal(err)
	}
}

// startPods spreads the pods over the nodes, as a load that has been larger leaves them.
func (s *scaled) startPods() {
	s.t.Helper()
	s.startScheduler()
	labels := map[string]string{"app": "web"}
	container := v1.Container{Name: "c", Image: "web",
		Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse("500m")}}}
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(webPods)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: v1.PodSpec{Containers: []v1.Container{container}}}}}
	if _, err := s.cluster.Client.AppsV1().Deployments("default").Create(s.ctx, web,
		metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(budgetMin)), Selector: &metav1.LabelSelector{MatchLabels: labels}}}
	if _, err := s.cluster.Client.PolicyV1().PodDisruptionBudgets("default").Create(s.ctx, budget,
		metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	pinned := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pinned"},
		Spec: v1.PodSpec{Containers: []v1.Container{container}}}
	if err := s.cluster.CreatePodsInOrder(s.ctx, []*v1.Pod{pinned}); err != nil {
		s.t.Fatal(err)
	}
	s.wait("all pods to run", func() bool {
		pods := s.pods()
		for _, pod := range pods {
			if pod.Name == "pinned" {
				s.pinned = pod.Spec.NodeName
			}
		}
		return len(pods) == webPods+1 && s.pinned != "" &&
			!slices.ContainsFunc(pods, func(p v1.Pod) bool { return p.Status.Phase != v1.PodRunning })
	})
	s.wait("the budget's status", func() bool {
		got, err := s.cluster.Client.PolicyV1().PodDisruptionBudgets("default").Get(s.ctx, "web", metav1.GetOptions{})
		return err == nil && got.Status.DisruptionsAllowed == webPods-budgetMin
	})
}

func (s *scaled) wait(what string, holds func() bool) {
	s.t.Helper()
	s.waitWithin(4*time.Minute, what, holds)
}

func (s *scaled) waitWithin(atMost time.Duration, what string, holds func() bool) {
	s.t.Helper()
	for until := time.Now().Add(atMost); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) || s.ctx.Err() != nil {
			s.t.Fatalf("waited in vain for %s; nodes %v, autoscaler: %s", what, s.describe(), s.status())
		}
	}
}

func (s *scaled) nodes() []v1.Node {
	s.t.Helper()
	list, err := s.cluster.Client.CoreV1().Nodes().List(s.ctx, metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return list.Items
}

func (s *scaled) pods() []v1.Pod {
	s.t.Helper()
	list, err := s.cluster.Client.CoreV1().Pods("default").List(s.ctx, metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return list.Items
}

func (s *scaled) describe() (lines []string) {
	for _, node := range s.nodes() {
		lines = append(lines,
			fmt.Sprintf("%s %v %s", node.Name, node.Spec.Taints, node.Annotations[drain.MarkAnnotation]))
	}
	return lines
}

func (s *scaled) status() string {
	object, err := s.cluster.Client.CoreV1().ConfigMaps("kube-system").Get(s.ctx, "loadline-autoscaler-status",
		metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	return object.Data["status"]
}

// busy returns the nodes whose removal is under way.
func (s *scaled) busy() (names []string) {
	for _, node := range s.nodes() {
		if _, ours := drain.MarkOf(&node); ours {
			names = append(names, node.Name)
		}
	}
	s.most = max(s.most, len(names))
	return names
}

// latestTerm returns the highest term of a leader that nodes are marked with.
func (s *scaled) latestTerm() (term int64) {
	for _, node := range s.nodes() {
		mark, _ := drain.MarkOf(&node)
		term = max(term, mark.Term)
	}
	return term
}

// waitSettled waits until no node can go any more, and none is on its way.
func (s *scaled) waitSettled() {
	s.t.Helper()
	calm := 0
	// A process that is killed after it has noted that it asks the cloud, and before it has asked, leaves a node that the
	// next one holds to be on its way for 5 minutes.
	s.waitWithin(10*time.Minute, "the cluster to settle", func() bool {
		text := s.status()
		running := 0
		for _, pod := range s.pods() {
			if pod.Status.Phase == v1.PodRunning && pod.DeletionTimestamp == nil {
				running++
			}
		}
		busy := s.busy()
		if len(s.nodes()) < poolSize && running == webPods+1 && len(busy) == 0 &&
			strings.Contains(text, "candidates: 0") {
			calm++
		} else {
			calm = 0
		}
		if len(s.nodes()) > s.mostLeft { // a disruption controller that met many conflicts looks again after 82 s
			return calm > 2000
		}
		return calm > 60 // 3 s, three loops
	})
}

// check holds what came of it against what must never happen.
func (s *scaled) check() {
	s.t.Helper()
	nodes := s.nodes()
	s.t.Logf("%d of %d nodes are left: %v", len(nodes), poolSize, s.describe())
	// 15 pods of 500m are 7.5 cpu: two nodes of 4. A greedy plan may need one more.
	if len(nodes) < poolMin || len(nodes) > s.mostLeft {
		s.t.Errorf("%d nodes are left, want %d to %d\n%s", len(nodes), poolMin, s.mostLeft, s.status())
	}
	for _, node := range nodes {
		if isTouched(node) {
			s.t.Errorf("node %s keeps taints %v, annotations %v", node.Name, node.Spec.Taints, node.Annotations)
		}
	}
	for _, deleted := range s.cloud.Deleted() {
		if len(deleted.Pods) > 0 || deleted.Node == s.pinned {
			s.t.Errorf("node %s was deleted with %d pods; the pod that must not move is on %s",
				deleted.Node, len(deleted.Pods), s.pinned)
		}
	}
	if twice := s.cloud.DeletedTwice(); len(twice) > 0 {
		s.t.Errorf("the cloud was asked again to delete %v", twice)
	}
	if target := s.cloud.Target("pool"); target != len(nodes) || target < poolMin {
		s.t.Errorf("the target of the group is %d with %d nodes", target, len(nodes))
	}
	if lowest := s.budgets.lowest("web"); lowest < budgetMin {
		s.t.Errorf("at some time %d pods were healthy, the budget wants %d", lowest, budgetMin)
	}
	s.checkChanges()
	if s.autoscaler != nil { // it may run in the test
		expectNothingForbidden(s.t, s.autoscaler.Process)
	}
}

// isTouched says whether a node carries anything of an autoscaler.
func isTouched(node v1.Node) bool {
	return len(node.Spec.Taints) > 0 || node.Spec.Unschedulable || node.Annotations[drain.MarkAnnotation] != ""
}

// checkChanges looks through the API server's record of what the autoscaler has changed.
func (s *scaled) checkChanges() {
	s.t.Helper()
	changes, err := s.cluster.Changes(autoscalerUser)
	if err != nil {
		s.t.Fatal(err)
	}
	evictions := map[int]int{}
	for _, change := range changes {
		switch what := change.Verb + " " + change.Resource; what {
		case "create pods/eviction":
			evictions[change.Code]++
			if change.Name == "pinned" {
				s.t.Errorf("eviction of the pod that must not move: %v", change)
			}
		case "patch nodes", "create events", "patch events":
		case "update configmaps", "create configmaps", "update leases", "create leases":
		default:
			s.t.Errorf("the autoscaler has made a change that it should not: %v", change)
		}
	}
	s.t.Logf("evictions by the status of the answer: %v", evictions)
	if evictions[201] == 0 {
		s.t.Errorf("no eviction was accepted: %v", evictions)
	}
}

// Nodes are drained in parallel, within the budget, with the rights of the manifests. No node is removed with a pod
// that must not move, none keeps a taint, and then nothing happens any more, although the engine is away for a while.
// Invariants D1, D2, D3.
func TestAutoscalerDrains(t *testing.T) {
	t.Parallel()
	s := startScaled(t, "act", true)
	s.wait("a removal", func() bool { return len(s.busy()) > 0 })
	s.engine.Kill()
	time.Sleep(2 * time.Second)
	if err := s.engine.Restart(s.ctx); err != nil {
		t.Fatal(err)
	}
	s.waitSettled()
	s.check()
	if s.most < 2 {
		t.Errorf("%d nodes were seen to go at once: nothing was parallel", s.most)
	}
	before, err := s.cluster.Changes(autoscalerUser)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Second)
	after, err := s.cluster.Changes(autoscalerUser)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range after[len(before):] {
		if change.Resource != "configmaps" && change.Resource != "leases" {
			t.Errorf("after all has settled: %v", change)
		}
	}
	metrics := metricsOf(t, s.ctx, s.autoscaler)
	if gone := metrics.Sum("loadline_autoscaler_scaled_down_nodes_total", nil); int(gone) != poolSize-len(s.nodes()) {
		t.Errorf("%v nodes were counted as removed, %d are gone", gone, poolSize-len(s.nodes()))
	}
	if err := s.autoscaler.Stop(); err != nil {
		t.Error(err)
	}
}

// Killed again and again in the middle of drains and started again, it loses nothing: no taint is left, and no node is
// deleted twice. Invariant G3.
func TestAutoscalerKilledMidDrain(t *testing.T) {
	t.Parallel()
	s := startScaled(t, "act", true)
	term := int64(0)
	for i, after := range []time.Duration{0, 700 * time.Millisecond, 1300 * time.Millisecond, 2 * time.Second} {
		s.wait("the new leader to begin or to go on", func() bool {
			latest := s.latestTerm()
			defer func() { term = max(term, latest) }()
			return latest > term || i > 0 && len(s.nodes()) <= poolMin+1
		})
		time.Sleep(after) // the taint is a second old before pods are evicted
		t.Logf("kill %d: %d nodes, term %d, under way %v", i+1, len(s.nodes()), term, s.busy())
		s.autoscaler.Kill()
		if err := s.autoscaler.Restart(s.ctx); err != nil {
			t.Fatal(err)
		}
	}
	s.waitSettled()
	s.check()
}

// One of two leads; when it is killed in the middle of drains, the other one finishes them. Invariants G2, G3.
func TestTwoAutoscalers(t *testing.T) {
	t.Parallel()
	s := startScaled(t, "act", true)
	second := s.start("second", "act")
	s.wait("a removal", func() bool { return len(s.busy()) > 0 })
	leads := func(a *harness.Autoscaler) bool {
		return metricsOf(t, s.ctx, a).Sum("loadline_autoscaler_leader", nil) == 1
	}
	if !leads(s.autoscaler) || leads(second) {
		t.Errorf("the first one leads: %v, the second one: %v", leads(s.autoscaler), leads(second))
	}
	s.autoscaler.Kill()
	s.autoscaler = second
	s.wait("the second one to lead", func() bool { return leads(second) })
	s.waitSettled()
	s.check()
}

// The API server ends in the middle of drains: the leader that cannot hold its lease ends, and the next one
// finishes what was begun. Nothing is lost, no taint is left, and no node is deleted twice. Invariants G2, G3.
func TestAPIServerRestarts(t *testing.T) {
	t.Parallel()
	s := startScaled(t, "act", true)
	s.wait("a removal", func() bool { return len(s.busy()) > 0 })
	if err := s.cluster.RestartAPIServer(s.ctx, 3*time.Second); err != nil {
		t.Fatal(err)
	}
	s.wait("the end of the old leader", func() bool { return !s.autoscaler.Running() })
	t.Logf("the leader has ended: %s", s.autoscaler.Exit())
	if err := s.autoscaler.Restart(s.ctx); err != nil {
		t.Fatal(err)
	}
	s.waitSettled()
	s.check()
}

// Mode observe needs no more rights than to look, and writes nothing but its status and its lease.
func TestAutoscalerObserves(t *testing.T) {
	t.Parallel()
	s := startScaled(t, "observe", false)
	s.wait("a plan that would remove nodes", func() bool { return strings.Contains(s.status(), ": now") })
	s.deploy("large", 1, "3900m") // no node has as much left: a group would have to grow
	s.wait("a plan that would grow a group", func() bool { return strings.Contains(s.status(), "pool: 1 for pods") })
	time.Sleep(3 * time.Second)
	changes, err := s.cluster.Changes(autoscalerUser)
	if err != nil || len(changes) == 0 {
		t.Fatalf("%d changes, error %v", len(changes), err)
	}
	for _, change := range changes {
		status := strings.HasSuffix(change.Resource, "configmaps") &&
			(change.Name == "loadline-autoscaler-status" || change.Verb == "create")
		lease := change.Resource == "leases" && (change.Name == "loadline-autoscaler" || change.Verb == "create")
		if !status && !lease {
			t.Errorf("it has written: %v", change)
		}
	}
	if len(s.nodes()) != poolSize {
		t.Errorf("%d nodes are left of %d", len(s.nodes()), poolSize)
	}
	expectNothingForbidden(t, s.autoscaler.Process)
}

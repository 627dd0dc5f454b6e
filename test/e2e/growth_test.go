package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/test/e2e/harness"
	"loadline.dev/test/e2e/simcloud"
)

// pool returns a node group whose nodes have so many cpus, and 4Gi for each.
func pool(id string, lowest, highest int, cpus int64, price float64) simcloud.Group {
	size := v1.ResourceList{"cpu": *resource.NewQuantity(cpus, resource.DecimalSI),
		"memory": *resource.NewQuantity(cpus<<32, resource.BinarySI), "pods": resource.MustParse("110")}
	return simcloud.Group{ID: id, Min: lowest, Max: highest, Price: price,
		Template: &v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"pool": id}},
			Status: v1.NodeStatus{Capacity: size, Allocatable: size}}}
}

// scanInterval of these tests, of which some watch many loops.
const scanInterval = 250 * time.Millisecond

// startGrowing has a cluster with one node of the group "base", on which the pod of a Deployment runs, other groups
// without nodes, and an autoscaler that decides what `args` say.
func startGrowing(t *testing.T, createDelay time.Duration, groups []simcloud.Group, args ...string) *scaled {
	t.Helper()
	s := newGrowing(t, createDelay, groups, args...)
	s.autoscaler = s.start("autoscaler", "act")
	return s
}

// newGrowing has all but the autoscaler.
func newGrowing(t *testing.T, createDelay time.Duration, groups []simcloud.Group, args ...string) *scaled {
	t.Helper()
	ctx := deadline(t)
	s := &scaled{t: t, ctx: ctx, rest: 6 * time.Second, createDelay: createDelay,
		args: append(args, "--scan-interval="+scanInterval.String()),
		cluster: startCluster(t, ctx,
			harness.Options{Log: t.Logf, ControllerManager: true, Kubelet: true, Audit: true})}
	s.rights(true)
	s.startCloud(append([]simcloud.Group{pool("base", 1, 1, 2, 0.01)}, groups...)...)
	if err := s.cloud.Grow("base", 1); err != nil {
		t.Fatal(err)
	}
	s.wait("the first node", func() bool { return len(s.nodes()) == 1 })
	s.startScheduler()
	s.deploy("base", 1, "500m")
	s.waitRunning("base", 1)
	s.engine = startEngine(t, ctx, s.cluster)
	return s
}

// deploy creates a Deployment, or changes how many pods it has.
func (s *scaled) deploy(name string, replicas int32, cpu string) {
	s.t.Helper()
	s.deployOn(name, replicas, cpu, nil)
}

// deployOn does so with pods that ask for nodes with labels.
func (s *scaled) deployOn(name string, replicas int32, cpu string, nodeSelector map[string]string) {
	s.t.Helper()
	labels := map[string]string{"app": name}
	container := v1.Container{Name: "c", Image: "web",
		Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse(cpu)}}}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: v1.PodSpec{NodeSelector: nodeSelector, Containers: []v1.Container{container}}}}}
	client := s.cluster.Client.AppsV1().Deployments("default")
	_, err := client.Create(s.ctx, deployment, metav1.CreateOptions{})
	if err != nil {
		_, err = client.Update(s.ctx, deployment, metav1.UpdateOptions{})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scaled) runs(app string) int {
	count, err := running(s.ctx, s.cluster, "app="+app)
	if err != nil {
		s.t.Fatal(err)
	}
	return count
}

func (s *scaled) waitRunning(app string, pods int) time.Duration {
	s.t.Helper()
	began := time.Now()
	s.wait(fmt.Sprintf("%d pods of %s to run", pods, app), func() bool { return s.runs(app) == pods })
	return time.Since(began)
}

// checkSizes holds the target sizes that groups have had against their bounds.
func (s *scaled) checkSizes(groups ...simcloud.Group) {
	s.t.Helper()
	for _, g := range groups {
		if smallest, largest := s.cloud.Sizes(g.ID); smallest < g.Min || largest > g.Max {
			s.t.Errorf("group %s has had %d to %d nodes, it may have %d to %d", g.ID, smallest, largest, g.Min, g.Max)
		}
	}
}

// loops counts those of the autoscaler.
func (s *scaled) loops() int {
	s.t.Helper()
	return int(metricsOf(s.t, s.ctx, s.autoscaler).Sum("loadline_autoscaler_decision_total",
		harness.Labels{"kind": "drain"}))
}

// acts are the changes of the autoscaler beside those of its status and its lease.
func (s *scaled) acts() (acts []harness.Change) {
	s.t.Helper()
	changes, err := s.cluster.Changes(autoscalerUser)
	if err != nil {
		s.t.Fatal(err)
	}
	return slices.DeleteFunc(changes,
		func(c harness.Change) bool { return c.Resource == "configmaps" || c.Resource == "leases" })
}

// calm waits until nothing happens any more, and then makes sure that nothing does for so many loops.
func (s *scaled) calm(loops int) {
	s.t.Helper()
	before, seen, since := len(s.acts()), s.loops(), time.Now()
	s.wait("the cluster to come to rest", func() bool {
		if now := len(s.acts()); now != before {
			before, seen, since = now, s.loops(), time.Now()
		}
		return time.Since(since) > s.rest && s.loops() > seen+2 // clock: waits, and asserts nothing
	})
	targets, begin := s.cloud.Requests(), s.loops()
	time.Sleep(time.Duration(loops) * scanInterval)
	s.wait("as many loops", func() bool { return s.loops() >= begin+loops })
	for _, act := range s.acts()[before:] {
		s.t.Errorf("under constant load: %v", act)
	}
	if after := s.cloud.Requests(); after != targets {
		s.t.Errorf("under constant load the cloud was asked %d times for another size", after-targets)
	}
}

// Pods that wait get nodes of the cheapest group that takes them; when they are gone, so are the nodes. No group leaves
// its bounds, and at constant load nothing happens.
func TestAutoscalerScalesUp(t *testing.T) {
	t.Parallel()
	groups := []simcloud.Group{pool("cheap", 0, 4, 4, 0.10), pool("dear", 0, 4, 4, 0.30), pool("tiny", 0, 9, 1, 0.001)}
	s := startGrowing(t, 2*time.Second, groups, "--decisions=scale-up,scale-down", "--scale-down-unneeded-time=5s",
		"--scale-down-delay-after-add=2s")
	s.deploy("web", 6, "1500m") // one fits beside the pod that is there; two on each node of 4 cpus
	took := s.waitRunning("web", 6)
	t.Logf("6 pods ran after %v on %v", took, s.describe())
	if cheap, dear, tiny := s.cloud.Target("cheap"), s.cloud.Target("dear"), s.cloud.Target("tiny"); cheap != 3 ||
		dear != 0 || tiny != 0 {
		t.Errorf("%d cheap nodes, %d dear ones, %d tiny ones; want 3 cheap ones", cheap, dear, tiny)
	}
	s.calm(50)
	// The cheap group does not take all of it: the rest is for the other one.
	s.deploy("web", 11, "1500m")
	s.waitRunning("web", 11)
	if cheap, dear := s.cloud.Target("cheap"), s.cloud.Target("dear"); cheap != 4 || dear != 1 {
		t.Errorf("%d cheap nodes, %d dear ones; want 4 and 1", cheap, dear)
	}
	s.deploy("web", 1, "1500m")
	s.wait("nodes to go", func() bool { return len(s.nodes()) <= 2 && len(s.busy()) == 0 })
	s.calm(5)
	s.checkSizes(groups...)
	events, err := s.cluster.Client.CoreV1().Events(metav1.NamespaceAll).List(s.ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]int{}
	for _, event := range events.Items {
		if strings.HasPrefix(event.Source.Component, "loadline") {
			reasons[event.Reason]++
		}
	}
	if reasons["TriggeredScaleUp"] == 0 || reasons["ScaledUpGroup"] == 0 ||
		reasons["ScaleDown"]+reasons["ScaleDownEmpty"] == 0 {
		t.Errorf("events by reason: %v", reasons)
	}
	metrics := metricsOf(t, s.ctx, s.autoscaler)
	if up := metrics.Sum("loadline_autoscaler_scaled_up_nodes_total", nil); up != 5 {
		t.Errorf("%v nodes were counted as added, want 5", up)
	}
	expectNothingForbidden(t, s.autoscaler.Process)
}

// burst scales a load up at once and returns how long its last pod has waited.
func (s *scaled) burst(from, to int32, cpu string) time.Duration {
	s.t.Helper()
	s.waitRunning("web", int(from))
	s.deploy("web", to, cpu)
	return s.waitRunning("web", int(to))
}

// With slack kept by pods that give way, the next burst runs on nodes that are there; without, it waits for a node. The
// slack is restored, and then nothing happens any more.
func TestAutoscalerKeepsSlack(t *testing.T) {
	t.Parallel()
	const nodeStart = 12 * time.Second
	groups := []simcloud.Group{pool("pool", 0, 8, 4, 0.10)}
	s := startGrowing(t, nodeStart, groups, "--decisions=scale-up,slack,scale-down", "--extra-capacity-min-rate=100%",
		"--scale-down-unneeded-time=4s", "--scale-down-delay-after-add=2s", "--slack-removal-delay=2s")
	s.deploy("web", 3, "1")
	s.waitRunning("web", 3)
	ready := func() bool {
		return strings.Contains(s.status(), "status: ready") && s.standing() >= s.placeholders() && s.placeholders() > 0
	}
	s.wait("slack", ready)
	t.Logf("slack of %d pods on %d nodes", s.standing(), len(s.nodes()))
	there := map[string]bool{}
	for _, node := range s.nodes() {
		there[node.Name] = true
	}
	took := s.burst(3, 8, "1") // of 9 that these nodes can take: placeholders have to give way
	t.Logf("with slack 5 more pods ran after %v; a node takes %v", took, nodeStart)
	for _, pod := range s.pods() {
		if pod.Labels["app"] == "web" && !there[pod.Spec.NodeName] {
			t.Errorf("pod %s runs on node %q, which the burst had to wait for", pod.Name, pod.Spec.NodeName)
		}
	}
	s.wait("slack again", ready)
	s.calm(20)
	// The load leaves: nodes go with the placeholders on them, and what is wanted of those stays.
	s.deploy("web", 1, "1")
	s.wait("nodes to go", func() bool { return len(s.nodes()) <= 2 && len(s.busy()) == 0 })
	s.wait("slack of what is left", ready)
	for _, deleted := range s.cloud.Deleted() {
		for _, pod := range deleted.Pods {
			s.t.Errorf("node %s was deleted with pod %s/%s", deleted.Node, pod.Namespace, pod.Name)
		}
	}
	s.calm(5)
	s.checkSizes(groups...)
	s.checkForeign("default", "kube-system")
	expectNothingForbidden(t, s.autoscaler.Process)
}

// Without a cloud provider slack is kept beside another autoscaler: placeholder pods wait until that one, here the test
// itself, has added a node, and give way to a burst. Nothing but their Deployments is written.
func TestSlackBesideAnotherAutoscaler(t *testing.T) {
	t.Parallel()
	s := startGrowing(t, time.Second, nil, "--cloud=none", "--cloud-address=", "--decisions=slack",
		"--extra-capacity-min-rate=400%")
	s.change("base", func(g *simcloud.Group) { g.Max = 2 })
	// 2 cpus are wanted beside the 500m, in pieces of at most a fifth of a node of 2 cpus, and 1500m are free.
	s.wait("placeholders", func() bool { return s.standing() > 0 && s.standing() < s.placeholders() })
	s.wait("the status", func() bool { return strings.Contains(s.status(), "status: limited") })
	if err := s.cloud.Grow("base", 1); err != nil {
		t.Fatal(err)
	}
	ready := func() bool {
		return strings.Contains(s.status(), "status: ready") && s.standing() == s.placeholders()
	}
	s.wait("slack on the node that another one has added", ready)
	s.deploy("burst", 2, "1")
	s.waitRunning("burst", 2)
	if text := s.status(); strings.Contains(text, "message: ") || strings.Contains(text, "problem: ") {
		t.Errorf("status: %s", text)
	}
	for _, act := range s.acts() {
		if act.Namespace != "loadline-slack" || act.Resource != "deployments" {
			t.Errorf("changed: %v", act)
		}
	}
	expectNothingForbidden(t, s.autoscaler.Process)
}

// Slack may be kept by CapacityBuffers, for an autoscaler that knows them. Until their kind is served, the status says
// what is wrong, and nothing else suffers.
func TestAutoscalerKeepsCapacityBuffers(t *testing.T) {
	t.Parallel()
	s := startGrowing(t, time.Second, nil, "--decisions=slack", "--slack-keep=capacitybuffers",
		"--extra-capacity-min-rate=100%")
	s.wait("the problem", func() bool { return strings.Contains(s.status(), "problem: ") })
	apply(t, s.ctx, s.cluster, slackRights[1])
	content, err := os.ReadFile("testdata/capacitybuffers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	definition, err := harness.Objects(content)
	if err != nil {
		t.Fatal(err)
	}
	applyObjects(t, s.ctx, s.cluster, definition)
	var buffers struct {
		Items []struct {
			Spec struct {
				PodTemplateRef struct{ Name string }
				Replicas       int
			}
		}
	}
	s.wait("the buffers", func() bool {
		raw, err := s.cluster.Client.Discovery().RESTClient().Get().
			AbsPath("/apis/autoscaling.x-k8s.io/v1beta1/namespaces/loadline-slack/capacitybuffers").DoRaw(s.ctx)
		return err == nil && json.Unmarshal(raw, &buffers) == nil && len(buffers.Items) > 0
	})
	// The same amount as the 500m that are requested, in pieces of at most a fifth of 2 cpus: two of 250m.
	if b := buffers.Items[0].Spec; len(buffers.Items) != 1 || b.Replicas != 2 {
		t.Errorf("buffers %+v", buffers)
	}
	if _, err := s.cluster.Client.CoreV1().PodTemplates("loadline-slack").Get(s.ctx,
		buffers.Items[0].Spec.PodTemplateRef.Name, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	s.wait("no problem", func() bool { return !strings.Contains(s.status(), "problem: ") })
	s.calm(3)
}

// standing counts placeholders that run.
func (s *scaled) standing() int {
	count, err := running(s.ctx, s.cluster, "loadline.dev/placeholder")
	if err != nil {
		s.t.Fatal(err)
	}
	return count
}

// placeholders counts those that there are to be.
func (s *scaled) placeholders() (replicas int) {
	list, err := s.cluster.Client.AppsV1().Deployments("loadline-slack").List(s.ctx, metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, d := range list.Items {
		replicas += int(*d.Spec.Replicas)
	}
	return replicas
}

// checkForeign looks through the API server's record for workloads that were changed where they are none of ours.
func (s *scaled) checkForeign(namespaces ...string) {
	s.t.Helper()
	changes, err := s.cluster.Changes(autoscalerUser)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, change := range changes {
		if strings.HasPrefix(change.Resource, "deployments") && slices.Contains(namespaces, change.Namespace) {
			s.t.Errorf("changed: %v", change)
		}
	}
}

// gets waits until so many pods of the load run, while nodes come from where they can.
func (s *scaled) gets(what string, pods int32) {
	s.t.Helper()
	s.deploy("web", pods, "3")
	s.t.Logf("%s: %d pods ran after %v; cheap %d, dear %d", what, pods,
		s.waitRunning("web", int(pods)).Round(time.Millisecond), s.cloud.Target("cheap"), s.cloud.Target("dear"))
}

// faulty is a cluster whose cloud fails, and an autoscaler that waits for nothing for long. Each pod of its load takes
// a node.
func faulty(t *testing.T) (*scaled, []simcloud.Group) {
	t.Helper()
	groups := []simcloud.Group{pool("cheap", 0, 6, 4, 0.10), pool("dear", 0, 6, 4, 0.30)}
	return startGrowing(t, time.Second, groups, "--decisions=scale-up", "--max-node-provision-time=8s",
		"--initial-node-group-backoff-duration=8s",
		"--max-node-group-backoff-duration=16s", "--cloud-grpc-timeout=2s"), groups
}

func (s *scaled) change(group string, change func(*simcloud.Group)) { s.cloud.Change(group, change) }

// If the cheap group is out of stock or its machines never become nodes, the dear one grows; machines that do not
// arrive are given up, and nothing is asked for twice.
func TestCloudMakesNoNodes(t *testing.T) {
	t.Parallel()
	s, groups := faulty(t)
	s.change("cheap", func(g *simcloud.Group) { g.StockOut = true })
	s.gets("out of stock", 2)
	if cheap, dear := s.cloud.Target("cheap"), s.cloud.Target("dear"); cheap != 0 || dear != 2 {
		t.Errorf("out of stock: %d cheap nodes, %d dear ones, want 0 and 2", cheap, dear)
	}
	if text := s.status(); !strings.Contains(text, "errorCode: outOfResources") ||
		!strings.Contains(text, "STOCK_OUT") {
		t.Errorf("status: %s", text)
	}
	_, asked := s.cloud.Sizes("cheap") // one machine or two, by how many pods the first loop has seen
	s.change("cheap", func(g *simcloud.Group) { g.StockOut, g.Phantom = false, true })
	s.wait("the end of the back-off", func() bool { return !strings.Contains(s.status(), "status: Backoff") })
	s.gets("phantoms", 3)
	if cheap, dear := s.cloud.Target("cheap"), s.cloud.Target("dear"); cheap != 0 || dear != 3 {
		t.Errorf("phantoms: %d cheap nodes, %d dear ones, want 0 and 3", cheap, dear)
	}
	s.change("cheap", func(g *simcloud.Group) { g.Phantom = false })
	s.wait("the end of the back-off", func() bool { return !strings.Contains(s.status(), "status: Backoff") })
	s.gets("nothing is wrong", 4)
	if cheap := s.cloud.Target("cheap"); cheap != 1 {
		t.Errorf("%d cheap nodes, want 1", cheap)
	}
	s.checkSizes(groups...)
	metrics := metricsOf(t, s.ctx, s.autoscaler)
	failed := metrics.By("loadline_autoscaler_failed_scale_ups_total", "reason")
	given := metrics.By("loadline_autoscaler_given_up_nodes_total", "reason")
	if failed["outOfResources"] != 1 || failed["timeout"] != 1 || given["failed"] != float64(asked) ||
		given["late"] != 1 {
		t.Errorf("failures %v, given up %v", failed, given)
	}
	expectNothingForbidden(t, s.autoscaler.Process)
}

// A cloud that does not answer costs time and nothing else; killed with nodes on their way, the next process counts
// them.
func TestCloudHangsAndAutoscalerIsKilled(t *testing.T) {
	t.Parallel()
	s, groups := faulty(t)
	s.cloud.Hang("NodeGroupIncreaseSize", true)
	s.deploy("web", 2, "3")
	s.wait("failures", func() bool {
		return metricsOf(t, s.ctx, s.autoscaler).Sum("loadline_autoscaler_failed_scale_ups_total", nil) >= 2
	})
	loops := metricsOf(t, s.ctx, s.autoscaler).Sum("loadline_autoscaler_decision_total", nil)
	s.cloud.Hang("Refresh", true)
	s.wait("loops that end without the cloud", func() bool { return strings.Contains(s.status(), "Refresh") })
	s.cloud.Hang("Refresh", false)
	s.cloud.Hang("NodeGroupIncreaseSize", false)
	s.gets("the cloud answers again", 2)
	if more := metricsOf(t, s.ctx, s.autoscaler).Sum("loadline_autoscaler_decision_total", nil); more <= loops {
		t.Errorf("%v loops, and then %v", loops, more)
	}
	s.wait("the end of the back-off", func() bool { return !strings.Contains(s.status(), "status: Backoff") })

	before := s.cloud.Target("cheap") + s.cloud.Target("dear")
	s.cloud.Delay(4 * time.Second)
	s.deploy("web", 5, "3")
	s.wait("the request for nodes", func() bool { return s.cloud.Target("cheap")+s.cloud.Target("dear") > before })
	s.autoscaler.Kill()
	if err := s.autoscaler.Restart(s.ctx); err != nil {
		t.Fatal(err)
	}
	s.waitRunning("web", 5)
	s.calm(3)
	if all := s.cloud.Target("cheap") + s.cloud.Target("dear"); all != 5 {
		t.Errorf("%d nodes for 5 pods", all)
	}
	s.checkSizes(groups...)
	expectNothingForbidden(t, s.autoscaler.Process)
}

package chart

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/test/e2e/docs"
	"loadline.dev/test/e2e/harness"
)

// patience is for machines that are busy with other work; each step takes seconds.
const patience = 4 * time.Minute

const (
	system      = "loadline-system" // the namespace that docs/install.md makes
	stock, ours = "default-scheduler", "loadline-scheduler"
)

// minutes is a control plane on which somebody follows docs/install.md.
type minutes struct {
	t       *testing.T
	all     context.Context
	ctx     context.Context // of a step
	cluster *harness.Cluster
	runner  *harness.PodRunner
	stock   *harness.Scheduler
	before  map[string]string
	begun   time.Time
	stepped time.Time
}

// Somebody has a cluster with its own scheduler and follows docs/install.md, section "With Helm", command by command.
// Each of the three ways places a pod, bill prints, and in the end no object is left, changed or missing. Pods run as
// processes, with what the API server says of them. The times are printed; nothing depends on them.
func TestFirstFiveMinutes(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a control plane and all components, for minutes")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	m := startMinutes(t, ctx)
	m.begun, m.stepped = time.Now(), time.Now()
	m.step("loadline bill has printed", m.bill)
	after := []struct {
		command, says string
		check         func()
	}{
		{"helm install loadline ", "the second scheduler has placed a pod", m.second},
		{"--set scheduler.replace=true", "the replacement has placed a pod", m.replacement},
		{"helm rollback loadline 1", "the second scheduler and the cluster's own place pods again", m.back},
		{"--set expander.enabled=true", "the expander is ready", m.others},
		{"helm install loadline-extender ", "the cluster's own scheduler has asked the extender for a pod", m.extender},
		{"kubectl delete namespace " + system, "nothing is left", m.nothingLeft},
	}
	blocks, err := docs.Section("../../docs/install.md", "## With Helm")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range blocks {
		for _, command := range block.Commands {
			m.run(command.Text)
			for len(after) > 0 && strings.Contains(command.Text, after[0].command) {
				m.step(after[0].says, after[0].check)
				after = after[1:]
			}
		}
	}
	for _, missed := range after {
		t.Errorf("docs/install.md has no command with %q, or not in this order", missed.command)
	}
	fmt.Printf("%8.1f s  in all, from a cluster without Loadline to one without it\n", time.Since(m.begun).Seconds())
	if err := m.runner.Err(); err != nil {
		t.Error(err)
	}
}

// startMinutes starts a control plane with its own scheduler, three nodes and four pods. Two nodes are for those who
// tolerate them, so that what our own pods ask for takes no side.
func startMinutes(t *testing.T, ctx context.Context) *minutes {
	t.Helper()
	if err := harness.BuildCommands(ctx, t.Logf); err != nil {
		t.Fatal(err)
	}
	m := &minutes{t: t, all: ctx, ctx: ctx, cluster: startCluster(t, ctx)}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(m.cluster.Logs())
		}
	})
	control := exampleNode("control")
	control.Labels = map[string]string{v1.LabelHostname: "control", "node-role.kubernetes.io/control-plane": ""}
	control.Spec.Taints = nil
	nodes := []*v1.Node{control, exampleNode("node1"), exampleNode("node2")}
	// By requests node1 is the emptier one, 4/8 against 5/8; by limits it is node2, 10/8 against 5/8.
	pods := []*v1.Pod{examplePod("pod1", "node1", "2", "6"), examplePod("pod2", "node1", "2", "4"),
		examplePod("pod3", "node2", "3", "3"), examplePod("pod4", "node2", "2", "2")}
	if err := errors.Join(m.cluster.CreateNodes(ctx, nodes), m.cluster.CreatePods(ctx, pods)); err != nil {
		t.Fatal(err)
	}
	m.startStock(nil)
	m.place(stock, "node1")
	m.unplace()
	m.before = m.settled()
	m.runner = &harness.PodRunner{Namespaces: []string{system, "kube-system"},
		// It needs a cloud provider, which this cluster does not have.
		Skipped: func(pod *v1.Pod) bool { return pod.Labels["app.kubernetes.io/name"] == "loadline-autoscaler" }}
	m.runner.Start(ctx, m.cluster)
	return m
}

// exampleNode returns a node for pods that tolerate it.
func exampleNode(name string) *v1.Node {
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name, "example": "",
			v1.LabelInstanceTypeStable: "m6i.2xlarge"}},
		Spec: v1.NodeSpec{Taints: []v1.Taint{{Key: "example", Effect: v1.TaintEffectNoSchedule}}},
		Status: v1.NodeStatus{Capacity: v1.ResourceList{v1.ResourceCPU: resource.MustParse("8"),
			v1.ResourceMemory: resource.MustParse("32Gi"), v1.ResourcePods: resource.MustParse("110")}},
	}
}

// examplePod returns a pod of the example of KEP 217, for the nodes that others do not tolerate.
func examplePod(name, node, request, limit string) *v1.Pod {
	of := func(cpu string) v1.ResourceList {
		return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse("1Gi")}
	}
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: v1.PodSpec{NodeName: node,
		Tolerations:  []v1.Toleration{{Key: "example", Operator: v1.TolerationOpExists}},
		NodeSelector: map[string]string{"example": ""},
		Containers: []v1.Container{{Name: "app", Image: "registry.example/app:1",
			Resources: v1.ResourceRequirements{Requests: of(request), Limits: of(limit)}}}}}
}

// settled returns all objects once they stay the same: a control plane that has just started adds some.
func (m *minutes) settled() map[string]string {
	m.t.Helper()
	last := contents(m.t, m.ctx, m.cluster.Client)
	for {
		time.Sleep(time.Second)
		now := contents(m.t, m.ctx, m.cluster.Client)
		if maps.Equal(last, now) {
			return now
		}
		last = now
		if m.ctx.Err() != nil {
			m.t.Fatal("the control plane does not settle")
		}
	}
}

// step prints how long it was since the last one.
func (m *minutes) step(says string, check func()) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.all, patience)
	defer cancel()
	m.ctx = ctx
	check()
	m.ctx = m.all
	if err := m.runner.Err(); err != nil {
		m.t.Fatal(err)
	}
	fmt.Printf("%8.1f s  %s\n", time.Since(m.stepped).Seconds(), says)
	m.stepped = time.Now()
}

// run runs a command of the document and returns what it prints.
func (m *minutes) run(command string) string {
	m.t.Helper()
	out, err := m.cluster.Shell(m.ctx, command)
	if err != nil {
		m.t.Fatal(err)
	}
	return out
}

func (m *minutes) bill() {
	m.t.Helper()
	if out := m.run("loadline bill"); !strings.Contains(out, "m6i.2xlarge") {
		m.t.Errorf("loadline bill does not tell of the nodes:\n%s", out)
	}
}

// startStock starts the cluster's own scheduler with its leader election, and with a configuration that asks the
// extender or with none.
func (m *minutes) startStock(config []byte) {
	m.t.Helper()
	site := harness.Site{}
	if config == nil {
		config = []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
	} else {
		address, err := m.runner.Address("loadline-gateway", "extender")
		if err != nil {
			m.t.Fatal(err)
		}
		site.ExtenderURL = "http://" + address
	}
	kubeconfig, err := m.cluster.UserKubeconfig("system:kube-scheduler", "system:authenticated")
	if err != nil {
		m.t.Fatal(err)
	}
	site.Kubeconfig = kubeconfig
	m.stock, err = m.cluster.StartScheduler(m.ctx, harness.SchedulerOptions{Name: "stock", Config: config, Site: site})
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *minutes) stopStock() {
	m.t.Helper()
	if err := m.stock.Stop(); err != nil {
		m.t.Fatal(err)
	}
}

// place waits until a pod is placed on that node. A scheduler continues without our opinion if that is late.
func (m *minutes) place(scheduler, want string) {
	m.t.Helper()
	pods := m.cluster.Client.CoreV1().Pods("default")
	node := ""
	for node != want {
		if m.ctx.Err() != nil {
			m.t.Fatalf("%s places the pod on %s, want %s", scheduler, node, want)
		}
		m.unplace()
		pod := examplePod("pod5", "", "1", "4")
		pod.Spec.SchedulerName = scheduler
		if _, err := pods.Create(m.ctx, pod, metav1.CreateOptions{}); err != nil {
			m.t.Fatal(err)
		}
		for node = ""; node == ""; time.Sleep(20 * time.Millisecond) {
			pod, err := pods.Get(m.ctx, "pod5", metav1.GetOptions{})
			if err != nil {
				m.t.Fatalf("%s does not place a pod on %s: %v; %v", scheduler, want, err, m.runner.Err())
			}
			node = pod.Spec.NodeName
		}
	}
}

// unplace deletes the pod.
func (m *minutes) unplace() {
	m.t.Helper()
	if err := m.cluster.DeletePod(m.ctx, "default", "pod5"); err != nil {
		m.t.Fatal(err)
	}
}

// rolled waits until all pods of a Deployment are those of its last version, and ready.
func (m *minutes) rolled(name string) {
	m.t.Helper()
	for {
		d, err := m.cluster.Client.AppsV1().Deployments(system).Get(m.ctx, name, metav1.GetOptions{})
		if err != nil {
			m.t.Fatalf("%s: %v; %v", name, err, m.runner.Err())
		}
		s := d.Status
		want := *d.Spec.Replicas
		if s.ObservedGeneration == d.Generation && s.Replicas == want && s.UpdatedReplicas == want &&
			s.AvailableReplicas == want {
			return
		}
		if err := m.runner.Err(); err != nil {
			m.t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (m *minutes) second() {
	m.t.Helper()
	m.rolled("loadline-scheduler")
	m.place(ours, "node2")
	m.place(stock, "node1")
}

func (m *minutes) replacement() {
	m.t.Helper()
	m.rolled("loadline-scheduler")
	m.place(stock, "node1") // the cluster's own still leads
	m.stopStock()
	m.place(stock, "node2")
	m.startStock(nil)
}

func (m *minutes) back() {
	m.t.Helper()
	m.rolled("loadline-scheduler")
	m.place(stock, "node1")
	m.place(ours, "node2")
}

func (m *minutes) others() {
	m.t.Helper()
	m.rolled("loadline-expander")
}

func (m *minutes) extender() {
	m.t.Helper()
	for {
		d, err := m.cluster.Client.AppsV1().DaemonSets("kube-system").Get(m.ctx, "loadline-gateway", metav1.GetOptions{})
		if err != nil {
			m.t.Fatal(err)
		}
		if d.Status.NumberAvailable == 1 && d.Status.DesiredNumberScheduled == 1 {
			break
		}
		if err := m.runner.Err(); err != nil {
			m.t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	config, err := harness.ManifestConfig(harness.ExtenderConfig)
	if err != nil {
		m.t.Fatal(err)
	}
	m.stopStock()
	m.startStock(config)
	m.place(stock, "node2")
	m.stopStock()
	m.startStock(nil)
}

func (m *minutes) nothingLeft() {
	m.t.Helper()
	m.unplace()
	diff := ""
	for range 60 { // what the garbage collector takes away
		if diff = cmp.Diff(m.before, contents(m.t, m.ctx, m.cluster.Client)); diff == "" {
			return
		}
		time.Sleep(time.Second)
	}
	m.t.Errorf("before and after:\n%s", diff)
}

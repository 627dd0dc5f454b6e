package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/cloud"
	"loadline.dev/shim/providers/karpenter"
	"loadline.dev/test/e2e/harness"
)

var (
	nodeClaims = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}
	nodePools  = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}
	kwokClass  = schema.GroupVersionResource{Group: "karpenter.kwok.sh", Version: "v1alpha1", Resource: "kwoknodeclasses"}
)

// karpenterPrices is the list of the types below. Of the capacity of a type Karpenter's provider takes 100m and 10Mi.
const karpenterPrices = `instance_type,arch,allocatable_cpu,allocatable_memory,allocatable_pods,on_demand_usd_per_hour
small,amd64,1900m,4086Mi,30,0.05
large,amd64,7900m,16374Mi,60,0.19
`

// kwokNodeClass is the class of nodes of both NodePools.
const kwokNodeClass = `apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
spec: {nodeRegistrationDelay: 1s}
---
`

// karpenterPool is a NodePool as docs/platforms.md has it given to Loadline, with its class.
const karpenterPool = kwokNodeClass + `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default, labels: {loadline.dev/managed: "true"}}
spec:
  template:
    metadata: {labels: {team: a}}
    spec:
      requirements:
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      - {key: topology.kubernetes.io/zone, operator: In, values: [z1]}
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      expireAfter: Never
  limits: {cpu: "0"}
  disruption: {consolidateAfter: 2s, budgets: [{nodes: "0"}]}
`

// kwoked is a control plane with Karpenter and its provider of nodes without machines.
type kwoked struct {
	*testing.T
	ctx     context.Context
	cluster *harness.Cluster
	objects dynamic.Interface
	prices  string // file
	// karpenter is its process.
	karpenter *harness.Controller
}

func startKarpenter(t *testing.T) *kwoked {
	t.Helper()
	k := startKarpenterWith(t, harness.Options{ControllerManager: true, Kubelet: true, Audit: true}, karpenterPool,
		kwokTypeOf("small", "z1", "2", "4096Mi", "30", 0.05), kwokTypeOf("large", "z1", "8", "16384Mi", "60", 0.19))
	k.prices = k.write("prices.csv", []byte(karpenterPrices))
	return k
}

// startKarpenterWith starts a control plane with Karpenter, objects for it, and types of its nodes.
func startKarpenterWith(t *testing.T, options harness.Options, objects string, instanceTypes ...any) *kwoked {
	t.Helper()
	if !harness.KarpenterIsBuilt() && os.Getenv("BUILD_KARPENTER") == "" {
		skipFor(t, "Karpenter is not built", "test-karpenter")
	}
	k := &kwoked{T: t, ctx: deadline(t)}
	built, err := harness.BuildKarpenter(k.ctx, t.Logf)
	k.must(err)
	k.cluster = startCluster(t, k.ctx, options)
	rest, err := clientcmd.BuildConfigFromFlags("", k.cluster.Kubeconfig)
	k.must(err)
	rest.QPS, rest.Burst = 1000, 1000
	k.objects, err = dynamic.NewForConfig(rest)
	k.must(err)
	k.must(k.cluster.Apply(k.ctx, built.Definitions))
	pool, err := harness.Objects([]byte(objects))
	k.must(err)
	k.wait("the definitions", func() bool { return k.cluster.Apply(k.ctx, pool) == nil })
	types, err := json.Marshal(instanceTypes)
	k.must(err)
	k.karpenter, err = k.cluster.StartKarpenter(k.ctx, built, k.write("instance-types.json", types))
	k.must(err)
	go k.makeReady()
	return k
}

func kwokTypeOf(name, zone, cpu, memory, pods string, price float64) map[string]any {
	is := func(key, value string) map[string]any {
		return map[string]any{"key": key, "operator": "In", "values": []string{value}}
	}
	return map[string]any{"name": name, "architecture": "amd64", "operatingSystems": []string{"linux"},
		"resources": map[string]string{"cpu": cpu, "memory": memory, "pods": pods},
		"offerings": []any{map[string]any{"Price": price, "Available": true,
			"Requirements": []any{is("karpenter.sh/capacity-type", "on-demand"), is(v1.LabelTopologyZone, zone)}}}}
}

func (k *kwoked) must(err error) {
	k.Helper()
	if err != nil {
		k.Fatal(err)
	}
}

func (k *kwoked) write(name string, content []byte) string {
	k.Helper()
	file := filepath.Join(k.cluster.Dir(), name)
	k.must(os.WriteFile(file, content, 0o600))
	return file
}

func (k *kwoked) wait(what string, holds func() bool) {
	k.Helper()
	for end := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) || k.ctx.Err() != nil {
			k.Fatalf("waited in vain for %s; claims %v, nodes %v", what, k.names(nodeClaims), k.nodes())
		}
	}
}

// register changes how long it takes until a machine becomes a node.
func (k *kwoked) register(after string) {
	k.Helper()
	_, err := k.objects.Resource(kwokClass).Patch(k.ctx, "default", types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"nodeRegistrationDelay":%q}}`, after), metav1.PatchOptions{})
	k.must(err)
}

// makeReady does for nodes what their kubelets would.
func (k *kwoked) makeReady() {
	for ; k.ctx.Err() == nil; time.Sleep(300 * time.Millisecond) {
		list, err := k.cluster.Client.CoreV1().Nodes().List(k.ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		for _, node := range list.Items {
			if len(node.Status.Conditions) == 0 {
				_, _ = k.cluster.Client.CoreV1().Nodes().Patch(k.ctx, node.Name, types.StrategicMergePatchType,
					[]byte(`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady"}]}}`),
					metav1.PatchOptions{}, "status")
			}
		}
	}
}

func (k *kwoked) list(of schema.GroupVersionResource) []unstructured.Unstructured {
	k.Helper()
	list, err := k.objects.Resource(of).List(k.ctx, metav1.ListOptions{})
	k.must(err)
	return list.Items
}

func (k *kwoked) names(of schema.GroupVersionResource) (names []string) {
	for _, object := range k.list(of) {
		names = append(names, object.GetName())
	}
	return names
}

func (k *kwoked) nodes() (names []string) {
	list, err := k.cluster.Client.CoreV1().Nodes().List(k.ctx, metav1.ListOptions{})
	k.must(err)
	for _, node := range list.Items {
		names = append(names, node.Name+" "+node.Labels[v1.LabelInstanceTypeStable])
	}
	return names
}

// provider returns Loadline's hands, as a process that has just begun.
func (k *kwoked) provider() *karpenter.Provider {
	k.Helper()
	p, err := karpenter.New(karpenter.DefaultOptions(), k.objects,
		[]*loadlinev1.PriceCatalogue{{Name: "test", Csv: []byte(karpenterPrices)}})
	k.must(err)
	return p
}

const smallGroup = "default/small/z1/on-demand"

// group reads a group as a loop does.
func (k *kwoked) group(p *karpenter.Provider) cloud.Group {
	k.Helper()
	k.must(p.Refresh(k.ctx))
	groups, err := p.Groups(k.ctx, nil)
	k.must(err)
	for _, g := range groups {
		if g.ID == smallGroup {
			return g
		}
	}
	k.Fatalf("no group %s among %v", smallGroup, groups)
	return cloud.Group{}
}

func (k *kwoked) states(p *karpenter.Provider) string {
	var all []string
	for _, m := range k.group(p).Instances {
		all = append(all, strings.TrimSpace(m.GetStatus().GetInstanceState().String()+" "+
			m.GetStatus().GetErrorInfo().GetErrorCode()))
	}
	return strings.Join(all, ", ")
}

// Karpenter's own controllers take our NodeClaims for theirs: each gets a node, which is deleted with it. A process
// that ends in the middle leaves nothing that another one buys again. A claim that Karpenter gives up is an error.
func TestKarpenterLaunchesOurClaims(t *testing.T) {
	k := startKarpenter(t)
	p := k.provider()
	if g := k.group(p); g.Target != 0 || g.Problem != nil {
		t.Fatalf("group %+v", g)
	}
	k.must(p.IncreaseSize(k.ctx, smallGroup, 0, 2))
	p = k.provider() // another process continues
	if g := k.group(p); g.Target != 2 {
		t.Errorf("the new process sees a target of %d, want 2", g.Target)
	}
	k.wait("two nodes", func() bool { return k.states(p) == "INSTANCE_RUNNING, INSTANCE_RUNNING" })
	k.wait("an initialized claim", func() bool { return k.initialized() == 2 })
	node, err := p.TemplateNode(k.ctx, smallGroup)
	if err != nil || node.Status.Allocatable.Cpu().MilliValue() != 1900 {
		t.Errorf("template %v, error %v", node, err)
	}
	machine := k.group(p).Instances[0]
	k.must(p.DeleteNodes(k.ctx, smallGroup, []*v1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Spec: v1.NodeSpec{ProviderID: machine.GetId()}}}))
	k.wait("one node", func() bool { return len(k.nodes()) == 1 && len(k.list(nodeClaims)) == 1 })
	k.insufficient(p)
}

func (k *kwoked) initialized() (count int) {
	for _, claim := range k.list(nodeClaims) {
		conditions, _, _ := unstructured.NestedSlice(claim.Object, "status", "conditions")
		for _, c := range conditions {
			if c, ok := c.(map[string]any); ok && c["type"] == "Initialized" && c["status"] == "True" {
				count++
			}
		}
	}
	return count
}

// insufficient has Karpenter find no capacity: its provider says so of a claim whose node class there is not. The
// NodePool says that its class is not ready too, but only once another one of Karpenter's controllers has seen it.
func (k *kwoked) insufficient(p *karpenter.Provider) {
	k.Helper()
	target := k.group(p).Target
	for {
		k.must(k.objects.Resource(kwokClass).Delete(k.ctx, "default", metav1.DeleteOptions{}))
		if err := p.IncreaseSize(k.ctx, smallGroup, target, 1); err == nil {
			break
		}
		pool, err := harness.Objects([]byte(karpenterPool))
		k.must(err)
		k.must(k.cluster.Apply(k.ctx, pool[:1]))
		k.wait("the class", func() bool { return k.group(p).Problem == nil })
	}
	k.wait("the error of the claim", func() bool { return strings.Contains(k.states(p), "InsufficientCapacity") })
	if g := k.group(p); g.Target != target+1 {
		k.Errorf("target %d, want %d until the machine is given up", g.Target, target+1)
	}
}

// The autoscaler makes nodes for pods by NodeClaims and takes them away again, with the rights of the manifests alone;
// and it leaves a NodePool alone in which Karpenter acts.
func TestAutoscalerWithKarpenter(t *testing.T) {
	t.Parallel()
	k := startKarpenter(t)
	startPlainScheduler(t, k.ctx, k.cluster)
	autoscaler := k.acting().start("autoscaler", "--decisions=scale-up,scale-down", "--max-node-provision-time=10s")
	var pods []*v1.Pod
	for i := range 3 {
		pods = append(pods, waitingPod(fmt.Sprintf("p%d", i)))
	}
	k.must(k.cluster.CreatePods(k.ctx, pods))
	k.wait("nodes for the pods", func() bool { return k.running() == 3 })
	// Three nodes of small cost 0.15 USD per hour, and one of large, which takes all three pods, 0.19.
	if claims := k.list(nodeClaims); len(claims) != 3 {
		t.Errorf("%d NodeClaims were made for 3 pods: %v", len(claims), k.nodes())
	}
	for _, pod := range pods[:2] {
		k.must(k.cluster.DeletePod(k.ctx, pod.Namespace, pod.Name))
	}
	k.wait("two nodes to go", func() bool { return len(k.list(nodeClaims)) == 1 && len(k.nodes()) == 1 })
	if k.running() != 1 {
		t.Error("the pod that stays does not run")
	}
	k.neverRegisters()
	_, err := k.objects.Resource(nodePools).Patch(k.ctx, "default", types.MergePatchType,
		[]byte(`{"spec":{"disruption":{"budgets":[{"nodes":"10%"}]}}}`), metav1.PatchOptions{})
	k.must(err)
	k.wait("the warning", func() bool {
		page, err := autoscaler.Get(k.ctx, "/statusz")
		return err == nil && strings.Contains(page, "Karpenter still removes its nodes")
	})
}

// neverRegisters has the next machines never become nodes. Each is given up, its group backs off, and the other one
// grows in its place: two claims in all, and none of them stays.
func (k *kwoked) neverRegisters() {
	k.Helper()
	k.register("1h")
	before := k.names(nodeClaims)
	k.must(k.cluster.CreatePods(k.ctx, []*v1.Pod{waitingPod("late")}))
	made := map[string]bool{}
	k.wait("both groups to back off", func() bool {
		left := k.names(nodeClaims)
		for _, name := range left {
			if !slices.Contains(before, name) {
				made[name] = true
			}
		}
		status, err := k.cluster.Client.CoreV1().ConfigMaps("kube-system").Get(k.ctx, "loadline-autoscaler-status",
			metav1.GetOptions{})
		return err == nil && strings.Count(status.Data["status"], "backoffInfo:") == 2 && slices.Equal(left, before)
	})
	if len(made) != 2 {
		k.Errorf("%d claims were made for a pod whose nodes never come, want one in each group: %v", len(made), made)
	}
	k.must(k.cluster.DeletePod(k.ctx, "default", "late"))
}

func waitingPod(name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: v1.PodSpec{NodeSelector: map[string]string{"team": "a"}, Containers: []v1.Container{{Name: "c",
			Image: "registry.example/c:1", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
				"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("1Gi")}}}}}}
}

func (k *kwoked) running() (count int) {
	list, err := k.cluster.Client.CoreV1().Pods("default").List(k.ctx, metav1.ListOptions{})
	k.must(err)
	for _, pod := range list.Items {
		if pod.Spec.NodeName != "" {
			count++
		}
	}
	return count
}

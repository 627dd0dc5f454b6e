package karpenter

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/autoscaler/cloud"
)

// prices is a list of three types, of which no one dominates another.
const prices = `instance_type,arch,capacity_vcpu,capacity_memory_mib,allocatable_cpu,allocatable_memory,allocatable_pods,gpu_count,on_demand_usd_per_hour
m5.large,amd64,2,8192,1930m,7000Mi,29,0,0.096
m5.xlarge,amd64,4,16384,3920m,15000Mi,58,0,0.192
g5.xlarge,amd64,4,16384,3920m,15000Mi,58,1,1.006
m7g.large,arm64,2,8192,1930m,7000Mi,29,0,0.0816
`

// pool is a NodePool that is given to Loadline, with Karpenter's own work off.
const managedPool = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default, uid: pool-uid, labels: {loadline.dev/managed: "true"}}
spec:
  template:
    metadata: {labels: {team: a}, annotations: {note: b}}
    spec:
      requirements:
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}
      - {key: topology.kubernetes.io/zone, operator: In, values: [z1]}
      - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.large, m5.xlarge], minValues: 2}
      taints: [{key: dedicated, value: a, effect: NoSchedule}]
      startupTaints: [{key: cilium, effect: NoExecute}]
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: main}
      expireAfter: Never
  limits: {cpu: "0"}
  disruption:
    consolidateAfter: 90s
    budgets: [{nodes: "0"}]
`

// world is an API server without controllers. The test does what Karpenter would.
type world struct {
	*testing.T
	objects *fake.FakeDynamicClient
	p       *Provider
}

func newWorld(t *testing.T, objects ...string) *world {
	t.Helper()
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{nodePools: "NodePoolList", nodeClaims: "NodeClaimList"})
	w := &world{T: t, objects: client}
	for _, text := range objects {
		w.add(text)
	}
	w.restart()
	return w
}

func (w *world) add(text string) {
	w.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		w.Fatal(err)
	}
	of := nodePools
	if object.GetKind() == "NodeClaim" {
		of = nodeClaims
	}
	if _, err := w.objects.Resource(of).Create(w.Context(), object, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// restart has another process take over, which remembers nothing.
func (w *world) restart() *Provider {
	w.Helper()
	p, err := New(DefaultOptions(), w.objects, []*loadlinev1.PriceCatalogue{{Name: "test", Csv: []byte(prices)}})
	if err != nil {
		w.Fatal(err)
	}
	w.p = p
	return p
}

// change changes a claim by JSON paths and values.
func (w *world) change(name string, change func(object map[string]any)) {
	w.Helper()
	object, err := w.objects.Resource(nodeClaims).Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	change(object.Object)
	if _, err := w.objects.Resource(nodeClaims).Update(w.Context(), object, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// launch has Karpenter launch a claim; register has its node register too.
func (w *world) launch(name string) { w.progress(name, "Launched") }

func (w *world) register(name string) { w.progress(name, "Launched", "Registered") }

func (w *world) progress(name string, conditions ...string) {
	w.Helper()
	w.change(name, func(object map[string]any) {
		var all []any
		for _, kind := range conditions {
			all = append(all, map[string]any{"type": kind, "status": "True", "reason": kind, "message": ""})
		}
		object["status"] = map[string]any{"providerID": "aws:///" + name, "nodeName": "node-" + name, "conditions": all,
			"allocatable": map[string]any{"cpu": "1900m", "memory": "6900Mi", "pods": "29"}}
	})
}

// vanish has a claim deleted by another hand.
func (w *world) vanish(name string) {
	w.Helper()
	if err := w.objects.Resource(nodeClaims).Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) claims() []*nodeClaim {
	w.Helper()
	list, err := w.objects.Resource(nodeClaims).List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	all, err := decode[nodeClaim](list.Items, "NodeClaim")
	if err != nil {
		w.Fatal(err)
	}
	return all
}

// groups are those of a loop.
func (w *world) groups() map[string]cloud.Group {
	w.Helper()
	if err := w.p.Refresh(w.Context()); err != nil {
		w.Fatal(err)
	}
	listed, err := w.p.Groups(w.Context(), nil)
	if err != nil {
		w.Fatal(err)
	}
	all := map[string]cloud.Group{}
	for _, g := range listed {
		all[g.ID] = g
	}
	return all
}

// group tells of a group as "target max | id state error, ...", without the names of claims.
func (w *world) group(id string) string {
	w.Helper()
	g, known := w.groups()[id]
	if !known {
		return "none"
	}
	text := fmt.Sprintf("%d of %d", g.Target, g.Max)
	for _, m := range g.Instances {
		before, _, _ := strings.Cut(m.GetId(), ":")
		text += fmt.Sprintf(", %s %s", before, strings.TrimPrefix(m.GetStatus().GetInstanceState().String(), "INSTANCE_"))
		if fault := m.GetStatus().GetErrorInfo(); fault != nil {
			text += fmt.Sprintf(" %s/%d", fault.GetErrorCode(), fault.GetInstanceErrorClass())
		}
	}
	if g.Problem != nil {
		text += ": " + g.Problem.Error()
	}
	return text
}

func (w *world) expect(id, want string) {
	w.Helper()
	if got := w.group(id); got != want {
		w.Errorf("group %s: %s, want %s", id, got, want)
	}
}

func (w *world) grow(id string, from, delta int) {
	w.Helper()
	if err := w.p.IncreaseSize(w.Context(), id, from, delta); err != nil {
		w.Fatal(err)
	}
}

func machine(id string) []*v1.Node {
	return []*v1.Node{{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: v1.NodeSpec{ProviderID: id}}}
}

func (w *world) emptyList() runtime.Object {
	return &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": Version, "kind": "NodeClaimList"}}
}

func optionsText(o *externalgrpc.NodeGroupAutoscalingOptions) string {
	return fmt.Sprintf("%d %v %v", o.GetScaleDownUnneededDuration().GetSeconds(), o.GetScaleDownUtilizationThreshold(),
		o.GetIgnoreDaemonSetsUtilization())
}

// replacePool has somebody change the NodePool.
func (w *world) replacePool(text string) {
	w.Helper()
	if err := w.objects.Resource(nodePools).Delete(w.Context(), "default", metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
	w.add(text)
}

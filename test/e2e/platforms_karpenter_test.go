package e2e

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/test/e2e/harness"
)

// ownPool is the NodePool of somebody who has not heard of Loadline: Karpenter adds and removes its nodes.
const ownPool = kwokNodeClass + `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      requirements:
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      - {key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a]}
      - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.large, m5.xlarge]}
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      expireAfter: Never
  limits: {cpu: "1000"}
  disruption: {consolidateAfter: 2s}
`

// Somebody has a NodePool with a node that Karpenter has made, and hands it over to Loadline by the commands of
// docs/platforms.md. From the first command on, Karpenter makes no node; in mode observe Loadline makes none either,
// but its status says which it would make; in mode act the pods that wait run, and nodes without pods go, that of
// Karpenter too. Loadline's own pods run as processes, with what the API server says of them.
func TestPlatformsPageWithKarpenter(t *testing.T) {
	t.Parallel()
	k := startKarpenterWith(t, harness.Options{ControllerManager: true, Kubelet: true,
		KubeletExcept: []string{"kube-system"}}, ownPool,
		kwokTypeOf("m5.large", "us-east-1a", "2", "8192Mi", "29", 0.096),
		kwokTypeOf("m5.xlarge", "us-east-1a", "4", "16384Mi", "58", 0.192))
	f := follow(t, k.ctx, k.cluster, "## Karpenter")
	startPlainScheduler(t, k.ctx, k.cluster)
	k.must(k.cluster.CreateNodes(k.ctx, []*v1.Node{systemNode()}))
	runner := &harness.PodRunner{Namespaces: []string{"kube-system"}, Args: map[string][]string{"autoscaler": {
		"--scale-down-delay-after-add=1s", "--slack-removal-delay=1s", "--node-delete-delay-after-taint=1s"}}}
	runner.Start(k.ctx, k.cluster)
	const label = "karpenter.sh/nodepool: default"
	f.deploy(1, label)
	f.step("Karpenter has made a node", func() bool { return k.running() == 1 })

	f.next("kubectl patch nodepool default ")
	f.deploy(3, label)
	f.step("Karpenter refuses to make nodes for two more pods", func() bool { return k.refused() == 2 })
	f.next("helm upgrade --install loadline ")
	f.plans("default/m5.")
	f.next("kubectl -n kube-system wait configmap/loadline-autoscaler-status ")
	out := f.next("kubectl -n kube-system get configmap loadline-autoscaler-status ")
	if !strings.Contains(out, "growth:") {
		t.Errorf("the status does not say which groups would grow:\n%s", out)
	}
	if claims := k.names(nodeClaims); len(claims) != 1 || k.running() != 1 {
		t.Errorf("in mode observe there are NodeClaims %v, nodes %v", claims, k.nodes())
	}
	f.next("helm upgrade loadline ")
	f.step("all pods run on nodes that Loadline has asked for", func() bool { return k.running() == 3 })
	f.acts()
	f.deploy(0, label)
	f.step("no node of the NodePool is left", func() bool { return len(k.list(nodeClaims)) == 0 && len(k.nodes()) == 1 })
	f.end()
	k.must(runner.Err())
}

// systemNode returns a node that is not of Karpenter's, for the pods of Loadline.
func systemNode() *v1.Node {
	capacity := v1.ResourceList{v1.ResourceCPU: resource.MustParse("8"), v1.ResourceMemory: resource.MustParse("32Gi"),
		v1.ResourcePods: resource.MustParse("110")}
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "system"},
		Status: v1.NodeStatus{Capacity: capacity, Allocatable: capacity}}
}

// refused counts the pods of which Karpenter says that the limits of the NodePool leave no room for their nodes.
func (k *kwoked) refused() int {
	k.Helper()
	list, err := k.cluster.Client.CoreV1().Events("default").List(k.ctx, metav1.ListOptions{})
	k.must(err)
	pods := map[string]bool{}
	for _, event := range list.Items {
		if strings.Contains(event.Message, "exceed limits for nodepool") {
			pods[event.InvolvedObject.Name] = true
		}
	}
	return len(pods)
}

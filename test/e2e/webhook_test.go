package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/test/e2e/harness"
)

const webhookName = "policy.example.com"

// breakWebhook has a webhook decide about objects of an API group whose service there is not: the API server refuses
// what it is asked about, as while the pods of a policy engine are away. It returns what takes the webhook out again.
func breakWebhook(t *testing.T, ctx context.Context, cluster *harness.Cluster, group string,
	resources ...string) (repair func()) {
	t.Helper()
	webhooks := cluster.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	made, err := webhooks.Create(ctx, &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "policy-"}, Webhooks: []admissionv1.ValidatingWebhook{
			brokenWebhook(webhookName, group, resources...),
			brokenWebhook("probe."+webhookName, "scheduling.k8s.io", "priorityclasses")}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for ; err == nil; time.Sleep(50 * time.Millisecond) { // until the API server has taken note
		_, err = cluster.Client.SchedulingV1().PriorityClasses().Create(ctx, &schedulingv1.PriorityClass{
			ObjectMeta: metav1.ObjectMeta{Name: "probe"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	}
	if !apierrors.IsInternalError(err) {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := webhooks.Delete(ctx, made.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func brokenWebhook(name, group string, resources ...string) admissionv1.ValidatingWebhook {
	return admissionv1.ValidatingWebhook{Name: name, FailurePolicy: new(admissionv1.Fail),
		ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "none",
			Name: "none"}},
		SideEffects: new(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.OperationAll},
			Rule: admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources}}}}
}

// told says whether an event with a reason names the webhook and all of `objects`.
func told(t *testing.T, ctx context.Context, cluster *harness.Cluster, reason string, objects ...string) bool {
	t.Helper()
	list, err := cluster.Client.CoreV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		event := &list.Items[i]
		names := event.Reason == reason && strings.Contains(event.Message, `webhook "`+webhookName+`"`)
		for _, object := range objects {
			names = names && strings.Contains(event.Message, object)
		}
		if names {
			return true
		}
	}
	return false
}

// While a webhook for NodeClaims is down, none is made and none is deleted: events name the group, the NodeClaim and
// the webhook. As soon as it is out of the way the next loops do what is wanted: nothing is bought twice, and no node
// is deleted with pods.
func TestKarpenterWebhookIsDown(t *testing.T) {
	t.Parallel()
	a := startActing(t)
	a.start("autoscaler", "--decisions=scale-up,scale-down", "--initial-node-group-backoff-duration=3s",
		"--max-node-group-backoff-duration=3s", "--scale-down-delay-after-failure=1s")
	repair := breakWebhook(t, a.ctx, a.cluster, "karpenter.sh", "nodeclaims")
	a.deploy("base", 2, "1500m")
	a.wait("the failure of the group", func() bool {
		return told(t, a.ctx, a.cluster, "FailedToScaleUpGroup", smallGroup, "NodeClaim default-")
	})
	a.waitLoops(5)
	a.check("")
	repair()
	a.load.waitRunning("base", 2)
	a.waitLoops(5)
	a.check("2 small")
	a.wait("nodes that Karpenter has initialized", func() bool { return a.initialized() == 2 })

	repair = breakWebhook(t, a.ctx, a.cluster, "karpenter.sh", "nodeclaims")
	a.deploy("base", 1, "1500m")
	a.wait("the failure of the removal", func() bool {
		return told(t, a.ctx, a.cluster, "ScaleDownFailed", "NodeClaim default-")
	})
	a.waitLoops(5)
	if nodes := a.nodes(); len(nodes) != 2 || a.claims.going() != 0 {
		t.Errorf("nodes %v, and %d NodeClaims are being deleted, want 2 and none", nodes, a.claims.going())
	}
	repair()
	a.wait("the node to go", func() bool { return len(a.list(nodeClaims)) == 1 && len(a.nodes()) == 1 })
	a.waitLoops(5)
	a.load.waitRunning("base", 1)
	a.check("2 small")
}

// The same with Cluster API: a webhook for the scale of a MachineDeployment, and for Machines, which are marked before
// they go.
func TestClusterAPIWebhookIsDown(t *testing.T) {
	t.Parallel()
	c := startClusterAPI(t)
	startPlainScheduler(t, c.ctx, c.cluster)
	autoscaler := c.startAutoscaler("--initial-node-group-backoff-duration=3s", "--max-node-group-backoff-duration=3s",
		"--scale-down-delay-after-failure=1s")
	repair := breakWebhook(t, c.ctx, c.cluster, "cluster.x-k8s.io", "machinedeployments/scale", "machines")
	pods := c.createPods(2)
	c.wait("the failure of the group", func() bool { return told(t, c.ctx, c.cluster, "FailedToScaleUpGroup", mdGroup) })
	c.waitLoops(autoscaler, 5)
	if c.replicas() != 0 {
		t.Errorf("%d replicas, want none", c.replicas())
	}
	repair()
	c.wait("nodes for the pods", func() bool { return len(c.running()) == 2 })
	if c.replicas() != 2 || c.made() != 2 {
		t.Errorf("%d replicas, %d machines were made for 2 pods", c.replicas(), c.made())
	}

	stays := c.running()["p1"]
	repair = func() { c.must(c.cluster.DeletePod(c.ctx, pods[0].Namespace, pods[0].Name)) }
	for _, down := range []struct{ resource, object string }{{"machines", "machine md-"},
		{"machinedeployments/scale", mdGroup}} {
		before := repair
		repair = breakWebhook(t, c.ctx, c.cluster, "cluster.x-k8s.io", down.resource)
		before()
		c.wait("the failure of the removal", func() bool {
			return told(t, c.ctx, c.cluster, "ScaleDownFailed", down.object)
		})
		c.waitLoops(autoscaler, 5)
		if c.replicas() != 2 || len(c.nodes()) != 2 {
			t.Errorf("%d replicas, nodes %v while the webhook for %s is down, want 2", c.replicas(), c.nodes(), down.resource)
		}
	}
	repair()
	c.wait("a node to go", func() bool { return len(c.nodes()) == 1 && len(c.names(capiMachines)) == 1 })
	c.waitLoops(autoscaler, 5)
	if left := c.nodes(); c.replicas() != 1 || left[0] != stays || c.running()["p1"] != stays || c.made() != 2 {
		t.Errorf("%d replicas, nodes %v, %d machines were made; the pod that stays ran on %s", c.replicas(), left, c.made(),
			stays)
	}
}

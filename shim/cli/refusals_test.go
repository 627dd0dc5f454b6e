package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Two pods wait: web of 900m and huge of 5 cpu. Nodes of `small` offer 1 cpu, of which a DaemonSet takes 200m on each;
// `spot` has a taint, `full` has its maximum, `blank` neither a template nor a node, `fine` takes web.
const refusalCluster = `apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
- apiVersion: apps/v1
  kind: DaemonSet
  metadata: {name: agent, namespace: shop, uid: u-agent}
  spec:
    selector: {matchLabels: {app: agent}}
    template:
      metadata: {labels: {app: agent}}
      spec:
        nodeSelector: {pool: small}
        containers: [{name: a, image: x, resources: {requests: {cpu: 200m}}}]
- apiVersion: v1
  kind: Node
  metadata: {name: n1, labels: {pool: small, kubernetes.io/os: linux, kubernetes.io/arch: amd64}}
  status:
    allocatable: {cpu: '1', memory: 8Gi, pods: '10'}
    capacity: {cpu: '1', memory: 8Gi, pods: '10'}
    conditions: [{type: Ready, status: 'True'}]
- apiVersion: v1
  kind: Pod
  metadata:
    name: agent-1
    namespace: shop
    labels: {app: agent}
    ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: agent, uid: u-agent, controller: true}]
  spec:
    nodeName: n1
    nodeSelector: {pool: small}
    containers: [{name: a, image: x, resources: {requests: {cpu: 200m}}}]
- apiVersion: v1
  kind: Pod
  metadata: {name: web, namespace: shop}
  spec:
    containers: [{name: a, image: x, resources: {requests: {cpu: 900m}}}]
- apiVersion: v1
  kind: Pod
  metadata:
    name: huge
    namespace: shop
    labels: {scheduling.x-k8s.io/pod-group: train}
    annotations: {autoscaling.x-k8s.io/consume-provisioning-request: later}
  spec:
    containers: [{name: a, image: x, resources: {requests: {cpu: '5'}}}]
- apiVersion: v1
  kind: Pod
  metadata: {name: gated, namespace: shop}
  spec:
    schedulingGates: [{name: example.com/quota}]
    containers: [{name: a, image: x, resources: {requests: {cpu: 900m}}}]
`

func refusalGroups() string {
	group := func(name, max, rest string) string {
		return "apiVersion: loadline.dev/v1alpha1\nkind: NodeGroup\nmetadata: {name: " + name + "}\nspec:\n  min: 0\n" +
			"  max: " + max + "\n  nodeSelector: {pool: " + name + "}\n" + rest + "---\n"
	}
	template := func(name, cpu, taints string) string {
		return "  price: 1\n  template:\n    metadata: {labels: {pool: " + name + "}}\n" +
			"    spec: {taints: [" + taints + "]}\n" +
			"    status: {allocatable: {cpu: '" + cpu + "', memory: 8Gi, pods: '10'}, capacity: {cpu: '" + cpu +
			"', memory: 8Gi, pods: '10'}}\n"
	}
	return group("blank", "3", "") + group("fine", "3", template("fine", "1", "")) +
		group("full", "0", template("full", "2", "")) +
		group("small", "3", template("small", "1", "")) +
		group("spot", "3", template("spot", "2", "{key: spot, effect: NoSchedule}"))
}

// refusalFiles writes both.
func refusalFiles(t *testing.T) (cluster, groups string) {
	t.Helper()
	folder := t.TempDir()
	cluster, groups = filepath.Join(folder, "cluster.yaml"), filepath.Join(folder, "groups.yaml")
	for file, text := range map[string]string{cluster: refusalCluster, groups: refusalGroups()} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cluster, groups
}

func TestWhyNotNamesTheFirstReasonOfEachGroup(t *testing.T) {
	cluster, groups := refusalFiles(t)
	for _, c := range []struct{ pod, want string }{
		{"shop/web", `shop/web: 1 of 5 node groups could grow for it

NODE GROUP   TAKES IT   FILTER             WHY
fine         yes        -                  1 (given) USD/h
blank        no         -                  it has neither a template nor a node, so nobody knows what a new one is
full         no         -                  may not grow further: it has 0 of at most 0 nodes
small        no         NodeResourcesFit   Insufficient cpu beside the pods of DaemonSets that each new node has, such as shop/agent
spot         no         TaintToleration    node(s) had untolerated taint(s): spot:NoSchedule
`},
		{"shop/gated", strings.ReplaceAll(`shop/gated: no node group grows for it: GATED

NODE GROUP   TAKES IT   FILTER             WHY
fine         no         -                  GATED
blank        no         -                  GATED; besides: it has neither a template nor a node, so nobody knows what a new one is
full         no         -                  GATED; besides: may not grow further: it has 0 of at most 0 nodes
small        no         NodeResourcesFit   GATED; besides: Insufficient cpu beside the pods of DaemonSets that each new node has, such as shop/agent
spot         no         TaintToleration    GATED; besides: node(s) had untolerated taint(s): spot:NoSchedule
`, "GATED", "it is gated and waits for no node: example.com/quota has to be taken off first")},
	} {
		out, errs, code := run(t, "loadline", "", "why-not", c.pod, "-f", cluster, "--groups", groups)
		if out != c.want || code != 0 {
			t.Errorf("%s: exit %d %s, got\n%s, want\n%s", c.pod, code, errs, out, c.want)
		}
	}
	out, errs, code := run(t, "loadline", "", "why-not", "shop/web", "spot", "-f", cluster,
		"--groups", groups, "-o", "json")
	if code != 0 || strings.Count(out, `"nodeGroup"`) != 1 || !strings.Contains(out, `"filter": "TaintToleration"`) {
		t.Errorf("exit %d %s: %s", code, errs, out)
	}
	for want, args := range map[string][]string{
		"node group none is not among the 5": {"shop/web", "none"},
		"pod shop/none is not in":            {"shop/none"},
		"no --question":                      {"shop/web", "--question", "x"},
	} {
		if _, errs, code := run(t, "loadline", "", append(append([]string{"why-not"}, args...),
			"-f", cluster, "--groups",
			groups)...); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%v: exit %d %s, want %q", args, code, errs, want)
		}
	}
}

func TestRankAndPlanNameTheFirstReasonOfEachGroup(t *testing.T) {
	cluster, groups := refusalFiles(t)
	rank, errs, code := run(t, "loadline", "", "rank", "-f", cluster, "--groups", groups)
	for _, want := range []string{"small            0      0", "shop/huge: Insufficient cpu",
		"2 pods, such as shop/huge: node(s) had untolerated taint(s): spot:NoSchedule",
		"Pod shop/huge is of a ProvisioningRequest (later)",
		"Pod shop/huge is of a gang (train): it is not planned as a whole",
		"Pod shop/gated is gated and waits for no node"} {
		if code != 0 || !strings.Contains(rank, want) {
			t.Errorf("rank: exit %d %s, want %q in\n%s", code, errs, want, rank)
		}
	}
	plan, errs, code := run(t, "loadline", "", "plan", "-f", cluster, "--groups", groups,
		"--extra-capacity-min-rate", "0")
	const want = `2 pods wait, 1 on a new node, 1 nowhere; 1 node to ask for

PODS   SUCH AS     EXPECTED ON
   1   shop/web    a new node of fine
   1   shop/huge   -

NODE GROUP   TAKES NO MORE OF   SUCH AS     FILTER             WHY
blank                       1   shop/huge   -                  it has neither a template nor a node, so nobody knows what a new one is
fine                        1   shop/huge   NodeResourcesFit   Insufficient cpu
full                        1   shop/huge   NodeResourcesFit   Insufficient cpu
small                       1   shop/huge   NodeResourcesFit   Insufficient cpu
spot                        1   shop/huge   TaintToleration    node(s) had untolerated taint(s): spot:NoSchedule
`
	if code != 0 || !strings.HasPrefix(plan, want) {
		t.Errorf("plan: exit %d %s, got\n%s, want\n%s", code, errs, plan, want)
	}
}

// A group that is asked about alone is the verdict, and one that is sized grows for no pod.
func TestWhyNotOfOneGroupSaysItInItsVerdict(t *testing.T) {
	cluster, groups := refusalFiles(t)
	text, err := os.ReadFile(groups)
	if err != nil {
		t.Fatal(err)
	}
	sized := `apiVersion: loadline.dev/v1alpha1
kind: NodeGroup
metadata: {name: sized}
spec:
  max: 3
  nodeSelector: {pool: sized}
  template:
    metadata: {labels: {pool: sized}}
    status: {allocatable: {cpu: '2', memory: 8Gi, pods: '10'}, capacity: {cpu: '2', memory: 8Gi, pods: '10'}}
  size:
    {scaleUpThresholdPercent: 70, taintUpperCapacityThresholdPercent: 40, taintLowerCapacityThresholdPercent: 20,
     softDeleteGracePeriod: 1m, hardDeleteGracePeriod: 10m, scaleUpCoolDownPeriod: 1m, slowNodeRemovalRate: 1,
     fastNodeRemovalRate: 2}
`
	if err := os.WriteFile(groups, append(text, sized...), 0o600); err != nil {
		t.Fatal(err)
	}
	for group, want := range map[string]string{
		"fine":  "fine could grow for shop/web\n",
		"full":  "full does not grow for shop/web: may not grow further: it has 0 of at most 0 nodes\n",
		"sized": "sized does not grow for shop/web: it grows by nothing but how full it is\n",
	} {
		out, errs, code := run(t, "loadline", "", "why-not", "shop/web", group, "-f", cluster, "--groups", groups)
		if code != 0 || !strings.HasPrefix(out, want) {
			t.Errorf("%s: got %d, %s%s, want %s", group, code, out, errs, want)
		}
	}
}

// No group grows for pods that wait for no further node, and the verdict says why.
func TestWhyNotOfPodsForWhichNoGroupGrows(t *testing.T) {
	cluster, groups := refusalFiles(t)
	text, err := os.ReadFile(cluster)
	if err != nil {
		t.Fatal(err)
	}
	const more = `- {apiVersion: v1, kind: Pod, metadata: {name: low, namespace: shop},
   spec: {priority: -20, containers: [{name: a}]}}
- apiVersion: v1
  kind: Pod
  metadata: {name: done, namespace: shop}
  spec: {containers: [{name: a}]}
  status: {phase: Succeeded, conditions: [{type: PodScheduled, status: 'True'}]}
- {apiVersion: v1, kind: Pod, metadata: {name: goes, namespace: shop, deletionTimestamp: '2026-11-20T12:00:00Z'},
   spec: {containers: [{name: a}]}}
- apiVersion: v1
  kind: Pod
  metadata:
    name: agent-2
    namespace: shop
    ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: agent, uid: u-agent, controller: true}]
  spec: {containers: [{name: a}]}
- apiVersion: v1
  kind: Pod
  metadata:
    name: young
    namespace: shop
    creationTimestamp: '2026-11-20T11:00:00Z'
    annotations: {cluster-autoscaler.kubernetes.io/pod-scale-up-delay: 2h}
  spec: {containers: [{name: a}]}
`
	if err := os.WriteFile(cluster, append(text, more...), 0o600); err != nil {
		t.Fatal(err)
	}
	const atNoon, later = "2026-11-20T12:00:00Z", "2026-11-20T13:00:00Z"
	for _, c := range []struct{ pod, now, want string }{
		{"gated", atNoon, "it is gated and waits for no node: example.com/quota has to be taken off first"},
		{"low", atNoon, "it is of a priority below -10 (-20): no group grows for such pods"},
		{"done", atNoon, "it has ended"},
		{"goes", atNoon, "it is being deleted"},
		{"agent-2", atNoon, "it is of DaemonSet agent and belongs to one node: no new one helps"},
		{"young", atNoon, "it is younger than the delay that it states (2h0m0s): no group grows for such pods"},
		{"young", later, ""},
	} {
		args := []string{"why-not", "shop/" + c.pod, "fine", "-f", cluster, "--groups", groups, "--now", c.now}
		out, errs, code := run(t, "loadline", "", args...)
		want := "fine does not grow for shop/" + c.pod + ": " + c.want + "\n"
		if c.want == "" {
			want = "shop/" + c.pod + " finds room on n1, so no group grows for it\n"
		}
		if code != 0 || !strings.HasPrefix(out, want) {
			t.Errorf("%s: exit %d %s: %s, want %s", c.pod, code, errs, out, want)
		}
		if out, _, _ = run(t, "loadline", "", append(args, "-o", "json")...); !strings.Contains(out, `"takes": false`) ||
			c.want != "" && !strings.Contains(out, `"reason": "`+c.want+`"`) {
			t.Errorf("%s: %s", c.pod, out)
		}
	}
}

// A group at its maximum says that of the pods that a new node of it would take.
func TestRankSaysFirstWhatHoldsForPodsThatNoFilterRefuses(t *testing.T) {
	cluster, groups := refusalFiles(t)
	out, errs, code := run(t, "loadline", "", "rank", "-f", cluster, "--groups", groups)
	if code != 0 || !strings.Contains(out, "   shop/web: may not grow further: it has 0 of at most 0 nodes\n") {
		t.Errorf("exit %d %s:\n%s", code, errs, out)
	}
}

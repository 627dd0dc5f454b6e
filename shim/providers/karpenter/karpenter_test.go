package karpenter

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	k8stesting "k8s.io/client-go/testing"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/autoscaler/cloud"
)

const small = "default/m5.large/z1/on-demand"

// A group for each instance type that the pool allows, in each capacity type.
func TestGroups(t *testing.T) {
	w := newWorld(t, managedPool, strings.NewReplacer("default", "other", `loadline.dev/managed: "true"`, "a: b").
		Replace(managedPool))
	var ids []string
	for id := range w.groups() {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	if want := []string{small, "default/m5.large/z1/spot", "default/m5.xlarge/z1/on-demand",
		"default/m5.xlarge/z1/spot"}; !slices.Equal(ids, want) {
		t.Errorf("groups %v, want %v", ids, want)
	}
	w.expect(small, "0 of 1000")
	node, err := w.p.TemplateNode(t.Context(), small)
	if err != nil || node.Status.Allocatable.Cpu().MilliValue() != 1930 || len(node.Spec.Taints) != 1 ||
		node.Labels["team"] != "a" || node.Labels[nodePoolLabel] != "default" ||
		node.Labels[v1.LabelInstanceTypeStable] != "m5.large" || node.Labels[capacityTypeLabel] != "on-demand" ||
		node.Labels[v1.LabelTopologyZone] != "z1" || node.Labels["karpenter.k8s.aws/instance-category"] != "m" {
		t.Errorf("template %v, error %v", node, err)
	}
}

// The weight of a NodePool is the priority of its groups, 0 where there is none.
func TestWeightIsThePriorityOfGroups(t *testing.T) {
	w := newWorld(t, managedPool, strings.NewReplacer("name: default", "name: preferred", "spec:\n  template",
		"spec:\n  weight: 10\n  template").Replace(managedPool))
	for id, g := range w.groups() {
		if want := map[bool]int64{true: 10}[strings.HasPrefix(id, "preferred/")]; *g.Priority != want {
			t.Errorf("%s has priority %d, want %d", id, *g.Priority, want)
		}
	}
}

// A claim is made, launched, registered, and deleted when its node is.
func TestLifeOfANode(t *testing.T) {
	w := newWorld(t, managedPool)
	w.grow(small, 0, 1)
	c := w.claims()[0]
	w.expect(small, "1 of 1000, nodeclaim CREATING")
	w.launch(c.Name)
	w.expect(small, "1 of 1000, aws CREATING")
	w.register(c.Name)
	w.expect(small, "1 of 1000, aws RUNNING")
	if node, _ := w.p.TemplateNode(t.Context(), small); node.Status.Allocatable.Cpu().MilliValue() != 1900 {
		t.Errorf("the template offers %v, not what its node does", node.Status.Allocatable)
	}
	// A claim that has become a node is not deleted as a machine without one.
	err := w.p.DeleteNodes(t.Context(), small, machine(idPrefix+c.Name))
	if status.Code(err) != codes.FailedPrecondition || cloud.OutcomeUnknown(err) || len(w.claims()) != 1 {
		t.Errorf("%d claims, error %v", len(w.claims()), err)
	}
	if err := w.p.DeleteNodes(t.Context(), small, machine("aws:///other")); status.Code(err) != codes.NotFound ||
		len(w.claims()) != 1 {
		t.Errorf("%d claims, error %v", len(w.claims()), err)
	}
	if err := w.p.DeleteNodes(t.Context(), small, machine("aws:///"+c.Name)); err != nil || len(w.claims()) != 0 {
		t.Errorf("%d claims, error %v", len(w.claims()), err)
	}
	w.expect(small, "0 of 1000")
}

// A claim has what its NodePool says, and one value of each of instance type, zone and capacity type.
func TestClaim(t *testing.T) {
	w := newWorld(t, managedPool)
	w.grow("default/m5.xlarge/z1/spot", 0, 1)
	c := w.claims()[0]
	for key, want := range map[string]string{v1.LabelInstanceTypeStable: "m5.xlarge", v1.LabelTopologyZone: "z1",
		capacityTypeLabel: "spot", v1.LabelArchStable: "amd64", v1.LabelOSStable: "linux"} {
		if got := singleValue(c.Spec.Requirements, key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	for _, r := range c.Spec.Requirements {
		if r.MinValues != nil {
			t.Errorf("requirement %+v cannot be met", r)
		}
	}
	if c.Labels["team"] != "a" || c.Labels[nodePoolLabel] != "default" ||
		c.Labels["karpenter.k8s.aws/ec2nodeclass"] != "main" || c.Annotations["note"] != "b" ||
		len(c.OwnerReferences) != 1 || c.OwnerReferences[0].UID != "pool-uid" || len(c.Spec.Taints) != 1 ||
		len(c.Spec.StartupTaints) != 1 || c.Spec.NodeClassRef.Name != "main" || c.Spec.ExpireAfter != "Never" ||
		c.Spec.Resources.Requests.Cpu().MilliValue() != 3528 { // 90 % of 3920m
		t.Errorf("claim %+v", c)
	}
}

// A claim that Karpenter gives up before it is launched is one of a type that is not to be had, and one that it gives
// up later has not registered. Both count until they are given up, so that nothing is bought in their place
// unknowingly.
func TestFailedClaims(t *testing.T) {
	w := newWorld(t, managedPool)
	w.grow(small, 0, 2)
	w.launch(w.claims()[1].Name)
	w.expect(small, "2 of 1000, nodeclaim CREATING, aws CREATING")
	for _, c := range w.claims() {
		w.vanish(c.Name)
	}
	g := w.groups()[small]
	codes := map[string]int32{}
	for _, m := range g.Instances {
		codes[m.GetStatus().GetErrorInfo().GetErrorCode()] = m.GetStatus().GetErrorInfo().GetInstanceErrorClass()
	}
	if g.Target != 2 || len(codes) != 2 || codes["InsufficientCapacity"] != outOfResources ||
		codes["NotRegistered"] != otherError {
		t.Errorf("target %d, errors %v", g.Target, codes)
	}
	for _, m := range g.Instances {
		if err := w.p.DeleteNodes(t.Context(), small, machine(m.GetId())); err != nil {
			t.Error(err)
		}
	}
	w.expect(small, "0 of 1000")
}

// A claim that Karpenter cannot launch, and tries to again, has an error.
func TestLaunchFails(t *testing.T) {
	w := newWorld(t, managedPool)
	w.grow(small, 0, 1)
	w.change(w.claims()[0].Name, func(object map[string]any) {
		object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Launched", "status": "Unknown",
			"reason": "LaunchFailed", "message": "no such subnet"}}}
	})
	w.expect(small, "1 of 1000, nodeclaim CREATING LaunchFailed/99")
}

// A process that takes over knows of each claim, and takes one that it finds waiting for its own.
func TestRestart(t *testing.T) {
	w := newWorld(t, managedPool)
	w.grow(small, 0, 3)
	p := w.restart()
	w.expect(small, "3 of 1000, nodeclaim CREATING, nodeclaim CREATING, nodeclaim CREATING")
	if err := p.IncreaseSize(t.Context(), small, 0, 3); !errors.Is(err, cloud.ErrChanged) || len(w.claims()) != 3 {
		t.Errorf("%d claims, error %v", len(w.claims()), err)
	}
	w.vanish(w.claims()[0].Name)
	if got := w.group(small); !strings.Contains(got, "InsufficientCapacity/1") || !strings.HasPrefix(got, "3 of") {
		t.Errorf("group: %s", got)
	}
}

// Two who look before either has bought buy once: the second finds the first claim by its name.
func TestTwoOwners(t *testing.T) {
	w := newWorld(t, managedPool)
	first := w.p
	second := w.restart()
	for _, p := range []*Provider{first, second} {
		if err := p.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	stale := func(k8stesting.Action) (bool, runtime.Object, error) { // what the second lists is old
		return true, w.emptyList(), nil
	}
	if err := first.IncreaseSize(t.Context(), small, 0, 2); err != nil {
		t.Fatal(err)
	}
	w.objects.PrependReactor("list", "nodeclaims", stale)
	err := second.IncreaseSize(t.Context(), small, 0, 2)
	w.objects.ReactionChain = w.objects.ReactionChain[1:]
	if !errors.Is(err, cloud.ErrChanged) || cloud.OutcomeUnknown(err) || len(w.claims()) != 2 {
		t.Errorf("%d claims, error %v", len(w.claims()), err)
	}
}

// After an error in the middle nobody knows how many there are, and before the first one everybody does.
func TestErrorsOfTheAPIServer(t *testing.T) {
	for _, c := range []struct {
		name    string
		err     error
		fails   int // the request that fails
		unknown bool
		text    string
	}{
		{"rights at first", apierrors.NewForbidden(nodeClaims.GroupResource(), "", errors.New("no")), 1, false,
			"manifests/autoscaler/karpenter"},
		{"rights later", apierrors.NewForbidden(nodeClaims.GroupResource(), "", errors.New("no")), 2, true, ""},
		{"time is up", apierrors.NewTimeoutError("slow", 1), 1, true, ""},
		{"etcd is down", apierrors.NewInternalError(errors.New("etcdserver: request timed out")), 1, true, "etcd"},
		{"webhook is down", webhookDown, 1, false, "webhook"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, managedPool)
			calls := 0
			w.objects.PrependReactor("create", "nodeclaims", func(k8stesting.Action) (bool, runtime.Object, error) {
				calls++
				return calls == c.fails, nil, c.err
			})
			err := w.p.IncreaseSize(t.Context(), small, 0, 3)
			if err == nil || cloud.OutcomeUnknown(err) != c.unknown || !strings.Contains(err.Error(), c.text) ||
				len(w.claims()) != c.fails-1 {
				t.Errorf("%d claims, error %v", len(w.claims()), err)
			}
		})
	}
}

// Without the definitions, or the rights to list, nothing is done, and the error says what is missing.
func TestNothingIsListed(t *testing.T) {
	for text, err := range map[string]error{
		"has no nodepools of karpenter.sh/v1": apierrors.NewNotFound(nodePools.GroupResource(), ""),
		"see manifests/autoscaler/karpenter":  apierrors.NewForbidden(nodePools.GroupResource(), "", errors.New("no")),
	} {
		w := newWorld(t, managedPool)
		w.objects.PrependReactor("list", "nodepools", func(k8stesting.Action) (bool, runtime.Object, error) {
			return true, nil, err
		})
		for _, ask := range []func() error{
			func() error { return w.p.Refresh(t.Context()) },
			func() error { return w.p.IncreaseSize(t.Context(), small, 0, 1) },
			func() error { return w.p.DeleteNodes(t.Context(), small, machine("aws:///a")) },
		} {
			if err := ask(); err == nil || !strings.Contains(err.Error(), text) || cloud.OutcomeUnknown(err) {
				t.Errorf("error %v, want %q in it", err, text)
			}
		}
	}
}

// Beside Karpenter's own work nothing is done, and the status says what to change.
func TestKarpenterIsNotOff(t *testing.T) {
	for _, c := range []struct{ old, new, text string }{
		{`limits: {cpu: "0"}`, `limits: {cpu: "10"}`, `set spec.limits to {cpu: "0"}`},
		{`limits: {cpu: "0"}`, ``, "Karpenter still makes nodes"},
		{`budgets: [{nodes: "0"}]`, ``, `set spec.disruption.budgets to [{nodes: "0"}]`},
		{`{nodes: "0"}`, `{nodes: "0", reasons: [Empty]}`, "Karpenter still removes"},
		{`{nodes: "0"}`, `{nodes: "0", schedule: "@daily", duration: 1h}`, "Karpenter still removes"},
		{`limits: {cpu: "0"}`, `replicas: 3`, "spec.replicas"},
		{`uid: pool-uid`, `annotations: {loadline.dev/limits: cpu}`, "loadline.dev/limits: must be RESOURCE=QUANTITY"},
	} {
		w := newWorld(t, strings.Replace(managedPool, c.old, c.new, 1))
		g := w.groups()[small]
		if g.Problem == nil || !strings.Contains(g.Problem.Error(), c.text) || g.Max != g.Target {
			t.Errorf("%s: problem %v, max %d", c.new, g.Problem, g.Max)
		}
		err := w.p.IncreaseSize(t.Context(), small, 0, 1)
		if err == nil || len(w.claims()) != 0 {
			t.Errorf("%s: %d claims, error %v", c.new, len(w.claims()), err)
		}
	}
}

// The command of docs/platforms.md gives a NodePool of Karpenter's away: it has groups then, within the limits that the
// command states, and without a problem.
func TestPageGivesANodePoolAway(t *testing.T) {
	page, err := os.ReadFile("../../../docs/platforms.md")
	if err != nil {
		t.Fatal(err)
	}
	_, command, found := strings.Cut(string(page), "kubectl patch nodepool default --type merge -p '")
	patch, _, ends := strings.Cut(command, "'")
	if !found || !ends {
		t.Fatal("the page has no such command")
	}
	plain := managedPool
	for _, ours := range []string{`, labels: {loadline.dev/managed: "true"}`, `  limits: {cpu: "0"}` + "\n",
		`    budgets: [{nodes: "0"}]` + "\n"} {
		if !strings.Contains(plain, ours) {
			t.Fatalf("no %q", ours)
		}
		plain = strings.Replace(plain, ours, "", 1)
	}
	w := newWorld(t, plain)
	if groups := w.groups(); len(groups) != 0 {
		t.Errorf("%d groups of a NodePool that is Karpenter's", len(groups))
	}
	if _, err := w.objects.Resource(nodePools).Patch(t.Context(), "default", types.MergePatchType, []byte(patch),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	g := w.groups()[small]
	if g.Problem != nil || g.Max != 518 { // 1000 cpus, of which one node has 1930m
		t.Errorf("problem %v, at most %d nodes", g.Problem, g.Max)
	}
}

// The limits of the annotation hold for the pool as a whole. A node of m5.large has 1930m: 5 of them are 9650m.
func TestLimits(t *testing.T) {
	for limits, want := range map[string]string{"cpu=9650m": "0 of 5", "cpu=9640m": "0 of 4", "nodes=2": "0 of 2",
		"cpu=100, nodes=3": "0 of 3", "example.com/gpu=0": "0 of 1000"} {
		w := newWorld(t, strings.Replace(managedPool, "uid: pool-uid", "annotations: {loadline.dev/limits: '"+limits+"'}", 1))
		w.expect(small, want)
	}
	w := newWorld(t, strings.Replace(managedPool, "uid: pool-uid", "annotations: {loadline.dev/limits: nodes=3}", 1))
	w.grow(small, 0, 2)
	w.expect("default/m5.xlarge/z1/spot", "0 of 1")
	if err := w.p.IncreaseSize(t.Context(), small, 2, 2); err == nil || len(w.claims()) != 2 {
		t.Errorf("%d claims, error %v", len(w.claims()), err)
	}
	// Groups of a pool share its limits. One that is too late has not failed, unless it could never have grown so.
	w = newWorld(t, strings.Replace(managedPool, "uid: pool-uid", "annotations: {loadline.dev/limits: nodes=3}", 1))
	const large = "default/m5.xlarge/z1/spot"
	w.expect(large, "0 of 3")
	w.grow(small, 0, 2)
	for delta, late := range map[int]bool{2: true, 4: false, 0: false} {
		err := w.p.IncreaseSize(t.Context(), large, 0, delta)
		if err == nil || errors.Is(err, cloud.ErrChanged) != late || len(w.claims()) != 2 {
			t.Errorf("%d claims, error %v", len(w.claims()), err)
		}
	}
	// Claims request a tenth less than what a node offers. The limit is of nodes all the same, before they are launched.
	w = newWorld(t, strings.Replace(managedPool, "uid: pool-uid", "annotations: {loadline.dev/limits: cpu=19300m}", 1))
	w.grow(small, 0, 9)
	if g := w.groups()[small]; g.Target != 9 || g.Max != 10 {
		t.Errorf("%d nodes of %d", g.Target, g.Max)
	}
	w.grow(small, 9, 1)
	if err := w.p.IncreaseSize(t.Context(), small, 10, 1); err == nil || len(w.claims()) != 10 {
		t.Errorf("%d claims, error %v", len(w.claims()), err)
	}
}

// Nodes that Karpenter made are in the group of their labels, and in one of their own where there is none.
func TestNodesOfKarpenterAreTakenOver(t *testing.T) {
	const old = `
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: NAME, labels: {karpenter.sh/nodepool: default, node.kubernetes.io/instance-type: KIND, topology.kubernetes.io/zone: ZONE, karpenter.sh/capacity-type: on-demand}}
spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: main}}
`
	made := func(name, kind, zone string) string {
		return strings.NewReplacer("NAME", name, "KIND", kind, "ZONE", zone).Replace(old)
	}
	w := newWorld(t, managedPool, made("a", "m5.large", "z1"), made("b", "m5.large", "z9"), made("c", "x1.odd", "z1"))
	for _, name := range []string{"a", "b", "c"} {
		w.register(name)
	}
	w.expect(small, "1 of 1000, aws RUNNING")
	w.expect("default/m5.large/z9/on-demand", "1 of 1, aws RUNNING") // a new node would not be in z1
	if err := w.p.DeleteNodes(t.Context(), "default/x1.odd/z1/on-demand", machine("aws:///c")); err != nil ||
		len(w.claims()) != 2 {
		t.Errorf("%d claims, error %v", len(w.claims()), err)
	}
	w.add(made("d", `""`, `""`))
	if got := w.group(small); !strings.Contains(got, "NodeClaim d of NodePool default, which Loadline did not make") {
		t.Errorf("group: %s", got)
	}
}

// The NodePool says when its nodes may go.
func TestDisruption(t *testing.T) {
	defaults := &externalgrpc.NodeGroupAutoscalingOptions{ScaleDownUtilizationThreshold: 0.5}
	for text, want := range map[string]string{"consolidateAfter: 90s": "90 0.5 false",
		"consolidateAfter: Never":                                  "3153600000 0.5 false",
		"consolidateAfter: 0s\n    consolidationPolicy: WhenEmpty": "0 0 true"} {
		w := newWorld(t, strings.Replace(managedPool, "consolidateAfter: 90s", text, 1))
		w.groups()
		groups, err := w.p.Groups(t.Context(), defaults)
		if err != nil {
			t.Fatal(err)
		}
		if got := optionsText(groups[0].Options); got != want || defaults.ScaleDownUnneededDuration != nil {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

package clusterapi

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/autoscaler/cloud"
)

const id = "MachineDeployment/ns/md"

var bothVersions = []string{"v1beta1", "v1beta2"}

// told returns what a provider says of its groups, a line for each.
func told(t *testing.T, p *Provider) string {
	t.Helper()
	groups, err := p.Groups(t.Context(), &externalgrpc.NodeGroupAutoscalingOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, g := range groups {
		line := fmt.Sprintf("%s %d-%d target %d", g.ID, g.Min, g.Max, g.Target)
		for _, i := range g.Instances {
			state := strings.TrimPrefix(i.GetStatus().GetInstanceState().String(), "INSTANCE_")
			line += fmt.Sprintf(", %s %s", i.GetId(), strings.ToLower(state))
			if e := i.GetStatus().GetErrorInfo(); e != nil {
				line += fmt.Sprintf(" %s %d", e.GetErrorCode(), e.GetInstanceErrorClass())
			}
		}
		if g.Problem != nil {
			line += ": " + g.Problem.Error()
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestGroups(t *testing.T) {
	failing := map[string]string{"v1beta1": "status", "v1beta2": "status deprecated v1beta1"}
	for _, version := range bothVersions {
		objects := append(deployment("1 5"),
			scalable(setKind, "alone", 1, "0 3"), machine("alone", "d", "sim://d"),
			with(machine("alone", "e", ""), "InsufficientResources",
				append(strings.Fields(failing[version]), "failureReason")...),
			with(machine("alone", "f", "sim://f"), "2026-11-27T00:00:00Z", "metadata", "deletionTimestamp"),
			with(scalable(poolKind, "pool", 2, "0 4"), []any{"sim://p", "sim://q"}, "spec", "providerIDList"),
			scalable(deploymentKind, "no-group", 1, ""), scalable(deploymentKind, "switched-off", 1, "0 0"),
			scalable(deploymentKind, "odd", 1, "5 2"),
			scalable(deploymentKind, "paused", 1, "0 2", "cluster.x-k8s.io/paused", ""),
			with(scalable(deploymentKind, "going", 1, "0 2"), "2026-11-27T00:00:00Z", "metadata", "deletionTimestamp"))
		want := []string{
			"MachineDeployment/ns/going 0-2 target 1: MachineDeployment/ns/going is being deleted",
			id + " 1-5 target 3, sim://a running, sim://b running, pending-machine-ns_c creating",
			"MachineDeployment/ns/odd 0-0 target 1: annotations " + annotation + "min-size 5 and " + annotation +
				"max-size 2: the maximum is below the minimum",
			"MachineDeployment/ns/paused 0-2 target 1: MachineDeployment/ns/paused is paused: no controller looks after it",
			"MachinePool/ns/pool 2-4 target 2, sim://p running, sim://q running",
			"MachineSet/ns/alone 0-3 target 1, sim://d running, pending-machine-ns_e creating InsufficientResources 1, " +
				"sim://f deleting"}
		if got := told(t, newWorld(t, version, objects...).provider()); got != strings.Join(want, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", version, got, strings.Join(want, "\n"))
		}
	}
}

// No node of a MachineDeployment is removed that replaces its machines; it may grow.
func TestRollingOut(t *testing.T) {
	second := with(scalable(setKind, "md-2", 1, "1 5"), map[string]any{"cluster.x-k8s.io/cluster-name": "c"},
		"metadata", "labels")
	objects := append(deployment("1 5"), owned(second, deploymentKind, "md"), machine("md-2", "z", "sim://z"))
	w := newWorld(t, "v1beta2", objects...)
	p := w.provider()
	if got := told(t, p); !strings.HasPrefix(got, id+" 3-5 target 3") {
		t.Error(got)
	}
	err := p.DeleteNodes(t.Context(), id, []*v1.Node{node("a", "sim://a")})
	if err == nil || !strings.Contains(err.Error(), "are being replaced") {
		t.Errorf("error %v", err)
	}
	if err := p.IncreaseSize(t.Context(), id, 3, 2); err != nil {
		t.Error(err)
	}
	w.expect(deploymentKind, "md", 5)
}

func TestDiscovery(t *testing.T) {
	blue := with(scalable(deploymentKind, "blue", 1, "0 2"), map[string]any{"color": "blue"}, "metadata", "labels")
	other := with(scalable(deploymentKind, "other", 1, "0 2"), "d", "spec", "clusterName")
	for scopes, want := range map[string]string{
		"":                                   "blue md other",
		"clusterapi:":                        "blue md other",
		"clusterapi:clusterName=d":           "other",
		"clusterapi:color=blue":              "blue",
		"clusterapi:namespace=ns,color=blue": "blue",
		"clusterapi:namespace=elsewhere":     "",
		"clusterapi:clusterName=c,color=blue|clusterapi:clusterName=d": "blue other",
	} {
		var given []string
		if scopes != "" {
			given = strings.Split(scopes, "|")
		}
		p := newWorld(t, "v1beta2", append(deployment("1 5"), blue.DeepCopy(), other.DeepCopy())...).provider(given...)
		groups, err := p.Groups(t.Context(), nil)
		var names []string
		for _, g := range groups {
			names = append(names, g.ID[strings.LastIndex(g.ID, "/")+1:])
		}
		if err != nil || strings.Join(names, " ") != want {
			t.Errorf("%s: %v, %v, want %s", scopes, names, err, want)
		}
		for _, g := range groups { // machines of more than one cluster cannot all be nodes of this one
			several := strings.Contains(want, " other")
			if (g.Problem != nil) != several ||
				several && !strings.Contains(g.Problem.Error(), "2 clusters, such as ns/c and ns/d") {
				t.Errorf("%s: %s has the problem %v", scopes, g.ID, g.Problem)
			}
		}
	}
	for entry, want := range map[string]string{"asg:tag=x": "must be clusterapi:", "clusterapi": "must be clusterapi:",
		"clusterapi:x": "\"x\" must be KEY=VALUE", "clusterapi:a=b=c": "must be KEY=VALUE", "clusterapi:!=x": "!"} {
		if err := (&Options{NodeGroupAutoDiscovery: []string{entry}}).Check(); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", entry, err)
		}
	}
}

func TestIncrease(t *testing.T) {
	for _, c := range []struct {
		from, delta, target int
		want                string
	}{{3, 2, 5, ""}, {3, 3, 3, "may not have 3 more: its maximum is 5"}, {2, 1, 3, "it is 3 and not 2"},
		{3, 0, 3, "0 more"}} {
		w := newWorld(t, "v1beta2", deployment("1 5")...)
		err := w.provider().IncreaseSize(t.Context(), id, c.from, c.delta)
		if err == nil != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v", c, err)
		}
		if errors.Is(err, cloud.ErrChanged) != (c.from != 3) {
			t.Errorf("%+v: error %v", c, err)
		}
		w.expect(deploymentKind, "md", c.target)
	}
	w := newWorld(t, "v1beta2", deployment("0 5")...)
	if err := w.provider().IncreaseSize(t.Context(), "MachineDeployment/ns/x", 3, 1); !errors.Is(err, errUnknownGroup) {
		t.Errorf("error %v", err)
	}
}

// The status of a group is written between the look and the write: the change is made all the same, once. If that
// happens each time, nothing is done, and no machine stays marked. A group grows from no other target than was meant.
func TestConflicts(t *testing.T) {
	for name, c := range map[string]struct {
		writes, other int // by others, and the target that they leave
		grown, shrunk int
		marked        []string
	}{"Once": {1, 3, 4, 2, []string{"a"}}, "EachTime": {100, 3, 3, 3, nil}, "OtherTarget": {1, 4, 4, 3, []string{"a"}}} {
		w := newWorld(t, "v1beta2", deployment("0 5")...)
		p := w.provider()
		w.writeBetween(c.writes, c.other)
		if err := p.IncreaseSize(t.Context(), id, 3, 1); errors.Is(err, cloud.ErrChanged) != (name != "Once") {
			t.Errorf("%s: growth: error %v", name, err)
		}
		w.expect(deploymentKind, "md", c.grown)
		w = newWorld(t, "v1beta2", deployment("0 5")...)
		p = w.provider()
		w.writeBetween(c.writes, c.other)
		err := p.DeleteNodes(t.Context(), id, []*v1.Node{node("a", "sim://a")})
		if errors.Is(err, cloud.ErrChanged) != (name == "EachTime") {
			t.Errorf("%s: deletion: error %v", name, err)
		}
		w.expect(deploymentKind, "md", c.shrunk, c.marked...)
	}
}

func TestDeleteNodes(t *testing.T) {
	w := newWorld(t, "v1beta1", deployment("1 5")...)
	p := w.provider()
	if err := p.DeleteNodes(t.Context(), id, []*v1.Node{node("b", "sim://b")}); err != nil {
		t.Fatal(err)
	}
	w.expect(deploymentKind, "md", 2, "b")
	// A node whose deletion was asked for is not asked for again, and shows as being deleted before anybody has begun.
	if err := p.DeleteNodes(t.Context(), id, []*v1.Node{node("b", "sim://b")}); err != nil {
		t.Fatal(err)
	}
	w.expect(deploymentKind, "md", 2, "b")
	w.refresh(p)
	if want := id + " 1-5 target 2, sim://a running, sim://b deleting, pending-machine-ns_c creating"; told(t, p) != want {
		t.Errorf("%s\nwant %s", told(t, p), want)
	}
	deleting, err := p.Deleting(t.Context(), id)
	if err != nil || len(deleting) != 1 || !deleting["sim://b"] {
		t.Errorf("deleting %v, error %v", deleting, err)
	}
	// One more may go, two may not: the minimum is 1.
	err = p.DeleteNodes(t.Context(), id, []*v1.Node{node("a", "sim://a"), node("", "pending-machine-ns_c")})
	if err == nil || !strings.Contains(err.Error(), "its minimum is 1") {
		t.Errorf("error %v", err)
	}
	w.expect(deploymentKind, "md", 2, "b")
	err = p.DeleteNodes(t.Context(), id, []*v1.Node{node("x", "sim://x")})
	if err == nil || !strings.Contains(err.Error(), "has no machine of node x") {
		t.Errorf("error %v", err)
	}
}

// A mark that somebody set by hand is no deletion while there are no more machines than there should be.
func TestMarkByHand(t *testing.T) {
	objects := deployment("1 5")
	objects[2].SetAnnotations(map[string]string{"cluster.x-k8s.io/delete-machine": "yes"})
	if got := told(t, newWorld(t, "v1beta2", objects...).provider()); strings.Contains(got, "deleting") {
		t.Error(got)
	}
}

// A write that is refused takes the marks back; one without an answer leaves them, and says that nobody knows.
func TestFailedWrites(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "machinedeployments/scale"}, "md", errors.New("no"))
	for _, c := range []struct {
		err     error
		unknown bool
		marked  []string
	}{{refused, false, nil}, {&net.OpError{Op: "read", Err: errors.New("reset")}, true, []string{"a"}},
		{apierrors.NewTimeoutError("slow", 1), true, []string{"a"}}} {
		w := newWorld(t, "v1beta2", deployment("0 5")...)
		w.beforeScale = func() error { return c.err }
		err := w.provider().DeleteNodes(t.Context(), id, []*v1.Node{node("a", "sim://a")})
		if err == nil || cloud.OutcomeUnknown(err) != c.unknown {
			t.Errorf("error %v", err)
		}
		w.expect(deploymentKind, "md", 3, c.marked...)
	}
}

// Machines that have not been made are taken back first; of those that are there only the ones without an instance.
func TestDecrease(t *testing.T) {
	for _, c := range []struct {
		target, delta, left int
		marked              []string
		want                string
	}{
		{5, 2, 3, nil, ""},
		{5, 3, 2, []string{"c"}, ""},
		{3, 1, 2, []string{"c"}, ""},
		{3, 2, 3, nil, "1 of the 2 nodes that are to be taken back are there already"},
		{3, 3, 3, nil, "its minimum is 1"},
	} {
		objects := deployment("1 9")
		with(objects[0], int64(c.target), "spec", "replicas")
		w := newWorld(t, "v1beta2", objects...)
		err := w.provider().DecreaseTargetSize(t.Context(), id, c.target, c.delta)
		if err == nil != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v", c, err)
		}
		w.expect(deploymentKind, "md", c.left, c.marked...)
	}
}

// A machine without a provider id is found by its node.
func TestNodesWithoutProviderIDOfTheirMachines(t *testing.T) {
	objects := deployment("1 5")
	with(objects[4], "c", "status", "nodeRef", "name")
	w := newWorld(t, "v1beta2", objects...)
	if err := w.nodes.Tracker().Add(node("c", "sim://c")); err != nil {
		t.Fatal(err)
	}
	p := w.provider()
	if got := told(t, p); !strings.HasSuffix(got, ", sim://c running") {
		t.Error(got)
	}
	if err := p.DeleteNodes(t.Context(), id, []*v1.Node{node("c", "sim://c")}); err != nil {
		t.Fatal(err)
	}
	w.expect(deploymentKind, "md", 2, "c")
}

func TestTemplate(t *testing.T) {
	const capacity = "capacity.cluster-autoscaler.kubernetes.io/"
	template := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "infra.test/v1", "kind": "MachineTemplate",
		"metadata": map[string]any{"name": "t", "namespace": "ns"}, "status": map[string]any{
			"capacity": map[string]any{"cpu": "8", "memory": "16Gi"}, "nodeInfo": map[string]any{"architecture": "arm64"}}}}
	for _, reference := range []map[string]any{{"apiGroup": "infra.test", "kind": "MachineTemplate", "name": "t"},
		{"apiVersion": "infra.test/v1", "kind": "MachineTemplate", "name": "t"}} {
		group := scalable(deploymentKind, "md", 0, "0 5", capacity+"cpu", "16", capacity+"gpu-type", "nvidia.com/gpu",
			capacity+"gpu-count", "2", capacity+"labels", "key1=value1,key2=value2", capacity+"taints",
			"dedicated=gpu:NoSchedule,key2:NoExecute", capacity+"maxPods", "200", capacity+"ephemeral-disk", "100Gi",
			"cluster.x-k8s.io/autoscaling-options-scaledownunneededtime", "3m",
			"cluster.x-k8s.io/autoscaling-options-scaledownutilizationthreshold", "0.7",
			"cluster.x-k8s.io/autoscaling-options-maxnodeprovisiontime", "soon")
		with(group, reference, "spec", "template", "spec", "infrastructureRef")
		with(group, map[string]any{"node-role.kubernetes.io/worker": "", "other": "x", "a.node.cluster.x-k8s.io/b": "c"},
			"spec", "template", "metadata", "labels")
		p := newWorld(t, "v1beta2", group, template).provider()
		made, err := p.TemplateNode(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(made.Status.Allocatable.Cpu(), made.Status.Allocatable.Memory(), made.Status.Allocatable.Pods(),
			made.Status.Allocatable.StorageEphemeral(), made.Labels, made.Spec.Taints)
		gpus := made.Status.Allocatable["nvidia.com/gpu"]
		want := "16 16Gi 200 100Gi map[a.node.cluster.x-k8s.io/b:c key1:value1 key2:value2 kubernetes.io/arch:arm64 " +
			"kubernetes.io/os:linux node-role.kubernetes.io/worker:] [{dedicated gpu NoSchedule <nil>} {key2  NoExecute <nil>}]"
		if got != want || gpus.String() != "2" {
			t.Errorf("%s, %s GPUs\nwant %s", got, gpus.String(), want)
		}
		groups, err := p.Groups(t.Context(), &externalgrpc.NodeGroupAutoscalingOptions{ScaleDownGpuUtilizationThreshold: 0.4})
		if err != nil || len(groups) != 1 {
			t.Fatal(groups, err)
		}
		o := groups[0].Options
		if o.GetScaleDownUtilizationThreshold() != 0.7 || o.GetScaleDownUnneededDuration().GetSeconds() != 180 ||
			o.GetScaleDownGpuUtilizationThreshold() != 0.4 || o.GetMaxNodeProvisionDuration() != nil || len(p.warned) != 1 {
			t.Errorf("options %v, warnings %v", o, p.warned)
		}
	}
}

// A value that nobody states is not made up, and an impossible one is reported with its annotation.
func TestTemplatesThatCannotBe(t *testing.T) {
	const capacity = "capacity.cluster-autoscaler.kubernetes.io/"
	for _, c := range []struct {
		annotations []string
		want        string
	}{
		{nil, ""}, {[]string{capacity + "cpu", "4"}, ""},
		{[]string{capacity + "cpu", "four"}, "cpu \"four\": is not an amount"},
		{[]string{capacity + "cpu", "4", capacity + "memory", "1Gi", capacity + "taints", "a=b:Sometimes"},
			"effect \"Sometimes\""},
	} {
		p := newWorld(t, "v1beta2", scalable(deploymentKind, "md", 0, "0 5", c.annotations...)).provider()
		made, err := p.TemplateNode(t.Context(), id)
		if made != nil || err == nil != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, error %v", c.annotations, made, err)
		}
	}
}

// Without Cluster API the error says so.
func TestWithoutClusterAPI(t *testing.T) {
	w := newWorld(t, "v1beta2")
	p := w.provider()
	t.Setenv("CAPI_GROUP", "other.test")
	p.version = ""
	if err := p.Refresh(t.Context()); err == nil || !strings.Contains(err.Error(), "no API group other.test") {
		t.Errorf("error %v", err)
	}
}

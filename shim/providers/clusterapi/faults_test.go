package clusterapi

import (
	"cmp"
	"errors"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"loadline.dev/shim/autoscaler/cloud"
)

// fail has all requests of a kind fail with an error, and returns what ends that.
func (w *world) fail(verb, resource string, err error) (end func()) {
	on := true
	w.client.PrependReactor(verb, resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
		return on && a.GetSubresource() == "", nil, err
	})
	return func() { on = false }
}

func forbidden(resource string) error {
	return apierrors.NewForbidden(schema.GroupResource{Group: "cluster.x-k8s.io", Resource: resource}, "",
		errors.New("no"))
}

var (
	webhookDown = apierrors.NewInternalError(errors.New(`failed calling webhook "a.example.com": service "a" not found`))
	etcdDown    = apierrors.NewInternalError(errors.New("etcdserver: request timed out"))
)

// A list that fails is no empty cluster: the error says which right is missing, and the groups are those of before.
func TestRightsToListAreMissing(t *testing.T) {
	for _, resource := range []string{"machines", "machinesets", "machinedeployments"} {
		w := newWorld(t, "v1beta2", deployment("1 5")...)
		p := w.provider()
		before := told(t, p)
		end := w.fail("list", resource, forbidden(resource))
		if err := p.Refresh(t.Context()); err == nil || !strings.Contains(err.Error(), "no right to list "+resource) {
			t.Errorf("error %v", err)
		}
		if got := told(t, p); got != before {
			t.Errorf("%s\nwant %s", got, before)
		}
		if resource != "machinedeployments" { // a change reads machines, and nothing is asked for without them
			for _, err := range []error{p.IncreaseSize(t.Context(), id, 3, 1),
				p.DeleteNodes(t.Context(), id, []*v1.Node{node("a", "sim://a")})} {
				if err == nil || cloud.OutcomeUnknown(err) {
					t.Errorf("error %v", err)
				}
			}
		}
		end()
		w.refresh(p)
		w.expect(deploymentKind, "md", 3)
	}
}

// A machine that cannot be marked keeps its node, and so do those that were marked before it.
func TestMarksFail(t *testing.T) {
	for _, failure := range []error{forbidden("machines"), webhookDown} {
		w := newWorld(t, "v1beta1", deployment("0 5")...)
		p := w.provider()
		writes := 0
		w.client.PrependReactor("update", "machines", func(clienttesting.Action) (bool, runtime.Object, error) {
			writes++
			return writes == 2, nil, failure // the second mark; what takes the first one back is written
		})
		err := p.DeleteNodes(t.Context(), id, []*v1.Node{node("a", "sim://a"), node("b", "sim://b")})
		if err == nil || writes != 3 || cloud.OutcomeUnknown(err) || !strings.Contains(err.Error(), "machine b: ") {
			t.Errorf("%d writes, error %v", writes, err)
		}
		w.expect(deploymentKind, "md", 3)
	}
}

// Growth to which there was no answer may have happened. The same request is made again only if it has not, also by
// another process.
func TestGrowthWithoutAnAnswer(t *testing.T) {
	for _, happened := range []bool{false, true} {
		w := newWorld(t, "v1beta2", deployment("0 9")...)
		w.beforeScale = func() error {
			if happened {
				w.writeBetween(1, 5)
				_ = w.beforeScale()
			}
			return etcdDown
		}
		if err := w.provider().IncreaseSize(t.Context(), id, 3, 2); !cloud.OutcomeUnknown(err) {
			t.Errorf("error %v", err)
		}
		w.beforeScale = nil
		err := w.provider().IncreaseSize(t.Context(), id, 3, 2) // of another process
		if errors.Is(err, cloud.ErrChanged) != happened || err != nil != happened {
			t.Errorf("it had happened: %v, error %v", happened, err)
		}
		w.expect(deploymentKind, "md", 5)
	}
}

// While a webhook is down nothing grows and nothing is deleted: the error names the group and the webhook, and no mark
// stays. Afterwards the same requests succeed.
func TestWebhookIsDown(t *testing.T) {
	w := newWorld(t, "v1beta2", deployment("0 9")...)
	p := w.provider()
	grow := func() error { return p.IncreaseSize(t.Context(), id, 3, 2) }
	remove := func() error { return p.DeleteNodes(t.Context(), id, []*v1.Node{node("a", "sim://a")}) }
	for _, change := range []func() error{grow, remove} {
		before, err := w.get(deploymentKind, "md").replicas()
		if err != nil {
			t.Fatal(err)
		}
		w.beforeScale = func() error { return webhookDown }
		if err := change(); err == nil || cloud.OutcomeUnknown(err) || !strings.Contains(err.Error(), id) ||
			!strings.Contains(err.Error(), `webhook "a.example.com"`) {
			t.Errorf("error %v", err)
		}
		w.expect(deploymentKind, "md", before)
		w.beforeScale = nil
		if err := change(); err != nil {
			t.Error(err)
		}
	}
	w.expect(deploymentKind, "md", 4, "a")
}

// A process that ends between a mark and the target leaves a mark alone, and the node may get pods again. When another
// node is deleted, the mark is taken off: Cluster API would delete the first one in its place. So would it for a mark
// that somebody else has set, which stays; nothing is deleted then.
func TestMarkOfARemovalThatWasNotCarriedOut(t *testing.T) {
	w := newWorld(t, "v1beta2", deployment("0 5")...)
	w.beforeScale = func() error { return etcdDown }
	if err := w.provider().DeleteNodes(t.Context(), id, []*v1.Node{node("a", "sim://a")}); !cloud.OutcomeUnknown(err) {
		t.Errorf("error %v", err)
	}
	w.expect(deploymentKind, "md", 3, "a")
	w.beforeScale = nil
	p := w.provider()
	if err := p.DeleteNodes(t.Context(), id, []*v1.Node{node("b", "sim://b")}); err != nil {
		t.Error(err)
	}
	w.expect(deploymentKind, "md", 2, "b")

	objects := deployment("0 5")
	objects[2].SetAnnotations(map[string]string{"cluster.x-k8s.io/delete-machine": "yes"})
	w = newWorld(t, "v1beta2", objects...)
	p = w.provider()
	groups, err := p.Groups(t.Context(), nil)
	// Two run, and one is coming, which may be given up.
	if err != nil || groups[0].Min != 2 || groups[0].Max != 5 || groups[0].Problem != nil ||
		groups[0].Warning == nil || !strings.Contains(groups[0].Warning.Error(), "machine a has") {
		t.Errorf("groups %+v, error %v", groups, err)
	}
	for _, change := range []func() error{
		func() error { return p.DeleteNodes(t.Context(), id, []*v1.Node{node("b", "sim://b")}) },
		func() error { return p.DecreaseTargetSize(t.Context(), id, 3, 1) },
	} {
		if err := change(); err == nil || cloud.OutcomeUnknown(err) || !strings.Contains(err.Error(), "machine a has") {
			t.Errorf("error %v", err)
		}
		w.expect(deploymentKind, "md", 3, "a")
	}
	if err := p.DeleteNodes(t.Context(), id, []*v1.Node{node("a", "sim://a")}); err != nil {
		t.Error(err)
	}
	w.expect(deploymentKind, "md", 2, "a")
}

// A process that takes over sees which nodes go, and asks for none of them again.
func TestRestart(t *testing.T) {
	w := newWorld(t, "v1beta2", deployment("0 5")...)
	of := []*v1.Node{node("b", "sim://b")}
	if err := w.provider().DeleteNodes(t.Context(), id, of); err != nil {
		t.Fatal(err)
	}
	p := w.provider()
	if got := told(t, p); !strings.Contains(got, "target 2") || !strings.Contains(got, "sim://b deleting") {
		t.Error(got)
	}
	if err := p.DeleteNodes(t.Context(), id, of); err != nil {
		t.Error(err)
	}
	w.expect(deploymentKind, "md", 2, "b")
}

// A machine that somebody deletes by hand leaves the target as it is: Cluster API makes another one. Its node is not
// deleted a second time, and no other in its place.
func TestMachineDeletedByHand(t *testing.T) {
	objects := deployment("0 5")
	with(objects[2], "2026-11-27T00:00:00Z", "metadata", "deletionTimestamp")
	w := newWorld(t, "v1beta2", objects...)
	p := w.provider()
	if got := told(t, p); !strings.Contains(got, "target 3, sim://a deleting") {
		t.Error(got)
	}
	of := []*v1.Node{node("a", "sim://a")}
	if err := p.DeleteNodes(t.Context(), id, of); err != nil {
		t.Error(err)
	}
	w.expect(deploymentKind, "md", 3)
	machines := schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: w.version, Resource: "machines"}
	if err := w.client.Tracker().Delete(machines, "ns", "a"); err != nil {
		t.Fatal(err)
	}
	if err := p.DeleteNodes(t.Context(), id, of); err == nil || cloud.OutcomeUnknown(err) {
		t.Errorf("error %v", err)
	}
	w.expect(deploymentKind, "md", 3)
}

// A machine that was to go because it is no node stays if it has become one since, or is one of another cluster: it may
// have pods.
func TestMachineRegistersLate(t *testing.T) {
	w := newWorld(t, "v1beta2", deployment("0 5")...)
	late := node("sim://a", "sim://a")
	late.Annotations = map[string]string{cloud.WithoutNode: "unregistered"}
	if err := w.provider().DeleteNodes(t.Context(), id, []*v1.Node{late}); err == nil || cloud.OutcomeUnknown(err) ||
		!strings.Contains(err.Error(), "machine a of node group "+id) {
		t.Errorf("error %v", err)
	}
	w.expect(deploymentKind, "md", 3)
	for _, name := range []string{"b", "a"} { // another node of the group, and its own
		if _, err := w.nodes.CoreV1().Nodes().Create(t.Context(), node(name, ""), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.provider().DeleteNodes(t.Context(), id, []*v1.Node{late}); err == nil {
		t.Error("no error")
	}
	w.expect(deploymentKind, "md", 3)
	if err := w.nodes.CoreV1().Nodes().Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := w.provider().DeleteNodes(t.Context(), id, []*v1.Node{late}); err != nil {
		t.Errorf("the node is gone: %v", err)
	}
	w.expect(deploymentKind, "md", 2, "a")
}

// A write whose answer was lost may arrive while another node is deleted. Both machines go then, and no third one.
func TestLostWriteArrivesLate(t *testing.T) {
	w := newWorld(t, "v1beta2", deployment("0 5")...)
	w.beforeScale = func() error { return etcdDown }
	if err := w.provider().DeleteNodes(t.Context(), id, []*v1.Node{node("a", "sim://a")}); !cloud.OutcomeUnknown(err) {
		t.Errorf("error %v", err)
	}
	w.writeBetween(1, 2)
	if err := w.provider().DeleteNodes(t.Context(), id, []*v1.Node{node("b", "sim://b")}); err != nil {
		t.Error(err)
	}
	w.expect(deploymentKind, "md", 1, "a", "b")
}

// The status that a new node changes makes the lower target a conflict, after which the machine is one with a node.
func TestMachineRegistersWhileItsTargetFalls(t *testing.T) {
	w := newWorld(t, "v1beta2", deployment("0 5")...)
	late := node("pending-machine-ns_c", "pending-machine-ns_c")
	late.Annotations = map[string]string{cloud.WithoutNode: "unregistered"}
	w.writeBetween(1, 3)
	registers := w.beforeScale
	w.beforeScale = func() error {
		c := w.get(machineKind, "c")
		with(&c.Unstructured, "c", "status", "nodeRef", "name")
		if err := w.client.Tracker().Update(schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: w.version,
			Resource: "machines"}, &c.Unstructured, "ns"); err != nil {
			t.Error(err)
		}
		return registers()
	}
	if err := w.provider().DeleteNodes(t.Context(), id, []*v1.Node{late}); err == nil || cloud.OutcomeUnknown(err) {
		t.Errorf("error %v", err)
	}
	w.expect(deploymentKind, "md", 3)
}

// An upgrade that takes a version of the API away is an error until the next look, which asks for the version anew.
func TestVersionGoes(t *testing.T) {
	w := newWorld(t, "v1beta2", deployment("0 5")...)
	p := w.provider()
	end := w.fail("list", "*", apierrors.NewNotFound(schema.GroupResource{Resource: "machines"}, ""))
	if err := p.Refresh(t.Context()); err == nil || p.version != "" {
		t.Errorf("version %q, error %v", p.version, err)
	}
	end()
	w.refresh(p)
	if got := told(t, p); p.version != "v1beta2" || !strings.Contains(got, "target 3, sim://a running") {
		t.Errorf("version %s: %s", p.version, got)
	}
}

// Before a deletion has lowered the target, Cluster API deletes its machine: in the place of one whose deletion was
// asked for before, which is marked too. The target falls all the same, so that the other one is deleted as well. If
// the machine was deleted for somebody else's lower target, nothing is left to do.
func TestMachineDeletedBeforeItsTargetFell(t *testing.T) {
	b := []*v1.Node{node("b", "sim://b")}
	for name, c := range map[string]struct {
		before []*v1.Node // are deleted first
		other  int        // the target that somebody else sets meanwhile; 0: none does
		gone   bool       // the machine is not even listed any more
		target int
		marked []string
	}{
		"InThePlaceOfAnother":        {before: b, target: 1, marked: []string{"b"}},
		"InThePlaceOfAnotherAndGone": {before: b, gone: true, target: 1, marked: []string{"b"}},
		"ForSomebodyElse":            {other: 2, target: 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "v1beta2", deployment("0 5")...)
			p := w.provider()
			for _, n := range c.before {
				if err := p.DeleteNodes(t.Context(), id, []*v1.Node{n}); err != nil {
					t.Fatal(err)
				}
			}
			w.writeBetween(1, cmp.Or(c.other, 3-len(c.before)))
			write := w.beforeScale
			w.beforeScale = func() error {
				w.beforeScale = nil
				w.deleteMachine("a", c.gone)
				return write()
			}
			if err := p.DeleteNodes(t.Context(), id, []*v1.Node{node("a", "sim://a")}); err != nil {
				t.Error(err)
			}
			w.expect(deploymentKind, "md", c.target, c.marked...)
		})
	}
}

// deleteMachine has Cluster API begin to delete a machine, or end that.
func (w *world) deleteMachine(name string, gone bool) {
	w.t.Helper()
	machines := schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: w.version, Resource: "machines"}
	machine := w.get(machineKind, name)
	machine.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
	err := w.client.Tracker().Update(machines, &machine.Unstructured, "ns")
	if gone {
		err = w.client.Tracker().Delete(machines, "ns", name)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

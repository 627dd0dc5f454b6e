package clusterapi

import (
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const poolID = "MachinePool/ns/pool"

// pool returns a MachinePool of three instances: its provider makes Machines for them, of which c has no node yet.
func pool(bounds string) []*unstructured.Unstructured {
	objects := []*unstructured.Unstructured{with(scalable(poolKind, "pool", 3, bounds), []any{"sim://a", "sim://b"},
		"spec", "providerIDList")}
	for name, providerID := range map[string]string{"a": "sim://a", "b": "sim://b", "c": ""} {
		objects = append(objects, owned(machine("", name, providerID), poolKind, "pool"))
	}
	return objects
}

// A MachinePool whose provider makes Machines grows, and its Machines are chosen as those of a MachineDeployment are:
// the one that is named is marked, and the target falls by one. Ids that the pool lists are not counted beside them.
func TestPoolWithMachines(t *testing.T) {
	for _, version := range bothVersions {
		w := newWorld(t, version, pool("1 5")...)
		p := w.provider()
		if want := poolID + " 1-5 target 3, sim://a running, sim://b running, pending-machine-ns_c creating"; told(t,
			p) != want {
			t.Errorf("%s: %s\nwant %s", version, told(t, p), want)
		}
		if err := p.IncreaseSize(t.Context(), poolID, 3, 2); err != nil {
			t.Error(err)
		}
		w.expect(poolKind, "pool", 5)
		if err := p.DecreaseTargetSize(t.Context(), poolID, 5, 3); err != nil {
			t.Error(err)
		}
		w.expect(poolKind, "pool", 2, "c") // two were not made, and c has no instance
		if err := p.DeleteNodes(t.Context(), poolID, []*v1.Node{node("b", "sim://b")}); err != nil {
			t.Error(err)
		}
		w.expect(poolKind, "pool", 1, "b", "c")
		w.refresh(p)
		if want := poolID + " 1-5 target 1, sim://a running, sim://b deleting, pending-machine-ns_c deleting"; told(t,
			p) != want {
			t.Errorf("%s: %s\nwant %s", version, told(t, p), want)
		}
		deleting, err := p.Deleting(t.Context(), poolID)
		if err != nil || len(deleting) != 2 || !deleting["sim://b"] {
			t.Errorf("%s: deleting %v, error %v", version, deleting, err)
		}
		// Asked once more for b, nothing changes; a is the last one that there has to be.
		if err := p.DeleteNodes(t.Context(), poolID, []*v1.Node{node("b", "sim://b")}); err != nil {
			t.Error(err)
		}
		err = p.DeleteNodes(t.Context(), poolID, []*v1.Node{node("a", "sim://a")})
		if err == nil || !strings.Contains(err.Error(), "its minimum is 1") {
			t.Errorf("%s: error %v", version, err)
		}
		w.expect(poolKind, "pool", 1, "b", "c")
	}
}

// A refused write takes the marks of a pool's Machines back too.
func TestPoolRefused(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "machinepools/scale"}, "pool", errors.New("no"))
	w := newWorld(t, "v1beta2", pool("0 5")...)
	p := w.provider()
	w.beforeScale = func() error { return refused }
	if err := p.DeleteNodes(t.Context(), poolID, []*v1.Node{node("a", "sim://a")}); !errors.Is(err, refused) {
		t.Errorf("error %v", err)
	}
	w.expect(poolKind, "pool", 3)
}

// A pool without Machines takes back no more than what is not there, as it is now and not as it was at the last look:
// nobody can say which of its nodes would be deleted, with pods or without.
func TestPoolWithoutMachinesTakesBack(t *testing.T) {
	for _, c := range []struct {
		delta, left int
		listed      []any // provider ids when it is asked
		replicas    int64 // status.replicas then
		want        string
	}{
		{2, 3, []any{"sim://a", "sim://b"}, 2, ""},
		{3, 2, []any{"sim://a", "sim://b"}, 2, ""},
		{4, 5, []any{"sim://a", "sim://b"}, 2, "1 of the 4 nodes that are to be taken back are there already"},
		{3, 5, []any{"sim://a", "sim://b", "sim://c"}, 3, "1 of the 3 nodes that are to be taken back are there already"},
		{3, 5, []any{"sim://a", "sim://b"}, 4, "2 of the 3 nodes that are to be taken back are there already"},
	} {
		before := with(with(scalable(poolKind, "pool", 5, "0 9"), []any{"sim://a"}, "spec", "providerIDList"), int64(1),
			"status", "replicas")
		w := newWorld(t, "v1beta2", before)
		p := w.provider()
		now := w.get(poolKind, "pool")
		with(with(&now.Unstructured, c.listed, "spec", "providerIDList"), c.replicas, "status", "replicas")
		if err := w.client.Tracker().Update(schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: w.version,
			Resource: "machinepools"}, &now.Unstructured, "ns"); err != nil {
			t.Fatal(err)
		}
		err := p.DecreaseTargetSize(t.Context(), poolID, 5, c.delta)
		if err == nil != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v", c, err)
		}
		w.expect(poolKind, "pool", c.left)
		if err := p.DeleteNodes(t.Context(), poolID, []*v1.Node{node("a", "sim://a")}); err == nil {
			t.Errorf("%+v: a node of a pool was removed that nobody can name", c)
		}
	}
}

// A pool without Machines keeps what is there: the ids that it lists, or what its status counts if that is more. A
// request that it has not begun to fulfill is not part of its minimum, or nobody could take it back. Its own bounds
// still hold.
func TestPoolWithoutMachinesKeepsWhatIsThere(t *testing.T) {
	for _, c := range []struct {
		bounds   string
		target   int64
		replicas int64 // status.replicas
		want     string
	}{
		{"0 9", 5, 2, "2-9 target 5"},
		{"0 9", 5, 0, "2-9 target 5"},
		{"0 9", 5, 3, "3-9 target 5"},
		{"0 9", 5, 5, "5-9 target 5"},
		{"0 9", 1, 2, "1-9 target 1"},
		{"4 9", 5, 2, "4-9 target 5"},
		{"0 1", 5, 2, "1-1 target 5"},
	} {
		o := with(with(scalable(poolKind, "pool", c.target, c.bounds), []any{"sim://a", "sim://b"}, "spec", "providerIDList"),
			c.replicas, "status", "replicas")
		want := poolID + " " + c.want + ", sim://a running, sim://b running"
		if got := told(t, newWorld(t, "v1beta2", o).provider()); got != want {
			t.Errorf("%+v: %s\nwant %s", c, got, want)
		}
	}
}

package simcloud

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"loadline.dev/shim/api/externalgrpc"
	provider "loadline.dev/shim/autoscaler/cloud"
)

// One group is grown and shrunk through the client that the autoscaler uses.
func TestGrowAndShrink(t *testing.T) {
	client := fake.NewClientset()
	template := &v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"pool": "a"}}}
	socket := filepath.Join(t.TempDir(), "s")
	cloud, err := Start(client, socket,
		Options{CreateDelay: 30 * time.Millisecond, DeleteDelay: 30 * time.Millisecond, Groups: []Group{
			{ID: "a", Min: 1, Max: 3, Template: template}, {ID: "gone", Max: 3, Template: template, StockOut: true},
			{ID: "ghost", Max: 3, Template: template, Phantom: true}}})
	if err != nil {
		t.Fatal(err)
	}
	asked, err := provider.Open(provider.Options{Address: "unix://" + socket})
	if err != nil {
		t.Fatal(err)
	}
	defer asked.Close()
	for _, id := range []string{"a", "gone", "ghost"} {
		if err := cloud.Grow(id, 2); err != nil {
			t.Fatal(err)
		}
	}
	if err := cloud.Grow("a", 2); err == nil {
		t.Error("a group grew beyond its maximum")
	}
	nodes := func() []v1.Node {
		list, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return list.Items
	}
	eventually(t, "two nodes", func() bool { return len(nodes()) == 2 })
	if n := nodes()[0]; n.Name != "a-1" || n.Spec.ProviderID != "sim://a/a-1" || n.Labels["pool"] != "a" {
		t.Errorf("node %s: provider id %s, labels %v", n.Name, n.Spec.ProviderID, n.Labels)
	}
	groups, err := asked.Groups(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	state := func(group int) externalgrpc.InstanceState {
		return groups[group].Instances[0].GetStatus().GetInstanceState()
	}
	if groups[0].Target != 2 || state(1) != externalgrpc.InstanceState_INSTANCE_RUNNING ||
		state(2) != externalgrpc.InstanceState_INSTANCE_CREATING {
		t.Errorf("groups %+v", groups)
	}
	one := nodes()[:1]
	if err := asked.DeleteNodes(t.Context(), "a", []*v1.Node{&one[0]}); err != nil {
		t.Fatal(err)
	}
	if err := asked.DeleteNodes(t.Context(), "gone", []*v1.Node{&one[0]}); err == nil ||
		!strings.Contains(err.Error(), "has no node a-1") {
		t.Errorf("another group's node: error %v", err)
	}
	eventually(t, "one node", func() bool { return len(nodes()) == 1 })
	eventually(t, "the record of it", func() bool { d := cloud.Deleted(); return len(d) == 1 && d[0].Node == "a-1" })
	if cloud.Target("a") != 1 {
		t.Errorf("target %d, want 1", cloud.Target("a"))
	}
	cloud.Fail("Refresh", errors.New("told to"))
	if err := asked.Refresh(t.Context()); err == nil {
		t.Error("a method that is to fail answers")
	}
	if err := cloud.Close(); err != nil {
		t.Error(err)
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(10 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("there is not %s", what)
		}
	}
}

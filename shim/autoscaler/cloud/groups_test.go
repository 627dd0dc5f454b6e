package cloud

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"loadline.dev/shim/api/externalgrpc"
)

func TestGroups(t *testing.T) {
	c := &cloud{groups: []*externalgrpc.NodeGroup{{Id: "b", MinSize: 1, MaxSize: 5}, {Id: "a", MaxSize: 3}}, target: 2}
	client := serve(t, c)
	defaults := &externalgrpc.NodeGroupAutoscalingOptions{ScaleDownUtilizationThreshold: 0.5}
	groups, err := client.Groups(t.Context(), defaults)
	if err != nil {
		t.Fatal(err)
	}
	deleting := externalgrpc.InstanceState_INSTANCE_DELETING
	want := []Group{{ID: "a", Max: 3, Target: 2, Instances: []Instance{{ProviderID: "sim://a", State: deleting}}},
		{ID: "b", Min: 1, Max: 5, Target: 2, Instances: []Instance{{ProviderID: "sim://b", State: deleting}}}}
	if !reflect.DeepEqual(groups, want) {
		t.Errorf("groups %+v, want %+v", groups, want)
	}
	c.options = true
	if groups, err = client.Groups(t.Context(), defaults); err != nil {
		t.Fatal(err)
	}
	if o := groups[1].Options; !o.GetZeroOrMaxNodeScaling() ||
		o.GetScaleDownUnneededDuration().AsDuration() != 7*time.Second {
		t.Errorf("options %v", o)
	}
	if c.defaults.GetScaleDownUtilizationThreshold() != 0.5 {
		t.Errorf("the provider was told the defaults %v", c.defaults)
	}
}

// One group whose options cannot be told is marked, and the others are as they are without it.
func TestOptionsThatCannotBeTold(t *testing.T) {
	c := &cloud{groups: []*externalgrpc.NodeGroup{{Id: "b", MinSize: 1, MaxSize: 5}, {Id: "a", MaxSize: 3}}, target: 2,
		options: true, silent: "a"}
	groups, err := serve(t, c).Groups(t.Context(), nil)
	if err != nil || len(groups) != 2 {
		t.Fatalf("groups %v, error %v", groups, err)
	}
	if a := groups[0]; a.ID != "a" || a.Target != 2 || a.Options != nil || a.Problem == nil ||
		a.Problem.Error() != "cloud provider: NodeGroupGetOptions of a: rpc error: code = Internal desc = told "+
			"to fail" {
		t.Errorf("group %+v", a)
	}
	if b := groups[1]; b.ID != "b" || b.Problem != nil || !b.Options.GetZeroOrMaxNodeScaling() {
		t.Errorf("group %+v", b)
	}
}

// A provider that tells nonsense is not believed.
func TestGroupsThatCannotBe(t *testing.T) {
	for text, groups := range map[string][]*externalgrpc.NodeGroup{
		"\"a\" of 3 to 2 nodes":  {{Id: "a", MinSize: 3, MaxSize: 2}},
		"\"a\" of -1 to 2 nodes": {{Id: "a", MinSize: -1, MaxSize: 2}},
		"\"\" of 0 to 2 nodes":   {{MaxSize: 2}},
		"node group \"a\" twice": {{Id: "a", MaxSize: 2}, {Id: "b", MaxSize: 1}, {Id: "a", MaxSize: 2}},
	} {
		client := serve(t, &cloud{groups: groups})
		if _, err := client.Groups(t.Context(), nil); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v, want %q in it", err, text)
		}
	}
	client := serve(t, &cloud{groups: []*externalgrpc.NodeGroup{{Id: "a", MaxSize: 2}}, target: -1})
	if _, err := client.Groups(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "target size of -1") {
		t.Errorf("error %v", err)
	}
}

// Faults of machines are told apart: the cloud has none left, or something else is wrong.
func TestFaults(t *testing.T) {
	server := &cloud{groups: []*externalgrpc.NodeGroup{{Id: "a", MaxSize: 5}},
		fault: &externalgrpc.InstanceErrorInfo{ErrorCode: "STOCK_OUT", ErrorMessage: "none", InstanceErrorClass: 1}}
	client := serve(t, server)
	for _, class := range []int32{1, 99} {
		server.fault.InstanceErrorClass = class
		groups, err := client.Groups(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := groups[0].Instances[0].Fault, (Fault{"STOCK_OUT", "none", class == 1}); got != want {
			t.Errorf("class %d: %+v, want %+v", class, got, want)
		}
	}
}

// One of many groups that cannot be asked about is the error of all.
func TestManyGroups(t *testing.T) {
	server := &cloud{}
	for i := range 100 {
		server.groups = append(server.groups, &externalgrpc.NodeGroup{Id: fmt.Sprintf("g%02d", i), MaxSize: int32(i)})
	}
	client := serve(t, server)
	groups, err := client.Groups(t.Context(), nil)
	if err != nil || len(groups) != 100 || groups[42].ID != "g42" || groups[42].Max != 42 ||
		groups[42].Instances[0].ProviderID != "sim://g42" {
		t.Fatalf("%d groups, error %v", len(groups), err)
	}
	if deleting, err := client.Deleting(t.Context(), "g3"); err != nil || len(deleting) != 1 || !deleting["sim://g3"] {
		t.Errorf("deleting %v, error %v", deleting, err)
	}
	server.broken = "g57"
	if _, err := client.Deleting(t.Context(), "g57"); err == nil {
		t.Error("a list that fails is no list")
	}
	if _, err := client.Groups(t.Context(), nil); err == nil ||
		!strings.Contains(err.Error(), "NodeGroupNodes of g57") {
		t.Errorf("error %v", err)
	}
}

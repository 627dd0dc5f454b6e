package cloud

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/externalgrpc"
)

// machine is the one that the provider of these tests lists of a group.
func machine(group string, state externalgrpc.InstanceState) []*externalgrpc.Instance {
	return []*externalgrpc.Instance{{Id: "sim://" + group, Status: &externalgrpc.InstanceStatus{InstanceState: state}}}
}

func TestGroups(t *testing.T) {
	c := &cloud{groups: []*externalgrpc.NodeGroup{{Id: "b", MinSize: 1, MaxSize: 5}, {Id: "a", MaxSize: 3}}, target: 2}
	client := serve(t, c)
	defaults := &externalgrpc.NodeGroupAutoscalingOptions{ScaleDownUtilizationThreshold: 0.5}
	groups, err := client.Groups(t.Context(), defaults)
	if err != nil {
		t.Fatal(err)
	}
	deleting := externalgrpc.InstanceState_INSTANCE_DELETING
	want := []Group{{ID: "a", Max: 3, Target: 2, Instances: machine("a", deleting)},
		{ID: "b", Min: 1, Max: 5, Target: 2, Instances: machine("b", deleting)}}
	if diff := cmp.Diff(want, groups, protocmp.Transform()); diff != "" {
		t.Error(diff)
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

// A group whose options cannot be read does without, with a warning: those of the last answer are used, else the
// defaults. Wrapped providers of Cluster Autoscaler that have no options answer with Unknown.
func TestOptionsThatCannotBeTold(t *testing.T) {
	c := &cloud{groups: []*externalgrpc.NodeGroup{{Id: "b", MinSize: 1, MaxSize: 5}, {Id: "a", MaxSize: 3}}, target: 2,
		options: true, fails: map[string]codes.Code{"NodeGroupGetOptions a": codes.Unknown}}
	client := serve(t, c)
	groups, err := client.Groups(t.Context(), nil)
	if err != nil || len(groups) != 2 {
		t.Fatalf("groups %v, error %v", groups, err)
	}
	if a := groups[0]; a.ID != "a" || a.Target != 2 || a.Options != nil || a.Problem != nil || a.Warning == nil ||
		!strings.HasSuffix(a.Warning.Error(), "cloud provider: NodeGroupGetOptions of a: rpc error: code = Unknown desc = "+
			"told to fail") {
		t.Errorf("group %+v", a)
	}
	c.fail(codes.OK)
	if groups, err = client.Groups(t.Context(), nil); err != nil || groups[0].Warning != nil {
		t.Errorf("group %+v, error %v", groups[0], err)
	}
	c.fail(codes.Internal, "NodeGroupGetOptions a")
	groups, err = client.Groups(t.Context(), nil)
	if err != nil || groups[0].Warning == nil || !groups[0].Options.GetZeroOrMaxNodeScaling() {
		t.Errorf("group %+v, error %v", groups[0], err)
	}
	if b := groups[1]; b.ID != "b" || b.Problem != nil || !b.Options.GetZeroOrMaxNodeScaling() {
		t.Errorf("group %+v", b)
	}
}

// A server of Cluster Autoscaler's example sends the threshold of GPUs back as both thresholds.
func TestThresholdsThatAreSentBack(t *testing.T) {
	defaults := &externalgrpc.NodeGroupAutoscalingOptions{ScaleDownUtilizationThreshold: 0.7,
		ScaleDownGpuUtilizationThreshold: 0.4}
	for _, c := range []struct{ all, gpu, want float64 }{{0.4, 0.4, 0.7}, {0.7, 0.4, 0.7}, {0.4, 0.3, 0.4},
		{0.2, 0.4, 0.2}, {0, 0, 0}} {
		got := withoutEcho(&externalgrpc.NodeGroupAutoscalingOptions{ScaleDownUtilizationThreshold: c.all,
			ScaleDownGpuUtilizationThreshold: c.gpu}, defaults)
		if got.ScaleDownUtilizationThreshold != c.want || got.ScaleDownGpuUtilizationThreshold != c.gpu {
			t.Errorf("%v and %v: %v", c.all, c.gpu, got)
		}
	}
	if withoutEcho(nil, defaults) != nil {
		t.Error("no options are the defaults")
	}
}

// A group whose id the engine does not take has another one here, and its own at the provider.
func TestIDsOfAnyText(t *testing.T) {
	long := strings.Repeat("x", 300)
	c := &cloud{groups: []*externalgrpc.NodeGroup{{Id: "my asg", MaxSize: 5}, {Id: "gruppe-ä", MaxSize: 5},
		{Id: long, MaxSize: 5}, {Id: "plain", MaxSize: 5}}, target: 2}
	client := serve(t, c)
	groups, err := client.Groups(t.Context(), nil)
	if err != nil || len(groups) != 4 {
		t.Fatalf("groups %v, error %v", groups, err)
	}
	for _, g := range groups {
		if len(g.ID) > MostNameBytes || !IsPlain(g.ID) || g.Problem != nil || g.Target != 2 || len(g.Instances) != 1 {
			t.Errorf("group %+v", g)
		}
		if g.Instances[0].GetId() == "sim://my asg" {
			if !strings.HasPrefix(g.ID, "my_asg~") {
				t.Errorf("my asg goes by %s", g.ID)
			}
			if err := client.IncreaseSize(t.Context(), g.ID, 2, 1); err != nil || c.target != 3 {
				t.Errorf("target %d, error %v", c.target, err)
			}
			c.target = 2
		}
	}
	if !slices.Contains(c.asked, "NodeGroupIncreaseSize my asg") || !slices.Contains(c.asked, "NodeGroupNodes "+long) {
		t.Errorf("asked %v", c.asked)
	}
}

// A provider that tells nonsense of all its groups is not believed.
func TestGroupsThatCannotBe(t *testing.T) {
	for text, groups := range map[string][]*externalgrpc.NodeGroup{
		"\"a\" of 3 to 2 nodes":  {{Id: "a", MinSize: 3, MaxSize: 2}},
		"\"a\" of -1 to 2 nodes": {{Id: "a", MinSize: -1, MaxSize: 2}},
		"a node group without":   {{MaxSize: 2}},
		"node group \"a\" twice": {{Id: "a", MaxSize: 2}, {Id: "a", MaxSize: 2}},
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

// A group without an id has a problem, and the others are as they are without it.
func TestAGroupWithoutAnID(t *testing.T) {
	groups, err := serve(t, &cloud{groups: []*externalgrpc.NodeGroup{{Id: "b", MaxSize: 2}, {MaxSize: 2}},
		target: 1}).Groups(t.Context(), nil)
	if err != nil || len(groups) != 2 || groups[0].Problem == nil || groups[1].Problem != nil || groups[1].Target != 1 {
		t.Errorf("groups %+v, error %v", groups, err)
	}
}

// Many groups are asked about. One that does not answer is left as it is, and the others are read.
func TestManyGroups(t *testing.T) {
	server := &cloud{fault: &externalgrpc.InstanceErrorInfo{ErrorCode: "STOCK_OUT", InstanceErrorClass: 1}}
	for i := range 100 {
		server.groups = append(server.groups, &externalgrpc.NodeGroup{Id: fmt.Sprintf("g%02d", i), MaxSize: int32(i)})
	}
	client := serve(t, server)
	groups, err := client.Groups(t.Context(), nil)
	if err != nil || len(groups) != 100 || groups[42].ID != "g42" || groups[42].Max != 42 ||
		groups[42].Instances[0].GetId() != "sim://g42" ||
		!proto.Equal(groups[42].Instances[0].GetStatus().GetErrorInfo(), server.fault) {
		t.Fatalf("%d groups, error %v", len(groups), err)
	}
	if deleting, err := client.Deleting(t.Context(), "g3"); err != nil || len(deleting) != 1 || !deleting["sim://g3"] {
		t.Errorf("deleting %v, error %v", deleting, err)
	}
	server.fail(codes.Internal, "NodeGroupNodes g57")
	if _, err := client.Deleting(t.Context(), "g57"); err == nil {
		t.Error("a list that fails is no list")
	}
	server.target = 7
	groups, err = client.Groups(t.Context(), nil)
	if err != nil || len(groups) != 100 {
		t.Fatalf("%d groups, error %v", len(groups), err)
	}
	for i, g := range groups {
		if (g.Problem != nil) != (i == 57) || g.Target != 7 || len(g.Instances) != 1 {
			t.Errorf("group %+v", g)
		}
	}
}

// A group that cannot be read has a problem, which says what cannot. Nothing is known of it but what the cloud tells
// now, and the group beside it is read as without it.
func TestOneGroupCannotBeRead(t *testing.T) {
	machines := machine("a", externalgrpc.InstanceState_INSTANCE_RUNNING)
	for name, c := range map[string]struct {
		groups []*externalgrpc.NodeGroup // beside b
		fails  string
		want   Group
		text   string // of the problem
	}{
		"TargetSize": {[]*externalgrpc.NodeGroup{{Id: "a", MinSize: 1, MaxSize: 3}}, "NodeGroupTargetSize a",
			Group{ID: "a", Min: 1, Max: 3, Instances: machines},
			"cloud provider: NodeGroupTargetSize of a: rpc error: code = Internal desc = told to fail"},
		"Nodes": {[]*externalgrpc.NodeGroup{{Id: "a", MinSize: 1, MaxSize: 3}}, "NodeGroupNodes a",
			Group{ID: "a", Min: 1, Max: 3, Target: 2},
			"cloud provider: NodeGroupNodes of a: rpc error: code = Internal desc = told to fail"},
		"Bounds": {[]*externalgrpc.NodeGroup{{Id: "a", MinSize: 3, MaxSize: 2}}, "",
			Group{ID: "a", Target: 2, Instances: machines},
			"the cloud provider has node group \"a\" of 3 to 2 nodes"},
		"Twice": {[]*externalgrpc.NodeGroup{{Id: "a", MaxSize: 2}, {Id: "c", MaxSize: 1}, {Id: "a", MaxSize: 3}}, "",
			Group{ID: "a", Target: 2, Instances: machines}, "the cloud provider has node group \"a\" twice"},
	} {
		t.Run(name, func(t *testing.T) {
			server := &cloud{groups: append(c.groups, &externalgrpc.NodeGroup{Id: "b", MinSize: 1, MaxSize: 5}),
				target: 2, running: true, fails: map[string]codes.Code{c.fails: codes.Internal}}
			groups, err := serve(t, server).Groups(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			want := Group{ID: "b", Min: 1, Max: 5, Target: 2,
				Instances: machine("b", externalgrpc.InstanceState_INSTANCE_RUNNING)}
			if diff := cmp.Diff(want, groups[1], protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
			a := groups[0]
			if a.Problem == nil || a.Problem.Error() != c.text {
				t.Errorf("problem %v, want %s", a.Problem, c.text)
			}
			a.Problem = nil
			if diff := cmp.Diff(c.want, a, protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The last answer is used for what cannot be read, with what was done since, for as long as the group is listed.
func TestWhatWasToldLastStandsIn(t *testing.T) {
	a := []string{"NodeGroupTargetSize a", "NodeGroupNodes a", "NodeGroupGetOptions a"}
	node := []*v1.Node{{Spec: v1.NodeSpec{ProviderID: "sim://a"}}}
	for name, c := range map[string]struct {
		change   func(t *testing.T, client *Client) error
		answer   codes.Code // of the change
		target   int
		deleting bool
	}{
		"Unchanged": {func(*testing.T, *Client) error { return nil }, codes.OK, 2, false},
		"Grown": {func(t *testing.T, client *Client) error { return client.IncreaseSize(t.Context(), "a", 2, 3) },
			codes.OK, 5, false},
		"GrowthFails": {func(t *testing.T, client *Client) error { return client.IncreaseSize(t.Context(), "a", 2, 3) },
			codes.Unavailable, 2, false},
		"TakenBack": {func(t *testing.T, client *Client) error {
			return client.DecreaseTargetSize(t.Context(), "a", 2, 1)
		}, codes.OK, 1, false},
		"Deleted": {func(t *testing.T, client *Client) error { return client.DeleteNodes(t.Context(), "a", node) },
			codes.OK, 1, true},
		"MayBeDeleted": {func(t *testing.T, client *Client) error { return client.DeleteNodes(t.Context(), "a", node) },
			codes.Unavailable, 1, true},
		"NotDeleted": {func(t *testing.T, client *Client) error { return client.DeleteNodes(t.Context(), "a", node) },
			codes.FailedPrecondition, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := &cloud{target: 2, running: true, options: true,
				groups: []*externalgrpc.NodeGroup{{Id: "a", MinSize: 1, MaxSize: 7}, {Id: "b", MaxSize: 7}}}
			client := serve(t, server)
			before, err := client.Groups(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			server.fail(c.answer, "NodeGroupIncreaseSize a", "NodeGroupDeleteNodes a")
			if err := c.change(t, client); (err != nil) != (c.answer != codes.OK) {
				t.Fatal(err)
			}
			server.fail(codes.Internal, a...)
			server.groups[0] = &externalgrpc.NodeGroup{Id: "a", MinSize: 9, MaxSize: 7}
			want := before[0]
			want.Target = c.target
			if c.deleting {
				want.Instances = machine("a", externalgrpc.InstanceState_INSTANCE_DELETING)
			}
			for range 2 {
				groups, err := client.Groups(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if groups[0].Problem == nil || groups[1].Problem != nil {
					t.Errorf("groups %+v", groups)
				}
				groups[0].Problem = nil
				if diff := cmp.Diff(want, groups[0], protocmp.Transform()); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// A group that can be read again is as the cloud has it now. One that is not listed any more is forgotten.
func TestNothingOldStandsInForLong(t *testing.T) {
	server := &cloud{target: 2, groups: []*externalgrpc.NodeGroup{{Id: "a", MaxSize: 3}, {Id: "b", MaxSize: 3}}}
	client := serve(t, server)
	look := func() []Group {
		t.Helper()
		groups, err := client.Groups(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return groups
	}
	look()
	server.target = 1
	server.fail(codes.Internal, "NodeGroupTargetSize a")
	if a := look()[0]; a.Problem == nil || a.Target != 2 {
		t.Errorf("while it fails: group %+v", a)
	}
	server.fail(codes.OK)
	if a := look()[0]; a.Problem != nil || a.Target != 1 {
		t.Errorf("when it is well: group %+v", a)
	}
	all := server.groups
	server.groups = all[1:]
	look()
	server.groups = all
	server.fail(codes.Internal, "NodeGroupTargetSize a")
	if a := look()[0]; a.Problem == nil || a.Target != 0 {
		t.Errorf("listed again: group %+v", a)
	}
}

// If no group can be read, nothing is known, but nothing is forgotten either.
func TestNoGroupCanBeRead(t *testing.T) {
	server := &cloud{target: 2, groups: []*externalgrpc.NodeGroup{{Id: "a", MaxSize: 3}, {Id: "b", MaxSize: 3}}}
	client := serve(t, server)
	if _, err := client.Groups(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	server.fail(codes.Internal, "NodeGroupTargetSize a", "NodeGroupNodes b")
	if _, err := client.Groups(t.Context(), nil); err == nil ||
		!strings.HasPrefix(err.Error(), "no node group can be read: cloud provider: NodeGroupTargetSize of a: ") {
		t.Errorf("error %v", err)
	}
	server.fail(codes.Internal, "NodeGroupTargetSize a")
	groups, err := client.Groups(t.Context(), nil)
	if err != nil || groups[0].Problem == nil || groups[0].Target != 2 {
		t.Errorf("groups %+v, error %v", groups, err)
	}
}

// Groups that hang make a loop wait for one answer each, and all together not longer than they may. A loop that ends is
// no problem of a group.
func TestGroupsThatHang(t *testing.T) {
	const many = 200
	server := &cloud{}
	var hang []string
	for i := range many {
		id := fmt.Sprintf("g%03d", i)
		server.groups = append(server.groups, &externalgrpc.NodeGroup{Id: id, MaxSize: 3})
		if i > 0 {
			hang = append(hang, "NodeGroupTargetSize "+id)
		}
	}
	server.fail(codes.DeadlineExceeded, hang...)
	client := serve(t, server)
	client.askTime = 700 * time.Millisecond // one call has 300
	groups, err := client.Groups(t.Context(), nil)
	if err != nil || groups[0].Problem != nil {
		t.Fatalf("groups %+v, error %v", groups[0], err)
	}
	for _, g := range groups[1:] {
		if g.Problem == nil || !strings.Contains(g.Problem.Error(), "NodeGroupTargetSize of "+g.ID+": ") {
			t.Errorf("group %+v", g)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := client.fillAll(ended, groups, nil); err != context.Canceled {
		t.Errorf("a loop that ends: error %v", err)
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	// The first one is asked thrice, and the others wait for 300 of 700 ms, 8 at once: at most three rounds begin.
	if asked := len(server.asked); asked > 3+3*atOnce {
		t.Errorf("asked %d times", asked)
	}
}

package main

import (
	"bytes"
	"context"
	"reflect"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/engine"
)

func bytesOf(t *testing.T, m proto.Message) []byte {
	t.Helper()
	bytes, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

func TestDifferences(t *testing.T) {
	grows := func(group string, nodes int64) *loadlinev1.LoopGrowth {
		return &loadlinev1.LoopGrowth{NodeGroup: group, NodesForPods: nodes}
	}
	plan := func(why string, growth ...*loadlinev1.LoopGrowth) []byte {
		return bytesOf(t, &loadlinev1.PlanLoopResponse{Growth: growth, NoScaleDown: why})
	}
	for _, c := range []struct {
		name          string
		before, after []byte
		code          int32
		want          []string // texts
		main          string
	}{
		{"equal", plan("", grows("a", 1)), plan("", grows("a", 1)), 0, nil, ""},
		{"a value", plan("", grows("a", 1)), plan("", grows("a", 2)), 0,
			[]string{"~ growth[a].nodes_for_pods 1 -> 2"}, "PlanLoop: ~ growth[].nodes_for_pods"},
		{"an element", plan(""), plan("groups grow", grows("a", 2)), 0,
			[]string{`+ growth[a].node_group "a"`, "+ growth[a].nodes_for_pods 2", `+ no_scale_down "groups grow"`},
			"PlanLoop: + growth[].node_group"},
		{"an element less", plan("", grows("a", 1), grows("b", 1)), plan("", grows("b", 1)), 0,
			[]string{`- growth[a].node_group "a"`, "- growth[a].nodes_for_pods 1"}, "PlanLoop: - growth[].node_group"},
		{"the order", plan("", grows("a", 1), grows("b", 1)), plan("", grows("b", 1), grows("a", 1)), 0,
			[]string{"the same values in another order"}, "PlanLoop: order of elements"},
		{"a field of a newer library", plan(""), protowire.AppendVarint(
			protowire.AppendTag(nil, 1000, protowire.VarintType), 1), 0,
			[]string{"+ UNKNOWN 3 bytes"}, "PlanLoop: + UNKNOWN"},
		{"a refusal", plan(""), nil, 3, []string{"code 0 -> 3 no"}, "PlanLoop: code"},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer := &loadlinev1.PlanLoopResponse{}
			if err := proto.Unmarshal(c.after, answer); err != nil {
				t.Fatal(err)
			}
			again := engine.Replayed{Answer: answer, Same: bytes.Equal(c.before, c.after)}
			if c.code != 0 {
				again = engine.Replayed{Err: status.Error(codes.Code(c.code), "no")}
			}
			call := &call{&loadlinev1.RecordedCall{Method: "/loadline.v1.Autoscaler/PlanLoop", Response: c.before}, again, 0}
			all, err := call.differences()
			if err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, d := range all {
				texts = append(texts, d.text)
			}
			if !slices.Equal(texts, c.want) {
				t.Errorf("differences: %q, want %q", texts, c.want)
			}
			if len(all) > 0 && mainKind(all) != c.main {
				t.Errorf("main kind: %q, want %q", mainKind(all), c.main)
			}
		})
	}
}

// Recordings are made again from their seeds.
func TestEqualSeedsMakeEqualWorlds(t *testing.T) {
	for seed := range uint64(20) {
		a, b := newWorld(seed), newWorld(seed)
		for range 5 {
			a.step()
			b.step()
		}
		first, _, err := a.own(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		second, _, err := b.own(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(first, second) || !reflect.DeepEqual(a.tagsOf(), b.tagsOf()) {
			t.Errorf("seed %d: the worlds differ", seed)
		}
		if !proto.Equal(drawDays(seed), drawDays(seed)) {
			t.Errorf("seed %d: the days differ", seed)
		}
	}
}

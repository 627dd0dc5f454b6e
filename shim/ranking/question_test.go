package ranking

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/loadlinev1"
)

const questionHead = "apiVersion: loadline.dev/v1alpha1\nkind: RankQuestion\n"

func TestQuestionReachesTheEngine(t *testing.T) {
	q, err := parseQuestion([]byte(questionHead + `
policy: {preset: proposal, priorities: {7: [b]}}
clusterNodes: 12
running: {cpu: 9, memory: 2Gi, largestCPU: 1500m, largestMemory: 1Gi}
options:
- nodeGroup: a
  nodeCount: 2
  template: {metadata: {labels: {x: z}}, status: {capacity: {cpu: 2}}}
  nodePrice: 0.25
  instanceType: a-2
  spot: true
  toBeCreated: true
  pods: [{count: 3, requests: {cpu: 100m}}, {count: 1, requests: {memory: 1Gi}}]
- nodeGroup: b
  nodeCount: 1
  pods: []
`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := q.Proto()
	if err != nil {
		t.Fatal(err)
	}
	var node v1.Node
	if err := node.Unmarshal(got.Options[0].TemplateNode); err != nil || node.Labels["x"] != "z" ||
		node.Status.Capacity.Cpu().Value() != 2 {
		t.Errorf("template %v, %v", node, err)
	}
	got.Options[0].TemplateNode = nil
	want := []*loadlinev1.ExpansionOption{
		{NodeGroup: "a", NodeCount: 2, NodeUsdPerHour: proto.Float64(0.25), InstanceType: "a-2", Spot: proto.Bool(true),
			ToBeCreated: true,
			Pods:        []*loadlinev1.PodRun{{Pod: 0, Count: 3}, {Pod: 1, Count: 1}}},
		{NodeGroup: "b", NodeCount: 1, Priority: proto.Int64(7)},
	}
	for i := range want {
		if !proto.Equal(got.Options[i], want[i]) {
			t.Errorf("option %v, want %v", got.Options[i], want[i])
		}
	}
	if want := (&loadlinev1.RunningDemand{TotalMilliCpu: 9000, TotalMemoryBytes: 2 << 30, LargestMilliCpu: 1500,
		LargestMemoryBytes: 1 << 30}); !proto.Equal(got.GetRunning(), want) {
		t.Errorf("running %v, want %v", got.GetRunning(), want)
	}
	if got.GetClusterNodes() != 12 || got.GetPolicy().GetPreset() != loadlinev1.RankPolicy_PROPOSAL {
		t.Errorf("%d nodes, preset %v", got.GetClusterNodes(), got.GetPolicy().GetPreset())
	}
	for i, want := range []v1.ResourceList{q.Options[0].Pods[0].Requests, q.Options[0].Pods[1].Requests} {
		var pod v1.Pod
		if err := pod.Unmarshal(got.Pods[i]); err != nil {
			t.Fatal(err)
		}
		for name, amount := range want {
			if other := pod.Spec.Containers[0].Resources.Requests[name]; amount.Cmp(other) != 0 {
				t.Errorf("pod %d: %s of %s, want %s", i, other.String(), name, amount.String())
			}
		}
	}
}

func TestQuestionsThatAreWrong(t *testing.T) {
	for text, says := range map[string]string{
		"options: []": `kind ""`,
		questionHead:  "options: missing",
		questionHead + "options: [{nodeCount: 1}]":                      "options[0].nodeGroup: missing",
		questionHead + "options: [{nodeGroup: a, nodes: 1}]":            `unknown field "options[0].nodes"`,
		questionHead + "options: [{nodeGroup: a}]\npolicy: {preset: x}": "policy: preset",

		questionHead + "options: [{nodeGroup: a, pods: [{count: 1, requests: {cpu: lots}}]}]": "quantities must match",
	} {
		if _, err := parseQuestion([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

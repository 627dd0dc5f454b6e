package e2e

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/autoscaler/act/drain"
	"loadline.dev/test/e2e/harness"
	"loadline.dev/test/e2e/simcloud"
)

// escalatorFile is Escalator's, of a group whose bounds are the cloud's.
const escalatorFile = `node_groups:
- name: workers
  label_key: pool
  label_value: batch
  cloud_provider_group_name: batch
  min_nodes: 0
  max_nodes: 0
  dry_mode: false
  scale_up_threshold_percent: 70
  taint_upper_capacity_threshold_percent: 40
  taint_lower_capacity_threshold_percent: 20
  slow_node_removal_rate: 1
  fast_node_removal_rate: 2
  soft_delete_grace_period: 5s
  hard_delete_grace_period: 15s
  scale_up_cool_down_period: 1s
`

// sizeTainted returns the nodes that carry the taint of sizing, by name.
func (s *scaled) sizeTainted() (names []string) {
	for _, node := range s.nodes() {
		if slices.ContainsFunc(node.Spec.Taints,
			func(taint v1.Taint) bool { return taint.Key == drain.SizeTaint }) {
			names = append(names, node.Name)
		}
	}
	slices.Sort(names)
	return names
}

// A group of nodes of 2 cpus grows above 70 percent. Six pods of 0.5 cpu are 3 cpus: ceil(3 / (0.7 * 2)) = 3 nodes,
// though they fit on two. With one of them left, 8.3 percent are requested: the two oldest nodes are tainted. The empty
// one is removed after five seconds, the other one, on which the pod is, after fifteen, by its eviction.
func TestAutoscalerSizesByUtilization(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "node-groups.yaml")
	if err := os.WriteFile(file, []byte(escalatorFile), 0o600); err != nil {
		t.Fatal(err)
	}
	batch := pool("batch", 1, 6, 2, 0.10)
	s := startGrowing(t, time.Second, []simcloud.Group{batch}, "--decisions=scale-up,scale-down",
		"--scale-down-delay-after-add=0s", "--sized-node-groups="+file)
	only := map[string]string{"pool": "batch"}
	s.deployOn("keeper", 1, "500m", only) // on the first node
	s.waitRunning("keeper", 1)
	s.deployOn("load", 5, "500m", only)
	s.waitRunning("load", 5)
	s.wait("3 nodes of the group, half full",
		func() bool { return s.cloud.Target("batch") == 3 && strings.Contains(s.status(), "cpu: 50.0 %") })
	if tainted := s.sizeTainted(); len(tainted) > 0 {
		t.Errorf("%v are tainted at 50 percent", tainted)
	}

	nodes := slices.DeleteFunc(s.nodes(), func(node v1.Node) bool { return node.Labels["pool"] != "batch" })
	slices.SortFunc(nodes, func(a, b v1.Node) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	oldest := []string{nodes[0].Name, nodes[1].Name}
	slices.Sort(oldest)
	s.deployOn("load", 0, "500m", only)
	s.wait("the two oldest nodes to be tainted", func() bool { return slices.Equal(s.sizeTainted(), oldest) })
	s.wait("both to go",
		func() bool { return s.cloud.Target("batch") == 1 && len(s.nodes()) == 2 && s.runs("keeper") == 1 })
	s.calm(10)
	if tainted := s.sizeTainted(); len(tainted) > 0 {
		t.Errorf("%v are left tainted", tainted)
	}
	if names := s.describe(); len(names) != 2 ||
		!slices.ContainsFunc(names, func(line string) bool { return strings.HasPrefix(line, nodes[2].Name+" [] ") }) {
		t.Errorf("nodes %v, want base and %s without taints", names, nodes[2].Name)
	}
	metrics := metricsOf(t, s.ctx, s.autoscaler)
	if evicted := metrics.Sum("loadline_autoscaler_evicted_pods_total",
		harness.Labels{"eviction_result": "accepted"}); evicted != 1 {
		t.Errorf("%v pods were evicted, want that of the oldest node", evicted)
	}
	s.checkSizes(batch)
	expectNothingForbidden(t, s.autoscaler.Process)
}

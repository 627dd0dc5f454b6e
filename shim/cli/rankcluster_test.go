package cli

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// rankFiles writes a cluster of one full node and 50 pods of 1.5 cpu that wait, the two machines of the proposal as
// node groups, and its policy, and returns the arguments that name them.
func rankFiles(t *testing.T, podSpec string) []string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	var cluster strings.Builder
	cluster.WriteString(`apiVersion: v1
kind: Node
metadata: {name: full, labels: {kubernetes.io/hostname: full}}
status: {capacity: {cpu: 1, memory: 4Gi, pods: 110}, allocatable: {cpu: 1, memory: 4Gi, pods: 110}}
`)
	for i := range 50 {
		fmt.Fprintf(&cluster, "---\napiVersion: v1\nkind: Pod\n"+
			"metadata: {name: web-%d, namespace: shop, labels: {app: web}}\n"+
			"spec: {containers: [{name: c, resources: {requests: {cpu: 1500m}}}]%s}\n", i, podSpec)
	}
	var groups strings.Builder
	for _, machine := range []struct {
		name, cpu, memory string
		price             float64
	}{{"n1-standard-2", "2", "7500Mi", 0.095}, {"n1-standard-8", "8", "30000Mi", 0.380}} {
		fmt.Fprintf(&groups, "---\napiVersion: loadline.dev/v1alpha1\nkind: NodeGroup\nmetadata: {name: %s}\nspec:\n"+
			"  max: 100\n  price: %v\n"+
			"  template: {metadata: {labels: {pool: %s}}, status: {capacity: {cpu: %s, memory: %s, pods: 110}}}\n",
			machine.name, machine.price, machine.name, machine.cpu, machine.memory)
	}
	policy := `apiVersion: loadline.dev/v1alpha1
kind: RankPolicy
preset: proposal
damper: 0.016
podRates: {cpu: 0.03, memoryGiB: 0}
preferredNode: {cpu: 8, memory: 30000Mi}
`
	return []string{"-f", write("cluster.yaml", cluster.String()), "--groups", write("groups.yaml", groups.String()),
		"--rank-policy", write("policy.yaml", policy)}
}

const antiAffinity = `, affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname,
  labelSelector: {matchLabels: {app: web}}}]}}`

type wantedOption struct {
	group string
	nodes int32
	score float64
}

func checkOptions(t *testing.T, got rankAnswer, want ...wantedOption) {
	t.Helper()
	if got.Best == nil || *got.Best != want[0].group || len(got.Options) != len(want) {
		t.Fatalf("best %v of %+v, want %s", got.Best, got.Options, want[0].group)
	}
	for i, w := range want {
		o := got.Options[i]
		if o.NodeGroup != w.group || o.NodeCount != w.nodes || o.Pods != 50 || o.Score == nil ||
			math.Abs(*o.Score-w.score) > 1e-6 {
			t.Errorf("%+v, want %+v", o, w)
		}
	}
}

// The proposal's last example, from pods and templates: under anti-affinity each pod needs a node, and the small
// machine wins, by suppress(4, 50) * (50 * 0.095 + X) / (50 * 0.045 + X). Without, five fit on a large machine, and it
// wins.
func TestRankOfACluster(t *testing.T) {
	checkOptions(t, rankJSON(t, rankFiles(t, antiAffinity)...),
		wantedOption{"n1-standard-2", 50, 1.0087121 * 4.766 / 2.266}, wantedOption{"n1-standard-8", 50, 19.016 / 2.266})
	checkOptions(t, rankJSON(t, rankFiles(t, "")...),
		wantedOption{"n1-standard-8", 10, 3.816 / 2.266}, wantedOption{"n1-standard-2", 50, 1.0087121 * 4.766 / 2.266})
}

// If nothing fits on the new nodes of a group, it is last and says so; if nothing fits at all, none is best.
func TestRankWherePodsFitNowhere(t *testing.T) {
	got := rankJSON(t, rankFiles(t, ", nodeSelector: {pool: n1-standard-2}")...)
	if got.Best == nil || *got.Best != "n1-standard-2" || got.Options[1].Score != nil ||
		got.Options[1].Reason != "50 pods, such as shop/web-0: node(s) didn't match Pod's node affinity/selector: "+
			"the pod selects pool=n1-standard-2, and a new node has pool=n1-standard-8" {
		t.Errorf("best %v of %+v", got.Best, got.Options)
	}
	if got := rankJSON(t, rankFiles(t, ", nodeSelector: {pool: none}")...); got.Best != nil || len(got.Options) != 2 {
		t.Errorf("best %v of %+v", got.Best, got.Options)
	}
}

func TestClusterSizeOfTheCommandLine(t *testing.T) {
	args := rankFiles(t, "")[:4] // Cluster Autoscaler's policy: of 201 nodes 32 cpu are preferred
	got := rankJSON(t, append(args, "--cluster-nodes", "201")...)
	if got.ClusterNodes == nil || *got.ClusterNodes != 201 || got.PreferredNode == nil ||
		got.PreferredNode.CPUMilli != 32000 {
		t.Errorf("%+v", got)
	}
	got = rankJSON(t, args...)
	if got.ClusterNodes == nil || *got.ClusterNodes != 1 || got.PreferredNode == nil ||
		got.PreferredNode.CPUMilli != 1000 {
		t.Errorf("%+v", got)
	}
}

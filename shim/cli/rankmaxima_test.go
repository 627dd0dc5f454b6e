package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// maximaFiles writes a cluster of one full node of 4 cores and 16 GiB, three pods that wait and fill such a node each,
// and a group `h` of such nodes without a price.
func maximaFiles(t *testing.T) []string {
	t.Helper()
	const node = "status: {capacity: {cpu: 4, memory: 16Gi, pods: 110}, allocatable: {cpu: 4, memory: 16Gi, pods: 110}}"
	cluster := "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n" + node + "\n"
	for _, pod := range []string{"fill", "web-1", "web-2", "web-3"} {
		on := ""
		if pod == "fill" {
			on = "nodeName: n1, "
		}
		cluster += "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + pod + ", namespace: shop}\nspec: {" + on +
			"containers: [{name: c, resources: {requests: {cpu: 3}}}]}\n"
	}
	groups := "apiVersion: loadline.dev/v1alpha1\nkind: NodeGroup\nmetadata: {name: h}\nspec: {max: 20, nodeSelector: " +
		"{pool: h}, template: {metadata: {labels: {pool: h}}, " + node + "}}\n"
	folder := t.TempDir()
	for name, text := range map[string]string{"cluster.yaml": cluster, "groups.yaml": groups} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"-f", filepath.Join(folder, "cluster.yaml"), "--groups", filepath.Join(folder, "groups.yaml")}
}

// Groups do not grow beyond what the whole cluster may come to, and the reason is that maximum.
func TestMaximaOfTheCluster(t *testing.T) {
	files := maximaFiles(t)
	for _, c := range []struct {
		limits          string
		none, one, plan string // no node may be added, one may, one is
	}{
		{"--max-nodes-total=", "1 the cluster may have 1 node in all", "2 the cluster may have 2 nodes in all",
			"2 the cluster may have 2 nodes in all"},
		{"--cores-total=0:", "6 the cluster has 4 of at most 6 cores (--cores-total), and a new node has 4",
			"8 with 1 more the cluster has 8 of at most 8 cores (--cores-total)",
			"8 with 1 more the cluster has 8 of at most 8 cores (--cores-total)"},
		{"--memory-total=0:", "16 the cluster has 16 of at most 16 GiB of memory (--memory-total)",
			"40 with 1 more the cluster has 32 of at most 40 GiB of memory (--memory-total), and a new node has 16",
			"40 with 1 more the cluster has 32 of at most 40 GiB of memory (--memory-total), and a new node has 16"},
	} {
		check := func(asked string, wanted []string, command ...string) {
			t.Helper()
			limit, why, _ := strings.Cut(asked, " ")
			out, errs, code := run(t, "loadline", "", append(append(command, files...), c.limits+limit)...)
			for _, want := range append(wanted, why) {
				if code != 0 || !strings.Contains(out, want) {
					t.Errorf("%s: exit %d %s, want %q in\n%s", command, code, errs, want, out)
				}
			}
		}
		check(c.none, []string{"h does not grow for shop/web-1: "}, "why-not", "shop/web-1", "h")
		check(c.none, []string{"no node group would help a pod", "3 pods, such as shop/web-1: "}, "rank")
		check(c.one, []string{"h: 1 node for 1 pod\n", "h may not grow further: "}, "rank")
		check(c.plan, []string{"3 pods wait, 1 on a new node, 2 nowhere", "1   shop/web-1   a new node of h",
			"2   shop/web-2   -", "h                           2   shop/web-2   -"}, "plan", "--extra-capacity-min-rate", "0")
	}
}

// Virtual nodes are nobody's machines: they count for no maximum but that of nodes.
func TestMaximaOfTheClusterCountMachines(t *testing.T) {
	files := maximaFiles(t)
	cluster, err := os.ReadFile(files[1])
	if err != nil {
		t.Fatal(err)
	}
	const virtual = "---\napiVersion: v1\nkind: Node\nmetadata: {name: vk, labels: {type: virtual-kubelet}}\n" +
		"spec: {taints: [{key: virtual-kubelet.io/provider, effect: NoSchedule}]}\n" +
		"status: {allocatable: {cpu: 10k, memory: 4Ti, pods: 9}}\n"
	if err := os.WriteFile(files[1], append(cluster, virtual...), 0o600); err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[string]string{"--cores-total=0:8": "h: 1 node for 1 pod\n",
		"--max-nodes-total=2": "no node group would help a pod\n"} {
		out, errs, code := run(t, "loadline", "", append([]string{"rank", limit}, files...)...)
		if code != 0 || !strings.HasPrefix(out, want) {
			t.Errorf("%s: exit %d %s:\n%s", limit, code, errs, out)
		}
	}
}

// An unknown price is not said to be nothing, and a ranking has groups grow without one.
func TestGroupsThatGrowWithoutAPrice(t *testing.T) {
	flags := append(maximaFiles(t), "--base-rate-prices=false", "--strategies", "price")
	plan, errs, code := run(t, "loadline", "", append([]string{"plan", "--extra-capacity-min-rate", "0"}, flags...)...)
	if code != 0 || !strings.Contains(plan, "USD/H\nh                    3           0       -\n") {
		t.Errorf("plan: exit %d %s:\n%s", code, errs, plan)
	}
	for want, asked := range map[string][]string{"h could grow for shop/web-1\n": flags,
		"h does not grow for shop/web-1: no price: ": flags[:len(flags)-2]} {
		out, errs, code := run(t, "loadline", "", append([]string{"why-not", "shop/web-1", "h"}, asked...)...)
		if code != 0 || !strings.HasPrefix(out, want) {
			t.Errorf("why-not: exit %d %s, want %s in\n%s", code, errs, want, out)
		}
	}
}

// A plan with a ranking says why groups take no pod.
func TestPlanSaysWhyAnOptionTakesNoPod(t *testing.T) {
	files := maximaFiles(t)
	groups, err := os.ReadFile(files[3])
	if err != nil {
		t.Fatal(err)
	}
	small := strings.NewReplacer("name: h", "name: small", "pool: h", "pool: small", "cpu: 4", "cpu: 2")
	text := string(groups) + "---\n" + small.Replace(string(groups))
	if err := os.WriteFile(files[3], []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := run(t, "loadline", "", append([]string{"plan", "--strategies", "least-waste"}, files...)...)
	if code != 0 || !strings.Contains(out, "small       0   3 pods, such as shop/web-1: Insufficient cpu\n") ||
		!strings.Contains(out, "h           3   waste 1.25; score ") {
		t.Errorf("exit %d %s:\n%s", code, errs, out)
	}
}

package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// fullPools are a node of 4 cpu and one of 2, each of a pool of its own and full; big wants 3 cpu, huge 64.
func fullPools(t *testing.T) string {
	t.Helper()
	const waits = "status: {phase: Pending}"
	labels := func(pool, instance string) string {
		return fmt.Sprintf("eks.amazonaws.com/nodegroup: %s, node.kubernetes.io/instance-type: %s, "+
			"topology.kubernetes.io/region: us-east-1, topology.kubernetes.io/zone: us-east-1a", pool, instance)
	}
	file := fieldDump(t, []fieldNode{{"n1", labels("w", "m5.xlarge"), "", "'4'", "16Gi"},
		{"n2", labels("x", "m5.large"), "", "'2'", "8Gi"}}, []fieldPod{{name: "web-0", node: "n1", cpu: "3500m"},
		{name: "web-1", node: "n2", cpu: "1800m"}, {name: "big", node: `""`, cpu: "3"},
		{name: "huge", node: `""`, cpu: "64"}})
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		if strings.Contains(line, `nodeName: ""`) {
			from := strings.Index(line, "status: {")
			lines[i] = line[:from] + waits + "}"
		}
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Without --groups, `plan`, `rank`, `why` and `why-not` are about the same groups: those that are derived from the
// nodes.
func TestDerivedGroupsAreThoseOfEachCommand(t *testing.T) {
	file := fullPools(t)
	bill := ask[billAnswer](t, file, "bill")
	var names, ranked, grown []string
	for _, group := range bill.Groups {
		names = append(names, group.Name)
	}
	rank := ask[rankAnswer](t, file, "rank")
	for _, option := range rank.Options {
		ranked = append(ranked, option.NodeGroup)
	}
	for _, growth := range ask[planAnswer](t, file, "plan", "--extra-capacity-min-rate", "0").Growth {
		grown = append(grown, growth.NodeGroup)
	}
	slices.Sort(ranked)
	large := names[slices.IndexFunc(names, func(name string) bool { return strings.Contains(name, "m5.xlarge") })]
	small := names[slices.IndexFunc(names, func(name string) bool { return strings.Contains(name, "m5.large") })]
	if len(names) != 2 || !slices.Equal(ranked, names) || !slices.Equal(grown, []string{large}) {
		t.Fatalf("bill %v, rank %v, plan %v", names, ranked, grown)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	manifest := t.TempDir() + "/pod.yaml"
	const pod = `{apiVersion: v1, kind: Pod, metadata: {name: new, namespace: shop}, spec: {containers: [
{name: c, resources: {requests: {cpu: "3"}}}]}}`
	if err := os.WriteFile(manifest, []byte(pod), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"rank", large + ": 1 node for 1 pod", 0},
		{"why " + large, large + ": place 1 of 2; ", 0},
		{"why " + small, small + ": place 2 of 2; ", 0},
		{"why-not shop/big " + large, large + " could grow for shop/big\n", 0},
		{"why-not shop/big " + small, small + " does not grow for shop/big: Insufficient cpu\n", 0},
		{"why-not shop/huge " + large, large + " does not grow for shop/huge: Insufficient cpu\n", 0},
		{"why-not -p " + manifest + " " + large, large + " could grow for shop/new\n", 0},
		{"why-not shop/big n1", "shop/big does not fit on n1\n", 0},
		{"why-not shop/big none",
			`error: node "none" is not in the cluster; node group none is not among the 2 that are derived from the nodes`, 1},
		{"why none", "error: pod default/none is not in ", 1},
		{"why no/ne", "error: pod no/ne is not in ", 1},
		{"why pod/big -n shop", "shop/big fits on none of 2 nodes now: none is scored", 0},
		{"why pod/shop/big", "shop/big fits on none of 2 nodes now: none is scored", 0},
		{"why-not pod/shop/big n1", "shop/big does not fit on n1\n", 0},
		{"why pod/" + large, "error: ", 2},
	} {
		for _, from := range []string{file, "-"} {
			out, errs, code := run(t, "loadline", string(text), append(strings.Fields(c.args), "-f", from)...)
			if code != c.code || !strings.HasPrefix(out+errs, c.want) {
				t.Errorf("%s in %s: exit %d: %s%s, want %s", c.args, from, code, out, errs, c.want)
			}
		}
	}
}

// A manifest of standard input is there for each question.
func TestWhyNotReadsThePodOnce(t *testing.T) {
	file := fullPools(t)
	const pod = `{apiVersion: v1, kind: Pod, metadata: {name: new, namespace: shop}, spec: {containers: [{name: c}]}}`
	name := ask[billAnswer](t, file, "bill").Groups[0].Name
	out, errs, code := run(t, "loadline", pod, "why-not", "-p", "-", name, "-f", file)
	if code != 0 || !strings.Contains(out, name) {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

// The name of a group may look like that of a pod with its namespace, and a dump may be read only once.
func TestADerivedGroupMayBeNamedLikeAPod(t *testing.T) {
	file := fieldDump(t, []fieldNode{{name: "n1", labels: "pool: g"}}, []fieldPod{{name: "web-0", node: "n1", cpu: "1"}})
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{file, "-"} {
		out, errs, code := run(t, "loadline", string(text), "why", "g/8-cpu-32Gi", "-f", from)
		if code != 0 || !strings.HasPrefix(out, "g/8-cpu-32Gi: place 1 of 1; ") {
			t.Errorf("%s: exit %d: %s%s", from, code, out, errs)
		}
	}
}

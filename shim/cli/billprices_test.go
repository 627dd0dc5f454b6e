package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// labelledNode is a ready node of 4 CPUs and 16 GiB with labels, each KEY=VALUE.
func labelledNode(name string, labels ...string) string {
	text := fmt.Sprintf("%q:%q", "kubernetes.io/hostname", name)
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		text += fmt.Sprintf(",%q:%q", key, value)
	}
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q,"labels":{%s}},"status":{
"capacity":{"cpu":"4","memory":"16Gi","pods":"110"},"allocatable":{"cpu":"4","memory":"16Gi","pods":"110"},
"conditions":[{"type":"Ready","status":"True"}]}}`, name, text)
}

func billOf(t *testing.T, args []string, nodes ...string) (billAnswer, string) {
	t.Helper()
	dump := `{"apiVersion":"v1","kind":"List","items":[` + strings.Join(nodes, ",") + `]}`
	out, errs, code := run(t, "loadline", dump, append([]string{"bill", "--no-pods", "-f", "-", "-o", "json"}, args...)...)
	var bill billAnswer
	if err := json.Unmarshal([]byte(out), &bill); code != 0 || err != nil {
		t.Fatal(code, errs, err)
	}
	table, _, _ := run(t, "loadline", dump, append([]string{"bill", "--no-pods", "-f", "-"}, args...)...)
	return bill, table
}

const (
	m5    = "node.kubernetes.io/instance-type=m5.xlarge" // 0.192 in us-east-1
	east  = "topology.kubernetes.io/region=us-east-1"
	base4 = 4*0.033174 + 16*0.004446
)

// JSON of a sum without a price has no null.
func TestPriceNotesAreAList(t *testing.T) {
	if out, err := json.Marshal(newPriceSources(nil)); err != nil || !strings.Contains(string(out), `"notes":[]`) {
		t.Errorf("%s, error %v", out, err)
	}
}

// The price of a node follows from its labels, and the answer names its basis.
func TestBillSaysWherePricesComeFrom(t *testing.T) {
	const disk = 100 * 0.1 / 720
	for _, c := range []struct {
		name   string
		labels []string
		args   []string
		usd    float64
		of     func(priceSources) float64
		says   string
	}{
		{"list", []string{m5, east}, nil, 0.192, func(p priceSources) float64 { return p.List },
			"aws-us-east-1.csv (us-east-1, 2026-07)"},
		{"region", []string{m5, "topology.kubernetes.io/region=eu-central-1"}, nil, 0.192,
			func(p priceSources) float64 { return p.List }, "us-east-1 for eu-central-1"},
		{"spot", []string{m5, "karpenter.sh/capacity-type=spot"}, nil, 0.192 * 0.4,
			func(p priceSources) float64 { return p.SpotRatio }, "--spot-factor"},
		{"spot factor", []string{m5, "karpenter.sh/capacity-type=spot"}, []string{"--spot-factor", "0.25"}, 0.192 * 0.25,
			func(p priceSources) float64 { return p.SpotRatio }, "0.25 of the on-demand price"},
		{"spot of kOps", []string{m5, "node-role.kubernetes.io/spot-worker=true"}, nil, 0.192 * 0.4,
			func(p priceSources) float64 { return p.SpotRatio }, ""},
		{"spot by convention", []string{m5, "lifecycle=Ec2Spot"}, nil, 0.192 * 0.4,
			func(p priceSources) float64 { return p.SpotRatio }, ""},
		{"Azure", []string{"node.kubernetes.io/instance-type=Standard_E8s_v5", "topology.kubernetes.io/region=eastus"}, nil,
			0.504, func(p priceSources) float64 { return p.List }, "azure.csv (eastus, 2026-06-18)"},
		{"Azure elsewhere", []string{"node.kubernetes.io/instance-type=Standard_D8s_v5",
			"topology.kubernetes.io/region=westeurope"}, nil, 0.46, func(p priceSources) float64 { return p.List },
			"azure.csv (westeurope, 2026-06-18)"},
		{"unlisted", []string{"node.kubernetes.io/instance-type=cpx41"}, nil, base4 + disk,
			func(p priceSources) float64 { return p.Estimate }, "no list has cpx41"},
		{"no type", nil, nil, base4 + disk, func(p priceSources) float64 { return p.Estimate },
			"1 node names no instance type"},
		{"reserved", []string{m5, "karpenter.sh/capacity-type=reserved"}, nil, 0.192,
			func(p priceSources) float64 { return p.Reserved }, "1 node is reserved"},
		{"Windows", []string{m5, "kubernetes.io/os=windows"}, nil, 0.376,
			func(p priceSources) float64 { return p.List + p.Licences }, "1 node runs Windows: 0.184 USD/h"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bill, table := billOf(t, c.args, labelledNode("n", c.labels...))
			if math.Abs(bill.Now-c.usd) > 1e-6 || math.Abs(c.of(bill.Prices)-c.usd) > 1e-6 {
				t.Errorf("now %v, want %v: %+v", bill.Now, c.usd, bill.Prices)
			}
			if !strings.Contains(table, c.says) || !strings.Contains(strings.Join(bill.Prices.Notes, " "), c.says) {
				t.Errorf("does not say %q:\n%s", c.says, table)
			}
		})
	}
}

// A bound is named as long as no more than a tenth of what is paid is estimated.
func TestBillNamesNoBoundOfEstimates(t *testing.T) {
	listed := func(n int) (nodes []string) {
		for i := range n {
			nodes = append(nodes, labelledNode(fmt.Sprintf("listed-%d", i), m5, east))
		}
		return append(nodes, labelledNode("estimated", "node.kubernetes.io/instance-type=k3s"))
	}
	bill, table := billOf(t, nil, listed(12)...) // 2.304 listed, 0.218 estimated
	if bill.Bound == nil || bill.Gap == nil || !strings.Contains(table, "no arrangement of these pods costs less than") {
		t.Errorf("bound %v:\n%s", bill.Bound, table)
	}
	bill, table = billOf(t, nil, listed(9)...) // 1.728 and 0.218
	if bill.Bound != nil || bill.Gap != nil || strings.Contains(table, "costs less") ||
		!strings.Contains(table, "--prices") {
		t.Errorf("bound %v:\n%s", bill.Bound, table)
	}
	out, _, _ := run(t, "loadline", `{"apiVersion":"v1","kind":"List","items":[`+strings.Join(listed(1), ",")+`]}`,
		"consolidate", "-f", "-", "--no-pods", "-o", "json")
	if !strings.Contains(out, `"bound": null`) {
		t.Errorf("consolidate: %s", out)
	}
}

// Spot is what rank and plan choose where all else is equal.
func TestSpotIsChosen(t *testing.T) {
	groups := filepath.Join(t.TempDir(), "groups.yaml")
	if err := os.WriteFile(groups, []byte(spotGroups), 0o600); err != nil {
		t.Fatal(err)
	}
	dump := `{"apiVersion":"v1","kind":"List","items":[` + labelledNode("n", m5) + `,{"apiVersion":"v1","kind":"Pod",
"metadata":{"name":"p","namespace":"shop"},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{
"cpu":"6","memory":"1Gi"}}}]}}]}`
	for _, prices := range [][]string{nil, {"--prices", "../../manifests/prices/aws-us-east-1.csv"}} {
		out, errs, code := run(t, "loadline", dump, append([]string{"rank", "-f", "-", "--groups", groups}, prices...)...)
		if code != 0 || !strings.HasPrefix(out, "b-spot: 1 node for 1 pod, over a-on-demand") {
			t.Errorf("rank %v: %s%s", prices, out, errs)
		}
		out, errs, code = run(t, "loadline", dump, append([]string{"plan", "-f", "-", "--groups", groups}, prices...)...)
		if code != 0 || !strings.Contains(out, "b-spot") || strings.Contains(out, "a-on-demand") {
			t.Errorf("plan %v: %s%s", prices, out, errs)
		}
	}
}

const spotGroups = `apiVersion: loadline.dev/v1alpha1
kind: NodeGroup
metadata: {name: a-on-demand}
spec:
  max: 5
  template:
    metadata: {labels: {node.kubernetes.io/instance-type: m5.2xlarge}}
    status: {allocatable: {cpu: "8", memory: 32Gi, pods: "110"}}
---
apiVersion: loadline.dev/v1alpha1
kind: NodeGroup
metadata: {name: b-spot}
spec:
  max: 5
  template:
    metadata: {labels: {node.kubernetes.io/instance-type: m5.2xlarge, node.kubernetes.io/lifecycle: spot}}
    status: {allocatable: {cpu: "8", memory: 32Gi, pods: "110"}}
`

// The bound of several clusters is named where that of each is.
func TestBoundOfAFleet(t *testing.T) {
	write := func(name string, nodes ...string) string {
		file := filepath.Join(t.TempDir(), name)
		content := `{"apiVersion":"v1","kind":"List","items":[` + strings.Join(nodes, ",") + `]}`
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	listed, other := write("a.json", labelledNode("n", m5)), write("b.json", labelledNode("n", m5))
	estimated := write("c.json", labelledNode("n"))
	ask := func(files ...string) (got fleetAnswer) {
		out := run2(t, append(append([]string{"bill", "--no-pods"}, files...), "-o", "json")...)
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	both := ask(listed, other)
	if both.Bound == nil || *both.Bound != *both.Clusters[0].Bound+*both.Clusters[1].Bound {
		t.Errorf("%+v", both)
	}
	if mixed := ask(listed, estimated); mixed.Bound != nil || mixed.Clusters[0].Bound == nil {
		t.Errorf("%+v", mixed)
	}
}

// A node without a price is in no group, or in one that nobody can price.
func TestBillSaysWhyNodesAreNotCounted(t *testing.T) {
	groups := filepath.Join(t.TempDir(), "groups.yaml")
	text := "apiVersion: loadline.dev/v1alpha1\nkind: NodeGroup\nmetadata: {name: a}\n" +
		"spec: {nodeSelector: {pool: a}, min: 0, max: 3}\n"
	if err := os.WriteFile(groups, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	pooled := func(name string) string { return labelledNode(name, "pool=a") }
	typed := func(name string) string { return labelledNode(name, "pool=a", m5, east) }
	for _, c := range []struct {
		nodes []string
		want  []string
		lacks string
	}{
		{[]string{typed("a"), labelledNode("b", m5, east)},
			[]string{"1 node is in no node group: it is not counted, and stays."}, "no known price"},
		{[]string{typed("a"), labelledNode("b", m5, east), labelledNode("c")},
			[]string{"2 nodes are in no node group: they are not counted, and stay."}, "no known price"},
		{[]string{pooled("a")}, []string{"1 node has no known price: it is not counted, and stays."}, "no node group"},
		{[]string{pooled("a"), pooled("b"), labelledNode("c", m5, east)},
			[]string{"2 nodes have no known price: they are not counted, and stay.",
				"1 node is in no node group: it is not counted, and stays."}, "3 nodes"},
	} {
		bill, _ := billOf(t, []string{"--groups", groups, "--base-rate-prices=false"}, c.nodes...)
		notes := strings.Join(bill.Notes, " ")
		for _, want := range c.want {
			if !strings.Contains(notes, want) || strings.Contains(notes, c.lacks) {
				t.Errorf("%s: want %q, and not %q", notes, want, c.lacks)
			}
		}
	}
}

// A scenario has the prices of a bill, and says where they are from.
func TestScenarioHasTheFactorOfSpotNodes(t *testing.T) {
	dump := labelledNode("n", m5, east, "karpenter.sh/capacity-type=spot")
	for factor, want := range map[string]string{"0.25": "usdPerHour: 0.048\n", "0.5": "usdPerHour: 0.096\n"} {
		file := filepath.Join(t.TempDir(), "dump.json")
		pod := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"shop"},"spec":{"nodeName":"n",
"containers":[{"name":"c"}]}}`
		text := `{"apiVersion":"v1","kind":"List","items":[` + dump + "," + pod + `]}`
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs, code := run(t, "loadline", "", "scenario", "-f", file, "--spot-factor", factor)
		if code != 0 || !strings.Contains(out, want) || !strings.HasPrefix(out, "# ") ||
			!strings.Contains(out, "aws-us-east-1.csv") {
			t.Errorf("%s: exit %d %s: %s, want %s", factor, code, errs, out, want)
		}
	}
	if _, errs, code := run(t, "loadline", "", "scenario", "-f", "x", "--spot-factor", "2"); code != 2 ||
		!strings.Contains(errs, "--spot-factor: 2") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

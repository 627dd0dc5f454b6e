package cli

import (
	"strings"
	"testing"
)

// Three nodes of docs/shop.yaml hold 14, 8 and 5 of 8 cpu; on the first all pods stay. The second has a taint that the
// pod does not tolerate.
func TestFormsOfEveryCommand(t *testing.T) {
	shop := []string{"-f", "../../docs/shop.yaml"}
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"Name", []string{"top", "-o", "name"}, "node/node-a\nnode/gpu-a\nnode/node-b\n"},
		{"JSONPath", []string{"score", "shop/web-0", "-o", "jsonpath={.scores[*].node}"}, "node-b node-a"},
		{"Template", []string{"score", "shop/web-0", "-o", "go-template={{range .scores}}{{.score}} {{end}}"}, "100 0 "},
		{"Custom", []string{"score", "shop/web-0", "-o", "custom-columns=N:.node,RAW:.raw,X:.none"},
			"N        RAW       X\nnode-b   40.625    <none>\nnode-a   -15.625   <none>\n"},
		{"Rows", []string{"score", "shop/web-0", "--no-headers"},
			"node-b   100    40.62\nnode-a     0   -15.62\n"},
		{"Sorted", []string{"score", "shop/web-0", "--sort-by", ".score", "-o", "custom-columns=N:.node", "--no-headers"},
			"node-a\nnode-b\n"},
		{"SortedTable", []string{"score", "shop/web-0", "--sort-by", ".score", "--no-headers"},
			"node-a     0   -15.62\nnode-b   100    40.62\n"},
		{"SortedText", []string{"drain", "--sort-by", "{.node}", "-o", "jsonpath={.keep[*].node}"}, "gpu-a node-a node-b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, errs, code := run(t, "loadline", "", append(c.args, shop...)...)
			if out != c.want || code != 0 {
				t.Errorf("exit %d %s, got\n%q, want\n%q", code, errs, out, c.want)
			}
		})
	}
}

func TestWideShowsMore(t *testing.T) {
	shop := []string{"drain", "-f", "../../docs/shop.yaml", "-o"}
	table, _, _ := run(t, "loadline", "", append(shop, "table")...)
	wide, errs, code := run(t, "loadline", "", append(shop, "wide")...)
	if strings.Contains(table, "GROUP") || !strings.Contains(wide, "STAYS    GROUP") || code != 0 {
		t.Errorf("exit %d %s: table\n%s, wide\n%s", code, errs, table, wide)
	}
	page, errs, code := run(t, "loadline", "", "consolidate", "-f", "../../docs/shop.yaml", "-o", "html")
	if !strings.Contains(page, "USD/h is paid") || !strings.Contains(page, "WHAT WOULD HELP") || code != 0 {
		t.Errorf("exit %d %s: page\n%.500s", code, errs, page)
	}
}

func TestWrongFormsAreNamed(t *testing.T) {
	for want, args := range map[string][]string{
		"must be one of table, json":         {"-o", "jsonpath="},
		"error reading --template":           {"-o", "go-template-file=/nonexistent/x"},
		"must be custom-columns=HEADER:PATH": {"-o", "custom-columns=N"},
		`path ".a[": unterminated array`:     {"-o", "custom-columns=N:.a["},
		`--sort-by ".nobody": no row`:        {"-o", "json", "--sort-by", ".nobody"},
		"unclosed action":                    {"-o", "jsonpath={.scores"},
	} {
		_, errs, code := run(t, "loadline", "",
			append([]string{"score", "shop/web-0", "-f", "../../docs/shop.yaml"}, args...)...)
		if code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%v: exit %d, want %q: %s", args, code, want, errs)
		}
	}
}

// Names come from others: no form lets one steer a terminal.
func TestTemplatesAreEscaped(t *testing.T) {
	dump := `{"kind":"List","items":[{"apiVersion":"v1","kind":"Node","metadata":{"name":"a\u001b[31m"},` +
		`"status":{"allocatable":{"cpu":"1","memory":"1Gi"}}}]}`
	for _, form := range []string{"jsonpath={.nodes[*].node}", "custom-columns=N:.node", "name",
		"go-template={{range .nodes}}{{.node}}\t{{end}}"} {
		out, errs, code := run(t, "loadline", dump, "top", "-f", "-", "-o", form)
		if strings.Contains(out, "\x1b") || !strings.Contains(out, `a\x1b[31m`) || code != 0 {
			t.Errorf("%s: exit %d %s: %q", form, code, errs, out)
		}
	}
}

// Custom columns are of the main list: of a bill its moves, of several bills the clusters.
func TestCustomColumnsAreOfTheMainList(t *testing.T) {
	for _, c := range []struct{ args, columns, want string }{
		{"bill -f testdata/drain.json --now " + drainNow, "N:.name,NODES:.nodes,R:.reason", ""},
		{"bill -f testdata/drain.json --now " + drainNow, "N:.name,GOES:.remove[0]",
			"<none> node-8 <none> node-3 <none> node-4 <none> node-7 <none> node-1 <none> node-2"},
		{"bill testdata/drain.json testdata/plan.yaml", "NODES:.nodes,C:.cluster", "8 <none> 1 <none>"},
	} {
		out, errs, code := run(t, "loadline", "", append(strings.Fields(c.args), "--no-headers", "-o",
			"custom-columns="+c.columns)...)
		if got := strings.Join(strings.Fields(out), " "); got != c.want || code != 0 {
			t.Errorf("%s %s: exit %d %s, got %s, want %s", c.args, c.columns, code, errs, got, c.want)
		}
	}
}

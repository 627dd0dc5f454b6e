package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Custom columns have the rows that were asked for alone, under the keys of -o json.
func TestCustomColumnsHaveNoOtherRows(t *testing.T) {
	const drain, two = "drain -f testdata/drain.json --now " + drainNow, "bill testdata/drain.json testdata/drain.json"
	cluster, groups := refusalFiles(t)
	waiting := " -f " + cluster + " --groups " + groups
	for _, c := range []struct{ command, columns, want string }{
		{drain, "N:.node", strings.ReplaceAll(outOf(t, drain+" -o name"), "node/", "")},
		{"plan" + waiting, "G:.nodeGroup", "fine\n"},
		{"plan" + waiting, "N:.node", ""},
		{"fit shop/wait-0 -f testdata/plan.yaml", "N:.node",
			strings.ReplaceAll(outOf(t, "fit shop/wait-0 -f testdata/plan.yaml -o name"), "node/", "")},
		{two, "N:.name", "testdata/drain.json\ntestdata/drain.json\n"},
	} {
		out := outOf(t, c.command+" --no-headers -o custom-columns="+c.columns)
		if out != c.want {
			t.Errorf("%s: got %q, want %q", c.command, out, c.want)
		}
	}
	if names := outOf(t, drain+" -o name"); names == "" {
		t.Error("no node can go: the test shows nothing")
	}
	if table := outOf(t, two); !strings.Contains(table, "\nall ") || !strings.Contains(table, "\nCLUSTER ") {
		t.Errorf("no sum over the clusters in\n%s", table)
	}
}

func outOf(t *testing.T, command string) string {
	t.Helper()
	out, errs, code := run(t, "loadline", "", strings.Fields(command)...)
	if code != 0 {
		t.Fatalf("%s: exit %d: %s", command, code, errs)
	}
	return out
}

// Several clusters in which no move pays have the verdict that one has.
func TestSeveralClustersWithoutAMove(t *testing.T) {
	file := filepath.Join(t.TempDir(), "one.yaml")
	const bare = `- {apiVersion: v1, kind: Pod, metadata: {name: bare, namespace: shop},
   spec: {nodeName: n1, containers: [{name: a}]}}
`
	if err := os.WriteFile(file, []byte(refusalCluster+bare), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := outOf(t, "bill "+file+" "+file); strings.Contains(out, "GOES") ||
		!strings.Contains(out, "no move pays.\n") {
		t.Error(out)
	}
}

func TestTheCommandLineIsCheckedInAllForms(t *testing.T) {
	const drain = "drain -f testdata/drain.json"
	for args, want := range map[string]string{
		"plan -f testdata/plan.yaml -o html --sort-by .none": `--sort-by ".none": no row of the answer has it`,
		drain + " --engine nope":                             `engine address "nope": must be inprocess`,
		drain + " --now 9999-12-31T23:59:59Z":                "must be before the year 9000",
		"score pod5 -f testdata/proposal.json --engine nope": `engine address "nope"`,
	} {
		if _, errs, code := run(t, "loadline", "", strings.Fields(args)...); code != exitUsage ||
			!strings.Contains(errs, want) {
			t.Errorf("%s: exit %d %s, want %s", args, code, errs, want)
		}
	}
	if out := outOf(t, "why pod5 -f testdata/proposal.json -o json"); !strings.Contains(out, `"doesNotFit": []`) {
		t.Error(out)
	}
}

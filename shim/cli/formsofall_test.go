package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// Each command with a form of output has a row: what -o name prints, and one path of its rows.
var everyCommand = []struct {
	line, names, path string
	none              bool // rows have no names
}{
	{"top -f ../../docs/shop.yaml", "node/node-a node/gpu-a node/node-b", ".node", false},
	{"top --lines 1,2 -f ../../docs/shop.yaml", "", ".line", true},
	{"score shop/web-0 -f ../../docs/shop.yaml", "node/node-b node/node-a", ".node", false},
	{"fit shop/web-0 -f ../../docs/shop.yaml", "node/node-a node/node-b", ".node", false},
	{"why shop/web-0 -f ../../docs/shop.yaml", "node/node-b node/node-a", ".node", false},
	{"why node/node-a -f ../../docs/shop.yaml", "node/node-a", ".node", false},
	{"why workers -f testdata/plan.yaml --groups testdata/plan-groups.yaml", "nodegroup/workers", ".nodeGroup", false},
	{"why-not shop/web-0 -f ../../docs/shop.yaml", "node/gpu-a", ".filter", false},
	{"why-not shop/web-0 --by-node -f ../../docs/shop.yaml", "node/gpu-a", ".node", false},
	{"why-not shop/web-0 gpu-a -f ../../docs/shop.yaml", "node/gpu-a", ".node", false},
	{"why-not shop/wait-0 workers -f testdata/plan.yaml --groups testdata/plan-groups.yaml", "nodegroup/workers",
		".nodeGroup", false},
	{"drain -f testdata/drain.json --now 2026-02-17T09:00:00Z", "node/node-8 node/node-3 node/node-1", ".node", false},
	{"plan -f testdata/plan.yaml --groups testdata/plan-groups.yaml", "nodegroup/workers", ".nodeGroup", false},
	{"rank -f testdata/plan.yaml --groups testdata/plan-groups.yaml", "nodegroup/workers", ".nodeGroup", false},
	{"size -f testdata/size.yaml --groups testdata/size-groups.yaml --now 2026-02-17T09:00:00Z", "nodegroup/shared",
		".name", false},
	{"slack -f ../../docs/shop.yaml", "", ".shape", true},
	{"bill -f testdata/drain.json --now 2026-02-17T09:00:00Z",
		"node/node-8 node/node-3 node/node-4 node/node-7 node/node-1 node/node-2", ".remove[0]", false},
	{"bill testdata/drain.json testdata/plan.yaml", "", ".name", true},
	{"consolidate -f testdata/drain.json --now 2026-02-17T09:00:00Z",
		"node/node-8 node/node-3 node/node-4 node/node-7 node/node-1 node/node-2", ".remove[0]", false},
	{"simulate -f ../../docs/shop.yaml", "", ".name", true},
	{"version", "", ".loadline", true},
}

// Each command gives its answer in each form, or says that it has none.
func TestEveryCommandInEveryForm(t *testing.T) {
	for _, c := range everyCommand {
		t.Run(c.line, func(t *testing.T) {
			in := func(form ...string) string {
				out, errs, code := run(t, "loadline", "", append(strings.Fields(c.line), form...)...)
				if code != 0 || strings.TrimSpace(out) == "" || strings.Contains(out, "%!") ||
					strings.Contains(out, "map[") {
					t.Errorf("%v: exit %d, %s%s", form, code, errs, out)
				}
				return out
			}
			if c.none {
				// It is refused before an engine is asked.
				_, errs, code := run(t, "loadline", "", append(strings.Fields(c.line), "-o", "name",
					"--engine", "unix:///none")...)
				if code != 2 || !strings.Contains(errs, "-o name: the rows of this answer have no names") {
					t.Errorf("-o name: exit %d, %s", code, errs)
				}
			} else if got := strings.Join(strings.Fields(in("-o", "name")), " "); got != c.names {
				t.Errorf("-o name: %s, want %s", got, c.names)
			}
			var data, again map[string]any
			if err := json.Unmarshal([]byte(in("-o", "json")), &data); err != nil {
				t.Error(err)
			}
			if err := yaml.Unmarshal([]byte(in("-o", "yaml")), &again); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(data, again); diff != "" {
				t.Errorf("(-json +yaml) %s", diff)
			}
			table, rows := in("-o", "table"), in("--no-headers")
			if wide := in("-o", "wide"); len(wide) < len(table) {
				t.Errorf("wide shows less:\n%s", wide)
			}
			headers := 0
			for _, line := range strings.Split(rows, "\n") {
				if headerLine.MatchString(line) {
					headers++
				}
			}
			if headers > 0 {
				t.Errorf("--no-headers: %d lines of headers:\n%s", headers, rows)
			}
			if custom := strings.Fields(in("-o", "custom-columns=X:"+c.path)); len(custom) < 2 || custom[0] != "X" {
				t.Errorf("custom-columns: %q", custom)
			}
			if page := in("-o", "html"); !strings.HasPrefix(page, "<!doctype html>") ||
				!strings.HasSuffix(page, "</html>\n") {
				t.Errorf("html: %.200s", page)
			}
			in("-o", "jsonpath-as-json={@}")
			in("-o", "go-template={{len .}}")
			template := filepath.Join(t.TempDir(), "t")
			if err := os.WriteFile(template, []byte("{{range $k, $v := .}}{{$k}} {{end}}"), 0o600); err != nil {
				t.Fatal(err)
			}
			in("-o", "go-template-file="+template)
		})
	}
}

// A sort by what no row has is refused.
func TestSortsThatAreNone(t *testing.T) {
	// A refusal needs no engine where it is clear from the command line.
	const page, ordered = " --sort-by .node -o html --engine unix:///none", "--sort-by: not with -o html"
	for line, want := range map[string]string{
		"why-not shop/web-0 gpu-a --sort-by .filter": `--sort-by ".filter": no row of the answer has it`,
		"drain" + page: ordered, "bill" + page: ordered, "size --groups testdata/size-groups.yaml" + page: ordered,
		"rank --groups testdata/plan-groups.yaml" + page: ordered, "simulate" + page: ordered,
		"score shop/web-0" + page:                               ordered,
		"why workers --groups testdata/plan-groups.yaml" + page: ordered,
		"top --lines 1,2 --sort-by name":                        "--sort-by name: not with --lines, whose rows are lines",
	} {
		_, errs, code := run(t, "loadline", "", append(strings.Fields(line), "-f", "../../docs/shop.yaml")...)
		if code != 2 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d, %s", line, code, errs)
		}
	}
}

var headerLine = regexp.MustCompile(`^[A-Z/ ]*[A-Z]{3}[A-Z/ ]*$`)

package scenario

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loadline.dev/shim/api/loadlinev1"
)

const head = "apiVersion: loadline.dev/v1alpha1\nkind: Scenario\nmetadata: {name: s}\n"

// parse reads one document that names no other file, and returns its name and the scenario. Errors name the field.
func parse(document []byte) (name string, scenario *loadlinev1.Scenario, err error) {
	return ParseWith(document, func(string) ([]byte, error) {
		return nil, errors.New("no file can be read here")
	})
}

// A scenario may be gzipped.
func TestLoadReadsGzip(t *testing.T) {
	content, err := os.ReadFile("../../docs/scenario.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(content)
	w.Close()
	file := filepath.Join(t.TempDir(), "scenario.yaml.gz")
	if err := os.WriteFile(file, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if name, scenario, err := Load(file); err != nil || name != "shop" || len(scenario.GetGroups()) == 0 {
		t.Errorf("%q, %d groups, %v", name, len(scenario.GetGroups()), err)
	}
}

func TestParseReadsTheExample(t *testing.T) {
	content, err := os.ReadFile("../../docs/scenario.yaml")
	if err != nil {
		t.Fatal(err)
	}
	name, scenario, err := parse(content)
	if err != nil {
		t.Fatal(err)
	}
	if name == "" || len(scenario.GetGroups()) == 0 || len(scenario.GetWorkloads()) == 0 {
		t.Errorf("the example has name %q and the scenario %v", name, scenario)
	}
	if kind := scenario.GetWorkloads()[0].GetKind(); kind != loadlinev1.SimulatedWorkload_DEPLOYMENT {
		t.Errorf("the first workload is of kind %v", kind)
	}
}

func TestParseNamesTheFieldThatIsWrong(t *testing.T) {
	for _, row := range []struct{ document, want string }{
		{"kind: Scenario\n", "apiVersion"},
		{head, "spec: is missing"},
		{head + "spec: {groops: []}\n", "groops"},
		{head + "spec: {groups: [{name: a, maxx: 1}]}\n", "maxx"},
		{head + "spec: {groups: [{name: a, max: many}]}\n", "many"},
		{head + "spec: {loadStepSeconds: 1, loadStepSeconds: 2}\n", "loadStepSeconds"},
		{head + "spec: {}\nstatus: {}\n", "status"},
	} {
		if _, _, err := parse([]byte(row.document)); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%q: error %v does not name %q", row.document, err, row.want)
		}
	}
}

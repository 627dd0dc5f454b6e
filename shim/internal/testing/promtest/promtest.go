// Package promtest holds the metrics of our programs against the rules of Prometheus for names.
package promtest

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// root is that of the names of all of our metrics.
const root = "loadline_"

// ofLibraries are the roots of metrics that libraries have: their names are theirs.
var ofLibraries = []string{"go_", "process_", "rest_client_", "leader_election_", "workqueue_", "grpc_"}

// Lint checks the metrics that a program serves, and fails if one of `names` is not there with a value.
func Lint(t *testing.T, served prometheus.Gatherer, names ...string) {
	t.Helper()
	lint(t, served, false, names)
}

// LintAmongOthers does the same in a program that serves metrics of its own beside ours.
func LintAmongOthers(t *testing.T, served prometheus.Gatherer, names ...string) {
	t.Helper()
	lint(t, served, true, names)
}

func lint(t *testing.T, served prometheus.Gatherer, others bool, names []string) {
	t.Helper()
	families, err := served.Gather()
	if err != nil {
		t.Fatal(err)
	}
	ours, there := families[:0:0], map[string]bool{}
	for _, family := range families {
		name := family.GetName()
		foreign := slices.ContainsFunc(ofLibraries, func(of string) bool { return strings.HasPrefix(name, of) })
		if foreign || others && !strings.HasPrefix(name, root) {
			continue
		}
		if there[name] = true; !strings.HasPrefix(name, root) {
			t.Errorf("%s does not begin with %s", name, root)
		}
		ours = append(ours, family)
	}
	for _, name := range append(registered(served), names...) {
		if !there[name] {
			t.Errorf("%s has no value: it is not checked", name)
		}
	}
	problems, err := promlint.NewWithMetricFamilies(ours).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}

// described is the name in the text of a description, which has no method for it.
var described = regexp.MustCompile(`fqName: "(` + root + `\w+)"`)

// registered returns the names of ours that a registry has, with a value or without.
func registered(served prometheus.Gatherer) (names []string) {
	all, ok := served.(prometheus.Collector)
	if !ok {
		return nil
	}
	descriptions := make(chan *prometheus.Desc)
	go func() {
		all.Describe(descriptions)
		close(descriptions)
	}()
	for description := range descriptions {
		if found := described.FindStringSubmatch(description.String()); found != nil {
			names = append(names, found[1])
		}
	}
	return names
}

var asked = regexp.MustCompile(root + `\w+`)

// AsksForServed fails if a file of alerts or panels has the name of a metric that none of `served` has.
func AsksForServed(t *testing.T, file string, served ...prometheus.Gatherer) {
	t.Helper()
	families, err := prometheus.Gatherers(served).Gather()
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, family := range families {
		there[family.GetName()] = true
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	names := asked.FindAllString(string(content), -1)
	if len(names) < 4 {
		t.Errorf("%s asks for %d metrics only", file, len(names))
	}
	for _, name := range names {
		if !there[strings.TrimSuffix(name, "_bucket")] {
			t.Errorf("%s: no metric %s", file, name)
		}
	}
}

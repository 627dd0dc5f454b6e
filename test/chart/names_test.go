package chart

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// all switches on every component with all its objects.
func all() setter {
	return setter{on("scheduler", "extender", "expander", "autoscaler", "usage")}.with("autoscaler.mode", "act").
		with("autoscaler.despiteBudgets", true).with("usage.metricsAPI", true).
		with("monitoring", values{"serviceMonitor": true, "podMonitor": true, "rules": true, "dashboard": true})
}

var ofComponents = regexp.MustCompile(`[^/\w.-]loadline-(scheduler|autoscaler|gateway|expander|prices|cloud|usage)\b`)

// A release with another name has no object in common with one that has none, in the same namespace too, and nothing in
// it refers to a name of the other one: selectors, accounts, roles, leases and the scheduler's name follow.
func TestAnotherName(t *testing.T) {
	c := load(t)
	for _, test := range []struct{ path, value, want string }{
		{"fullnameOverride", "blue", "blue"},
		{"nameOverride", "load", "test-load"},
		{"nameOverride", "test", "test"}, // the name of the release
	} {
		plain := map[string]bool{}
		for _, o := range mustRender(t, c, "anywhere", all().values) {
			plain[key(o)] = true
		}
		named := mustRender(t, c, "anywhere", all().with(test.path, test.value).
			with("autoscaler.createSlackNamespace", false).values)
		if len(named) < len(plain)-3 {
			t.Errorf("%s: %d objects, want as many as without a name but three of slack: %d", test.want, len(named),
				len(plain))
		}
		for _, o := range named {
			content, err := yaml.Marshal(o.Object)
			if err != nil {
				t.Fatal(err)
			}
			if plain[key(o)] {
				t.Errorf("%s: %s is in both releases", test.want, key(o))
			}
			if o.GetKind() == "ConfigMap" && strings.HasSuffix(o.GetName(), "-dashboard") {
				continue
			}
			for line := range strings.Lines(string(content)) {
				if found := ofComponents.FindString(strings.ReplaceAll(line, "loadline-usage-", "")); found != "" &&
					!strings.Contains(line, "kubectl") {
					t.Errorf("%s: %s refers to %q: %s", test.want, key(o), found, line)
				}
			}
		}
		config, err := find(named, "ConfigMap", test.want+"-autoscaler")
		if err != nil {
			t.Fatal(err)
		}
		text, _, _ := unstructured.NestedString(config.Object, "data", "config.yaml")
		for _, want := range []string{"resourceName: " + test.want + "-autoscaler\n",
			"statusConfigMapName: " + test.want + "-autoscaler-status\n"} {
			if !strings.Contains(text+"\n", want) {
				t.Errorf("no %q in %s", want, text)
			}
		}
		scheduler, err := find(named, "ConfigMap", test.want+"-scheduler")
		if err != nil {
			t.Fatal(err)
		}
		text, _, _ = unstructured.NestedString(scheduler.Object, "data", "scheduler-config.yaml")
		if !strings.Contains(text+"\n", "schedulerName: "+test.want+"-scheduler\n") {
			t.Errorf("the scheduler's name is not that of the release: %s", text)
		}
	}
}

// Without an API server each rendering is the same, byte by byte: no key is made that another synchronization replaces.
// The certificate is cert-manager's, by the issuer that was named or by one of its own, or somebody's.
func TestGitOps(t *testing.T) {
	c := load(t)
	render := func(v values) map[string]string {
		objects := map[string]string{}
		for _, o := range mustRender(t, c, "anywhere", v) {
			content, err := yaml.Marshal(o.Object)
			if err != nil {
				t.Fatal(err)
			}
			objects[key(o)] = string(content)
		}
		return objects
	}
	if diff := cmp.Diff(render(all().values), render(all().values)); diff != "" {
		t.Errorf("another rendering:\n%s", diff)
	}
	const secret, certificate, issuer = "Secret anywhere/loadline-expander", "Certificate anywhere/loadline-expander",
		"Issuer anywhere/loadline-expander"
	for _, test := range []struct {
		issuerRef values
		managed   bool
		want      []string
	}{
		{nil, false, []string{}},
		{nil, true, []string{certificate, issuer}},
		{values{"name": "ours", "kind": "ClusterIssuer"}, true, []string{certificate}},
	} {
		v := all().with("expander.certManager.enabled", test.managed)
		if test.issuerRef != nil {
			v = v.with("expander.certManager.issuerRef", test.issuerRef)
		}
		objects := render(v.values)
		got := []string{}
		for _, k := range []string{secret, certificate, issuer} {
			if objects[k] != "" {
				got = append(got, k)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%+v: %s", test, diff)
		}
		for _, part := range []string{"secretName: loadline-expander\n", "- loadline-expander.anywhere.svc\n"} {
			if test.managed && !strings.Contains(objects[certificate], part) {
				t.Errorf("no %q in %s", part, objects[certificate])
			}
		}
		if test.issuerRef != nil && !strings.Contains(objects[certificate], "kind: ClusterIssuer\n    name: ours\n") {
			t.Errorf("another issuer: %s", objects[certificate])
		}
	}
}

// An account that somebody else makes is used and not made.
func TestAccountOfOthers(t *testing.T) {
	for _, component := range []string{"scheduler", "extender", "expander", "autoscaler", "usage"} {
		v := setter{on(component)}.with(component+".serviceAccount", values{"create": false, "name": "theirs"})
		accounts, bound := 0, 0
		for _, o := range mustRender(t, load(t), "anywhere", v.values) {
			if o.GetKind() == "ServiceAccount" {
				t.Errorf("%s: %s is made", component, key(o))
			}
			if account, there, _ := unstructured.NestedString(o.Object, "spec", "template", "spec",
				"serviceAccountName"); there {
				accounts++
				if account != "theirs" {
					t.Errorf("%s: %s runs as %s", component, key(o), account)
				}
			}
			subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
			for _, s := range subjects {
				switch name := fmt.Sprint(s.(map[string]any)["name"]); {
				case name == "theirs":
					bound++
				case o.GetName() != "loadline-usage:read" || name == "loadline-usage": // which others may read
					t.Errorf("%s: %s binds %s", component, key(o), name)
				}
			}
		}
		if accounts != 1 || bound == 0 {
			t.Errorf("%s: %d workloads, %d subjects", component, accounts, bound)
		}
	}
}

// Labels of the values are on every object of a release, beside those that select it and those of monitors. None takes
// the place of a label that the chart sets, and pods keep theirs.
func TestLabelsOfARelease(t *testing.T) {
	c := load(t)
	v := all().with("monitoring.labels.release", "prometheus").with("expander.certManager.enabled", true)
	before := map[string]*unstructured.Unstructured{}
	for _, o := range mustRender(t, c, "anywhere", v.values) {
		before[key(o)] = o
	}
	v = v.with("labels", values{"team": "a", "release": "b", "grafana_dashboard": "2",
		"app.kubernetes.io/managed-by": "me"})
	for _, o := range mustRender(t, c, "anywhere", v.values) {
		want := maps.Clone(before[key(o)].GetLabels())
		for name, value := range map[string]string{"team": "a", "release": "b", "grafana_dashboard": "2"} {
			if want[name] == "" {
				want[name] = value
			}
		}
		if got := o.GetLabels(); !maps.Equal(got, want) {
			t.Errorf("%s has the labels %v, want %v", key(o), got, want)
		}
		o.SetLabels(before[key(o)].GetLabels())
		if diff := cmp.Diff(before[key(o)].Object, o.Object); diff != "" {
			t.Errorf("%s has changed beside its labels:\n%s", key(o), diff)
		}
		delete(before, key(o))
	}
	if len(before) > 0 {
		t.Errorf("%d objects are missing", len(before))
	}
}

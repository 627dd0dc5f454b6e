package chart

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The gateway runs on nodes with the label of control planes, whatever its value is, unless a node selector says where
// it runs. Rules about other pods stay beside a selector.
func TestNodesOfTheExtender(t *testing.T) {
	c := load(t)
	for _, test := range []struct {
		component, kind, name, path string
		value                       any
		has, lacks                  string
	}{
		{"extender", "DaemonSet", "loadline-gateway", "extender.podLabels.a", "b",
			"- key: node-role.kubernetes.io/control-plane\n                operator: Exists", "nodeSelector:"},
		{"extender", "DaemonSet", "loadline-gateway", "extender.nodeSelector.a", "b", "nodeSelector:\n        a: b",
			"nodeAffinity"},
		{"autoscaler", "Deployment", "loadline-autoscaler", "autoscaler.nodeSelector.a", "b", "podAntiAffinity",
			"nodeAffinity"},
	} {
		objects := mustRender(t, c, "anywhere", setter{on(test.component)}.with(test.path, test.value).values)
		object, err := find(objects, test.kind, test.name)
		if err != nil {
			t.Fatal(err)
		}
		content, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		got := string(content)
		if !strings.Contains(got, test.has) || strings.Contains(got, test.lacks) {
			t.Errorf("%s %v: want %q and not %q:\n%s", test.path, test.value, test.has, test.lacks, got)
		}
	}
}

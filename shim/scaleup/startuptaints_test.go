package scaleup

import (
	"slices"
	"strings"
	"testing"
)

// The beginning of a key may end anywhere in it, as in Cluster Autoscaler; only one with which no key begins is
// refused.
func TestStartupTaintPrefixesAreBeginningsOfKeys(t *testing.T) {
	label := strings.Repeat("a", 63)
	right := []string{"example.com/agent-", "startup-", "example.", "example.com", "example.com/", "a", label,
		label + "." + label, "example.com/" + label}
	wrong := []string{"", "/", "a/b/", "a b", "-a", "example.com/-", "Example.com/", "example.com/" + label + "a"}
	for _, prefix := range slices.Concat(right, wrong) {
		taints := StartupTaints{StartupTaintPrefixes: []string{prefix}}
		err, refused := taints.Check(), slices.Contains(wrong, prefix)
		if !refused && err != nil || refused && (err == nil ||
			!strings.Contains(err.Error(), "is not the beginning of the key of a taint")) {
			t.Errorf("%q: %v", prefix, err)
		}
	}
	if err := (&StartupTaints{StartupTaints: []string{"startup-"}}).Check(); err == nil {
		t.Error("a whole key may not end in a dash")
	}
}

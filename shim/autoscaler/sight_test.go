package autoscaler

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Ids are told as they are where that is possible, and else by a hash: different ones stay different.
func TestToldID(t *testing.T) {
	long := strings.Repeat("x", mostIDBytes)
	for _, id := range []string{"", "aws:///us-east-1a/i-0123456789abcdef0", long} {
		if got := toldID(id); got != id {
			t.Errorf("%q is told as %q", id, got)
		}
	}
	seen := map[string]string{}
	for _, id := range []string{long + "y", long + "z", "a b", "a\tb", "m\u00e4chine"} {
		got := toldID(id)
		if !strings.HasPrefix(got, "sha256:") || len(got) != len("sha256:")+32 || seen[got] != "" {
			t.Errorf("%q is told as %q, %q too", id, got, seen[got])
		}
		seen[got] = id
	}
}

// A name that no engine would take is left out: it must not keep all others from being looked at.
func TestDevicesWithOddNames(t *testing.T) {
	one := resource.MustParse("1")
	node := &v1.Node{Status: v1.NodeStatus{Allocatable: v1.ResourceList{"nvidia.com/gpu": one, "odd.example/a b": one,
		v1.ResourceName("long.example/" + strings.Repeat("x", mostDeviceBytes)): one, "none.example/x": {}, v1.ResourceCPU: one}}}
	if got := devicesOf(node); len(got) != 1 || got[0] != "nvidia.com/gpu" {
		t.Errorf("devices %v", got)
	}
}

package clusterapi

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// Annotations are refused that describe a node which cannot exist, and error and warning of the group name them. A line
// of the log, once, says what can hardly be meant, and what nothing here follows.
func TestCapacityThatCannotBeMeant(t *testing.T) {
	const capacity = "capacity.cluster-autoscaler.kubernetes.io/"
	for _, c := range []struct{ key, value, refused, warned string }{
		{"memory", "128", "", `memory "128" counts as so many bytes`},
		{"ephemeral-disk", "100", "", `ephemeral-disk "100" counts as so many bytes`},
		{"memory", "2M", "", ""},
		{"gpu-count", "2", "", `gpu-count "2" counts as not stated: without ` + capacity + "gpu-type"},
		{"gpu-count", "0", "", ""},
		{"gpu-type", "bad name!", `gpu-type "bad name!": is not the name of a resource`, ""},
		{"labels", "a=b,bad key=1", `labels: no node can have the label "bad key=1"`, ""},
		{"labels", "a=b,c=not a value", `labels: no node can have the label "c=not a value"`, ""},
		{"labels", "=x", `labels: no node can have the label "=x"`, ""},
		{"labels", "a,b=c,", "", `labels: "a" counts as not stated: it must be KEY=VALUE`},
		{"labels", "a=b,d=", "", ""},
		{"csi-driver", "ebs.csi.aws.com=25", "", `csi-driver "ebs.csi.aws.com=25" is not read: new nodes count as without ` +
			"limits of volumes, until a node of the group shows them"},
		{"dra-driver", "gpu.nvidia.com", "", `dra-driver "gpu.nvidia.com" is not read: new nodes count as without devices`},
		{"dra-driver", "", "", ""},
	} {
		annotations := []string{capacity + "cpu", "4"}
		if c.key != "memory" {
			annotations = append(annotations, capacity+"memory", "16Gi")
		}
		annotations = append(annotations, capacity+c.key, c.value)
		p := newWorld(t, "v1beta2", scalable(deploymentKind, "md", 0, "0 5", annotations...)).provider()
		for range 2 {
			made, err := p.TemplateNode(t.Context(), id)
			if (made != nil) != (c.refused == "") || c.refused != "" && (err == nil ||
				!strings.Contains(err.Error(), id+": annotation "+capacity+c.refused)) {
				t.Errorf("%s=%q: %v, error %v, want %q", c.key, c.value, made, err, c.refused)
			}
		}
		groups, err := p.Groups(t.Context(), nil)
		if err != nil || len(groups) != 1 || (groups[0].Warning != nil) != (c.refused != "") || groups[0].Problem != nil {
			t.Errorf("%s=%q: groups %v, error %v", c.key, c.value, groups, err)
		}
		warned := strings.Join(slices.Collect(maps.Keys(p.warned)), "\n")
		if (warned == "") != (c.warned == "") || !strings.Contains(warned, c.warned) {
			t.Errorf("%s=%q: warned of %q, want %q", c.key, c.value, warned, c.warned)
		}
	}
}

package clusterapi

import (
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
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
		{"csi-driver", "ebs.csi.aws.com=25, b=0,", "", ""},
		{"csi-driver", "a=1,ebs.csi.aws.com", "", `csi-driver: "ebs.csi.aws.com" counts as not stated: it must be ` +
			"DRIVER=VOLUMES, such as ebs.csi.aws.com=25"},
		{"csi-driver", "a=-1", "", `csi-driver: "a=-1" counts as not stated`},
		{"csi-driver", "bad driver=1", "", `csi-driver: "bad driver=1" counts as not stated`},
		{"dra-driver", "gpu.nvidia.com", "", `dra-driver "gpu.nvidia.com" is not read: pods with resource claims get no ` +
			"new nodes"},
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

// Limits of volumes are amounts of the template, 0 included; what states none leaves the others.
func TestVolumeLimits(t *testing.T) {
	const capacity = "capacity.cluster-autoscaler.kubernetes.io/"
	p := newWorld(t, "v1beta2", scalable(deploymentKind, "md", 0, "0 5", capacity+"cpu", "4", capacity+"memory", "16Gi",
		capacity+"csi-driver", "ebs.csi.aws.com=25, x.io = 0 ,y,z=1Gi")).provider()
	made, err := p.TemplateNode(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for name, amount := range made.Status.Allocatable {
		if driver, is := strings.CutPrefix(string(name), "attachable-volumes-csi-"); is {
			got[driver] = amount.Value()
		}
	}
	if want := map[string]int64{"ebs.csi.aws.com": 25, "x.io": 0}; !maps.Equal(got, want) {
		t.Errorf("limits %v, want %v", got, want)
	}
}

// A machine template that may not be read is a warning of the group with what to grant, as long as neither annotations
// nor a node say what new nodes are. It is gone once the template was read.
func TestMachineTemplateThatMayNotBeRead(t *testing.T) {
	const capacity = "capacity.cluster-autoscaler.kubernetes.io/"
	template := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "infra.test/v1", "kind": "MachineTemplate",
		"metadata": map[string]any{"name": "t", "namespace": "ns"}, "status": map[string]any{
			"capacity": map[string]any{"cpu": "8", "memory": "16Gi"}}}}
	for _, c := range []struct {
		annotations []string
		machine     string // its instance; empty: there is no machine
		warned      bool
	}{
		{nil, "", true},
		{[]string{capacity + "cpu", "4"}, "", true},
		{[]string{capacity + "cpu", "4", capacity + "memory", "16Gi"}, "", false},
		{nil, "sim://a", false},
		{nil, "none", true},
	} {
		set := scalable(setKind, "ms", 0, "0 5", c.annotations...)
		with(set, map[string]any{"apiVersion": "infra.test/v1", "kind": "MachineTemplate", "name": "t"},
			"spec", "template", "spec", "infrastructureRef")
		objects := []*unstructured.Unstructured{set, template}
		if c.machine != "" {
			objects = append(objects, machine("ms", "a", strings.TrimPrefix(c.machine, "none")))
		}
		w, refused := newWorld(t, "v1beta2", objects...), true
		w.client.PrependReactor("get", "machinetemplates", func(clienttesting.Action) (bool, runtime.Object, error) {
			return refused, nil, apierrors.NewForbidden(schema.GroupResource{Group: "infra.test",
				Resource: "machinetemplates"}, "t", nil)
		})
		p := w.provider()
		for _, refused = range []bool{true, false} {
			if _, err := p.TemplateNode(t.Context(), setKind+"/ns/ms"); err != nil {
				t.Errorf("%+v: error %v", c, err)
			}
			groups, err := p.Groups(t.Context(), nil)
			if err != nil || len(groups) != 1 {
				t.Fatal(groups, err)
			}
			if warning := groups[0].Warning; (warning != nil) != (c.warned && refused) || warning != nil &&
				!strings.Contains(warning.Error(), "grant get of machinetemplates.infra.test in the management cluster") {
				t.Errorf("%+v: refused %v, warning %v", c, refused, warning)
			}
		}
	}
}

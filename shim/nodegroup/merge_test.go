package nodegroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/encoding/unicode"
)

const merged = `apiVersion: loadline.dev/v1alpha1
kind: NodeGroup
metadata: {name: general}
spec:
  max: 20
  template:
    metadata: {labels: &labels {pool: general, zone: a}}
    status: {capacity: &amounts {cpu: "8", memory: 32Gi, pods: "110"}, allocatable: {memory: 28Gi, <<: *amounts}}
  nodeSelector: {<<: *labels}
`

func TestParseMerges(t *testing.T) {
	file, err := Parse([]byte(merged))
	if err != nil || len(file.Groups) != 1 {
		t.Fatal(file, err)
	}
	spec := file.Groups[0].Spec
	allocatable := spec.Template.Status.Allocatable
	if spec.NodeSelector["zone"] != "a" || spec.NodeSelector["pool"] != "general" ||
		allocatable.Memory().Value() != 28<<30 || allocatable.Cpu().Value() != 8 {
		t.Errorf("got %+v", spec)
	}
	_, err = Parse([]byte(strings.Replace(merged, "max: 20", "max: 20\n  max: 30", 1)))
	if err == nil || !strings.Contains(err.Error(), `a key occurs twice: "max" on line 5 and on line 6`) {
		t.Errorf("got %v", err)
	}
}

func TestLoadReadsUTF16(t *testing.T) {
	text, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(ours)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "groups.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if file, err := Load(name); err != nil || len(file.Groups) != 1 {
		t.Errorf("got %+v (%v)", file, err)
	}
}

package view

import (
	"flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var updateFields = flag.Bool("update-fields", false, "add the fields of this build's types to testdata/fields.txt")

// Every field of a pod's and of a node's spec is one that somebody has looked at: either it is sent, or no filter reads
// it. A field that a newer k8s.io/api brings would be trimmed off, and the engine would say "fits". Who meets this test
// reads the release's filters for it: what one reads is sent (trim.go, filters.go, keep.go) and read by the engine
// (core.proto, pod_rules.cc); then the field is added to the list with -update-fields.
func TestEveryFieldHasBeenLookedAt(t *testing.T) {
	const file = "testdata/fields.txt"
	data, err := os.ReadFile(file)
	if err != nil && !*updateFields {
		t.Fatal(err)
	}
	known := strings.Fields(string(data))
	fields := map[string]bool{}
	listFields(reflect.TypeFor[v1.PodSpec](), fields)
	listFields(reflect.TypeFor[v1.NodeSpec](), fields)
	for field := range fields {
		if !slices.Contains(known, field) && *updateFields {
			known = append(known, field)
		} else if !slices.Contains(known, field) {
			t.Errorf("nobody has looked at %s", field)
		}
	}
	if *updateFields {
		slices.Sort(known)
		if err := os.WriteFile(file, []byte(strings.Join(known, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if len(fields) < 400 {
		t.Errorf("only %d fields", len(fields))
	}
}

// listFields adds the fields of a type, and of the types of Kubernetes that it holds, as "Type.Field".
func listFields(of reflect.Type, fields map[string]bool) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
		of = of.Elem()
	}
	core, meta := reflect.TypeFor[v1.Pod]().PkgPath(), reflect.TypeFor[metav1.ObjectMeta]().PkgPath()
	if of.Kind() != reflect.Struct || of.PkgPath() != core && of.PkgPath() != meta || of == reflect.TypeFor[metav1.Time]() {
		return
	}
	for i := range of.NumField() {
		name := of.Name() + "." + of.Field(i).Name
		if fields[name] {
			continue
		}
		fields[name] = true
		listFields(of.Field(i).Type, fields)
	}
}

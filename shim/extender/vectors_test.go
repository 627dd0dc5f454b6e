package extender

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"loadline.dev/shim/internal/testing/vectortest"
)

// vectorRow is one line of a file of test vectors; see test/vectors/data/README.md.
type vectorRow struct {
	ID   string          `json:"id"`
	Func string          `json:"fn"`
	In   json.RawMessage `json:"in"`
	Want json.RawMessage `json:"want"`
}

// vectorFuncs are the rows that Go code answers. Each returns what it got, in the form of `want`.
var vectorFuncs = map[string]func(in json.RawMessage) (got map[string]any, err error){
	"quantise":  quantiseRow,
	"wire_form": wireFormRow,
}

// comparedKeys are the keys of `want` that say what this project does; the others describe somebody else.
var comparedKeys = map[string]string{"quantise": "half_up", "wire_form": "encoded"}

func quantiseRow(in json.RawMessage) (map[string]any, error) {
	var q struct {
		Scores []int32 `json:"scores"`
	}
	if err := json.Unmarshal(in, &q); err != nil {
		return nil, err
	}
	got := []int64{}
	for _, score := range q.Scores {
		got = append(got, Quantise(score))
	}
	return map[string]any{"half_up": got}, nil
}

// wireTypes are the messages of the protocol.
var wireTypes = map[string]reflect.Type{
	"ExtenderArgs":             reflect.TypeFor[extenderv1.ExtenderArgs](),
	"ExtenderFilterResult":     reflect.TypeFor[extenderv1.ExtenderFilterResult](),
	"ExtenderPreemptionArgs":   reflect.TypeFor[extenderv1.ExtenderPreemptionArgs](),
	"ExtenderPreemptionResult": reflect.TypeFor[extenderv1.ExtenderPreemptionResult](),
	"ExtenderBindingArgs":      reflect.TypeFor[extenderv1.ExtenderBindingArgs](),
	"ExtenderBindingResult":    reflect.TypeFor[extenderv1.ExtenderBindingResult](),
	"HostPriority":             reflect.TypeFor[extenderv1.HostPriority](),
	"HostPriorityList":         reflect.TypeFor[extenderv1.HostPriorityList](),
}

func wireFormRow(in json.RawMessage) (map[string]any, error) {
	var q struct {
		Type   string `json:"type"`
		Decode string `json:"decode"`
	}
	if err := json.Unmarshal(in, &q); err != nil {
		return nil, err
	}
	kind, ok := wireTypes[q.Type]
	if !ok {
		return nil, fmt.Errorf("unknown type %q", q.Type)
	}
	message := reflect.New(kind)
	if err := Decode([]byte(q.Decode), message.Interface()); err != nil {
		return nil, err
	}
	encoded, err := Encode(message.Elem().Interface())
	return map[string]any{"encoded": string(encoded)}, err
}

// TestVectors has a subtest per row that Go code answers, named by its id. VECTOR_FILES names the files, separated by
// colons; without it, the project's own copy is read.
func TestVectors(t *testing.T) {
	rows := 0
	for _, file := range vectorFiles(t) {
		for _, row := range vectortest.Rows[vectorRow](t, file) {
			answer, ok := vectorFuncs[row.Func]
			if !ok {
				continue
			}
			rows++
			t.Run(row.ID, func(t *testing.T) {
				got, err := answer(row.In)
				if err != nil {
					t.Fatal(err)
				}
				compareVector(t, comparedKeys[row.Func], row.Want, got)
			})
		}
	}
	if rows == 0 && os.Getenv("VECTOR_FILES") == "" {
		t.Error("no row in test/vectors/data is answered by Go code")
	}
}

func compareVector(t *testing.T, key string, want json.RawMessage, got map[string]any) {
	t.Helper()
	var wanted map[string]json.RawMessage
	if err := json.Unmarshal(want, &wanted); err != nil {
		t.Fatal(err)
	}
	if _, ok := wanted[key]; !ok {
		t.Fatalf("the row wants nothing of %q", key)
	}
	encoded, err := json.Marshal(got[key])
	if err != nil {
		t.Fatal(err)
	}
	if expected := compact(t, wanted[key]); expected != compact(t, encoded) {
		t.Errorf("expected %s got %s", expected, encoded)
	}
}

func compact(t *testing.T, value json.RawMessage) string {
	t.Helper()
	var decoded any
	if err := json.Unmarshal(value, &decoded); err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(decoded)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

func vectorFiles(t *testing.T) []string {
	t.Helper()
	if files := os.Getenv("VECTOR_FILES"); files != "" {
		return strings.Split(files, ":")
	}
	files, err := filepath.Glob("../../test/vectors/data/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatal("no files in test/vectors/data", err)
	}
	return files
}

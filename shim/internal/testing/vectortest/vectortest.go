// Package vectortest holds Go code against rows of expected decisions; see test/vectors/data/README.md.
package vectortest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// row is one line of a file.
type row struct {
	ID   string                     `json:"id"`
	Func string                     `json:"fn"`
	In   json.RawMessage            `json:"in"`
	Want map[string]json.RawMessage `json:"want"`
}

// Answer asks the product for its result for `in`, and returns it under the keys of `want`. Time is that of a bubble of
// testing/synctest.
type Answer func(t *testing.T, in json.RawMessage) map[string]any

// Run has a subtest per row that is answered, named by its id. VECTOR_FILES names the files, separated by colons;
// without it the project's own copy of `file` is read. `overruled` holds, by id, the reason why the answer to a row
// must differ.
func Run(t *testing.T, file string, answers map[string]Answer, overruled map[string]string) {
	t.Helper()
	files := strings.Split(os.Getenv("VECTOR_FILES"), ":")
	given := files[0] != ""
	if !given {
		_, here, _, _ := runtime.Caller(0)
		files = []string{filepath.Join(filepath.Dir(here), "../../../../test/vectors/data", file+".jsonl")}
	}
	rows := 0
	for _, file := range files {
		for _, row := range Rows[row](t, file) {
			answer, ok := answers[row.Func]
			if !ok {
				continue
			}
			rows++
			t.Run(row.ID, func(t *testing.T) {
				var differences []string
				synctest.Test(t, func(t *testing.T) { differences = compare(t, row.Want, answer(t, row.In)) })
				why, isOverruled := overruled[row.ID]
				switch {
				case isOverruled && len(differences) == 0:
					t.Errorf("passes, and is not overruled any more: %s", why)
				case isOverruled:
					t.Logf("overruled, and differs: %s", why)
				case len(differences) > 0:
					t.Error(strings.Join(differences, "; "))
				}
			})
		}
	}
	if rows == 0 && !given {
		t.Error("no row is answered")
	}
}

// Rows reads the lines of a file, each of which is a JSON object of this type.
func Rows[T any](t *testing.T, file string) (rows []T) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var r T
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		rows = append(rows, r)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// Decode reads the input of a row.
func Decode(t *testing.T, in json.RawMessage, into any) {
	t.Helper()
	if err := json.Unmarshal(in, into); err != nil {
		t.Fatal(err)
	}
}

// compare compares what is asserted with what came out. Lists of names are sets, except "order"; all other lists have
// an order. Of a map, only the entries that the row names are asserted. It returns what differs.
func compare(t *testing.T, want map[string]json.RawMessage, got map[string]any) (differences []string) {
	t.Helper()
	for key, text := range want {
		value, ok := got[key]
		if !ok {
			differences = append(differences, key+": nothing answers it")
			continue
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		wanted, have := decoded(t, text), decoded(t, encoded)
		if key != "order" {
			wanted, have = set(wanted), set(have)
		}
		if asked, ok := wanted.(map[string]any); ok {
			have = only(have, asked)
		}
		if !reflect.DeepEqual(wanted, have) {
			differences = append(differences, fmt.Sprintf("%s: expected %v got %v", key, wanted, have))
		}
	}
	return differences
}

func decoded(t *testing.T, text []byte) (value any) {
	t.Helper()
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func set(value any) any {
	list, ok := value.([]any)
	if !ok || slices.ContainsFunc(list, func(entry any) bool { _, name := entry.(string); return !name }) {
		return value
	}
	slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return list
}

func only(have any, asked map[string]any) any {
	all, ok := have.(map[string]any)
	if !ok {
		return have
	}
	kept := map[string]any{}
	for key := range asked {
		if value, ok := all[key]; ok {
			kept[key] = value
		}
	}
	return kept
}

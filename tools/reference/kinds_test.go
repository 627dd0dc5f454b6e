package main

import (
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Each key that decoding a kind takes is in its page, in the section of its object.
func TestPagesHaveAllKeys(t *testing.T) {
	pages, err := generate("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		page := string(pages["reference/"+k.page+".md"])
		sections := map[string]string{}
		for part := range strings.SplitSeq(page, "\n## ") {
			title, rest, _ := strings.Cut(part, "\n")
			sections[title] = rest
		}
		_, sections[""], _ = strings.Cut(page, "\n# ")
		sections[""], _, _ = strings.Cut(sections[""], "\n## ")
		for _, path := range keysIn(reflect.TypeOf(k.value), "") {
			at, key := "", path
			if last := strings.LastIndex(path, "."); last >= 0 {
				at, key = path[:last], path[last+1:]
			}
			if !strings.Contains(sections[at], "| `"+key+"` |") {
				t.Errorf("docs/reference/%s.md lacks %s", k.page, path)
			}
		}
	}
}

// keysIn returns the paths of all keys of a struct type.
func keysIn(of reflect.Type, path string) (keys []string) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || !strings.HasPrefix(of.PkgPath(), "loadline.dev/") {
		return nil
	}
	for _, field := range reflect.VisibleFields(of) {
		key, _, tagged := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case !field.IsExported() || !tagged && key == "" || key == "" && field.Anonymous:
			continue
		case path != "":
			key = path + "." + key
		}
		keys = append(append(keys, key), keysIn(field.Type, key)...)
	}
	return keys
}

func TestKeysInFindsNestedAndEmbeddedKeys(t *testing.T) {
	type entry struct {
		Path string `json:"path"`
	}
	type file struct {
		metav1.TypeMeta `json:",inline"`
		Entries         []*entry `json:"entries,omitempty"`
		hidden          bool
	}
	want := "kind apiVersion entries entries.path"
	if got := strings.Join(keysIn(reflect.TypeOf(file{hidden: true}), ""), " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A key needs a comment, which says what holds without the key, unless the code or the type says it.
func TestAKeyNeedsAComment(t *testing.T) {
	type file struct {
		Size int  `json:"size,omitempty"`
		Dry  bool `json:"dry,omitempty"`
	}
	for _, c := range []struct {
		field, comment string
		set            any
		want           keyRow
		problem        string
	}{
		{"Size", "Size is how many there are. Default: 3.", nil, keyRow{"size", "integer", "3", "how many there are"}, ""},
		{"Size", "Size is how many there are. Required.", 3.0,
			keyRow{"size", "integer", "required", "how many there are"}, ""},
		{"Size", "Size is how many there are. Default: 3.", 3.0, keyRow{"size", "integer", "3", "how many there are"}, ""},
		{"Size", "Size is how many there are.", 3.0, keyRow{"size", "integer", "3", "how many there are"}, ""},
		{"Size", "Size is how many there are. Default: 4.", 3.0, keyRow{}, `the comment has "Default: 4", the code sets 3`},
		{"Size", "Size is how many there are.", nil, keyRow{}, "the comment ends neither with Required nor with a Default"},
		{"Size", "", 3.0, keyRow{}, "has no comment"},
		{"Dry", "Dry only tells. It helps.", nil, keyRow{"dry", "boolean", "false", "only tells. It helps."}, ""},
	} {
		of := reflect.TypeFor[file]()
		field, _ := of.FieldByName(c.field)
		w := walk{comments: comments{nameOf(of) + "." + c.field: c.comment}}
		got, err := w.key(field, of, c.set)
		problem := ""
		if err != nil {
			problem = err.Error()
		}
		if problem != c.problem || err == nil && got != c.want {
			t.Errorf("%s %q set to %v: got %v, problem %q, want %v, %q", c.field, c.comment, c.set, got, problem, c.want,
				c.problem)
		}
	}
}

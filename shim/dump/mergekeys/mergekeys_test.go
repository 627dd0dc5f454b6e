package mergekeys

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestToJSON(t *testing.T) {
	for document, want := range map[string]string{
		"b: &b {x: 1, z: 2}\nc: {<<: *b, x: 3}\n":                               `{"b":{"x":1,"z":2},"c":{"x":3,"z":2}}`,
		"b: &b {x: 1}\nc: {x: 3, <<: *b}\n":                                     `{"b":{"x":1},"c":{"x":3}}`,
		"a: &a {x: 1}\nb: &b {x: 2, z: yes}\nc: {<<: [*a, *b], w: 3}\n":         `{"a":{"x":1},"b":{"x":2,"z":true},"c":{"w":3,"x":1,"z":true}}`,
		"a: &a {x: 1}\nb: &b {<<: *a, z: 1}\nc: {<<: *b, x: 7}\n":               `{"a":{"x":1},"b":{"x":1,"z":1},"c":{"x":7,"z":1}}`,
		"c: {<<: {x: 1}, x: 2}\n":                                               `{"c":{"x":2}}`,
		"c: {\"<<\": {x: 1}, x: 2}\n":                                           `{"c":{"\u003c\u003c":{"x":1},"x":2}}`,
		"c: &c !!str 5\nd: *c\n1: on\n":                                         `{"1":true,"c":"5","d":"5"}`,
		"t: &t 2026-01-02T03:04:05Z\n":                                          `{"t":"2026-01-02T03:04:05Z"}`,
		"# nothing <<: here":                                                    `null`,
		"s: [&a 0777, 0x1f, 1e3, 1_000, ~, null, '1', a b, 12:30:00, .5, \"\"]": `{"s":[511,31,1000,1000,null,null,"1","a b","12:30:00",0.5,""]}`,
	} {
		got, err := ToJSON([]byte(document), 1<<20)
		if err != nil || string(got) != want {
			t.Errorf("%q: got %s (%v), want %s", document, got, err, want)
		}
	}
}

// The values of a document are those that the YAML library of Kubernetes reads, where that is right.
func TestReadsValuesAsKubernetesDoes(t *testing.T) {
	for _, value := range []string{"y", "n", "Yes", "off", "on", "true", "TRUE", "False", "~", "null", "Null", "", "0",
		"-1",
		"+1", "0777", "0o7", "0x1F", "0b11", "1.5", "1e3", "1E3", ".5", "1.", "-.5", "1_0", "12:30", "1:2:3", "a", "a: &b c",
		"2026-01-02", "8Gi", "500m", "1e30", "9223372036854775807", "18446744073709551615", "99999999999999999999", "'y'",
		"\"n\"", "|\n  a\n  b", ">\n  a\n  b", "a\n  b", "5\n  6", "-", "--", "?a", "=", "...", "on fire", "no", "!!str y",
		"!!int '3'", "!!float 3", "[]", "{}", "[a, 1, y]", "{y: 1, 2: n, 1.5: x, true: z}", "<none>", "a#b", "0.1", "100"} {
		want, wantErr := yaml.YAMLToJSONStrict([]byte("v: " + value + "\nz: a\n"))
		got, err := ToJSON([]byte("v: "+value+"\nz: &a a\n"), 1<<20)
		if (err == nil) != (wantErr == nil) || err == nil && string(got) != string(want) {
			t.Errorf("%q: got %s (%v), want %s (%v)", value, got, err, want, wantErr)
		}
	}
}

func TestRefuses(t *testing.T) {
	list := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 'b'; i < 'k'; i++ {
		list += fmt.Sprintf("%c: &%c [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", i-1), 10), ","))
	}
	merges := "a: &a {k: v}\nb: [" + strings.Repeat("{<<: *a, k: w}, ", 50_000) + "]\n"
	deep := "a0: &a0 [x]\n"
	for i := range 30 {
		deep += fmt.Sprintf("a%d: &a%d %s*a%d%s\n", i+1, i+1, strings.Repeat("[", 100), i, strings.Repeat("]", 100))
	}
	for name, c := range map[string]struct{ document, want string }{
		"Twice":          {"b: &b {x: 1}\nc:\n  <<: *b\n  x: 3\n  x: 4\n", `a key occurs twice: "x" on line 4 and on line 5`},
		"TwiceUnmerged":  {"x: 3\nx: 4\n", "a key occurs twice: "},
		"TwoMerges":      {"c: {<<: {x: 1}, <<: {z: 1}}\n", `a key occurs twice: "<<"`},
		"NoMapping":      {"c: {<<: 3}\n", "line 1: << takes a mapping or several"},
		"MergesItself":   {"a: &a {<<: *a, x: 1}\n", `line 1: the anchor "a" contains itself`},
		"ContainsItself": {"a: &a [*a]\n", `line 1: the anchor "a" contains itself`},
		"Bomb":           {list, "larger than the limit of 1 MiB"},
		"LongText": {"a: &a " + strings.Repeat("x", 1<<16) + "\nb: [" + strings.Repeat("*a, ", 100) + "]\n",
			"larger than the limit"},
		"Merges":    {merges, "larger than the limit"},
		"Deep":      {deep, "more than 1000 deep"},
		"Unknown":   {"a: *b\nc: &c 1\n", "unknown anchor"},
		"KeyIsList": {"? [&a b]\n: 1\n", "a key has to be a text"},
	} {
		_, err := ToJSON([]byte(c.document), 1<<20)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		if errors.Is(err, ErrTwice) != strings.Contains(c.want, "twice") {
			t.Errorf("%s: wraps ErrTwice: %v", name, err)
		}
	}
}

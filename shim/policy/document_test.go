package policy

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type embedded struct {
	Ratio float64 `json:"ratio"`
}

type times map[string]metav1.Duration

type outer struct {
	metav1.TypeMeta `json:",inline"`
	Section         struct {
		embedded `json:",inline"`
		Kept     []struct {
			*Named `json:",inline"`
		} `json:"kept"`
		Times  times              `json:"times"`
		Size   *resource.Quantity `json:"size"`
		Ranks  map[int]string     `json:"ranks"`
		Count  int32
		Switch *bool `json:"switch,omitempty"`
	} `json:"section"`
}

// Named is embedded by a pointer.
type Named struct {
	Name string `json:"name"`
}

func TestDecodeStrictReadsOneDocument(t *testing.T) {
	for text, want := range map[string]string{
		"preset: kep217\n---\nfoo: 1\n":        "line 3: a second YAML document begins here",
		"---\npreset: kep217\n---\n{}\n":       "line 4: a second YAML document begins here",
		"---\n---\npreset: kep217\n":           "line 3: a second YAML document begins here",
		"preset: kep217\n---\n---\n--- 12":     "a second YAML document begins here",
		"preset: kep217\n...\n---\n- x\n":      "a second YAML document begins here",
		"preset: kep217\n---\nfoo: [1\n":       "behind the first YAML document: ",
		"{\"preset\": \"kep217\"}\n{}\n":       "behind the first YAML document: ",
		"# one\n---\npreset: kep217\n":         "",
		"preset: kep217\n---\n# nothing\n":     "",
		"preset: kep217\n...\n":                "",
		"---\npreset: kep217\n---\n---\n":      "",
		"preset: kep217 # --- no document\n":   "",
		"{\"preset\": \"kep217\"}\n":           "",
		"\ufeff---\r\npreset: kep217\r\n":      "",
		"{\"preset\":\n\"kep217\"}\r\n---\r\n": "",
	} {
		p, err := Parse([]byte(text))
		switch {
		case want == "" && (err != nil || p.Preset != "kep217"):
			t.Errorf("%q: got %+v, %v", text, p, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// An error names the value that cannot be decoded by the keys of the document alone, and says what it has to be.
func TestErrorsNameKeysAndValues(t *testing.T) {
	for text, want := range map[string]string{
		"[]":                           "has to be an object, and is a list",
		"kind: 1":                      "kind: has to be a text, and is 1",
		"section: 1":                   "section: has to be an object, and is 1",
		"section: {ratio: x}":          `section.ratio: has to be a number, and is "x"`,
		"section: {kept: [{name: 1}]}": "section.kept[0].name: has to be a text, and is 1",
		"section: {kept: [{name: a}, {name: {}}]}": "section.kept[1].name: has to be a text, and is an object",
		"section: {kept: {}}":                      "section.kept: has to be a list, and is an object",
		"section: {Count: 5000000000}":             "section.Count: has to be a whole number of 32 bits, and is 5000000000",
		"section: {switch: 'on'}":                  `section.switch: has to be true or false, and is "on"`,
		"section: {times: {b: 1d, a: 5s}}":         `section.times.b: has to be a duration such as 1m30s, and is "1d"`,
		"section: {times: {b: 10}}":                "section.times.b: has to be a duration such as 1m30s, and is 10",
		"section: {size: 1GiB}":                    `section.size: "1GiB": quantities must match`,
		"section: {ranks: {x: a}}":                 "section.ranks: an object: ",
	} {
		var into outer
		if err := DecodeStrict([]byte(text), &into); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

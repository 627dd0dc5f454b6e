package policy

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type embedded struct {
	Ratio float64 `json:"ratio"`
}

type outer struct {
	metav1.TypeMeta `json:",inline"`
	Section         struct {
		embedded `json:",inline"`
		Kept     []struct {
			*Named `json:",inline"`
		} `json:"kept"`
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

func TestErrorsNameKeysOnly(t *testing.T) {
	for text, want := range map[string]string{
		"kind: 1":                      "kind: has to be a text",
		"section: {ratio: x}":          "section.ratio: has to be a number",
		"section: {kept: [{name: 1}]}": "section.kept.name: has to be a text",
		"section: {kept: {}}":          "section.kept: has to be a list",
	} {
		var into outer
		if err := DecodeStrict([]byte(text), &into); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

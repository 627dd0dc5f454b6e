package cli

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"unicode"
)

// Names steer no terminal and hide no text in JSON and YAML either, and whoever reads the document gets them as they
// are.
func TestDocumentsWriteOutWhatHides(t *testing.T) {
	names := map[string]string{"pod\u202e": "node\u009b[2J", "\x1b]0;x\a": "a\x7fb", "nul\x00": "tag\U000e0041",
		"plain": "name", "wide": "名前 \U0001F600"}
	for _, form := range []string{formJSON, formYAML} {
		var out strings.Builder
		o := outputFlag{form: form}
		if err := o.write(&out, answer{data: map[string]any{"pods": names}}); err != nil {
			t.Fatal(err)
		}
		for _, r := range out.String() {
			if r != '\n' && !unicode.IsGraphic(r) || unicode.Is(unicode.Cf, r) {
				t.Errorf("%s: %U is written as it is", form, r)
			}
		}
		if !strings.Contains(out.String(), "名前 \U0001F600") {
			t.Errorf("%s: writes out what can be seen: %s", form, out.String())
		}
		var got struct{ Pods map[string]string }
		if err := json.Unmarshal([]byte(out.String()), &got); err != nil || !maps.Equal(got.Pods, names) {
			t.Errorf("%s: reads as %q, %v", form, got.Pods, err)
		}
	}
}

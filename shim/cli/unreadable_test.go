package cli

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An error about input that cannot be read says what to do.
func TestErrorsOfUnreadableInputSayWhatToDo(t *testing.T) {
	folder := t.TempDir()
	write := func(name, content string) string {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	shop, err := os.ReadFile("../../docs/shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = w.Write(shop)
	w.Close()
	for file, want := range map[string]string{
		write("cut.gz", zipped.String()[:zipped.Len()/2]):  "it is cut short: copy it as a whole, or make it again",
		write("binary", "\x7fELF\x02\x01\x01\x00\x00\x00"): "it is no text: give what kubectl printed",
		write("octets", "\xc3\x28\xa0\xa1\xf0\x28"):        "it is no text: give what kubectl printed",
		write("nodes.json", `{"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "x"}}}`): "; " +
			"correct it, or make the dump anew with kubectl get nodes,pods -A -o json",
	} {
		_, errs, code := run(t, "loadline", "", "top", "-f", file)
		if code != 1 || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: exit %d, want %q: %s", filepath.Base(file), code, want, errs)
		}
	}
}

// Package vulncheck tests tools/vulncheck.sh with a database of one vulnerability, which is made up.
package vulncheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// entry says that strings.ToUpper is vulnerable in all versions of Go.
const entry = `{"schema_version": "1.3.1", "id": "GO-2026-0000", "modified": "2026-11-25T00:00:00Z",
 "published": "2026-11-25T00:00:00Z", "summary": "Upper case that was made up", "details": "It is a test.",
 "affected": [{"package": {"name": "stdlib", "ecosystem": "Go"},
  "ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}],
  "ecosystem_specific": {"imports": [{"path": "strings", "symbols": ["ToUpper"]}]}}],
 "database_specific": {"url": "https://example.com/GO-2026-0000", "review_status": "REVIEWED"}}`

func write(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func check(t *testing.T, database, function string) (string, error) {
	t.Helper()
	module := t.TempDir()
	write(t, module, map[string]string{"go.mod": "module example.com/program\n\ngo 1.26.0\n",
		"main.go": "package main\n\nimport \"strings\"\n\nfunc main() { println(strings." + function + "(\"x\")) }\n"})
	out, err := exec.Command("../../vulncheck.sh", database, module).CombinedOutput()
	return string(out), err
}

func TestVulnerabilityThatIsReached(t *testing.T) {
	database := t.TempDir()
	write(t, database, map[string]string{
		"index/db.json":        `{"modified": "2026-11-25T00:00:00Z"}`,
		"index/modules.json":   `[{"path": "stdlib", "vulns": [{"id": "GO-2026-0000", "modified": "2026-11-25T00:00:00Z"}]}]`,
		"index/vulns.json":     `[{"id": "GO-2026-0000", "modified": "2026-11-25T00:00:00Z", "aliases": []}]`,
		"ID/GO-2026-0000.json": entry})
	if out, err := check(t, database, "ToUpper"); err == nil || !strings.Contains(out, "Upper case that was made up") {
		t.Errorf("a call of what is vulnerable: error %v, %s", err, out)
	}
	if out, err := check(t, database, "ToLower"); err != nil {
		t.Errorf("nothing vulnerable is called: error %v, %s", err, out)
	}
}

func TestNoDatabase(t *testing.T) {
	if out, err := check(t, t.TempDir(), "ToUpper"); err == nil || !strings.Contains(out, "no index/db.json") {
		t.Errorf("an empty folder: error %v, %s", err, out)
	}
}

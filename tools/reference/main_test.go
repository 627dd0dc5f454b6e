package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The generated pages are what the sources say now.
func TestReferenceIsCurrent(t *testing.T) {
	const top = "../.."
	pages, err := generate(top)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range pages {
		got, err := os.ReadFile(filepath.Join(top, "docs", name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/%s is not what the sources say: make reference (error %v)", name, err)
		}
	}
	for page, want := range map[string]string{
		"reference/loadline.md":   "| `--scale-down-unneeded-time` | `10m0s` |",
		"reference/loadlined.md":  "--max-views",
		"reference/autoscaler.md": "maxDrainParallelism: 5",
		"reference/messages.md":   "`PlanLoop(PlanLoopRequest)`",
		"runbooks.md":             "## LoadlinePodsWait\n",
	} {
		if !strings.Contains(string(pages[page]), want) {
			t.Errorf("docs/%s lacks %q", page, want)
		}
	}
}

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The archive of the API has all that protoc needs, and nothing of other protocols.
func TestMessagesAreInTheRelease(t *testing.T) {
	archive, err := archiveOfMessages("../..", "v1.2.3", time.Unix(1700000000, 0))
	if err != nil {
		t.Fatal(err)
	}
	zipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	contents := map[string]string{}
	for in := tar.NewReader(zipped); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			contents[strings.TrimPrefix(strings.TrimPrefix(header.Name, "/"), "loadline-v1.2.3-proto/")] = string(content)
		}
	}
	for name, content := range contents {
		want, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil || strings.ReplaceAll(string(want), "option optimize_for = LITE_RUNTIME;\n", "") != content {
			t.Errorf("%s is not that of the sources: %v", name, err)
		}
		if strings.Contains(content, "option optimize_for") {
			t.Errorf("%s: programs in C++ and Java would have no reflection of messages", name)
		}
		for line := range strings.Lines(content) {
			_, imported, found := strings.Cut(line, "import ")
			if !found || !strings.HasSuffix(name, ".proto") {
				continue
			}
			imported = strings.TrimPrefix(strings.TrimSpace(imported), "public ")
			if _, ok := contents["proto/"+strings.Trim(imported, `";`)]; !ok {
				t.Errorf("%s imports %s, which is not in the archive", name, imported)
			}
		}
	}
	for _, name := range []string{"LICENSE", "docs/api/score_pod.py", "proto/loadline/v1/cluster_state.proto",
		"proto/loadline/k8s/v1/core.proto"} {
		if contents[name] == "" {
			t.Errorf("%s is missing", name)
		}
	}
}

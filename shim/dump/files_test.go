package dump

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/text/encoding/unicode"
	v1 "k8s.io/api/core/v1"
)

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func utf16(t *testing.T, order unicode.Endianness, text string) string {
	t.Helper()
	out, err := unicode.UTF16(order, unicode.UseBOM).NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const (
	nodesYAML = "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata: {name: node1}\n" +
		"kind: List\nmetadata: {}\n"
	podsYAML = "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: pod1}\n" +
		"kind: List\nmetadata: {}\n"
)

func TestReadsFilesAsPeopleHaveThem(t *testing.T) {
	list := `{"kind":"List","items":[` + node1 + "," + pod1 + "]}"
	for name, text := range map[string]string{
		"Gzip":                      gzipped(t, list),
		"UTF16":                     utf16(t, unicode.LittleEndian, list),
		"UTF16BigEndian":            utf16(t, unicode.BigEndian, nodesYAML+"---\n"+podsYAML),
		"UTF16WithoutMark":          strings.TrimPrefix(utf16(t, unicode.LittleEndian, list), "\xff\xfe"),
		"UTF16BigEndianWithoutMark": strings.TrimPrefix(utf16(t, unicode.BigEndian, nodesYAML+"---\n"+podsYAML), "\xfe\xff"),
		"GzippedTwice":              gzipped(t, gzipped(t, list)),
		"EmptyListInAList":          `{"kind":"List","items":[{"kind":"List","items":null},` + node1 + "," + pod1 + "]}",
		"GzipOfUTF16":               gzipped(t, utf16(t, unicode.LittleEndian, list)),
		"AppendedYAML":              nodesYAML + podsYAML,
		"AppendedWindows":           strings.ReplaceAll(nodesYAML+podsYAML, "\n", "\r\n"),
		"ListInAList":               `{"kind":"List","apiVersion":"v1","items":[` + list + "]}",
		"TypedListInAList": `{"kind":"List","items":[{"kind":"NodeList","apiVersion":"v1",` +
			`"items":[{"metadata":{"name":"node1"}}]},` + pod1 + "]}",
		"AppendedAndMarked": nodesYAML + "---\n" + podsYAML,
	} {
		t.Run(name, func(t *testing.T) {
			names, _, err := readAll(text)
			if got := strings.Join(names, ", "); err != nil || got != "node node1, pod default/pod1" {
				t.Errorf("got %s (%v)", got, err)
			}
		})
	}
}

func TestRefusesWhatIsNoDumpAndSaysWhy(t *testing.T) {
	for want, text := range map[string]string{
		"as where two files were joined without ---": "kind: List\nitems: []\nkind: List\nitems: []\n",
		"it starts as gzip does: ":                   "\x1f\x8bxx",
		"the JSON ends early":                        gzipped(t, strings.Repeat(node1, 9))[:60],
		"gzipped more than 4 times":                  gzipped(t, gzipped(t, gzipped(t, gzipped(t, gzipped(t, node1))))),
		"more than 8 deep":                           strings.Repeat(`{"kind":"List","items":[`, 10) + strings.Repeat("]}", 10),
		"JSON has no such limit":                     "kind: " + strings.Repeat("x", MaxDocumentBytes+1),
		"an object is larger than the limit":         gzipped(t, `{"kind":"`+strings.Repeat("x", MaxObjectBytes+1)),
		"document 0: metadata.continue: the list is one page of a longer one, and 12 more objects are missing": `{"kind":` +
			`"PodList","metadata":{"continue":"x","remainingItemCount":12},"items":[` + pod1 + "]}",
		"document 0: metadata.continue: the list is one page of a longer one, and others are missing": "kind: List\n" +
			"items:\n- " + pod1 + "\nmetadata: {continue: x}\n",
		"item 1: metadata.continue": `{"kind":"List","items":[` + pod1 + `,{"kind":"NodeList","metadata":{"continue":` +
			`"x"},"items":[` + node1 + "]}]}",
		"lines, lists and mappings, at most": "kind: List\nitems:\n" + strings.Repeat("- {}\n", maxYAMLParts/2+1),
	} {
		if _, _, err := readAll(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func link(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

func TestReadFilesReadsSeveralAsOne(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	nodes, pods := write("a/nodes.yaml", nodesYAML), write("a/pods.json.gz", gzipped(t, pod1))
	write("a/notes.txt", "not a dump")
	write("empty/notes.txt", "not a dump")
	none := `{"kind":"PodList","items":[]}`
	for name, text := range map[string]string{"nodes.JSON": `{"kind":"NodeList","items":[` + node1 + "]}",
		"shop/pods.json": `{"kind":"PodList","items":[` + pod1 + "]}", "shop/web/logs.txt": "started",
		"idle/pods.jsonl":  none,
		".git/config.json": "{", "._nodes.json": "\x00\x05\x16\x07", ".DS_Store": "\x00\x00\x00\x01Bud1"} {
		write("nested/"+name, text)
	}
	link(t, filepath.Join(dir, "nested"), filepath.Join(dir, "nested/loop"))
	link(t, "loop.json", filepath.Join(dir, "nested/shop/folder.json"))
	link(t, filepath.Join(dir, "nested"), filepath.Join(dir, "nested/shop/loop.json"))
	link(t, filepath.Join(dir, "nested"), filepath.Join(dir, "link"))
	link(t, "self.json", filepath.Join(dir, "self.json"))
	write("linked/nodes.json", node1)
	link(t, "../elsewhere", filepath.Join(dir, "linked/db"))
	link(t, "../elsewhere", filepath.Join(dir, "linked/again"))
	write("elsewhere/deep/pods.json", pod1)
	link(t, "../../linked", filepath.Join(dir, "elsewhere/deep/back"))
	write("dangling/nodes.json", node1)
	link(t, "../gone", filepath.Join(dir, "dangling/db"))
	write("pipe/a.json", node1)
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe/b.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	write("chart/nodes.json", node1)
	write("chart/values.yaml", "replicas: 3\n")
	write("lists/a.json", none)
	write("lists/b.json", none)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/pods.json" {
			http.NotFound(w, r)
			return
		}
		w.Write([]byte(pod1))
	}))
	t.Cleanup(server.Close)
	handler := Handler{Node: func(*v1.Node) error { return nil }, Pod: func(*v1.Pod) error { return nil }}
	for _, names := range [][]string{{nodes, pods}, {filepath.Join(dir, "a")}, {nodes, server.URL + "/pods.json"},
		{nodes, "-"}, {filepath.Join(dir, "nested")}, {filepath.Join(dir, "link")}, {filepath.Join(dir, "linked")}} {
		counts, err := ReadFiles(t.Context(), names, strings.NewReader(pod1), handler)
		if err != nil || counts.Nodes != 1 || counts.Pods != 1 {
			t.Errorf("%v: %+v (%v)", names, counts, err)
		}
	}
	for want, names := range map[string][]string{
		"holds no dump: no file whose name ends":    {filepath.Join(dir, "empty")},
		"/x: 404 Not Found":                         {server.URL + "/x"},
		"the same object as item 0 of " + nodes:     {nodes, write("b.json", node1)},
		"no such file":                              {filepath.Join(dir, "none")},
		"too many levels of symbolic links":         {filepath.Join(dir, "self.json")},
		"/dangling/db: no such file":                {filepath.Join(dir, "dangling")},
		"b.json: is no file but p":                  {filepath.Join(dir, "pipe")},
		"all lists are empty":                       {filepath.Join(dir, "lists")},
		"chart/values.yaml: document 0: not a dump": {filepath.Join(dir, "chart")},
		"it is in a folder: move it elsewhere":      {filepath.Join(dir, "chart")},
		"it holds no object":                        {nodes, write("c.yaml", "# nothing\n")},
	} {
		if _, err := ReadFiles(t.Context(), names, nil, handler); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", names, err, want)
		}
	}
}

package dump

import (
	"strings"
	"testing"
	"testing/iotest"

	v1 "k8s.io/api/core/v1"
)

const (
	warning = "Warning: v1 ComponentStatus is deprecated in v1.19+\n"
	klogged = "E1129 01:14:02.123456   12345 memcache.go:265] couldn't get current server API group list: timeout\n"
	both    = "node node1, pod default/pod1"
)

func TestReadsWhatLiesAroundDocuments(t *testing.T) {
	list := `{"kind":"List","items":[` + node1 + "," + pod1 + "]}\n"
	flag := "Flag --export has been deprecated, it is gone\n"
	for name, text := range map[string]string{
		"WarningBefore":       warning + list,
		"WarningsBefore":      warning + klogged + flag + list,
		"WarningBehind":       list + warning + klogged,
		"WarningBetween":      node1 + "\n" + warning + pod1,
		"WarningInside":       `{"kind":"List","items":[` + node1 + ",\n" + klogged + pod1 + "]}\n",
		"WarningWindows":      strings.ReplaceAll(warning+list, "\n", "\r\n"),
		"WarningWithoutEnd":   list + strings.TrimSpace(warning),
		"WarningBeforeYAML":   warning + klogged + nodesYAML + "---\n" + podsYAML + flag,
		"WarningInYAML":       nodesYAML + warning + podsYAML,
		"LongWarning":         "W1129 01:14:02.123456   12345 request.go:1] " + strings.Repeat("x", 1<<18) + "\n" + list,
		"JSONDivided":         node1 + "\n---\n" + pod1 + "\n---\n",
		"JSONDividedAtFirst":  "---\n---\n# c\n---\n" + node1 + "\n---\n" + pod1 + "\n---\n...\n",
		"JSONDividedWindows":  node1 + "\r\n---\r\n" + pod1 + "\r\n",
		"JSONThenYAML":        node1 + "\n--- # a comment\n" + podsYAML,
		"YAMLThenJSON":        nodesYAML + "---\n" + pod1,
		"YAMLEnded":           nodesYAML + "...\n" + podsYAML,
		"YAMLBehindTheMark":   "--- {kind: Node, metadata: {name: node1}}\n---\tkind: Pod\nmetadata: {name: pod1}\n",
		"Braces":              "{kind: Node, metadata: {name: node1}}\n---\n{ 'kind': Pod, metadata: {name: pod1}}\n",
		"Directive":           "%YAML 1.1\n---\n" + nodesYAML + "---\n" + podsYAML,
		"MarkInTheMiddle":     "\uFEFF" + node1 + "\n\uFEFF" + pod1,
		"MarkInTheMiddleYAML": "\uFEFF" + nodesYAML + "\uFEFF" + podsYAML,
		"ControlZ":            list + "\x1a",
		"NULs":                strings.TrimSpace(list) + strings.Repeat("\x00", 1<<17),
		"NULsBehindYAML":      nodesYAML + podsYAML + "\x00\x00\r\n",
		"Merge": "apiVersion: v1\nkind: List\nitems:\n- &n\n  kind: Node\n  metadata: &m {name: node1}\n" +
			"- <<: *n\n  kind: Pod\n  metadata: {<<: *m, name: pod1}\n",
	} {
		t.Run(name, func(t *testing.T) {
			names, _, err := readAll(text)
			if got := strings.Join(names, ", "); err != nil || got != both {
				t.Errorf("got %s (%v)", got, err)
			}
			nodes := 0
			_, err = Read(iotest.OneByteReader(strings.NewReader(text)), "slow", Handler{
				Node: func(*v1.Node) error { nodes++; return nil }, Pod: func(*v1.Pod) error { return nil }})
			if err != nil || nodes != 1 {
				t.Errorf("byte by byte: %d nodes (%v)", nodes, err)
			}
		})
	}
}

func TestNotesWhatWasLeftOut(t *testing.T) {
	var notes []string
	handler := Handler{Node: func(*v1.Node) error { return nil }, Note: func(note string) { notes = append(notes, note) }}
	if _, err := Read(strings.NewReader(node1+"\n"+warning+klogged), "c.json", handler); err != nil {
		t.Fatal(err)
	}
	const want = `c.json: lines left out that kubectl wrote to standard error: 2; the first is line 2, ` +
		`"Warning: v1 ComponentStatus is deprecated in v1.19+"`
	if len(notes) != 1 || notes[0] != want {
		t.Errorf("got %q, want %q", notes, want)
	}
	if _, err := Read(strings.NewReader(node1), "c.json", handler); err != nil || len(notes) != 1 {
		t.Errorf("got %q (%v)", notes, err)
	}
}

// Objects may be missing beside an error: nothing of it is read past.
func TestNamesTheLineThatIsNoObject(t *testing.T) {
	list := `{"kind":"List","items":[` + node1 + "," + pod1 + "]}\n"
	for _, c := range []struct{ name, text, want string }{
		{"Forbidden", list + `Error from server (Forbidden): pods is forbidden` + "\n",
			`line 2 is a message of kubectl: "Error from server (Forbidden): pods is forbidden": objects may be missing`},
		{"ForbiddenFirst", warning + "Error from server (Forbidden): pods is forbidden\n" + nodesYAML, "line 2 is a message"},
		{"Unreachable", "Unable to connect to the server: EOF\n", "line 1 is a message of kubectl"},
		{"NoResources", "No resources found in default namespace.\n", "line 1 is a message of kubectl"},
		{"OnlyAWarning", warning, `it is empty; line 1, "Warning: v1 ComponentStatus is deprecated in v1.19+" ` +
			"was left out: was standard error written to the file?"},
		{"Truncated", warning + list[:150], "the JSON ends early, after byte 175; line 1, \"Warning"},
		{"OtherText", "Reading cluster: blue\n" + list,
			`; its first line, "Reading cluster: blue", is neither: was something else written to the file?`},
		{"Prompt", "$ kubectl get nodes -o yaml\n" + nodesYAML, `its first line, "$ kubectl get nodes -o yaml", is neither`},
		{"TextBehind", list + "Done in 3 s\n", `document 1: not JSON after byte`},
		{"TextBehindIsQuoted", list + "Done in 3 s\n", `"Done in 3 s\n"`},
		{"Comment", "{\n  // the first node\n  \"kind\": \"Node\"}", "JSON holds no comments: leave them out"},
		{"CommentBehind", `{"kind":"List", # all` + "\n" + `"items":[]}`, "JSON holds no comments: leave them out"},
		{"NULInTheMiddle", node1 + "\x00" + pod1, `not JSON after byte`},
		{"NULInYAML", nodesYAML + "\x00" + podsYAML, "control characters are not allowed"},
		{"CutYAML", nodesYAML[:len(nodesYAML)-len("kind: List\nmetadata: {}\n")],
			"document 0: the list has no kind, which kubectl writes behind the items: is the file cut off?"},
		{"Page", "<!DOCTYPE html>\n<html>\n<p>a: b: c\n", "a page of HTML or XML, as a proxy or a page to sign in sends"},
		{"Table", "NAME   STATUS   AGE: x: y\nnode1  Ready    3d\n", "it is a table: add -o json to kubectl get"},
		{"TableOfPods", "NAMESPACE   NAME   READY\nshop        web    1/1\n", "it is a table: add -o json to kubectl get"},
		{"Described", "Name:               node1\nRoles:              <none>\nTaints:             <none>\n",
			"it is what kubectl describe prints: use kubectl get with -o json"},
		{"Names", "node/node1\nnode/node2\n", "it is a list of names: add -o json to kubectl get"},
		{"JSONPath", "node1 node2 node3", `document 0: not a dump of a cluster`},
		{"Array", "[" + node1 + "]", "it is an array, as `jq .items` prints"},
		{"Template", "map[apiVersion:v1 kind:Node]", "it is printed by a template of Go"},
		{"ServersTable", `{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[]}`, "it is a table of the API server"},
		{"Items", "- apiVersion: v1\n  kind: Node\n", "it is a list of items: print the whole List"},
		{"Quoted", `"{\"kind\": \"List\"}"`, "it is a text in quotes: print it with `jq -r`"},
		{"Encoded", strings.Repeat("ewogImFwaVZlcnNpb24i", 9) + "\n", "it is encoded: decode it first: base64 -d"},
		{"Tabs", strings.ReplaceAll(nodesYAML, "  ", "\t"), "YAML is indented by spaces: replace the tabs, or make the dump"},
		{"YAMLBehind", nodesYAML + "---\nls: x: No such file\n", "document 1 is not YAML: yaml: mapping values are not " +
			"allowed in this context; was something else written behind the dump?"},
		{"CutInAKey", nodesYAML[:strings.LastIndex(nodesYAML, ":")], "could not find expected ':'; is the file cut off, or"},
		{"LongAlias", "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a, ", 100) + "]\n",
			"document 0 is not YAML: line 2: with what its aliases repeat, the document is larger than the limit of 64 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, _, err := readAll(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestNamesTheFormat(t *testing.T) {
	tar := "cluster.json" + strings.Repeat("\x00", 257-12) + "ustar\x0000" + strings.Repeat("\x00", 300)
	for name, c := range map[string]struct{ text, want string }{
		"ZIP":        {"PK\x03\x04\x14\x00", "cluster.json: it is a ZIP archive: unpack it and give the folder or"},
		"EmptyZIP":   {"PK\x05\x06\x00", "an empty ZIP archive"},
		"Tar":        {tar, "it is a tar archive: unpack it"},
		"TarOfADot":  {"." + strings.Repeat("\x00", 256) + "ustar  \x00", "it is a tar archive: unpack it"},
		"GzippedTar": {gzipped(t, tar), "it is a tar archive: unpack it"},
		"GzippedZIP": {gzipped(t, "PK\x03\x04"), "it is a ZIP archive"},
		"7z":         {"7z\xbc\xaf\x27\x1c\x00\x04", "a 7-Zip archive"},
		"RAR":        {"Rar!\x1a\x07\x00", "a RAR archive"},
		"zstd":       {"\x28\xb5\x2f\xfd\x04", "it is compressed by zstd: decompress it first: zstd -d"},
		"xz":         {"\xfd7zXZ\x00\x00", "it is compressed by xz: decompress it first: xz -d"},
		"bzip2":      {"BZh91AY&SY\x01", "it is compressed by bzip2: decompress it first: bzip2 -d"},
		"lz4":        {"\x04\x22\x4d\x18\x64", "it is compressed by lz4"},
		"Parquet":    {"PAR1\x15\x04", "it is a Parquet file: expected a dump of a cluster"},
		"Protobuf":   {"k8s\x00\n\x0c", "it is protobuf of the API server"},
		"Colours":    {"\x1b[34m{\x1b[0m", "coloured for a terminal"},
	} {
		if _, _, err := readAll(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

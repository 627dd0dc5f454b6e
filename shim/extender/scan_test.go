package extender

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// The values that are read directly must be those that encoding/json reads, wherever both succeed, and nothing that
// encoding/json reads may be lost.
func checkDecoding(t *testing.T, body []byte) {
	t.Helper()
	var want arguments
	wantErr := json.Unmarshal(body, &want)
	got, err := decodeSplit(body)
	switch {
	case wantErr == nil && err != nil && !errors.Is(err, errShape):
		t.Errorf("%q: refused with %v", body, err)
	case wantErr == nil && err == nil && !repeatsField(body):
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-encoding/json +direct): %s", body, diff)
		}
	}
	pod, names, _, err := decodeArguments(body)
	if wantErr == nil && err != nil && !errors.Is(err, errNoPod) {
		t.Errorf("%q: lost: %v", body, err)
	}
	if err == nil && pod == nil {
		t.Errorf("%q: neither pod nor error", body)
	}
	for i, name := range names {
		for _, other := range names[:i] {
			if name == other {
				t.Errorf("%q: %q comes twice", body, name)
			}
		}
	}
}

// repeatsField tells whether the object names a field twice: encoding/json then merges the values, the direct way
// merges pods and replaces names.
func repeatsField(body []byte) bool {
	count := 0
	_ = splitObject(body, func(string, []byte) error { count++; return nil })
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(body, &fields)
	if count != len(fields) {
		return true
	}
	lower := map[string]bool{}
	for name := range fields {
		folded := string(foldASCII(name))
		if lower[folded] {
			return true
		}
		lower[folded] = true
	}
	return false
}

func foldASCII(name string) []byte {
	out := []byte(name)
	for i, c := range out {
		if 'A' <= c && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return out
}

var bodies = []string{
	`{}`, ` { } `, `{"Pod":{},"NodeNames":["a","b"]}`, "{\n\t\"pod\" : { } ,\r\n \"nodenames\" : [ \"a\" , \"b\" ] }\n",
	`{"NodeNames":[]}`, `{"NodeNames":[ ]}`, `{"NodeNames":null,"Nodes":null,"Pod":null}`, `{"NodeNames":["a",]}`,
	`{"NodeNames":[,]}`,
	`{"NodeNames":["a" "b"]}`, `{"NodeNames":["a\u0041","\"","\\","é"]}`, `{"NodeNames":["a\\"],"Pod":{}}`,
	`{"NodeNames":["a]b","c}d","e,f"]}`,
	`{"x":1,"y":-1.5e3,"z":true,"Pod":{"metadata":{"name":"p"}}}`, `{"x":}`, `{"x"}`, `{"x":1`, `{"x":1}}`, `{"x":1} 2`,
	`{,}`, `{"a":1,}`,
	`{"Pod":{"metadata":{"name":"}\"]"}},"NodeNames":["a"]}`, `{"x":[[{"a":"]}"}],{}],"NodeNames":["a"]}`, `{"x":]}`,
	`{"x":"abc`,
	`{"x":"abc\"}`, `{"Nodes":{"items":[{"metadata":{"name":"a"}}]},"Pod":{}}`, `null`, `[]`, `"x"`, ``,
	`{"NodeNames":["a","a"],"Pod":{}}`,
	`{"\u004eodeNames":["a"],"Pod":{}}`, `{"x":nul,"Pod":{}}`, "{\"NodeNames\":[\"a\x01\"]}",
	"{\"NodeNames\":[\"\xff\"]}",
}

func TestDirectDecodingAgreesWithEncodingJSON(t *testing.T) {
	for _, body := range bodies {
		checkDecoding(t, []byte(body))
	}
	whole := request(t, 20)
	checkDecoding(t, whole)
	for cut := range whole { // every truncation, and every byte wrong
		checkDecoding(t, whole[:cut])
		broken := append([]byte(nil), whole...)
		broken[cut] ^= 1 << (cut % 8)
		checkDecoding(t, broken)
	}
}

func FuzzDecode(f *testing.F) {
	for _, body := range bodies {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) { checkDecoding(t, body) })
}

func FuzzEncode(f *testing.F) {
	for _, name := range []string{"", "node-1", "a\"b", `a\b`, "<>&", "\x00\x1b", "é\u2028\xff", "\u007f"} {
		f.Add(name, int64(7))
	}
	f.Fuzz(func(t *testing.T, name string, score int64) {
		list := extenderv1.HostPriorityList{{Host: name, Score: score}, {Host: name + name}}
		got, err := Encode(list)
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("got %s want %s", got, want)
		}
	})
}

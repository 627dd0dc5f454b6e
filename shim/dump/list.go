package dump

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"loadline.dev/shim/internal/text"
)

// readJSON reads top-level JSON values one after the other.
func (d *reader) readJSON(in io.Reader) error {
	bounded := &boundedReader{r: in, left: MaxObjectBytes, bound: "an object", limit: MaxObjectBytes}
	decoder := json.NewDecoder(bounded)
	for n := 0; ; n++ {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return jsonError(decoder, fmt.Sprint("document ", n), err)
		}
		if token != json.Delim('{') {
			return fmt.Errorf("document %d: %w; it is %s", n, errNotADump, describeToken(token))
		}
		if err := d.readTop(decoder, bounded, n); err != nil {
			return err
		}
	}
}

// top collects the fields of a top-level object while its items stream by.
type top struct {
	kind   string
	list   bool
	fields map[string]json.RawMessage
	// untyped holds items without a kind that came before the kind of their list, by position.
	untyped []json.RawMessage
	first   int
}

// readTop reads the top-level object of a document, its opening brace already consumed: a list, item by item, or
// a single object.
func (d *reader) readTop(decoder *json.Decoder, bounded *boundedReader, document int) error {
	t := top{fields: map[string]json.RawMessage{}}
	where := fmt.Sprint("document ", document)
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return jsonError(decoder, where, err)
		}
		if key == "items" {
			if err := d.readItems(decoder, bounded, document, &t); err != nil {
				return err
			}
			continue
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return jsonError(decoder, where, err)
		}
		if key == "kind" && json.Unmarshal(value, &t.kind) != nil {
			return fmt.Errorf("%s: kind: expected a text, got %s", where, abbreviate(value))
		}
		t.fields[key.(string)] = value
	}
	if _, err := decoder.Token(); err != nil { // the closing brace
		return jsonError(decoder, where, err)
	}
	bounded.renew()
	return d.finishTop(t, document)
}

func (d *reader) finishTop(t top, document int) error {
	if t.list {
		for i, item := range t.untyped {
			if err := d.object(item, metav1.TypeMeta{Kind: itemKind(t.kind)},
				position{document: document, item: t.first + i}); err != nil {
				return err
			}
		}
		return nil
	}
	_, event := t.fields["object"]
	switch {
	case t.kind == "" && event:
		return fmt.Errorf("document %d: %w; it is an event of a watch: leave out --watch and --output-watch-events",
			document, errNotADump)
	case t.kind == "":
		return fmt.Errorf("document %d: %w; the object has no kind", document, errNotADump)
	case t.kind == "Status":
		return fmt.Errorf("document %d: %w; it is an error of the API server: %s", document, errNotADump,
			abbreviate(t.fields["message"]))
	}
	whole, err := json.Marshal(t.fields)
	if err != nil {
		return err
	}
	at := position{document: document, item: -1}
	head, err := headOf(whole, at)
	if err != nil {
		return err
	}
	return d.object(whole, head, at)
}

// readItems reads the array that follows the key "items", one object at a time.
func (d *reader) readItems(decoder *json.Decoder, bounded *boundedReader, document int, t *top) error {
	token, err := decoder.Token()
	if err != nil {
		return jsonError(decoder, fmt.Sprintf("document %d: items", document), err)
	}
	if token == nil {
		t.list = true // an empty list of Go may be null
		return nil
	}
	if token != json.Delim('[') {
		return fmt.Errorf("document %d: items: expected a list, got %s", document, describeToken(token))
	}
	t.list = true
	var item json.RawMessage
	i := 0
	for ; decoder.More(); i++ {
		bounded.renew()
		if err := decoder.Decode(&item); err != nil {
			return jsonError(decoder, position{document: document, item: i}.String(), err)
		}
		head, err := headOf(item, position{document: document, item: i})
		if err != nil {
			return err
		}
		if t.kind == "" && head.Kind == "" {
			if len(t.untyped) == 0 {
				t.first = i
			}
			t.untyped = append(t.untyped, bytes.Clone(item))
			continue
		}
		if head.Kind == "" {
			head.Kind = itemKind(t.kind)
		}
		if err := d.object(item, head, position{document: document, item: i}); err != nil {
			return err
		}
	}
	bounded.renew()
	if _, err = decoder.Token(); err != nil { // the closing bracket
		return jsonError(decoder, fmt.Sprintf("document %d: behind its items, of which there are %d", document, i), err)
	}
	return nil
}

// itemKind returns the kind of the items of a typed list: Pod for PodList. A plain List says nothing.
func itemKind(listKind string) string {
	kind, _ := strings.CutSuffix(listKind, "List")
	return kind
}

// readYAML reads YAML documents and treats each as JSON of the same content.
func (d *reader) readYAML(in io.Reader) error {
	bounded := &boundedReader{r: in, left: MaxDocumentBytes, bound: "a YAML document", limit: MaxDocumentBytes,
		help: "; JSON has no such limit: kubectl get ... -o json"}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bounded))
	for n := 0; ; n++ {
		read, err := documents.Read()
		bounded.renew()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("document %d: %w", n, printable(err))
		}
		for i, document := range splitLists(read) {
			if i > 0 {
				n++
			}
			if err := d.readYAMLDocument(document, n); err != nil {
				return err
			}
		}
	}
}

// splitLists splits a document in which one list was appended to another: kubectl writes no --- before it. Each begins
// with the key apiVersion, which no mapping has twice.
func splitLists(document []byte) [][]byte {
	const key = "\napiVersion:"
	first := 0
	if !bytes.HasPrefix(document, []byte(key[1:])) {
		if first = bytes.Index(document, []byte(key)); first < 0 {
			return [][]byte{document}
		}
		first++
	}
	var parts [][]byte
	from := 0
	for at := first + 1; ; {
		next := bytes.Index(document[at:], []byte(key))
		if next < 0 {
			return append(parts, document[from:])
		}
		at += next + 1
		parts, from = append(parts, document[from:at]), at
	}
}

// printable returns an error that can be shown: YAML's errors quote bytes as they were read.
func printable(err error) error {
	if utf8.ValidString(err.Error()) {
		return err
	}
	return errors.New(text.Valid(err.Error()))
}

func (d *reader) readYAMLDocument(read []byte, document int) error {
	asJSON, err := yaml.YAMLToJSONStrict(read)
	if err != nil && strings.Contains(err.Error(), "already set in map") {
		return fmt.Errorf("document %d: a key occurs twice, as where two files were joined without --- between them: %w",
			document, printable(err))
	}
	if err != nil {
		return fmt.Errorf("document %d is not YAML: %w", document, printable(err))
	}
	if string(asJSON) == "null" {
		return nil // nothing but comments, or the space between two separators
	}
	if asJSON[0] != '{' {
		return fmt.Errorf("document %d: %w; it is %s", document, errNotADump, abbreviate(asJSON))
	}
	decoder := json.NewDecoder(bytes.NewReader(asJSON))
	if _, err := decoder.Token(); err != nil {
		return err
	}
	return d.readTop(decoder, &boundedReader{}, document)
}

// jsonError tells where in the text the decoder got stuck, and in what.
func jsonError(decoder *json.Decoder, where string, err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s: the JSON ends early, after byte %d", where, decoder.InputOffset())
	case errors.As(err, &syntax):
		return fmt.Errorf("%s: not JSON after byte %d: %w", where, decoder.InputOffset(), err)
	}
	return fmt.Errorf("%s: %w", where, err)
}

func describeToken(token json.Token) string {
	switch value := token.(type) {
	case nil:
		return "null"
	case json.Delim:
		return fmt.Sprintf("%q", value.String())
	}
	return abbreviate(fmt.Appendf(nil, "%v", token))
}

// abbreviate quotes the start of a value in JSON for an error message: a text as it reads, escaped once, and not all of
// it.
func abbreviate(value []byte) string {
	const most = 100
	var text string
	if json.Unmarshal(value, &text) == nil {
		value = []byte(text)
	}
	if len(value) > most {
		return fmt.Sprintf("%q...", value[:most])
	}
	return fmt.Sprintf("%q", value)
}

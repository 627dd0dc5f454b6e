package dump

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// readJSON reads top-level JSON values one after the other. They start at this byte of the text.
func (d *reader) readJSON(in io.Reader, at int64) error {
	bounded := &boundedReader{r: in, left: MaxObjectBytes, bound: "an object", limit: MaxObjectBytes}
	decoder := &jsonDecoder{Decoder: json.NewDecoder(bounded), bounded: bounded, start: at}
	for ; ; d.document++ {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return decoder.failed(fmt.Sprint("document ", d.document), err)
		}
		if token != json.Delim('{') {
			return fmt.Errorf("document %d: %w; it is %s", d.document, errNotADump, describeToken(token))
		}
		if err := d.readTop(decoder, d.document); err != nil {
			return err
		}
	}
}

// jsonDecoder decodes values of JSON of a bounded size.
type jsonDecoder struct {
	*json.Decoder
	bounded *boundedReader
	start   int64 // the place in the text of what it reads
	yaml    bool  // the text was YAML
}

// failed tells where in the text the decoder got stuck, and in what.
func (d *jsonDecoder) failed(where string, err error) error {
	var syntax *json.SyntaxError
	at := d.start + d.InputOffset()
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s: the JSON ends early, after byte %d", where, at)
	case errors.As(err, &syntax):
		const most = 60
		rest, _ := io.ReadAll(io.LimitReader(d.Buffered(), most))
		help := ""
		if text := bytes.TrimLeft(rest, " \t\r\n,"); bytes.HasPrefix(text, []byte("//")) ||
			bytes.HasPrefix(text, []byte("/*")) || bytes.HasPrefix(text, []byte("#")) {
			help = ": JSON holds no comments: leave them out"
		}
		return fmt.Errorf("%s: not JSON after byte %d: %w: %s%s", where, at, err, abbreviate(rest), help)
	}
	return fmt.Errorf("%s: %w", where, err)
}

// top collects the fields of a top-level object while its items stream by.
type top struct {
	kind, version string
	list          bool
	fields        map[string]json.RawMessage
	// untyped holds items without a kind that came before the kind of their list, by position.
	untyped []json.RawMessage
	first   int
	items   int // how many there are
}

// readTop reads the top-level object of a document, its opening brace already consumed: a list, item by item, or
// a single object.
func (d *reader) readTop(decoder *jsonDecoder, document int) error {
	t := top{fields: map[string]json.RawMessage{}}
	where := fmt.Sprint("document ", document)
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return decoder.failed(where, err)
		}
		if key == "items" {
			if err := d.readItems(decoder, document, &t); err != nil {
				return err
			}
			continue
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return decoder.failed(where, err)
		}
		if key == "kind" && json.Unmarshal(value, &t.kind) != nil {
			return fmt.Errorf("%s: kind: expected a text, got %s", where, abbreviate(value))
		}
		if key == "apiVersion" {
			_ = json.Unmarshal(value, &t.version) // what else it may be is no version that is known
		}
		t.fields[key.(string)] = value
	}
	if _, err := decoder.Token(); err != nil { // the closing brace
		return decoder.failed(where, err)
	}
	decoder.bounded.renew()
	if decoder.yaml && t.list && t.kind == "" {
		return fmt.Errorf("%s: the list has no kind, which kubectl writes behind the items: is the file cut off?", where)
	}
	return d.finishTop(t, document)
}

func (d *reader) finishTop(t top, document int) error {
	if t.list {
		if err := goesOn(t.fields["metadata"], position{document: document, item: -1}); err != nil {
			return err
		}
		d.emptyList = d.emptyList || t.items == 0
		for i, item := range t.untyped {
			if err := d.object(item, metav1.TypeMeta{Kind: itemKind(t.kind), APIVersion: t.version},
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
	case t.kind == "Table" && bytes.HasPrefix(t.fields["apiVersion"], []byte(`"meta.k8s.io/`)):
		return fmt.Errorf("document %d: %w; it is a table of the API server, without the objects: ask for application/json",
			document, errNotADump)
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

// goesOn refuses a list, of this metadata, that is one page of a longer one: who asked for the others is not known, and
// a node of which the pods are on another page looks empty.
func goesOn(metadata json.RawMessage, at position) error {
	var page struct {
		Continue           any          `json:"continue"`
		RemainingItemCount *json.Number `json:"remainingItemCount"`
	}
	if len(metadata) == 0 || json.Unmarshal(metadata, &page) != nil || page.Continue == nil || page.Continue == "" {
		return nil
	}
	missing := "others"
	if page.RemainingItemCount != nil {
		missing = page.RemainingItemCount.String() + " more objects"
	}
	return fmt.Errorf("%s: metadata.continue: the list is one page of a longer one, and %s are missing: ask for all of "+
		"it at once, without limit, or make the dump with `kubectl get`, which asks for all pages", at, missing)
}

// readItems reads the array that follows the key "items", one object at a time.
func (d *reader) readItems(decoder *jsonDecoder, document int, t *top) error {
	token, err := decoder.Token()
	if err != nil {
		return decoder.failed(fmt.Sprintf("document %d: items", document), err)
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
		decoder.bounded.renew()
		if err := decoder.Decode(&item); err != nil {
			return decoder.failed(position{document: document, item: i}.String(), err)
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
			head.Kind, head.APIVersion = itemKind(t.kind), cmp.Or(head.APIVersion, t.version)
		}
		if err := d.object(item, head, position{document: document, item: i}); err != nil {
			return err
		}
	}
	t.items = i
	decoder.bounded.renew()
	if _, err = decoder.Token(); err != nil { // the closing bracket
		return decoder.failed(fmt.Sprintf("document %d: behind its items, of which there are %d", document, i), err)
	}
	return nil
}

// itemKind returns the kind of the items of a typed list: Pod for PodList. A plain List says nothing.
func itemKind(listKind string) string {
	kind, _ := strings.CutSuffix(listKind, "List")
	return kind
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

package dump

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"loadline.dev/shim/dump/mergekeys"
	"loadline.dev/shim/internal/text"
)

var errNotYAML = errors.New("is not YAML")

// readYAML reads one YAML document and treats it as JSON of the same content.
func (d *reader) readYAML(in io.Reader) error {
	read, err := io.ReadAll(&boundedReader{r: in, left: MaxDocumentBytes, bound: "a YAML document",
		limit: MaxDocumentBytes, help: "; JSON has no such limit: kubectl get ... -o json"})
	if err != nil {
		return fmt.Errorf("document %d: %w", d.document, err)
	}
	if parts := yamlParts(read); parts > maxYAMLParts {
		return fmt.Errorf("document %d has %d lines, lists and mappings, at most %d are read; JSON has no such limit: "+
			"kubectl get ... -o json", d.document, parts, maxYAMLParts)
	}
	for _, document := range splitLists(read) {
		if err := d.readYAMLDocument(document); err != nil {
			return err
		}
	}
	return nil
}

// yamlParts returns how many parts a document may have, without parsing it.
func yamlParts(document []byte) (parts int) {
	for _, mark := range []string{"\n", ",", "{", "["} {
		parts += bytes.Count(document, []byte(mark))
	}
	return parts
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

// helpWithYAML says what may be wrong with a text that is no YAML, as "; ...", or nothing.
func (d *reader) helpWithYAML(err error) string {
	switch text := err.Error(); {
	case !strings.Contains(text, "yaml: "): // it is about bounds
		return ""
	case strings.Contains(text, "tab character"):
		return "; YAML is indented by spaces: replace the tabs, or make the dump with -o json"
	case d.document > 0:
		return "; was something else written behind the dump?"
	}
	return "; is the file cut off, or was something else written into it?"
}

func (d *reader) readYAMLDocument(read []byte) error {
	asJSON, err := mergekeys.ToJSON(read, MaxDocumentBytes)
	if errors.Is(err, mergekeys.ErrTwice) {
		return fmt.Errorf("document %d: %w; as where two files were joined without --- between them", d.document,
			printable(err))
	}
	if err != nil {
		return fmt.Errorf("document %d %w: %w", d.document, errNotYAML, printable(err))
	}
	if string(asJSON) == "null" {
		return nil // nothing but comments
	}
	if asJSON[0] != '{' {
		return fmt.Errorf("document %d: %w; it is %s", d.document, errNotADump, abbreviate(asJSON))
	}
	decoder := &jsonDecoder{Decoder: json.NewDecoder(bytes.NewReader(asJSON)), bounded: &boundedReader{}, yaml: true}
	if _, err := decoder.Token(); err != nil {
		return err
	}
	document := d.document
	d.document++
	return d.readTop(decoder, document)
}

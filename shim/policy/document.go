package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
)

// OneDocument returns an error for YAML with a document behind the first one, unless it is empty: a decoder of one
// document would drop it without a word.
func OneDocument(data []byte) error {
	decoder := yamlnode.NewDecoder(bytes.NewReader(data))
	for i := 0; ; i++ {
		var document yamlnode.Node
		err := decoder.Decode(&document)
		switch {
		case errors.Is(err, io.EOF) || err != nil && i == 0: // who decodes the first one reports its faults
			return nil
		case err != nil:
			return fmt.Errorf("behind the first YAML document: %w", err)
		case i > 0 && !isEmpty(&document):
			return fmt.Errorf("line %d: a second YAML document begins here, behind ---: there may be one only: join them, or "+
				"leave one out", document.Content[0].Line)
		}
	}
}

func isEmpty(document *yamlnode.Node) bool {
	return len(document.Content) == 0 || document.Content[0].ShortTag() == "!!null"
}

// keysOf returns a path of a decoder in a type with JSON keys only: the decoder also names the structs of Go that are
// embedded, which no document has.
func keysOf(of reflect.Type, path string) string {
	var keys []string
	for _, key := range strings.Split(path, ".") {
		for of != nil && slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map},
			of.Kind()) {
			of = of.Elem()
		}
		var embedded bool
		of, embedded = fieldOf(of, key)
		if !embedded {
			keys = append(keys, key)
		}
	}
	return strings.Join(keys, ".")
}

// fieldOf returns the type of the field that a decoder calls this, nil: there is none; and whether that is the name of
// an embedded struct.
func fieldOf(of reflect.Type, key string) (field reflect.Type, embedded bool) {
	if of == nil || of.Kind() != reflect.Struct {
		return nil, false
	}
	for _, f := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && f.Anonymous && f.Name == key:
			return f.Type, true
		case name == key || name == "" && f.Name == key:
			return f.Type, false
		}
	}
	return nil, false
}

package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"loadline.dev/shim/internal/text"
)

// refusal is a value of a document that the type of its field does not take.
type refusal struct {
	path  string // begins with a dot or a bracket; empty: the document itself
	value json.RawMessage
	of    reflect.Type
	err   error
}

// refused returns the first value that a type does not take, at any depth of a document; nil: it takes all.
func refused(document json.RawMessage, of reflect.Type) *refusal {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	err := kjson.UnmarshalCaseSensitivePreserveInts(document, reflect.New(of).Interface())
	if err == nil {
		return nil
	}
	if !decodesItself(of) {
		for _, p := range partsOf(document, of) {
			if r := refused(p.value, p.of); r != nil {
				r.path = p.path + r.path
				return r
			}
		}
	}
	return &refusal{value: document, of: of, err: err}
}

func decodesItself(of reflect.Type) bool {
	return reflect.PointerTo(of).Implements(reflect.TypeFor[json.Unmarshaler]())
}

// partsOf returns the values of the fields of a struct or a map, by name, or the elements of a list.
func partsOf(document json.RawMessage, of reflect.Type) (parts []refusal) {
	switch of.Kind() {
	case reflect.Struct, reflect.Map:
		var values map[string]json.RawMessage
		_ = json.Unmarshal(document, &values) // what is no object has no parts
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if field := fieldOf(of, key); field != nil {
				parts = append(parts, refusal{path: "." + key, value: values[key], of: field})
			}
		}
	case reflect.Slice, reflect.Array:
		var values []json.RawMessage
		_ = json.Unmarshal(document, &values)
		for i, value := range values {
			parts = append(parts, refusal{path: fmt.Sprintf("[%d]", i), value: value, of: of.Elem()})
		}
	}
	return parts
}

// fieldOf returns the type of what has a key in a struct or a map; nil: there is nothing.
func fieldOf(of reflect.Type, key string) reflect.Type {
	switch of.Kind() {
	case reflect.Map:
		return of.Elem()
	case reflect.Pointer:
		return fieldOf(of.Elem(), key)
	case reflect.Struct:
	default:
		return nil
	}
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch embedded := name == "" && f.Anonymous; {
		case embedded:
			if inner := fieldOf(f.Type, key); inner != nil {
				return inner
			}
		case name == key || name == "" && f.Name == key:
			return f.Type
		}
	}
	return nil
}

// readable returns an error of a decoder with the path of the value that the type does not take, and with what it has
// to be, where encoding/json names types of Go, and others name no field.
func readable(err error, document []byte, into reflect.Type) error {
	r := refused(document, into)
	if r == nil {
		return err
	}
	wanted, is := formOf(r.of), valueOf(r.value)
	problem := fmt.Sprintf("has to be %s, and is %s", wanted, is)
	if wanted == "" || wanted == is { // the decoder says more
		problem = fmt.Sprintf("%s: %v", is, r.err)
	}
	if r.path == "" {
		return errors.New(problem)
	}
	return fmt.Errorf("%s: %s", strings.TrimPrefix(r.path, "."), problem)
}

// valueOf says what a value is.
func valueOf(value json.RawMessage) string {
	switch value[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	}
	return text.Bound(string(value), 100)
}

// formOf says what the values of a type are; empty: the error of the type says so.
func formOf(of reflect.Type) string {
	switch {
	case of == reflect.TypeFor[metav1.Duration]():
		return "a duration such as 1m30s"
	case decodesItself(of):
		return ""
	}
	switch of.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("a whole number of %d bits", of.Bits())
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "a list"
	}
	return "an object"
}

package main

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/policy"
)

// walk visits a Go type and the types of its fields.
type walk struct {
	comments comments
	sections []section
}

// within is an object that lies at a key.
type within struct {
	path, text string
	of         reflect.Type
	set        map[string]any
}

// object adds the section of a struct type, then those of the objects in it. `set` are values that the code sets.
func (w *walk) object(path, text string, of reflect.Type, set map[string]any) error {
	position := len(w.sections)
	w.sections = append(w.sections, section{path: path, text: text})
	var inside []within
	rows, err := w.keys(path, of, set, &inside)
	if err != nil {
		return err
	}
	w.sections[position].rows = rows
	for _, in := range inside {
		if err := w.object(in.path, in.text, in.of, in.set); err != nil {
			return err
		}
	}
	return nil
}

// keys returns the rows of a struct type, and what lies in it.
func (w *walk) keys(path string, of reflect.Type, set map[string]any, inside *[]within) (rows []keyRow, err error) {
	for i := range of.NumField() {
		field := of.Field(i)
		key := keyOf(field)
		switch {
		case !field.IsExported() || path == "" && isHead(field):
			continue
		case field.Anonymous:
			more, err := w.keys(path, field.Type, set, inside)
			if err != nil {
				return nil, err
			}
			rows = append(rows, more...)
			continue
		}
		row, err := w.key(field, of, set[key])
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", of, field.Name, err)
		}
		rows = append(rows, row)
		if object := objectOf(field.Type); object != nil {
			at := strings.TrimPrefix(path+"."+key, ".")
			child, _ := set[key].(map[string]any)
			words := "`" + key + "`"
			if field.Type.Kind() == reflect.Slice {
				words = "Each of " + words
			}
			*inside = append(*inside, within{at, w.comments.ofType(object, words), object, child})
		}
	}
	return rows, nil
}

// isHead tells whether a field at the top says what a file is.
func isHead(field reflect.StructField) bool {
	key := keyOf(field)
	return field.Type == reflect.TypeFor[metav1.TypeMeta]() || key == "apiVersion" || key == "kind"
}

// key returns the row of a field. `set` is the value that the code sets where a file has none; nil: it sets none.
func (w *walk) key(field reflect.StructField, of reflect.Type, set any) (keyRow, error) {
	text, otherwise := w.comments.ofField(of, field.Name)
	if text == "" {
		return keyRow{}, errors.New("has no comment")
	}
	object := objectOf(field.Type) != nil
	if set != nil && !object {
		value := fmt.Sprint(set)
		if strings.HasPrefix(otherwise, defaultOf) && otherwise != defaultOf+value {
			return keyRow{}, fmt.Errorf("the comment has %q, the code sets %s", otherwise, value)
		}
		otherwise = cmp.Or(otherwise, value)
	}
	switch {
	case otherwise != "":
	case object:
		otherwise = "see below"
	case field.Type.Kind() == reflect.Bool:
		otherwise = "false"
	default:
		return keyRow{}, errors.New("the comment ends neither with Required nor with a Default")
	}
	name, err := typeName(field.Type)
	return keyRow{keyOf(field), name, strings.TrimPrefix(otherwise, defaultOf), text}, err
}

// keyOf returns the key of a field in a file.
func keyOf(field reflect.StructField) string {
	key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return cmp.Or(key, field.Name)
}

// Types that a file has as one value.
var plain = map[reflect.Type]string{
	reflect.TypeFor[metav1.Duration]():   "duration",
	reflect.TypeFor[resource.Quantity](): "quantity",
	reflect.TypeFor[policy.Ratio]():      "number",
}

// objectOf returns the struct type of our own that a type holds one or many of; nil: it holds none.
func objectOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || plain[t] != "" || !strings.HasPrefix(t.PkgPath(), module) {
		return nil
	}
	return t
}

// typeName returns how a page calls a type.
func typeName(t reflect.Type) (string, error) {
	if name, ok := plain[t]; ok {
		return name, nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeName(t.Elem())
	case reflect.Slice:
		of, err := typeName(t.Elem())
		noun, rest, _ := strings.Cut(of, " ")
		return strings.TrimSpace("list of " + noun + "s " + rest), err
	case reflect.Map:
		key, err := typeName(t.Key())
		of, err2 := typeName(t.Elem())
		return "map of " + key + " to " + of, errors.Join(err, err2)
	case reflect.String:
		return "string", nil
	case reflect.Bool:
		return "boolean", nil
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64:
		return "integer", nil
	case reflect.Float64:
		return "number", nil
	case reflect.Interface:
		return "value", nil
	case reflect.Struct:
		if objectOf(t) != nil {
			return "object", nil
		}
		return t.Name() + " of Kubernetes", nil
	}
	return "", fmt.Errorf("a page has no word for %s", t)
}

package dump

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/unknownfields"
)

// broken returns the error of an object that does not decode, with the path of the field at fault. Decoders name
// the field of a wrong type, but not that of a malformed quantity or time.
func broken(where string, raw json.RawMessage, into any, err error) error {
	path, cause := locate(raw, reflect.TypeOf(into).Elem())
	if cause == nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	return fmt.Errorf("%s: %s: %w", where, path, cause)
}

// locate finds the field that keeps an object from decoding as a value of type t: it decodes the object with one
// field alone, and descends into the first one, by name, that fails. O(fields x depth); only for broken objects.
func locate(raw json.RawMessage, t reflect.Type) (path string, cause error) {
	path, _, cause = locateValue(raw, t)
	return path, cause
}

// Locate finds the field that keeps JSON from decoding into a value like this one, with what it holds as JSON. A nil
// cause: none does.
func Locate(raw json.RawMessage, into any) (path, value string, cause error) {
	path, at, cause := locateValue(raw, reflect.TypeOf(into).Elem())
	text, _ := json.Marshal(at) // it was JSON
	return path, abbreviate(text), cause
}

func locateValue(raw json.RawMessage, t reflect.Type) (path string, value any, cause error) {
	value, ok := valueOf(raw)
	if !ok {
		return "", nil, nil
	}
	steps, value := stepsTo(value, t)
	if len(steps) == 0 {
		return "", nil, nil
	}
	return pathOf(steps), value, try(steps, value, t)
}

func valueOf(raw json.RawMessage) (value any, ok bool) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // a large whole number has to stay one
	err := decoder.Decode(&value)
	return value, err == nil
}

// stepsTo leads to the first broken field of a value: by field names and, for list elements, indices.
func stepsTo(value any, t reflect.Type) (steps []any, at any) {
	for {
		next, child, ok := firstBroken(value, steps, t)
		if !ok {
			return steps, value
		}
		steps, value = append(steps, next), child
	}
}

// mostReadableBytes bounds a broken object of which the rest is read.
const mostReadableBytes = 1 << 20

// readable decodes what can be read of a broken pod or node, and notes on it what cannot. False: nothing can.
func readable(raw json.RawMessage, into metav1.Object) bool {
	if len(raw) > mostReadableBytes {
		return false
	}
	value, ok := valueOf(raw)
	if !ok {
		return false
	}
	var fields []string
	rest, ok := withoutBroken(value, nil, reflect.TypeOf(into).Elem(), &fields)
	if !ok {
		return false
	}
	text, err := json.Marshal(rest)
	if err != nil || unknownfields.InJSON(text, into) != nil || into.GetName() == "" {
		return false
	}
	unknownfields.Unread(into, fields)
	return true
}

// amountsOf are the fields that hold amounts by name.
var amountsOf = []any{"requests", "limits", "overhead", "allocatable", "capacity", "allocatedResources"}

// withoutBroken takes the broken fields out of a value that fails alone at this place, and adds them to fields. An
// amount becomes -1, which is none either, but which decodes: an engine has to hear that there was one. False: nothing
// is left. O(fields x depth).
func withoutBroken(value any, steps []any, t reflect.Type, fields *[]string) (rest any, ok bool) {
	switch of := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(of)) {
			if at := append(slices.Clip(steps), key); try(at, of[key], t) != nil {
				if rest, ok := withoutBroken(of[key], at, t, fields); ok {
					of[key] = rest
				} else {
					delete(of, key)
				}
			}
		}
	case []any:
		var kept []any
		for i, element := range of {
			at, ok := append(slices.Clip(steps), i), true
			if try(at, element, t) != nil {
				element, ok = withoutBroken(element, at, t, fields)
			}
			if ok {
				kept = append(kept, element)
			}
		}
		value = kept
	}
	if try(steps, value, t) == nil {
		return value, true
	}
	*fields = append(*fields, pathOf(steps))
	last := len(steps) - 1
	return "-1", last > 0 && slices.Contains(amountsOf, steps[last-1])
}

// firstBroken returns the first field or element of value that fails alone.
func firstBroken(value any, steps []any, t reflect.Type) (step, child any, ok bool) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if try(append(slices.Clip(steps), key), value[key], t) != nil {
				return key, value[key], true
			}
		}
	case []any:
		for i, element := range value {
			if try(append(slices.Clip(steps), i), element, t) != nil {
				return i, element, true
			}
		}
	}
	return nil, nil, false
}

// try decodes an object that holds nothing but `value` at the place that `steps` leads to.
func try(steps []any, value any, t reflect.Type) error {
	for _, step := range slices.Backward(steps) {
		if key, ok := step.(string); ok {
			value = map[string]any{key: value}
		} else {
			value = []any{value}
		}
	}
	alone, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return decode(alone, reflect.New(t).Interface())
}

func pathOf(steps []any) string {
	var path strings.Builder
	for _, step := range steps {
		if key, ok := step.(string); ok {
			fmt.Fprintf(&path, ".%s", key)
		} else {
			fmt.Fprintf(&path, "[%d]", step)
		}
	}
	return strings.TrimPrefix(path.String(), ".")
}
